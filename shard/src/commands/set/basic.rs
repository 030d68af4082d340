//! Members one by one: adding, removing, moving, asking.

use crate::args::Args;
use crate::commands::set::reply_member;
use crate::context::Context;
use crate::entry::{Entry, Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::packed::Element;
use crate::set::{self, Limits, SetRef};

pub(super) fn sadd(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, members) = (args.at(1), args.from(2));
    let limits = Limits::of(&context.keys.settings);
    let Some(mut entry) = context.keys.find_mut_kind(key, Kind::Set)? else {
        let header = Header { key, access: context.keys.new_access(), ..Header::default() };
        let mut entry = set::empty_for(header, members.at(0), members.len(), limits);
        let added = add_all(&mut entry, members, limits);
        context.keys.add(entry);
        context.keys.changed(Class::Set, "sadd", key);
        context.reply.count(added);
        return Ok(());
    };
    set::prepare_for(&mut entry, members.len(), limits);
    let added = add_all(&mut entry, members, limits);
    drop(entry);
    if added > 0 {
        context.keys.changed(Class::Set, "sadd", key);
    }
    context.reply.count(added);
    Ok(())
}

/// Adds `members`; how many of them are new.
fn add_all(entry: &mut Entry, members: Args<'_>, limits: Limits) -> usize {
    members.iter().map(|member| usize::from(set::add(entry, Element::Bytes(member), limits))).sum()
}

pub(super) fn srem(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let Some(mut entry) = context.keys.find_mut_kind(key, Kind::Set)? else {
        context.reply.integer(0);
        return Ok(());
    };
    let mut removed = 0;
    let mut emptied = false;
    for member in args.from(2).iter() {
        if set::remove(&mut entry, Element::Bytes(member)) {
            removed += 1;
            emptied = SetRef::new(entry.view()).is_some_and(SetRef::is_empty);
            if emptied {
                break;
            }
        }
    }
    drop(entry);
    if removed > 0 {
        context.keys.changed(Class::Set, "srem", key);
    }
    if emptied {
        context.keys.remove_emptied(key);
    }
    context.reply.count(removed);
    Ok(())
}

pub(super) fn smove(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (source, destination, member) = (args.at(1), args.at(2), args.at(3));
    let limits = Limits::of(&context.keys.settings);
    let Some(entry) = context.keys.find_mut_kind(source, Kind::Set)? else {
        context.reply.integer(0);
        return Ok(());
    };
    if source == destination {
        let there = SetRef::new(entry.view()).is_some_and(|set| set.contains(Element::Bytes(member)));
        drop(entry);
        context.reply.integer(i64::from(there));
        return Ok(());
    }
    drop(entry);
    // The destination's type has to be right before anything is changed.
    drop(context.keys.find_mut_kind(destination, Kind::Set)?);
    let Some(mut entry) = context.keys.find_mut_kind(source, Kind::Set)? else {
        context.reply.integer(0);
        return Ok(());
    };
    if !set::remove(&mut entry, Element::Bytes(member)) {
        drop(entry);
        context.reply.integer(0);
        return Ok(());
    }
    let emptied = SetRef::new(entry.view()).is_some_and(SetRef::is_empty);
    drop(entry);
    context.keys.changed(Class::Set, "srem", source);
    if emptied {
        context.keys.remove_emptied(source);
    }
    if add_one(context, destination, member, limits)? {
        context.keys.changed(Class::Set, "sadd", destination);
    }
    context.reply.integer(1);
    Ok(())
}

/// Adds a member to the set under `key`, which is created when there is none; whether it is new.
fn add_one(context: &mut Context<'_>, key: &[u8], member: &[u8], limits: Limits) -> Result<bool, CommandError> {
    let Some(mut entry) = context.keys.find_mut_kind(key, Kind::Set)? else {
        let header = Header { key, access: context.keys.new_access(), ..Header::default() };
        let mut entry = set::empty_for(header, member, 1, limits);
        let added = set::add(&mut entry, Element::Bytes(member), limits);
        context.keys.add(entry);
        return Ok(added);
    };
    Ok(set::add(&mut entry, Element::Bytes(member), limits))
}

pub(super) fn scard(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let set = context.keys.find_kind(args.at(1), Kind::Set)?.and_then(SetRef::new);
    context.reply.count(set.map_or(0, SetRef::len));
    Ok(())
}

pub(super) fn sismember(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let set = context.keys.find_kind(args.at(1), Kind::Set)?.and_then(SetRef::new);
    let there = set.is_some_and(|set| set.contains(Element::Bytes(args.at(2))));
    context.reply.integer(i64::from(there));
    Ok(())
}

pub(super) fn smismember(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let set = context.keys.find_kind(args.at(1), Kind::Set)?.and_then(SetRef::new);
    let members = args.from(2);
    context.reply.array(members.len());
    for member in members.iter() {
        let there = set.is_some_and(|set| set.contains(Element::Bytes(member)));
        context.reply.integer(i64::from(there));
    }
    Ok(())
}

pub(super) fn smembers(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let Some(set) = context.keys.find_kind(args.at(1), Kind::Set)?.and_then(SetRef::new) else {
        context.reply.set(0);
        return Ok(());
    };
    context.reply.set(set.len());
    for member in set.iter() {
        reply_member(&mut context.reply, member);
    }
    Ok(())
}
