//! From an entry of the keyspace to the bytes of its value, as Redis 7.0 and later read them.

use super::containers::{write_intset, write_listpack};
use super::reader::{ENCODED, INT_8, INT_16, INT_32, LENGTH_14, LENGTH_32, LENGTH_64, LZF};
use super::{NODE_PACKED, NODE_PLAIN, lzf};
use crate::entry::{Encoding, EntryRef};
use crate::hash::Hash;
use crate::list::ListRef;
use crate::number::{IntBuffer, parse_i64};
use crate::object::Object;
use crate::packed::{self, Element, Elements};
use crate::set::Integers;

/// Strings longer than this are compressed where that makes them shorter, in bytes.
const COMPRESSED_FROM: usize = 20;
/// The longest string that may be an integer of 32 bits, in bytes.
const INTEGER_MAX: usize = 11;
/// A listpack does not grow past this many bytes; a list's node that would is written as a plain one.
const LISTPACK_MAX: usize = 1 << 30;

pub(super) const LIMIT_FIXED: u8 = 1;
pub(super) const LIMIT_SLIDING: u8 = 2;
pub(super) const LIMIT_TOKENS: u8 = 3;

/// The type byte of what [`save_value`] writes for an entry.
pub fn value_type(entry: EntryRef<'_>) -> u8 {
    match entry.encoding() {
        Encoding::Bytes
        | Encoding::EditedBytes
        | Encoding::Int8
        | Encoding::Int16
        | Encoding::Int32
        | Encoding::Int64 => super::TYPE_STRING,
        Encoding::PackedList => super::TYPE_LIST_QUICKLIST_2,
        Encoding::PackedHash => super::TYPE_HASH_LISTPACK,
        Encoding::ExpiringHash => super::TYPE_HASH_DEADLINES,
        // Sets in listpacks came with Redis 7.2.
        Encoding::PackedSet => super::TYPE_SET,
        Encoding::IntegerSet => super::TYPE_SET_INTSET,
        Encoding::PackedSortedSet => super::TYPE_SORTED_SET_LISTPACK,
        Encoding::FixedLimit | Encoding::SlidingLimit | Encoding::TokenLimit => super::TYPE_LIMIT,
        Encoding::Object => match entry.object() {
            Some(Object::List(_)) => super::TYPE_LIST_QUICKLIST_2,
            Some(Object::Hash(large)) if large.with_deadline() > 0 => super::TYPE_HASH_DEADLINES,
            Some(Object::Hash(_)) => super::TYPE_HASH,
            Some(Object::Set(_)) => super::TYPE_SET,
            Some(Object::SortedSet(_)) => super::TYPE_SORTED_SET_2,
            None => unreachable!("the encoding says that there is an object"),
        },
    }
}

/// The version of the format that has a type.
pub fn version_of(value_type: u8) -> u16 {
    match value_type {
        super::TYPE_HASH_DEADLINES => 12,
        _ => super::envelope::VERSION_WRITTEN,
    }
}

/// Appends an entry's value; its type byte, [`value_type`], is not written.
pub fn save_value(entry: EntryRef<'_>, out: &mut Vec<u8>) {
    if value_type(entry) == super::TYPE_HASH_DEADLINES {
        return save_hash_with_deadlines(entry, out);
    }
    let payload = entry.payload();
    match entry.encoding() {
        Encoding::ExpiringHash => unreachable!("its type is written above"),
        Encoding::Bytes | Encoding::EditedBytes => save_string(payload, out),
        Encoding::Int8 | Encoding::Int16 | Encoding::Int32 | Encoding::Int64 => {
            save_integer(entry.integer().unwrap_or_default(), out);
        }
        Encoding::PackedList => {
            save_length(1, out);
            if let ListRef::Packed { elements, count } = ListRef::of(entry) {
                save_node(elements, count, out);
            }
        }
        Encoding::PackedHash | Encoding::PackedSortedSet => save_listpack(payload, Elements::new(payload).count(), out),
        Encoding::PackedSet => {
            save_length(Elements::new(payload).count() as u64, out);
            Elements::new(payload).for_each(|(_, member)| save_element(member, out));
        }
        Encoding::IntegerSet => {
            let integers = Integers::new(payload);
            let mut intset = Vec::with_capacity(payload.len() + 8);
            write_intset(integers.width_bytes(), integers.len(), integers.iter(), &mut intset);
            save_bytes(&intset, out);
        }
        Encoding::FixedLimit => save_limit(LIMIT_FIXED, payload, out),
        Encoding::SlidingLimit => save_limit(LIMIT_SLIDING, payload, out),
        Encoding::TokenLimit => save_limit(LIMIT_TOKENS, payload, out),
        Encoding::Object => {
            if let Some(object) = entry.object() {
                save_object(object, out);
            }
        }
    }
}

/// As [`save_value`], but a string is not compressed: that would take longer than to save it.
pub fn save_value_plainly(entry: EntryRef<'_>, out: &mut Vec<u8>) {
    match entry.encoding() {
        Encoding::Bytes | Encoding::EditedBytes => {
            let bytes = entry.payload();
            save_length(bytes.len() as u64, out);
            out.extend_from_slice(bytes);
        }
        _ => save_value(entry, out),
    }
}

