//! String commands: edits against a plain byte string, and the edge cases of options and limits.

use crate::support;
use proptest::prelude::*;
use ruvio_shard::entry::Encoding;
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

const NOW_MS: i64 = 1_700_000_000_000;

#[derive(Clone, Debug)]
enum Edit {
    Set(Vec<u8>),
    Append(Vec<u8>),
    Setrange(usize, Vec<u8>),
    Getrange(i64, i64),
}

fn edit() -> impl Strategy<Value = Edit> {
    let bytes = || {
        prop_oneof![
            2 => prop::collection::vec(any::<u8>(), 0..12),
            1 => prop::collection::vec(any::<u8>(), 200..1200),
            1 => any::<i64>().prop_map(|value| value.to_string().into_bytes()),
        ]
    };
    prop_oneof![
        bytes().prop_map(Edit::Set),
        bytes().prop_map(Edit::Append),
        (0usize..1500, bytes()).prop_map(|(offset, value)| Edit::Setrange(offset, value)),
        (-40i64..40, -40i64..40).prop_map(|(start, end)| Edit::Getrange(start, end)),
        any::<(i64, i64)>().prop_map(|(start, end)| Edit::Getrange(start, end)),
    ]
}

/// The bytes between two offsets, found by looking at each.
fn range(bytes: &[u8], start: i64, end: i64) -> Vec<u8> {
    if start < 0 && end < 0 && start > end {
        return Vec::new();
    }
    let place = |index: i64| {
        let index = i128::from(index);
        if index < 0 { (bytes.len() as i128 + index).max(0) } else { index }
    };
    let (start, end) = (place(start), place(end));
    (0i128..).zip(bytes).filter(|(index, _)| (start..=end).contains(index)).map(|(_, byte)| *byte).collect()
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

proptest! {
    #[test]
    fn edits_do_to_a_string_what_they_do_to_bytes(edits in prop::collection::vec(edit(), 1..30)) {
        let mut shard = support::shard(Settings::default(), 1);
        let mut model = Vec::new();
        for edit in edits {
            let mut run = |words: &[&[u8]]| support::call(&mut shard, NOW_MS, Protocol::Resp2, words).0;
            match edit {
                Edit::Set(value) => {
                    prop_assert_eq!(run(&[b"SET", b"k", &value]), b"+OK\r\n");
                    model = value;
                }
                Edit::Append(value) => {
                    model.extend(&value);
                    prop_assert_eq!(run(&[b"APPEND", b"k", &value]), format!(":{}\r\n", model.len()).into_bytes());
                }
                Edit::Setrange(offset, value) => {
                    if !value.is_empty() {
                        model.resize(model.len().max(offset + value.len()), 0);
                        model[offset..offset + value.len()].copy_from_slice(&value);
                    }
                    let reply = run(&[b"SETRANGE", b"k", offset.to_string().as_bytes(), &value]);
                    prop_assert_eq!(reply, format!(":{}\r\n", model.len()).into_bytes());
                }
                Edit::Getrange(start, end) => {
                    let reply = run(&[b"GETRANGE", b"k", start.to_string().as_bytes(), end.to_string().as_bytes()]);
                    prop_assert_eq!(reply, bulk(&range(&model, start, end)));
                }
            }
            prop_assert_eq!(run(&[b"STRLEN", b"k"]), format!(":{}\r\n", model.len()).into_bytes());
            let whole = run(&[b"GETRANGE", b"k", b"0", b"-1"]);
            prop_assert_eq!(whole, bulk(&model));
        }
    }
}

/// Runs each line and compares its reply.
fn dialogue(shard: &mut Shard, lines: &[(&str, &str)]) {
    for (line, expected) in lines {
        let reply = String::from_utf8(support::run(shard, NOW_MS, line)).unwrap();
        assert_eq!(reply, expected.replace('\n', "\r\n"), "{line}");
    }
}

fn deadline(shard: &mut Shard, key: &str) -> Option<i64> {
    shard.keys.begin(0, NOW_MS, None);
    shard.keys.peek(key.as_bytes()).and_then(|entry| entry.deadline_ms())
}

fn encoding(shard: &mut Shard, key: &str) -> Option<Encoding> {
    shard.keys.begin(0, NOW_MS, None);
    shard.keys.peek(key.as_bytes()).map(|entry| entry.encoding())
}

#[test]
fn set_options_go_together_as_in_redis() {
    let mut shard = support::shard(Settings::default(), 1);
    dialogue(
        &mut shard,
        &[
            ("SET k v XX", "$-1\n"),
            ("SET k 1 NX GET", "$-1\n"),
            ("SET k 2 NX GET", "$1\n1\n"),
            ("SET k 2 nx", "$-1\n"),
            ("SET k 2 xx get ex 10", "$1\n1\n"),
            ("SET k 3 NX XX", "-ERR syntax error\n"),
            ("SET k 3 EX 10 PX 10", "-ERR syntax error\n"),
            ("SET k 3 EX 10 KEEPTTL", "-ERR syntax error\n"),
            ("SET k 3 EX", "-ERR syntax error\n"),
            ("SET k 3 EX 0", "-ERR invalid expire time in 'set' command\n"),
            ("SET k 3 EX 9223372036854775", "-ERR invalid expire time in 'set' command\n"),
            ("SET k 3 PX 9223372036854775807", "-ERR invalid expire time in 'set' command\n"),
            ("SET k 3 EXAT 9223372036854776", "-ERR invalid expire time in 'set' command\n"),
            ("SET k 3 EX ten", "-ERR value is not an integer or out of range\n"),
            ("SETEX k 0 v", "-ERR invalid expire time in 'setex' command\n"),
            ("PSETEX k -5 v", "-ERR invalid expire time in 'psetex' command\n"),
            ("GETEX k EX -1", "-ERR invalid expire time in 'getex' command\n"),
            ("GETEX k KEEPTTL", "-ERR syntax error\n"),
            ("GETEX k PERSIST EX 10", "-ERR syntax error\n"),
            ("GETEX missing EX -1", "$-1\n"),
            ("GET k", "$1\n2\n"),
        ],
    );
}

#[test]
fn writing_a_string_clears_the_deadline_unless_told_to_keep_it() {
    let mut shard = support::shard(Settings::default(), 1);
    let set = |shard: &mut Shard, line: &str| {
        support::run(shard, NOW_MS, "SET k 1 PX 5000");
        support::run(shard, NOW_MS, line);
        deadline(shard, "k").map(|deadline_ms| deadline_ms - NOW_MS)
    };
    for (line, expected) in [
        ("SET k 2", None),
        ("SET k 2 KEEPTTL", Some(5000)),
        ("SET k 2 EX 7", Some(7000)),
        ("SET k 2 PXAT 1700000009000", Some(9000)),
        ("GETSET k 2", None),
        ("MSET k 2", None),
        ("SETNX k 2", Some(5000)),
        ("APPEND k 2", Some(5000)),
        ("SETRANGE k 4 2", Some(5000)),
        ("INCR k EX 1", Some(5000)),
        ("INCRBYFLOAT k 1.5", Some(5000)),
        ("GETEX k", Some(5000)),
        ("GETEX k PERSIST", None),
        ("GETEX k EXAT 1700000003", Some(3000)),
        ("SETV k 2", Some(5000)),
    ] {
        assert_eq!(set(&mut shard, line), expected, "{line}");
    }
    support::run(&mut shard, NOW_MS, "GETEX k PXAT 1");
    assert_eq!(encoding(&mut shard, "k"), None, "a deadline in the past removes the key");
}

#[test]
fn mset_and_msetnx_do_all_or_nothing() {
    let mut shard = support::shard(Settings::default(), 1);
    dialogue(
        &mut shard,
        &[
            ("MSET {t}a 1 {t}b", "-ERR wrong number of arguments for 'mset' command\n"),
            ("MGET {t}a {t}b", "*2\n$-1\n$-1\n"),
            ("MSET {t}a 1 {t}a 2", "+OK\n"),
            ("MSETNX {t}b 1 {t}a 3", ":0\n"),
            ("MGET {t}a {t}b", "*2\n$1\n2\n$-1\n"),
            ("MSETNX {t}b 1 {t}b 4", ":1\n"),
            ("MGET {t}a {t}b {t}c", "*3\n$1\n2\n$1\n4\n$-1\n"),
        ],
    );
}

#[test]
fn a_string_never_grows_past_the_limit() {
    const TOO_LONG: &str = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\n";
    let mut shard = support::shard(Settings { proto_max_bulk_len: 10, ..Settings::default() }, 1);
    dialogue(
        &mut shard,
        &[
            ("SETRANGE k 10 x", TOO_LONG),
            ("SETRANGE k 9223372036854775807 x", TOO_LONG),
            ("SETRANGE k -1 x", "-ERR offset is out of range\n"),
            ("SETRANGE k 9223372036854775807 ", ":0\n"),
            ("GET k", "$-1\n"),
            ("SETRANGE k 9 x", ":10\n"),
            ("APPEND k x", TOO_LONG),
            ("STRLEN k", ":10\n"),
        ],
    );
}

#[test]
fn encodings_follow_how_a_value_came_to_be() {
    let mut shard = support::shard(Settings::default(), 1);
    for (line, expected) in [
        ("SET k 12", Encoding::Int8),
        ("INCRBY k 1000", Encoding::Int16),
        ("APPEND k 1", Encoding::EditedBytes),
        ("INCR k", Encoding::Int16),
        ("INCRBYFLOAT k 1", Encoding::Bytes),
        ("SET k 012", Encoding::Bytes),
        ("SETRANGE k 0 9", Encoding::EditedBytes),
        ("INCR k", Encoding::Int16),
        ("SETV k 5000000000", Encoding::Int64),
    ] {
        support::run(&mut shard, NOW_MS, line);
        assert_eq!(encoding(&mut shard, "k"), Some(expected), "{line}");
    }
}
