//! Pops and moves that wait for an element.

use super::end_named;
use super::ends::{move_element, pop_any, pop_one};
use crate::args::Args;
use crate::context::Context;
use crate::entry::Kind;
use crate::error::CommandResult;
use crate::list::End;
use crate::wait::{Wait, parse_timeout};

fn pop(context: &mut Context<'_>, args: Args<'_>, end: End) -> CommandResult {
    let last = args.len() - 1;
    let timeout_ms = parse_timeout(args.at(last), context.keys.now_ms())?;
    for key in args.iter().take(last).skip(1) {
        if pop_one(context, key, end)? {
            return Ok(());
        }
    }
    if !context.wait_for(Wait { kind: Kind::List, keys: 1..last, timeout_ms }) {
        context.reply.null_array();
    }
    Ok(())
}

/// `BLPOP key [key ...] timeout`
pub(super) fn blpop(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop(context, args, End::Left)
}

/// `BRPOP key [key ...] timeout`
pub(super) fn brpop(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop(context, args, End::Right)
}

fn move_or_wait(context: &mut Context<'_>, args: Args<'_>, from: End, to: End, timeout: usize) -> CommandResult {
    let timeout_ms = parse_timeout(args.at(timeout), context.keys.now_ms())?;
    let moved = move_element(context, args.at(1), args.at(2), from, to)?;
    if !moved && !context.wait_for(Wait { kind: Kind::List, keys: 1..2, timeout_ms }) {
        context.reply.null();
    }
    Ok(())
}

/// `BLMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout`
pub(super) fn blmove(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (from, to) = (end_named(args, 3)?, end_named(args, 4)?);
    move_or_wait(context, args, from, to, 5)
}

/// `BRPOPLPUSH source destination timeout`
pub(super) fn brpoplpush(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    move_or_wait(context, args, End::Right, End::Left, 3)
}

/// `BLMPOP timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]`
pub(super) fn blmpop(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let timeout_ms = parse_timeout(args.at(1), context.keys.now_ms())?;
    let missing = pop_any(context, args.from(1))?;
    if let Some(keys) = missing
        && !context.wait_for(Wait { kind: Kind::List, keys: keys.start + 1..keys.end + 1, timeout_ms })
    {
        context.reply.null_array();
    }
    Ok(())
}
