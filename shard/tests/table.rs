//! Tables against a map: finding, changing, removing and scanning, through splits and collapse.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use ruvio_shard::entry::{Encoding, Entry, Header};
use ruvio_shard::table::Table;
use ruvio_shard::{hash_key, slab};

/// A value and a deadline for each key.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)>;

/// A scan in progress, and the keys that were there since it began.
struct Scan {
    position: u64,
    steady: BTreeSet<Vec<u8>>,
    visited: BTreeSet<Vec<u8>>,
}

#[derive(Default)]
struct Pair {
    table: Table<Entry>,
    model: Model,
    scan: Option<Scan>,
}

fn key(number: u32) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

fn entry(key: &[u8], value: &[u8], deadline_ms: Option<i64>) -> Entry {
    Entry::new(Header { key, deadline_ms, ..Header::default() }, Encoding::Bytes, &[value])
}

impl Pair {
    fn insert(&mut self, number: u32, value: &[u8], deadline_ms: Option<i64>) {
        let key = key(number);
        let hash = hash_key(&key);
        match self.table.find(hash, &key) {
            Some(position) => *self.table.at_mut(position) = entry(&key, value, deadline_ms),
            None => {
                assert!(!self.model.contains_key(&key));
                let position = self.table.insert(hash, entry(&key, value, deadline_ms));
                assert_eq!(self.table.at(position).key(), key);
            }
        }
        self.model.insert(key, (value.to_vec(), deadline_ms));
    }

    fn remove(&mut self, number: u32) {
        let key = key(number);
        match self.table.find(hash_key(&key), &key) {
            Some(position) => {
                let removed = self.table.remove(position);
                let (value, deadline_ms) = self.model.remove(&key).expect("in the model too");
                assert_eq!(removed.view().key(), key);
                assert_eq!(removed.view().payload(), value);
                assert_eq!(removed.view().deadline_ms(), deadline_ms);
            }
            None => assert!(!self.model.contains_key(&key)),
        }
        if let Some(scan) = &mut self.scan {
            scan.steady.remove(&key);
        }
    }

    fn set_deadline(&mut self, number: u32, deadline_ms: Option<i64>) {
        let key = key(number);
        let Some(position) = self.table.find(hash_key(&key), &key) else { return };
        self.table.at_mut(position).set_deadline(deadline_ms);
        self.model.get_mut(&key).expect("in the model too").1 = deadline_ms;
    }

    fn append(&mut self, number: u32, more: &[u8]) {
        let key = key(number);
        let Some(position) = self.table.find(hash_key(&key), &key) else { return };
        let mut changed = self.table.at_mut(position);
        let end = changed.view().payload().len();
        changed.splice(end..end, more);
        drop(changed);
        self.model.get_mut(&key).expect("in the model too").0.extend_from_slice(more);
    }

    fn scan_step(&mut self, count: usize) {
        let scan = self.scan.get_or_insert_with(|| Scan {
            position: 0,
            steady: self.model.keys().cloned().collect(),
            visited: BTreeSet::new(),
        });
        let mut visits = 0;
        let (visited, next) = self.table.scan(scan.position, count, false, |entry| {
            visits += 1;
            scan.visited.insert(entry.key().to_vec());
        });
        assert_eq!(visits, visited);
        match next {
            Some(next) => {
                assert!(next > scan.position, "a scan advances");
                assert!(visited >= count);
                scan.position = next;
            }
            None => {
                let missed: Vec<_> = scan.steady.difference(&scan.visited).collect();
                assert!(missed.is_empty(), "{} keys were missed", missed.len());
                self.scan = None;
            }
        }
    }

    fn check_counts(&self) {
        assert_eq!(self.table.len(), self.model.len());
        assert_eq!(self.table.is_empty(), self.model.is_empty());
        let marked = self.model.values().filter(|(_, deadline_ms)| deadline_ms.is_some()).count();
        assert_eq!(self.table.marked(), marked);
    }

