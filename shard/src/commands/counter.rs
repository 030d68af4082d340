//! Counters: strings that hold numbers.

use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::options::{TimeUnit, cap, creation_deadline, integer_at, positive_at};
use crate::commands::string::{check_unversioned, stored_integer, string_bytes};
use crate::context::Context;
use crate::entry::{Encoding, Entry, EntryRef, Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::keys::Keys;
use crate::number::{DecimalError, IntBuffer, add_decimal};

const UPDATE: KeyFlags = KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE);

const fn spec(
    name: &'static str,
    arity: i32,
    keys: &'static [KeySpec],
    since: &'static str,
    summary: &'static str,
    syntax: &'static str,
) -> Spec {
    Spec {
        name,
        arity,
        flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST),
        keys,
        categories: Categories::STRING,
        group: Group::String,
        since,
        complexity: "O(1)",
        summary,
        syntax,
    }
}

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    Command {
        spec: spec(
            "incr",
            -2,
            &[KeySpec::one(1, UPDATE)],
            "1.0.0",
            "Adds one to an integer; a missing key counts as 0, and EX or PX is for a key created by the call.",
            "key [EX seconds | PX milliseconds]",
        ),
        run: incr,
    },
    Command {
        spec: spec(
            "decr",
            -2,
            &[KeySpec::one(1, UPDATE)],
            "1.0.0",
            "Subtracts one from an integer; a missing key counts as 0, and EX or PX is for a key created by the call.",
            "key [EX seconds | PX milliseconds]",
        ),
        run: decr,
    },
    Command {
        spec: spec(
            "incrby",
            -3,
            &[KeySpec::one(1, UPDATE)],
            "1.0.0",
            "Adds to an integer, unless the result would pass MAX; EX or PX is for a key created by the call.",
            "key increment [MAX cap] [EX seconds | PX milliseconds]",
        ),
        run: incrby,
    },
    Command {
        spec: spec(
            "decrby",
            -3,
            &[KeySpec::one(1, UPDATE)],
            "1.0.0",
            "Subtracts from an integer; a missing key counts as 0, and EX or PX is for a key created by the call.",
            "key decrement [EX seconds | PX milliseconds]",
        ),
        run: decrby,
    },
    Command {
        spec: spec(
            "incrbyfloat",
            -3,
            &[KeySpec::one(1, UPDATE)],
            "2.6.0",
            "Adds to a floating-point number; a missing key counts as 0, and EX or PX is for a key created by the call.",
            "key increment [EX seconds | PX milliseconds]",
        ),
        run: incrbyfloat,
    },
    Command {
        spec: spec(
            "take",
            3,
            &[KeySpec::one(1, UPDATE)],
            "0.1.0",
            "Subtracts from an integer only if it is at least as large; nil if not.",
            "key amount",
        ),
        run: take,
    },
    Command {
        spec: spec(
            "transfer",
            -4,
            &[KeySpec::one(1, UPDATE), KeySpec::one(2, UPDATE)],
            "0.1.0",
            "Moves an amount from one integer to another if the first holds it and the other stays within MAX; nil if not.",
            "source destination amount [MAX cap]",
        ),
        run: transfer,
    },
];

/// The integer of a string that may be changed in place.
#[inline]
fn counter_value(entry: EntryRef<'_>) -> Result<i64, CommandError> {
    check_unversioned(entry)?;
    stored_integer(entry)
}

/// What bounds an increment.
#[derive(Clone, Copy, Default)]
struct Bounds {
    /// The greatest result that is accepted; a result beyond it, or out of range, refuses the call.
    cap: Option<i64>,
    /// The deadline of a key that the call creates, in ms since the epoch.
    deadline_ms: Option<i64>,
}

impl Bounds {
    /// The sum, or `None` when the call is refused.
    #[inline]
    fn add(self, value: i64, delta: i64) -> Result<Option<i64>, CommandError> {
        match (value.checked_add(delta), self.cap) {
            (Some(sum), None) => Ok(Some(sum)),
            (sum, Some(cap)) => Ok(sum.filter(|sum| *sum <= cap)),
            (None, None) => Err(CommandError::OVERFLOW),
        }
    }
}

#[inline]
fn increment(context: &mut Context<'_>, key: &[u8], delta: i64, bounds: Bounds) -> CommandResult {
    let (sum, created) = if let Some(mut entry) = context.keys.find_mut_kind(key, Kind::String)? {
        let sum = bounds.add(counter_value(entry.view())?, delta)?;
        if let Some(sum) = sum {
            entry.set_integer(sum);
        }
        (sum, false)
    } else {
        let sum = bounds.add(0, delta)?;
        if let Some(sum) = sum {
            let access = context.keys.new_access();
            let header = Header { key, deadline_ms: bounds.deadline_ms, version: None, access };
            context.keys.add(Entry::with_integer(header, sum));
        }
        (sum, true)
    };
    match sum {
        Some(sum) => {
            announce(context.keys, "incrby", key, created && bounds.deadline_ms.is_some());
            context.reply.integer(sum);
        }
        None => context.reply.null(),
    }
    Ok(())
}

#[inline]
fn announce(keys: &mut Keys, event: &'static str, key: &[u8], with_deadline: bool) {
    keys.changed(Class::String, event, key);
    if with_deadline {
        keys.changed(Class::Generic, "expire", key);
    }
}

fn incr(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let deadline_ms = creation_deadline(args, 2, context.keys.now_ms(), "incr")?;
    increment(context, args.at(1), 1, Bounds { cap: None, deadline_ms })
}

