//! The same random commands on this server and on `redis-server`: every reply must be the same.
//!
//! Commands of all groups, of one client that speaks RESP2 and of one that speaks RESP3, to a server of two shards, which
//! forwards what concerns another core. What Redis 7.0, which is what runs beside, does not have is left out: the native
//! commands, deadlines of hash fields, and options of Redis 7.2. So is what speaks of the server itself (`INFO`,
//! `CLIENT LIST`, `COMMAND`), and the cluster view, which Redis alone does not give. Replies are compared with their kinds, and
//! byte by byte but for what [`comparison::Compare`] names and what `COMMANDS.md` says of errors, that they are UTF-8.
//!
//! `RUVIO_DIFFERENTIAL_COMMANDS` sets how many commands run, `RUVIO_DIFFERENTIAL_SEED` repeats a run that failed.

mod acts;
mod comparison;
mod generator;
mod keyspace;
mod pair;
mod scripts;
mod templates;

pub use generator::Generator;

use crate::support::{Server, Value};
use acts::Acts;
use pair::Pair;

/// About how many commands are sent before replies are read.
const BATCH: usize = 40;

/// The number that a variable holds.
pub fn number_from_environment(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

#[test]
fn random_commands_are_answered_as_redis_answers_them() {
    let Some(redis) = Server::start_redis(&[]) else {
        println!("skipped: no redis-server on PATH to compare with");
        return;
    };
    let server = Server::start();
    let commands = number_from_environment("RUVIO_DIFFERENTIAL_COMMANDS").unwrap_or(8_000) as usize;
    let seed = number_from_environment("RUVIO_DIFFERENTIAL_SEED").unwrap_or_else(rand::random);
    let mut generator = Generator::new(seed);
    let mut pair = Pair::connect([&server, &redis]);
    pair.line(&["FUNCTION", "LOAD", scripts::LIBRARY]);
    for (source, _) in scripts::SCRIPTS {
        let digest = match pair.line(&["SCRIPT", "LOAD", source]) {
            // What cannot be compiled has none.
            Value::Error(_) => "0".repeat(40),
            digest => digest.text().to_owned(),
        };
        generator.digests.push(digest);
    }
    while pair.sent() < commands {
        let mut steps = Vec::new();
        while steps.len() < BATCH {
            steps.extend(Acts::next(&mut generator));
        }
        // What follows a difference differs in its turn: the first says what is wrong.
        if let Err(difference) = pair.run(&steps, &mut generator) {
            panic!("seed {seed}: {difference}");
        }
    }
    println!("seed {seed}: {}", pair.summary());
    let [ours, theirs] = pair.contents(3);
    assert_eq!(ours, theirs, "seed {seed}");
}
