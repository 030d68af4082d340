//! Sorted sets.

pub(in crate::commands) mod add;
mod blocking;
mod combine;
mod pop;
mod range;
mod read;
mod remove;
pub(in crate::commands) mod store;

use crate::command::{Begin, Categories, Command, Find, Flags, Group, Handler, KeyFlags, KeySpec, Spec};
use crate::packed::Element;
use crate::reply::Reply;

const READ: KeyFlags = KeyFlags::READ.and(KeyFlags::ACCESS);
const CHANGE: KeyFlags = KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE);
const TAKE: KeyFlags = KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::DELETE);
const DELETE: KeyFlags = KeyFlags::READ_WRITE.and(KeyFlags::DELETE);
const OVERWRITE: KeyFlags = KeyFlags::OVERWRITE.and(KeyFlags::UPDATE);
const COUNTED: &[KeySpec] = &[KeySpec::counted(1, READ)];
const STORED: &[KeySpec] = &[KeySpec::one(1, OVERWRITE), KeySpec::counted(2, READ)];

const READ_FAST: Flags = Flags::READ_ONLY.and(Flags::FAST);
const READ_MANY: Flags = Flags::READ_ONLY.and(Flags::MOVABLE_KEYS);
const READ_OLD: Flags = Flags::READ_ONLY.and(Flags::DEPRECATED);
const WRITE_FAST: Flags = Flags::WRITE.and(Flags::FAST);
const WRITE_OOM_FAST: Flags = WRITE_FAST.and(Flags::DENY_OOM);
const WRITE_BLOCKING: Flags = Flags::WRITE.and(Flags::BLOCKING).and(Flags::FAST);
/// Every word but the name and the time-out at the end.
const POPPED_KEYS: &[KeySpec] =
    &[KeySpec { begin: Begin::Index(1), find: Find::Range { last: -2, step: 1, limit: 0 }, flags: TAKE }];
const STORE_MANY: Flags = Flags::WRITE.and(Flags::DENY_OOM).and(Flags::MOVABLE_KEYS);

