//! Zipmaps, the packed form of hashes before Redis 2.6.
//!
//! ```text
//! number of fields (1; 254 where there are more), fields, 255
//! field: length (1, or 254 and 4), name, length (1, or 254 and 4), unused bytes (1), value, the unused bytes
//! ```

use super::super::LoadError::{self, Damaged};
use super::{END, Visit};
use crate::packed::Element;

/// With this byte four more tell a length, or there are too many fields to count.
const LONG: u8 = 254;

/// Visits names and values of a zipmap in turn.
pub fn walk_zipmap(bytes: &[u8], visit: &mut Visit<'_>) -> Result<(), LoadError> {
    let (&counted, body) = bytes.split_first().ok_or(Damaged)?;
    let (&end, mut rest) = body.split_last().ok_or(Damaged)?;
    let mut count = 0_usize;
    while !rest.is_empty() {
        let name = take_length(&mut rest)?;
        let name = take(&mut rest, name)?;
        let value = take_length(&mut rest)?;
        let unused = take(&mut rest, 1)?[0];
        let value = take(&mut rest, value)?;
        take(&mut rest, unused.into())?;
        visit(Element::Bytes(name))?;
        visit(Element::Bytes(value))?;
        count += 1;
    }
    if end != END || (counted < LONG && usize::from(counted) != count) {
        return Err(Damaged);
    }
    Ok(())
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], LoadError> {
    let (taken, behind) = rest.split_at_checked(len).ok_or(Damaged)?;
    *rest = behind;
    Ok(taken)
}

fn take_length(rest: &mut &[u8]) -> Result<usize, LoadError> {
    match take(rest, 1)?[0] {
        END => Err(Damaged),
        LONG => {
            let long = take(rest, 4)?;
            Ok(u32::from_le_bytes([long[0], long[1], long[2], long[3]]) as usize)
        }
        short => Ok(short.into()),
    }
}
