//! Setting and removing fields.

use super::Args;
use crate::context::Context;
use crate::entry::{Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::hash::{self, Limits, Place};

pub(super) fn hset(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let added = set_fields(context, args, "hset")?;
    context.reply.count(added);
    Ok(())
}

pub(super) fn hmset(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    set_fields(context, args, "hmset")?;
    context.reply.ok();
    Ok(())
}

/// Sets the fields of `HSET` or `HMSET`; how many are new.
fn set_fields(context: &mut Context<'_>, args: Args<'_>, name: &str) -> Result<usize, CommandError> {
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::wrong_arity(name));
    }
    let (key, words) = (args.at(1), args.from(2));
    let pairs = (0..words.len() / 2).map(move |pair| (words.at(2 * pair), words.at(2 * pair + 1)));
    let keys = &mut *context.keys;
    let (limits, now_ms) = (Limits::of(&keys.settings), keys.now_ms());
    let added = if let Some(mut entry) = keys.find_mut_kind(key, Kind::Hash)? {
        hash::set_all(&mut entry, pairs, limits, now_ms)
    } else {
        let header = Header { key, access: keys.new_access(), ..Header::default() };
        let (entry, fields) = hash::create(header, pairs, limits);
        keys.add(entry);
        fields
    };
    keys.changed(Class::Hash, "hset", key);
    Ok(added)
}

pub(super) fn hsetnx(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, field, value) = (args.at(1), args.at(2), args.at(3));
    let keys = &mut *context.keys;
    let limits = Limits::of(&keys.settings);
    if let Some(mut entry) = keys.find_hash_mut(key, [field])? {
        let place = Place::find(&entry, field);
        if place.is_present() {
            context.reply.integer(0);
            return Ok(());
        }
        place.set(&mut entry, field, value, limits);
    } else {
        let header = Header { key, access: keys.new_access(), ..Header::default() };
        let (entry, _) = hash::create(header, std::iter::once((field, value)), limits);
        keys.add(entry);
    }
    keys.changed(Class::Hash, "hset", key);
    context.reply.integer(1);
    Ok(())
}

/// A field that has expired but is still there is removed like any other, and counted, as in Redis.
pub(super) fn hdel(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let keys = &mut *context.keys;
    let (mut removed, mut emptied) = (0, false);
    if let Some(mut entry) = keys.find_mut_kind(key, Kind::Hash)? {
        for field in args.from(2).iter() {
            removed += usize::from(Place::find(&entry, field).remove(&mut entry));
        }
        emptied = hash::is_empty(entry.view());
    }
    if removed > 0 {
        keys.changed(Class::Hash, "hdel", key);
    }
    if emptied {
        keys.remove_emptied(key);
    }
    context.reply.count(removed);
    Ok(())
}
