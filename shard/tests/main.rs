//! Promises of the shard, checked against plain models.

mod entry;
mod eviction;
mod generic;
mod native_counters;
mod scan;
mod set;
mod strings;
mod support;
mod table;
