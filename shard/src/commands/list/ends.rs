//! Commands that work at the ends of lists: pushing, popping and moving.

use std::ops::Range;

use crate::args::Args;
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::list::{End, Limit, ListMut, ListRef, push_all};
use crate::number::{IntBuffer, parse_i64};

use super::{end_named, finish_removal, reply_element};

fn push(context: &mut Context<'_>, args: Args<'_>, end: End) -> CommandResult {
    let key = args.at(1);
    let len = push_all(context.keys, key, end, args.from(2).iter())?;
    context.keys.changed(Class::List, push_event(end), key);
    context.reply.count(len);
    Ok(())
}

fn push_existing(context: &mut Context<'_>, args: Args<'_>, end: End) -> CommandResult {
    let key = args.at(1);
    let limit = Limit::of(&context.keys.settings);
    let Some(mut entry) = context.keys.find_mut_kind(key, Kind::List)? else {
        context.reply.count(0);
        return Ok(());
    };
    let len = ListMut::new(&mut entry, limit).push(end, args.from(2).iter());
    drop(entry);
    context.keys.changed(Class::List, push_event(end), key);
    context.reply.count(len);
    Ok(())
}

fn push_event(end: End) -> &'static str {
    match end {
        End::Left => "lpush",
        End::Right => "rpush",
    }
}

fn pop_event(end: End) -> &'static str {
    match end {
        End::Left => "lpop",
        End::Right => "rpop",
    }
}

pub(super) fn lpush(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    push(context, args, End::Left)
}

pub(super) fn rpush(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    push(context, args, End::Right)
}

pub(super) fn lpushx(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    push_existing(context, args, End::Left)
}

pub(super) fn rpushx(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    push_existing(context, args, End::Right)
}

fn pop(context: &mut Context<'_>, args: Args<'_>, end: End) -> CommandResult {
    if args.len() > 3 {
        return Err(CommandError::wrong_arity(pop_event(end)));
    }
    let count = match args.get(2) {
        None => None,
        Some(word) => {
            let count = parse_i64(word).and_then(|count| usize::try_from(count).ok());
            Some(count.ok_or(CommandError::MUST_BE_POSITIVE)?)
        }
    };
    let key = args.at(1);
    let limit = Limit::of(&context.keys.settings);
    let reply = &mut context.reply;
    let Some(mut entry) = context.keys.find_mut_kind(key, Kind::List)? else {
        match count {
            Some(_) => reply.null_array(),
            None => reply.null(),
        }
        return Ok(());
    };
    let mut list = ListMut::new(&mut entry, limit);
    let len = list.len();
    let count = match count {
        None => {
            match list.view().last(end) {
                Some(element) => reply_element(reply, element),
                None => reply.null(),
            }
            1
        }
        Some(count) => {
            let count = count.min(len);
            reply.array(count);
            list.view().walk(end, 0).take(count).for_each(|element| reply_element(reply, element));
            count
        }
    };
    if count == 0 {
        return Ok(());
    }
    if count < len {
        list.remove(end, count);
    }
    drop(entry);
    finish_removal(context, key, pop_event(end), count == len);
    Ok(())
}

pub(super) fn lpop(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop(context, args, End::Left)
}

pub(super) fn rpop(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop(context, args, End::Right)
}

/// Pops one element of `key` and replies with both; false when there is none, and nothing is written.
pub(super) fn pop_one(context: &mut Context<'_>, key: &[u8], end: End) -> Result<bool, CommandError> {
    let limit = Limit::of(&context.keys.settings);
    let Some(mut entry) = context.keys.find_mut_kind(key, Kind::List)? else { return Ok(false) };
    let mut list = ListMut::new(&mut entry, limit);
    let len = list.len();
    let Some(element) = list.view().last(end) else { return Ok(false) };
    let reply = &mut context.reply;
    reply.array(2);
    reply.bulk(key);
    reply_element(reply, element);
    if len > 1 {
        list.remove(end, 1);
    }
    drop(entry);
    finish_removal(context, key, pop_event(end), len == 1);
    Ok(true)
}

