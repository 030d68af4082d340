//! Scans, `KEYS`, random keys and the keys of a slot.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::databases::run;
use proptest::prelude::*;
use ruvio_shard::entry::{Encoding, Entry, Header, Kind};
use ruvio_shard::error::CommandError;
use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::scan::{KindFilter, ScanFilter, cursor_slot, parse_cursor};
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;
use ruvio_shard::slot::{key_slot, shard_slots};

const NOW_MS: i64 = 1_700_000_000_000;

fn new_shard() -> Shard {
    Shard::new(2, Settings::default(), MemoryMeter::NONE, 7)
}

fn put(shard: &mut Shard, key: &str, deadline_ms: Option<i64>) {
    shard.keys.begin(0, NOW_MS, None);
    let header = Header { key: key.as_bytes(), deadline_ms, ..Header::default() };
    shard.keys.put(Entry::new(header, Encoding::Bytes, &[b"x"]));
}

fn remove(shard: &mut Shard, key: &str) {
    shard.keys.begin(0, NOW_MS, None);
    shard.keys.remove(key.as_bytes());
}

/// One call of a scan over the whole keyspace: the cursor after it, and the keys.
fn step(shard: &mut Shard, cursor: u64, count: usize, filter: &ScanFilter<'_>) -> (u64, Vec<String>) {
    let mut keys = Vec::new();
    let visit = |key: &[u8]| keys.push(String::from_utf8(key.to_vec()).expect("keys here are text"));
    let next = shard.keys.scan_database(0, NOW_MS, cursor, count, filter, 0..=16_383, visit);
    (next, keys)
}

fn scan(shard: &mut Shard, count: usize, filter: &ScanFilter<'_>) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor = 0;
    loop {
        let (next, keys) = step(shard, cursor, count, filter);
        all.extend(keys);
        if next == 0 {
            return all;
        }
        assert!(next > cursor && next < 1 << 52, "a cursor rises and fits a double");
        cursor = next;
    }
}

/// A key: of the one slot that most are in, or of a slot of its own.
fn name(index: usize) -> String {
    if index.is_multiple_of(4) { format!("key:{index}") } else { format!("{{tag}}:{index}") }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_key_that_stays_is_returned_whatever_else_comes_and_goes(
        stay in 1..1500usize,
        come_and_go in 0..4000usize,
        count in 1..200usize,
        seed in any::<u64>(),
    ) {
        let mut shard = new_shard();
        for index in 0..stay {
            put(&mut shard, &name(index), None);
        }
        let mut passing = seed;
        let mut found = BTreeSet::new();
        let mut cursor = 0;
        loop {
            // Tables grow over a split and shrink again between the calls.
            for _ in 0..come_and_go / 40 {
                passing = passing.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let other = name(10_000 + (passing >> 33) as usize % (come_and_go + 1));
                if passing >> 32 & 1 == 0 { put(&mut shard, &other, None) } else { remove(&mut shard, &other) }
            }
            let (next, keys) = step(&mut shard, cursor, count, &ScanFilter::default());
            found.extend(keys);
            if next == 0 {
                break;
            }
            cursor = next;
        }
        for index in 0..stay {
            prop_assert!(found.contains(&name(index)), "{} is missing", name(index));
        }
    }

    #[test]
    fn shards_hand_the_cursor_on(keys in 0..300usize, shards in 1..6usize, count in 1..40usize) {
        let mut all: Vec<Shard> = (0..shards).map(|_| new_shard()).collect();
        let owner = |slot: u16| (0..shards).find(|&shard| shard_slots(shard, shards).contains(&slot)).expect("an owner");
        for index in 0..keys {
            put(&mut all[owner(key_slot(name(index).as_bytes()))], &name(index), None);
        }
        let mut found = BTreeMap::new();
        let mut cursor = 0;
        loop {
            let shard = owner(cursor_slot(cursor).expect("a slot"));
            let slots = shard_slots(shard, shards);
            cursor = all[shard].keys.scan_database(0, NOW_MS, cursor, count, &ScanFilter::default(), slots, |key| {
                *found.entry(key.to_vec()).or_insert(0) += 1;
            });
            if cursor == 0 {
                break;
            }
        }
        let wanted: BTreeMap<Vec<u8>, i32> = (0..keys).map(|index| (name(index).into_bytes(), 1)).collect();
        prop_assert_eq!(found, wanted, "each key once");
    }
}

#[test]
fn a_call_looks_at_about_count_keys() {
    let mut shard = new_shard();
    for index in 0..5000 {
        put(&mut shard, &name(index), None);
    }
    let (next, keys) = step(&mut shard, 0, 100, &ScanFilter::default());
    assert!(next != 0 && (100..200).contains(&keys.len()), "{} keys", keys.len());
    let (next, keys) = step(&mut shard, next, 0, &ScanFilter::default());
    assert!(next != 0 && !keys.is_empty() && keys.len() < 20, "{} keys", keys.len());
}

#[test]
fn one_call_passes_over_all_empty_slots() {
    let mut shard = new_shard();
    assert_eq!(step(&mut shard, 0, 10, &ScanFilter::default()), (0, vec![]));
    put(&mut shard, "a", None);
    assert_eq!(step(&mut shard, 0, 10, &ScanFilter::default()), (0, vec!["a".to_string()]));
    assert_eq!(step(&mut shard, u64::MAX, 10, &ScanFilter::default()), (0, vec![]));
}

