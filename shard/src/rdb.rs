//! Redis's RDB format for one value, reading and writing, with the envelope that `DUMP` puts around it.
//!
//! A value is a type byte and what that type has. Read are all forms that Redis 2.6 to 7.4 (RDB versions 6 to 12) write
//! for strings, lists, sets, sorted sets and hashes; written are those that Redis 7.0 (version 10) and later read. The
//! format is described in Redis's `rdb.h`, `ziplist.c`, `zipmap.c`, `listpack.c`, `intset.c` and `quicklist.c`.
//!
//! Bytes to be read are trusted in nothing: every length, count and order is checked, as Redis does with
//! `sanitize-dump-payload yes`; what is not as Redis would have written it is [`LoadError::Damaged`]. Nothing is
//! allocated on the word of a length alone. The most that a payload can grow is what LZF allows, 88 times.
//!
//! What has no place in Redis's format:
//!
//! - A versioned string (`SETV`) is written as the plain string it is to a reader of Redis; the version stays behind.
//! - The state of a rate limiter has the type byte [`TYPE_LIMIT`], which Redis refuses as it refuses every type it does
//!   not know. Behind it stands an RDB string: one byte for the mode (1 fixed window, 2 sliding window, 3 token bucket)
//!   and the state as an entry holds it. Its deadline is part of the state and travels where deadlines of other keys do,
//!   outside of the value; a limiter restored with a time to live goes on as if no time had passed.

mod containers;
mod envelope;
mod load;
mod lzf;
mod reader;
mod save;
#[cfg(test)]
mod tests;

use std::fmt;

pub use envelope::{Checksum, VERSION_READ, VERSION_WRITTEN, close, dump, open, restore};
pub use load::load;
pub use reader::{Reader, Text};
pub use save::{save_length, save_string, save_value, save_value_plainly, value_type};

/// A string.
pub const TYPE_STRING: u8 = 0;
/// A list, element by element.
pub const TYPE_LIST: u8 = 1;
/// A set, member by member.
pub const TYPE_SET: u8 = 2;
/// A sorted set, member by member, with scores in decimal.
pub const TYPE_SORTED_SET: u8 = 3;
/// A hash, field by field.
pub const TYPE_HASH: u8 = 4;
/// A sorted set, member by member, with scores in binary.
pub const TYPE_SORTED_SET_2: u8 = 5;
/// A module's value, of before Redis 4.0.
pub const TYPE_MODULE: u8 = 6;
/// A module's value.
pub const TYPE_MODULE_2: u8 = 7;
/// A hash in a zipmap.
pub const TYPE_HASH_ZIPMAP: u8 = 9;
/// A list in a ziplist.
pub const TYPE_LIST_ZIPLIST: u8 = 10;
/// A set of integers.
pub const TYPE_SET_INTSET: u8 = 11;
/// A sorted set in a ziplist.
pub const TYPE_SORTED_SET_ZIPLIST: u8 = 12;
/// A hash in a ziplist.
pub const TYPE_HASH_ZIPLIST: u8 = 13;
/// A list in ziplists.
pub const TYPE_LIST_QUICKLIST: u8 = 14;
/// A stream, of Redis 5.
pub const TYPE_STREAM: u8 = 15;
/// A hash in a listpack.
pub const TYPE_HASH_LISTPACK: u8 = 16;
/// A sorted set in a listpack.
pub const TYPE_SORTED_SET_LISTPACK: u8 = 17;
/// A list in listpacks and single elements.
pub const TYPE_LIST_QUICKLIST_2: u8 = 18;
/// A stream, of Redis 7.0.
pub const TYPE_STREAM_2: u8 = 19;
/// A set in a listpack.
pub const TYPE_SET_LISTPACK: u8 = 20;
/// A stream, of Redis 7.2.
pub const TYPE_STREAM_3: u8 = 21;
/// A hash with deadlines of fields, field by field.
pub const TYPE_HASH_DEADLINES: u8 = 24;
/// A hash with deadlines of fields in a listpack.
pub const TYPE_HASH_LISTPACK_DEADLINES: u8 = 25;
/// Ruvio's own: the state of a rate limiter.
pub const TYPE_LIMIT: u8 = 200;

/// The node of a list that is one element.
const NODE_PLAIN: u64 = 1;
/// The node of a list that is a listpack.
const NODE_PACKED: u64 = 2;

/// Why a value cannot be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The bytes are no value as Redis would have written it.
    Damaged,
    /// The bytes hold something that there is no place for; what.
    Unsupported(&'static str),
    /// A limiter's state was to be loaded without a deadline.
    LimitWithoutDeadline,
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Damaged => formatter.write_str("Bad data format"),
            LoadError::Unsupported(what) => write!(formatter, "Bad data format: {what} are not supported"),
            LoadError::LimitWithoutDeadline => formatter.write_str("the state of a limiter needs a time to live"),
        }
    }
}

impl std::error::Error for LoadError {}
