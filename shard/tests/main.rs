//! Promises of the shard, checked against plain models.

mod bitmaps;
mod copies;
mod entry;
mod eviction;
mod generic;
mod geo;
mod hash;
mod hyperloglogs;
mod limit;
mod native_counters;
mod scan;
mod set;
mod slot_tables;
mod sorted_set;
mod strings;
mod support;
mod table;
