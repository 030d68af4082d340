//! Integers within strings: BITFIELD and BITFIELD_RO.

use super::bit_offset;
use crate::args::Args;
use crate::bits::{FieldType, Overflow};
use crate::commands::options::integer_at;
use crate::commands::string::edit::{self, open_for_editing};
use crate::commands::string::{check_unversioned, string_bytes};
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::number::IntBuffer;
use crate::reply::Reply;
use crate::settings::Settings;

/// What is done with a field.
#[derive(Clone, Copy)]
enum Action {
    Get,
    Set { value: i64, overflow: Overflow },
    Add { increment: i64, overflow: Overflow },
}

/// One operation.
#[derive(Clone, Copy)]
struct Operation {
    action: Action,
    field: FieldType,
    offset: u64,
}

impl Operation {
    fn is_write(&self) -> bool {
        !matches!(self.action, Action::Get)
    }

    /// Carries the operation out and replies its result. What it writes must be within the string.
    fn run(&self, bytes: &mut [u8], reply: &mut Reply<'_>) -> Effect {
        let before = self.field.get(bytes, self.offset);
        let (after, shown) = match self.action {
            Action::Get => {
                reply.integer(before);
                return Effect::Nothing;
            }
            Action::Set { value, overflow } => (self.field.store(value, overflow), before),
            Action::Add { increment, overflow } => {
                let after = self.field.add(before, increment, overflow);
                (after, after.unwrap_or_default())
            }
        };
        let Some(after) = after else {
            reply.null();
            return Effect::Nothing;
        };
        reply.integer(shown);
        if after == before {
            return Effect::Rewritten;
        }
        self.field.set(bytes, self.offset, after);
        Effect::Changed
    }
}

/// What an operation did.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    /// It wrote nothing.
    Nothing,
    /// It wrote what was there.
    Rewritten,
    /// It wrote something else.
    Changed,
}

/// Parses the operations behind the key.
fn parse(args: Args<'_>, settings: &Settings) -> Result<Vec<Operation>, CommandError> {
    const UNKNOWN_TYPE: &str =
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";
    let mut operations = Vec::with_capacity(args.len() / 3);
    let mut overflow = Overflow::default();
    let mut index = 2;
    while index < args.len() {
        let left = args.len() - index - 1;
        if args.is(index, "overflow") && left >= 1 {
            overflow = if args.is(index + 1, "wrap") {
                Overflow::Wrap
            } else if args.is(index + 1, "sat") {
                Overflow::Saturate
            } else if args.is(index + 1, "fail") {
                Overflow::Fail
            } else {
                return Err(CommandError::new("ERR Invalid OVERFLOW type specified"));
            };
            index += 2;
            continue;
        }
        let words = if args.is(index, "get") && left >= 2 {
            3
        } else if (args.is(index, "set") || args.is(index, "incrby")) && left >= 3 {
            4
        } else {
            return Err(CommandError::SYNTAX);
        };
        let field = FieldType::parse(args.at(index + 1)).ok_or(CommandError::new(UNKNOWN_TYPE))?;
        let offset = bit_offset(args.at(index + 2), Some(field.width()), settings)?;
        let action = if words == 3 {
            Action::Get
        } else {
            let number = integer_at(args, index + 3)?;
            if args.is(index, "set") {
                Action::Set { value: number, overflow }
            } else {
                Action::Add { increment: number, overflow }
            }
        };
        operations.push(Operation { action, field, offset });
        index += words;
    }
    Ok(operations)
}

pub(super) fn bitfield(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let operations = parse(args, &context.keys.settings)?;
    let writes = operations.iter().filter(|operation| operation.is_write());
    match writes.map(|write| write.offset + u64::from(write.field.width())).max() {
        Some(end) => change(context, args.at(1), &operations, end.div_ceil(8) as usize),
        None => read(context, args.at(1), &operations),
    }
}

pub(super) fn bitfield_ro(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let operations = parse(args, &context.keys.settings)?;
    if operations.iter().any(Operation::is_write) {
        return Err(CommandError::new("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    read(context, args.at(1), &operations)
}

fn read(context: &mut Context<'_>, key: &[u8], operations: &[Operation]) -> CommandResult {
    let mut scratch = IntBuffer::new();
    let bytes = match context.keys.find_kind(key, Kind::String)? {
        Some(entry) => string_bytes(entry, &mut scratch),
        None => b"",
    };
    context.reply.array(operations.len());
    for operation in operations {
        context.reply.integer(operation.field.get(bytes, operation.offset));
    }
    Ok(())
}

/// Carries out operations that need a string of `len` bytes.
fn change(context: &mut Context<'_>, key: &[u8], operations: &[Operation], len: usize) -> CommandResult {
    let reply = &mut context.reply;
    let mut run = |bytes: &mut [u8]| {
        reply.array(operations.len());
        operations.iter().map(|operation| operation.run(bytes, reply)).max().unwrap_or(Effect::Nothing)
    };
    let (grown, effect) = if let Some(mut entry) = context.keys.find_mut_kind(key, Kind::String)? {
        check_unversioned(entry.view())?;
        open_for_editing(&mut entry);
        (edit::extend(&mut entry, len), run(entry.payload_mut()))
    } else {
        let mut entry = edit::zeros(context.keys, key, len);
        let effect = run(entry.payload_mut());
        context.keys.add(entry);
        (true, effect)
    };
    if effect == Effect::Changed || grown && effect == Effect::Rewritten {
        context.keys.changed(Class::String, "setbit", key);
    } else if grown {
        // Every write was refused, but the string was made long enough for it all the same.
        context.keys.changed_without_event(key);
    }
    Ok(())
}
