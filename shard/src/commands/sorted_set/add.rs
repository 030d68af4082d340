//! Adding members and changing scores.

use crate::args::Args;
use crate::commands::options::creation_deadline;
use crate::context::Context;
use crate::entry::{Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::number::parse_f64;
use crate::sorted_set::{self, Effect, Limits, Updated};

/// The options of `ZADD`.
#[derive(Clone, Copy, Default)]
pub(in crate::commands) struct Conditions {
    /// Members that are there stay as they are.
    pub only_new: bool,
    /// Members that are not there are not added.
    pub only_present: bool,
    only_greater: bool,
    only_less: bool,
    increment: bool,
}

impl Conditions {
    /// The score that a member gets; `None` where it must stay as it is.
    #[inline]
    fn decide(self, current: Option<f64>, given: f64) -> Result<Option<f64>, CommandError> {
        let Some(current) = current else { return Ok((!self.only_present).then_some(given)) };
        if self.only_new {
            return Ok(None);
        }
        let score = if self.increment { current + given } else { given };
        if score.is_nan() {
            return Err(CommandError::new("ERR resulting score is not a number (NaN)"));
        }
        let refused = self.only_less && score >= current || self.only_greater && score <= current;
        Ok((!refused).then_some(score))
    }
}

pub(super) fn zadd(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let mut conditions = Conditions::default();
    let mut count_changed = false;
    let mut first = 2;
    loop {
        if args.is(first, "nx") {
            conditions.only_new = true;
        } else if args.is(first, "xx") {
            conditions.only_present = true;
        } else if args.is(first, "gt") {
            conditions.only_greater = true;
        } else if args.is(first, "lt") {
            conditions.only_less = true;
        } else if args.is(first, "ch") {
            count_changed = true;
        } else if args.is(first, "incr") {
            conditions.increment = true;
        } else {
            break;
        }
        first += 1;
    }
    let pairs = args.from(first);
    if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
        return Err(CommandError::SYNTAX);
    }
    if conditions.only_new && conditions.only_present {
        return Err(CommandError::new("ERR XX and NX options at the same time are not compatible"));
    }
    if conditions.only_greater && (conditions.only_new || conditions.only_less)
        || conditions.only_less && conditions.only_new
    {
        return Err(CommandError::new("ERR GT, LT, and/or NX options at the same time are not compatible"));
    }
    if conditions.increment {
        if pairs.len() > 2 {
            return Err(CommandError::new("ERR INCR option supports a single increment-element pair"));
        }
        let score = parse_f64(pairs.at(0)).ok_or(CommandError::NOT_A_FLOAT)?;
        match add_one(context, args.at(1), pairs.at(1), score, conditions, None)? {
            Some(updated) => context.reply.double(updated.score),
            None => context.reply.null(),
        }
        return Ok(());
    }
    if pairs.len() == 2 {
        let score = parse_f64(pairs.at(0)).ok_or(CommandError::NOT_A_FLOAT)?;
        let effect = add_one(context, args.at(1), pairs.at(1), score, conditions, None)?.map(|updated| updated.effect);
        let counted = effect == Some(Effect::Added) || count_changed && effect == Some(Effect::Changed);
        context.reply.integer(i64::from(counted));
        return Ok(());
    }
    let scores: Vec<f64> =
        pairs.iter().step_by(2).map(parse_f64).collect::<Option<_>>().ok_or(CommandError::NOT_A_FLOAT)?;
    let members = pairs.iter().skip(1).step_by(2);
    let (added, changed) = add_many(context, args.at(1), members, &scores, conditions)?;
    context.reply.count(if count_changed { added + changed } else { added });
    Ok(())
}

/// `ZINCRBY key increment member [EX seconds | PX milliseconds]`: the deadline is for a key that this call creates.
pub(super) fn zincrby(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let deadline_ms = creation_deadline(args, 4, context.keys.now_ms(), "zincrby")?;
    // Redis takes these words for options of ZADD, and then finds no pair behind them.
    if ["NX", "XX", "GT", "LT", "CH", "INCR"].iter().any(|option| args.is(2, option)) {
        return Err(CommandError::SYNTAX);
    }
    let increment = parse_f64(args.at(2)).ok_or(CommandError::NOT_A_FLOAT)?;
    let conditions = Conditions { increment: true, ..Conditions::default() };
    if let Some(updated) = add_one(context, args.at(1), args.at(3), increment, conditions, deadline_ms)? {
        context.reply.double(updated.score);
    }
    Ok(())
}

/// Adds one member or changes its score. `None` where the conditions refuse it.
pub(in crate::commands) fn add_one(
    context: &mut Context<'_>,
    key: &[u8],
    member: &[u8],
    score: f64,
    conditions: Conditions,
    deadline_ms: Option<i64>,
) -> Result<Option<Updated>, CommandError> {
    let keys = &mut *context.keys;
    let limits = Limits::of(&keys.settings);
    let mut expires = false;
    let updated = if let Some(mut entry) = keys.find_mut_kind(key, Kind::SortedSet)? {
        sorted_set::update(&mut entry, limits, member, |current| conditions.decide(current, score))?
    } else if let Some(score) = conditions.decide(None, score)? {
        let header = Header { key, deadline_ms, access: keys.new_access(), ..Header::default() };
        keys.add(sorted_set::create_with(header, member, score, limits));
        expires = deadline_ms.is_some();
        Some(Updated { effect: Effect::Added, score })
    } else {
        None
    };
    if updated.is_some_and(|updated| updated.effect != Effect::None) {
        keys.changed(Class::SortedSet, if conditions.increment { "zincr" } else { "zadd" }, key);
    }
    if expires {
        keys.changed(Class::Generic, "expire", key);
    }
    Ok(updated)
}

/// Adds members, a score each, or changes their scores; returns how many were added and how many changed.
pub(in crate::commands) fn add_many<'m>(
    context: &mut Context<'_>,
    key: &[u8],
    members: impl Iterator<Item = &'m [u8]> + Clone,
    scores: &[f64],
    conditions: Conditions,
) -> Result<(usize, usize), CommandError> {
    let keys = &mut *context.keys;
    let limits = Limits::of(&keys.settings);
    let (mut added, mut changed) = (0, 0);
    let mut add = |entry: &mut crate::entry::Entry| -> CommandResult {
        for (member, &score) in members.clone().zip(scores) {
            match sorted_set::update(entry, limits, member, |current| conditions.decide(current, score))? {
                Some(Updated { effect: Effect::Added, .. }) => added += 1,
                Some(Updated { effect: Effect::Changed, .. }) => changed += 1,
                _ => {}
            }
        }
        Ok(())
    };
    if let Some(mut entry) = keys.find_mut_kind(key, Kind::SortedSet)? {
        sorted_set::prepare_for(&mut entry, scores.len(), limits);
        add(&mut entry)?;
    } else if !conditions.only_present {
        let header = Header { key, access: keys.new_access(), ..Header::default() };
        let longest = members.clone().map(<[u8]>::len).max().unwrap_or(0);
        let mut entry = sorted_set::create(header, scores.len(), longest, limits);
        add(&mut entry)?;
        keys.add(entry);
    }
    if added + changed > 0 {
        keys.changed(Class::SortedSet, "zadd", key);
    }
    Ok((added, changed))
}
