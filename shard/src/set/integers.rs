//! A set of integers: one byte that tells the width of the integers (2, 4 or 8 bytes), then the integers in ascending
//! order, little-endian.

use std::cmp::Ordering;

use crate::entry::{Encoding, Entry};

/// The value of an empty set.
pub const EMPTY: &[u8] = &[2];

/// A view of a set of integers.
#[derive(Clone, Copy, Debug)]
pub struct Integers<'a> {
    bytes: &'a [u8],
    /// Binary logarithm of the width.
    shift: u32,
}

#[inline]
fn width_of(value: i64) -> usize {
    if i16::try_from(value).is_ok() {
        2
    } else if i32::try_from(value).is_ok() {
        4
    } else {
        8
    }
}

impl<'a> Integers<'a> {
    /// The integers in the payload of an entry with [`Encoding::IntegerSet`].
    #[inline]
    pub fn new(payload: &'a [u8]) -> Integers<'a> {
        Integers { bytes: &payload[1..], shift: payload[0].trailing_zeros() }
    }

    /// Bytes of each integer.
    #[inline]
    pub fn width_bytes(self) -> usize {
        1 << self.shift
    }

    /// Number of integers.
    #[inline]
    pub fn len(self) -> usize {
        self.bytes.len() >> self.shift
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// The `index`-th integer in ascending order. Panics past the end.
    #[inline]
    pub fn at(self, index: usize) -> i64 {
        let bytes = &self.bytes[index << self.shift..];
        match self.shift {
            1 => i64::from(i16::from_le_bytes([bytes[0], bytes[1]])),
            2 => i64::from(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
            _ => i64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")),
        }
    }

    /// Where `value` is, or else where it belongs.
    #[inline]
    pub fn search(self, value: i64) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.at(middle).cmp(&value) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// The integers in ascending order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = i64> + 'a {
        (0..self.len()).map(move |index| self.at(index))
    }
}

/// Adds `value` to an entry with [`Encoding::IntegerSet`]; whether it is new.
pub fn insert(entry: &mut Entry, value: i64) -> bool {
    let integers = Integers::new(entry.view().payload());
    let Err(index) = integers.search(value) else { return false };
    let (width, needed) = (integers.width_bytes(), width_of(value));
    if needed <= width {
        let at = 1 + index * width;
        entry.splice(at..at, &value.to_le_bytes()[..width]);
    } else {
        let mut payload = Vec::with_capacity(1 + (integers.len() + 1) * needed);
        payload.push(needed as u8);
        for present in integers.iter().take(index).chain([value]).chain(integers.iter().skip(index)) {
            payload.extend_from_slice(&present.to_le_bytes()[..needed]);
        }
        entry.set_payload(Encoding::IntegerSet, &[&payload]);
    }
    true
}

/// Removes the `index`-th integer from an entry with [`Encoding::IntegerSet`].
pub fn remove_at(entry: &mut Entry, index: usize) {
    let width = Integers::new(entry.view().payload()).width_bytes();
    let at = 1 + index * width;
    entry.splice(at..at + width, &[]);
}
