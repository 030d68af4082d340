//! Shards that are used by one run after the other: to make the tables of all slots takes longer than most runs.

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

const DATABASES: usize = 2;

thread_local! {
    // Not dropped at the end of the process: the slab that they give their blocks back to may be gone then.
    static EMPTY: RefCell<ManuallyDrop<Vec<Shard>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// A shard without keys.
pub fn empty_shard(settings: &Settings) -> Shard {
    let meter = MemoryMeter::NONE;
    let made = || Shard::new(DATABASES, Settings::default(), meter, 1);
    let mut shard = EMPTY.with_borrow_mut(|shards| shards.pop()).unwrap_or_else(made);
    shard.keys.settings = settings.clone();
    shard
}

/// Removes every key that is left, and keeps the shard for the next run.
pub fn give_back(mut shard: Shard) {
    for database in 0..DATABASES {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        shard.keys.keys_matching(database, i64::MIN, b"*", |key| keys.push(key.to_vec()));
        shard.keys.begin(database, i64::MIN, None);
        assert!(keys.iter().all(|key| shard.keys.remove(key)));
        assert_eq!(shard.keys.databases()[database].len(), 0);
    }
    while !shard.keys.reclaim(1000) {}
    EMPTY.with_borrow_mut(|shards| shards.push(shard));
}
