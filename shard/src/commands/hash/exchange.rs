//! Reading or setting fields together with their deadlines, and reading fields that go.

use super::lifetime::{Effect, NOT_A_COUNT, deadline_ms, named_fields, unless_wrong_type};
use super::{Args, reply_element};
use crate::commands::options::TimeUnit;
use crate::context::Context;
use crate::entry::{Encoding, Entry, Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::hash::{self, Lifetime, Limits, Place};
use crate::keys::Keys;
use crate::number::parse_i64;

pub(super) fn hgetdel(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let fields = unless_wrong_type(context, key, named_fields(args, 2, NOT_A_COUNT))?;
    let reply = &mut context.reply;
    reply.array(fields.len());
    let Some(mut entry) = context.keys.find_hash_mut(key, fields.iter())? else {
        fields.iter().for_each(|_| reply.null());
        return Ok(());
    };
    let mut removed = 0;
    for field in fields.iter() {
        let place = Place::find(&entry, field);
        match place.value(&entry) {
            Some(value) => reply_element(reply, value),
            None => reply.null(),
        }
        removed += usize::from(place.remove(&mut entry));
    }
    let emptied = hash::is_empty(entry.view());
    drop(entry);
    if removed > 0 {
        context.keys.changed(Class::Hash, "hdel", key);
    }
    if emptied {
        context.keys.remove_emptied(key);
    }
    Ok(())
}

/// The words of `HGETEX`: what becomes of the deadlines, and the fields.
fn parse_hgetex(args: Args<'_>, now_ms: i64) -> Result<(Lifetime, Args<'_>), CommandError> {
    let (lifetime, index) = match TimeUnit::from_word(args.at(2)) {
        Some(unit) => (Lifetime::Until(deadline_ms(args.at(3), unit, now_ms, "hgetex")?), 4),
        None if args.is(2, "PERSIST") => (Lifetime::Unlimited, 3),
        None => (Lifetime::Unchanged, 2),
    };
    Ok((lifetime, named_fields(args, index, NOT_A_COUNT)?))
}

pub(super) fn hgetex(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, now_ms) = (args.at(1), context.keys.now_ms());
    let (lifetime, fields) = unless_wrong_type(context, key, parse_hgetex(args, now_ms))?;
    let reply = &mut context.reply;
    reply.array(fields.len());
    let Some(mut entry) = context.keys.find_hash_mut(key, fields.iter())? else {
        fields.iter().for_each(|_| reply.null());
        return Ok(());
    };
    let mut effect = Effect::default();
    for field in fields.iter() {
        let place = Place::find(&entry, field);
        let Some(value) = place.value(&entry) else {
            reply.null();
            continue;
        };
        reply_element(reply, value);
        match lifetime {
            Lifetime::Unchanged => {}
            Lifetime::Unlimited => {
                effect.updated += usize::from(place.deadline_ms(&entry).is_some());
                place.set_deadline(&mut entry, field, None);
            }
            Lifetime::Until(deadline_ms) if deadline_ms > now_ms => {
                effect.updated += 1;
                place.set_deadline(&mut entry, field, Some(deadline_ms));
            }
            Lifetime::Until(_) => effect.removed += usize::from(place.remove(&mut entry)),
        }
    }
    effect.emptied = hash::is_empty(entry.view());
    drop(entry);
    effect.announce(context.keys, if lifetime == Lifetime::Unlimited { "hpersist" } else { "hexpire" }, key);
    Ok(())
}

/// Which of its fields must be there for `HSETEX` to set them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    /// `FNX`: none.
    NoneThere,
    /// `FXX`: all.
    AllThere,
}

/// The words of `HSETEX`.
struct SetCall<'a> {
    condition: Condition,
    lifetime: Lifetime,
    pairs: Args<'a>,
}

