//! Promises of the shard, checked against plain models.

mod copies;
mod entry;
mod eviction;
mod generic;
mod hash;
mod hash_expiry;
mod limit;
mod native_counters;
mod scan;
mod set;
mod slot_tables;
mod sorted_set;
mod strings;
mod support;
mod table;
