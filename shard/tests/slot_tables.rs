//! The keyspace's tables, whose words share an arena, against maps: through growth past a segment and back, removal in
//! any order, flushed and exchanged databases.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ruvio_shard::entry::{Encoding, Entry, Header};
use ruvio_shard::keys::Keys;
use ruvio_shard::settings::Settings;
use ruvio_shard::slab;
use ruvio_shard::slot::key_slot;

/// Keys of one tag share a slot.
const TAGS: u32 = 50;
const NUMBERS: u32 = 900;
const DATABASES: usize = 2;

type Model = BTreeMap<Vec<u8>, u32>;

fn key(tag: u32, number: u32) -> Vec<u8> {
    format!("{{{tag}}}:{number}").into_bytes()
}

fn entry(key: &[u8], value: u32) -> Entry {
    Entry::new(Header { key, ..Header::default() }, Encoding::Bytes, &[&value.to_le_bytes()])
}

/// Keys of `tags` tags from `tag` on, and of each tag `count` numbers from `first` on.
#[derive(Clone, Debug)]
struct Area {
    tag: u32,
    tags: u32,
    first: u32,
    count: u32,
}

impl Area {
    /// The numbers outside, so that consecutive keys are of different slots.
    fn keys(&self) -> impl Iterator<Item = Vec<u8>> {
        let Area { tag, tags, first, count } = *self;
        (first..first + count)
            .flat_map(move |number| (tag..tag + tags).map(move |tag| key(tag % TAGS, number % NUMBERS)))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put { database: usize, area: Area, value: u32 },
    Remove { database: usize, area: Area },
    Flush { database: usize },
    Swap,
    Reclaim { budget: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let area = || {
        let sizes = prop_oneof![
            6 => (1..TAGS, 1u32..40),
            1 => (1u32..4, 1u32..NUMBERS),
        ];
        (0..TAGS, 0..NUMBERS, sizes).prop_map(|(tag, first, (tags, count))| Area { tag, tags, first, count })
    };
    prop_oneof![
        6 => (0..DATABASES, area(), any::<u32>()).prop_map(|(database, area, value)| Step::Put { database, area, value }),
        4 => (0..DATABASES, area()).prop_map(|(database, area)| Step::Remove { database, area }),
        1 => (0..DATABASES).prop_map(|database| Step::Flush { database }),
        1 => Just(Step::Swap),
        2 => (1usize..3000).prop_map(|budget| Step::Reclaim { budget }),
    ]
}

fn check(keys: &mut Keys, models: &[Model]) {
    for (database, model) in models.iter().enumerate() {
        keys.begin(database, 0, None);
        assert_eq!(keys.databases()[database].len(), model.len());
        for (key, value) in model {
            let found = keys.peek(key).expect("a key of the model");
            assert_eq!(found.key(), key);
            assert_eq!(found.payload(), value.to_le_bytes());
        }
        for tag in 0..TAGS {
            let prefix = format!("{{{tag}}}:").into_bytes();
            let here = model.keys().filter(|key| key.starts_with(&prefix)).count();
            assert_eq!(keys.table(key_slot(&prefix)).map_or(0, |table| table.len()), here);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn databases_do_what_maps_do(steps in prop::collection::vec(step(), 1..60)) {
        let before = slab::usage().used_bytes;
        let mut keys = Keys::new(DATABASES, Settings::default(), 1);
        let mut models = [const { Model::new() }; DATABASES];
        for step in steps {
            match step {
                Step::Put { database, area, value } => {
                    keys.begin(database, 0, None);
                    for key in area.keys() {
                        keys.put(entry(&key, value));
                        models[database].insert(key, value);
                    }
                }
                Step::Remove { database, area } => {
                    keys.begin(database, 0, None);
                    for key in area.keys() {
                        let taken = keys.take(&key);
                        prop_assert_eq!(
                            taken.map(|entry| entry.view().payload().to_vec()),
                            models[database].remove(&key).map(|value| value.to_le_bytes().to_vec())
                        );
                    }
                }
                Step::Flush { database } => {
                    prop_assert_eq!(keys.flush(database), models[database].len());
                    models[database].clear();
                }
                Step::Swap => {
                    keys.swap_databases(0, 1);
                    models.swap(0, 1);
                }
                Step::Reclaim { budget } => {
                    keys.reclaim(budget);
                }
            }
        }
        check(&mut keys, &models);
        for (database, model) in models.iter().enumerate() {
            keys.begin(database, 0, None);
            model.keys().for_each(|key| drop(keys.take(key)));
        }
        while !keys.reclaim(1000) {}
        prop_assert_eq!(slab::usage().used_bytes, before);
        let mut keys = Keys::new(1, Settings::default(), 1);
        keys.put(entry(b"left behind", 1));
        drop(keys);
        prop_assert_eq!(slab::usage().used_bytes, before);
    }
}

/// What the pages of a million counters take, the holes in them included: an entry of 16 bytes, a word, and little else.
#[test]
#[cfg_attr(ruvio_system_blocks, ignore = "there are no pages")]
fn a_counter_takes_25_bytes_of_pages() {
    const COUNTERS: usize = 1_000_000;
    const CHUNK_BYTES: usize = 2 << 20;
    std::thread::spawn(|| {
        let mut keys = Keys::new(1, Settings::default(), 1);
        keys.begin(0, 0, None);
        for number in 0..COUNTERS {
            let key = format!("c:{number:06}");
            keys.add(Entry::with_integer(Header { key: key.as_bytes(), ..Header::default() }, 1));
        }
        let loaded = slab::usage();
        assert!(loaded.held_bytes <= COUNTERS * 25 + 2 * CHUNK_BYTES, "{loaded:?}");
        assert!(loaded.used_bytes <= COUNTERS * 25, "{loaded:?}");
        for number in 0..COUNTERS {
            if number % 10 != 0 {
                assert!(keys.remove(format!("c:{number:06}").as_bytes()));
            }
        }
        // An array of which a quarter is unused may stay, but no more.
        assert!(slab::usage().used_bytes <= COUNTERS / 10 * 32, "{:?}", slab::usage());
        keys.flush(0);
        while !keys.reclaim(1000) {}
        assert_eq!(slab::usage().used_bytes, 0);
        assert!(slab::usage().held_bytes <= CHUNK_BYTES);
    })
    .join()
    .expect("the thread that has a slab of its own");
}
