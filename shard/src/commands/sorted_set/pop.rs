//! Removing members from either end and returning them, and the native commands for due members.

use std::ops::Range;

use super::remove::remove_ranks;
use super::{reply_member, reply_members, reply_pair};
use crate::args::{Args, OwnedArgs};
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::list;
use crate::number::parse_i64;
use crate::packed::IntBuffer;
use crate::sorted_set::{ScoreRange, SortedSetRef};

/// Which end of a sorted set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The lowest scores.
    Low,
    /// The highest scores.
    High,
}

impl End {
    fn event(self) -> &'static str {
        match self {
            End::Low => "zpopmin",
            End::High => "zpopmax",
        }
    }

    /// The ranks of up to `count` members at this end of `len`.
    fn ranks(self, count: usize, len: usize) -> Range<usize> {
        match self {
            End::Low => 0..count.min(len),
            End::High => len.saturating_sub(count)..len,
        }
    }
}

pub(super) fn zpopmin(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop(context, args, End::Low)
}

pub(super) fn zpopmax(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop(context, args, End::High)
}

fn pop(context: &mut Context<'_>, args: Args<'_>, end: End) -> CommandResult {
    let count = match args.len() {
        2 => None,
        3 => {
            let count = parse_i64(args.at(2)).and_then(|count| usize::try_from(count).ok());
            Some(count.ok_or(CommandError::MUST_BE_POSITIVE)?)
        }
        _ => return Err(CommandError::SYNTAX),
    };
    let key = args.at(1);
    let Some(set) = context.keys.peek_kind(key, Kind::SortedSet)?.map(SortedSetRef::of) else {
        context.reply.array(0);
        return Ok(());
    };
    let ranks = end.ranks(count.unwrap_or(1), set.len());
    let mut members = set.members(ranks.clone());
    let reply = &mut context.reply;
    match (count, end) {
        // Without a count the reply is one pair, flat in both protocols.
        (None, _) => {
            let popped = if end == End::Low { members.next() } else { members.next_back() };
            reply.array(if popped.is_some() { 2 } else { 0 });
            if let Some((member, score)) = popped {
                reply_member(reply, member);
                reply.double(score);
            }
        }
        (Some(_), End::Low) => reply_members(reply, members, ranks.len(), true),
        (Some(_), End::High) => reply_members(reply, members.rev(), ranks.len(), true),
    }
    remove_ranks(context.keys, key, ranks, end.event())
}

/// Pops one member of `key` and replies with the key, the member and its score; false when there is none, and nothing is
/// written.
pub(super) fn pop_one(context: &mut Context<'_>, key: &[u8], end: End) -> Result<bool, CommandError> {
    let Some(set) = context.keys.peek_kind(key, Kind::SortedSet)?.map(SortedSetRef::of) else { return Ok(false) };
    let ranks = end.ranks(1, set.len());
    let Some((member, score)) = set.members(ranks.clone()).next() else { return Ok(false) };
    let reply = &mut context.reply;
    reply.array(3);
    reply.bulk(key);
    reply_member(reply, member);
    reply.double(score);
    remove_ranks(context.keys, key, ranks, end.event())?;
    Ok(true)
}

pub(super) fn zmpop(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    if pop_any(context, args)?.is_some() {
        context.reply.null_array();
    }
    Ok(())
}

/// `numkeys key [key ...] <MIN | MAX> [COUNT count]` behind a first word: pops from the first sorted set that is there and
/// replies; where none is, nothing is written, and the places of the keys are returned.
pub(super) fn pop_any(context: &mut Context<'_>, args: Args<'_>) -> Result<Option<Range<usize>>, CommandError> {
    let keys = parse_i64(args.at(1)).filter(|keys| *keys > 0);
    let keys = keys.ok_or(CommandError::new("ERR numkeys should be greater than 0"))?;
    let end_at = usize::try_from(keys).ok().and_then(|keys| keys.checked_add(2)).ok_or(CommandError::SYNTAX)?;
    let end = if args.is(end_at, "min") {
        End::Low
    } else if args.is(end_at, "max") {
        End::High
    } else {
        return Err(CommandError::SYNTAX);
    };
    let mut count = None;
    let mut index = end_at + 1;
    while index < args.len() {
        if count.is_some() || !args.is(index, "count") || index + 1 >= args.len() {
            return Err(CommandError::SYNTAX);
        }
        let given = parse_i64(args.at(index + 1)).filter(|count| *count > 0);
        let given = given.and_then(|count| usize::try_from(count).ok());
        count = Some(given.ok_or(CommandError::new("ERR count should be greater than 0"))?);
        index += 2;
    }
    for key in args.iter().take(end_at).skip(2) {
        let Some(set) = context.keys.peek_kind(key, Kind::SortedSet)?.map(SortedSetRef::of) else { continue };
        let ranks = end.ranks(count.unwrap_or(1), set.len());
        let mut members = set.members(ranks.clone());
        let reply = &mut context.reply;
        reply.array(2);
        reply.bulk(key);
        reply.array(ranks.len());
        while let Some(pair) = if end == End::Low { members.next() } else { members.next_back() } {
            reply_pair(reply, pair);
        }
        remove_ranks(context.keys, key, ranks, end.event())?;
        return Ok(None);
    }
    Ok(Some(2..end_at))
}

