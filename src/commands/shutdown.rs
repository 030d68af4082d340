//! `SHUTDOWN`.

use std::sync::atomic::Ordering;

use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;

use super::{Flow, Request, ServerCommand};
use crate::core::script::ScriptKind;
use crate::core::script::beside::busy_error;

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[ServerCommand {
    spec: Spec {
        name: "shutdown",
        arity: -1,
        flags: Flags::ADMIN
            .and(Flags::NO_SCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::NO_MULTI)
            .and(Flags::ALLOW_BUSY),
        keys: &[],
        categories: Categories::NONE,
        group: Group::Server,
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Ends the server.",
        syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
    },
    run: Some(shutdown),
}];

/// Ends the process without a reply. `NOW` and `FORCE` are how it always ends: there is no replica to wait for and
/// nothing that may fail.
fn shutdown(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let (mut save, mut no_save, mut abort, mut others) = (false, false, false, false);
    for word in request.args.from(1).iter() {
        match word.to_ascii_lowercase().as_slice() {
            b"nosave" => no_save = true,
            b"save" => save = true,
            b"now" | b"force" => others = true,
            b"abort" => abort = true,
            _ => return Err(CommandError::SYNTAX),
        }
    }
    if save && no_save || abort && (save || no_save || others) {
        return Err(CommandError::SYNTAX);
    }
    if abort {
        return Err(CommandError::new("ERR No shutdown in progress."));
    }
    let process = &request.core.process;
    if process.busy.any() && !no_save {
        return Err(busy_error(ScriptKind::Script));
    }
    // With a log everything is kept anyway.
    if save && request.core.process.data.is_none() {
        return Err(CommandError::new(
            "ERR nothing can be saved with durability 'memory', so the server goes on; use SHUTDOWN NOSAVE",
        ));
    }
    // What scripts have done so far, and is not logged, is given up.
    request.core.process.abandons_scripts.store(no_save, Ordering::Relaxed);
    request.core.process.stop();
    Ok(Flow::Close)
}