/// What the commands of the family have in common.
const fn command(
    (name, arity, flags): (&'static str, i32, Flags),
    keys: &'static [KeySpec],
    since: &'static str,
    complexity: &'static str,
    summary: &'static str,
    syntax: &'static str,
    run: Handler,
) -> Command {
    let group = Group::SortedSet;
    let categories = match flags.has(Flags::BLOCKING) {
        true => Categories::SORTED_SET.and(Categories::BLOCKING),
        false => Categories::SORTED_SET,
    };
    Command { spec: Spec { name, arity, flags, keys, categories, group, since, complexity, summary, syntax }, run }
}

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    command(
        ("bzmpop", -5, Flags::WRITE.and(Flags::BLOCKING).and(Flags::MOVABLE_KEYS)),
        &[KeySpec::counted(2, TAKE)],
        "7.0.0",
        "O(K) + O(M*log(N)) with K being the number of keys, N the number of members of the sorted set and M the number of members removed.",
        "Removes and returns members from an end of the first sorted set that has any. Waits for one.",
        "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]",
        blocking::bzmpop,
    ),
    command(
        ("bzpopmax", -3, WRITE_BLOCKING),
        POPPED_KEYS,
        "5.0.0",
        "O(log(N)) with N being the number of members of the sorted set.",
        "Removes and returns the member with the highest score of the first sorted set that has any. Waits for one.",
        "key [key ...] timeout",
        blocking::bzpopmax,
    ),
    command(
        ("bzpopmin", -3, WRITE_BLOCKING),
        POPPED_KEYS,
        "5.0.0",
        "O(log(N)) with N being the number of members of the sorted set.",
        "Removes and returns the member with the lowest score of the first sorted set that has any. Waits for one.",
        "key [key ...] timeout",
        blocking::bzpopmin,
    ),
    command(
        ("zadd", -4, WRITE_OOM_FAST),
        &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::UPDATE))],
        "1.2.0",
        "O(log(N)) for each member added, where N is the number of members of the sorted set.",
        "Adds members to a sorted set or changes their scores.",
        "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",
        add::zadd,
    ),
    command(
        ("zcard", 2, READ_FAST),
        &[KeySpec::one(1, KeyFlags::READ)],
        "1.2.0",
        "O(1)",
        "Returns the number of members of a sorted set.",
        "key",
        read::zcard,
    ),
    command(
        ("zcount", 4, READ_FAST),
        &[KeySpec::one(1, READ)],
        "2.0.0",
        "O(log(N)) with N being the number of members of the sorted set.",
        "Counts the members whose scores are within a range.",
        "key min max",
        read::zcount,
    ),
    command(
        ("zdiff", -3, READ_MANY),
        COUNTED,
        "6.2.0",
        "O(L + (N-K)log(N)) worst case where L is the total number of members of all inputs, N is the size of the first one, and K is the size of the result.",
        "Returns the members of the first sorted set that are in none of the others.",
        "numkeys key [key ...] [WITHSCORES]",
        combine::zdiff,
    ),
    command(
        ("zdiffstore", -4, STORE_MANY),
        STORED,
        "6.2.0",
        "O(L + (N-K)log(N)) worst case where L is the total number of members of all inputs, N is the size of the first one, and K is the size of the result.",
        "Stores the members of the first sorted set that are in none of the others.",
        "destination numkeys key [key ...]",
        combine::zdiffstore,
    ),
    command(
        ("zincrby", -4, WRITE_OOM_FAST),
        &[KeySpec::one(1, CHANGE)],
        "1.2.0",
        "O(log(N)) with N being the number of members of the sorted set.",
        "Adds to the score of a member; a member that is missing starts at 0.",
        "key increment member [EX seconds | PX milliseconds]",
        add::zincrby,
    ),
    command(
        ("zinter", -3, READ_MANY),
        COUNTED,
        "6.2.0",
        "O(N*K)+O(M*log(M)) worst case with N being the smallest input, K the number of inputs and M the number of members of the result.",
        "Returns the members that all of several sorted sets have.",
        "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
        combine::zinter,
    ),
    command(
        ("zintercard", -3, READ_MANY),
        COUNTED,
        "7.0.0",
        "O(N*K) worst case with N being the smallest input and K the number of inputs.",
        "Counts the members that all of several sorted sets have.",
        "numkeys key [key ...] [LIMIT limit]",
        combine::zintercard,
    ),
    command(
        ("zinterstore", -4, STORE_MANY),
        STORED,
        "2.0.0",
        "O(N*K)+O(M*log(M)) worst case with N being the smallest input, K the number of inputs and M the number of members of the result.",
        "Stores the members that all of several sorted sets have.",
        "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
        combine::zinterstore,
    ),
    command(
        ("zlexcount", 4, READ_FAST),
        &[KeySpec::one(1, READ)],
        "2.8.9",
        "O(log(N)) with N being the number of members of the sorted set.",
        "Counts the members within a range of members.",
        "key min max",
        read::zlexcount,
    ),
    command(
        ("zmovedue", -4, Flags::WRITE.and(Flags::DENY_OOM)),
        &[KeySpec::one(1, TAKE), KeySpec::one(2, KeyFlags::READ_WRITE.and(KeyFlags::INSERT))],
        "0.1.0",
        "O(M*log(N)) with N being the number of members of the sorted set and M the number of members moved.",
        "Moves the members whose scores are due to the tail of a list.",
        "source destination max [MIN min] [COUNT count]",
        pop::zmovedue,
    ),
    command(
        ("zmpop", -4, Flags::WRITE.and(Flags::MOVABLE_KEYS)),
        &[KeySpec::counted(1, TAKE)],
        "7.0.0",
        "O(K) + O(M*log(N)) with K being the number of keys, N the number of members of the sorted set and M the number of members removed.",
        "Removes and returns members from an end of the first sorted set that has any.",
        "numkeys key [key ...] <MIN | MAX> [COUNT count]",
        pop::zmpop,
    ),
    command(
        ("zmscore", -3, READ_FAST),
        &[KeySpec::one(1, READ)],
        "6.2.0",
        "O(N) with N being the number of members asked for.",
        "Returns the scores of several members.",
        "key member [member ...]",
        read::zmscore,
    ),
    command(
        ("zpopbyscore", -3, WRITE_FAST),
        &[KeySpec::one(1, TAKE)],
        "0.1.0",
        "O(M*log(N)) with N being the number of members of the sorted set and M the number of members removed.",
        "Removes and returns the members whose scores are due, the lowest first.",
        "key max [MIN min] [COUNT count] [WITHSCORES]",
        pop::zpopbyscore,
    ),
    command(
        ("zpopmax", -2, WRITE_FAST),
        &[KeySpec::one(1, TAKE)],
        "5.0.0",
        "O(M*log(N)) with N being the number of members of the sorted set and M the number of members removed.",
        "Removes and returns the members with the highest scores.",
        "key [count]",
        pop::zpopmax,
    ),
    command(
        ("zpopmin", -2, WRITE_FAST),
        &[KeySpec::one(1, TAKE)],
        "5.0.0",
        "O(M*log(N)) with N being the number of members of the sorted set and M the number of members removed.",
        "Removes and returns the members with the lowest scores.",
        "key [count]",
        pop::zpopmin,
    ),
    command(
        ("zrandmember", -2, Flags::READ_ONLY),
        &[KeySpec::one(1, READ)],
        "6.2.0",
        "O(N) with N being the number of members returned.",
        "Returns members chosen at random.",
        "key [count [WITHSCORES]]",
        read::zrandmember,
    ),
    command(
        ("zrange", -4, Flags::READ_ONLY),
        &[KeySpec::one(1, READ)],
        "1.2.0",
        "O(log(N)+M) with N being the number of members of the sorted set and M the number of members returned.",
        "Returns the members within a range of ranks, scores or members.",
        "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
        range::zrange,
    ),
    command(
        ("zrangebylex", -4, READ_OLD),
        &[KeySpec::one(1, READ)],
        "2.8.9",
        "O(log(N)+M) with N being the number of members of the sorted set and M the number of members returned.",
        "Returns the members within a range of members.",
        "key min max [LIMIT offset count]",
        range::zrangebylex,
    ),
    command(
        ("zrangebyscore", -4, READ_OLD),
        &[KeySpec::one(1, READ)],
        "1.0.5",
        "O(log(N)+M) with N being the number of members of the sorted set and M the number of members returned.",
        "Returns the members whose scores are within a range.",
        "key min max [WITHSCORES] [LIMIT offset count]",
        range::zrangebyscore,
    ),
    command(
        ("zrangestore", -5, Flags::WRITE.and(Flags::DENY_OOM)),
        &[KeySpec::one(1, OVERWRITE), KeySpec::one(2, READ)],
        "6.2.0",
        "O(log(N)+M) with N being the number of members of the sorted set and M the number of members stored.",
        "Stores the members within a range of ranks, scores or members.",
        "destination source min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]",
        range::zrangestore,
    ),
    command(
        ("zrank", -3, READ_FAST),
        &[KeySpec::one(1, READ)],
        "2.0.0",
        "O(log(N))",
        "Returns the rank of a member, counted from the lowest score.",
        "key member [WITHSCORE]",
        read::zrank,
    ),
    command(
        ("zrem", -3, WRITE_FAST),
        &[KeySpec::one(1, DELETE)],
        "1.2.0",
        "O(M*log(N)) with N being the number of members of the sorted set and M the number of members removed.",
        "Removes members from a sorted set.",
        "key member [member ...]",
        remove::zrem,
    ),
    command(
        ("zremrangebylex", 4, Flags::WRITE),
        &[KeySpec::one(1, DELETE)],
        "2.8.9",
        "O(log(N)+M) with N being the number of members of the sorted set and M the number of members removed.",
        "Removes the members within a range of members.",
        "key min max",
        remove::zremrangebylex,
    ),
    command(
        ("zremrangebyrank", 4, Flags::WRITE),
        &[KeySpec::one(1, DELETE)],
        "2.0.0",
        "O(log(N)+M) with N being the number of members of the sorted set and M the number of members removed.",
        "Removes the members within a range of ranks.",
        "key start stop",
        remove::zremrangebyrank,
    ),
    command(
        ("zremrangebyscore", 4, Flags::WRITE),
        &[KeySpec::one(1, DELETE)],
        "1.2.0",
        "O(log(N)+M) with N being the number of members of the sorted set and M the number of members removed.",
        "Removes the members whose scores are within a range.",
        "key min max",
        remove::zremrangebyscore,
    ),
    command(
        ("zrevrange", -4, READ_OLD),
        &[KeySpec::one(1, READ)],
        "1.2.0",
        "O(log(N)+M) with N being the number of members of the sorted set and M the number of members returned.",
        "Returns the members within a range of ranks counted from the highest score.",
        "key start stop [WITHSCORES]",
        range::zrevrange,
    ),
    command(
        ("zrevrangebylex", -4, READ_OLD),
        &[KeySpec::one(1, READ)],
        "2.8.9",
        "O(log(N)+M) with N being the number of members of the sorted set and M the number of members returned.",
        "Returns the members within a range of members, the last first.",
        "key max min [LIMIT offset count]",
        range::zrevrangebylex,
    ),
    command(
        ("zrevrangebyscore", -4, READ_OLD),
        &[KeySpec::one(1, READ)],
        "2.2.0",
        "O(log(N)+M) with N being the number of members of the sorted set and M the number of members returned.",
        "Returns the members whose scores are within a range, the highest first.",
        "key max min [WITHSCORES] [LIMIT offset count]",
        range::zrevrangebyscore,
    ),
    command(
        ("zrevrank", -3, READ_FAST),
        &[KeySpec::one(1, READ)],
        "2.0.0",
        "O(log(N))",
        "Returns the rank of a member, counted from the highest score.",
        "key member [WITHSCORE]",
        read::zrevrank,
    ),
    command(
        ("zscan", -3, Flags::READ_ONLY),
        &[KeySpec::one(1, READ)],
        "2.8.0",
        "O(1) for every call; O(N) for a complete iteration, with N being the number of members.",
        "Iterates over the members of a sorted set.",
        "key cursor [MATCH pattern] [COUNT count] [NOSCORES]",
        read::zscan,
    ),
    command(
        ("zscore", 3, READ_FAST),
        &[KeySpec::one(1, READ)],
        "1.2.0",
        "O(1)",
        "Returns the score of a member.",
        "key member",
        read::zscore,
    ),
    command(
        ("zunion", -3, READ_MANY),
        COUNTED,
        "6.2.0",
        "O(N)+O(M*log(M)) with N being the sum of the sizes of the inputs, and M the number of members of the result.",
        "Returns the members that any of several sorted sets has.",
        "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
        combine::zunion,
    ),
    command(
        ("zunionstore", -4, STORE_MANY),
        STORED,
        "2.0.0",
        "O(N)+O(M*log(M)) with N being the sum of the sizes of the inputs, and M the number of members of the result.",
        "Stores the members that any of several sorted sets has.",
        "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
        combine::zunionstore,
    ),
];

