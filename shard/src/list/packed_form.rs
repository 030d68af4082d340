//! The packed form inside an entry: a count of elements in two bytes and the elements.

use super::{Wanted, with_scratch};
use crate::entry::{Encoding, Entry, Header};
use crate::list::End;
use crate::packed::Elements;

/// Bytes of the count.
pub(super) const COUNT_BYTES: usize = 2;

/// The elements of a value, and how many they are.
#[inline]
pub(super) fn parts(payload: &[u8]) -> (usize, &[u8]) {
    match payload.split_first_chunk::<COUNT_BYTES>() {
        Some((count, elements)) => (u16::from_le_bytes(*count).into(), elements),
        None => (0, &[]),
    }
}

/// The stored form of a count, which the limits keep within two bytes.
#[inline]
pub(super) fn count_bytes(count: usize) -> [u8; COUNT_BYTES] {
    debug_assert!(count <= super::COUNT_MAX);
    (count as u16).to_le_bytes()
}

/// An entry with a list of nothing yet.
#[inline]
pub(super) fn new_entry(header: Header<'_>) -> Entry {
    Entry::new(header, Encoding::PackedList, &[&count_bytes(0)])
}

/// Replaces the value by `count` packed elements.
pub(super) fn store(entry: &mut Entry, count: usize, elements: &[u8]) {
    entry.set_payload(Encoding::PackedList, &[&count_bytes(count), elements]);
}

/// Puts packed elements in the place of those in `range` (which counts from the first element), after which the list
/// has `count` of them.
#[inline]
pub(super) fn splice(entry: &mut Entry, range: std::ops::Range<usize>, elements: &[u8], count: usize) {
    entry.payload_mut()[..COUNT_BYTES].copy_from_slice(&count_bytes(count));
    entry.splice(range.start + COUNT_BYTES..range.end + COUNT_BYTES, elements);
}

/// Removes up to `most` elements that are `wanted`, the ones nearest to `from`; returns how many.
pub(super) fn remove_matching(entry: &mut Entry, wanted: Wanted<'_>, most: usize, from: End) -> usize {
    with_scratch(|kept| {
        let (count, elements) = parts(entry.view().payload());
        let removed = copy_without(elements, wanted, most, from, kept);
        if removed > 0 {
            store(entry, count - removed, kept);
        }
        removed
    })
}

/// Appends packed `elements` to `kept`, all but up to `most` that are `wanted`, the ones nearest to `from`; returns how
/// many those are. Where there are none, nothing is appended.
pub(super) fn copy_without(elements: &[u8], wanted: Wanted<'_>, most: usize, from: End, kept: &mut Vec<u8>) -> usize {
    let matches = || Elements::new(elements).filter(|(_, element)| wanted.is(*element));
    let (skip, removed) = match from {
        End::Left => (0, matches().take(most).count()),
        End::Right => {
            let found = matches().count();
            (found.saturating_sub(most), found.min(most))
        }
    };
    if removed == 0 {
        return 0;
    }
    let mut copied = 0;
    for (position, _) in matches().skip(skip).take(removed) {
        kept.extend_from_slice(&elements[copied..position.start]);
        copied = position.end;
    }
    kept.extend_from_slice(&elements[copied..]);
    removed
}