pub(super) fn lmpop(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    if pop_any(context, args)?.is_some() {
        context.reply.null_array();
    }
    Ok(())
}

/// `numkeys key [key ...] <LEFT | RIGHT> [COUNT count]` behind a first word: pops from the first list that is there and
/// replies; where none is, nothing is written, and the places of the keys are returned.
pub(super) fn pop_any(context: &mut Context<'_>, args: Args<'_>) -> Result<Option<Range<usize>>, CommandError> {
    let keys = positive(args.at(1), "ERR numkeys should be greater than 0")?;
    let end_at = keys.checked_add(2).filter(|&index| index < args.len()).ok_or(CommandError::SYNTAX)?;
    let end = end_named(args, end_at)?;
    let count = match args.len() - end_at {
        1 => 1,
        3 if args.is(end_at + 1, "COUNT") => positive(args.at(end_at + 2), "ERR count should be greater than 0")?,
        // The first option is looked at before the words behind it.
        4.. if args.is(end_at + 1, "COUNT") => {
            positive(args.at(end_at + 2), "ERR count should be greater than 0")?;
            return Err(CommandError::SYNTAX);
        }
        _ => return Err(CommandError::SYNTAX),
    };
    let limit = Limit::of(&context.keys.settings);
    for index in 2..end_at {
        let key = args.at(index);
        let Some(mut entry) = context.keys.find_mut_kind(key, Kind::List)? else { continue };
        let mut list = ListMut::new(&mut entry, limit);
        let len = list.len();
        let count = count.min(len);
        let reply = &mut context.reply;
        reply.array(2);
        reply.bulk(key);
        reply.array(count);
        list.view().walk(end, 0).take(count).for_each(|element| reply_element(reply, element));
        if count < len {
            list.remove(end, count);
        }
        drop(entry);
        finish_removal(context, key, pop_event(end), count == len);
        return Ok(None);
    }
    Ok(Some(2..end_at))
}

fn positive(word: &[u8], error: &'static str) -> Result<usize, CommandError> {
    let value = parse_i64(word).and_then(|value| usize::try_from(value).ok()).filter(|&value| value > 0);
    value.ok_or(CommandError::new(error))
}

pub(super) fn lmove(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (from, to) = (end_named(args, 3)?, end_named(args, 4)?);
    move_or_nil(context, args, from, to)
}

pub(super) fn rpoplpush(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    move_or_nil(context, args, End::Right, End::Left)
}

fn move_or_nil(context: &mut Context<'_>, args: Args<'_>, from: End, to: End) -> CommandResult {
    if !move_element(context, args.at(1), args.at(2), from, to)? {
        context.reply.null();
    }
    Ok(())
}

/// Moves an element and replies with it; false when there is none, and nothing is written.
pub(super) fn move_element(
    context: &mut Context<'_>,
    source: &[u8],
    destination: &[u8],
    from: End,
    to: End,
) -> Result<bool, CommandError> {
    let limit = Limit::of(&context.keys.settings);
    let moved = context.keys.find_mut_kind(source, Kind::List)?.and_then(|entry| {
        let mut scratch = IntBuffer::new();
        let element = ListRef::of(entry.view()).last(from)?;
        Some(element.as_bytes(&mut scratch).to_vec())
    });
    let Some(moved) = moved else { return Ok(false) };
    // Pushed before it is popped: where both are one list, the list is never empty in between, and what is popped is
    // the moved element or its equal.
    push_all(context.keys, destination, to, std::iter::once(moved.as_slice()))?;
    context.keys.changed_besides(Class::List, push_event(to), destination);
    let emptied = match context.keys.find_mut_kind(source, Kind::List)? {
        Some(mut entry) => {
            let mut list = ListMut::new(&mut entry, limit);
            let last = list.len() == 1;
            if !last {
                list.remove(from, 1);
            }
            last
        }
        None => false,
    };
    context.reply.bulk(&moved);
    finish_removal(context, source, pop_event(from), emptied);
    Ok(true)
}
