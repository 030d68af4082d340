//! Bits of byte strings. Bit 0 is the highest bit of the first byte, as in Redis.

mod field;

use std::ops::Range;

pub use field::{FieldType, Overflow};

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// How several strings become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combination {
    /// Bits that are set in all of them.
    And,
    /// Bits that are set in any of them.
    Or,
    /// Bits that are set in an odd number of them.
    Xor,
}

/// The bit at `offset`; bits behind the end are clear.
#[inline]
pub fn get(bytes: &[u8], offset: u64) -> bool {
    let byte = usize::try_from(offset / 8).ok().and_then(|index| bytes.get(index));
    byte.is_some_and(|byte| byte & mask(offset) != 0)
}

/// Sets the bit at `offset`, which must be within the string; what it was before.
#[inline]
pub fn set(bytes: &mut [u8], offset: u64, bit: bool) -> bool {
    let byte = &mut bytes[(offset / 8) as usize];
    let mask = mask(offset);
    let before = *byte & mask != 0;
    if bit {
        *byte |= mask;
    } else {
        *byte &= !mask;
    }
    before
}

/// The place of a bit in its byte.
#[inline]
fn mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

/// How many bits of a range within the string are set.
pub fn count(bytes: &[u8], range: Range<u64>) -> u64 {
    if range.is_empty() {
        return 0;
    }
    let last_bit = range.end - 1;
    let bytes = &bytes[(range.start / 8) as usize..=(last_bit / 8) as usize];
    let before = bytes[0] & !from_bit(range.start);
    let behind = bytes[bytes.len() - 1] & !up_to_bit(last_bit);
    count_all(bytes) - u64::from(before.count_ones()) - u64::from(behind.count_ones())
}

/// The bits of a byte from the one at `offset` on.
#[inline]
fn from_bit(offset: u64) -> u8 {
    0xff >> (offset % 8)
}

/// The bits of a byte up to the one at `offset`, which is among them.
#[inline]
fn up_to_bit(offset: u64) -> u8 {
    0xff << (7 - offset % 8)
}

/// How many bits are set.
fn count_all(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<WORD>();
    let in_words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    let in_rest: u32 = rest.iter().map(|byte| byte.count_ones()).sum();
    in_words + u64::from(in_rest)
}

/// The first bit of a range within the string that is `bit`.
pub fn find(bytes: &[u8], range: Range<u64>, bit: bool) -> Option<u64> {
    if range.is_empty() {
        return None;
    }
    // Looks for a bit that is set, in the string or in its complement.
    let flip = if bit { 0 } else { u64::MAX };
    let first = (range.start / 8) as usize;
    let bytes = &bytes[..=((range.end - 1) / 8) as usize];
    let head = (bytes[first] ^ flip as u8) & from_bit(range.start);
    let found = if head != 0 {
        first as u64 * 8 + u64::from(head.leading_zeros())
    } else {
        let start = first + 1;
        start as u64 * 8 + find_set(&bytes[start..], flip)?
    };
    (found < range.end).then_some(found)
}

/// The first bit that is set after every word was exchanged by `word ^ flip`.
fn find_set(bytes: &[u8], flip: u64) -> Option<u64> {
    let (words, rest) = bytes.as_chunks::<WORD>();
    if let Some(index) = words.iter().position(|word| u64::from_be_bytes(*word) != flip) {
        let word = u64::from_be_bytes(words[index]) ^ flip;
        return Some((index * WORD * 8) as u64 + u64::from(word.leading_zeros()));
    }
    let index = rest.iter().position(|byte| *byte != flip as u8)?;
    let byte = rest[index] ^ flip as u8;
    Some(((words.len() * WORD + index) * 8) as u64 + u64::from(byte.leading_zeros()))
}

/// Combines `result` with another string. The shorter one counts as if zero bytes followed it.
pub fn combine(result: &mut Vec<u8>, other: &[u8], combination: Combination) {
    let common = result.len().min(other.len());
    // Loops over both strings byte by byte, which compilers turn into loops over the widest words there are.
    let pairs = result.iter_mut().zip(other);
    match combination {
        Combination::And => {
            pairs.for_each(|(byte, other)| *byte &= other);
            result[common..].fill(0);
            result.resize(result.len().max(other.len()), 0);
        }
        Combination::Or => {
            pairs.for_each(|(byte, other)| *byte |= other);
            result.extend_from_slice(&other[common..]);
        }
        Combination::Xor => {
            pairs.for_each(|(byte, other)| *byte ^= other);
            result.extend_from_slice(&other[common..]);
        }
    }
}

/// Sets every bit that is clear and clears every other.
pub fn invert(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
}

#[cfg(test)]
mod tests;
