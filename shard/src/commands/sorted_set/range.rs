//! Ranges by rank, score and member.

use std::ops::Range;

use super::reply_members;
use super::store::{remove_destination, store};
use crate::args::Args;
use crate::context::Context;
use crate::entry::{Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::number::parse_i64;
use crate::sorted_set::{self, LexRange, Limits, ScoreRange, SortedSetRef};

/// By what a range is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// A range with its bounds parsed.
enum Bounds<'a> {
    Rank(i64, i64),
    Score(ScoreRange),
    Lex(LexRange<'a>),
}

/// What a command of the `ZRANGE` family asks for.
struct Query<'a> {
    bounds: Bounds<'a>,
    descending: bool,
    offset: i64,
    /// Negative for no limit.
    count: i64,
    with_scores: bool,
}

/// What the name of a command decides; `None` leaves it to the options.
#[derive(Clone, Copy)]
struct Form {
    by: Option<By>,
    descending: Option<bool>,
    stores: bool,
}

/// A rank as a client writes it: negative from the end.
pub(super) fn parse_rank(word: &[u8]) -> Result<i64, CommandError> {
    parse_i64(word).ok_or(CommandError::NOT_AN_INTEGER)
}

/// The ranks from `start` to `stop`, both included, of a set of `len` members.
pub(super) fn ranks_between(start: i64, stop: i64, len: usize) -> Range<usize> {
    let resolve = |rank: i64| if rank < 0 { rank.saturating_add(len as i64) } else { rank };
    let start = resolve(start).max(0) as usize;
    let stop = resolve(stop);
    if stop < 0 || start >= len || start > stop as usize {
        return 0..0;
    }
    start..(stop as usize).min(len - 1) + 1
}

impl<'a> Query<'a> {
    /// Parses `min max` and the options behind them.
    fn parse(args: Args<'a>, form: Form) -> Result<Query<'a>, CommandError> {
        let Form { mut by, mut descending, stores } = form;
        let (mut offset, mut count, mut with_scores) = (0, -1, false);
        let mut index = 2;
        while index < args.len() {
            if !stores && args.is(index, "withscores") {
                with_scores = true;
            } else if args.is(index, "limit") && index + 2 < args.len() {
                offset = parse_rank(args.at(index + 1))?;
                count = parse_rank(args.at(index + 2))?;
                index += 2;
            } else if descending.is_none() && args.is(index, "rev") {
                descending = Some(true);
            } else if by.is_none() && args.is(index, "bylex") {
                by = Some(By::Lex);
            } else if by.is_none() && args.is(index, "byscore") {
                by = Some(By::Score);
            } else {
                return Err(CommandError::SYNTAX);
            }
            index += 1;
        }
        let by = by.unwrap_or(By::Rank);
        let descending = descending.unwrap_or(false);
        if count != -1 && by == By::Rank {
            return Err(CommandError::new(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if with_scores && by == By::Lex {
            return Err(CommandError::new("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        let (first, last) = (args.at(0), args.at(1));
        // A descending range is given from its upper bound.
        let (min, max) = if descending { (last, first) } else { (first, last) };
        let bounds = match by {
            By::Rank => Bounds::Rank(parse_rank(first)?, parse_rank(last)?),
            By::Score => Bounds::Score(ScoreRange::parse(min, max)?),
            By::Lex => Bounds::Lex(LexRange::parse(min, max)?),
        };
        Ok(Query { bounds, descending, offset, count, with_scores })
    }

    /// The ranks, counted from the lowest score, that the query selects.
    fn ranks(&self, set: SortedSetRef<'_>) -> Range<usize> {
        let ranks = match &self.bounds {
            Bounds::Rank(start, stop) => {
                let len = set.len();
                let ranks = ranks_between(*start, *stop, len);
                return if self.descending { len - ranks.end..len - ranks.start } else { ranks };
            }
            Bounds::Score(range) => set.ranks_by_score(range),
            Bounds::Lex(range) => set.ranks_by_lex(range),
        };
        let Ok(offset) = usize::try_from(self.offset) else { return 0..0 };
        let left = ranks.len().saturating_sub(offset);
        let taken = usize::try_from(self.count).map_or(left, |count| count.min(left));
        let skipped = ranks.len() - left;
        if self.descending {
            let end = ranks.end - skipped;
            end - taken..end
        } else {
            let start = ranks.start + skipped;
            start..start + taken
        }
    }
}

const ANY: Form = Form { by: None, descending: None, stores: false };

pub(super) fn zrange(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    range(context, args, ANY)
}

pub(super) fn zrangebyscore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    range(context, args, Form { by: Some(By::Score), descending: Some(false), ..ANY })
}

pub(super) fn zrangebylex(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    range(context, args, Form { by: Some(By::Lex), descending: Some(false), ..ANY })
}

pub(super) fn zrevrange(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    range(context, args, Form { by: Some(By::Rank), descending: Some(true), ..ANY })
}

pub(super) fn zrevrangebyscore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    range(context, args, Form { by: Some(By::Score), descending: Some(true), ..ANY })
}

pub(super) fn zrevrangebylex(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    range(context, args, Form { by: Some(By::Lex), descending: Some(true), ..ANY })
}

fn range(context: &mut Context<'_>, args: Args<'_>, form: Form) -> CommandResult {
    let query = Query::parse(args.from(2), form)?;
    let Some(set) = context.keys.find_kind(args.at(1), Kind::SortedSet)?.map(SortedSetRef::of) else {
        context.reply.array(0);
        return Ok(());
    };
    let ranks = query.ranks(set);
    let count = ranks.len();
    let members = set.members(ranks);
    if query.descending {
        reply_members(&mut context.reply, members.rev(), count, query.with_scores);
    } else {
        reply_members(&mut context.reply, members, count, query.with_scores);
    }
    Ok(())
}

pub(super) fn zrangestore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let query = Query::parse(args.from(3), Form { stores: true, ..ANY })?;
    let (destination, source) = (args.at(1), args.at(2));
    let limits = Limits::of(&context.keys.settings);
    let header = Header { key: destination, access: context.keys.new_access(), ..Header::default() };
    let set = context.keys.find_kind(source, Kind::SortedSet)?.map(SortedSetRef::of);
    let selected = set.map(|set| (set, query.ranks(set))).filter(|(_, ranks)| !ranks.is_empty());
    match selected {
        Some((set, ranks)) => {
            let entry = sorted_set::create_from(header, || set.members(ranks.clone()), limits);
            store(context, entry, "zrangestore", ranks.len());
        }
        None => remove_destination(context, destination),
    }
    Ok(())
}
