//! Black-box promises of the server: each file has one subject, each test states what a client can rely on.

mod administration;
mod clients;
mod cluster;
mod command_line;
mod configuration;
mod connection;
mod counters;
mod differential;
mod expiry;
mod hashes;
mod info;
mod keys;
mod lists;
mod native_counters;
mod native_due;
mod native_limits;
mod native_versions;
mod notifications;
mod protocol;
mod pubsub;
mod routing;
mod seed_session;
mod sets;
mod sorted_sets;
mod strings;
mod support;
