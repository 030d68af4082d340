//! The Ruvio server.

fn main() {}
