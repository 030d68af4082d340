//! Deadlines: setting, clearing and reading them.

use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::number;

const CHANGED: KeyFlags = KeyFlags::READ_WRITE.and(KeyFlags::UPDATE);
const READ: KeyFlags = KeyFlags::READ.and(KeyFlags::ACCESS);

/// What the commands that change a deadline have in common.
const CHANGING: Spec = Spec {
    name: "",
    arity: -3,
    flags: Flags::WRITE.and(Flags::FAST),
    keys: &[KeySpec::one(1, CHANGED)],
    categories: Categories::KEYSPACE,
    group: Group::Generic,
    since: "1.0.0",
    complexity: "O(1)",
    summary: "",
    syntax: "",
};

/// What the commands that read a deadline have in common.
const READING: Spec = Spec {
    arity: 2,
    flags: Flags::READ_ONLY.and(Flags::FAST),
    keys: &[KeySpec::one(1, READ)],
    syntax: "key",
    ..CHANGING
};

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    Command {
        spec: Spec {
            name: "expire",
            summary: "Lets a key expire after a number of seconds.",
            syntax: "key seconds [NX | XX | GT | LT]",
            ..CHANGING
        },
        run: |context, args| expire(context, args, "expire", Unit::Seconds, Base::Now),
    },
    Command {
        spec: Spec {
            name: "expireat",
            since: "1.2.0",
            summary: "Lets a key expire at a time given in Unix seconds.",
            syntax: "key unix-time-seconds [NX | XX | GT | LT]",
            ..CHANGING
        },
        run: |context, args| expire(context, args, "expireat", Unit::Seconds, Base::Epoch),
    },
    Command {
        spec: Spec {
            name: "pexpire",
            since: "2.6.0",
            summary: "Lets a key expire after a number of milliseconds.",
            syntax: "key milliseconds [NX | XX | GT | LT]",
            ..CHANGING
        },
        run: |context, args| expire(context, args, "pexpire", Unit::Milliseconds, Base::Now),
    },
    Command {
        spec: Spec {
            name: "pexpireat",
            since: "2.6.0",
            summary: "Lets a key expire at a time given in Unix milliseconds.",
            syntax: "key unix-time-milliseconds [NX | XX | GT | LT]",
            ..CHANGING
        },
        run: |context, args| expire(context, args, "pexpireat", Unit::Milliseconds, Base::Epoch),
    },
    Command {
        spec: Spec {
            name: "persist",
            arity: 2,
            since: "2.2.0",
            summary: "Takes a key's deadline away.",
            syntax: "key",
            ..CHANGING
        },
        run: persist,
    },
    Command {
        spec: Spec { name: "ttl", summary: "Tells in how many seconds a key expires.", ..READING },
        run: |context, args| read_deadline(context, args, Unit::Seconds, Base::Now),
    },
    Command {
        spec: Spec {
            name: "pttl",
            since: "2.6.0",
            summary: "Tells in how many milliseconds a key expires.",
            ..READING
        },
        run: |context, args| read_deadline(context, args, Unit::Milliseconds, Base::Now),
    },
    Command {
        spec: Spec {
            name: "expiretime",
            since: "7.0.0",
            summary: "Tells at what time, in Unix seconds, a key expires.",
            ..READING
        },
        run: |context, args| read_deadline(context, args, Unit::Seconds, Base::Epoch),
    },
    Command {
        spec: Spec {
            name: "pexpiretime",
            since: "7.0.0",
            summary: "Tells at what time, in Unix milliseconds, a key expires.",
            ..READING
        },
        run: |context, args| read_deadline(context, args, Unit::Milliseconds, Base::Epoch),
    },
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Seconds,
    Milliseconds,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Now,
    Epoch,
}

/// When a deadline is set at all, by the one that is there.
#[derive(Clone, Copy, Default)]
struct Conditions {
    missing: bool,
    present: bool,
    greater: bool,
    less: bool,
}

