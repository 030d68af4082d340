//! Members chosen at random: every choice has the same chance.

use std::collections::HashSet;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::args::{Args, OwnedArgs};
use crate::commands::set::reply_member;
use crate::context::{Context, ReplyLimit};
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::number::parse_i64;
use crate::packed::{Element, IntBuffer};
use crate::reply::Reply;
use crate::set::{self, Limits, SetRef};

/// A large set that keeps less than a fifth of what is taken out is made anew from what it keeps.
const KEEP_FACTOR: usize = 5;

/// Up to a third of a large set is chosen member by member, more in one pass over all of them.
const PASS_FACTOR: usize = 3;

/// A generator for one call, which can be used while the keys are borrowed.
fn generator(context: &mut Context<'_>) -> SmallRng {
    SmallRng::from_rng(&mut context.keys.random)
}

pub(super) fn spop(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    match args.len() {
        2 => pop_one(context, args.at(1)),
        3 => {
            let count = parse_i64(args.at(2)).and_then(|count| usize::try_from(count).ok());
            pop_many(context, args.at(1), count.ok_or(CommandError::MUST_BE_POSITIVE)?)
        }
        _ => Err(CommandError::SYNTAX),
    }
}

/// Replies with the members that are popped, and notes them: which members go is chosen at random, so the log is told to
/// remove these.
struct Popped<'r, 'a> {
    reply: &'r mut Reply<'a>,
    removal: OwnedArgs,
}

impl<'r, 'a> Popped<'r, 'a> {
    fn new(reply: &'r mut Reply<'a>, key: &[u8]) -> Popped<'r, 'a> {
        Popped { reply, removal: [b"SREM", key].into_iter().collect() }
    }

    fn take(&mut self, member: Element<'_>) {
        self.removal.push(member.as_bytes(&mut IntBuffer::new()));
        reply_member(self.reply, member);
    }
}

fn pop_one(context: &mut Context<'_>, key: &[u8]) -> CommandResult {
    let mut random = generator(context);
    let Some(mut entry) = context.keys.find_mut_kind(key, Kind::Set)? else {
        context.reply.null();
        return Ok(());
    };
    let mut popped = Popped::new(&mut context.reply, key);
    set::pop_random(&mut entry, |below| random.random_range(0..below), |member| popped.take(member));
    context.logged = Some(popped.removal);
    let emptied = SetRef::new(entry.view()).is_some_and(SetRef::is_empty);
    drop(entry);
    context.keys.changed(Class::Set, "spop", key);
    if emptied {
        context.keys.remove_emptied(key);
    }
    Ok(())
}

fn pop_many(context: &mut Context<'_>, key: &[u8], count: usize) -> CommandResult {
    let mut random = generator(context);
    let limits = Limits::of(&context.keys.settings);
    let Some(mut entry) = context.keys.find_mut_kind(key, Kind::Set)? else {
        context.reply.set(0);
        return Ok(());
    };
    let size = SetRef::new(entry.view()).map_or(0, SetRef::len);
    if count == 0 {
        drop(entry);
        context.reply.set(0);
        return Ok(());
    }
    context.reply.set(count.min(size));
    if count >= size {
        for member in SetRef::new(entry.view()).into_iter().flat_map(SetRef::iter) {
            reply_member(&mut context.reply, member);
        }
        context.logged = Some([b"DEL", key].into_iter().collect());
        drop(entry);
        context.keys.changed(Class::Set, "spop", key);
        context.keys.remove_emptied(key);
        return Ok(());
    }
    let mut popped = Popped::new(&mut context.reply, key);
    let mut below = |bound| random.random_range(0..bound);
    let kept = size - count;
    let mut replaced = None;
    if set::pop_sample_small(&mut entry, count, &mut below, |member| popped.take(member)) {
        // Everything is done.
    } else if kept.saturating_mul(KEEP_FACTOR) > count {
        for _ in 0..count {
            set::pop_random(&mut entry, &mut below, |member| popped.take(member));
        }
    } else {
        let mut remaining = set::empty_packed(entry.header());
        for _ in 0..kept {
            set::pop_random(&mut entry, &mut below, |member| {
                set::add(&mut remaining, member, limits);
            });
        }
        for member in SetRef::new(entry.view()).into_iter().flat_map(SetRef::iter) {
            popped.take(member);
        }
        replaced = Some(std::mem::replace(&mut *entry, remaining));
    }
    context.logged = Some(popped.removal);
    drop(entry);
    if let Some(replaced) = replaced {
        context.keys.discard(replaced);
    }
    context.keys.changed(Class::Set, "spop", key);
    Ok(())
}