    fn check(&self) {
        self.check_counts();
        for (key, (value, deadline_ms)) in &self.model {
            let entry = self.table.get(hash_key(key), key).expect("a key of the model");
            assert_eq!(entry.payload(), value);
            assert_eq!(entry.deadline_ms(), *deadline_ms);
        }
        let mut listed: Vec<&[u8]> = self.table.iter().map(|entry| entry.key()).collect();
        let in_table_order = listed.clone();
        listed.sort_unstable();
        assert!(listed.iter().copied().eq(self.model.keys().map(Vec::as_slice)));
        let marked: Vec<&[u8]> =
            self.table.iter().filter(|entry| entry.deadline_ms().is_some()).map(|entry| entry.key()).collect();
        for (index, key) in in_table_order.iter().enumerate().step_by(97) {
            assert_eq!(self.table.nth(index, false).expect("a block").key(), *key);
        }
        for (index, key) in marked.iter().enumerate().step_by(31) {
            assert_eq!(self.table.nth(index, true).expect("a marked block").key(), *key);
        }
        assert!(self.table.nth(in_table_order.len(), false).is_none());
        assert!(self.table.nth(marked.len(), true).is_none());
        let mut scanned = BTreeSet::new();
        let mut scanned_all = 0;
        let (visited, end) = self.table.scan(0, usize::MAX, true, |entry| {
            scanned_all += 1;
            scanned.insert(entry.key());
        });
        assert_eq!((visited, end), (self.table.len(), None));
        assert_eq!(scanned_all, marked.len());
        assert_eq!(scanned, marked.into_iter().collect());
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert { first: u32, count: u32, len: usize, deadline_ms: Option<i64> },
    Remove { first: u32, count: u32 },
    Deadline { first: u32, count: u32, deadline_ms: Option<i64> },
    Append { number: u32, len: usize },
    Scan { count: usize },
}

const NUMBERS: u32 = 3000;

fn step() -> impl Strategy<Value = Step> {
    let numbers = || (0..NUMBERS, prop_oneof![3 => 1u32..30, 2 => 1u32..2000]);
    let deadline = || prop::option::of(1i64..1000);
    prop_oneof![
        4 => (numbers(), 0usize..60, deadline()).prop_map(|((first, count), len, deadline_ms)| {
            Step::Insert { first, count, len, deadline_ms }
        }),
        3 => numbers().prop_map(|(first, count)| Step::Remove { first, count }),
        1 => (numbers(), deadline()).prop_map(|((first, count), deadline_ms)| {
            Step::Deadline { first, count, deadline_ms }
        }),
        2 => (0..NUMBERS, 0usize..2000).prop_map(|(number, len)| Step::Append { number, len }),
        3 => prop_oneof![1usize..40, 1usize..1500].prop_map(|count| Step::Scan { count }),
    ]
}

fn numbers(first: u32, count: u32) -> impl Iterator<Item = u32> {
    (first..first + count).map(|number| number % NUMBERS)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn tables_do_what_a_map_does(steps in prop::collection::vec(step(), 1..40)) {
        let before = slab::usage().used_bytes;
        let mut pair = Pair::default();
        for step in steps {
            match step {
                Step::Insert { first, count, len, deadline_ms } => {
                    let value = vec![b'v'; len];
                    numbers(first, count).for_each(|number| pair.insert(number, &value, deadline_ms));
                }
                Step::Remove { first, count } => numbers(first, count).for_each(|number| pair.remove(number)),
                Step::Deadline { first, count, deadline_ms } => {
                    numbers(first, count).for_each(|number| pair.set_deadline(number, deadline_ms));
                }
                Step::Append { number, len } => pair.append(number, &vec![b'a'; len]),
                Step::Scan { count } => pair.scan_step(count),
            }
            pair.check_counts();
        }
        pair.check();
        drop(pair);
        prop_assert_eq!(slab::usage().used_bytes, before);
    }

    #[test]
    fn draining_gives_every_block_once(count in 0u32..5000, budget in 1usize..2000) {
        let mut pair = Pair::default();
        (0..count).for_each(|number| pair.insert(number, b"", None));
        let mut drained = BTreeSet::new();
        let mut left = count as usize;
        loop {
            let mut now = 0;
            let empty = pair.table.drain_some(budget, |entry| {
                now += 1;
                assert!(drained.insert(entry.view().key().to_vec()));
            });
            left -= now;
            assert_eq!(pair.table.len(), left);
            assert!(now < budget + ruvio_shard::table::SEGMENT_LIMIT);
            if empty {
                break;
            }
            assert!(now >= budget || left == 0);
        }
        prop_assert_eq!(left, 0);
        prop_assert!(drained.iter().eq(pair.model.keys()));
    }

    #[test]
    fn a_table_that_is_dropped_half_drained_frees_the_rest(count in 0u32..3000, budget in 1usize..2000) {
        let before = slab::usage().used_bytes;
        let mut pair = Pair::default();
        (0..count).for_each(|number| pair.insert(number, b"value", None));
        pair.table.drain_some(budget, drop);
        drop(pair);
        prop_assert_eq!(slab::usage().used_bytes, before);
    }
}

/// Enough keys for a directory whose segments have changed their tags (past eight splits), and back to one segment.
#[test]
fn a_table_of_many_keys_grows_shrinks_and_is_scanned_meanwhile() {
    const MANY: u32 = 300_000;
    let before = slab::usage().used_bytes;
    let mut random = SmallRng::seed_from_u64(1);
    let mut pair = Pair::default();
    for number in 0..MANY {
        pair.insert(number, &number.to_le_bytes(), number.is_multiple_of(5).then_some(i64::from(number)));
        if number % 500 == 0 && number > 1000 {
            // Scans while the table grows; one takes many steps.
            pair.scan_step(500);
        }
    }
    pair.check();
    while pair.scan.is_some() {
        pair.scan_step(1000);
    }
    let mut order: Vec<u32> = (0..MANY).collect();
    for index in (1..order.len()).rev() {
        order.swap(index, random.random_range(0..=index));
    }
    for (done, &number) in order.iter().enumerate() {
        pair.remove(number);
        if done % 500 == 0 {
            pair.scan_step(300);
        }
        if done % 100_000 == 50_000 {
            pair.check();
        }
        let left = MANY as usize - done - 1;
        if left < 100 {
            pair.check();
            pair.scan_step(3);
        }
    }
    assert!(pair.table.is_empty());
    assert_eq!(pair.table.heap_bytes(), 0);
    drop(pair);
    assert_eq!(slab::usage().used_bytes, before);
}

/// Positions from one depth are good at every other: a scan begun over one segment goes on over many and back.
#[test]
fn a_scan_survives_growth_and_collapse_at_every_position() {
    for count in [1, 7, 40] {
        let mut pair = Pair::default();
        (0..200).for_each(|number| pair.insert(number, b"", None));
        let mut grown = false;
        for _ in 0..400 {
            pair.scan_step(count);
            if pair.scan.is_none() {
                break;
            }
            if grown {
                (1000..9000).for_each(|number| pair.remove(number));
                (60..200).for_each(|number| pair.remove(number));
            } else {
                (1000..9000).for_each(|number| pair.insert(number, b"", None));
            }
            grown = !grown;
        }
        assert!(pair.scan.is_none(), "the scan came to its end");
    }
}

#[test]
fn every_block_has_the_same_chance() {
    // One segment, a directory, and a directory that has become sparse.
    for (inserted, kept) in [(300, 300), (3000, 3000), (20_000, 300)] {
        let mut pair = Pair::default();
        (0..inserted).for_each(|number| pair.insert(number, b"", None));
        (kept..inserted).for_each(|number| pair.remove(number));
        let mut random = SmallRng::seed_from_u64(3);
        let mut counts: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        let draws = kept * 100;
        for _ in 0..draws {
            let chosen = pair.table.random(|below| random.random_range(0..below)).expect("a block");
            *counts.entry(chosen.key().to_vec()).or_default() += 1;
        }
        let chi_square: f64 = pair
            .model
            .keys()
            .map(|key| (f64::from(counts.get(key).copied().unwrap_or(0)) - 100.0).powi(2) / 100.0)
            .sum();
        // Six standard deviations of the statistic.
        let freedom = f64::from(kept - 1);
        assert!(chi_square < freedom + 6.0 * (2.0 * freedom).sqrt(), "{chi_square} of {inserted}, {kept}");
        assert!(chi_square > freedom - 6.0 * (2.0 * freedom).sqrt(), "{chi_square} of {inserted}, {kept}");
    }
}
