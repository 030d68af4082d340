//! Shards without keys, for one run after the other.

use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

#[path = "pool.rs"]
mod pool;

const DATABASES: usize = 2;

/// A shard without keys.
pub fn empty_shard(settings: &Settings) -> Shard {
    let meter = MemoryMeter::NONE;
    let made = || Shard::new(DATABASES, Settings::default(), meter, 1);
    let mut shard = pool::take().unwrap_or_else(made);
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
    pool::keep(shard);
}
