//! HyperLogLogs where they are keys.

use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

use crate::support;

const NOW_MS: i64 = 1_700_000_000_000;

fn run(shard: &mut Shard, line: &str) -> String {
    String::from_utf8_lossy(&support::run(shard, NOW_MS, line)).into_owned()
}

/// The number of changes of a command.
fn changes(shard: &mut Shard, line: &str) -> u64 {
    let words: Vec<&str> = line.split(' ').collect();
    support::call(shard, NOW_MS, Protocol::Resp2, &words).1
}

#[test]
fn adding_one_by_one_gives_the_bytes_of_adding_at_once() {
    let mut shard = support::shard(Settings::default(), 1);
    let elements: Vec<String> = (0..3000).map(|number| format!("e{number}")).collect();
    for some in elements.chunks(7) {
        run(&mut shard, &format!("PFADD together {}", some.join(" ")));
        for element in some {
            run(&mut shard, &format!("PFADD single {element}"));
        }
        assert_eq!(run(&mut shard, "GET together"), run(&mut shard, "GET single"));
    }
    assert_eq!(run(&mut shard, "PFDEBUG ENCODING single"), "+dense\r\n");
}

#[test]
fn the_limit_decides_when_a_sparse_one_becomes_dense() {
    for limit in [0, 16, 40, 3000] {
        let mut shard = support::shard(Settings { hll_sparse_max_bytes: limit, ..Settings::default() }, 1);
        let mut longest = 0;
        for number in 0..2000 {
            run(&mut shard, &format!("PFADD k e{number}"));
            if run(&mut shard, "PFDEBUG ENCODING k") == "+dense\r\n" {
                break;
            }
            let len: usize = run(&mut shard, "STRLEN k")[1..].trim().parse().expect("a length");
            longest = longest.max(len);
        }
        assert_eq!(run(&mut shard, "PFDEBUG ENCODING k"), "+dense\r\n");
        assert!(longest <= limit && longest + 20 > limit || longest == 0, "limit {limit}, longest {longest}");
    }
}

#[test]
fn only_what_changes_a_sketch_is_a_change() {
    let mut shard = support::shard(Settings::default(), 1);
    assert_eq!(changes(&mut shard, "PFADD k"), 1);
    assert_eq!(changes(&mut shard, "PFADD k"), 0);
    assert_eq!(changes(&mut shard, "PFADD k a b"), 1);
    assert_eq!(changes(&mut shard, "PFADD k a b"), 0);
    assert_eq!(changes(&mut shard, "PFCOUNT k"), 1, "the estimate is noted");
    assert_eq!(changes(&mut shard, "PFCOUNT k"), 0);
    assert_eq!(changes(&mut shard, "PFCOUNT k k"), 0);
    assert_eq!(changes(&mut shard, "PFDEBUG DECODE k"), 0);
    assert_eq!(changes(&mut shard, "PFDEBUG TODENSE k"), 1);
    assert_eq!(changes(&mut shard, "PFDEBUG TODENSE k"), 0);
    assert_eq!(changes(&mut shard, "PFMERGE other k"), 1);
    assert_eq!(run(&mut shard, "PFCOUNT other"), ":2\r\n");
}

#[test]
fn a_corrupt_sketch_is_told_and_left_as_it_is() {
    let mut shard = support::shard(Settings::default(), 1);
    let error = "-INVALIDOBJ Corrupted HLL object detected\r\n";
    // Ten registers, and their estimate out of date.
    let sketch = b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x09";
    support::call(&mut shard, NOW_MS, Protocol::Resp2, &[&b"SET"[..], b"k", sketch]);
    let before = run(&mut shard, "GET k");
    let many: Vec<String> = (0..2000).map(|number| number.to_string()).collect();
    for line in [
        "PFCOUNT k".to_owned(),
        "PFCOUNT k k".to_owned(),
        "PFMERGE k".to_owned(),
        "PFMERGE other k".to_owned(),
        "PFDEBUG GETREG k".to_owned(),
        "PFDEBUG TODENSE k".to_owned(),
        "PFADD k a".to_owned(),
        // Some of these have their registers among the ten.
        format!("PFADD k {}", many.join(" ")),
    ] {
        assert_eq!(run(&mut shard, &line), error, "{line}");
        assert_eq!(run(&mut shard, "GET k"), before, "{line}");
    }
    assert_eq!(run(&mut shard, "PFDEBUG DECODE k"), "$4\r\nz:10\r\n");
}

#[test]
fn a_versioned_value_is_counted_but_not_changed() {
    let mut shard = support::shard(Settings::default(), 1);
    run(&mut shard, "PFADD k a b c");
    let reply = support::run(&mut shard, NOW_MS, "GET k");
    let len = reply.len();
    let sketch = &reply[reply.iter().position(|byte| *byte == b'\n').expect("a header") + 1..len - 2];
    support::call(&mut shard, NOW_MS, Protocol::Resp2, &[&b"SETV"[..], b"v", sketch]);
    assert_eq!(changes(&mut shard, "PFCOUNT v"), 0);
    assert_eq!(run(&mut shard, "PFCOUNT v"), ":3\r\n");
    let refused = "-ERR the value has a version, change it with SETV\r\n";
    for line in ["PFADD v d", "PFMERGE v k", "PFDEBUG TODENSE v"] {
        assert_eq!(run(&mut shard, line), refused, "{line}");
    }
}

#[test]
fn the_self_test_passes() {
    let mut shard = support::shard(Settings::default(), 1);
    assert_eq!(run(&mut shard, "PFSELFTEST"), "+OK\r\n");
}
