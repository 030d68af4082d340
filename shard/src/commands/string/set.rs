//! Setting strings: SET with its conditions, and its relatives.

use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::options::{Expiry, TimeUnit, integer_at};
use crate::commands::string::{count_read, new_string, overwrite, reply_string, stored_integer, string_equals};
use crate::context::Context;
use crate::entry::{Encoding, EntryRef, Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::keys::Keys;

const OVERWRITE: KeyFlags = KeyFlags::OVERWRITE.and(KeyFlags::UPDATE);
const INSERT: KeyFlags = KeyFlags::OVERWRITE.and(KeyFlags::INSERT);

/// The commands that set strings.
pub static COMMANDS: &[Command] = &[
    Command {
        spec: Spec {
            name: "set",
            arity: -3,
            flags: Flags::WRITE.and(Flags::DENY_OOM),
            keys: &[KeySpec::one(
                1,
                KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE).and(KeyFlags::VARIABLE_FLAGS),
            )],
            categories: Categories::STRING,
            group: Group::String,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Sets a key to a string, whatever it held before, if a condition holds.",
            syntax: "key value [NX | XX | IFEQ comparison | IFGT | IFLT] [GET] \
                     [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
        },
        run: set,
    },
    Command {
        spec: Spec {
            name: "setnx",
            arity: 3,
            flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST).and(Flags::DEPRECATED),
            keys: &[KeySpec::one(1, INSERT)],
            categories: Categories::STRING,
            group: Group::String,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Sets a key to a string only if the key is missing.",
            syntax: "key value",
        },
        run: setnx,
    },
    Command {
        spec: Spec {
            name: "setex",
            arity: 4,
            flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::DEPRECATED),
            keys: &[KeySpec::one(1, OVERWRITE)],
            categories: Categories::STRING,
            group: Group::String,
            since: "2.0.0",
            complexity: "O(1)",
            summary: "Sets a key to a string that expires after some seconds.",
            syntax: "key seconds value",
        },
        run: setex,
    },
    Command {
        spec: Spec {
            name: "psetex",
            arity: 4,
            flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::DEPRECATED),
            keys: &[KeySpec::one(1, OVERWRITE)],
            categories: Categories::STRING,
            group: Group::String,
            since: "2.6.0",
            complexity: "O(1)",
            summary: "Sets a key to a string that expires after some milliseconds.",
            syntax: "key milliseconds value",
        },
        run: psetex,
    },
    Command {
        spec: Spec {
            name: "mset",
            arity: -3,
            flags: Flags::WRITE.and(Flags::DENY_OOM),
            keys: &[KeySpec::to_end(1, 2, OVERWRITE)],
            categories: Categories::STRING,
            group: Group::String,
            since: "1.0.1",
            complexity: "O(N) where N is the number of keys.",
            summary: "Sets several keys to strings at once.",
            syntax: "key value [key value ...]",
        },
        run: mset,
    },
    Command {
        spec: Spec {
            name: "msetnx",
            arity: -3,
            flags: Flags::WRITE.and(Flags::DENY_OOM),
            keys: &[KeySpec::to_end(1, 2, INSERT)],
            categories: Categories::STRING,
            group: Group::String,
            since: "1.0.1",
            complexity: "O(N) where N is the number of keys.",
            summary: "Sets several keys to strings, but only if all of them are missing.",
            syntax: "key value [key value ...]",
        },
        run: msetnx,
    },
];

/// What must hold for SET to write.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Condition<'a> {
    #[default]
    None,
    Missing,
    Present,
    Equal(&'a [u8]),
    Greater,
    Less,
}

#[derive(Default)]
struct SetOptions<'a> {
    condition: Condition<'a>,
    get: bool,
    expiry: Expiry<'a>,
}

