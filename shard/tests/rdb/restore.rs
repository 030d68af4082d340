//! The options and errors of `RESTORE`.

use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::{EvictionPolicy, Settings};

use super::{NOW_MS, dump, new_shard, run, sealed};
use crate::support::{call, databases};

fn restore(shard: &mut ruvio_shard::shard::Shard, options: &str) -> String {
    let payload = sealed(b"\x00\x03new", 10);
    let mut words: Vec<&[u8]> = vec![b"RESTORE", b"k"];
    let mut options = options.split(' ').map(str::as_bytes);
    words.extend(options.next());
    words.push(&payload);
    words.extend(options);
    String::from_utf8(run(shard, &words)).expect("text")
}

#[test]
fn deadlines_are_relative_or_absolute() {
    let mut shard = new_shard(Settings::default());
    assert_eq!(restore(&mut shard, "0"), "+OK\r\n");
    assert_eq!(run(&mut shard, &[b"PEXPIRETIME", b"k"]), b":-1\r\n");
    assert_eq!(restore(&mut shard, "5000 REPLACE"), "+OK\r\n");
    assert_eq!(run(&mut shard, &[b"PEXPIRETIME", b"k"]), format!(":{}\r\n", NOW_MS + 5000).as_bytes());
    assert_eq!(restore(&mut shard, &format!("{} ABSTTL replace", NOW_MS + 1)), "+OK\r\n");
    assert_eq!(run(&mut shard, &[b"PEXPIRETIME", b"k"]), format!(":{}\r\n", NOW_MS + 1).as_bytes());
    // What has expired is not made, but the key that it would replace goes.
    assert_eq!(restore(&mut shard, &format!("{} ABSTTL REPLACE", NOW_MS - 1)), "+OK\r\n");
    assert_eq!(run(&mut shard, &[b"EXISTS", b"k"]), b":0\r\n");
}

#[test]
fn errors_come_in_redis_words_and_change_nothing() {
    let mut shard = new_shard(Settings::default());
    run(&mut shard, &[b"SET", b"k", b"old"]);
    for (options, error) in [
        ("0", "BUSYKEY Target key name already exists."),
        ("x", "BUSYKEY Target key name already exists."),
        ("x REPLACE", "ERR value is not an integer or out of range"),
        ("-1 REPLACE", "ERR Invalid TTL value, must be >= 0"),
        ("9223372036854775807 REPLACE", "ERR invalid expire time in 'restore' command"),
        ("0 REPLACE what", "ERR syntax error"),
        ("0 REPLACE IDLETIME", "ERR syntax error"),
        ("0 REPLACE IDLETIME 5 FREQ 5", "ERR syntax error"),
        ("0 REPLACE IDLETIME -1", "ERR Invalid IDLETIME value, must be >= 0"),
        ("0 REPLACE FREQ 256", "ERR Invalid FREQ value, must be >= 0 and <= 255"),
        ("0 REPLACE FREQ x", "ERR value is not an integer or out of range"),
    ] {
        assert_eq!(restore(&mut shard, options), format!("-{error}\r\n"));
    }
    let damaged = sealed(b"\x00\x04new", 10);
    let (reply, changes) =
        call(&mut shard, NOW_MS, Protocol::Resp2, &[b"RESTORE".as_slice(), b"k", b"0", &damaged, b"REPLACE"]);
    assert_eq!((reply, changes), (b"-ERR Bad data format\r\n".to_vec(), 0));
    // The payload is looked at before the time.
    let far: [&[u8]; 5] = [b"RESTORE", b"k", b"9223372036854775807", b"no payload", b"REPLACE"];
    let (reply, _) = call(&mut shard, NOW_MS, Protocol::Resp2, &far);
    assert_eq!(reply, b"-ERR DUMP payload version or checksum are wrong\r\n");
    assert_eq!(run(&mut shard, &[b"GET", b"k"]), b"$3\r\nold\r\n");
}

#[test]
fn use_elsewhere_counts_here() {
    let mut shard = new_shard(Settings::default());
    assert_eq!(restore(&mut shard, "0 IDLETIME 100"), "+OK\r\n");
    assert_eq!(databases::run(&mut shard, NOW_MS, "OBJECT IDLETIME k"), b":100\r\n");
    let settings = Settings { maxmemory_policy: EvictionPolicy::AllKeysLfu, ..Settings::default() };
    let mut shard = new_shard(settings);
    assert_eq!(restore(&mut shard, "0 FREQ 123"), "+OK\r\n");
    assert_eq!(databases::run(&mut shard, NOW_MS, "OBJECT FREQ k"), b":123\r\n");
}

#[test]
fn a_limiter_goes_on_where_it_was() {
    for mode in ["", "SLIDING", "TOKENS"] {
        let mut shard = new_shard(Settings::default());
        let limit = |shard: &mut ruvio_shard::shard::Shard, key: &str, now_ms: i64| {
            let line = format!("LIMIT {key} 4 1000 {mode} COST 1 WITHRETRY").replace("  ", " ");
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            call(shard, now_ms, Protocol::Resp2, &words).0
        };
        limit(&mut shard, "a", NOW_MS);
        limit(&mut shard, "a", NOW_MS);
        let ttl = run(&mut shard, &[b"PTTL", b"a"]);
        let ttl = &ttl[1..ttl.len() - 2];
        let payload = dump(&mut shard, "a");
        let refused = run(&mut shard, &[b"RESTORE", b"b", b"0", &payload]);
        assert_eq!(refused, b"-ERR the state of a limiter needs a time to live\r\n", "{mode}");
        assert_eq!(run(&mut shard, &[b"RESTORE", b"b", ttl, &payload]), b"+OK\r\n", "{mode}");
        for after_ms in [0, 1, 300, 300, 301, 700, 1500, 2500] {
            let now_ms = NOW_MS + after_ms;
            assert_eq!(limit(&mut shard, "b", now_ms), limit(&mut shard, "a", now_ms), "{mode} after {after_ms}");
        }
    }
}

#[test]
fn a_missing_key_has_no_dump() {
    let mut shard = new_shard(Settings::default());
    assert_eq!(run(&mut shard, &[b"DUMP", b"k"]), b"$-1\r\n");
}
