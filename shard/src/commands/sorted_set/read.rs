//! Reading single members, counts and ranks.

use rand::RngExt;

use super::{begin_members, reply_member, reply_members, reply_scored};
use crate::args::Args;
use crate::commands::scan_options::ScanOptions;
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::number::{parse_i64, write_f64};
use crate::packed::{Element, IntBuffer};
use crate::scan::parse_cursor;
use crate::sorted_set::{LexRange, ScoreRange, SortedSetRef};

pub(super) fn zcard(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let len = context.keys.find_kind(args.at(1), Kind::SortedSet)?.map_or(0, |entry| SortedSetRef::of(entry).len());
    context.reply.count(len);
    Ok(())
}

pub(super) fn zcount(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let range = ScoreRange::parse(args.at(2), args.at(3))?;
    let found = context.keys.find_kind(args.at(1), Kind::SortedSet)?;
    context.reply.count(found.map_or(0, |entry| SortedSetRef::of(entry).ranks_by_score(&range).len()));
    Ok(())
}

pub(super) fn zlexcount(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let range = LexRange::parse(args.at(2), args.at(3))?;
    let found = context.keys.find_kind(args.at(1), Kind::SortedSet)?;
    context.reply.count(found.map_or(0, |entry| SortedSetRef::of(entry).ranks_by_lex(&range).len()));
    Ok(())
}

pub(super) fn zscore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let found = context.keys.find_kind(args.at(1), Kind::SortedSet)?;
    match found.and_then(|entry| SortedSetRef::of(entry).score(args.at(2))) {
        Some(score) => context.reply.double(score),
        None => context.reply.null(),
    }
    Ok(())
}

pub(super) fn zmscore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let set = context.keys.find_kind(args.at(1), Kind::SortedSet)?.map(SortedSetRef::of);
    let members = args.from(2);
    context.reply.array(members.len());
    for member in members.iter() {
        match set.and_then(|set| set.score(member)) {
            Some(score) => context.reply.double(score),
            None => context.reply.null(),
        }
    }
    Ok(())
}

pub(super) fn zrank(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    rank(context, args, false)
}

pub(super) fn zrevrank(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    rank(context, args, true)
}

fn rank(context: &mut Context<'_>, args: Args<'_>, descending: bool) -> CommandResult {
    let with_score = match args.len() {
        3 => false,
        4 if args.is(3, "withscore") => true,
        _ => return Err(CommandError::SYNTAX),
    };
    let set = context.keys.find_kind(args.at(1), Kind::SortedSet)?.map(SortedSetRef::of);
    let found = set.and_then(|set| {
        let (rank, score) = set.rank(args.at(2))?;
        Some((if descending { set.len() - 1 - rank } else { rank }, score))
    });
    match found {
        Some((rank, score)) if with_score => {
            context.reply.array(2);
            context.reply.count(rank);
            context.reply.double(score);
        }
        Some((rank, _)) => context.reply.count(rank),
        None if with_score => context.reply.null_array(),
        None => context.reply.null(),
    }
    Ok(())
}

pub(super) fn zrandmember(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let Some(count) = args.get(2) else { return random_member(context, key) };
    let count = parse_i64(count).ok_or(CommandError::NOT_AN_INTEGER)?;
    if count == i64::MIN {
        let text = format!("ERR value is out of range, value must between {} and {}", -i64::MAX, i64::MAX);
        return Err(CommandError::new(text));
    }
    let with_scores = match args.len() {
        3 => false,
        4 if args.is(3, "withscores") => true,
        _ => return Err(CommandError::SYNTAX),
    };
    // The number of replies must fit an integer.
    if with_scores && !(-i64::MAX / 2..=i64::MAX / 2).contains(&count) {
        return Err(CommandError::new("ERR value is out of range"));
    }
    let Some(set) = context.keys.find_kind(key, Kind::SortedSet)?.map(SortedSetRef::of) else {
        context.reply.array(0);
        return Ok(());
    };
    let len = set.len();
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if wanted == 0 {
        context.reply.array(0);
        return Ok(());
    }
    if count > 0 && wanted >= len {
        reply_members(&mut context.reply, set.all().rev(), len, with_scores);
        return Ok(());
    }
    // The ranks are chosen while the set is not borrowed; it is the same set afterwards.
    let chosen = (count > 0).then(|| rand::seq::index::sample(&mut context.keys.random, len, wanted));
    let mut random = context.keys.random.clone();
    let limit = context.reply_limit();
    let Some(set) = context.keys.peek(key).map(SortedSetRef::of) else { return Ok(()) };
    let pairs: Vec<(Element<'_>, f64)> = match set {
        SortedSetRef::Packed(_) => set.all().collect(),
        SortedSetRef::Large(_) => Vec::new(),
    };
    let at = |rank: usize| match set {
        SortedSetRef::Packed(_) => pairs.get(rank).copied(),
        SortedSetRef::Large(_) => set.members(rank..rank + 1).next(),
    };
    match chosen {
        Some(ranks) => reply_members(&mut context.reply, ranks.into_iter().filter_map(at), wanted, with_scores),
        None => {
            limit.check_elements(wanted)?;
            let start = context.reply.mark();
            begin_members(&mut context.reply, wanted, with_scores);
            for _ in 0..wanted {
                let Some(pair) = at(random.random_range(0..len)) else { continue };
                if with_scores {
                    reply_scored(&mut context.reply, pair);
                } else {
                    reply_member(&mut context.reply, pair.0);
                }
                limit.check(context.reply.mark() - start)?;
            }
            context.keys.random = random;
        }
    }
    Ok(())
}

