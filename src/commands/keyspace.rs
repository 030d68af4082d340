//! Commands on the keyspace of the whole process.

use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;

use super::{Flow, Request, ServerCommand};

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[ServerCommand {
    spec: Spec {
        name: "dbsize",
        arity: 1,
        flags: Flags::READ_ONLY.and(Flags::FAST),
        keys: &[],
        categories: Categories::KEYSPACE,
        group: Group::Server,
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Returns the number of keys in the selected database.",
        syntax: "",
    },
    run: Some(dbsize),
}];

fn dbsize(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let database = request.client().database;
    request.core.gather(
        request.client,
        move |core| core.shard.keys.databases()[database].len(),
        |_, parts: Vec<usize>, reply| reply.count(parts.into_iter().sum()),
    );
    Ok(Flow::Wait)
}
