//! Unions, intersections and differences of sorted sets and sets.

use super::reply_members;
use super::store::{remove_destination, store};
use crate::args::Args;
use crate::context::Context;
use crate::entry::{EntryRef, Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::keys::Keys;
use crate::number::{parse_f64, parse_i64};
use crate::packed::{Element, IntBuffer};
use crate::set::SetRef;
use crate::sorted_set::{self, LargeSortedSet, Limits, Scores, SortedSetRef};

/// What is made of the inputs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// What is done with the result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Reply,
    Store,
    Count,
}

/// How the scores of a member become one.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    #[inline]
    fn of(self, left: f64, right: f64) -> f64 {
        match self {
            Aggregate::Sum => zero_for_nan(left + right),
            Aggregate::Min if right < left => right,
            Aggregate::Max if right > left => right,
            _ => left,
        }
    }
}

/// Where infinities cancel each other (or are weighted by 0) the score is 0 by convention.
#[inline]
fn zero_for_nan(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// An input: a sorted set, or a set whose members all have the score 1.
#[derive(Clone, Copy)]
enum Source<'a> {
    Missing,
    SortedSet(SortedSetRef<'a>),
    Set(SetRef<'a>),
}

impl<'a> Source<'a> {
    fn of(entry: EntryRef<'a>) -> Source<'a> {
        match SetRef::new(entry) {
            Some(set) => Source::Set(set),
            None => Source::SortedSet(SortedSetRef::of(entry)),
        }
    }

    fn len(self) -> usize {
        match self {
            Source::Missing => 0,
            Source::SortedSet(set) => set.len(),
            Source::Set(set) => set.len(),
        }
    }

    #[inline]
    fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Source::Missing => None,
            Source::SortedSet(set) => set.score(member),
            Source::Set(set) => set.contains(Element::Bytes(member)).then_some(1.0),
        }
    }

    fn members(self) -> impl Iterator<Item = (Element<'a>, f64)> {
        let (sorted, plain) = match self {
            Source::Missing => (None, None),
            Source::SortedSet(set) => (Some(set), None),
            Source::Set(set) => (None, Some(set)),
        };
        let plain = plain.into_iter().flat_map(|set| set.iter().map(|member| (member, 1.0)));
        sorted.into_iter().flat_map(SortedSetRef::all).chain(plain)
    }
}

/// A call with its options parsed.
struct Query<'a> {
    operation: Operation,
    /// The keys, and the words behind them.
    keys: Args<'a>,
    number: usize,
    /// One a key, or none for 1 each.
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
    /// Where a count may stop; 0 for no limit.
    limit: usize,
}

/// An input with its weight.
#[derive(Clone, Copy)]
struct Weighted<'a> {
    source: Source<'a>,
    len: usize,
    weight: f64,
}

impl<'a> Query<'a> {
    /// Parses `numkeys key [key ...]` and the options behind them. The types of the keys are checked before the options.
    fn parse(
        context: &mut Context<'_>,
        args: Args<'a>,
        name: &str,
        operation: Operation,
        purpose: Use,
    ) -> Result<Query<'a>, CommandError> {
        let number = parse_i64(args.at(0)).ok_or(CommandError::NOT_AN_INTEGER)?;
        if number < 1 {
            return Err(CommandError::new(format!("ERR at least 1 input key is needed for '{name}' command")));
        }
        let number = usize::try_from(number).ok().filter(|number| *number < args.len()).ok_or(CommandError::SYNTAX)?;
        let keys = args.from(1);
        for key in keys.iter().take(number) {
            if context.keys.find(key).is_some_and(|entry| !matches!(entry.kind(), Kind::SortedSet | Kind::Set)) {
                return Err(CommandError::WRONG_TYPE);
            }
        }
        let (mut weights, mut aggregate, mut with_scores, mut limit) = (Vec::new(), Aggregate::Sum, false, 0);
        let options = args.from(1 + number);
        let combines = operation != Operation::Difference && purpose != Use::Count;
        let mut index = 0;
        while index < options.len() {
            let left = options.len() - index - 1;
            if combines && left >= number && options.is(index, "weights") {
                let error = CommandError::new("ERR weight value is not a float");
                let words = options.iter().skip(index + 1).take(number);
                weights = words.map(parse_f64).collect::<Option<_>>().ok_or(error)?;
                index += number;
            } else if combines && left >= 1 && options.is(index, "aggregate") {
                index += 1;
                aggregate = if options.is(index, "sum") {
                    Aggregate::Sum
                } else if options.is(index, "min") {
                    Aggregate::Min
                } else if options.is(index, "max") {
                    Aggregate::Max
                } else {
                    return Err(CommandError::SYNTAX);
                };
            } else if purpose == Use::Reply && options.is(index, "withscores") {
                with_scores = true;
            } else if purpose == Use::Count && left >= 1 && options.is(index, "limit") {
                index += 1;
                let given = parse_i64(options.at(index)).and_then(|limit| usize::try_from(limit).ok());
                limit = given.ok_or(CommandError::new("ERR LIMIT can't be negative"))?;
            } else {
                return Err(CommandError::SYNTAX);
            }
            index += 1;
        }
        Ok(Query { operation, keys, number, weights, aggregate, with_scores, limit })
    }

    /// The inputs, of keys that were looked up just now; the smallest first where the order does not matter.
    fn sources<'k>(&self, keys: &'k Keys) -> Vec<Weighted<'k>> {
        let weighted = self.keys.iter().take(self.number).enumerate().map(|(index, key)| {
            let source = keys.get(key).map_or(Source::Missing, Source::of);
            Weighted { source, len: source.len(), weight: self.weights.get(index).copied().unwrap_or(1.0) }
        });
        let mut sources: Vec<_> = weighted.collect();
        if self.operation != Operation::Difference {
            sources.sort_by_key(|source| source.len);
        }
        sources
    }

    fn result(&self, keys: &Keys) -> LargeSortedSet {
        let sources = self.sources(keys);
        match self.operation {
            Operation::Union => union(&sources, self.aggregate),
            Operation::Intersection => {
                let mut scores = Scores::default();
                intersect(&sources, self.aggregate, |member, score| {
                    scores.merge(member, |_| score);
                    true
                });
                scores
            }
            Operation::Difference => difference(&sources),
        }
        .into()
    }
}