fn random_member(context: &mut Context<'_>, key: &[u8]) -> CommandResult {
    let Some(len) = context.keys.find_kind(key, Kind::SortedSet)?.map(|entry| SortedSetRef::of(entry).len()) else {
        context.reply.null();
        return Ok(());
    };
    let rank = context.keys.random.random_range(0..len.max(1));
    let set = context.keys.peek(key).map(SortedSetRef::of);
    match set.and_then(|set| set.members(rank..rank + 1).next()) {
        Some((member, _)) => reply_member(&mut context.reply, member),
        None => context.reply.null(),
    }
    Ok(())
}

pub(super) fn zscan(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let cursor = parse_cursor(args.at(2))?;
    let Some(set) = context.keys.find_kind(args.at(1), Kind::SortedSet)?.map(SortedSetRef::of) else {
        context.reply.array(2);
        context.reply.bulk(b"0");
        context.reply.array(0);
        return Ok(());
    };
    let options = ScanOptions::parse(args.from(3), "ZSCAN")?;
    let reply = &mut context.reply;
    reply.array(2);
    let mut words = 0;
    match set {
        SortedSetRef::Packed(_) => {
            reply.bulk(b"0");
            let elements = reply.begin_array();
            let mut scratch = IntBuffer::new();
            for (member, score) in set.all() {
                if options.matches(member.as_bytes(&mut scratch)) {
                    reply_member(reply, member);
                    words += 1;
                    if !options.bare {
                        reply.bulk_double(score);
                        words += 1;
                    }
                }
            }
            reply.end(elements, words);
        }
        SortedSetRef::Large(large) => {
            let mut found = Vec::new();
            let next = large.scan(cursor, options.count, |member, score| {
                if options.matches(member) {
                    found.push((member, score));
                }
            });
            reply.bulk_integer(next.map_or(0, |position| position as i64));
            reply.array(if options.bare { found.len() } else { found.len() * 2 });
            for (member, score) in found {
                reply.bulk(member);
                if !options.bare {
                    reply.bulk(&seventeen_digits(score));
                }
            }
        }
    }
    Ok(())
}

/// A score as `ZSCAN` shows those of a large sorted set: C's `%.17g`, not the shortest digits.
fn seventeen_digits(score: f64) -> Vec<u8> {
    const DIGITS: i32 = 17;
    let mut text = Vec::with_capacity(32);
    if score == 0.0 || score.is_infinite() {
        write_f64(score, &mut text);
        return text;
    }
    let scientific = format!("{:.1$e}", score.abs(), DIGITS as usize - 1);
    let (significand, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: Vec<u8> = significand.bytes().filter(u8::is_ascii_digit).collect();
    let significant = digits.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1);
    if score < 0.0 {
        text.push(b'-');
    }
    // Digits before the point, in the form that is written.
    let before = if (-4..DIGITS).contains(&exponent) { exponent + 1 } else { 1 };
    match usize::try_from(before) {
        Ok(before) if before > 0 => {
            text.extend_from_slice(&digits[..before]);
            if significant > before {
                text.push(b'.');
                text.extend_from_slice(&digits[before..significant]);
            }
        }
        _ => {
            text.extend_from_slice(b"0.");
            text.extend(std::iter::repeat_n(b'0', before.unsigned_abs() as usize));
            text.extend_from_slice(&digits[..significant]);
        }
    }
    if !(-4..DIGITS).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        text.extend_from_slice(format!("e{sign}{:02}", exponent.unsigned_abs()).as_bytes());
    }
    text
}