impl<'a> SetOptions<'a> {
    /// Reads the words behind the value.
    fn parse(args: Args<'a>) -> Result<SetOptions<'a>, CommandError> {
        let mut options = SetOptions::default();
        let mut index = 3;
        while index < args.len() {
            index += if args.is(index, "GET") {
                options.get = true;
                1
            } else if let Some((condition, words)) = Condition::parse(args, index) {
                // Repeating a condition is no contradiction, but a second comparison is.
                if options.condition != Condition::None && options.condition != condition {
                    return Err(CommandError::SYNTAX);
                }
                options.condition = condition;
                words
            } else {
                options.expiry.take(args, index).ok_or(CommandError::SYNTAX)?
            };
        }
        if options.expiry == Expiry::Persist { Err(CommandError::SYNTAX) } else { Ok(options) }
    }
}

impl<'a> Condition<'a> {
    /// The condition at word `index`, and how many words it has.
    fn parse(args: Args<'a>, index: usize) -> Option<(Condition<'a>, usize)> {
        const WORDS: [(&str, Condition<'static>); 4] = [
            ("NX", Condition::Missing),
            ("XX", Condition::Present),
            ("IFGT", Condition::Greater),
            ("IFLT", Condition::Less),
        ];
        if args.is(index, "IFEQ") {
            return Some((Condition::Equal(args.get(index + 1)?), 2));
        }
        WORDS.iter().find(|(word, _)| args.is(index, word)).map(|(_, condition)| (*condition, 1))
    }

    /// Whether the condition looks at the value that is there.
    fn compares(self) -> bool {
        !matches!(self, Condition::None | Condition::Missing | Condition::Present)
    }

    /// Whether it holds for a missing key.
    fn holds_for_missing(self) -> bool {
        !matches!(self, Condition::Present | Condition::Equal(_))
    }

    /// Whether it holds for a key that is there; `number` is the value to set where that must be an integer.
    fn holds_for(self, entry: EntryRef<'_>, number: i64) -> Result<bool, CommandError> {
        if self.compares() && entry.kind() != Kind::String {
            return Err(CommandError::WRONG_TYPE);
        }
        Ok(match self {
            Condition::None | Condition::Present => true,
            Condition::Missing => false,
            Condition::Equal(comparison) => string_equals(entry, comparison),
            Condition::Greater => number > stored_integer(entry)?,
            Condition::Less => number < stored_integer(entry)?,
        })
    }
}

fn set(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, value) = (args.at(1), args.at(2));
    let options = if args.len() == 3 { SetOptions::default() } else { SetOptions::parse(args)? };
    let condition = options.condition;
    let number = match condition {
        Condition::Greater | Condition::Less => integer_at(args, 2)?,
        _ => 0,
    };
    let new_deadline_ms = match options.expiry {
        Expiry::At(unit, time) => Some(unit.deadline_ms(time, context.keys.now_ms(), "set")?),
        _ => None,
    };
    let Some(mut entry) = context.keys.find_mut(key) else {
        let written = condition.holds_for_missing();
        if options.get {
            context.reply.null();
            count_read(context.keys, key, false);
        } else if written {
            context.reply.ok();
        } else {
            context.reply.null();
        }
        if written {
            add(context.keys, key, value, new_deadline_ms);
            announce(context.keys, key, new_deadline_ms.is_some());
        }
        return Ok(());
    };
    if options.get {
        if entry.view().kind() != Kind::String {
            return Err(CommandError::WRONG_TYPE);
        }
        reply_string(&mut context.reply, entry.view());
    }
    let written = condition.holds_for(entry.view(), number)?;
    if written {
        let deadline_ms = if options.expiry == Expiry::Keep { entry.view().deadline_ms() } else { new_deadline_ms };
        if entry.view().encoding() == Encoding::Object {
            drop(entry);
            store(context.keys, key, value, deadline_ms);
        } else {
            overwrite(&mut entry, value, deadline_ms, None);
            drop(entry);
        }
        announce(context.keys, key, new_deadline_ms.is_some());
    } else {
        drop(entry);
    }
    if options.get {
        count_read(context.keys, key, true);
    } else if written {
        context.reply.ok();
    } else {
        context.reply.null();
    }
    Ok(())
}

/// Tells that a string was set, and its deadline too where it got a new one.
#[inline]
fn announce(keys: &mut Keys, key: &[u8], with_deadline: bool) {
    keys.changed(Class::String, "set", key);
    if with_deadline {
        keys.changed(Class::Generic, "expire", key);
    }
}

/// Adds a missing key.
#[inline]
fn add(keys: &mut Keys, key: &[u8], value: &[u8], deadline_ms: Option<i64>) {
    let access = keys.new_access();
    keys.add(new_string(Header { key, deadline_ms, version: None, access }, value));
}

/// Sets a key to a plain string with just this deadline, whatever it held before.
pub(super) fn store(keys: &mut Keys, key: &[u8], value: &[u8], deadline_ms: Option<i64>) {
    let Some(mut entry) = keys.find_mut(key) else {
        return add(keys, key, value, deadline_ms);
    };
    if entry.view().encoding() == Encoding::Object {
        let access = entry.view().access();
        drop(entry);
        // The old value may be too large to be freed here and now.
        keys.put(new_string(Header { key, deadline_ms, version: None, access }, value));
    } else {
        overwrite(&mut entry, value, deadline_ms, None);
    }
}

fn setnx(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let missing = context.keys.find_mut(key).is_none();
    if missing {
        add(context.keys, key, args.at(2), None);
        announce(context.keys, key, false);
    }
    context.reply.integer(i64::from(missing));
    Ok(())
}

fn setex(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    set_expiring(context, args, TimeUnit::Seconds, "setex")
}

fn psetex(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    set_expiring(context, args, TimeUnit::Milliseconds, "psetex")
}

fn set_expiring(context: &mut Context<'_>, args: Args<'_>, unit: TimeUnit, command: &str) -> CommandResult {
    let key = args.at(1);
    let deadline_ms = unit.deadline_ms(args.at(2), context.keys.now_ms(), command)?;
    store(context.keys, key, args.at(3), Some(deadline_ms));
    announce(context.keys, key, true);
    context.reply.ok();
    Ok(())
}

/// The keys of MSET and MSETNX with their values.
fn pairs<'a>(args: Args<'a>, command: &str) -> Result<impl Iterator<Item = (&'a [u8], &'a [u8])>, CommandError> {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::wrong_arity(command));
    }
    Ok((1..args.len()).step_by(2).map(move |index| (args.at(index), args.at(index + 1))))
}

fn mset(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    for (key, value) in pairs(args, "mset")? {
        store(context.keys, key, value, None);
        announce(context.keys, key, false);
    }
    context.reply.ok();
    Ok(())
}

fn msetnx(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let missing = pairs(args, "msetnx")?.all(|(key, _)| !context.keys.contains(key));
    if missing {
        // A key named twice is there the second time.
        for (key, value) in pairs(args, "msetnx")? {
            store(context.keys, key, value, None);
            announce(context.keys, key, false);
        }
    }
    context.reply.integer(i64::from(missing));
    Ok(())
}