fn union(sources: &[Weighted<'_>], aggregate: Aggregate) -> Scores {
    let mut scores = Scores::default();
    let mut scratch = IntBuffer::new();
    for Weighted { source, weight, .. } in sources {
        for (member, score) in source.members() {
            let score = zero_for_nan(weight * score);
            scores.merge(member.as_bytes(&mut scratch), |other| match other {
                Some(other) => aggregate.of(other, score),
                None => score,
            });
        }
    }
    scores
}

/// Visits the members that all inputs have, for as long as `visit` is true.
fn intersect(sources: &[Weighted<'_>], aggregate: Aggregate, mut visit: impl FnMut(&[u8], f64) -> bool) {
    let Some((smallest, others)) = sources.split_first() else { return };
    let mut scratch = IntBuffer::new();
    for (member, score) in smallest.source.members() {
        let member = member.as_bytes(&mut scratch);
        let mut others = others.iter();
        let score = others.try_fold(zero_for_nan(smallest.weight * score), |score, other| {
            Some(aggregate.of(score, other.weight * other.source.score(member)?))
        });
        if score.is_some_and(|score| !visit(member, score)) {
            return;
        }
    }
}

/// The members of the first input that no other has.
fn difference(sources: &[Weighted<'_>]) -> Scores {
    let mut scores = Scores::default();
    let Some((first, others)) = sources.split_first() else { return scores };
    let mut scratch = IntBuffer::new();
    // Either each member of the first is looked for in the others, or theirs are taken out one by one: what is less.
    let looks_up = first.len.saturating_mul(sources.len()) / 2 <= sources.iter().map(|source| source.len).sum();
    for (member, score) in first.source.members() {
        let member = member.as_bytes(&mut scratch);
        if !looks_up || others.iter().all(|other| other.source.score(member).is_none()) {
            scores.merge(member, |_| score);
        }
    }
    if !looks_up {
        for other in others {
            for (member, _) in other.source.members() {
                scores.remove(member.as_bytes(&mut scratch));
            }
        }
    }
    scores
}

fn reply(context: &mut Context<'_>, args: Args<'_>, name: &str, operation: Operation) -> CommandResult {
    let query = Query::parse(context, args.from(1), name, operation, Use::Reply)?;
    let result = query.result(context.keys);
    reply_members(&mut context.reply, result.members(0..result.len()), result.len(), query.with_scores);
    Ok(())
}

fn combine_and_store(
    context: &mut Context<'_>,
    args: Args<'_>,
    name: &'static str,
    operation: Operation,
) -> CommandResult {
    let query = Query::parse(context, args.from(2), name, operation, Use::Store)?;
    let result = query.result(context.keys);
    let key = args.at(1);
    let members = result.len();
    if members == 0 {
        remove_destination(context, key);
        return Ok(());
    }
    let header = Header { key, access: context.keys.new_access(), ..Header::default() };
    let entry = sorted_set::create_from_large(header, result, Limits::of(&context.keys.settings));
    store(context, entry, name, members);
    Ok(())
}

pub(super) fn zunion(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    reply(context, args, "zunion", Operation::Union)
}

pub(super) fn zinter(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    reply(context, args, "zinter", Operation::Intersection)
}

pub(super) fn zdiff(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    reply(context, args, "zdiff", Operation::Difference)
}

pub(super) fn zunionstore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    combine_and_store(context, args, "zunionstore", Operation::Union)
}

pub(super) fn zinterstore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    combine_and_store(context, args, "zinterstore", Operation::Intersection)
}

pub(super) fn zdiffstore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    combine_and_store(context, args, "zdiffstore", Operation::Difference)
}

pub(super) fn zintercard(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let query = Query::parse(context, args.from(1), "zintercard", Operation::Intersection, Use::Count)?;
    let mut count = 0;
    intersect(&query.sources(context.keys), query.aggregate, |_, _| {
        count += 1;
        count != query.limit
    });
    context.reply.count(count);
    Ok(())
}
