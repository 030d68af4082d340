//! `MULTI`, `EXEC`, `DISCARD`, `WATCH` and `UNWATCH`.

use ruvio_shard::command::{Begin, Categories, Find, Flags, Group, KeyFlags, KeySpec, Spec};
use ruvio_shard::error::CommandError;

use super::{Flow, Request, Run, ServerCommand};
use crate::registry::registry;

const ANYTIME: Flags = Flags::NO_SCRIPT.and(Flags::LOADING).and(Flags::STALE).and(Flags::FAST).and(Flags::ALLOW_BUSY);
const WATCHED: &[KeySpec] =
    &[KeySpec { begin: Begin::Index(1), find: Find::Range { last: -1, step: 1, limit: 0 }, flags: KeyFlags::READ }];

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    command(
        ("multi", 1, ANYTIME),
        &[],
        ("1.2.0", "O(1)"),
        "Begins a transaction: the commands that follow are queued.",
        "",
        multi,
    ),
    command(
        ("exec", 1, Flags::NO_SCRIPT.and(Flags::LOADING).and(Flags::STALE).and(Flags::SKIP_SLOWLOG)),
        &[],
        ("1.2.0", "Depends on the commands in the transaction"),
        "Executes the commands that were queued, with nothing in between.",
        "",
        exec,
    ),
    command(
        ("discard", 1, ANYTIME),
        &[],
        ("2.0.0", "O(N), where N is the number of queued commands"),
        "Forgets the commands that were queued.",
        "",
        discard,
    ),
    command(
        ("watch", -2, ANYTIME),
        WATCHED,
        ("2.2.0", "O(1) for every key"),
        "Has the next transaction refuse if one of the keys changes before it.",
        "key [key ...]",
        watch,
    ),
    command(
        ("unwatch", 1, ANYTIME),
        &[],
        ("2.2.0", "O(N), where N is the number of keys watched"),
        "Ends the watching of keys.",
        "",
        unwatch,
    ),
];

const fn command(
    (name, arity, flags): (&'static str, i32, Flags),
    keys: &'static [KeySpec],
    (since, complexity): (&'static str, &'static str),
    summary: &'static str,
    syntax: &'static str,
    run: Run,
) -> ServerCommand {
    let (categories, group) = (Categories::TRANSACTION, Group::Transactions);
    let spec = Spec { name, arity, flags, keys, categories, group, since, complexity, summary, syntax };
    ServerCommand { spec, run: Some(run) }
}

fn multi(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.core.begin_transaction(request.client)?;
    request.reply().ok();
    Ok(Flow::Done)
}

fn exec(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    if let Some(queue) = request.core.take_transaction_for_here(request.client) {
        request.core.execute_at_home(request.client, queue, request.protocol, request.out);
        return Ok(Flow::Done);
    }
    request.core.close_transaction(request.client)?;
    Ok(Flow::Execute)
}

fn discard(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.core.discard_transaction(request.client)?;
    request.reply().ok();
    Ok(Flow::Done)
}

fn watch(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let command = registry().get(b"watch").ok_or(CommandError::SYNTAX)?;
    request.core.watch(request.client, command, request.args)?;
    request.reply().ok();
    Ok(Flow::Done)
}

fn unwatch(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.core.unwatch(request.client);
    request.reply().ok();
    Ok(Flow::Done)
}
