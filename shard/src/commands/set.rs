//! Sets.

use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::packed::Element;
use crate::reply::Reply;

mod algebra;
mod basic;
mod random;
mod scan;

const READ: KeyFlags = KeyFlags::READ.and(KeyFlags::ACCESS);
const WRITE: KeyFlags = KeyFlags::READ_WRITE;
const STORE: KeyFlags = KeyFlags::OVERWRITE.and(KeyFlags::UPDATE);

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    Command {
        spec: Spec {
            name: "sadd",
            arity: -3,
            flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST),
            keys: &[KeySpec::one(1, WRITE.and(KeyFlags::INSERT))],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(1) for each member",
            summary: "Adds members to a set, which is created when there is none.",
            syntax: "key member [member ...]",
        },
        run: basic::sadd,
    },
    Command {
        spec: Spec {
            name: "scard",
            arity: 2,
            flags: Flags::READ_ONLY.and(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::READ)],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(1); O(N) with N members in a packed set",
            summary: "Tells how many members a set has.",
            syntax: "key",
        },
        run: basic::scard,
    },
    Command {
        spec: Spec {
            name: "sdiff",
            arity: -2,
            flags: Flags::READ_ONLY,
            keys: &[KeySpec::to_end(1, 1, READ)],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(N) with N members in all the sets",
            summary: "Returns the members of the first set that are in none of the others.",
            syntax: "key [key ...]",
        },
        run: algebra::sdiff,
    },
    Command {
        spec: Spec {
            name: "sdiffstore",
            arity: -3,
            flags: Flags::WRITE.and(Flags::DENY_OOM),
            keys: &[KeySpec::one(1, STORE), KeySpec::to_end(2, 1, READ)],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(N) with N members in all the sets",
            summary: "Stores the members of the first set that are in none of the others.",
            syntax: "destination key [key ...]",
        },
        run: algebra::sdiffstore,
    },
    Command {
        spec: Spec {
            name: "sinter",
            arity: -2,
            flags: Flags::READ_ONLY,
            keys: &[KeySpec::to_end(1, 1, READ)],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(N*M) with N members in the smallest of M sets",
            summary: "Returns the members that are in all of the sets.",
            syntax: "key [key ...]",
        },
        run: algebra::sinter,
    },
    Command {
        spec: Spec {
            name: "sintercard",
            arity: -3,
            flags: Flags::READ_ONLY.and(Flags::MOVABLE_KEYS),
            keys: &[KeySpec::counted(1, READ)],
            categories: Categories::SET,
            group: Group::Set,
            since: "7.0.0",
            complexity: "O(N*M) with N members in the smallest of M sets",
            summary: "Tells how many members are in all of the sets.",
            syntax: "numkeys key [key ...] [LIMIT limit]",
        },
        run: algebra::sintercard,
    },
    Command {
        spec: Spec {
            name: "sinterstore",
            arity: -3,
            flags: Flags::WRITE.and(Flags::DENY_OOM),
            keys: &[KeySpec::one(1, WRITE.and(KeyFlags::UPDATE)), KeySpec::to_end(2, 1, READ)],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(N*M) with N members in the smallest of M sets",
            summary: "Stores the members that are in all of the sets.",
            syntax: "destination key [key ...]",
        },
        run: algebra::sinterstore,
    },
    Command {
        spec: Spec {
            name: "sismember",
            arity: 3,
            flags: Flags::READ_ONLY.and(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::READ)],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Tells whether a value is a member of a set.",
            syntax: "key member",
        },
        run: basic::sismember,
    },
    Command {
        spec: Spec {
            name: "smembers",
            arity: 2,
            flags: Flags::READ_ONLY,
            keys: &[KeySpec::one(1, READ)],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(N) with N members",
            summary: "Returns all members of a set.",
            syntax: "key",
        },
        run: basic::smembers,
    },
    Command {
        spec: Spec {
            name: "smismember",
            arity: -3,
            flags: Flags::READ_ONLY.and(Flags::FAST),
            keys: &[KeySpec::one(1, READ)],
            categories: Categories::SET,
            group: Group::Set,
            since: "6.2.0",
            complexity: "O(N) with N values asked for",
            summary: "Tells of each of several values whether it is a member of a set.",
            syntax: "key member [member ...]",
        },
        run: basic::smismember,
    },
    Command {
        spec: Spec {
            name: "smove",
            arity: 4,
            flags: Flags::WRITE.and(Flags::FAST),
            keys: &[
                KeySpec::one(1, WRITE.and(KeyFlags::ACCESS).and(KeyFlags::DELETE)),
                KeySpec::one(2, WRITE.and(KeyFlags::INSERT)),
            ],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Moves a member from one set to another.",
            syntax: "source destination member",
        },
        run: basic::smove,
    },
    Command {
        spec: Spec {
            name: "spop",
            arity: -2,
            flags: Flags::WRITE.and(Flags::FAST),
            keys: &[KeySpec::one(1, WRITE.and(KeyFlags::ACCESS).and(KeyFlags::DELETE))],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(1) without a count, O(N) with a count of N",
            summary: "Removes random members from a set and returns them.",
            syntax: "key [count]",
        },
        run: random::spop,
    },
    Command {
        spec: Spec {
            name: "srandmember",
            arity: -2,
            flags: Flags::READ_ONLY,
            keys: &[KeySpec::one(1, READ)],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(1) without a count, O(N) with a count of N or -N",
            summary: "Returns random members of a set.",
            syntax: "key [count]",
        },
        run: random::srandmember,
    },
    Command {
        spec: Spec {
            name: "srem",
            arity: -3,
            flags: Flags::WRITE.and(Flags::FAST),
            keys: &[KeySpec::one(1, WRITE.and(KeyFlags::DELETE))],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(N) with N members to remove",
            summary: "Removes members from a set; the key goes with the last one.",
            syntax: "key member [member ...]",
        },
        run: basic::srem,
    },
    Command {
        spec: Spec {
            name: "sscan",
            arity: -3,
            flags: Flags::READ_ONLY,
            keys: &[KeySpec::one(1, READ)],
            categories: Categories::SET,
            group: Group::Set,
            since: "2.8.0",
            complexity: "O(1) a call, O(N) for all N members",
            summary: "Walks the members of a set in steps.",
            syntax: "key cursor [MATCH pattern] [COUNT count]",
        },
        run: scan::sscan,
    },
    Command {
        spec: Spec {
            name: "sunion",
            arity: -2,
            flags: Flags::READ_ONLY,
            keys: &[KeySpec::to_end(1, 1, READ)],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(N) with N members in all the sets",
            summary: "Returns the members that are in any of the sets.",
            syntax: "key [key ...]",
        },
        run: algebra::sunion,
    },
    Command {
        spec: Spec {
            name: "sunionstore",
            arity: -3,
            flags: Flags::WRITE.and(Flags::DENY_OOM),
            keys: &[KeySpec::one(1, STORE), KeySpec::to_end(2, 1, READ)],
            categories: Categories::SET,
            group: Group::Set,
            since: "1.0.0",
            complexity: "O(N) with N members in all the sets",
            summary: "Stores the members that are in any of the sets.",
            syntax: "destination key [key ...]",
        },
        run: algebra::sunionstore,
    },
];

/// Replies a member as a bulk string.
#[inline]
fn reply_member(reply: &mut Reply<'_>, member: Element<'_>) {
    match member {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Int(value) => reply.bulk_integer(value),
    }
}
