//! Combining strings bit by bit: BITOP.

use crate::args::Args;
use crate::bits::{self, Combination};
use crate::commands::string::string_bytes;
use crate::context::Context;
use crate::entry::{Encoding, Entry, Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::number::IntBuffer;

pub(super) fn bitop(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let combination = if args.is(1, "and") {
        Some(Combination::And)
    } else if args.is(1, "or") {
        Some(Combination::Or)
    } else if args.is(1, "xor") {
        Some(Combination::Xor)
    } else if args.is(1, "not") {
        None
    } else {
        return Err(CommandError::SYNTAX);
    };
    if combination.is_none() && args.len() > 4 {
        return Err(CommandError::new("ERR BITOP NOT must be called with a single source key."));
    }
    let mut result = Vec::new();
    for (index, source) in args.from(3).iter().enumerate() {
        let mut scratch = IntBuffer::new();
        let bytes = match context.keys.find_kind(source, Kind::String)? {
            Some(entry) => string_bytes(entry, &mut scratch),
            None => b"",
        };
        match combination {
            Some(combination) if index > 0 => bits::combine(&mut result, bytes, combination),
            _ => result.extend_from_slice(bytes),
        }
    }
    if combination.is_none() {
        bits::invert(&mut result);
    }
    let key = args.at(2);
    if !result.is_empty() {
        let header = Header { key, access: context.keys.new_access(), ..Header::default() };
        context.keys.put(Entry::new(header, Encoding::EditedBytes, &[&result]));
        context.keys.changed(Class::String, "set", key);
    } else if context.keys.remove(key) {
        context.keys.changed(Class::Generic, "del", key);
    }
    context.reply.count(result.len());
    Ok(())
}
