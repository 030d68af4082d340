//! Where a value ends: what belongs to it, by its type, without a look into what it holds.

use std::io::Read;

use ruvio_shard::rdb;

use super::source::{Problem, Source};

/// The opcodes inside of what a module wrote.
const MODULE_END: u64 = 0;
const MODULE_SIGNED: u64 = 1;
const MODULE_UNSIGNED: u64 = 2;
const MODULE_FLOAT: u64 = 3;
const MODULE_DOUBLE: u64 = 4;
const MODULE_STRING: u64 = 5;

/// The name of the module type in a number: nine characters of six bits, and ten bits of a version.
const NAME_CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Why there is no place here for values of a type, if there is none.
pub fn foreign_kind(value_type: u8) -> Option<&'static str> {
    match value_type {
        rdb::TYPE_STREAM | rdb::TYPE_STREAM_2 | rdb::TYPE_STREAM_3 => Some("streams are not supported"),
        rdb::TYPE_MODULE_2 => Some("values of modules are not supported"),
        _ => None,
    }
}

/// Takes a value of the type.
pub fn take_value(source: &mut Source<impl Read>, value_type: u8) -> Result<(), Problem> {
    let offset = source.offset();
    match value_type {
        rdb::TYPE_STRING
        | rdb::TYPE_HASH_ZIPMAP
        | rdb::TYPE_LIST_ZIPLIST
        | rdb::TYPE_SET_INTSET
        | rdb::TYPE_SET_LISTPACK
        | rdb::TYPE_SORTED_SET_ZIPLIST
        | rdb::TYPE_SORTED_SET_LISTPACK
        | rdb::TYPE_HASH_ZIPLIST
        | rdb::TYPE_HASH_LISTPACK => source.string(),
        rdb::TYPE_LIST | rdb::TYPE_SET | rdb::TYPE_LIST_QUICKLIST => {
            let count = source.number()?;
            source.strings(count)
        }
        rdb::TYPE_HASH => times(source, |source| source.strings(2)),
        rdb::TYPE_SORTED_SET => times(source, |source| {
            source.string()?;
            // A score is text behind its length; the last three lengths stand for scores themselves.
            match source.byte()? {
                253..=255 => Ok(()),
                len => source.take(len.into()),
            }
        }),
        rdb::TYPE_SORTED_SET_2 => times(source, |source| {
            source.string()?;
            source.take(8)
        }),
        rdb::TYPE_LIST_QUICKLIST_2 => times(source, |source| {
            source.number()?;
            source.string()
        }),
        rdb::TYPE_HASH_DEADLINES => {
            source.take(8)?;
            times(source, |source| {
                source.number()?;
                source.strings(2)
            })
        }
        rdb::TYPE_HASH_LISTPACK_DEADLINES => {
            source.take(8)?;
            source.string()
        }
        rdb::TYPE_STREAM | rdb::TYPE_STREAM_2 | rdb::TYPE_STREAM_3 => take_stream(source, value_type),
        rdb::TYPE_MODULE_2 => {
            source.number()?;
            take_module_data(source)
        }
        rdb::TYPE_MODULE => {
            Err(Problem::at(offset, "a value of a module in the form of before Redis 4.0, which has no end"))
        }
        other => Err(Problem::at(offset, format!("there is no value type {other}"))),
    }
}

/// Takes a count, and so many times what `part` takes.
fn times<R: Read>(
    source: &mut Source<R>,
    mut part: impl FnMut(&mut Source<R>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let count = source.number()?;
    (0..count).try_for_each(|_| part(source))
}

fn take_numbers(source: &mut Source<impl Read>, count: usize) -> Result<(), Problem> {
    (0..count).try_for_each(|_| source.number().map(drop))
}

/// A stream: its nodes, its length and ids, its groups with what is pending and their consumers.
fn take_stream<R: Read>(source: &mut Source<R>, value_type: u8) -> Result<(), Problem> {
    /// Of an entry that is pending: an id in binary.
    const ID_BYTES: u64 = 16;
    const TIME_BYTES: u64 = 8;
    let is_second = value_type != rdb::TYPE_STREAM;
    times(source, |source| source.strings(2))?;
    // Length and last id; since the second form the first id, the largest deleted one, and how many were added.
    take_numbers(source, if is_second { 8 } else { 3 })?;
    times(source, |source| {
        source.string()?;
        take_numbers(source, if is_second { 3 } else { 2 })?;
        times(source, |source| {
            source.take(ID_BYTES + TIME_BYTES)?;
            source.number().map(drop)
        })?;
        times(source, |source| {
            source.string()?;
            source.take(if value_type == rdb::TYPE_STREAM_3 { 2 * TIME_BYTES } else { TIME_BYTES })?;
            times(source, |source| source.take(ID_BYTES))
        })
    })
}

/// What a module wrote, to its end.
pub fn take_module_data(source: &mut Source<impl Read>) -> Result<(), Problem> {
    loop {
        let offset = source.offset();
        match source.number()? {
            MODULE_END => return Ok(()),
            MODULE_SIGNED | MODULE_UNSIGNED => source.number().map(drop)?,
            MODULE_FLOAT => source.take(4)?,
            MODULE_DOUBLE => source.take(8)?,
            MODULE_STRING => source.string()?,
            other => return Err(Problem::at(offset, format!("no part of a module's data is of kind {other}"))),
        }
    }
}

/// The name of a module's type, by its number.
pub fn module_type_name(number: u64) -> String {
    let characters = (0..9).rev().map(|place| NAME_CHARACTERS[(number >> (10 + 6 * place)) as usize & 0x3f]);
    characters.map(char::from).collect()
}
