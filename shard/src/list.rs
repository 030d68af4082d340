//! List values: a packed sequence inside the entry, or a [`LargeList`] of packed nodes.
//!
//! The value of [`Encoding::PackedList`] is the number of elements in two bytes, least significant first, and the packed
//! elements. [`ListRef`] reads either form, [`ListMut`] changes it and moves it from one form to the other.

mod buffer;
mod edit;
mod large;
mod node;
mod packed_form;
mod read;
mod saving;

use std::cell::Cell;

use crate::entry::{Entry, Header, Kind};
use crate::error::CommandError;
use crate::keys::Keys;
use crate::packed::Element;
use crate::settings::Settings;

pub use edit::ListMut;
pub use large::LargeList;
pub use read::{ListRef, Walk};

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The head.
    Left,
    /// The tail.
    Right,
}

/// How large a packed sequence of elements may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    bytes: usize,
    count: usize,
}

/// Sizes in KiB for the settings -1 to -5.
const LEVELS_KIB: [usize; 5] = [4, 8, 16, 32, 64];
/// Bytes of a packed sequence where the setting limits the number of elements.
const COUNTED_BYTES_MAX: usize = 8 * 1024;
/// Elements of a packed sequence whatever the setting: their number is stored in two bytes.
const COUNT_MAX: usize = u16::MAX as usize;
/// Bytes that a listpack has beside its elements. They count for the choice of the form, which clients can see.
const LISTPACK_OVERHEAD: usize = 7;

impl Limit {
    /// What `list-max-listpack-size` allows.
    #[inline]
    pub fn of(settings: &Settings) -> Limit {
        match settings.list_max_listpack_size {
            size @ ..0 => {
                let level = usize::try_from(size.unsigned_abs() - 1).unwrap_or(usize::MAX).min(LEVELS_KIB.len() - 1);
                Limit { bytes: LEVELS_KIB[level] * 1024, count: COUNT_MAX }
            }
            size => Limit {
                bytes: COUNTED_BYTES_MAX,
                count: usize::try_from(size).unwrap_or(COUNT_MAX).clamp(1, COUNT_MAX),
            },
        }
    }

    #[inline]
    fn admits(self, bytes: usize, count: usize) -> bool {
        bytes <= self.bytes && count <= self.count
    }

    /// Below this a large list becomes packed again: far enough under the limit that it does not go to and fro.
    fn for_packing(self) -> Limit {
        if self.count == COUNT_MAX {
            Limit { bytes: self.bytes / 2, count: self.count }
        } else {
            Limit { bytes: self.bytes, count: self.count / 2 }
        }
    }
}

/// What elements are compared with.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    bytes: &'a [u8],
    integer: Option<i64>,
}

impl<'a> Wanted<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Wanted<'a> {
        Wanted { bytes, integer: crate::number::parse_i64(bytes) }
    }

    /// Whether `element`, which is packed, is the one wanted: canonical integers are never packed as strings.
    #[inline]
    pub(crate) fn is(self, element: Element<'_>) -> bool {
        match element {
            Element::Int(value) => self.integer == Some(value),
            Element::Bytes(bytes) => bytes == self.bytes,
        }
    }
}

/// A buffer that grew beyond this many bytes is not kept.
const SCRATCH_KEPT: usize = 128 * 1024;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Calls `work` with an empty buffer, the same one each time, so that encoding an element allocates nothing.
#[inline]
fn with_scratch<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    SCRATCH.with(|cell| {
        let mut scratch = cell.take();
        scratch.clear();
        let result = work(&mut scratch);
        if scratch.capacity() <= SCRATCH_KEPT {
            cell.set(scratch);
        }
        result
    })
}

/// Elements to be pushed, in the order in which they are.
pub trait NewElements<'e>: DoubleEndedIterator<Item = &'e [u8]> + ExactSizeIterator + Clone {}

impl<'e, I: DoubleEndedIterator<Item = &'e [u8]> + ExactSizeIterator + Clone> NewElements<'e> for I {}

/// Pushes `elements` one after the other to an end of the list at `key`, which is created where it is missing; returns
/// the list's length. The caller tells [`Keys::changed`]. Without elements nothing is done and 0 returned.
///
/// Fails with [`CommandError::WRONG_TYPE`] before anything is changed where the key holds another type.
#[inline]
pub fn push_all<'e>(
    keys: &mut Keys,
    key: &[u8],
    end: End,
    elements: impl NewElements<'e>,
) -> Result<usize, CommandError> {
    let limit = Limit::of(&keys.settings);
    if let Some(mut entry) = keys.find_mut_kind(key, Kind::List)? {
        return Ok(ListMut::new(&mut entry, limit).push(end, elements));
    }
    let len = elements.len();
    if len > 0 {
        let header = Header { key, access: keys.new_access(), ..Header::default() };
        keys.add(new_entry(header, limit, end, elements));
    }
    Ok(len)
}

/// [`push_all`] to the tail.
pub fn push_back_all<'e>(keys: &mut Keys, key: &[u8], elements: impl NewElements<'e>) -> Result<usize, CommandError> {
    push_all(keys, key, End::Right, elements)
}

/// An entry that holds a list of `elements`, pushed one after the other to `end`.
pub fn new_entry<'e>(header: Header<'_>, limit: Limit, end: End, elements: impl NewElements<'e>) -> Entry {
    let mut entry = packed_form::new_entry(header);
    ListMut::new(&mut entry, limit).push(end, elements);
    entry
}

#[cfg(test)]
mod tests;