fn decr(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let deadline_ms = creation_deadline(args, 2, context.keys.now_ms(), "decr")?;
    increment(context, args.at(1), -1, Bounds { cap: None, deadline_ms })
}

fn incrby(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let delta = integer_at(args, 2)?;
    let bounds = if args.len() == 3 { Bounds::default() } else { incrby_bounds(args, context.keys.now_ms())? };
    increment(context, args.at(1), delta, bounds)
}

/// The options of INCRBY, in any order, each once.
fn incrby_bounds(args: Args<'_>, now_ms: i64) -> Result<Bounds, CommandError> {
    let mut bounds = Bounds::default();
    if !args.is(3, "MAX") && !TimeUnit::from_word(args.at(3)).is_some_and(TimeUnit::is_relative) {
        // As in Redis, whose command takes no options.
        return Err(CommandError::wrong_arity("incrby"));
    }
    let mut index = 3;
    while index < args.len() {
        let argument = args.get(index + 1).ok_or(CommandError::SYNTAX)?;
        if bounds.cap.is_none() && args.is(index, "MAX") {
            bounds.cap = Some(integer_at(args, index + 1)?);
        } else if bounds.deadline_ms.is_none()
            && let Some(unit) = TimeUnit::from_word(args.at(index)).filter(|unit| unit.is_relative())
        {
            bounds.deadline_ms = Some(unit.deadline_ms(argument, now_ms, "incrby")?);
        } else {
            return Err(CommandError::SYNTAX);
        }
        index += 2;
    }
    Ok(bounds)
}

fn decrby(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let delta = integer_at(args, 2)?.checked_neg().ok_or(CommandError::new("ERR decrement would overflow"))?;
    let deadline_ms = creation_deadline(args, 3, context.keys.now_ms(), "decrby")?;
    increment(context, args.at(1), delta, Bounds { cap: None, deadline_ms })
}

fn incrbyfloat(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, delta) = (args.at(1), args.at(2));
    let deadline_ms = creation_deadline(args, 3, context.keys.now_ms(), "incrbyfloat")?;
    let (text, created) = if let Some(mut entry) = context.keys.find_mut_kind(key, Kind::String)? {
        check_unversioned(entry.view())?;
        let mut scratch = IntBuffer::new();
        let text = add_floats(string_bytes(entry.view(), &mut scratch), delta)?;
        entry.set_payload(Encoding::Bytes, &[&text]);
        (text, false)
    } else {
        let text = add_floats(b"0", delta)?;
        let access = context.keys.new_access();
        context.keys.add(Entry::new(Header { key, deadline_ms, version: None, access }, Encoding::Bytes, &[&text]));
        (text, true)
    };
    announce(context.keys, "incrbyfloat", key, created && deadline_ms.is_some());
    context.reply.bulk(&text);
    Ok(())
}

fn add_floats(current: &[u8], delta: &[u8]) -> Result<Vec<u8>, CommandError> {
    add_decimal(current, delta).map_err(|error| match error {
        DecimalError::CurrentNotFloat | DecimalError::IncrementNotFloat => CommandError::NOT_A_FLOAT,
        DecimalError::ResultNotFinite => CommandError::new("ERR increment would produce NaN or Infinity"),
    })
}

fn take(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let amount = positive_at(args, 2)?;
    let left = match context.keys.find_mut_kind(key, Kind::String)? {
        Some(mut entry) => {
            let held = counter_value(entry.view())?;
            // Both are positive from here on.
            let left = (held >= amount).then(|| held - amount);
            if let Some(left) = left {
                entry.set_integer(left);
            }
            left
        }
        None => None,
    };
    match left {
        Some(left) => {
            context.keys.changed(Class::String, "incrby", key);
            context.reply.integer(left);
        }
        None => context.reply.null(),
    }
    Ok(())
}

fn transfer(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (source, destination) = (args.at(1), args.at(2));
    let amount = positive_at(args, 3)?;
    let bounds = Bounds { cap: cap(args, 4)?.or(Some(i64::MAX)), deadline_ms: None };
    if source == destination {
        return Err(CommandError::new("ERR source and destination objects are the same"));
    }
    let Some(held) = peek_counter(context.keys, source)? else {
        context.reply.null_array();
        return Ok(());
    };
    let received = bounds.add(peek_counter(context.keys, destination)?.unwrap_or(0), amount)?;
    let Some(received) = received.filter(|_| held >= amount) else {
        context.reply.null_array();
        return Ok(());
    };
    let left = held - amount;
    set_counter(context.keys, source, left);
    set_counter(context.keys, destination, received);
    context.keys.changed(Class::String, "incrby", source);
    context.keys.changed(Class::String, "incrby", destination);
    context.reply.array(2);
    context.reply.integer(left);
    context.reply.integer(received);
    Ok(())
}

/// The value of a counter that is there.
fn peek_counter(keys: &mut Keys, key: &[u8]) -> Result<Option<i64>, CommandError> {
    match keys.peek(key) {
        Some(entry) if entry.kind() != Kind::String => Err(CommandError::WRONG_TYPE),
        Some(entry) => counter_value(entry).map(Some),
        None => Ok(None),
    }
}

/// Sets a counter that was checked, or creates it.
fn set_counter(keys: &mut Keys, key: &[u8], value: i64) {
    if let Some(mut entry) = keys.find_mut(key) {
        entry.set_integer(value);
    } else {
        let access = keys.new_access();
        keys.add(Entry::with_integer(Header { key, access, ..Header::default() }, value));
    }
}
