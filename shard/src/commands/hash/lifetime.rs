//! The deadlines of fields: setting, reading and clearing them.

use super::Args;
use crate::commands::options::TimeUnit;
use crate::context::Context;
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::hash::{self, Place};
use crate::keys::Keys;
use crate::number::parse_i64;

/// The last deadline that a field may be given, in ms since the epoch, as in Redis.
const LAST_DEADLINE_MS: i64 = (1 << 46) - 1;

/// The reply for a field that is not there.
const NO_FIELD: i64 = -2;

/// The reply for a field that has no deadline.
const NO_DEADLINE: i64 = -1;

/// What Redis says of a `numfields` that is no positive integer, but for `HEXPIRE` and its like.
pub(super) const NOT_A_COUNT: &str = "ERR Number of fields must be a positive integer";

/// The fields behind `FIELDS numfields` from word `index` on; `not_a_count` is the error for a `numfields` that is no
/// positive integer.
pub(super) fn named_fields<'a>(
    args: Args<'a>,
    index: usize,
    not_a_count: &'static str,
) -> Result<Args<'a>, CommandError> {
    if !args.is(index, "FIELDS") {
        return Err(CommandError::new("ERR Mandatory argument FIELDS is missing or not at the right position"));
    }
    let fields = args.from(index + 2);
    let count = args.get(index + 1).and_then(parse_i64).filter(|count| *count > 0);
    if count.ok_or(CommandError::new(not_a_count))? != fields.len() as i64 {
        return Err(CommandError::new("ERR The `numfields` parameter must match the number of arguments"));
    }
    Ok(fields)
}

/// What was read from the words of a call, or the error in them; before it comes that of a key of another type.
pub(super) fn unless_wrong_type<T>(
    context: &mut Context<'_>,
    key: &[u8],
    call: Result<T, CommandError>,
) -> Result<T, CommandError> {
    call.or_else(|error| {
        context.keys.find_hash_mut(key, [])?;
        Err(error)
    })
}

/// Reads `time` as a deadline in ms since the epoch, which may lie in the past.
pub(super) fn deadline_ms(time: &[u8], unit: TimeUnit, now_ms: i64, command: &str) -> Result<i64, CommandError> {
    let time = parse_i64(time).ok_or(CommandError::NOT_AN_INTEGER)?;
    if time < 0 {
        return Err(CommandError::new("ERR invalid expire time, must be >= 0"));
    }
    let time_ms = if unit.is_seconds() { time.checked_mul(1000) } else { Some(time) };
    let start_ms = if unit.is_relative() { now_ms } else { 0 };
    time_ms
        .and_then(|time_ms| time_ms.checked_add(start_ms))
        .filter(|deadline_ms| *deadline_ms <= LAST_DEADLINE_MS)
        .ok_or_else(|| CommandError::invalid_expire_time(command))
}

/// What a call did to fields.
#[derive(Clone, Copy, Default)]
pub(super) struct Effect {
    /// Fields that got a deadline, or lost it.
    pub(super) updated: usize,
    /// Fields removed because their new deadline had passed.
    pub(super) removed: usize,
    /// Whether no field is left.
    pub(super) emptied: bool,
}

impl Effect {
    /// Tells of it, and removes a key without fields. `event` is that of a field that got or lost its deadline.
    pub(super) fn announce(self, keys: &mut Keys, event: &'static str, key: &[u8]) {
        keys.stats.expired_fields += self.removed as u64;
        if self.removed > 0 {
            keys.changed(Class::Hash, "hdel", key);
        } else if self.updated > 0 {
            keys.changed(Class::Hash, event, key);
        }
        if self.emptied {
            keys.remove_emptied(key);
        }
    }
}

/// When a deadline is set at all, by the one that is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    Missing,
    Present,
    Greater,
    Less,
}

impl Condition {
    fn from_word(word: &[u8]) -> Option<Condition> {
        const WORDS: [(&str, Condition); 4] = [
            ("NX", Condition::Missing),
            ("XX", Condition::Present),
            ("GT", Condition::Greater),
            ("LT", Condition::Less),
        ];
        WORDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes())).map(|(_, condition)| *condition)
    }

    /// A field without a deadline counts as one that expires after every other.
    fn allows(self, current_ms: Option<i64>, deadline_ms: i64) -> bool {
        match (self, current_ms) {
            (Condition::Always, _) => true,
            (Condition::Missing, current_ms) => current_ms.is_none(),
            (Condition::Present, current_ms) => current_ms.is_some(),
            (Condition::Greater, current_ms) => current_ms.is_some_and(|current_ms| deadline_ms > current_ms),
            (Condition::Less, current_ms) => current_ms.is_none_or(|current_ms| deadline_ms < current_ms),
        }
    }
}

