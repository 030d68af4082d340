//! From the bytes of an element to what it holds.

use super::Element;
use super::encode::backlen_len;

/// Largest integer which is its own header.
pub(super) const INT_7_MAX: i64 = 0x7f;
/// Header `10llllll`: string of up to 63 bytes.
pub(super) const STR_6: u8 = 0x80;
/// Header `110vvvvv` and one byte: integer of 13 bits, most significant byte first.
pub(super) const INT_13: u8 = 0xc0;
/// Header `1110llll` and one byte: string of up to 4095 bytes.
pub(super) const STR_12: u8 = 0xe0;
/// Header of a string whose length follows in four bytes, least significant first.
pub(super) const STR_32: u8 = 0xf0;
/// Headers of integers whose value follows, least significant byte first.
pub(super) const INT_16: u8 = 0xf1;
pub(super) const INT_24: u8 = 0xf2;
pub(super) const INT_32: u8 = 0xf3;
pub(super) const INT_64: u8 = 0xf4;

/// Largest lengths whose `backlen` takes one, two, three and four bytes.
pub(super) const BACKLEN_1_MAX: usize = 127;
pub(super) const BACKLEN_2_MAX: usize = (1 << 14) - 2;
pub(super) const BACKLEN_3_MAX: usize = (1 << 21) - 2;
pub(super) const BACKLEN_4_MAX: usize = (1 << 28) - 2;

/// The integer in at most eight little-endian bytes, its sign extended.
#[inline]
fn signed(bytes: &[u8]) -> i64 {
    let mut value = [0; 8];
    value[..bytes.len()].copy_from_slice(bytes);
    let unused_bits = 64 - 8 * bytes.len() as u32;
    (i64::from_le_bytes(value) << unused_bits) >> unused_bits
}

/// The length of header and content of the element at the beginning of `bytes`, or none where the header is unknown
/// or not complete. The content may reach past the end of `bytes`.
#[inline]
fn content_len(bytes: &[u8]) -> Option<u64> {
    let header = *bytes.first()?;
    Some(match header {
        ..STR_6 => 1,
        STR_6..INT_13 => 1 + u64::from(header & 0x3f),
        INT_13..STR_12 => 2,
        STR_12..STR_32 => 2 + (u64::from(header & 0xf) << 8 | u64::from(*bytes.get(1)?)),
        STR_32 => 5 + u64::from(u32::from_le_bytes(bytes.get(1..5)?.try_into().ok()?)),
        INT_16 => 3,
        INT_24 => 4,
        INT_32 => 5,
        INT_64 => 9,
        _ => return None,
    })
}

/// The element at `start` and the offset behind it.
#[inline]
pub(super) fn element_at(bytes: &[u8], start: usize) -> (Element<'_>, usize) {
    let rest = &bytes[start..];
    let header = rest[0];
    match header {
        ..STR_6 => (Element::Int(header.into()), start + 2),
        STR_6..INT_13 => {
            let len = 1 + usize::from(header & 0x3f);
            (Element::Bytes(&rest[1..len]), start + len + 1)
        }
        _ => wide_element(rest, start),
    }
}

fn wide_element(rest: &[u8], start: usize) -> (Element<'_>, usize) {
    let header = rest[0];
    let (element, len) = match header {
        INT_13..STR_12 => {
            // Shifted up, the sign bit of the thirteen is the sign bit of the sixteen.
            let shifted = u16::from_be_bytes([header, rest[1]]) << 3;
            (Element::Int(i64::from(shifted as i16 >> 3)), 2)
        }
        STR_12..STR_32 => {
            let len = 2 + (usize::from(header & 0xf) << 8 | usize::from(rest[1]));
            (Element::Bytes(&rest[2..len]), len)
        }
        STR_32 => {
            let len = 5 + u32::from_le_bytes([rest[1], rest[2], rest[3], rest[4]]) as usize;
            (Element::Bytes(&rest[5..len]), len)
        }
        INT_16 => (Element::Int(signed(&rest[1..3])), 3),
        INT_24 => (Element::Int(signed(&rest[1..4])), 4),
        INT_32 => (Element::Int(signed(&rest[1..5])), 5),
        INT_64 => (Element::Int(signed(&rest[1..9])), 9),
        _ => unreachable!("a validated sequence has known headers only"),
    };
    (element, start + len + backlen_len(len))
}

/// The offset behind the element at `start`.
#[inline]
pub(super) fn end_of(bytes: &[u8], start: usize) -> usize {
    let header = bytes[start];
    match header {
        ..STR_6 => start + 2,
        STR_6..INT_13 => start + usize::from(header & 0x3f) + 2,
        _ => wide_element(&bytes[start..], start).1,
    }
}

/// The start of the element which ends at `end`.
#[inline]
pub(super) fn start_of(bytes: &[u8], end: usize) -> usize {
    let mut offset = end - 1;
    let mut byte = bytes[offset];
    let mut len = usize::from(byte & 0x7f);
    let mut shift = 7;
    while byte & 0x80 != 0 {
        offset -= 1;
        byte = bytes[offset];
        len |= usize::from(byte & 0x7f) << shift;
        shift += 7;
    }
    offset - len
}

/// The element which ends at `end`, and its start.
#[inline]
pub(super) fn element_before(bytes: &[u8], end: usize) -> (Element<'_>, usize) {
    let start = start_of(bytes, end);
    (element_at(bytes, start).0, start)
}

/// Checks bytes of any origin and counts their elements.
///
/// None tells that they are no sequence: an unknown header, an element which reaches past the end, or a `backlen`
/// which is not the one of its element. Never panics.
pub fn validate(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    let mut count = 0;
    while !rest.is_empty() {
        let len = usize::try_from(content_len(rest)?).ok()?;
        let backlen = rest.get(len..)?.get(..backlen_len(len))?;
        if !is_backlen_of(backlen, len) {
            return None;
        }
        rest = &rest[len + backlen.len()..];
        count += 1;
    }
    Some(count)
}

fn is_backlen_of(backlen: &[u8], len: usize) -> bool {
    let mut told = 0;
    for (index, &byte) in backlen.iter().enumerate() {
        if (byte & 0x80 != 0) != (index > 0) {
            return false;
        }
        told = told << 7 | usize::from(byte & 0x7f);
    }
    told == len
}
