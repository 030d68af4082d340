//! Strings as bitmaps and as rows of integers.

mod combine;
mod field;
mod search;
mod single;

use crate::command::{Categories, Command, Flags, Group, Handler, KeyFlags, KeySpec, Spec};
use crate::error::CommandError;
use crate::number::parse_i64;
use crate::settings::Settings;

const READ: &[KeySpec] = &[KeySpec::one(1, KeyFlags::READ.and(KeyFlags::ACCESS))];
const CHANGE: KeyFlags = KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE);
const WRITE_OOM: Flags = Flags::WRITE.and(Flags::DENY_OOM);
const READ_FAST: Flags = Flags::READ_ONLY.and(Flags::FAST);

/// What the commands of the family have in common.
const fn command(
    (name, arity, flags): (&'static str, i32, Flags),
    keys: &'static [KeySpec],
    since: &'static str,
    complexity: &'static str,
    summary: &'static str,
    syntax: &'static str,
    run: Handler,
) -> Command {
    let (categories, group) = (Categories::BITMAP, Group::Bitmap);
    Command { spec: Spec { name, arity, flags, keys, categories, group, since, complexity, summary, syntax }, run }
}

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    command(
        ("setbit", 4, WRITE_OOM),
        &[KeySpec::one(1, CHANGE)],
        "2.2.0",
        "O(1)",
        "Sets or clears a bit of a string and returns what it was. The string grows as needed.",
        "key offset value",
        single::setbit,
    ),
    command(
        ("getbit", 3, READ_FAST),
        READ,
        "2.2.0",
        "O(1)",
        "Returns a bit of a string.",
        "key offset",
        single::getbit,
    ),
    command(
        ("bitcount", -2, Flags::READ_ONLY),
        READ,
        "2.6.0",
        "O(N) where N is the number of bytes looked at.",
        "Counts the bits that are set in a string or in a part of it.",
        "key [start [end [BYTE | BIT]]]",
        search::bitcount,
    ),
    command(
        ("bitpos", -3, Flags::READ_ONLY),
        READ,
        "2.8.7",
        "O(N) where N is the number of bytes looked at.",
        "Finds the first bit that is set, or clear, in a string or in a part of it.",
        "key bit [start [end [BYTE | BIT]]]",
        search::bitpos,
    ),
    command(
        ("bitop", -4, WRITE_OOM),
        &[
            KeySpec::one(2, KeyFlags::OVERWRITE.and(KeyFlags::UPDATE)),
            KeySpec::to_end(3, 1, KeyFlags::READ.and(KeyFlags::ACCESS)),
        ],
        "2.6.0",
        "O(N) where N is the number of bytes of all inputs.",
        "Combines strings bit by bit and stores the result.",
        "<AND | OR | XOR | NOT> destkey key [key ...]",
        combine::bitop,
    ),
    command(
        ("bitfield", -2, WRITE_OOM),
        &[KeySpec::one(1, CHANGE.and(KeyFlags::VARIABLE_FLAGS))],
        "3.2.0",
        "O(1) for each operation.",
        "Reads, sets and adds to integers of any width at any bit of a string.",
        "key [<GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] \
         <SET encoding offset value | INCRBY encoding offset increment>> ...]",
        field::bitfield,
    ),
    command(
        ("bitfield_ro", -2, READ_FAST),
        READ,
        "6.0.0",
        "O(1) for each operation.",
        "Reads integers of any width at any bit of a string.",
        "key [GET encoding offset [GET encoding offset ...]]",
        field::bitfield_ro,
    ),
];

/// A bit's offset from the start of a string. With a `width`, `#n` is the place of the n-th field of that width.
fn bit_offset(word: &[u8], width: Option<u32>, settings: &Settings) -> Result<u64, CommandError> {
    let offset = match (word.strip_prefix(b"#"), width) {
        (Some(index), Some(width)) => parse_i64(index).and_then(|index| index.checked_mul(i64::from(width))),
        _ => parse_i64(word),
    };
    offset
        .and_then(|offset| u64::try_from(offset).ok())
        .filter(|offset| offset / 8 < settings.proto_max_bulk_len as u64)
        .ok_or(CommandError::new("ERR bit offset is not an integer or out of range"))
}
