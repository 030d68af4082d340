//! Lists.

mod blocking;
mod ends;
mod middle;
mod read;

use std::ops::Range;

use crate::args::Args;
use crate::command::{Begin, Categories, Command, Find, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::context::Context;
use crate::error::CommandError;
use crate::events::Class;
use crate::list::End;
use crate::number::parse_i64;
use crate::packed::Element;
use crate::reply::Reply;

const READ: KeyFlags = KeyFlags::READ.and(KeyFlags::ACCESS);
const INSERT: KeyFlags = KeyFlags::READ_WRITE.and(KeyFlags::INSERT);
const DELETE: KeyFlags = KeyFlags::READ_WRITE.and(KeyFlags::DELETE);
const POP: KeyFlags = DELETE.and(KeyFlags::ACCESS);
/// Every word but the name and the time-out at the end.
const POPPED_KEYS: &[KeySpec] =
    &[KeySpec { begin: Begin::Index(1), find: Find::Range { last: -2, step: 1, limit: 0 }, flags: POP }];
const BLOCKING_WRITE: Flags = Flags::WRITE.and(Flags::BLOCKING);
const BLOCKING: Categories = Categories::LIST.and(Categories::BLOCKING);
const UPDATE: KeyFlags = KeyFlags::READ_WRITE.and(KeyFlags::UPDATE);

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    Command {
        spec: Spec {
            name: "blmove",
            arity: 6,
            flags: BLOCKING_WRITE.and(Flags::DENY_OOM),
            keys: &[KeySpec::one(1, POP), KeySpec::one(2, INSERT)],
            categories: BLOCKING,
            group: Group::List,
            since: "6.2.0",
            complexity: "O(1)",
            summary: "Moves an element from an end of a list to an end of another one or of the same, and returns it. Waits for one.",
            syntax: "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout",
        },
        run: blocking::blmove,
    },
    Command {
        spec: Spec {
            name: "blmpop",
            arity: -5,
            flags: Flags::WRITE.and(Flags::BLOCKING).and(Flags::MOVABLE_KEYS),
            keys: &[KeySpec::counted(2, POP)],
            categories: BLOCKING,
            group: Group::List,
            since: "7.0.0",
            complexity: "O(N+M) where N is the number of keys and M the number of elements returned",
            summary: "Pops elements from the first list that is not empty. Waits for one.",
            syntax: "timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
        },
        run: blocking::blmpop,
    },
    Command {
        spec: Spec {
            name: "blpop",
            arity: -3,
            flags: BLOCKING_WRITE,
            keys: POPPED_KEYS,
            categories: BLOCKING,
            group: Group::List,
            since: "2.0.0",
            complexity: "O(N) where N is the number of keys",
            summary: "Pops the head of the first list that is not empty. Waits for one.",
            syntax: "key [key ...] timeout",
        },
        run: blocking::blpop,
    },
    Command {
        spec: Spec {
            name: "brpop",
            arity: -3,
            flags: BLOCKING_WRITE,
            keys: POPPED_KEYS,
            categories: BLOCKING,
            group: Group::List,
            since: "2.0.0",
            complexity: "O(N) where N is the number of keys",
            summary: "Pops the tail of the first list that is not empty. Waits for one.",
            syntax: "key [key ...] timeout",
        },
        run: blocking::brpop,
    },
    Command {
        spec: Spec {
            name: "brpoplpush",
            arity: 4,
            flags: BLOCKING_WRITE.and(Flags::DENY_OOM).and(Flags::DEPRECATED),
            keys: &[KeySpec::one(1, POP), KeySpec::one(2, INSERT)],
            categories: BLOCKING,
            group: Group::List,
            since: "2.2.0",
            complexity: "O(1)",
            summary: "Moves the tail of a list to the head of another one or of the same, and returns it. Waits for one.",
            syntax: "source destination timeout",
        },
        run: blocking::brpoplpush,
    },
    Command {
        spec: Spec {
            name: "lindex",
            arity: 3,
            flags: Flags::READ_ONLY,
            keys: &[KeySpec::one(1, READ)],
            categories: Categories::LIST,
            group: Group::List,
            since: "1.0.0",
            complexity: "O(N) where N is the number of nodes to pass on the way from the nearer end; O(1) for the first and the last element",
            summary: "Returns the element at an index of a list.",
            syntax: "key index",
        },
        run: read::lindex,
    },
    Command {
        spec: Spec {
            name: "linsert",
            arity: 5,
            flags: Flags::WRITE.and(Flags::DENY_OOM),
            keys: &[KeySpec::one(1, INSERT)],
            categories: Categories::LIST,
            group: Group::List,
            since: "2.2.0",
            complexity: "O(N) where N is the number of elements before the pivot",
            summary: "Inserts an element beside another one in a list.",
            syntax: "key <BEFORE | AFTER> pivot element",
        },
        run: middle::linsert,
    },
    Command {
        spec: Spec {
            name: "llen",
            arity: 2,
            flags: Flags::READ_ONLY.and(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::READ)],
            categories: Categories::LIST,
            group: Group::List,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Returns the length of a list.",
            syntax: "key",
        },
        run: read::llen,
    },
    Command {
        spec: Spec {
            name: "lmove",
            arity: 5,
            flags: Flags::WRITE.and(Flags::DENY_OOM),
            keys: &[KeySpec::one(1, POP), KeySpec::one(2, INSERT)],
            categories: Categories::LIST,
            group: Group::List,
            since: "6.2.0",
            complexity: "O(1)",
            summary: "Moves an element from an end of a list to an end of another one or of the same, and returns it.",
            syntax: "source destination <LEFT | RIGHT> <LEFT | RIGHT>",
        },
        run: ends::lmove,
    },
    Command {
        spec: Spec {
            name: "lmpop",
            arity: -4,
            flags: Flags::WRITE.and(Flags::MOVABLE_KEYS),
            keys: &[KeySpec::counted(1, POP)],
            categories: Categories::LIST,
            group: Group::List,
            since: "7.0.0",
            complexity: "O(N+M) where N is the number of keys and M the number of elements returned",
            summary: "Pops elements from the first list that is not empty.",
            syntax: "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
        },
        run: ends::lmpop,
    },
    Command {
        spec: Spec {
            name: "lpop",
            arity: -2,
            flags: Flags::WRITE.and(Flags::FAST),
            keys: &[KeySpec::one(1, POP)],
            categories: Categories::LIST,
            group: Group::List,
            since: "1.0.0",
            complexity: "O(N) where N is the number of elements returned",
            summary: "Pops elements from the head of a list.",
            syntax: "key [count]",
        },
        run: ends::lpop,
    },
    Command {
        spec: Spec {
            name: "lpos",
            arity: -3,
            flags: Flags::READ_ONLY,
            keys: &[KeySpec::one(1, READ)],
            categories: Categories::LIST,
            group: Group::List,
            since: "6.0.6",
            complexity: "O(N) where N is the number of elements looked at",
            summary: "Returns where in a list an element is.",
            syntax: "key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
        },
        run: read::lpos,
    },
    Command {
        spec: Spec {
            name: "lpush",
            arity: -3,
            flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST),
            keys: &[KeySpec::one(1, INSERT)],
            categories: Categories::LIST,
            group: Group::List,
            since: "1.0.0",
            complexity: "O(N) where N is the number of elements added",
            summary: "Pushes elements to the head of a list, which is created where it is missing.",
            syntax: "key element [element ...]",
        },
        run: ends::lpush,
    },
    Command {
        spec: Spec {
            name: "lpushx",
            arity: -3,
            flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST),
            keys: &[KeySpec::one(1, INSERT)],
            categories: Categories::LIST,
            group: Group::List,
            since: "2.2.0",
            complexity: "O(N) where N is the number of elements added",
            summary: "Pushes elements to the head of a list that exists.",
            syntax: "key element [element ...]",
        },
        run: ends::lpushx,
    },
    Command {
        spec: Spec {
            name: "lrange",
            arity: 4,
            flags: Flags::READ_ONLY,
            keys: &[KeySpec::one(1, READ)],
            categories: Categories::LIST,
            group: Group::List,
            since: "1.0.0",
            complexity: "O(S+N) where S is the number of nodes between the range and the nearer end and N the number of elements returned",
            summary: "Returns a range of a list's elements.",
            syntax: "key start stop",
        },
        run: read::lrange,
    },
    Command {
        spec: Spec {
            name: "lrem",
            arity: 4,
            flags: Flags::WRITE,
            keys: &[KeySpec::one(1, DELETE)],
            categories: Categories::LIST,
            group: Group::List,
            since: "1.0.0",
            complexity: "O(N) where N is the length of the list",
            summary: "Removes elements that are equal to a value.",
            syntax: "key count element",
        },
        run: middle::lrem,
    },
    Command {
        spec: Spec {
            name: "lset",
            arity: 4,
            flags: Flags::WRITE.and(Flags::DENY_OOM),
            keys: &[KeySpec::one(1, UPDATE)],
            categories: Categories::LIST,
            group: Group::List,
            since: "1.0.0",
            complexity: "O(N) where N is the number of nodes to pass on the way from the nearer end; O(1) for the first and the last element",
            summary: "Replaces the element at an index of a list.",
            syntax: "key index element",
        },
        run: middle::lset,
    },
    Command {
        spec: Spec {
            name: "ltrim",
            arity: 4,
            flags: Flags::WRITE,
            keys: &[KeySpec::one(1, DELETE)],
            categories: Categories::LIST,
            group: Group::List,
            since: "1.0.0",
            complexity: "O(N) where N is the number of elements removed",
            summary: "Removes all elements outside a range.",
            syntax: "key start stop",
        },
        run: middle::ltrim,
    },
    Command {
        spec: Spec {
            name: "rpop",
            arity: -2,
            flags: Flags::WRITE.and(Flags::FAST),
            keys: &[KeySpec::one(1, POP)],
            categories: Categories::LIST,
            group: Group::List,
            since: "1.0.0",
            complexity: "O(N) where N is the number of elements returned",
            summary: "Pops elements from the tail of a list.",
            syntax: "key [count]",
        },
        run: ends::rpop,
    },
    Command {
        spec: Spec {
            name: "rpoplpush",
            arity: 3,
            flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::DEPRECATED),
            keys: &[KeySpec::one(1, POP), KeySpec::one(2, INSERT)],
            categories: Categories::LIST,
            group: Group::List,
            since: "1.2.0",
            complexity: "O(1)",
            summary: "Moves the last element of a list to the head of another one or of the same, and returns it.",
            syntax: "source destination",
        },
        run: ends::rpoplpush,
    },
    Command {
        spec: Spec {
            name: "rpush",
            arity: -3,
            flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST),
            keys: &[KeySpec::one(1, INSERT)],
            categories: Categories::LIST,
            group: Group::List,
            since: "1.0.0",
            complexity: "O(N) where N is the number of elements added",
            summary: "Pushes elements to the tail of a list, which is created where it is missing.",
            syntax: "key element [element ...]",
        },
        run: ends::rpush,
    },
    Command {
        spec: Spec {
            name: "rpushx",
            arity: -3,
            flags: Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST),
            keys: &[KeySpec::one(1, INSERT)],
            categories: Categories::LIST,
            group: Group::List,
            since: "2.2.0",
            complexity: "O(N) where N is the number of elements added",
            summary: "Pushes elements to the tail of a list that exists.",
            syntax: "key element [element ...]",
        },
        run: ends::rpushx,
    },
];

