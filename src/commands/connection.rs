//! Connection commands.

use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::number;

use super::{Flow, Request, ServerCommand};

const ANYTIME: Flags = Flags::LOADING.and(Flags::STALE).and(Flags::FAST);

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    ServerCommand {
        spec: Spec {
            name: "ping",
            arity: -1,
            flags: Flags::FAST,
            keys: &[],
            categories: Categories::CONNECTION,
            group: Group::Connection,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Answers PONG, or the message.",
            syntax: "[message]",
        },
        run: Some(ping),
    },
    ServerCommand {
        spec: Spec {
            name: "echo",
            arity: 2,
            flags: ANYTIME,
            keys: &[],
            categories: Categories::CONNECTION,
            group: Group::Connection,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Returns the message.",
            syntax: "message",
        },
        run: Some(echo),
    },
    ServerCommand {
        spec: Spec {
            name: "select",
            arity: 2,
            flags: ANYTIME,
            keys: &[],
            categories: Categories::CONNECTION,
            group: Group::Connection,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Changes the selected database.",
            syntax: "index",
        },
        run: Some(select),
    },
    ServerCommand {
        spec: Spec {
            name: "quit",
            arity: -1,
            flags: ANYTIME.and(Flags::ALLOW_BUSY).and(Flags::NO_SCRIPT).and(Flags::NO_AUTH),
            keys: &[],
            categories: Categories::CONNECTION,
            group: Group::Connection,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Closes the connection.",
            syntax: "",
        },
        run: Some(quit),
    },
];

fn ping(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    match args.len() {
        1 => request.reply().simple("PONG"),
        2 => request.reply().bulk(args.at(1)),
        _ => return Err(CommandError::wrong_arity("ping")),
    }
    Ok(Flow::Done)
}

fn echo(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let message = request.args.at(1);
    request.reply().bulk(message);
    Ok(Flow::Done)
}

fn select(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let Some(number) = number::parse_i64(request.args.at(1)).filter(|number| i32::try_from(*number).is_ok()) else {
        return Err(CommandError::NOT_AN_INTEGER);
    };
    let databases = request.core.process.options.databases;
    match usize::try_from(number).ok().filter(|&number| number < databases) {
        Some(database) => {
            request.client().database = database;
            request.reply().ok();
            Ok(Flow::Done)
        }
        None => Err(CommandError::DB_INDEX_OUT_OF_RANGE),
    }
}

fn quit(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.reply().ok();
    Ok(Flow::Close)
}