impl Conditions {
    fn parse(args: Args<'_>) -> Result<Conditions, CommandError> {
        let mut conditions = Conditions::default();
        for index in 0..args.len() {
            if args.is(index, "nx") {
                conditions.missing = true;
            } else if args.is(index, "xx") {
                conditions.present = true;
            } else if args.is(index, "gt") {
                conditions.greater = true;
            } else if args.is(index, "lt") {
                conditions.less = true;
            } else {
                let option = String::from_utf8_lossy(args.at(index));
                return Err(CommandError::new(format!("ERR Unsupported option {option}")));
            }
        }
        if conditions.missing && (conditions.present || conditions.greater || conditions.less) {
            return Err(CommandError::new("ERR NX and XX, GT or LT options at the same time are not compatible"));
        }
        if conditions.greater && conditions.less {
            return Err(CommandError::new("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// A key without a deadline counts as one that expires after every other.
    fn allow(self, current_ms: Option<i64>, deadline_ms: i64) -> bool {
        let Some(current_ms) = current_ms else { return !self.present && !self.greater };
        let refused =
            self.missing || (self.greater && deadline_ms <= current_ms) || (self.less && deadline_ms >= current_ms);
        !refused
    }
}

/// The deadline of a rate limiter is part of its state.
fn check_deadline_is_free(kind: Kind) -> CommandResult {
    if kind == Kind::Limit {
        return Err(CommandError::new("ERR the deadline of a limit key is set by LIMIT only"));
    }
    Ok(())
}

fn expire(context: &mut Context<'_>, args: Args<'_>, name: &str, unit: Unit, base: Base) -> CommandResult {
    let key = args.at(1);
    let conditions = Conditions::parse(args.from(3))?;
    let time = number::parse_i64(args.at(2)).ok_or(CommandError::NOT_AN_INTEGER)?;
    let now_ms = context.keys.now_ms();
    let time_ms = if unit == Unit::Seconds { time.checked_mul(1000) } else { Some(time) };
    let deadline_ms = match base {
        Base::Now => time_ms.and_then(|time_ms| now_ms.checked_add(time_ms)),
        Base::Epoch => time_ms,
    };
    let deadline_ms = deadline_ms.ok_or_else(|| CommandError::invalid_expire_time(name))?;
    let Some(mut entry) = context.keys.find_mut(key) else {
        context.reply.integer(0);
        return Ok(());
    };
    check_deadline_is_free(entry.view().kind())?;
    if !conditions.allow(entry.view().deadline_ms(), deadline_ms) {
        context.reply.integer(0);
        return Ok(());
    }
    if deadline_ms > now_ms {
        entry.set_deadline(Some(deadline_ms));
        drop(entry);
        context.keys.changed(Class::Generic, "expire", key);
    } else {
        drop(entry);
        context.keys.remove(key);
        context.keys.changed(Class::Generic, "del", key);
    }
    context.reply.integer(1);
    Ok(())
}

fn persist(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let Some(mut entry) = context.keys.find_mut(key) else {
        context.reply.integer(0);
        return Ok(());
    };
    check_deadline_is_free(entry.view().kind())?;
    let had_deadline = entry.view().deadline_ms().is_some();
    entry.set_deadline(None);
    drop(entry);
    if had_deadline {
        context.keys.changed(Class::Generic, "persist", key);
    }
    context.reply.integer(had_deadline.into());
    Ok(())
}

/// Milliseconds, which are not negative, as seconds: rounded to the nearest.
fn rounded_s(time_ms: i64) -> i64 {
    time_ms / 1000 + i64::from(time_ms % 1000 >= 500)
}

fn read_deadline(context: &mut Context<'_>, args: Args<'_>, unit: Unit, base: Base) -> CommandResult {
    let now_ms = context.keys.now_ms();
    let answer = match context.keys.find_untouched(args.at(1)).map(|entry| entry.deadline_ms()) {
        None => -2,
        Some(None) => -1,
        Some(Some(deadline_ms)) => {
            let time_ms = if base == Base::Now { deadline_ms.saturating_sub(now_ms) } else { deadline_ms };
            if unit == Unit::Seconds { rounded_s(time_ms) } else { time_ms }
        }
    };
    context.reply.integer(answer);
    Ok(())
}
