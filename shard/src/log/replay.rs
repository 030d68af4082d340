//! Executing what a log says was executed.

use super::Refusal;
use super::segment::Command;
use crate::commands;
use crate::number::parse_i64;
use crate::reply::Protocol;
use crate::shard::{Call, Shard};

impl Shard {
    /// Executes the commands of a record again, at the time they were executed. The error says which of them cannot have
    /// been executed before; then the record is not one of this shard's log.
    ///
    /// Nothing may be evicted meanwhile: what was evicted then is in the log.
    pub fn replay(&mut self, time_ms: i64, commands: &[Command<'_>], replies: &mut Vec<u8>) -> Result<(), Refusal> {
        commands.iter().try_for_each(|command| self.replay_one(time_ms, command, replies))
    }

    fn replay_one(&mut self, now_ms: i64, logged: &Command<'_>, replies: &mut Vec<u8>) -> Result<(), Refusal> {
        let (database, args) = (logged.database, logged.args);
        let databases = self.keys.databases().len();
        let name = String::from_utf8_lossy(args.at(0)).into_owned();
        if database >= databases {
            return Err(Refusal::Database(database));
        }
        if args.is(0, FLUSH_DATABASE) {
            self.keys.flush(database);
            return Ok(());
        }
        if args.is(0, SWAP_DATABASES) {
            let index = |place: usize| {
                args.get(place)
                    .and_then(parse_i64)
                    .and_then(|index| usize::try_from(index).ok())
                    .filter(|i| *i < databases)
            };
            let (Some(one), Some(other)) = (index(1), index(2)) else {
                return Err(format!("it holds {name} of databases that are not there").into());
            };
            self.keys.swap_databases(one, other);
            return Ok(());
        }
        let command = commands::named(args.at(0)).filter(|command| command.spec.accepts(args.len()));
        let Some(command) = command else {
            return Err(format!("it holds {name}, which is no command of this program").into());
        };
        replies.clear();
        let call = Call { database, slot: None, now_ms, protocol: Protocol::Resp2, may_wait: false };
        match self.execute(command, args, call, replies).error {
            None => Ok(()),
            Some(error) => Err(format!("it holds {name}, which fails now: {error}").into()),
        }
    }
}

/// Logged when all keys of the record's database were removed.
pub const FLUSH_DATABASE: &str = "FLUSHDB";

/// Logged when two databases were exchanged.
pub const SWAP_DATABASES: &str = "SWAPDB";
