//! Black-box promises of the server: each file has one subject, each test states what a client can rely on.

mod administration;
mod connection;
mod counters;
mod expiry;
mod hashes;
mod info;
mod keys;
mod lists;
mod protocol;
mod sets;
mod sorted_sets;
mod strings;
mod support;
