//! Intersection, union and difference.

use crate::args::Args;
use crate::commands::set::reply_member;
use crate::context::Context;
use crate::entry::{Entry, Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::keys::Keys;
use crate::number::parse_i64;
use crate::packed::Element;
use crate::set::{self, Limits, SetRef};

/// The sets under `names`, `None` for a missing key. Every key is looked up before the first is used: that removes the
/// expired ones and finds the wrong types.
fn sources<'k, 'n>(
    keys: &'k mut Keys,
    names: impl Iterator<Item = &'n [u8]> + Clone,
) -> Result<Vec<Option<SetRef<'k>>>, CommandError> {
    for name in names.clone() {
        keys.find_kind(name, Kind::Set)?;
    }
    let keys: &'k Keys = keys;
    let found = names.map(|name| keys.get(name).and_then(SetRef::new));
    Ok(found.collect())
}

/// Visits the members that are in all of `sets` until `visit` returns false.
fn intersect<'k>(sets: &[Option<SetRef<'k>>], mut visit: impl FnMut(Element<'k>) -> bool) {
    let Some(mut sets) = sets.iter().copied().collect::<Option<Vec<_>>>() else { return };
    sets.sort_by_cached_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first() else { return };
    for member in smallest.iter() {
        if others.iter().all(|set| set.contains(member)) && !visit(member) {
            return;
        }
    }
}

/// Visits the members of the first of `sets` that are in none of the others.
fn subtract<'k>(sets: &[Option<SetRef<'k>>], limits: Limits, mut visit: impl FnMut(Element<'_>)) {
    let Some((Some(first), others)) = sets.split_first() else { return };
    let mut others: Vec<(usize, SetRef<'k>)> = others.iter().flatten().map(|set| (set.len(), *set)).collect();
    let size = first.len();
    // Looking for each member in each of the others costs less in most cases, as those that are found early are done.
    let looking = size.saturating_mul(others.len() + 1) / 2;
    let removing = others.iter().fold(size, |total, (len, _)| total.saturating_add(*len));
    if looking <= removing {
        others.sort_by_key(|(len, _)| std::cmp::Reverse(*len));
        for member in first.iter().filter(|member| !others.iter().any(|(_, set)| set.contains(*member))) {
            visit(member);
        }
        return;
    }
    let mut rest = set::empty_integers(Header::default());
    for member in first.iter() {
        set::add(&mut rest, member, limits);
    }
    for member in others.iter().flat_map(|(_, set)| set.iter()) {
        set::remove(&mut rest, member);
    }
    for member in SetRef::new(rest.view()).into_iter().flat_map(SetRef::iter) {
        visit(member);
    }
}

/// A set, in an entry of its own, of the members of any of `sets`.
fn unite(sets: &[Option<SetRef<'_>>], header: Header<'_>, limits: Limits) -> Entry {
    let mut united = set::empty_integers(header);
    for member in sets.iter().flatten().flat_map(|set| set.iter()) {
        set::add(&mut united, member, limits);
    }
    united
}

pub(super) fn sinter(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let sets = sources(context.keys, args.iter().skip(1))?;
    let reply = &mut context.reply;
    let place = reply.begin_set();
    let mut members = 0;
    intersect(&sets, |member| {
        reply_member(reply, member);
        members += 1;
        true
    });
    reply.end(place, members);
    Ok(())
}

pub(super) fn sdiff(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let limits = Limits::of(&context.keys.settings);
    let sets = sources(context.keys, args.iter().skip(1))?;
    let reply = &mut context.reply;
    let place = reply.begin_set();
    let mut members = 0;
    subtract(&sets, limits, |member| {
        reply_member(reply, member);
        members += 1;
    });
    reply.end(place, members);
    Ok(())
}

pub(super) fn sunion(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let limits = Limits::of(&context.keys.settings);
    let sets = sources(context.keys, args.iter().skip(1))?;
    let united = unite(&sets, Header::default(), limits);
    let Some(united) = SetRef::new(united.view()) else { return Ok(()) };
    context.reply.set(united.len());
    for member in united.iter() {
        reply_member(&mut context.reply, member);
    }
    Ok(())
}

pub(super) fn sintercard(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let number = parse_i64(args.at(1)).filter(|number| *number > 0);
    let number = number.ok_or(CommandError::new("ERR numkeys should be greater than 0"))?;
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    if number > args.len() - 2 {
        return Err(CommandError::new("ERR Number of keys can't be greater than number of args"));
    }
    let mut limit = 0;
    let mut index = 2 + number;
    while index < args.len() {
        let Some(word) = args.get(index + 1).filter(|_| args.is(index, "limit")) else {
            return Err(CommandError::SYNTAX);
        };
        let parsed = parse_i64(word).and_then(|limit| usize::try_from(limit).ok());
        limit = parsed.ok_or(CommandError::new("ERR LIMIT can't be negative"))?;
        index += 2;
    }
    let sets = sources(context.keys, args.iter().skip(2).take(number))?;
    let mut members = 0;
    intersect(&sets, |_| {
        members += 1;
        members != limit
    });
    context.reply.count(members);
    Ok(())
}

pub(super) fn sinterstore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let limits = Limits::of(&context.keys.settings);
    let header = Header { key: args.at(1), access: context.keys.new_access(), ..Header::default() };
    let sets = sources(context.keys, args.iter().skip(2))?;
    // The result of integers is built as integers; other sets may still turn out to have nothing else in common.
    let mut result = match sets.iter().flatten().min_by_key(|set| set.len()) {
        Some(SetRef::Integers(_)) => set::empty_integers(header),
        _ => set::empty_packed(header),
    };
    let mut only_integers = true;
    intersect(&sets, |member| {
        only_integers = only_integers && member.to_i64().is_some();
        set::add(&mut result, member, limits);
        true
    });
    if only_integers {
        set::make_integers(&mut result, limits);
    }
    store(context, args.at(1), result, "sinterstore")
}

pub(super) fn sdiffstore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let limits = Limits::of(&context.keys.settings);
    let header = Header { key: args.at(1), access: context.keys.new_access(), ..Header::default() };
    let sets = sources(context.keys, args.iter().skip(2))?;
    let mut result = set::empty_integers(header);
    subtract(&sets, limits, |member| {
        set::add(&mut result, member, limits);
    });
    store(context, args.at(1), result, "sdiffstore")
}

pub(super) fn sunionstore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let limits = Limits::of(&context.keys.settings);
    let header = Header { key: args.at(1), access: context.keys.new_access(), ..Header::default() };
    let sets = sources(context.keys, args.iter().skip(2))?;
    let result = unite(&sets, header, limits);
    store(context, args.at(1), result, "sunionstore")
}

/// Replaces whatever `destination` holds by `result`, its key; an empty result removes it.
fn store(context: &mut Context<'_>, destination: &[u8], result: Entry, event: &'static str) -> CommandResult {
    let members = SetRef::new(result.view()).map_or(0, SetRef::len);
    if members > 0 {
        context.keys.put(result);
        context.keys.changed(Class::Set, event, destination);
    } else if context.keys.remove(destination) {
        context.keys.changed(Class::Generic, "del", destination);
    }
    context.reply.count(members);
    Ok(())
}
