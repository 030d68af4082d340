//! Ziplists, the packed form of collections before Redis 7.
//!
//! ```text
//! length in bytes (4), offset of the last entry (4), number of entries (2), entries, 255
//! entry: length of the entry before (1, or 254 and 4), encoding, content
//! ```

use super::super::LoadError::{self, Damaged};
use super::{COUNT_UNKNOWN, END, Visit, signed};
use crate::packed::Element;

const HEADER: usize = 10;
/// With this byte four more tell the length of the entry before.
const LONG: u8 = 254;
const INT_16: u8 = 0xc0;
const INT_32: u8 = 0xd0;
const INT_64: u8 = 0xe0;
const INT_24: u8 = 0xf0;
const INT_8: u8 = 0xfe;

/// Visits the entries of a ziplist.
pub fn walk_ziplist(bytes: &[u8], visit: &mut Visit<'_>) -> Result<(), LoadError> {
    let (header, body) = bytes.split_first_chunk::<HEADER>().ok_or(Damaged)?;
    let (&end, entries) = body.split_last().ok_or(Damaged)?;
    let [l0, l1, l2, l3, t0, t1, t2, t3, c0, c1] = *header;
    if u32::from_le_bytes([l0, l1, l2, l3]) as usize != bytes.len() || end != END {
        return Err(Damaged);
    }
    let mut rest = entries;
    let (mut count, mut last_start, mut before) = (0_usize, HEADER, 0);
    while !rest.is_empty() {
        let start = bytes.len() - 1 - rest.len();
        let (element, len) = entry(rest, before)?;
        visit(element)?;
        rest = rest.get(len..).ok_or(Damaged)?;
        (count, last_start, before) = (count + 1, start, len);
    }
    let counted = u16::from_le_bytes([c0, c1]);
    if u32::from_le_bytes([t0, t1, t2, t3]) as usize != last_start
        || (counted != COUNT_UNKNOWN && usize::from(counted) != count)
    {
        return Err(Damaged);
    }
    Ok(())
}

/// The first entry of `bytes` and its length, where the entry before it has `before` bytes.
fn entry(bytes: &[u8], before: usize) -> Result<(Element<'_>, usize), LoadError> {
    let (&first, rest) = bytes.split_first().ok_or(Damaged)?;
    let (told, rest) = match first {
        ..LONG => (usize::from(first), rest),
        LONG => {
            let (told, rest) = rest.split_first_chunk().ok_or(Damaged)?;
            (u32::from_le_bytes(*told) as usize, rest)
        }
        END => return Err(Damaged),
    };
    if told != before {
        return Err(Damaged);
    }
    let (&encoding, rest) = rest.split_first().ok_or(Damaged)?;
    let string = |rest: &'_ [u8], len: usize| rest.split_at_checked(len).ok_or(Damaged).map(|(_, behind)| behind.len());
    let integer = |width: usize| {
        let (content, behind) = rest.split_at_checked(width).ok_or(Damaged)?;
        Ok((Element::Int(signed(content)), bytes.len() - behind.len()))
    };
    let (rest, len) = match encoding {
        0x00..0x40 => (rest, usize::from(encoding)),
        0x40..0x80 => {
            let (&low, rest) = rest.split_first().ok_or(Damaged)?;
            (rest, usize::from(encoding & 0x3f) << 8 | usize::from(low))
        }
        0x80..0xc0 => {
            let (len, rest) = rest.split_first_chunk().ok_or(Damaged)?;
            (rest, u32::from_be_bytes(*len) as usize)
        }
        INT_16 => return integer(2),
        INT_24 => return integer(3),
        INT_32 => return integer(4),
        INT_64 => return integer(8),
        INT_8 => return integer(1),
        // The integers 0 to 12, in the encoding itself.
        0xf1..=0xfd => return Ok((Element::Int(i64::from(encoding & 0xf) - 1), bytes.len() - rest.len())),
        _ => return Err(Damaged),
    };
    let behind = string(rest, len)?;
    Ok((Element::Bytes(&rest[..len]), bytes.len() - behind))
}
