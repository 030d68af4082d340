//! One core's world: the keyspace of a shard, its types and its commands.
//!
//! This crate knows no socket, no runtime and no wall clock. It is given a command, a time and a place to write the
//! reply, and says what changed.

pub mod number;
pub mod ordered;
pub mod packed;
