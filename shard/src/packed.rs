//! A sequence of small elements in one byte string.
//!
//! The elements have the byte format of Redis's listpack: a header which tells the type and length, the content, and
//! the length of both again (`backlen`) so that the sequence can be walked from its end. The listpack's six-byte header
//! and its end byte are not stored: a sequence is nothing but its elements, and their count is kept by its owner.
//! Strings which are canonical decimal integers are stored as integers.
//!
//! Bytes of foreign origin must pass [`validate`] before any other function here sees them: the others trust the
//! lengths they read and panic on malformed bytes.

mod decode;
mod encode;

use std::ops::Range;

pub use crate::number::IntBuffer;
pub use decode::validate;
pub use encode::{encode, encode_int, encoded_len};

use crate::number::{decimal_len, parse_i64, write_i64};
use decode::{element_at, element_before, end_of};
use encode::Encoded;

/// One element of a sequence: a string, or the integer whose decimal form is the string.
#[derive(Clone, Copy, Debug)]
pub enum Element<'a> {
    /// The string itself.
    Bytes(&'a [u8]),
    /// The string is the decimal form of this integer.
    Int(i64),
}

impl<'a> Element<'a> {
    /// Whether the element stands for the string `other`.
    #[inline]
    pub fn eq_bytes(&self, other: &[u8]) -> bool {
        match *self {
            Element::Bytes(bytes) => bytes == other,
            Element::Int(value) => parse_i64(other) == Some(value),
        }
    }

    /// The length in bytes of the string.
    #[inline]
    pub fn len(&self) -> usize {
        match *self {
            Element::Bytes(bytes) => bytes.len(),
            Element::Int(value) => decimal_len(value),
        }
    }

    /// Whether the string is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        matches!(self, Element::Bytes(bytes) if bytes.is_empty())
    }

    /// Appends the string.
    #[inline]
    pub fn write_to(&self, out: &mut Vec<u8>) {
        match *self {
            Element::Bytes(bytes) => out.extend_from_slice(bytes),
            Element::Int(value) => write_i64(value, out),
        }
    }

    /// The string, formatted into `scratch` where it is an integer.
    #[inline]
    pub fn as_bytes<'b>(&self, scratch: &'b mut IntBuffer) -> &'b [u8]
    where
        'a: 'b,
    {
        match *self {
            Element::Bytes(bytes) => bytes,
            Element::Int(value) => scratch.format(value),
        }
    }

    /// The integer whose canonical decimal form is the string, if there is one: see [`parse_i64`].
    #[inline]
    pub fn to_i64(&self) -> Option<i64> {
        match *self {
            Element::Bytes(bytes) => parse_i64(bytes),
            Element::Int(value) => Some(value),
        }
    }
}

/// Elements are equal where their strings are.
impl PartialEq for Element<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Element::Int(left), Element::Int(right)) => left == right,
            (element, Element::Bytes(bytes)) | (Element::Bytes(bytes), element) => element.eq_bytes(bytes),
        }
    }
}

impl Eq for Element<'_> {}

/// Where an element lies in its sequence, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset behind the last byte.
    pub end: usize,
}

impl Position {
    /// The bytes of the element, as edits take them.
    #[inline]
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// Iterator over the elements of a sequence and their positions, from either end.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    bytes: &'a [u8],
    /// What is left to walk.
    remaining: Position,
}

impl<'a> Elements<'a> {
    /// Walks all elements of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::within(bytes, 0..bytes.len())
    }

    /// Walks the elements between two element boundaries; positions count from the start of `bytes`.
    #[inline]
    pub fn within(bytes: &'a [u8], range: Range<usize>) -> Self {
        Self { bytes, remaining: Position { start: range.start, end: range.end } }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = (Position, Element<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining.start >= self.remaining.end {
            return None;
        }
        let start = self.remaining.start;
        let (element, end) = element_at(self.bytes, start);
        self.remaining.start = end;
        Some((Position { start, end }, element))
    }

    #[inline]
    fn nth(&mut self, count: usize) -> Option<Self::Item> {
        for _ in 0..count {
            if self.remaining.start >= self.remaining.end {
                return None;
            }
            self.remaining.start = end_of(self.bytes, self.remaining.start);
        }
        self.next()
    }
}

