//! One core's world: the keyspace of a shard, its types and its commands.
//!
//! This crate knows no socket, no runtime and no wall clock. It is given a command, a time and a place to write the
//! reply, and says what changed. From the bottom up:
//!
//! - memory: [`slab`] (blocks), [`entry`] (a key and its value in one block), [`table`] (entries by hash);
//! - values: [`packed`] and [`ordered`] sequences, the collections ([`hash`], [`list`], [`set`], [`sorted_set`]) and
//!   [`limit`]ers; strings as [`bits`] and as [`hyperloglog`]s, scores as places ([`geo`]);
//! - [`rdb`]: values in Redis's own format;
//! - [`database`]: a table a slot; [`keys`]: the keyspace with expiry; [`eviction`] and [`expiry`] keep it in bounds;
//! - [`commands`]: a file a family, each command with all that is known of it ([`command`]);
//! - [`shard`]: executes commands;
//! - [`script`]: runs Lua scripts and functions, whose commands are a host's.

use std::sync::OnceLock;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_nano_inline};

pub mod access;
mod arena;
pub mod args;
pub mod bits;
pub mod changes;
mod chunk;
pub mod command;
pub mod commands;
pub mod context;
pub mod database;
pub mod entry;
pub mod error;
pub mod events;
pub mod eviction;
pub mod expiry;
mod field_deadlines;
pub mod geo;
pub mod glob;
pub mod hash;
#[cfg(test)]
mod histories;
pub mod huge_pages;
pub mod hyperloglog;
pub mod image;
pub mod keys;
pub mod limit;
pub mod list;
pub mod log;
pub mod number;
pub mod object;
pub mod ordered;
pub mod packed;
pub mod rdb;
mod remains;
pub mod reply;
pub mod scan;
pub mod script;
pub mod set;
pub mod settings;
pub mod shard;
pub mod slab;
pub mod slot;
mod slot_tables;
pub mod sorted_set;
pub mod table;
pub mod wait;
pub mod words;

static HASH_SECRETS: OnceLock<RapidSecrets> = OnceLock::new();

/// Chooses the seed of [`hash_key`]; only the first call before any hash has an effect. Servers choose a random one, so
/// that nobody can choose keys that collide.
pub fn seed_hashes(seed: u64) {
    let _ = HASH_SECRETS.set(RapidSecrets::seed(seed));
}

/// The hash of a key, field or member.
#[inline]
pub fn hash_key(key: &[u8]) -> u64 {
    let secrets = HASH_SECRETS.get_or_init(|| RapidSecrets::seed(0x9e37_79b9_7f4a_7c15));
    rapidhash_v3_nano_inline::<true, false>(key, secrets)
}
