//! `SSCAN`.

use crate::args::Args;
use crate::commands::set::reply_member;
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::glob;
use crate::number::parse_i64;
use crate::packed::{Element, IntBuffer};
use crate::set::SetRef;

const DEFAULT_COUNT: usize = 10;

/// The cursor in `word`, as Redis reads one: digits with an optional sign, nothing at all for 0.
fn parse_cursor(word: &[u8]) -> Result<u64, CommandError> {
    let (negative, digits) = match word {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() && !word.is_empty() {
        return Err(CommandError::INVALID_CURSOR);
    }
    let mut cursor: u64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return Err(CommandError::INVALID_CURSOR);
        }
        let next = cursor.checked_mul(10).and_then(|cursor| cursor.checked_add(u64::from(digit - b'0')));
        cursor = next.ok_or(CommandError::INVALID_CURSOR)?;
    }
    Ok(if negative { cursor.wrapping_neg() } else { cursor })
}

/// What follows the cursor.
struct Options<'a> {
    count: usize,
    pattern: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(words: Args<'a>) -> Result<Options<'a>, CommandError> {
        let mut options = Options { count: DEFAULT_COUNT, pattern: None };
        let mut index = 0;
        while index < words.len() {
            let value = words.get(index + 1).ok_or(CommandError::SYNTAX)?;
            if words.is(index, "count") {
                let count = parse_i64(value).ok_or(CommandError::NOT_AN_INTEGER)?;
                if count < 1 {
                    return Err(CommandError::SYNTAX);
                }
                options.count = usize::try_from(count).unwrap_or(usize::MAX);
            } else if words.is(index, "match") {
                options.pattern = (value != b"*").then_some(value);
            } else {
                return Err(CommandError::SYNTAX);
            }
            index += 2;
        }
        Ok(options)
    }

    fn matches(&self, member: Element<'_>) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, member.as_bytes(&mut IntBuffer::new())))
    }
}

pub(super) fn sscan(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let cursor = parse_cursor(args.at(2))?;
    let Some(set) = context.keys.find_kind(args.at(1), Kind::Set)?.and_then(SetRef::new) else {
        context.reply.array(2);
        context.reply.bulk_integer(0);
        context.reply.array(0);
        return Ok(());
    };
    let options = Options::parse(args.from(3))?;
    let reply = &mut context.reply;
    reply.array(2);
    match set {
        SetRef::Large(large) => {
            let mut members = Vec::new();
            let next = large.scan(cursor, options.count, |member| members.push(member));
            members.retain(|member| options.matches(Element::Bytes(member)));
            // Positions have far fewer bits than an integer.
            reply.bulk_integer(next.map_or(0, |next| next as i64));
            reply.array(members.len());
            for member in members {
                reply.bulk(member);
            }
        }
        _ => {
            reply.bulk_integer(0);
            let place = reply.begin_array();
            let mut members = 0;
            for member in set.iter().filter(|member| options.matches(*member)) {
                reply_member(reply, member);
                members += 1;
            }
            reply.end(place, members);
        }
    }
    Ok(())
}
