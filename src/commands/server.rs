//! What the server says about itself in a few words.

use std::time::{SystemTime, UNIX_EPOCH};

use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;

use super::{Flow, Request, ServerCommand};

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    ServerCommand {
        spec: Spec {
            name: "time",
            arity: 1,
            flags: Flags::LOADING.and(Flags::STALE).and(Flags::FAST),
            keys: &[],
            categories: Categories::NONE,
            group: Group::Server,
            since: "2.6.0",
            complexity: "O(1)",
            summary: "Returns the server's time: seconds since the epoch, and microseconds.",
            syntax: "",
        },
        run: Some(time),
    },
    ServerCommand {
        spec: Spec {
            name: "role",
            arity: 1,
            flags: Flags::NO_SCRIPT.and(Flags::LOADING).and(Flags::STALE).and(Flags::FAST).and(Flags::SENTINEL),
            keys: &[],
            categories: Categories::ADMIN.and(Categories::DANGEROUS),
            group: Group::Server,
            since: "2.8.12",
            complexity: "O(1)",
            summary: "Returns the server's part in replication.",
            syntax: "",
        },
        run: Some(role),
    },
    // Its subcommands run on the shards.
    ServerCommand {
        spec: Spec {
            name: "object",
            arity: -2,
            flags: Flags::NONE,
            keys: &[],
            categories: Categories::NONE,
            group: Group::Generic,
            since: "2.2.3",
            complexity: "Depends on subcommand.",
            summary: "A container for commands on how values are stored.",
            syntax: "",
        },
        run: None,
    },
];

fn time(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut reply = request.reply();
    reply.array(2);
    reply.bulk_integer(elapsed.as_secs() as i64);
    reply.bulk_integer(i64::from(elapsed.subsec_micros()));
    Ok(Flow::Done)
}

/// A master without replicas, which has sent no replica anything.
fn role(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let mut reply = request.reply();
    reply.array(3);
    reply.bulk(b"master");
    reply.integer(0);
    reply.array(0);
    Ok(Flow::Done)
}
