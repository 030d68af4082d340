//! Commands that change lists anywhere: `LINSERT`, `LREM`, `LSET` and `LTRIM`.

use crate::args::Args;
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::list::{End, Limit, ListMut};

use super::{finish_removal, integer, resolve, resolve_range, symmetric_integer};

pub(super) fn linsert(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let side = if args.is(2, "BEFORE") {
        End::Left
    } else if args.is(2, "AFTER") {
        End::Right
    } else {
        return Err(CommandError::SYNTAX);
    };
    let key = args.at(1);
    let limit = Limit::of(&context.keys.settings);
    let Some(mut entry) = context.keys.find_mut_kind(key, Kind::List)? else {
        context.reply.count(0);
        return Ok(());
    };
    let inserted = ListMut::new(&mut entry, limit).insert_beside(args.at(3), side, args.at(4));
    drop(entry);
    match inserted {
        Some(len) => {
            context.keys.changed(Class::List, "linsert", key);
            context.reply.count(len);
        }
        None => context.reply.integer(-1),
    }
    Ok(())
}

pub(super) fn lrem(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let count = symmetric_integer(args.at(2))?;
    let from = if count < 0 { End::Right } else { End::Left };
    let most = match count {
        0 => usize::MAX,
        _ => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
    };
    let key = args.at(1);
    let limit = Limit::of(&context.keys.settings);
    let Some(mut entry) = context.keys.find_mut_kind(key, Kind::List)? else {
        context.reply.count(0);
        return Ok(());
    };
    let mut list = ListMut::new(&mut entry, limit);
    let removed = list.remove_matching(args.at(3), most, from);
    let emptied = list.is_empty();
    drop(entry);
    if removed > 0 {
        finish_removal(context, key, "lrem", emptied);
    }
    context.reply.count(removed);
    Ok(())
}

pub(super) fn lset(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let limit = Limit::of(&context.keys.settings);
    let mut entry = context.keys.find_mut_kind(key, Kind::List)?.ok_or(CommandError::NO_SUCH_KEY)?;
    let index = integer(args.at(2))?;
    let mut list = ListMut::new(&mut entry, limit);
    let index = resolve(index, list.len()).ok_or(CommandError::INDEX_OUT_OF_RANGE)?;
    if !list.set(index, args.at(3)) {
        return Err(CommandError::INDEX_OUT_OF_RANGE);
    }
    drop(entry);
    context.keys.changed(Class::List, "lset", key);
    context.reply.ok();
    Ok(())
}

pub(super) fn ltrim(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (start, stop) = (integer(args.at(2))?, integer(args.at(3))?);
    let key = args.at(1);
    let limit = Limit::of(&context.keys.settings);
    let Some(mut entry) = context.keys.find_mut_kind(key, Kind::List)? else {
        context.reply.ok();
        return Ok(());
    };
    let mut list = ListMut::new(&mut entry, limit);
    let len = list.len();
    let range = resolve_range(start, stop, len);
    if !range.is_empty() {
        list.remove(End::Left, range.start);
        list.remove(End::Right, len - range.end);
    }
    drop(entry);
    if range.len() < len {
        finish_removal(context, key, "ltrim", range.is_empty());
    } else {
        context.keys.unchanged(Class::List, "ltrim", key);
    }
    context.reply.ok();
    Ok(())
}
