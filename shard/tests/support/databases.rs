//! Drives a shard of several databases, subcommands included.

use ruvio_shard::args::OwnedArgs;
use ruvio_shard::command::Command;
use ruvio_shard::commands;
use ruvio_shard::reply::Protocol;
use ruvio_shard::shard::{Call, Outcome, Shard};

/// The command that `words` call, by its name or by its container's and its own.
fn command(words: &[&[u8]]) -> &'static Command {
    let name = String::from_utf8_lossy(words[0]).to_lowercase();
    let with_subcommand = words.get(1).map(|word| format!("{name}|{}", String::from_utf8_lossy(word).to_lowercase()));
    commands::all()
        .find(|command| command.spec.name == name || Some(command.spec.name) == with_subcommand.as_deref())
        .unwrap_or_else(|| panic!("no command {name}"))
}

/// Executes a command given as words; returns its reply and what came of it.
pub fn call(shard: &mut Shard, database: usize, now_ms: i64, words: &[&[u8]]) -> (Vec<u8>, Outcome) {
    let args: OwnedArgs = words.iter().collect();
    let command = command(words);
    assert!(command.spec.accepts(words.len()), "wrong number of words for {}", command.spec.name);
    let mut reply = Vec::new();
    let call = Call { database, slot: None, now_ms, protocol: Protocol::Resp2, may_wait: false };
    let outcome = shard.execute(command, args.as_args(), call, &mut reply);
    (reply, outcome)
}

/// Executes a command written as one line, in database 0; returns its reply.
pub fn run(shard: &mut Shard, now_ms: i64, line: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    call(shard, 0, now_ms, &words).0
}