/// Which members are due: the options that `ZPOPBYSCORE` and `ZMOVEDUE` share.
struct Due {
    range: ScoreRange,
    count: usize,
    with_scores: bool,
}

impl Due {
    /// Parses `max [MIN min] [COUNT n]`, and `[WITHSCORES]` where that is allowed.
    fn parse(args: Args<'_>, allows_scores: bool) -> Result<Due, CommandError> {
        const COUNT_MAX: i64 = 10_000;
        let (mut min, mut count, mut with_scores) = (None, None, false);
        let mut index = 1;
        while index < args.len() {
            let value = args.get(index + 1);
            if allows_scores && !with_scores && args.is(index, "withscores") {
                with_scores = true;
                index += 1;
                continue;
            }
            match value {
                Some(value) if min.is_none() && args.is(index, "min") => min = Some(value),
                Some(value) if count.is_none() && args.is(index, "count") => {
                    let given = parse_i64(value).ok_or(CommandError::NOT_AN_INTEGER)?;
                    if !(1..=COUNT_MAX).contains(&given) {
                        return Err(CommandError::new("ERR value is out of range, value must between 1 and 10000"));
                    }
                    count = Some(given);
                }
                _ => return Err(CommandError::SYNTAX),
            }
            index += 2;
        }
        let range = ScoreRange::parse(min.unwrap_or(b"-inf"), args.at(0))?;
        Ok(Due { range, count: count.unwrap_or(COUNT_MAX) as usize, with_scores })
    }

    fn ranks(&self, set: SortedSetRef<'_>) -> Range<usize> {
        let ranks = set.ranks_by_score(&self.range);
        ranks.start..ranks.end.min(ranks.start + self.count)
    }
}

/// `ZPOPBYSCORE key max [MIN min] [COUNT n] [WITHSCORES]`
pub(super) fn zpopbyscore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let due = Due::parse(args.from(2), true)?;
    let key = args.at(1);
    let Some(set) = context.keys.peek_kind(key, Kind::SortedSet)?.map(SortedSetRef::of) else {
        context.reply.array(0);
        return Ok(());
    };
    let ranks = due.ranks(set);
    reply_members(&mut context.reply, set.members(ranks.clone()), ranks.len(), due.with_scores);
    remove_ranks(context.keys, key, ranks, "zpopbyscore")
}

/// `ZMOVEDUE source destination max [MIN min] [COUNT n]`
pub(super) fn zmovedue(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let due = Due::parse(args.from(3), false)?;
    let (source, destination) = (args.at(1), args.at(2));
    let mut members = OwnedArgs::new();
    let mut ranks = 0..0;
    if let Some(set) = context.keys.peek_kind(source, Kind::SortedSet)?.map(SortedSetRef::of) {
        let mut scratch = IntBuffer::new();
        ranks = due.ranks(set);
        for (member, _) in set.members(ranks.clone()) {
            members.push(member.as_bytes(&mut scratch));
        }
    }
    if context.keys.peek(destination).is_some_and(|entry| entry.kind() != Kind::List) {
        return Err(CommandError::WRONG_TYPE);
    }
    let moved = ranks.len();
    if moved > 0 {
        remove_ranks(context.keys, source, ranks, "zrem")?;
        list::push_back_all(context.keys, destination, members.as_args().iter())?;
        context.keys.changed(Class::List, "rpush", destination);
    }
    context.reply.count(moved);
    Ok(())
}
