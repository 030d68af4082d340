//! Commands on keys of any type.

use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::context::Context;
use crate::entry::{Entry, EntryRef, Header};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::number;

const READ: KeyFlags = KeyFlags::READ;
const REMOVE: KeyFlags = KeyFlags::REMOVE.and(KeyFlags::DELETE);
const MOVED: KeyFlags = KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::DELETE);
const OVERWRITTEN: KeyFlags = KeyFlags::OVERWRITE.and(KeyFlags::UPDATE);
const MADE: KeyFlags = KeyFlags::OVERWRITE.and(KeyFlags::INSERT);

/// What the family's specifications have in common.
const GENERIC: Spec = Spec {
    name: "",
    arity: 2,
    flags: Flags::NONE,
    keys: &[],
    categories: Categories::KEYSPACE,
    group: Group::Generic,
    since: "1.0.0",
    complexity: "O(1)",
    summary: "",
    syntax: "key",
};

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    Command {
        spec: Spec {
            name: "copy",
            arity: -3,
            flags: Flags::WRITE.and(Flags::DENY_OOM),
            keys: &[KeySpec::one(1, READ.and(KeyFlags::ACCESS)), KeySpec::one(2, OVERWRITTEN)],
            since: "6.2.0",
            complexity: "O(N) where N is the number of elements of a collection; O(1) for other types",
            summary: "Gives a second key a copy of the value of a first one.",
            syntax: "source destination [DB destination-db] [REPLACE]",
            ..GENERIC
        },
        run: copy,
    },
    Command {
        spec: Spec {
            name: "del",
            arity: -2,
            flags: Flags::WRITE,
            keys: &[KeySpec::to_end(1, 1, REMOVE)],
            complexity: "O(N) where N is the number of keys",
            summary: "Removes keys.",
            syntax: "key [key ...]",
            ..GENERIC
        },
        run: delete,
    },
    Command {
        spec: Spec {
            name: "unlink",
            arity: -2,
            flags: Flags::WRITE.and(Flags::FAST),
            keys: &[KeySpec::to_end(1, 1, REMOVE)],
            since: "4.0.0",
            complexity: "O(N) where N is the number of keys",
            summary: "Removes keys; the memory of large values is given back later.",
            syntax: "key [key ...]",
            ..GENERIC
        },
        run: delete,
    },
    Command {
        spec: Spec {
            name: "exists",
            arity: -2,
            flags: Flags::READ_ONLY.and(Flags::FAST),
            keys: &[KeySpec::to_end(1, 1, READ)],
            complexity: "O(N) where N is the number of keys",
            summary: "Counts how many of the keys exist.",
            syntax: "key [key ...]",
            ..GENERIC
        },
        run: exists,
    },
    Command {
        spec: Spec {
            name: "type",
            flags: Flags::READ_ONLY.and(Flags::FAST),
            keys: &[KeySpec::one(1, READ)],
            summary: "Tells the type of the value of a key.",
            ..GENERIC
        },
        run: kind,
    },
    Command {
        spec: Spec {
            name: "rename",
            arity: 3,
            flags: Flags::WRITE,
            keys: &[KeySpec::one(1, MOVED), KeySpec::one(2, OVERWRITTEN)],
            summary: "Gives a key another name, in place of what had that name.",
            syntax: "key newkey",
            ..GENERIC
        },
        run: rename,
    },
    Command {
        spec: Spec {
            name: "renamenx",
            arity: 3,
            flags: Flags::WRITE.and(Flags::FAST),
            keys: &[KeySpec::one(1, MOVED), KeySpec::one(2, MADE)],
            summary: "Gives a key another name, unless a key has that name.",
            syntax: "key newkey",
            ..GENERIC
        },
        run: rename_if_free,
    },
    Command {
        spec: Spec {
            name: "move",
            arity: 3,
            flags: Flags::WRITE.and(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))],
            summary: "Moves a key to another database, unless that has one of this name.",
            syntax: "key db",
            ..GENERIC
        },
        run: move_key,
    },
    Command {
        spec: Spec {
            name: "touch",
            arity: -2,
            flags: Flags::READ_ONLY.and(Flags::FAST),
            keys: &[KeySpec::to_end(1, 1, READ)],
            since: "3.2.1",
            complexity: "O(N) where N is the number of keys",
            summary: "Notes an access to keys, and counts how many of them exist.",
            syntax: "key [key ...]",
            ..GENERIC
        },
        run: touch,
    },
];

