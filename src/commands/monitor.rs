//! `MONITOR`.

use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;

use super::{Flow, Request, ServerCommand};

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[ServerCommand {
    spec: Spec {
        name: "monitor",
        arity: 1,
        flags: Flags::ADMIN.and(Flags::NO_SCRIPT).and(Flags::LOADING).and(Flags::STALE),
        keys: &[],
        categories: Categories::NONE,
        group: Group::Server,
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Shows every command that the server processes, as it comes in.",
        syntax: "",
    },
    run: Some(monitor),
}];

fn monitor(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    // As in Redis, a second call is passed over without a reply.
    if request.core.start_monitoring(request.client) {
        request.reply().ok();
    }
    Ok(Flow::Done)
}