/// Replies a member.
#[inline]
pub(in crate::commands) fn reply_member(reply: &mut Reply<'_>, member: Element<'_>) {
    match member {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Int(value) => reply.bulk_integer(value),
    }
}

/// Replies a member and its score as an array of two.
#[inline]
fn reply_pair(reply: &mut Reply<'_>, (member, score): (Element<'_>, f64)) {
    reply.array(2);
    reply_member(reply, member);
    reply.double(score);
}

/// Replies `count` members; their scores follow them in RESP2 and stand in pairs with them in RESP3.
#[inline]
fn reply_members<'m>(
    reply: &mut Reply<'_>,
    members: impl Iterator<Item = (Element<'m>, f64)>,
    count: usize,
    with_scores: bool,
) {
    begin_members(reply, count, with_scores);
    if !with_scores {
        members.for_each(|(member, _)| reply_member(reply, member));
    } else {
        members.for_each(|pair| reply_scored(reply, pair));
    }
}

/// Begins the reply of `count` members.
fn begin_members(reply: &mut Reply<'_>, count: usize, with_scores: bool) {
    let is_flat = with_scores && !reply.is_resp3();
    reply.array(if is_flat { count.saturating_mul(2) } else { count });
}

/// A member and its score: behind it in RESP2, in a pair in RESP3.
#[inline]
fn reply_scored(reply: &mut Reply<'_>, (member, score): (Element<'_>, f64)) {
    if reply.is_resp3() {
        reply.array(2);
    }
    reply_member(reply, member);
    reply.double(score);
}
