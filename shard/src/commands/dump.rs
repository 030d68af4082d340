//! Values as bytes: `DUMP` and `RESTORE`, in the format of Redis, see [`crate::rdb`].

use crate::access;
use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::options::integer_at;
use crate::context::Context;
use crate::entry::Header;
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::rdb;

const RESTORE: Spec = Spec {
    name: "restore",
    arity: -4,
    flags: Flags::WRITE.and(Flags::DENY_OOM),
    keys: &[KeySpec::one(1, KeyFlags::OVERWRITE.and(KeyFlags::UPDATE))],
    categories: Categories::KEYSPACE.and(Categories::DANGEROUS),
    group: Group::Generic,
    since: "2.6.0",
    complexity: "O(N) where N is the size of the value; O(N*log(N)) for a sorted set of N members",
    summary: "Makes a key of the bytes that DUMP gave for a value.",
    syntax: "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
};

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    Command {
        spec: Spec {
            name: "dump",
            arity: 2,
            flags: Flags::READ_ONLY,
            keys: &[KeySpec::one(1, KeyFlags::READ.and(KeyFlags::ACCESS))],
            categories: Categories::KEYSPACE,
            group: Group::Generic,
            since: "2.6.0",
            complexity: "O(N) where N is the size of the value",
            summary: "Returns the value of a key as bytes that RESTORE, here or in Redis, makes a key of.",
            syntax: "key",
        },
        run: dump,
    },
    Command { spec: RESTORE, run: restore },
    Command {
        spec: Spec {
            name: "restore-asking",
            flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::ASKING),
            group: Group::Server,
            since: "3.0.0",
            summary: "The same as RESTORE; nodes of a Redis Cluster use it to move keys.",
            ..RESTORE
        },
        run: restore,
    },
];

fn dump(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    match context.keys.find(args.at(1)) {
        Some(entry) => context.reply.bulk(&rdb::dump(entry)),
        None => context.reply.null(),
    }
    Ok(())
}

/// The options of `RESTORE`.
#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle_s: Option<u64>,
    frequency: Option<u8>,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Options, CommandError> {
        let mut options = Options::default();
        let mut index = 4;
        while index < args.len() {
            let has_value = index + 1 < args.len();
            if args.is(index, "replace") {
                options.replace = true;
            } else if args.is(index, "absttl") {
                options.absolute = true;
            } else if args.is(index, "idletime") && has_value && options.frequency.is_none() {
                index += 1;
                let idle_s = u64::try_from(integer_at(args, index)?)
                    .map_err(|_| CommandError::new("ERR Invalid IDLETIME value, must be >= 0"))?;
                options.idle_s = Some(idle_s);
            } else if args.is(index, "freq") && has_value && options.idle_s.is_none() {
                index += 1;
                let frequency = u8::try_from(integer_at(args, index)?)
                    .map_err(|_| CommandError::new("ERR Invalid FREQ value, must be >= 0 and <= 255"))?;
                options.frequency = Some(frequency);
            } else {
                return Err(CommandError::SYNTAX);
            }
            index += 1;
        }
        Ok(options)
    }
}

fn restore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, payload) = (args.at(1), args.at(3));
    let options = Options::parse(args)?;
    if !options.replace && context.keys.contains(key) {
        return Err(CommandError::BUSY_KEY);
    }
    let ttl_ms = integer_at(args, 2)?;
    if ttl_ms < 0 {
        return Err(CommandError::new("ERR Invalid TTL value, must be >= 0"));
    }
    let content =
        rdb::open(payload).ok_or_else(|| CommandError::new("ERR DUMP payload version or checksum are wrong"))?;
    let now_ms = context.keys.now_ms();
    let deadline_ms = match ttl_ms {
        0 => None,
        deadline_ms if options.absolute => Some(deadline_ms),
        ttl_ms => {
            let deadline_ms = now_ms.checked_add(ttl_ms);
            Some(deadline_ms.ok_or_else(|| CommandError::invalid_expire_time("restore"))?)
        }
    };
    let settings = &context.keys.settings;
    let access = access::imported(options.idle_s, options.frequency, now_ms, settings);
    let header = Header { key, deadline_ms, version: None, access };
    let entry = rdb::restore(content, header, settings).map_err(|error| CommandError::new(format!("ERR {error}")))?;
    if deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms) {
        context.keys.discard(entry);
        if context.keys.remove(key) {
            context.keys.changed(Class::Generic, "del", key);
        }
    } else {
        context.keys.put(entry);
        context.keys.changed(Class::Generic, "restore", key);
    }
    context.reply.ok();
    Ok(())
}
