//! Strings: what their commands share. The commands are in a file a subject.

use crate::entry::{Encoding, Entry, EntryRef, Header};
use crate::error::CommandError;
use crate::keys::Keys;
use crate::number::{IntBuffer, decimal_len, parse_i64};
use crate::reply::Reply;

pub mod edit;
pub mod exchange;
pub mod lcs;
pub mod read;
pub mod set;

/// Replies a string entry as a bulk string.
#[inline]
pub fn reply_string(reply: &mut Reply<'_>, entry: EntryRef<'_>) {
    match entry.integer() {
        Some(value) => reply.bulk_integer(value),
        None => reply.bulk(entry.payload()),
    }
}

/// The bytes of a string entry; `scratch` is used where it is held as an integer.
#[inline]
pub fn string_bytes<'a>(entry: EntryRef<'a>, scratch: &'a mut IntBuffer) -> &'a [u8] {
    match entry.integer() {
        Some(value) => scratch.format(value),
        None => entry.payload(),
    }
}

/// Whether a string entry holds just these bytes.
#[inline]
pub fn string_equals(entry: EntryRef<'_>, bytes: &[u8]) -> bool {
    match entry.integer() {
        Some(value) => IntBuffer::new().format(value) == bytes,
        None => entry.payload() == bytes,
    }
}

/// The length of a string entry in bytes.
#[inline]
pub fn string_len(entry: EntryRef<'_>) -> usize {
    entry.integer().map_or_else(|| entry.payload().len(), decimal_len)
}

/// The integer that a string entry holds or spells.
///
/// # Errors
/// [`CommandError::NOT_AN_INTEGER`]
#[inline]
pub fn stored_integer(entry: EntryRef<'_>) -> Result<i64, CommandError> {
    entry.integer().or_else(|| parse_i64(entry.payload())).ok_or(CommandError::NOT_AN_INTEGER)
}

/// Refuses a versioned value, which nothing may change in place.
///
/// # Errors
/// [`CommandError::VERSIONED`]
#[inline]
pub fn check_unversioned(entry: EntryRef<'_>) -> Result<(), CommandError> {
    if entry.version().is_some() { Err(CommandError::VERSIONED) } else { Ok(()) }
}

/// A new string entry; a canonical integer is held as one.
#[inline]
pub fn new_string(header: Header<'_>, value: &[u8]) -> Entry {
    match parse_i64(value) {
        Some(integer) => Entry::with_integer(header, integer),
        None => Entry::new(header, Encoding::Bytes, &[value]),
    }
}

/// Makes `entry`, whatever it was but a large collection, a string with just this deadline and version. Where those
/// take no other room than before, and the value too, the block stays.
#[inline]
pub fn overwrite(entry: &mut Entry, value: &[u8], deadline_ms: Option<i64>, version: Option<i64>) {
    let header = entry.header();
    if header.deadline_ms.is_some() == deadline_ms.is_some() && header.version.is_some() == version.is_some() {
        if deadline_ms.is_some() {
            entry.set_deadline(deadline_ms);
        }
        match parse_i64(value) {
            Some(integer) => entry.set_integer(integer),
            None => entry.set_payload(Encoding::Bytes, &[value]),
        }
        if version.is_some() {
            entry.set_version(version);
        }
    } else {
        *entry = new_string(Header { deadline_ms, version, ..header }, value);
    }
}

/// Counts a look-up that found its key, or did not, for commands that read a value they also change.
#[inline]
pub fn count_read(keys: &mut Keys, key: &[u8], found: bool) {
    if found {
        keys.stats.hits += 1;
    } else {
        keys.count_miss(key);
    }
}
