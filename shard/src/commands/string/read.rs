//! Reading strings.

use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::options::integer_at;
use crate::commands::string::{reply_string, string_bytes, string_len};
use crate::context::Context;
use crate::entry::Kind;
use crate::error::CommandResult;
use crate::number::IntBuffer;

const READ: KeyFlags = KeyFlags::READ.and(KeyFlags::ACCESS);

/// The commands that read strings.
pub static COMMANDS: &[Command] = &[
    Command {
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
    },
    Command {
        spec: Spec {
            name: "mget",
            arity: -2,
            flags: Flags::READ_ONLY.and(Flags::FAST),
            keys: &[KeySpec::to_end(1, 1, READ)],
            categories: Categories::STRING,
            group: Group::String,
            since: "1.0.0",
            complexity: "O(N) where N is the number of keys.",
            summary: "Returns the string values of several keys, nil for each that is missing or no string.",
            syntax: "key [key ...]",
        },
        run: mget,
    },
    Command {
        spec: Spec {
            name: "strlen",
            arity: 2,
            flags: Flags::READ_ONLY.and(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::READ)],
            categories: Categories::STRING,
            group: Group::String,
            since: "2.2.0",
            complexity: "O(1)",
            summary: "Returns the length of a string in bytes, 0 for a missing key.",
            syntax: "key",
        },
        run: strlen,
    },
    Command {
        spec: Spec {
            name: "getrange",
            arity: 4,
            flags: Flags::READ_ONLY,
            keys: &[KeySpec::one(1, READ)],
            categories: Categories::STRING,
            group: Group::String,
            since: "2.4.0",
            complexity: "O(N) where N is the number of bytes returned.",
            summary: "Returns the bytes of a string between two offsets, both included.",
            syntax: "key start end",
        },
        run: getrange,
    },
    Command {
        spec: Spec {
            name: "substr",
            arity: 4,
            flags: Flags::READ_ONLY.and(Flags::DEPRECATED),
            keys: &[KeySpec::one(1, READ)],
            categories: Categories::STRING,
            group: Group::String,
            since: "1.0.0",
            complexity: "O(N) where N is the number of bytes returned.",
            summary: "Returns the bytes of a string between two offsets; the older name of GETRANGE.",
            syntax: "key start end",
        },
        run: getrange,
    },
];

fn get(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    match context.keys.find_kind(args.at(1), Kind::String)? {
        Some(entry) => reply_string(&mut context.reply, entry),
        None => context.reply.null(),
    }
    Ok(())
}

fn mget(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    context.reply.array(args.len() - 1);
    for key in args.from(1).iter() {
        match context.keys.find(key) {
            Some(entry) if entry.kind() == Kind::String => reply_string(&mut context.reply, entry),
            _ => context.reply.null(),
        }
    }
    Ok(())
}

fn strlen(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let len = context.keys.find_kind(args.at(1), Kind::String)?.map_or(0, string_len);
    context.reply.count(len);
    Ok(())
}

fn getrange(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (start, end) = (integer_at(args, 2)?, integer_at(args, 3)?);
    match context.keys.find_kind(args.at(1), Kind::String)? {
        Some(entry) => {
            let mut scratch = IntBuffer::new();
            let bytes = string_bytes(entry, &mut scratch);
            context.reply.bulk(byte_range(bytes, start, end));
        }
        None => context.reply.bulk(b""),
    }
    Ok(())
}

/// The bytes from `start` to `end`, both included and negative from the end.
///
/// As in Redis, an end before the first byte still means the first byte, unless both are negative and crossed.
fn byte_range(bytes: &[u8], start: i64, end: i64) -> &[u8] {
    if bytes.is_empty() || (start < 0 && end < 0 && start > end) {
        return b"";
    }
    let len = bytes.len() as i64;
    let from_front = |index: i64| if index < 0 { (len + index).max(0) } else { index };
    let (start, end) = (from_front(start), from_front(end).min(len - 1));
    if start > end { b"" } else { &bytes[start as usize..=end as usize] }
}
