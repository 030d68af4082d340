//! A node of a large list: packed elements in a buffer that has room at whichever end it grows.

use std::ops::Range;

use super::buffer::Buffer;
use super::packed_form::copy_without;
use super::{End, Limit, Wanted, with_scratch};
use crate::packed;

/// Room of a node that begins to grow, in bytes.
const FIRST_ROOM: usize = 128;

/// Packed elements, at least one but while an operation is in progress.
///
/// Nodes within the limit are of at most 64 KiB; a larger one holds a single element and is never pushed to, so `spare`
/// fits its type.
#[derive(Clone, Default)]
pub(super) struct Node {
    /// The elements are what lies behind the first `spare` bytes.
    bytes: Buffer,
    spare: u32,
    count: u32,
}

impl Node {
    /// A node of `count` packed elements.
    pub(super) fn new(elements: &[u8], count: usize) -> Node {
        Node { bytes: Buffer::of(elements), spare: 0, count: count as u32 }
    }

    /// The elements.
    #[inline]
    pub(super) fn packed(&self) -> &[u8] {
        &self.bytes[self.spare as usize..]
    }

    /// Bytes of the elements.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.spare as usize
    }

    /// Number of elements.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    /// Bytes of memory the node's buffer takes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether `count` more elements of `len` bytes stay within the limit.
    #[inline]
    pub(super) fn admits(&self, len: usize, count: usize, limit: Limit) -> bool {
        limit.admits(self.len() + len, self.count() + count)
    }

    /// Adds one encoded element at an end. The buffer at least doubles when it grows, up to the limit, so that a push
    /// costs constant time on average.
    #[inline]
    pub(super) fn push(&mut self, end: End, encoded: &[u8], limit: Limit) {
        match end {
            End::Left => {
                if (self.spare as usize) < encoded.len() {
                    let front = self.room_for(encoded.len(), limit);
                    let back = (self.bytes.capacity() - self.bytes.len()).min(self.len());
                    self.rebuild(front, back);
                }
                let start = self.spare as usize - encoded.len();
                self.bytes[start..self.spare as usize].copy_from_slice(encoded);
                self.spare = start as u32;
            }
            End::Right => {
                if self.bytes.capacity() - self.bytes.len() < encoded.len() {
                    let front = (self.spare as usize).min(self.len());
                    self.rebuild(front, self.room_for(encoded.len(), limit));
                }
                self.bytes.extend_from_slice(encoded);
            }
        }
        self.count += 1;
    }

    /// The room to make at an end where `len` bytes are to be added.
    fn room_for(&self, len: usize, limit: Limit) -> usize {
        let least = self.len() + len;
        least.max((least * 2).max(FIRST_ROOM).min(limit.bytes)) - self.len()
    }

    /// Moves the elements to a new buffer with this much room at the ends.
    fn rebuild(&mut self, front: usize, back: usize) {
        let mut bytes = Buffer::with_capacity(front + self.len() + back);
        bytes.resize(front);
        bytes.extend_from_slice(self.packed());
        self.bytes = bytes;
        self.spare = front as u32;
    }

    /// Gives room back: the node is not expected to grow any more.
    pub(super) fn seal(&mut self) {
        if self.bytes.capacity() - self.len() > self.len() / 16 {
            self.rebuild(0, 0);
        }
    }

    /// Gives room back where most of the buffer is room.
    fn tighten(&mut self) {
        if self.bytes.capacity() > 4 * self.len() + FIRST_ROOM {
            self.rebuild(0, 0);
        }
    }

    /// Removes `count` elements, fewer than there are, from an end.
    pub(super) fn remove(&mut self, end: End, count: usize) {
        debug_assert!(count < self.count());
        let first_kept = match end {
            End::Left => count,
            End::Right => self.count() - count,
        };
        let Some((range, _)) = packed::get(self.packed(), first_kept, self.count()) else { return };
        match end {
            End::Left => self.spare += range.start as u32,
            End::Right => self.bytes.truncate(self.spare as usize + range.start),
        }
        self.count -= count as u32;
        self.tighten();
    }

    /// Puts `replacement` in the place of the bytes in `range`, which changes the number of elements to `count`.
    pub(super) fn splice(&mut self, range: Range<usize>, replacement: &[u8], count: usize) {
        let spare = self.spare as usize;
        let (start, end) = (spare + range.start, spare + range.end);
        let (old_len, new_end) = (self.bytes.len(), start + replacement.len());
        if new_end > end {
            self.bytes.resize(old_len + (new_end - end));
        }
        self.bytes.copy_within(end..old_len, new_end);
        if new_end < end {
            self.bytes.truncate(old_len - (end - new_end));
        }
        self.bytes[start..new_end].copy_from_slice(replacement);
        self.count = count as u32;
        self.tighten();
    }

    /// Splits the node before the element at offset `at`, the `index`-th; returns what was behind.
    pub(super) fn split_off(&mut self, at: usize, index: usize) -> Node {
        let behind = Node::new(&self.packed()[at..], self.count() - index);
        self.bytes.truncate(self.spare as usize + at);
        self.count = index as u32;
        self.seal();
        behind
    }

    /// Moves the elements of `other` behind the own ones.
    pub(super) fn append(&mut self, other: &Node) {
        if self.bytes.capacity() - self.bytes.len() < other.len() {
            self.rebuild(0, other.len());
        }
        self.bytes.extend_from_slice(other.packed());
        self.count += other.count;
    }

    /// Removes up to `most` elements that are `wanted`, the ones nearest to `from`; returns how many.
    pub(super) fn remove_matching(&mut self, wanted: Wanted<'_>, most: usize, from: End) -> usize {
        with_scratch(|kept| {
            let removed = copy_without(self.packed(), wanted, most, from, kept);
            if removed > 0 {
                *self = Node::new(kept, self.count() - removed);
            }
            removed
        })
    }
}