#[inline]
fn reply_element(reply: &mut Reply<'_>, element: Element<'_>) {
    match element {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Int(value) => reply.bulk_integer(value),
    }
}

#[inline]
fn integer(word: &[u8]) -> Result<i64, CommandError> {
    parse_i64(word).ok_or(CommandError::NOT_AN_INTEGER)
}

/// An integer whose negative is one too.
fn symmetric_integer(word: &[u8]) -> Result<i64, CommandError> {
    match integer(word)? {
        i64::MIN => Err(CommandError::new(format!(
            "ERR value is out of range, value must between {} and {}",
            -i64::MAX,
            i64::MAX
        ))),
        value => Ok(value),
    }
}

fn end_named(args: Args<'_>, at: usize) -> Result<End, CommandError> {
    if args.is(at, "LEFT") {
        Ok(End::Left)
    } else if args.is(at, "RIGHT") {
        Ok(End::Right)
    } else {
        Err(CommandError::SYNTAX)
    }
}

/// The index that `index`, negative ones counting from the end, is in a list of `len` elements, if it is one.
#[inline]
fn resolve(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index + len as i64 } else { index };
    usize::try_from(index).ok().filter(|&index| index < len)
}

/// The elements from `start` to `stop`, negative ones counting from the end, of a list of `len` elements.
#[inline]
fn resolve_range(start: i64, stop: i64, len: usize) -> Range<usize> {
    let len = len as i64;
    let start = if start < 0 { (start + len).max(0) } else { start };
    let stop = if stop < 0 { stop + len } else { stop.min(len - 1) };
    if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
}

/// Tells that elements were removed, and removes the list where no element is left.
fn finish_removal(context: &mut Context<'_>, key: &[u8], event: &'static str, emptied: bool) {
    context.keys.changed(Class::List, event, key);
    if emptied {
        context.keys.remove_emptied(key);
    }
}
