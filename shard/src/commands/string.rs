//! Strings.

use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::context::Context;
use crate::entry::{EntryRef, Kind};
use crate::error::CommandResult;
use crate::reply::Reply;

const READ: KeyFlags = KeyFlags::READ.and(KeyFlags::ACCESS);

/// The family's commands.
pub static COMMANDS: &[Command] = &[Command {
    spec: Spec {
        name: "get",
        arity: 2,
        flags: Flags::READ_ONLY.and(Flags::FAST),
        keys: &[KeySpec::one(1, READ)],
        categories: Categories::STRING,
        group: Group::String,
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Returns the string value of a key.",
        syntax: "key",
    },
    run: get,
}];

/// Replies a string entry as a bulk string.
#[inline]
pub fn reply_string(reply: &mut Reply<'_>, entry: EntryRef<'_>) {
    match entry.integer() {
        Some(value) => reply.bulk_integer(value),
        None => reply.bulk(entry.payload()),
    }
}

fn get(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    match context.keys.find_kind(args.at(1), Kind::String)? {
        Some(entry) => reply_string(&mut context.reply, entry),
        None => context.reply.null(),
    }
    Ok(())
}
