//! `SLOWLOG`: the commands that took long.

use std::sync::{MutexGuard, PoisonError};

use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::number;

use super::help::help;
use super::{Flow, Request, ServerCommand};
use crate::core::Core;
use crate::core::slow_log::SlowLog;

/// Entries returned when no number is given.
const DEFAULT_COUNT: i64 = 10;

const SLOWLOG: Spec = Spec {
    name: "slowlog",
    arity: -2,
    flags: Flags::NONE,
    keys: &[],
    categories: Categories::NONE,
    group: Group::Server,
    since: "2.2.12",
    complexity: "Depends on subcommand.",
    summary: "A container for slow log commands.",
    syntax: "",
};

const FOR_OPERATORS: Spec = Spec { flags: Flags::ADMIN.and(Flags::LOADING).and(Flags::STALE), ..SLOWLOG };

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    ServerCommand { spec: SLOWLOG, run: None },
    ServerCommand {
        spec: Spec {
            name: "slowlog|get",
            complexity: "O(N) where N is the number of entries returned",
            summary: "Returns the latest entries: 10, or as many as asked for (-1: all).",
            syntax: "[count]",
            ..FOR_OPERATORS
        },
        run: Some(get),
    },
    ServerCommand {
        spec: Spec {
            name: "slowlog|len",
            arity: 2,
            complexity: "O(1)",
            summary: "Returns the number of entries.",
            ..FOR_OPERATORS
        },
        run: Some(len),
    },
    ServerCommand {
        spec: Spec {
            name: "slowlog|reset",
            arity: 2,
            complexity: "O(N) where N is the number of entries",
            summary: "Removes all entries.",
            ..FOR_OPERATORS
        },
        run: Some(reset),
    },
    ServerCommand {
        spec: Spec {
            name: "slowlog|help",
            arity: 2,
            flags: Flags::LOADING.and(Flags::STALE),
            since: "6.2.0",
            complexity: "O(1)",
            summary: "Describes the subcommands.",
            ..SLOWLOG
        },
        run: Some(help),
    },
];

fn log(core: &Core) -> MutexGuard<'_, SlowLog> {
    core.process.slow_log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn get(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    let count = match args.len() {
        2 => DEFAULT_COUNT,
        3 => number::parse_i64(args.at(2))
            .filter(|&count| count >= -1)
            .ok_or(CommandError::new("ERR count should be greater than or equal to -1"))?,
        _ => {
            let word = String::from_utf8_lossy(args.at(1));
            return Err(CommandError::new(format!(
                "ERR unknown subcommand or wrong number of arguments for '{word}'. Try SLOWLOG HELP."
            )));
        }
    };
    let entries: Vec<_> = {
        let log = log(request.core);
        log.entries().take(usize::try_from(count).unwrap_or(usize::MAX)).cloned().collect()
    };
    let mut reply = request.reply();
    reply.array(entries.len());
    for entry in entries {
        reply.array(6);
        reply.integer(entry.id as i64);
        reply.integer(entry.time_s);
        reply.integer(entry.duration_us as i64);
        reply.array(entry.words.len());
        for word in &entry.words {
            reply.bulk(word);
        }
        reply.bulk(entry.client.as_bytes());
        reply.bulk(&entry.client_name);
    }
    Ok(Flow::Done)
}

fn len(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let len = log(request.core).entries().len();
    request.reply().count(len);
    Ok(Flow::Done)
}

fn reset(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    log(request.core).clear();
    request.reply().ok();
    Ok(Flow::Done)
}
