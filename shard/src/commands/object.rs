//! What a value is like inside: `OBJECT …` and `MEMORY USAGE`.

use crate::access;
use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::context::Context;
use crate::entry::{Encoding, EntryRef};
use crate::error::{CommandError, CommandResult};
use crate::number;

/// Longest string that Redis calls `embstr`, in bytes.
const EMBSTR_LIMIT: usize = 44;

/// What the specifications of `OBJECT …` have in common.
const OBJECT: Spec = Spec {
    name: "",
    arity: 3,
    flags: Flags::READ_ONLY,
    keys: &[KeySpec::one(2, KeyFlags::READ)],
    categories: Categories::KEYSPACE,
    group: Group::Generic,
    since: "2.2.3",
    complexity: "O(1)",
    summary: "",
    syntax: "key",
};

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    Command {
        spec: Spec { name: "object|encoding", summary: "Tells how the value of a key is stored.", ..OBJECT },
        run: encoding,
    },
    Command {
        spec: Spec {
            name: "object|freq",
            since: "4.0.0",
            summary: "Tells how often a key is used, as the logarithmic counter that LFU eviction goes by.",
            ..OBJECT
        },
        run: frequency,
    },
    Command {
        spec: Spec {
            name: "object|idletime",
            summary: "Tells for how many seconds a key has not been used.",
            ..OBJECT
        },
        run: idle_time,
    },
    Command {
        spec: Spec {
            name: "object|refcount",
            summary: "Tells by how many keys the value of a key is held: always 1, since values are never shared.",
            ..OBJECT
        },
        run: reference_count,
    },
    Command {
        spec: Spec {
            name: "object|help",
            arity: 2,
            flags: Flags::LOADING.and(Flags::STALE),
            keys: &[],
            since: "6.2.0",
            summary: "Describes the subcommands.",
            syntax: "",
            ..OBJECT
        },
        run: help,
    },
    Command {
        spec: Spec {
            name: "memory|usage",
            arity: -3,
            categories: Categories::NONE,
            group: Group::Server,
            since: "4.0.0",
            complexity: "O(N) where N is the number of parts of a large collection",
            summary: "Tells how many bytes of memory a key and its value take.",
            syntax: "key [SAMPLES count]",
            ..OBJECT
        },
        run: usage,
    },
];

const HELP: [&str; 11] = [
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Tell how the value of <key> is stored.",
    "FREQ <key>",
    "    Tell the access counter of <key>, which rises with the logarithm of its uses.",
    "IDLETIME <key>",
    "    Tell for how many seconds <key> has not been used.",
    "REFCOUNT <key>",
    "    Tell by how many keys the value of <key> is held.",
    "HELP",
    "    Print this help.",
];

/// Redis's word for how a value is stored. The forms that are Ruvio's own have the word of the form that Redis would
/// use for the same value.
pub fn encoding_name(entry: EntryRef<'_>) -> &'static str {
    match entry.encoding() {
        Encoding::Bytes if entry.payload().len() <= EMBSTR_LIMIT => "embstr",
        Encoding::Bytes | Encoding::EditedBytes => "raw",
        Encoding::Int8 | Encoding::Int16 | Encoding::Int32 | Encoding::Int64 => "int",
        Encoding::PackedList | Encoding::PackedHash | Encoding::PackedSet | Encoding::PackedSortedSet => "listpack",
        Encoding::ExpiringHash => "listpackex",
        Encoding::IntegerSet => "intset",
        Encoding::FixedLimit | Encoding::SlidingLimit | Encoding::TokenLimit => "limit",
        Encoding::Object => entry.object().map_or("raw", |object| object.encoding_name()),
    }
}

fn encoding(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    match context.keys.find_untouched(args.at(2)) {
        Some(entry) => context.reply.bulk(encoding_name(entry).as_bytes()),
        None => context.reply.null(),
    }
    Ok(())
}

fn frequency(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let Some(stamp) = context.keys.find_untouched(args.at(2)).map(|entry| entry.access()) else {
        context.reply.null();
        return Ok(());
    };
    if !context.keys.settings.maxmemory_policy.is_lfu() {
        return Err(CommandError::new(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching \
             between policies at runtime LRU and LFU data will take some time to adjust.",
        ));
    }
    let counter = access::frequency(stamp, context.keys.now_ms(), &context.keys.settings);
    context.reply.integer(counter.into());
    Ok(())
}

fn idle_time(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let Some(stamp) = context.keys.find_untouched(args.at(2)).map(|entry| entry.access()) else {
        context.reply.null();
        return Ok(());
    };
    if context.keys.settings.maxmemory_policy.is_lfu() {
        return Err(CommandError::new(
            "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between \
             policies at runtime LRU and LFU data will take some time to adjust.",
        ));
    }
    let idle_s = access::idle_s(stamp, context.keys.now_ms());
    context.reply.integer(idle_s.into());
    Ok(())
}

fn reference_count(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    match context.keys.find_untouched(args.at(2)) {
        Some(_) => context.reply.integer(1),
        None => context.reply.null(),
    }
    Ok(())
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> CommandResult {
    context.reply.array(HELP.len());
    for line in HELP {
        context.reply.simple(line);
    }
    Ok(())
}

/// The answer counts every part of a value, so it holds for any number of samples.
fn usage(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let mut index = 3;
    while index < args.len() {
        let (true, Some(count)) = (args.is(index, "samples"), args.get(index + 1)) else {
            return Err(CommandError::SYNTAX);
        };
        if number::parse_i64(count).ok_or(CommandError::NOT_AN_INTEGER)? < 0 {
            return Err(CommandError::SYNTAX);
        }
        index += 2;
    }
    match context.keys.peek(args.at(2)) {
        Some(entry) => context.reply.count(entry.memory_bytes()),
        None => context.reply.null(),
    }
    Ok(())
}