pub(super) fn srandmember(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    match args.len() {
        2 => {
            let mut random = generator(context);
            let set = context.keys.find_kind(args.at(1), Kind::Set)?.and_then(SetRef::new);
            match set.and_then(|set| set.random(|below| random.random_range(0..below))) {
                Some(member) => reply_member(&mut context.reply, member),
                None => context.reply.null(),
            }
            Ok(())
        }
        3 => {
            let count = parse_i64(args.at(2)).ok_or(CommandError::NOT_AN_INTEGER)?;
            if count == i64::MIN {
                return Err(CommandError::new(format!(
                    "ERR value is out of range, value must between {} and {}",
                    -i64::MAX,
                    i64::MAX
                )));
            }
            choose_many(context, args.at(1), count)
        }
        _ => Err(CommandError::SYNTAX),
    }
}

fn choose_many(context: &mut Context<'_>, key: &[u8], count: i64) -> CommandResult {
    let mut random = generator(context);
    let mut below = |bound| random.random_range(0..bound);
    let limit = context.reply_limit();
    let Some(set) = context.keys.find_kind(key, Kind::Set)?.and_then(SetRef::new) else {
        context.reply.array(0);
        return Ok(());
    };
    let reply = &mut context.reply;
    if count < 0 {
        return choose_repeatedly(reply, set, count.unsigned_abs(), limit, below);
    }
    let size = set.len();
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(size);
    reply.array(count);
    match set {
        SetRef::Large(_) if count == 1 => {
            if let Some(member) = set.random(below) {
                reply_member(reply, member);
            }
        }
        SetRef::Large(large) if count.saturating_mul(PASS_FACTOR) <= size => {
            // Members are told apart by their addresses: each has a block of its own.
            let mut chosen = HashSet::with_capacity(count);
            while chosen.len() < count {
                let Some(member) = large.random(&mut below) else { break };
                if chosen.insert(member.as_ptr()) {
                    reply_member(reply, Element::Bytes(member));
                }
            }
        }
        _ => {
            for member in set.sample(count, below) {
                reply_member(reply, member);
            }
        }
    }
    Ok(())
}

/// Replies `count` members, any of which may come again. The reply is bounded: a few bytes of a command must not be
/// able to ask for more memory than there is.
fn choose_repeatedly(
    reply: &mut Reply<'_>,
    set: SetRef<'_>,
    count: u64,
    limit: ReplyLimit,
    mut below: impl FnMut(usize) -> usize,
) -> CommandResult {
    let members = usize::try_from(count).unwrap_or(usize::MAX);
    limit.check_elements(members)?;
    let start = reply.mark();
    reply.array(members);
    // A packed set has to be walked for each member: once is enough when many are wanted.
    let walked: Vec<Element<'_>> =
        if members > 1 && matches!(set, SetRef::Packed(_)) { set.iter().collect() } else { Vec::new() };
    for _ in 0..members {
        let member = if walked.is_empty() { set.random(&mut below) } else { walked.get(below(walked.len())).copied() };
        if let Some(member) = member {
            reply_member(reply, member);
        }
        limit.check(reply.mark() - start)?;
    }
    Ok(())
}
