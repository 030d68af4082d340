//! Pops that wait for a member.

use super::pop::{End, pop_any, pop_one};
use crate::args::Args;
use crate::context::Context;
use crate::entry::Kind;
use crate::error::CommandResult;
use crate::wait::{Wait, parse_timeout};

fn pop(context: &mut Context<'_>, args: Args<'_>, end: End) -> CommandResult {
    let last = args.len() - 1;
    let timeout_ms = parse_timeout(args.at(last), context.keys.now_ms())?;
    for key in args.iter().take(last).skip(1) {
        if pop_one(context, key, end)? {
            return Ok(());
        }
    }
    if !context.wait_for(Wait { kind: Kind::SortedSet, keys: 1..last, timeout_ms }) {
        context.reply.null_array();
    }
    Ok(())
}

/// `BZPOPMIN key [key ...] timeout`
pub(super) fn bzpopmin(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop(context, args, End::Low)
}

/// `BZPOPMAX key [key ...] timeout`
pub(super) fn bzpopmax(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    pop(context, args, End::High)
}

/// `BZMPOP timeout numkeys key [key ...] <MIN | MAX> [COUNT count]`
pub(super) fn bzmpop(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let timeout_ms = parse_timeout(args.at(1), context.keys.now_ms())?;
    let missing = pop_any(context, args.from(1))?;
    if let Some(keys) = missing
        && !context.wait_for(Wait { kind: Kind::SortedSet, keys: keys.start + 1..keys.end + 1, timeout_ms })
    {
        context.reply.null_array();
    }
    Ok(())
}
