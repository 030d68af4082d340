//! Versioned values: strings that carry the number of their last write.

use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::options::integer_at;
use crate::commands::string::{new_string, overwrite, reply_string};
use crate::context::Context;
use crate::entry::{EntryRef, Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    Command {
        spec: Spec {
            name: "setv",
            arity: -3,
            flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::UPDATE))],
            categories: Categories::STRING,
            group: Group::String,
            since: "0.1.0",
            complexity: "O(1)",
            summary: "Sets a versioned string, only over the given version if there is one, and returns the new version.",
            syntax: "key value [version]",
        },
        run: setv,
    },
    Command {
        spec: Spec {
            name: "getv",
            arity: 2,
            flags: Flags::READ_ONLY.and(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::READ.and(KeyFlags::ACCESS))],
            categories: Categories::STRING,
            group: Group::String,
            since: "0.1.0",
            complexity: "O(1)",
            summary: "Returns a string and its version, 0 for one that has none.",
            syntax: "key",
        },
        run: getv,
    },
];

/// The version of a string; one that has none counts as 0.
#[inline]
fn version_of(entry: EntryRef<'_>) -> i64 {
    entry.version().unwrap_or(0)
}

/// The version after `current`, if a call that expects `expected` may write.
fn next_version(current: i64, expected: Option<i64>) -> Result<i64, CommandError> {
    if expected.is_some_and(|expected| expected != current) {
        return Err(CommandError::new("ERR version mismatch"));
    }
    current.checked_add(1).ok_or_else(|| CommandError::new("ERR version would overflow"))
}

fn setv(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, value) = (args.at(1), args.at(2));
    let expected = match args.len() {
        3 => None,
        4 => Some(integer_at(args, 3)?),
        _ => return Err(CommandError::wrong_arity("setv")),
    };
    let version = if let Some(mut entry) = context.keys.find_mut_kind(key, Kind::String)? {
        let version = next_version(version_of(entry.view()), expected)?;
        let deadline_ms = entry.view().deadline_ms();
        overwrite(&mut entry, value, deadline_ms, Some(version));
        version
    } else {
        let version = next_version(0, expected)?;
        let access = context.keys.new_access();
        context.keys.add(new_string(Header { key, deadline_ms: None, version: Some(version), access }, value));
        version
    };
    context.keys.changed(Class::String, "set", key);
    context.reply.integer(version);
    Ok(())
}

fn getv(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    match context.keys.find_kind(args.at(1), Kind::String)? {
        Some(entry) => {
            context.reply.array(2);
            reply_string(&mut context.reply, entry);
            context.reply.integer(version_of(entry));
        }
        None => context.reply.null_array(),
    }
    Ok(())
}
