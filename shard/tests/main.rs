//! Promises of the shard, checked against plain models.

mod bitmaps;
mod copies;
mod durability;
mod entry;
mod eviction;
mod generic;
mod geo;
mod hash;
mod hash_expiry;
mod hyperloglogs;
mod lcs;
mod limit;
mod native_counters;
mod rdb;
mod scan;
mod set;
mod slot_tables;
mod sort;
mod sorted_set;
mod strings;
mod support;
mod table;

#[global_allocator]
static ALLOCATOR: support::heap::CountingAllocator = support::heap::CountingAllocator;
