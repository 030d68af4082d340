//! `HSCAN`.

use super::{Args, reply_element};
use crate::context::Context;
use crate::error::{CommandError, CommandResult};
use crate::glob;
use crate::number::{self, IntBuffer, parse_i64};

/// Fields to visit when no `COUNT` is given.
const DEFAULT_COUNT: usize = 10;

pub(super) fn hscan(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let cursor = parse_cursor(args.at(2)).ok_or(CommandError::INVALID_CURSOR)?;
    let Some(hash) = context.keys.find_hash(args.at(1), [])? else {
        // Redis does not look at the options then.
        context.reply.array(2);
        context.reply.bulk(b"0");
        context.reply.array(0);
        return Ok(());
    };
    let (pattern, count) = parse_options(args.from(3))?;
    let mut found = Vec::new();
    let next = hash.scan(cursor, count, |field, value| {
        let mut scratch = IntBuffer::new();
        if pattern.is_none_or(|pattern| glob::matches(pattern, field.as_bytes(&mut scratch))) {
            found.push((field, value));
        }
    });
    let reply = &mut context.reply;
    reply.array(2);
    let mut text = Vec::with_capacity(20);
    // Cursors have fewer bits than an `i64`.
    number::write_i64(next as i64, &mut text);
    reply.bulk(&text);
    reply.array(found.len() * 2);
    for (field, value) in found {
        reply_element(reply, field);
        reply_element(reply, value);
    }
    Ok(())
}

/// A cursor as C's `strtoul` reads it, which is how Redis does: an optional sign, and nothing for 0.
fn parse_cursor(word: &[u8]) -> Option<u64> {
    let (negative, digits) = match word {
        [] => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let value = digits.iter().try_fold(0u64, |value, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { value.checked_mul(10)?.checked_add(u64::from(digit)) }
    })?;
    Some(if negative { value.wrapping_neg() } else { value })
}

/// The pattern of `MATCH`, unless it is `*`, and the number of `COUNT`.
fn parse_options(options: Args<'_>) -> Result<(Option<&[u8]>, usize), CommandError> {
    let (mut pattern, mut count) = (None, DEFAULT_COUNT);
    let mut index = 0;
    while index < options.len() {
        let Some(word) = options.get(index + 1) else { return Err(CommandError::SYNTAX) };
        if options.is(index, "match") {
            pattern = Some(word).filter(|word| *word != b"*");
        } else if options.is(index, "count") {
            let number = parse_i64(word).ok_or(CommandError::NOT_AN_INTEGER)?;
            count = usize::try_from(number).ok().filter(|count| *count > 0).ok_or(CommandError::SYNTAX)?;
        } else {
            return Err(CommandError::SYNTAX);
        }
        index += 2;
    }
    Ok((pattern, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_the_reference_server_reads_them() {
        let cases: [(&str, Option<u64>); 9] = [
            ("0", Some(0)),
            ("", Some(0)),
            ("007", Some(7)),
            ("+5", Some(5)),
            ("-1", Some(u64::MAX)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            (" 1", None),
            ("-", None),
        ];
        for (word, cursor) in cases {
            assert_eq!(parse_cursor(word.as_bytes()), cursor, "{word}");
        }
    }
}
