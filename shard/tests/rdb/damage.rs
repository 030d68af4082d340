//! Bytes of any kind are refused or make a sound value, and never take memory out of proportion.

use proptest::prelude::*;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

use super::forms::{blob, contents, entry, listpack, ziplist};
use super::{content, dump, new_shard, restore_content, run, sealed, small_limits};
use crate::support::heap::peak_bytes;

/// Heap that any call may take, and heap for each byte of a payload: LZF grows 88 times, and a value may lie in memory
/// several times while it is made.
const PEAK_BASE: usize = 200_000;
const PEAK_A_BYTE: usize = 88 * 8;

/// Restores bytes that may be damaged: they are refused with Redis's words, or make a value that can be used.
fn try_content(shard: &mut Shard, bytes: &[u8]) -> bool {
    let (reply, peak) = peak_bytes(|| restore_content(shard, "k", bytes));
    assert!(peak <= PEAK_BASE + PEAK_A_BYTE * bytes.len(), "{peak} bytes of heap for {bytes:?}");
    if reply != b"+OK\r\n" {
        let text = String::from_utf8_lossy(&reply);
        let limit = "-ERR the state of a limiter needs a time to live";
        assert!(text.starts_with("-ERR Bad data format") || text.starts_with(limit), "{text} for {bytes:?}");
        return false;
    }
    let wanted = content(shard, "k");
    // A hash may have nothing but fields that have expired.
    if wanted.len() == 1 && matches!(bytes.first(), Some(24 | 25)) {
        return true;
    }
    assert!(wanted.len() > 1, "an empty value from {bytes:?}");
    let payload = dump(shard, "k");
    assert_eq!(run(shard, &[b"RESTORE", b"again", b"0", &payload, b"REPLACE"]), b"+OK\r\n", "{bytes:?}");
    assert_eq!(content(shard, "again"), wanted, "{bytes:?}");
    true
}