impl DoubleEndedIterator for Elements<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.remaining.start >= self.remaining.end {
            return None;
        }
        let end = self.remaining.end;
        let (element, start) = element_before(self.bytes, end);
        self.remaining.end = start;
        Some((Position { start, end }, element))
    }

    #[inline]
    fn nth_back(&mut self, count: usize) -> Option<Self::Item> {
        for _ in 0..count {
            if self.remaining.start >= self.remaining.end {
                return None;
            }
            self.remaining.end = decode::start_of(self.bytes, self.remaining.end);
        }
        self.next_back()
    }
}

impl std::iter::FusedIterator for Elements<'_> {}

#[inline]
fn as_range<'a>((position, element): (Position, Element<'a>)) -> (Range<usize>, Element<'a>) {
    (position.range(), element)
}

/// The element at `index` of a sequence of `count` elements, reached from the nearer end.
#[inline]
pub fn get(bytes: &[u8], index: usize, count: usize) -> Option<(Range<usize>, Element<'_>)> {
    let behind = count.checked_sub(index)?.checked_sub(1)?;
    let mut elements = Elements::new(bytes);
    if index <= behind { elements.nth(index) } else { elements.nth_back(behind) }.map(as_range)
}

/// The first element.
#[inline]
pub fn first(bytes: &[u8]) -> Option<(Range<usize>, Element<'_>)> {
    next_after(bytes, 0)
}

/// The last element.
#[inline]
pub fn last(bytes: &[u8]) -> Option<(Range<usize>, Element<'_>)> {
    before(bytes, bytes.len())
}

/// The element which starts at `end`, the end of the one before it (zero for the first).
#[inline]
pub fn next_after(bytes: &[u8], end: usize) -> Option<(Range<usize>, Element<'_>)> {
    Elements::within(bytes, end..bytes.len()).next().map(as_range)
}

/// The element which ends at `start`, the start of the one behind it (the length of the sequence for the last).
#[inline]
pub fn before(bytes: &[u8], start: usize) -> Option<(Range<usize>, Element<'_>)> {
    Elements::within(bytes, 0..start).next_back().map(as_range)
}

/// The first element equal to `wanted` among every `skip + 1`-th, beginning with the first.
///
/// With a `skip` of one this looks through the fields of a sequence of fields and values.
pub fn find(bytes: &[u8], wanted: &[u8], skip: usize) -> Option<Range<usize>> {
    match parse_i64(wanted) {
        Some(integer) => find_where(bytes, skip, |element| match element {
            Element::Int(value) => value == integer,
            Element::Bytes(content) => content == wanted,
        }),
        None => find_where(bytes, skip, |element| match element {
            Element::Int(_) => false,
            // Fields often share their length and beginning but rarely their end.
            Element::Bytes(content) => {
                content.len() == wanted.len() && content.last() == wanted.last() && content == wanted
            }
        }),
    }
}

#[inline(always)]
fn find_where(bytes: &[u8], skip: usize, matches: impl Fn(Element<'_>) -> bool) -> Option<Range<usize>> {
    let mut start = 0;
    while start < bytes.len() {
        let (element, mut end) = element_at(bytes, start);
        if matches(element) {
            return Some(start..end);
        }
        for _ in 0..skip {
            if end >= bytes.len() {
                return None;
            }
            end = end_of(bytes, end);
        }
        start = end;
    }
    None
}

/// Appends `element` to the sequence.
#[inline]
pub fn push_back(sequence: &mut Vec<u8>, element: &[u8]) {
    encode(element, sequence);
}

/// Puts `element` in front of the sequence.
#[inline]
pub fn push_front(sequence: &mut Vec<u8>, element: &[u8]) {
    replace(sequence, 0..0, element);
}

/// Removes the elements in `range`, which must begin and end at element boundaries.
#[inline]
pub fn remove(sequence: &mut Vec<u8>, range: Range<usize>) {
    sequence.drain(range);
}

/// Puts `element` where the elements in `range` were; an empty range inserts. The range must begin and end at element
/// boundaries.
pub fn replace(sequence: &mut Vec<u8>, range: Range<usize>, element: &[u8]) {
    let encoded = Encoded::new(element);
    let (old_len, new_len) = (sequence.len(), encoded.len());
    let new_end = range.start + new_len;
    if new_end > range.end {
        sequence.resize(old_len + (new_end - range.end), 0);
    }
    sequence.copy_within(range.end..old_len, new_end);
    if new_end < range.end {
        sequence.truncate(old_len - (range.end - new_end));
    }
    encoded.copy_to(&mut sequence[range.start..new_end]);
}

#[cfg(test)]
mod tests;