/// Reads the number of a database, which must exist.
fn parse_database(context: &Context<'_>, word: &[u8]) -> Result<usize, CommandError> {
    let number = number::parse_i64(word).ok_or(CommandError::NOT_AN_INTEGER)?;
    let number = i32::try_from(number)
        .map_err(|_| CommandError::new("ERR value is out of range, value must between -2147483648 and 2147483647"))?;
    usize::try_from(number)
        .ok()
        .filter(|&number| number < context.keys.databases().len())
        .ok_or(CommandError::DB_INDEX_OUT_OF_RANGE)
}

fn same_object() -> CommandError {
    CommandError::new("ERR source and destination objects are the same")
}

/// A copy of an entry under another key: with its value, version and deadline.
fn duplicate(entry: EntryRef<'_>, key: &[u8], access: u32) -> Entry {
    let header = Header { key, deadline_ms: entry.deadline_ms(), version: entry.version(), access };
    match entry.object() {
        Some(object) => Entry::with_object(header, Box::new(object.duplicate())),
        None => Entry::new(header, entry.encoding(), &[entry.payload()]),
    }
}

fn copy(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (source, destination) = (args.at(1), args.at(2));
    let here = context.keys.selected();
    let mut there = here;
    let mut replace = false;
    let mut index = 3;
    while index < args.len() {
        if args.is(index, "replace") {
            replace = true;
            index += 1;
        } else if args.is(index, "db")
            && let Some(word) = args.get(index + 1)
        {
            there = parse_database(context, word)?;
            index += 2;
        } else {
            return Err(CommandError::SYNTAX);
        }
    }
    if here == there && source == destination {
        return Err(same_object());
    }
    let found = context.keys.find(source).is_some();
    context.keys.select(there);
    let copies = found && (replace || !context.keys.contains(destination));
    context.keys.select(here);
    let access = context.keys.new_access();
    let copied =
        if copies { context.keys.peek(source).map(|entry| duplicate(entry, destination, access)) } else { None };
    let changes = copied.is_some();
    if let Some(entry) = copied {
        context.keys.select(there);
        // What was there goes first: as in Redis, the copy is a new key.
        context.keys.remove(destination);
        context.keys.add(entry);
        context.keys.changed(Class::Generic, "copy_to", destination);
        context.keys.select(here);
    }
    context.reply.integer(changes.into());
    Ok(())
}

fn delete(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let mut removed = 0;
    for key in args.from(1).iter() {
        if context.keys.remove(key) {
            context.keys.changed(Class::Generic, "del", key);
            removed += 1;
        }
    }
    context.reply.integer(removed);
    Ok(())
}

fn exists(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let found = args.from(1).iter().filter(|key| context.keys.find_untouched(key).is_some()).count();
    context.reply.count(found);
    Ok(())
}

fn kind(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let kind = context.keys.find_untouched(args.at(1)).map_or("none", |entry| entry.kind().name());
    context.reply.simple(kind);
    Ok(())
}

fn touch(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let found = args.from(1).iter().filter(|key| context.keys.touch(key)).count();
    context.reply.count(found);
    Ok(())
}

fn rename(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, name) = (args.at(1), args.at(2));
    if context.keys.find_mut(key).is_none() {
        return Err(CommandError::NO_SUCH_KEY);
    }
    if key != name {
        give_name(context, key, name);
    }
    context.reply.ok();
    Ok(())
}

fn rename_if_free(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, name) = (args.at(1), args.at(2));
    if context.keys.find_mut(key).is_none() {
        return Err(CommandError::NO_SUCH_KEY);
    }
    let free = !context.keys.contains(name);
    if free {
        give_name(context, key, name);
    }
    context.reply.integer(free.into());
    Ok(())
}

/// Renames `key`; an entry called `name` goes.
fn give_name(context: &mut Context<'_>, key: &[u8], name: &[u8]) {
    if let Some(entry) = context.keys.take(key) {
        context.keys.remove(name);
        context.keys.add(entry.rename(name));
        context.keys.changed(Class::Generic, "rename_from", key);
        context.keys.changed(Class::Generic, "rename_to", name);
    }
}

fn move_key(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let here = context.keys.selected();
    let there = parse_database(context, args.at(2))?;
    if here == there {
        return Err(same_object());
    }
    let found = context.keys.find_mut(key).is_some();
    context.keys.select(there);
    let moves = found && !context.keys.contains(key);
    context.keys.select(here);
    if moves && let Some(entry) = context.keys.take(key) {
        context.keys.select(there);
        context.keys.add(entry);
        context.keys.select(here);
        context.keys.changed(Class::Generic, "move_from", key);
        context.keys.select(there);
        context.keys.changed(Class::Generic, "move_to", key);
        context.keys.select(here);
    }
    context.reply.integer(moves.into());
    Ok(())
}
