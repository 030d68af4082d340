//! What was dumped is restored, whatever form it has on either side.

use proptest::prelude::*;
use ruvio_shard::settings::Settings;

use super::{content, dump, new_shard, run, sealed, small_limits};

/// A string as clients store them: text, numbers, bytes of any kind, repetitions.
fn string() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (-200_i64..200).prop_map(|number| number.to_string().into_bytes()),
        any::<i64>().prop_map(|number| (number >> (number & 63)).to_string().into_bytes()),
        "[a-z]{0,12}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..100),
        (any::<u8>(), 0_usize..5_000).prop_map(|(byte, times)| vec![byte; times]),
    ]
}

fn words(name: &'static str, parts: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    [name.as_bytes().to_vec(), b"key".to_vec()].into_iter().chain(parts).collect()
}

/// The words that make a value at `key`.
fn value() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let strings = |most: usize| proptest::collection::vec(string(), 1..most);
    let integers = proptest::collection::vec(any::<i64>().prop_map(|n| n >> (n & 63)), 1..30);
    let score = prop_oneof![
        (-50_i32..50).prop_map(|score| (f64::from(score) / 4.0).to_string()),
        any::<f64>()
            .prop_filter("no NaN", |score| !score.is_nan())
            // A packed sorted set, here and in Redis, has no negative zero.
            .prop_map(|score| format!("{:e}", score + 0.0)),
        Just("inf".to_owned()),
        Just("-inf".to_owned()),
    ];
    prop_oneof![
        string().prop_map(|value| words("SET", vec![value])),
        strings(40).prop_map(|elements| words("RPUSH", elements)),
        strings(40).prop_map(|members| words("SADD", members)),
        integers.prop_map(|members| words("SADD", members.iter().map(|n| n.to_string().into_bytes()).collect())),
        proptest::collection::vec((string(), string()), 1..30)
            .prop_map(|pairs| words("HSET", pairs.into_iter().flat_map(|(field, value)| [field, value]).collect())),
        proptest::collection::vec((score, string()), 1..30).prop_map(|pairs| words(
            "ZADD",
            pairs.into_iter().flat_map(|(score, member)| [score.into_bytes(), member]).collect()
        )),
    ]
}

proptest! {
    #[test]
    fn a_value_survives_in_every_form(value in value()) {
        let shards = [Settings::default(), small_limits()].map(|settings| {
            let mut shard = new_shard(settings);
            let words: Vec<&[u8]> = value.iter().map(Vec::as_slice).collect();
            prop_assert_ne!(run(&mut shard, &words)[0], b'-');
            Ok(shard)
        });
        for shard in shards {
            let mut from = shard?;
            let payload = dump(&mut from, "key");
            let wanted = content(&mut from, "key");
            for settings in [Settings::default(), small_limits()] {
                let mut to = new_shard(settings);
                prop_assert_eq!(run(&mut to, &[b"RESTORE", b"copy", b"0", &payload]), b"+OK\r\n");
                prop_assert_eq!(&content(&mut to, "copy"), &wanted);
                // What came in the other form goes on as well as what was made in it.
                let again = dump(&mut to, "copy");
                prop_assert_eq!(run(&mut from, &[b"RESTORE", b"again", b"0", &again, b"REPLACE"]), b"+OK\r\n");
                prop_assert_eq!(&content(&mut from, "again"), &wanted);
            }
        }
    }
}

#[test]
fn simple_values_are_dumped_byte_for_byte_as_redis_dumps_them() {
    let mut shard = new_shard(Settings::default());
    for (command, content) in [
        ("SET k hello", b"\x00\x05hello".as_slice()),
        ("SET k 12", b"\x00\xc0\x0c"),
        ("SET k -300", b"\x00\xc1\xd4\xfe"),
        ("SET k 100000", b"\x00\xc2\xa0\x86\x01\x00"),
        ("SET k 12345678901", b"\x00\x0b12345678901"),
        ("RPUSH l a 1", b"\x12\x01\x02\x0c\x0c\x00\x00\x00\x02\x00\x81a\x02\x01\x01\xff"),
        ("HSET h f v", b"\x10\x0d\x0d\x00\x00\x00\x02\x00\x81f\x02\x81v\x02\xff"),
        ("ZADD z 1 a", b"\x11\x0c\x0c\x00\x00\x00\x02\x00\x81a\x02\x01\x01\xff"),
        ("SADD i 1 2", b"\x0b\x0c\x02\x00\x00\x00\x02\x00\x00\x00\x01\x00\x02\x00"),
        ("SADD s a", b"\x02\x01\x01a"),
    ] {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        run(&mut shard, &words);
        let key = std::str::from_utf8(words[1]).expect("text");
        assert_eq!(dump(&mut shard, key), sealed(content, 10), "{command}");
    }
}

#[test]
fn the_checksum_is_the_one_of_redis() {
    let mut shard = new_shard(Settings::default());
    run(&mut shard, &[b"SET", b"k", b"hello"]);
    assert_eq!(dump(&mut shard, "k"), b"\x00\x05hello\x0a\x00cr\xdfve4 \x0a");
}

#[test]
fn long_strings_are_compressed() {
    let mut shard = new_shard(Settings::default());
    run(&mut shard, &[b"SET", b"k", &[b'a'; 10_000]]);
    assert!(dump(&mut shard, "k").len() < 200);
}

#[test]
fn a_version_stays_behind() {
    let mut shard = new_shard(Settings::default());
    run(&mut shard, &[b"SETV", b"k", b"value"]);
    let payload = dump(&mut shard, "k");
    assert_eq!(payload, sealed(b"\x00\x05value", 10));
    assert_eq!(run(&mut shard, &[b"RESTORE", b"copy", b"0", &payload]), b"+OK\r\n");
    assert_eq!(run(&mut shard, &[b"GETV", b"copy"]), b"*2\r\n$5\r\nvalue\r\n:0\r\n");
}
