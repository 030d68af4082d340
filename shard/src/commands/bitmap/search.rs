//! Counting and finding bits: BITCOUNT and BITPOS.

use std::ops::Range;

use crate::args::Args;
use crate::bits;
use crate::commands::options::integer_at;
use crate::commands::string::string_bytes;
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::number::IntBuffer;

/// A part of a string as it was asked for: both ends are included, and count from the end where they are negative.
#[derive(Clone, Copy)]
struct Part {
    start: i64,
    end: Option<i64>,
    in_bits: bool,
}

impl Part {
    const WHOLE: Part = Part { start: 0, end: None, in_bits: false };

    /// Parses `[start [end [BYTE | BIT]]]`.
    fn parse(words: Args<'_>) -> Result<Part, CommandError> {
        if words.is_empty() {
            return Ok(Part::WHOLE);
        }
        if words.len() > 3 {
            return Err(CommandError::SYNTAX);
        }
        let start = integer_at(words, 0)?;
        let in_bits = words.is(2, "bit");
        if words.len() == 3 && !in_bits && !words.is(2, "byte") {
            return Err(CommandError::SYNTAX);
        }
        let end = if words.len() > 1 { Some(integer_at(words, 1)?) } else { None };
        Ok(Part { start, end, in_bits })
    }

    /// Both ends count from the string's end, and they are crossed.
    fn is_crossed(self) -> bool {
        self.start < 0 && self.end.is_some_and(|end| end < 0 && self.start > end)
    }

    /// The bits of the part of a string of `len` bytes.
    fn bits(self, len: usize) -> Range<u64> {
        // A string has fewer than 2^32 bytes, so nothing overflows here.
        let units = if self.in_bits { len as i64 * 8 } else { len as i64 };
        let from_front = |index: i64| if index < 0 { (units + index).max(0) } else { index };
        let start = from_front(self.start);
        let end = self.end.map_or(units, |end| from_front(end).min(units - 1) + 1);
        if start >= end {
            return 0..0;
        }
        let bits_a_unit = if self.in_bits { 1 } else { 8 };
        start as u64 * bits_a_unit..end as u64 * bits_a_unit
    }
}

pub(super) fn bitcount(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let part = Part::parse(args.from(2))?;
    let mut count = 0;
    if let Some(entry) = context.keys.find_kind(args.at(1), Kind::String)?
        && !part.is_crossed()
    {
        let mut scratch = IntBuffer::new();
        let bytes = string_bytes(entry, &mut scratch);
        count = bits::count(bytes, part.bits(bytes.len()));
    }
    context.reply.integer(count as i64);
    Ok(())
}

pub(super) fn bitpos(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let bit = match integer_at(args, 2)? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::new("ERR The bit argument must be 1 or 0.")),
    };
    let part = Part::parse(args.from(3))?;
    let position = match context.keys.find_kind(args.at(1), Kind::String)? {
        Some(entry) => {
            let mut scratch = IntBuffer::new();
            let bytes = string_bytes(entry, &mut scratch);
            let range = part.bits(bytes.len());
            // Where no end is given the string is taken to go on with clear bits, unless the part is empty.
            let behind = (!bit && part.end.is_none() && !range.is_empty()).then_some(range.end);
            bits::find(bytes, range, bit).or(behind)
        }
        None => (!bit).then_some(0),
    };
    context.reply.integer(position.map_or(-1, |position| position as i64));
    Ok(())
}
