//! `LIMIT` as a client sees it.

use crate::support::{call, run, shard};
use ruvio_shard::entry::Kind;
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

fn text(shard: &mut Shard, now_ms: i64, line: &str) -> String {
    String::from_utf8(run(shard, now_ms, line)).expect("text replies")
}

/// The changes that a call made.
fn changes(shard: &mut Shard, now_ms: i64, line: &str) -> u64 {
    let words: Vec<&str> = line.split(' ').collect();
    call(shard, now_ms, Protocol::Resp2, &words).1
}

fn deadline_ms(shard: &mut Shard, now_ms: i64, key: &str) -> Option<i64> {
    shard.keys.begin(0, now_ms, None);
    shard.keys.peek(key.as_bytes()).map(|entry| entry.deadline_ms().expect("a limit has a deadline"))
}

#[test]
fn a_fixed_window_counts_down_and_ends() {
    let shard = &mut shard(Settings::default(), 1);
    for expected in [":2\r\n", ":1\r\n", ":0\r\n", "$-1\r\n"] {
        assert_eq!(text(shard, 5_000, "LIMIT api 3 60000"), expected);
    }
    assert_eq!(deadline_ms(shard, 5_000, "api"), Some(65_000));
    assert_eq!(text(shard, 64_999, "LIMIT api 3 60000 WITHRETRY"), "*2\r\n$-1\r\n:1\r\n");
    assert_eq!(text(shard, 65_000, "LIMIT api 3 60000 WITHRETRY"), "*2\r\n:2\r\n:0\r\n");
    assert_eq!(text(shard, 65_001, "LIMIT api 3 1"), ":1\r\n");
    assert_eq!(deadline_ms(shard, 65_001, "api"), Some(125_000));
}

#[test]
fn a_bucket_refills_continuously() {
    let shard = &mut shard(Settings::default(), 1);
    assert_eq!(text(shard, 0, "LIMIT b 10 1000 TOKENS COST 2 WITHRETRY"), "*2\r\n:8\r\n:0\r\n");
    assert_eq!(deadline_ms(shard, 0, "b"), Some(200));
    assert_eq!(text(shard, 50, "LIMIT b 10 1000 TOKENS COST 8"), ":0\r\n");
    assert_eq!(text(shard, 50, "LIMIT b 10 1000 TOKENS COST 1 WITHRETRY"), "*2\r\n$-1\r\n:50\r\n");
    assert_eq!(text(shard, 50, "limit b 10 1000 withretry cost 10 tokens"), "*2\r\n$-1\r\n:950\r\n");
    assert_eq!(text(shard, 100, "LIMIT b 10 1000 TOKENS"), ":0\r\n");
    assert_eq!(deadline_ms(shard, 100, "b"), Some(1_100));
    assert_eq!(deadline_ms(shard, 1_100, "b"), None);
}

#[test]
fn a_sliding_window_weighs_the_one_before() {
    let shard = &mut shard(Settings::default(), 1);
    assert_eq!(text(shard, 0, "LIMIT s 10 1000 SLIDING COST 10"), ":0\r\n");
    assert_eq!(deadline_ms(shard, 0, "s"), Some(2_000));
    assert_eq!(text(shard, 999, "LIMIT s 10 1000 SLIDING WITHRETRY"), "*2\r\n$-1\r\n:101\r\n");
    assert_eq!(text(shard, 1_100, "LIMIT s 10 1000 SLIDING WITHRETRY"), "*2\r\n:0\r\n:0\r\n");
    assert_eq!(deadline_ms(shard, 1_100, "s"), Some(3_000));
    assert_eq!(text(shard, 1_500, "LIMIT s 10 1000 SLIDING COST 0"), ":4\r\n");
    assert_eq!(deadline_ms(shard, 3_000, "s"), None);
}

#[test]
fn only_counted_calls_leave_a_trace() {
    let shard = &mut shard(Settings::default(), 1);
    for mode in ["", " SLIDING", " TOKENS"] {
        let key = format!("k{}", mode.trim());
        assert_eq!(changes(shard, 100, &format!("LIMIT {key} 5 1000{mode} COST 0")), 0);
        assert_eq!(deadline_ms(shard, 100, &key), None);
        assert_eq!(text(shard, 100, &format!("LIMIT {key} 5 1000{mode} COST 0 WITHRETRY")), "*2\r\n:5\r\n:0\r\n");
        assert_eq!(changes(shard, 100, &format!("LIMIT {key} 5 1000{mode} COST 5")), 1);
        let deadline = deadline_ms(shard, 100, &key);
        assert_eq!(changes(shard, 150, &format!("LIMIT {key} 5 1000{mode} COST 2")), 0);
        assert_eq!(changes(shard, 150, &format!("LIMIT {key} 5 1000{mode} COST 0")), 0);
        assert_eq!(deadline_ms(shard, 150, &key), deadline);
        assert_eq!(shard.keys.peek(key.as_bytes()).map(|entry| entry.kind()), Some(Kind::Limit));
    }
}