/// Every content of [`contents`], and what this server dumps of larger values.
fn samples() -> Vec<Vec<u8>> {
    let mut samples: Vec<Vec<u8>> = contents().into_iter().map(|(bytes, _)| bytes).collect();
    for settings in [Settings::default(), small_limits()] {
        let mut shard = new_shard(settings);
        for line in [
            "SET k aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabcabcabcabcabc",
            "RPUSH k a b c 1000 -70000 9999999999 d e",
            "HSET k f 1 g two h 3.5 i -1",
            "SADD k 1 2 3 70000 5000000000",
            "SADD k a b c d 5",
            "ZADD k 1 a 1.5 b -inf c inf d",
            "LIMIT k 5 1000",
            "LIMIT k 5 1000 SLIDING",
            "LIMIT k 5 1000 TOKENS",
        ] {
            run(&mut shard, &[b"DEL", b"k"]);
            run(&mut shard, &line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
            let payload = dump(&mut shard, "k");
            samples.push(payload[..payload.len() - 10].to_vec());
        }
    }
    samples
}

#[test]
fn a_cut_value_is_refused() {
    let mut shard = new_shard(Settings::default());
    for sample in samples() {
        for len in 0..sample.len() {
            assert!(!try_content(&mut shard, &sample[..len]), "{len} bytes of {sample:?}");
        }
        let longer = [&sample[..], b"\0"].concat();
        assert!(!try_content(&mut shard, &longer), "a byte behind {sample:?}");
    }
}

#[test]
fn a_value_with_any_byte_changed_is_refused_or_sound() {
    for settings in [Settings::default(), small_limits()] {
        let mut shard = new_shard(settings);
        for sample in samples() {
            for place in 0..sample.len() {
                let mut damaged = sample.clone();
                let byte = sample[place];
                let bits = (0..8).map(|bit| byte ^ 1 << bit);
                for value in bits.chain([0, 1, 0x7f, 0x80, 0x81, 0xc3, 0xfe, 0xff, byte.wrapping_add(1)]) {
                    damaged[place] = value;
                    try_content(&mut shard, &damaged);
                }
            }
        }
    }
}

#[test]
fn a_damaged_payload_never_passes_its_checksum() {
    let mut shard = new_shard(Settings::default());
    let payload = sealed(b"\x00\x05hello", 10);
    let wrong = b"-ERR DUMP payload version or checksum are wrong\r\n";
    for place in 0..payload.len() {
        for bit in 0..8 {
            let mut damaged = payload.clone();
            damaged[place] ^= 1 << bit;
            assert_eq!(run(&mut shard, &[b"RESTORE", b"k", b"0", &damaged]), wrong);
        }
    }
    for len in 0..payload.len() {
        assert_eq!(run(&mut shard, &[b"RESTORE", b"k", b"0", &payload[..len]]), wrong);
    }
    assert_eq!(run(&mut shard, &[b"RESTORE", b"k", b"0", &sealed(b"\x00\x05hello", 13)]), wrong);
    assert_eq!(run(&mut shard, &[b"RESTORE", b"k", b"0", &sealed(b"\x00\x05hello", 12)]), b"+OK\r\n");
}

#[test]
fn what_redis_would_not_write_is_refused() {
    let mut shard = new_shard(Settings::default());
    let typed = |value_type: u8, rest: &[u8]| [&[value_type], rest].concat();
    let huge = b"\x81\x7f\xff\xff\xff\xff\xff\xff\xff";
    let mut listpack_count = listpack(&["a"]);
    listpack_count[4] = 2;
    let mut ziplist_tail = ziplist(&[entry(b"a"), entry(b"b")]);
    ziplist_tail[4] += 1;
    for bytes in [
        vec![],
        vec![8],
        vec![199],
        // Collections without elements.
        typed(1, b"\0"),
        typed(2, b"\0"),
        typed(3, b"\0"),
        typed(4, b"\0"),
        typed(5, b"\0"),
        typed(9, &blob(b"\0\xff")),
        typed(10, &blob(&ziplist(&[]))),
        typed(11, &blob(b"\x02\0\0\0\0\0\0\0")),
        typed(14, b"\0"),
        typed(16, &blob(&listpack(&[]))),
        typed(18, b"\0"),
        typed(18, b"\x01\x01\0"),
        typed(20, &blob(&listpack(&[]))),
        typed(24, b"\0\0\0\0\0\0\0\0\0"),
        // Repeated members, missing values.
        typed(2, b"\x02\x01a\x01a"),
        typed(4, b"\x02\x01f\x01v\x01f\x01w"),
        typed(5, b"\x02\x01a\0\0\0\0\0\0\0\0\x01a\0\0\0\0\0\0\0\0"),
        typed(11, &blob(b"\x02\0\0\0\x02\0\0\0\x05\0\x05\0")),
        typed(11, &blob(b"\x02\0\0\0\x02\0\0\0\x05\0\x04\0")),
        typed(11, &blob(b"\x03\0\0\0\x01\0\0\0\x05\0\x04")),
        typed(13, &blob(&ziplist(&[entry(b"f")]))),
        typed(16, &blob(&listpack(&["f", "v", "f", "w"]))),
        typed(16, &blob(&listpack(&["f", "v", "g"]))),
        typed(17, &blob(&listpack(&["m", "1", "m", "2"]))),
        typed(20, &blob(&listpack(&["m", "m"]))),
        // Scores that are no numbers.
        typed(3, b"\x01\x01a\xfd"),
        typed(3, b"\x01\x01a\x03nan"),
        typed(5, b"\x01\x01a\0\0\0\0\0\0\xf8\x7f"),
        typed(17, &blob(&listpack(&["m", "x"]))),
        // Wrong counts and offsets.
        typed(16, &blob(&listpack_count)),
        typed(10, &blob(&ziplist_tail)),
        typed(9, &blob(b"\x02\x01f\x01\0v\xff")),
        typed(18, &[&[1, 3], &blob(&listpack(&["a"]))[..]].concat()),
        // Lengths and counts far past the end.
        typed(0, huge),
        typed(1, huge),
        typed(2, huge),
        typed(5, huge),
        typed(4, huge),
        typed(14, huge),
        typed(18, huge),
        typed(0, &[b"\xc3\x02".as_slice(), huge, b"\0a"].concat()),
        typed(0, &[b"\xc3".as_slice(), huge, b"\x02\0a"].concat()),
        typed(0, b"\xc3\x02\x80\x00\x10\x00\x00\0a"),
        // Limiters.
        typed(200, b"\x00"),
        typed(200, b"\x01\x01"),
        typed(200, b"\x09\x01\0\0\0\0\0\0\0\x80"),
        typed(200, b"\x09\x04\0\0\0\0\0\0\0\0"),
        typed(200, &[&[20, 2][..], &[0; 19]].concat()),
    ] {
        assert_eq!(restore_content(&mut shard, "k", &bytes), b"-ERR Bad data format\r\n", "{bytes:?}");
    }
}

#[test]
fn what_has_no_place_here_is_named() {
    let mut shard = new_shard(Settings::default());
    for (bytes, what) in [(b"\x15\x00".as_slice(), "streams"), (b"\x07\x81\x00", "values of modules")] {
        let wanted = format!("-ERR Bad data format: {what} are not supported\r\n");
        assert_eq!(restore_content(&mut shard, "k", bytes), wanted.as_bytes());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_make_a_sound_value(
        value_type in prop_oneof![0_u8..26, Just(200)],
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
    ) {
        let mut shard = new_shard(small_limits());
        try_content(&mut shard, &[&[value_type], &bytes[..]].concat());
    }
}
