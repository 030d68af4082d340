//! `HRANDFIELD`.

use std::collections::HashSet;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{Args, reply_element};
use crate::context::{Context, ReplyLimit};
use crate::error::{CommandError, CommandResult};
use crate::hash::Hash;
use crate::number::parse_i64;
use crate::packed::Element;
use crate::reply::Reply;

type Pair<'a> = (Element<'a>, Element<'a>);

pub(super) fn hrandfield(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    if args.len() == 2 {
        let mut random = choices(context);
        let hash = context.keys.find_hash_of_live(args.at(1))?;
        match hash.and_then(|hash| hash.random(|below| random.random_range(0..below))) {
            Some((field, _)) => reply_element(&mut context.reply, field),
            None => context.reply.null(),
        }
        return Ok(());
    }
    let count = parse_i64(args.at(2)).ok_or(CommandError::NOT_AN_INTEGER)?;
    if count == i64::MIN {
        return Err(CommandError::new(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ));
    }
    let with_values = match args.len() {
        3 => false,
        4 if args.is(3, "withvalues") => true,
        _ => return Err(CommandError::SYNTAX),
    };
    if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(CommandError::new("ERR value is out of range"));
    }
    let limit = context.reply_limit();
    let mut random = choices(context);
    let hash = context.keys.find_hash_of_live(args.at(1))?;
    let mut answer = Answer { reply: &mut context.reply, with_values };
    match hash {
        None => {
            answer.begin(0);
            Ok(())
        }
        Some(hash) if count < 0 => repeated(hash, count.unsigned_abs(), limit, &mut random, &mut answer),
        Some(hash) => {
            distinct(hash, usize::try_from(count).unwrap_or(usize::MAX), &mut random, &mut answer);
            Ok(())
        }
    }
}

/// A generator of the call's own, since the hash keeps the keyspace borrowed.
fn choices(context: &mut Context<'_>) -> SmallRng {
    SmallRng::seed_from_u64(context.keys.random.random())
}

/// The reply, with or without values.
struct Answer<'r, 'a> {
    reply: &'r mut Reply<'a>,
    with_values: bool,
}

impl Answer<'_, '_> {
    fn begin(&mut self, fields: usize) {
        let flat = self.with_values && !self.reply.is_resp3();
        self.reply.array(if flat { fields * 2 } else { fields });
    }

    fn put(&mut self, (field, value): Pair<'_>) {
        if self.with_values && self.reply.is_resp3() {
            self.reply.array(2);
        }
        reply_element(self.reply, field);
        if self.with_values {
            reply_element(self.reply, value);
        }
    }
}

/// `count` choices, each among all fields.
///
/// # Errors
///
/// When the reply grows past `limit`.
fn repeated(
    hash: Hash<'_>,
    count: u64,
    limit: ReplyLimit,
    random: &mut SmallRng,
    answer: &mut Answer<'_, '_>,
) -> CommandResult {
    let fields = usize::try_from(count).unwrap_or(usize::MAX);
    limit.check_elements(fields)?;
    let packed = hash.is_packed().then(|| pairs(hash));
    let start = answer.reply.mark();
    answer.begin(fields);
    for _ in 0..fields {
        let chosen = match &packed {
            Some(packed) => packed.get(random.random_range(0..packed.len().max(1))).copied(),
            None => hash.random(|below| random.random_range(0..below)),
        };
        if let Some(pair) = chosen {
            answer.put(pair);
        }
        limit.check(answer.reply.mark() - start)?;
    }
    Ok(())
}

/// Up to `count` fields, none of them twice.
fn distinct(hash: Hash<'_>, count: usize, random: &mut SmallRng, answer: &mut Answer<'_, '_>) {
    // So few of many that one is seldom chosen twice.
    if !hash.is_packed() && count < hash.len() / 3 {
        answer.begin(count);
        let mut chosen = HashSet::with_capacity(count);
        while chosen.len() < count {
            let Some(pair) = hash.random(|below| random.random_range(0..below)) else { return };
            // The names of a table's fields are bytes.
            if let (Element::Bytes(name), _) = pair
                && chosen.insert(name)
            {
                answer.put(pair);
            }
        }
        return;
    }
    let fields = hash.live_len();
    if count >= fields {
        answer.begin(fields);
        hash.for_each(|field, value| answer.put((field, value)));
        return;
    }
    answer.begin(count);
    // Each field is taken with the chance that leaves every choice equally likely.
    let (mut wanted, mut left) = (count, fields);
    hash.for_each(|field, value| {
        if random.random_range(0..left.max(1)) < wanted {
            wanted -= 1;
            answer.put((field, value));
        }
        left = left.saturating_sub(1);
    });
}

fn pairs(hash: Hash<'_>) -> Vec<Pair<'_>> {
    let mut pairs = Vec::new();
    hash.for_each(|field, value| pairs.push((field, value)));
    pairs
}
