//! Reading a string and changing or removing its key in the same call.

use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::options::Expiry;
use crate::commands::string::set::store;
use crate::commands::string::{count_read, reply_string, string_equals};
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::events::Class;

/// The commands that read and change.
pub static COMMANDS: &[Command] = &[
    Command {
        spec: Spec {
            name: "getset",
            arity: 3,
            flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST).and(Flags::DEPRECATED),
            keys: &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))],
            categories: Categories::STRING,
            group: Group::String,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Sets a key to a string and returns the one it held before.",
            syntax: "key value",
        },
        run: getset,
    },
    Command {
        spec: Spec {
            name: "getdel",
            arity: 2,
            flags: Flags::WRITE.and(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::DELETE))],
            categories: Categories::STRING,
            group: Group::String,
            since: "6.2.0",
            complexity: "O(1)",
            summary: "Removes a key and returns the string it held.",
            syntax: "key",
        },
        run: getdel,
    },
    Command {
        spec: Spec {
            name: "getex",
            arity: -2,
            flags: Flags::WRITE.and(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))],
            categories: Categories::STRING,
            group: Group::String,
            since: "6.2.0",
            complexity: "O(1)",
            summary: "Returns a string and sets or removes its key's deadline.",
            syntax: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
        },
        run: getex,
    },
    Command {
        spec: Spec {
            name: "delifeq",
            arity: 3,
            flags: Flags::WRITE,
            keys: &[KeySpec::one(1, KeyFlags::REMOVE.and(KeyFlags::ACCESS).and(KeyFlags::DELETE))],
            categories: Categories::STRING,
            group: Group::String,
            since: "0.1.0",
            complexity: "O(1)",
            summary: "Removes a key only if it holds a string equal to the given one.",
            syntax: "key comparison",
        },
        run: delifeq,
    },
];

fn getset(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    match context.keys.find_kind(key, Kind::String)? {
        Some(entry) => reply_string(&mut context.reply, entry),
        None => context.reply.null(),
    }
    store(context.keys, key, args.at(2), None);
    context.keys.changed(Class::String, "set", key);
    Ok(())
}

fn getdel(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    match context.keys.find_kind(key, Kind::String)? {
        Some(entry) => reply_string(&mut context.reply, entry),
        None => {
            context.reply.null();
            return Ok(());
        }
    }
    context.keys.remove(key);
    context.keys.changed(Class::Generic, "del", key);
    Ok(())
}

fn getex(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let mut expiry = Expiry::default();
    let mut index = 2;
    while index < args.len() {
        index += expiry.take(args, index).ok_or(CommandError::SYNTAX)?;
    }
    if expiry == Expiry::Keep {
        return Err(CommandError::SYNTAX);
    }
    let now_ms = context.keys.now_ms();
    let Some(mut entry) = context.keys.find_mut_kind(key, Kind::String)? else {
        count_read(context.keys, key, false);
        context.reply.null();
        return Ok(());
    };
    reply_string(&mut context.reply, entry.view());
    // The event that follows, unless the key stays as it is.
    let event = match expiry {
        Expiry::At(unit, time) => {
            let deadline_ms = unit.deadline_ms(time, now_ms, "getex")?;
            if deadline_ms <= now_ms {
                Some("del")
            } else {
                entry.set_deadline(Some(deadline_ms));
                Some("expire")
            }
        }
        Expiry::Persist if entry.view().deadline_ms().is_some() => {
            entry.set_deadline(None);
            Some("persist")
        }
        _ => None,
    };
    drop(entry);
    count_read(context.keys, key, true);
    if event == Some("del") {
        context.keys.remove(key);
    }
    if let Some(event) = event {
        context.keys.changed(Class::Generic, event, key);
    }
    Ok(())
}

fn delifeq(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let equal = match context.keys.find_mut_kind(key, Kind::String)? {
        Some(entry) => string_equals(entry.view(), args.at(2)),
        None => false,
    };
    if equal {
        context.keys.remove(key);
        context.keys.changed(Class::Generic, "del", key);
    }
    context.reply.integer(i64::from(equal));
    Ok(())
}
