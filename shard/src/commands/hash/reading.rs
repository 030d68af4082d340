//! Reading fields.

use super::{Args, reply_element};
use crate::context::Context;
use crate::error::CommandResult;
use crate::hash::Hash;

pub(super) fn hget(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let hash = context.keys.find_hash(args.at(1), [args.at(2)])?;
    match hash.and_then(|hash| hash.get(args.at(2))) {
        Some(value) => reply_element(&mut context.reply, value),
        None => context.reply.null(),
    }
    Ok(())
}

pub(super) fn hmget(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let fields = args.from(2);
    let hash = context.keys.find_hash(args.at(1), fields.iter())?;
    context.reply.array(fields.len());
    for field in fields.iter() {
        match hash.and_then(|hash| hash.get(field)) {
            Some(value) => reply_element(&mut context.reply, value),
            None => context.reply.null(),
        }
    }
    Ok(())
}

pub(super) fn hexists(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let hash = context.keys.find_hash(args.at(1), [args.at(2)])?;
    let found = hash.is_some_and(|hash| hash.get(args.at(2)).is_some());
    context.reply.integer(i64::from(found));
    Ok(())
}

pub(super) fn hstrlen(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let hash = context.keys.find_hash(args.at(1), [args.at(2)])?;
    let len = hash.and_then(|hash| hash.get(args.at(2))).map_or(0, |value| value.len());
    context.reply.count(len);
    Ok(())
}

pub(super) fn hlen(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let len = context.keys.find_hash(args.at(1), [])?.map_or(0, Hash::len);
    context.reply.count(len);
    Ok(())
}

pub(super) fn hgetall(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let hash = context.keys.find_hash(args.at(1), [])?.unwrap_or(Hash::EMPTY);
    let reply = &mut context.reply;
    reply.map(hash.live_len());
    hash.for_each(|field, value| {
        reply_element(reply, field);
        reply_element(reply, value);
    });
    Ok(())
}

pub(super) fn hkeys(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let hash = context.keys.find_hash(args.at(1), [])?.unwrap_or(Hash::EMPTY);
    let reply = &mut context.reply;
    reply.array(hash.live_len());
    hash.for_each(|field, _| reply_element(reply, field));
    Ok(())
}

pub(super) fn hvals(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let hash = context.keys.find_hash(args.at(1), [])?.unwrap_or(Hash::EMPTY);
    let reply = &mut context.reply;
    reply.array(hash.live_len());
    hash.for_each(|_, value| reply_element(reply, value));
    Ok(())
}
