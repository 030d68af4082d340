//! One bit: SETBIT and GETBIT.

use super::bit_offset;
use crate::args::Args;
use crate::bits;
use crate::commands::string::edit::{self, open_for_editing};
use crate::commands::string::{check_unversioned, string_bytes};
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::number::IntBuffer;

pub(super) fn setbit(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let offset = bit_offset(args.at(2), None, &context.keys.settings)?;
    let bit = match args.at(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err(CommandError::new("ERR bit is not an integer or out of range")),
    };
    let len = (offset / 8) as usize + 1;
    let (before, changed) = if let Some(mut entry) = context.keys.find_mut_kind(key, Kind::String)? {
        check_unversioned(entry.view())?;
        open_for_editing(&mut entry);
        let grown = edit::extend(&mut entry, len);
        let before = bits::set(entry.payload_mut(), offset, bit);
        (before, grown || before != bit)
    } else {
        let mut entry = edit::zeros(context.keys, key, len);
        bits::set(entry.payload_mut(), offset, bit);
        context.keys.add(entry);
        (false, true)
    };
    if changed {
        context.keys.changed(Class::String, "setbit", key);
    }
    context.reply.integer(i64::from(before));
    Ok(())
}

pub(super) fn getbit(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let offset = bit_offset(args.at(2), None, &context.keys.settings)?;
    let found = context.keys.find_kind(args.at(1), Kind::String)?;
    let bit = found.is_some_and(|entry| bits::get(string_bytes(entry, &mut IntBuffer::new()), offset));
    context.reply.integer(i64::from(bit));
    Ok(())
}
