//! Hashes.

use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, Handler, KeyFlags, KeySpec, Spec};
use crate::commands::options::TimeUnit;
use crate::error::CommandError;
use crate::packed::Element;
use crate::reply::Reply;

mod counters;
mod exchange;
mod lifetime;
mod random;
mod reading;
mod scan;
mod writing;

const READ: &[KeySpec] = &[KeySpec::one(1, KeyFlags::READ.and(KeyFlags::ACCESS))];
const INSPECT: &[KeySpec] = &[KeySpec::one(1, KeyFlags::READ)];
const UPDATE: &[KeySpec] = &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::UPDATE))];
const ACCESS_AND_UPDATE: &[KeySpec] =
    &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))];
const INSERT: &[KeySpec] = &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::INSERT))];
const DELETE: &[KeySpec] = &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::DELETE))];

const ACCESS_AND_DELETE: &[KeySpec] =
    &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::DELETE))];

const PER_FIELD: &str = "O(N) where N is the number of fields.";

const QUICK_READ: Flags = Flags::READ_ONLY.and(Flags::FAST);
const QUICK_WRITE: Flags = Flags::WRITE.and(Flags::DENY_OOM).and(Flags::FAST);

/// What differs from one command of the family to the next: name and arity, flags, keys, version, then the
/// documentation (complexity, summary, syntax).
const fn command(
    (name, arity): (&'static str, i32),
    flags: Flags,
    keys: &'static [KeySpec],
    since: &'static str,
    [complexity, summary, syntax]: [&'static str; 3],
    run: Handler,
) -> Command {
    let categories = Categories::HASH;
    let group = Group::Hash;
    Command { spec: Spec { name, arity, flags, keys, categories, group, since, complexity, summary, syntax }, run }
}

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    command(
        ("hdel", -3),
        Flags::WRITE.and(Flags::FAST),
        DELETE,
        "2.0.0",
        [
            "O(N) where N is the number of fields to be removed.",
            "Removes fields of a hash, and the key with the last of them.",
            "key field [field ...]",
        ],
        writing::hdel,
    ),
    command(
        ("hexists", 3),
        QUICK_READ,
        INSPECT,
        "2.0.0",
        ["O(1)", "Tells whether a hash has a field.", "key field"],
        reading::hexists,
    ),
    command(
        ("hexpire", -6),
        QUICK_WRITE,
        UPDATE,
        "7.4.0",
        [
            PER_FIELD,
            "Lets fields of a hash expire after a number of seconds.",
            "key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        ],
        |context, args| lifetime::expire(context, args, "hexpire", TimeUnit::Seconds),
    ),
    command(
        ("hexpireat", -6),
        QUICK_WRITE,
        UPDATE,
        "7.4.0",
        [
            PER_FIELD,
            "Lets fields of a hash expire at a time given in Unix seconds.",
            "key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        ],
        |context, args| lifetime::expire(context, args, "hexpireat", TimeUnit::UnixSeconds),
    ),
    command(
        ("hexpiretime", -5),
        QUICK_READ,
        READ,
        "7.4.0",
        [
            PER_FIELD,
            "Tells at what time, in Unix seconds, fields of a hash expire.",
            "key FIELDS numfields field [field ...]",
        ],
        |context, args| lifetime::read(context, args, TimeUnit::UnixSeconds),
    ),
    command(
        ("hget", 3),
        QUICK_READ,
        READ,
        "2.0.0",
        ["O(1)", "Returns the value of a field.", "key field"],
        reading::hget,
    ),
    command(
        ("hgetall", 2),
        Flags::READ_ONLY,
        READ,
        "2.0.0",
        ["O(N) where N is the size of the hash.", "Returns all fields of a hash with their values.", "key"],
        reading::hgetall,
    ),
    command(
        ("hgetdel", -5),
        Flags::WRITE.and(Flags::FAST),
        ACCESS_AND_DELETE,
        "8.0.0",
        [
            PER_FIELD,
            "Returns the values of fields and removes them, and the key with the last of them.",
            "key FIELDS numfields field [field ...]",
        ],
        exchange::hgetdel,
    ),
    command(
        ("hgetex", -5),
        Flags::WRITE.and(Flags::FAST),
        ACCESS_AND_UPDATE,
        "8.0.0",
        [
            PER_FIELD,
            "Returns the values of fields and sets or removes their deadlines.",
            "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] \
             FIELDS numfields field [field ...]",
        ],
        exchange::hgetex,
    ),
    command(
        ("hincrby", -4),
        QUICK_WRITE,
        ACCESS_AND_UPDATE,
        "2.0.0",
        [
            "O(1)",
            "Adds an integer to the value of a field, which is 0 where it is missing.",
            "key field increment [EX seconds | PX milliseconds]",
        ],
        counters::hincrby,
    ),
    command(
        ("hincrbyfloat", -4),
        QUICK_WRITE,
        ACCESS_AND_UPDATE,
        "2.6.0",
        [
            "O(1)",
            "Adds a float to the value of a field, which is 0 where it is missing.",
            "key field increment [EX seconds | PX milliseconds]",
        ],
        counters::hincrbyfloat,
    ),
    command(
        ("hkeys", 2),
        Flags::READ_ONLY,
        READ,
        "2.0.0",
        ["O(N) where N is the size of the hash.", "Returns the names of all fields of a hash.", "key"],
        reading::hkeys,
    ),
    command(
        ("hlen", 2),
        QUICK_READ,
        INSPECT,
        "2.0.0",
        ["O(1)", "Returns the number of fields of a hash.", "key"],
        reading::hlen,
    ),
    command(
        ("hmget", -3),
        QUICK_READ,
        READ,
        "2.0.0",
        [
            "O(N) where N is the number of fields being requested.",
            "Returns the values of several fields.",
            "key field [field ...]",
        ],
        reading::hmget,
    ),
    command(
        ("hmset", -4),
        QUICK_WRITE.and(Flags::DEPRECATED),
        UPDATE,
        "2.0.0",
        [
            "O(N) where N is the number of fields being set.",
            "Sets the values of several fields.",
            "key field value [field value ...]",
        ],
        writing::hmset,
    ),
    command(
        ("hpersist", -5),
        Flags::WRITE.and(Flags::FAST),
        UPDATE,
        "7.4.0",
        [PER_FIELD, "Takes the deadlines of fields of a hash away.", "key FIELDS numfields field [field ...]"],
        lifetime::persist,
    ),
    command(
        ("hpexpire", -6),
        QUICK_WRITE,
        UPDATE,
        "7.4.0",
        [
            PER_FIELD,
            "Lets fields of a hash expire after a number of milliseconds.",
            "key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        ],
        |context, args| lifetime::expire(context, args, "hpexpire", TimeUnit::Milliseconds),
    ),
    command(
        ("hpexpireat", -6),
        QUICK_WRITE,
        UPDATE,
        "7.4.0",
        [
            PER_FIELD,
            "Lets fields of a hash expire at a time given in Unix milliseconds.",
            "key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        ],
        |context, args| lifetime::expire(context, args, "hpexpireat", TimeUnit::UnixMilliseconds),
    ),
    command(
        ("hpexpiretime", -5),
        QUICK_READ,
        READ,
        "7.4.0",
        [
            PER_FIELD,
            "Tells at what time, in Unix milliseconds, fields of a hash expire.",
            "key FIELDS numfields field [field ...]",
        ],
        |context, args| lifetime::read(context, args, TimeUnit::UnixMilliseconds),
    ),
    command(
        ("hpttl", -5),
        QUICK_READ,
        READ,
        "7.4.0",
        [
            PER_FIELD,
            "Tells in how many milliseconds fields of a hash expire.",
            "key FIELDS numfields field [field ...]",
        ],
        |context, args| lifetime::read(context, args, TimeUnit::Milliseconds),
    ),
    command(
        ("hrandfield", -2),
        Flags::READ_ONLY,
        READ,
        "6.2.0",
        [
            "O(N) where N is the number of fields returned.",
            "Returns one or more fields of a hash, chosen at random.",
            "key [count [WITHVALUES]]",
        ],
        random::hrandfield,
    ),
    command(
        ("hscan", -3),
        Flags::READ_ONLY,
        READ,
        "2.8.0",
        [
            "O(1) for every call. O(N) for a complete iteration, where N is the number of fields.",
            "Returns some fields of a hash with their values, and a cursor to go on from.",
            "key cursor [MATCH pattern] [COUNT count] [NOVALUES]",
        ],
        scan::hscan,
    ),
    command(
        ("hset", -4),
        QUICK_WRITE,
        UPDATE,
        "2.0.0",
        [
            "O(1) for each field, so O(N) to set N fields.",
            "Sets the values of fields and returns how many of them are new.",
            "key field value [field value ...]",
        ],
        writing::hset,
    ),
    command(
        ("hsetex", -6),
        QUICK_WRITE,
        UPDATE,
        "8.0.0",
        [
            PER_FIELD,
            "Sets the values of fields and their deadlines, if none or all of the fields are there.",
            "key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | \
             KEEPTTL] FIELDS numfields field value [field value ...]",
        ],
        exchange::hsetex,
    ),
    command(
        ("hsetnx", 4),
        QUICK_WRITE,
        INSERT,
        "2.0.0",
        ["O(1)", "Sets the value of a field unless it has one.", "key field value"],
        writing::hsetnx,
    ),
    command(
        ("hstrlen", 3),
        QUICK_READ,
        INSPECT,
        "3.2.0",
        ["O(1)", "Returns the length of the value of a field.", "key field"],
        reading::hstrlen,
    ),
    command(
        ("htransfer", -5),
        QUICK_WRITE,
        ACCESS_AND_UPDATE,
        "0.1.0",
        [
            "O(1)",
            "Moves an amount from one integer field of a hash to another, if the one holds it and the other has room.",
            "key from to amount [MAX cap]",
        ],
        counters::htransfer,
    ),
    command(
        ("httl", -5),
        QUICK_READ,
        READ,
        "7.4.0",
        [PER_FIELD, "Tells in how many seconds fields of a hash expire.", "key FIELDS numfields field [field ...]"],
        |context, args| lifetime::read(context, args, TimeUnit::Seconds),
    ),
    command(
        ("hvals", 2),
        Flags::READ_ONLY,
        READ,
        "2.0.0",
        ["O(N) where N is the size of the hash.", "Returns all values of a hash.", "key"],
        reading::hvals,
    ),
];

/// Replies an element as a bulk string.
#[inline]
fn reply_element(reply: &mut Reply<'_>, element: Element<'_>) {
    match element {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Int(value) => reply.bulk_integer(value),
    }
}

/// An element's integer, or the error for a field that has none.
fn integer_of(element: Element<'_>) -> Result<i64, CommandError> {
    element.to_i64().ok_or(CommandError::new("ERR hash value is not an integer"))
}