/// The words of `HEXPIRE` and its like.
struct Expire<'a> {
    deadline_ms: i64,
    condition: Condition,
    fields: Args<'a>,
}

impl<'a> Expire<'a> {
    fn parse(args: Args<'a>, name: &str, unit: TimeUnit, now_ms: i64) -> Result<Expire<'a>, CommandError> {
        let deadline_ms = deadline_ms(args.at(2), unit, now_ms, name)?;
        let condition = Condition::from_word(args.at(3));
        let index = if condition.is_some() { 4 } else { 3 };
        let fields = named_fields(args, index, "ERR Parameter `numFields` should be greater than 0")?;
        Ok(Expire { deadline_ms, condition: condition.unwrap_or(Condition::Always), fields })
    }
}

/// `HEXPIRE`, `HPEXPIRE`, `HEXPIREAT` and `HPEXPIREAT`.
pub(super) fn expire(context: &mut Context<'_>, args: Args<'_>, name: &'static str, unit: TimeUnit) -> CommandResult {
    let (key, now_ms) = (args.at(1), context.keys.now_ms());
    let call = Expire::parse(args, name, unit, now_ms);
    let Expire { deadline_ms, condition, fields } = unless_wrong_type(context, key, call)?;
    let reply = &mut context.reply;
    reply.array(fields.len());
    let Some(mut entry) = context.keys.find_hash_mut(key, fields.iter())? else {
        fields.iter().for_each(|_| reply.integer(NO_FIELD));
        return Ok(());
    };
    let mut effect = Effect::default();
    for field in fields.iter() {
        let place = Place::find(&entry, field);
        let answer = if !place.is_present() {
            NO_FIELD
        } else if !condition.allows(place.deadline_ms(&entry), deadline_ms) {
            0
        } else if deadline_ms > now_ms {
            place.set_deadline(&mut entry, field, Some(deadline_ms));
            effect.updated += 1;
            1
        } else {
            place.remove(&mut entry);
            effect.removed += 1;
            2
        };
        reply.integer(answer);
    }
    effect.emptied = hash::is_empty(entry.view());
    drop(entry);
    effect.announce(context.keys, "hexpire", key);
    Ok(())
}

/// `HPERSIST`.
pub(super) fn persist(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let fields = unless_wrong_type(context, key, named_fields(args, 2, NOT_A_COUNT))?;
    let reply = &mut context.reply;
    reply.array(fields.len());
    let Some(mut entry) = context.keys.find_hash_mut(key, fields.iter())? else {
        fields.iter().for_each(|_| reply.integer(NO_FIELD));
        return Ok(());
    };
    let mut effect = Effect::default();
    for field in fields.iter() {
        let place = Place::find(&entry, field);
        reply.integer(if !place.is_present() {
            NO_FIELD
        } else if place.deadline_ms(&entry).is_none() {
            NO_DEADLINE
        } else {
            place.set_deadline(&mut entry, field, None);
            effect.updated += 1;
            1
        });
    }
    drop(entry);
    effect.announce(context.keys, "hpersist", key);
    Ok(())
}

/// `HTTL`, `HPTTL`, `HEXPIRETIME` and `HPEXPIRETIME`. A field that has expired stays until another command names it.
pub(super) fn read(context: &mut Context<'_>, args: Args<'_>, unit: TimeUnit) -> CommandResult {
    let now_ms = context.keys.now_ms();
    let fields = unless_wrong_type(context, args.at(1), named_fields(args, 2, NOT_A_COUNT))?;
    let hash = context.keys.find_hash(args.at(1), [])?;
    context.reply.array(fields.len());
    for field in fields.iter() {
        let found = hash.and_then(|hash| hash.get_with_deadline(field));
        context.reply.integer(match found {
            None => NO_FIELD,
            Some((_, None)) => NO_DEADLINE,
            Some((_, Some(deadline_ms))) => {
                let time_ms = if unit.is_relative() { deadline_ms - now_ms } else { deadline_ms };
                // Seconds are rounded up.
                if unit.is_seconds() { time_ms.saturating_add(999) / 1000 } else { time_ms }
            }
        });
    }
    Ok(())
}