/// A hash field by field, each deadline counted from the earliest one, and from 1.
fn save_hash_with_deadlines(entry: EntryRef<'_>, out: &mut Vec<u8>) {
    // Expired fields are saved too: whether they have is a matter of the time when the value is read.
    let hash = Hash::of(entry, i64::MIN);
    let (mut fields, mut earliest_ms) = (0, i64::MAX);
    hash.for_each_stored(|_, _, deadline_ms| {
        fields += 1;
        earliest_ms = earliest_ms.min(deadline_ms.unwrap_or(i64::MAX));
    });
    out.extend_from_slice(&earliest_ms.to_le_bytes());
    save_length(fields, out);
    hash.for_each_stored(|field, value, deadline_ms| {
        save_length(deadline_ms.map_or(0, |deadline_ms| deadline_ms.abs_diff(earliest_ms) + 1), out);
        save_element(field, out);
        save_element(value, out);
    });
}

fn save_object(object: &Object, out: &mut Vec<u8>) {
    match object {
        Object::List(list) => {
            save_length(list.nodes().count() as u64, out);
            list.nodes().for_each(|(elements, count)| save_node(elements, count, out));
        }
        Object::Hash(hash) => {
            save_length(hash.len() as u64, out);
            for field in hash.iter() {
                let (name, value) = field.parts();
                save_string(name, out);
                save_string(value, out);
            }
        }
        Object::Set(set) => {
            save_length(set.len() as u64, out);
            set.iter().for_each(|member| save_string(member, out));
        }
        Object::SortedSet(sorted_set) => {
            let mut scratch = IntBuffer::new();
            save_length(sorted_set.len() as u64, out);
            // From the last to the first, as Redis does: so a skip list takes each at its head.
            for (member, score) in sorted_set.members(0..sorted_set.len()).rev() {
                save_string(member.as_bytes(&mut scratch), out);
                out.extend_from_slice(&score.to_le_bytes());
            }
        }
    }
}

fn save_node(elements: &[u8], count: usize, out: &mut Vec<u8>) {
    match packed::first(elements) {
        Some((_, Element::Bytes(only))) if count == 1 && elements.len() > LISTPACK_MAX => {
            save_length(NODE_PLAIN, out);
            save_bytes(only, out);
        }
        _ => {
            save_length(NODE_PACKED, out);
            save_listpack(elements, count, out);
        }
    }
}

fn save_listpack(elements: &[u8], count: usize, out: &mut Vec<u8>) {
    let mut listpack = Vec::with_capacity(elements.len() + 7);
    write_listpack(elements, count, &mut listpack);
    save_bytes(&listpack, out);
}

fn save_limit(mode: u8, state: &[u8], out: &mut Vec<u8>) {
    let mut bytes = Vec::with_capacity(1 + state.len());
    bytes.push(mode);
    bytes.extend_from_slice(state);
    save_bytes(&bytes, out);
}

fn save_element(element: Element<'_>, out: &mut Vec<u8>) {
    match element {
        Element::Int(value) => save_integer(value, out),
        Element::Bytes(bytes) => save_string(bytes, out),
    }
}

/// Appends a length, or another number, in the variable form.
pub fn save_length(length: u64, out: &mut Vec<u8>) {
    match length {
        0..0x40 => out.push(length as u8),
        0x40..0x4000 => out.extend_from_slice(&[LENGTH_14 | (length >> 8) as u8, length as u8]),
        0x4000..=0xffff_ffff => {
            out.push(LENGTH_32);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
        _ => {
            out.push(LENGTH_64);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
}

/// Appends a string: as an integer where it is one of 32 bits, compressed where it is long and that helps.
pub fn save_string(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.len() <= INTEGER_MAX
        && let Some(value) = parse_i64(bytes)
    {
        return save_integer(value, out);
    }
    save_bytes(bytes, out);
}

/// Appends an integer as a string.
fn save_integer(value: i64, out: &mut Vec<u8>) {
    if let Ok(value) = i8::try_from(value) {
        out.push(ENCODED | INT_8);
        out.extend_from_slice(&value.to_le_bytes());
    } else if let Ok(value) = i16::try_from(value) {
        out.push(ENCODED | INT_16);
        out.extend_from_slice(&value.to_le_bytes());
    } else if let Ok(value) = i32::try_from(value) {
        out.push(ENCODED | INT_32);
        out.extend_from_slice(&value.to_le_bytes());
    } else {
        save_bytes(IntBuffer::new().format(value), out);
    }
}

/// Appends a string as bytes, compressed where it is long and that helps.
fn save_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.len() > COMPRESSED_FROM
        && let Some(compressed) = lzf::compress(bytes)
    {
        out.push(ENCODED | LZF);
        save_length(compressed.len() as u64, out);
        save_length(bytes.len() as u64, out);
        out.extend_from_slice(&compressed);
        return;
    }
    save_length(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}