impl<'a> SetCall<'a> {
    fn parse(args: Args<'a>, now_ms: i64) -> Result<SetCall<'a>, CommandError> {
        let wrong_arity = || CommandError::wrong_arity("hsetex");
        let (mut condition, mut lifetime) = (Condition::Always, None);
        let mut index = 2;
        while let Some(word) = args.get(index) {
            let named = match word {
                word if word.eq_ignore_ascii_case(b"FNX") => Some(Condition::NoneThere),
                word if word.eq_ignore_ascii_case(b"FXX") => Some(Condition::AllThere),
                _ => None,
            };
            let unit = TimeUnit::from_word(word);
            let keeps = word.eq_ignore_ascii_case(b"KEEPTTL");
            if word.eq_ignore_ascii_case(b"FIELDS") {
                let pairs = args.from(index + 2);
                if pairs.len() < 2 {
                    return Err(wrong_arity());
                }
                let count = parse_i64(args.at(index + 1)).filter(|count| (1..=i64::from(i32::MAX)).contains(count));
                let count = count.ok_or(CommandError::new("ERR invalid number of fields"))?;
                if count * 2 != pairs.len() as i64 {
                    return Err(wrong_arity());
                }
                // Without a word for them deadlines go.
                return Ok(SetCall { condition, lifetime: lifetime.unwrap_or(Lifetime::Unlimited), pairs });
            } else if let Some(named) = named {
                if condition != Condition::Always {
                    return Err(CommandError::new("ERR Only one of FXX or FNX arguments can be specified"));
                }
                condition = named;
                index += 1;
            } else if (keeps || unit.is_some()) && lifetime.is_some() {
                return Err(CommandError::new(
                    "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
                ));
            } else if keeps {
                lifetime = Some(Lifetime::Unchanged);
                index += 1;
            } else if let Some(unit) = unit {
                let time = args.get(index + 1).ok_or(CommandError::new("ERR missing expire time"))?;
                lifetime = Some(Lifetime::Until(deadline_ms(time, unit, now_ms, "hsetex")?));
                index += 2;
            } else {
                return Err(CommandError::new(format!("ERR unknown argument: {}", String::from_utf8_lossy(word))));
            }
        }
        Err(wrong_arity())
    }

    fn fields(&self) -> impl Iterator<Item = &'a [u8]> {
        self.pairs.iter().step_by(2)
    }

    fn pairs(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.fields().zip(self.pairs.iter().skip(1).step_by(2))
    }

    fn holds_for(&self, entry: &Entry, now_ms: i64) -> bool {
        let mut live = self.fields().map(|field| Place::find(entry, field).is_live(entry, now_ms));
        match self.condition {
            Condition::Always => true,
            Condition::NoneThere => !live.any(|live| live),
            Condition::AllThere => live.all(|live| live),
        }
    }

    /// Sets the fields; whether any is left.
    fn apply(&self, entry: &mut Entry, limits: Limits, now_ms: i64) -> bool {
        for (field, value) in self.pairs() {
            let place = Place::find(entry, field);
            match self.lifetime {
                Lifetime::Until(deadline_ms) if deadline_ms <= now_ms => {
                    place.remove(entry);
                }
                // What has expired is not there, so there is no deadline to be kept.
                Lifetime::Unchanged if place.has_expired(entry, now_ms) => place.set(entry, field, value, limits),
                lifetime => place.put(entry, field, value, limits, lifetime),
            }
        }
        !hash::is_empty(entry.view())
    }
}

pub(super) fn hsetex(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, now_ms) = (args.at(1), context.keys.now_ms());
    let call = SetCall::parse(args, now_ms)?;
    let keys = &mut *context.keys;
    let limits = Limits::of(&keys.settings);
    let (holds, expired, left) = if let Some(mut entry) = keys.find_mut_kind(key, Kind::Hash)? {
        let holds = call.holds_for(&entry, now_ms);
        let with_condition = call.condition != Condition::Always;
        let has_expired = |field| Place::find(&entry, field).has_expired(&entry, now_ms);
        let expired =
            if holds && with_condition { call.fields().filter(|field| has_expired(field)).count() } else { 0 };
        (holds, expired, holds && call.apply(&mut entry, limits, now_ms))
    } else {
        let holds = call.condition != Condition::AllThere;
        let header = Header { key, access: keys.new_access(), ..Header::default() };
        let mut entry = Entry::new(header, Encoding::PackedHash, &[]);
        let left = holds && call.apply(&mut entry, limits, now_ms);
        if left {
            keys.add(entry);
        }
        (holds, 0, left)
    };
    if holds {
        announce_set(keys, key, &call, expired, left, now_ms);
    } else {
        // Fields that were looked at and had expired go.
        keys.find_hash_mut(key, call.fields())?;
    }
    context.reply.integer(holds.into());
    Ok(())
}

/// Tells that fields were set, of which `expired` had expired before; the key goes unless a field is `left`.
fn announce_set(keys: &mut Keys, key: &[u8], call: &SetCall<'_>, expired: usize, left: bool, now_ms: i64) {
    if expired > 0 {
        keys.stats.expired_fields += expired as u64;
        keys.changed_by_time(Class::Hash, "hexpired", key);
    }
    keys.changed(Class::Hash, "hset", key);
    let mut effect = Effect { emptied: !left, ..Effect::default() };
    if let Lifetime::Until(deadline_ms) = call.lifetime {
        let fields = call.pairs.len() / 2;
        if deadline_ms > now_ms { effect.updated = fields } else { effect.removed = fields }
    }
    effect.announce(keys, "hexpire", key);
}