#[test]
fn filters_choose_by_name_and_type() {
    let mut shard = new_shard();
    for index in 0..50 {
        put(&mut shard, &name(index), None);
    }
    shard.keys.begin(0, NOW_MS, None);
    let header = Header { key: b"{tag}:numbers", ..Header::default() };
    shard.keys.put(Entry::new(header, Encoding::IntegerSet, &[b"12345678"]));
    let pattern = Some(&b"key:*"[..]);
    assert_eq!(scan(&mut shard, 3, &ScanFilter { pattern, ..ScanFilter::default() }).len(), 13);
    let sets = ScanFilter { pattern: None, kind: KindFilter::Only(Kind::Set) };
    assert_eq!(scan(&mut shard, 3, &sets), ["{tag}:numbers"]);
    let nothing = ScanFilter { pattern: None, kind: KindFilter::Nothing };
    assert!(scan(&mut shard, 3, &nothing).is_empty());
}

#[test]
fn expired_keys_are_not_returned_and_go() {
    let mut shard = new_shard();
    for index in 0..300 {
        put(&mut shard, &name(index), (index % 3 != 0).then_some(NOW_MS + 5));
    }
    let later = NOW_MS + 5;
    let mut keys = 0;
    shard.keys.keys_matching(0, later, b"*", |_| keys += 1);
    assert_eq!((keys, shard.keys.len(0)), (100, 300));
    for _ in 0..10 {
        let key = shard.keys.random_key(0, later).expect("live keys are there");
        assert!(shard.keys.peek(&key).is_some_and(|entry| entry.deadline_ms().is_none()));
    }
    let mut found = 0;
    let next = shard.keys.scan_database(0, later, 0, 1000, &ScanFilter::default(), 0..=16_383, |_| found += 1);
    assert_eq!((next, found, shard.keys.len(0)), (0, 100, 100));
}

#[test]
fn keys_matching_goes_by_the_pattern() {
    let mut shard = new_shard();
    for index in 0..40 {
        put(&mut shard, &name(index), None);
    }
    let mut found = BTreeSet::new();
    shard.keys.keys_matching(0, NOW_MS, b"key:?", |key| {
        found.insert(key.to_vec());
    });
    assert_eq!(found, [b"key:0".to_vec(), b"key:4".to_vec(), b"key:8".to_vec()].into_iter().collect());
}

#[test]
fn every_key_has_about_the_same_chance() {
    // 60 keys in one slot and 20 in slots of their own: a choice by slot would give the latter far more.
    let mut shard = new_shard();
    assert_eq!(shard.keys.random_key(0, NOW_MS), None);
    for index in 0..80 {
        put(&mut shard, &name(index), None);
    }
    let mut times: BTreeMap<Box<[u8]>, u32> = BTreeMap::new();
    for _ in 0..80_000 {
        *times.entry(shard.keys.random_key(0, NOW_MS).expect("there are keys")).or_default() += 1;
    }
    assert_eq!(times.len(), 80);
    // 1000 each with a deviation of about 32.
    assert!(times.values().all(|times| (800..1200).contains(times)), "{times:?}");
}

#[test]
fn keys_of_a_large_table_have_about_the_same_chance() {
    let mut shard = new_shard();
    for index in 0..2000 {
        put(&mut shard, &format!("{{tag}}{index}"), None);
    }
    let mut times: BTreeMap<Box<[u8]>, u32> = BTreeMap::new();
    for _ in 0..100_000 {
        *times.entry(shard.keys.random_key(0, NOW_MS).expect("there are keys")).or_default() += 1;
    }
    // 50 each with a deviation of about 7.
    assert!(times.len() == 2000 && times.values().all(|times| (10..110).contains(times)));
}

#[test]
fn a_slot_tells_its_keys() {
    let mut shard = new_shard();
    for index in 0..40 {
        put(&mut shard, &name(index), None);
    }
    let slot = key_slot(b"{tag}");
    assert_eq!((shard.keys.count_in_slot(0, slot), shard.keys.count_in_slot(1, slot)), (30, 0));
    let mut keys = BTreeSet::new();
    shard.keys.keys_in_slot(0, slot, 12, |key| assert!(key.starts_with(b"{tag}") && keys.insert(key.to_vec())));
    assert_eq!(keys.len(), 12);
    run(&mut shard, NOW_MS, "DEL {tag}:1 {tag}:2");
    assert_eq!(shard.keys.count_in_slot(0, slot), 28);
}

#[test]
fn cursors_are_read_as_redis_reads_them() {
    for (word, cursor) in [(&b"0"[..], 0), (b"", 0), (b"+17", 17), (b"-1", u64::MAX), (b"007", 7)] {
        assert_eq!(parse_cursor(word), Ok(cursor), "{word:?}");
    }
    assert_eq!(parse_cursor(b"18446744073709551615"), Ok(u64::MAX));
    for word in [&b"18446744073709551616"[..], b"-", b"+", b"x", b"1x", b" 1", b"--1"] {
        assert_eq!(parse_cursor(word), Err(CommandError::INVALID_CURSOR), "{word:?}");
    }
    assert_eq!(cursor_slot(1 << 52), None);
    assert_eq!(cursor_slot((1 << 52) - 1), Some(16_383));
}
