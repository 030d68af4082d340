//! Redis's containers in one byte string: ziplist, listpack, zipmap and intset.
//!
//! Each is checked as a whole before it is walked, so a walk never ends in the middle.

use super::LoadError::{self, Damaged};
use crate::packed::{self, Element};

mod ziplist;
mod zipmap;

pub(super) use ziplist::walk_ziplist;
pub(super) use zipmap::walk_zipmap;

/// Bytes of a listpack before its elements: its length in bytes and the number of its elements.
const LISTPACK_HEADER: usize = 6;
/// The byte behind the last element of a container.
const END: u8 = 0xff;
/// A number of elements that does not fit its two bytes is not stored.
const COUNT_UNKNOWN: u16 = u16::MAX;

/// What is done with each element, in order.
pub(super) type Visit<'v> = dyn FnMut(Element<'_>) -> Result<(), LoadError> + 'v;

/// The packed elements of a listpack, and how many they are.
pub(super) fn listpack_elements(bytes: &[u8]) -> Result<(&[u8], usize), LoadError> {
    let (header, rest) = bytes.split_first_chunk::<LISTPACK_HEADER>().ok_or(Damaged)?;
    let [length @ .., count_low, count_high] = header;
    let count = u16::from_le_bytes([*count_low, *count_high]);
    let (&end, elements) = rest.split_last().ok_or(Damaged)?;
    if u32::from_le_bytes(*length) as usize != bytes.len() || end != END {
        return Err(Damaged);
    }
    let counted = packed::validate(elements).ok_or(Damaged)?;
    if count != COUNT_UNKNOWN && counted != usize::from(count) {
        return Err(Damaged);
    }
    Ok((elements, counted))
}

/// Visits the elements of a listpack.
pub(super) fn walk_listpack(bytes: &[u8], visit: &mut Visit<'_>) -> Result<(), LoadError> {
    let (elements, _) = listpack_elements(bytes)?;
    packed::Elements::new(elements).try_for_each(|(_, element)| visit(element))
}

/// Appends a listpack of `count` packed elements.
pub(super) fn write_listpack(elements: &[u8], count: usize, out: &mut Vec<u8>) {
    let length = LISTPACK_HEADER + elements.len() + 1;
    let length = u32::try_from(length).expect("packed values are bounded far below 4 GiB");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&u16::try_from(count).unwrap_or(COUNT_UNKNOWN).to_le_bytes());
    out.extend_from_slice(elements);
    out.push(END);
}

/// The width of an intset's integers in bytes, and these integers.
pub(super) fn intset_integers(bytes: &[u8]) -> Result<Vec<i64>, LoadError> {
    let (width, rest) = bytes.split_first_chunk::<4>().ok_or(Damaged)?;
    let (count, integers) = rest.split_first_chunk::<4>().ok_or(Damaged)?;
    let (width, count) = (u32::from_le_bytes(*width) as usize, u32::from_le_bytes(*count) as usize);
    if !matches!(width, 2 | 4 | 8) || count.checked_mul(width) != Some(integers.len()) {
        return Err(Damaged);
    }
    let integers: Vec<i64> = integers.chunks_exact(width).map(signed).collect();
    if integers.is_sorted_by(|one, next| one < next) { Ok(integers) } else { Err(Damaged) }
}

/// Appends an intset: `width` bytes for each integer, which are in ascending order.
pub(super) fn write_intset(width: usize, count: usize, integers: impl Iterator<Item = i64>, out: &mut Vec<u8>) {
    out.extend_from_slice(&(width as u32).to_le_bytes());
    out.extend_from_slice(&u32::try_from(count).expect("sets of integers are bounded").to_le_bytes());
    for integer in integers {
        out.extend_from_slice(&integer.to_le_bytes()[..width]);
    }
}

/// The integer in at most eight bytes, least significant first, its sign extended.
fn signed(bytes: &[u8]) -> i64 {
    let fill = if bytes.last().is_some_and(|byte| byte & 0x80 != 0) { u8::MAX } else { 0 };
    let mut value = [fill; 8];
    value[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(value)
}
