//! Removing members.

use std::ops::Range;

use super::range::{parse_rank, ranks_between};
use crate::args::Args;
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::keys::Keys;
use crate::sorted_set::{self, LexRange, ScoreRange, SortedSetRef};

pub(super) fn zrem(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let keys = &mut *context.keys;
    let Some(mut entry) = keys.find_mut_kind(key, Kind::SortedSet)? else {
        context.reply.integer(0);
        return Ok(());
    };
    let removed = args.from(2).iter().filter(|member| sorted_set::remove(&mut entry, member)).count();
    let emptied = SortedSetRef::of(entry.view()).is_empty();
    drop(entry);
    if removed > 0 {
        note_removal(keys, key, "zrem", emptied);
    }
    context.reply.count(removed);
    Ok(())
}

pub(super) fn zremrangebyscore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let range = ScoreRange::parse(args.at(2), args.at(3))?;
    remove_range(context, args.at(1), "zremrangebyscore", |set| set.ranks_by_score(&range))
}

pub(super) fn zremrangebylex(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let range = LexRange::parse(args.at(2), args.at(3))?;
    remove_range(context, args.at(1), "zremrangebylex", |set| set.ranks_by_lex(&range))
}

pub(super) fn zremrangebyrank(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (start, stop) = (parse_rank(args.at(2))?, parse_rank(args.at(3))?);
    remove_range(context, args.at(1), "zremrangebyrank", |set| ranks_between(start, stop, set.len()))
}

fn remove_range(
    context: &mut Context<'_>,
    key: &[u8],
    event: &'static str,
    ranks: impl FnOnce(SortedSetRef<'_>) -> Range<usize>,
) -> CommandResult {
    let found = context.keys.find_mut_kind(key, Kind::SortedSet)?;
    let ranks = found.map_or(0..0, |entry| ranks(SortedSetRef::of(entry.view())));
    let removed = ranks.len();
    remove_ranks(context.keys, key, ranks, event)?;
    context.reply.count(removed);
    Ok(())
}

/// Removes members by rank, the key with the last of them, and notes the change; does nothing with an empty range.
pub(super) fn remove_ranks(
    keys: &mut Keys,
    key: &[u8],
    ranks: Range<usize>,
    event: &'static str,
) -> Result<(), CommandError> {
    if ranks.is_empty() {
        return Ok(());
    }
    let Some(mut entry) = keys.find_mut_kind(key, Kind::SortedSet)? else { return Ok(()) };
    let emptied = ranks.start == 0 && SortedSetRef::of(entry.view()).members(ranks.end..ranks.end + 1).next().is_none();
    // A set that goes as a whole is freed with its key, piecemeal.
    if !emptied {
        sorted_set::remove_ranks(&mut entry, ranks);
    }
    drop(entry);
    note_removal(keys, key, event, emptied);
    Ok(())
}

/// Notes that members were removed, and removes the key where none is left.
fn note_removal(keys: &mut Keys, key: &[u8], event: &'static str, emptied: bool) {
    keys.changed(Class::SortedSet, event, key);
    if emptied {
        keys.remove_emptied(key);
    }
}
