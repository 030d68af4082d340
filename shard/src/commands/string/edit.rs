//! Changing part of a string.

use std::borrow::Cow;

use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::options::integer_at;
use crate::commands::string::{check_unversioned, new_string, string_len};
use crate::context::Context;
use crate::entry::{Encoding, Entry, Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::keys::Keys;
use crate::number::IntBuffer;
use crate::settings::Settings;

/// The commands that change part of a string.
pub static COMMANDS: &[Command] = &[
    Command {
        spec: Spec {
            name: "append",
            arity: 3,
            flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::INSERT))],
            categories: Categories::STRING,
            group: Group::String,
            since: "2.0.0",
            complexity: "O(1), amortized: a growing string is given room in proportion to its length.",
            summary: "Appends bytes to a string, or creates it.",
            syntax: "key value",
        },
        run: append,
    },
    Command {
        spec: Spec {
            name: "setrange",
            arity: 4,
            flags: Flags::WRITE.and(Flags::DENY_OOM),
            keys: &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::UPDATE))],
            categories: Categories::STRING,
            group: Group::String,
            since: "2.2.0",
            complexity: "O(M) where M is the length of the value, and of the zero bytes in front of it.",
            summary: "Overwrites a string from an offset on; bytes missing before it become zero.",
            syntax: "key offset value",
        },
        run: setrange,
    },
];

/// The longest string that may come out of a change, in bytes.
fn longest(settings: &Settings) -> usize {
    // An entry stores lengths in 32 bits.
    settings.proto_max_bulk_len.min(u32::MAX as usize)
}

/// The sum of two lengths, unless a string may not be that long.
fn checked_length(len: usize, more: usize, longest: usize) -> Result<usize, CommandError> {
    len.checked_add(more).filter(|total| *total <= longest).ok_or(CommandError::STRING_TOO_LONG)
}

/// Makes a string one that is edited: bytes, whatever it was held as.
#[inline]
pub fn open_for_editing(entry: &mut Entry) {
    match entry.view().integer() {
        Some(value) => entry.set_payload(Encoding::EditedBytes, &[IntBuffer::new().format(value)]),
        None => entry.set_encoding(Encoding::EditedBytes),
    }
}

/// So many zero bytes.
fn zero_bytes(len: usize) -> Cow<'static, [u8]> {
    static ZEROS: [u8; 1024] = [0; 1024];
    match ZEROS.get(..len) {
        Some(zeros) => Cow::Borrowed(zeros),
        None => Cow::Owned(vec![0; len]),
    }
}

/// Appends zero bytes to an edited string of fewer than `len` bytes; whether it was one.
#[inline]
pub fn extend(entry: &mut Entry, len: usize) -> bool {
    let before = entry.view().payload().len();
    if before >= len {
        return false;
    }
    entry.splice(before..before, &zero_bytes(len - before));
    true
}

/// An edited string of `len` zero bytes, for a key that is not there.
pub fn zeros(keys: &Keys, key: &[u8], len: usize) -> Entry {
    let header = Header { key, access: keys.new_access(), ..Header::default() };
    Entry::new(header, Encoding::EditedBytes, &[&zero_bytes(len)])
}

fn append(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, value) = (args.at(1), args.at(2));
    let longest = longest(&context.keys.settings);
    let total = if let Some(mut entry) = context.keys.find_mut_kind(key, Kind::String)? {
        check_unversioned(entry.view())?;
        let len = string_len(entry.view());
        let total = checked_length(len, value.len(), longest)?;
        open_for_editing(&mut entry);
        entry.splice(len..len, value);
        total
    } else {
        let access = context.keys.new_access();
        context.keys.add(new_string(Header { key, access, ..Header::default() }, value));
        value.len()
    };
    context.keys.changed(Class::String, "append", key);
    context.reply.count(total);
    Ok(())
}

fn setrange(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, value) = (args.at(1), args.at(3));
    let offset = usize::try_from(integer_at(args, 2)?).map_err(|_| CommandError::OFFSET_OUT_OF_RANGE)?;
    let longest = longest(&context.keys.settings);
    let total = if let Some(mut entry) = context.keys.find_mut_kind(key, Kind::String)? {
        check_unversioned(entry.view())?;
        let len = string_len(entry.view());
        if value.is_empty() {
            context.reply.count(len);
            return Ok(());
        }
        let end = checked_length(offset, value.len(), longest)?;
        open_for_editing(&mut entry);
        write_range(&mut entry, len, offset, value);
        len.max(end)
    } else if value.is_empty() {
        context.reply.count(0);
        return Ok(());
    } else {
        let end = checked_length(offset, value.len(), longest)?;
        let header = Header { key, access: context.keys.new_access(), ..Header::default() };
        context.keys.add(Entry::new(header, Encoding::EditedBytes, &[&zero_bytes(offset), value]));
        end
    };
    context.keys.changed(Class::String, "setrange", key);
    context.reply.count(total);
    Ok(())
}

/// Writes `value` at `offset` into an edited string of `len` bytes.
fn write_range(entry: &mut Entry, len: usize, offset: usize, value: &[u8]) {
    let end = offset + value.len();
    if end <= len {
        entry.payload_mut()[offset..end].copy_from_slice(value);
        return;
    }
    extend(entry, offset);
    entry.splice(offset..len.max(offset), value);
}
