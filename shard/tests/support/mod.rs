//! Driving a shard as a client would.

pub mod databases;
pub mod heap;

use ruvio_shard::args::OwnedArgs;
use ruvio_shard::commands;
use ruvio_shard::error::CommandError;
use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::reply::{Protocol, Reply};
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::{Call, Shard};

/// An empty shard.
pub fn shard(settings: Settings, seed: u64) -> Shard {
    Shard::new(2, settings, MemoryMeter::NONE, seed)
}

/// The encoded reply to a command, and the number of changes that it made.
pub fn call<W: AsRef<[u8]>>(shard: &mut Shard, now_ms: i64, protocol: Protocol, words: &[W]) -> (Vec<u8>, u64) {
    let name = words[0].as_ref().to_ascii_lowercase();
    let command = commands::all()
        .find(|command| command.spec.name.as_bytes() == name)
        .unwrap_or_else(|| panic!("no command {}", String::from_utf8_lossy(&name)));
    let args: OwnedArgs = words.iter().collect();
    let mut out = Vec::new();
    if !command.spec.accepts(words.len()) {
        Reply::new(&mut out, protocol).error(&CommandError::wrong_arity(command.spec.name));
        return (out, 0);
    }
    let call = Call { database: 0, slot: None, now_ms, protocol, may_wait: false };
    let outcome = shard.execute(command, args.as_args(), call, &mut out);
    (out, outcome.changes)
}

/// The encoded RESP2 reply to a command written as one line; words are separated by spaces.
pub fn run(shard: &mut Shard, now_ms: i64, line: &str) -> Vec<u8> {
    let words: Vec<&str> = line.split(' ').collect();
    call(shard, now_ms, Protocol::Resp2, &words).0
}