#[test]
fn a_refusal_is_the_null_of_each_protocol() {
    let shard = &mut shard(Settings::default(), 1);
    run(shard, 0, "LIMIT k 1 1000");
    let refused = |shard: &mut Shard, words: &[&str]| call(shard, 0, Protocol::Resp3, words).0;
    assert_eq!(refused(shard, &["limit", "k", "1", "1000"]), b"_\r\n");
    assert_eq!(refused(shard, &["limit", "k", "1", "1000", "withretry"]), b"*2\r\n_\r\n:1000\r\n");
    assert_eq!(text(shard, 0, "LIMIT k 1 1000"), "$-1\r\n");
}

#[test]
fn wrong_calls_are_errors_and_change_nothing() {
    let shard = &mut shard(Settings::default(), 1);
    run(shard, 0, "SET string x");
    run(shard, 0, "LIMIT fixed 5 1000");
    run(shard, 0, "LIMIT sliding 5 1000 SLIDING");
    run(shard, 0, "LIMIT tokens 5 1000 TOKENS");
    let integer = "-ERR value is not an integer or out of range\r\n";
    let syntax = "-ERR syntax error\r\n";
    let expire = "-ERR invalid expire time in 'limit' command\r\n";
    for (line, error) in [
        ("LIMIT k 5", "-ERR wrong number of arguments for 'limit' command\r\n"),
        ("LIMIT k x 1000", integer),
        ("LIMIT k 0 1000", integer),
        ("LIMIT k -1 1000", integer),
        ("LIMIT k 5 0", integer),
        ("LIMIT k 5 1e3", integer),
        ("LIMIT k 9223372036854775808 1000", integer),
        ("LIMIT k 5 1000 COST -1", integer),
        ("LIMIT k 5 1000 COST x", integer),
        ("LIMIT k 5 1000 COST", syntax),
        ("LIMIT k 5 1000 COST 1 COST 1", syntax),
        ("LIMIT k 5 1000 SLIDING TOKENS", syntax),
        ("LIMIT k 5 1000 FIXED", syntax),
        ("LIMIT k 5 9223372036854775807", expire),
        ("LIMIT k 5 9223372036854775807 SLIDING", expire),
        ("LIMIT k 5 1099511627776 TOKENS", expire),
        ("LIMIT k 5 1000 COST 6", "-ERR the cost is greater than the limit's max, so the call could never pass\r\n"),
        ("LIMIT string 5 1000", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"),
        ("GET fixed", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"),
        ("LIMIT fixed 5 1000 SLIDING", "-ERR the key holds a fixed-window limit, and a limit keeps its mode\r\n"),
        ("LIMIT sliding 5 1000 COST 0", "-ERR the key holds a SLIDING limit, and a limit keeps its mode\r\n"),
        ("LIMIT tokens 5 1000", "-ERR the key holds a TOKENS limit, and a limit keeps its mode\r\n"),
    ] {
        assert_eq!(text(shard, 10, line), error, "{line}");
        assert_eq!(changes(shard, 10, line), 0, "{line}");
    }
    assert_eq!(deadline_ms(shard, 10, "k"), None);
}

#[test]
fn an_unlimited_limit_is_possible() {
    let shard = &mut shard(Settings::default(), 1);
    for mode in ["", " SLIDING", " TOKENS"] {
        let line = format!("LIMIT u{} 9223372036854775807 60000{mode} COST 7", mode.trim());
        assert_eq!(text(shard, 1_700_000_000_000, &line), ":9223372036854775800\r\n");
    }
}

#[test]
fn an_entry_of_any_mode_takes_at_most_40_bytes() {
    let shard = &mut shard(Settings::default(), 1);
    for mode in ["", " SLIDING", " TOKENS"] {
        run(shard, 1_700_000_000_000, &format!("LIMIT r:499999 100 600000000{mode}"));
        let entry = shard.keys.peek(b"r:499999").expect("made just now");
        assert!(entry.block_bytes() <= 40, "{mode}: {}", entry.block_bytes());
        shard.keys.remove(b"r:499999");
    }
}
