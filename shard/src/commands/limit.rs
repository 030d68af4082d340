//! Rate limits.

use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::context::Context;
use crate::entry::{Encoding, Entry, Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::limit::{Decision, FixedWindow, Limiter, Request, SlidingWindow, TokenBucket};
use crate::number::parse_i64;

const UPDATE: KeyFlags = KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE);

/// The family's commands.
pub static COMMANDS: &[Command] = &[Command {
    spec: Spec {
        name: "limit",
        arity: -4,
        flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST),
        keys: &[KeySpec::one(1, UPDATE)],
        categories: Categories::LIMIT,
        group: Group::Limit,
        since: "0.1.0",
        complexity: "O(1)",
        summary: "Counts a call against a rate limit and returns what is left, or nothing when the limit is reached.",
        syntax: "key max window_ms [SLIDING | TOKENS] [COST cost] [WITHRETRY]",
    },
    run: limit,
}];

fn limit(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let Options { mode, cost, with_retry } = Options::parse(args)?;
    let max = number_from(args.at(2), 1)?;
    let window_ms = number_from(args.at(3), 1)?;
    let cost = cost.map_or(Ok(1), |cost| number_from(cost, 0))?;
    if cost > max {
        return Err(CommandError::new("ERR the cost is greater than the limit's max, so the call could never pass"));
    }
    let request = Request { now_ms: context.keys.now_ms(), max, window_ms, cost };
    let key = args.at(1);
    match mode {
        Mode::Fixed => decide::<FixedWindow>(context, key, request, with_retry),
        Mode::Sliding => decide::<SlidingWindow>(context, key, request, with_retry),
        Mode::Tokens => decide::<TokenBucket>(context, key, request, with_retry),
    }
}

#[derive(Clone, Copy)]
enum Mode {
    Fixed,
    Sliding,
    Tokens,
}

struct Options<'a> {
    mode: Mode,
    cost: Option<&'a [u8]>,
    with_retry: bool,
}

impl<'a> Options<'a> {
    /// The words after `key max window_ms`, each option at most once.
    fn parse(args: Args<'a>) -> Result<Options<'a>, CommandError> {
        let (mut mode, mut cost, mut with_retry) = (None, None, false);
        let mut index = 4;
        while index < args.len() {
            if args.is(index, "sliding") && mode.is_none() {
                mode = Some(Mode::Sliding);
            } else if args.is(index, "tokens") && mode.is_none() {
                mode = Some(Mode::Tokens);
            } else if args.is(index, "withretry") && !with_retry {
                with_retry = true;
            } else if args.is(index, "cost") && cost.is_none() && index + 1 < args.len() {
                index += 1;
                cost = Some(args.at(index));
            } else {
                return Err(CommandError::SYNTAX);
            }
            index += 1;
        }
        Ok(Options { mode: mode.unwrap_or(Mode::Fixed), cost, with_retry })
    }
}

fn number_from(word: &[u8], least: i64) -> Result<i64, CommandError> {
    parse_i64(word).filter(|&number| number >= least).ok_or(CommandError::NOT_AN_INTEGER)
}

fn decide<S: Limiter>(context: &mut Context<'_>, key: &[u8], request: Request, with_retry: bool) -> CommandResult {
    let (remaining, retry_after_ms) = match count::<S>(context, key, request)? {
        Decision::Looked { remaining } => (Some(remaining), 0),
        Decision::Accepted { remaining, .. } => {
            context.keys.changed(Class::Limit, "limit", key);
            (Some(remaining), 0)
        }
        Decision::Refused { retry_after_ms } => (None, retry_after_ms),
    };
    let reply = &mut context.reply;
    if with_retry {
        reply.array(2);
    }
    match remaining {
        Some(remaining) => reply.integer(remaining),
        None => reply.null(),
    }
    if with_retry {
        reply.integer(retry_after_ms);
    }
    Ok(())
}

/// Decides the call and stores the state of an accepted one.
fn count<S: Limiter>(context: &mut Context<'_>, key: &[u8], request: Request) -> Result<Decision<S>, CommandError> {
    let keys = &mut *context.keys;
    let Some(mut entry) = keys.find_mut_kind(key, Kind::Limit)? else {
        let decision = S::decide(None, request)?;
        if let Decision::Accepted { state, .. } = &decision {
            let deadline_ms = Some(state.deadline_ms());
            let header = Header { key, deadline_ms, version: None, access: keys.new_access() };
            keys.add(Entry::new(header, S::ENCODING, &[state.bytes().as_ref()]));
        }
        return Ok(decision);
    };
    let view = entry.view();
    if view.encoding() != S::ENCODING {
        return Err(other_mode(view.encoding()));
    }
    // Every limiter has a deadline: the command that makes it sets one, and no other may take it away.
    let state = S::load(view.payload(), view.deadline_ms().unwrap_or(i64::MAX));
    let decision = S::decide(Some(state), request)?;
    if let Decision::Accepted { state, .. } = &decision {
        entry.payload_mut().copy_from_slice(state.bytes().as_ref());
        entry.set_deadline(Some(state.deadline_ms()));
    }
    Ok(decision)
}

fn other_mode(encoding: Encoding) -> CommandError {
    CommandError::new(match encoding {
        Encoding::SlidingLimit => "ERR the key holds a SLIDING limit, and a limit keeps its mode",
        Encoding::TokenLimit => "ERR the key holds a TOKENS limit, and a limit keeps its mode",
        _ => "ERR the key holds a fixed-window limit, and a limit keeps its mode",
    })
}
