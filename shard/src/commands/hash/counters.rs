//! Fields as counters.

use super::{Args, integer_of};
use crate::context::Context;
use crate::entry::{Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::hash::{self, Limits, Place};
use crate::number::{Extended, IntBuffer, parse_i64};
use crate::packed::Element;

pub(super) fn hincrby(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let increment = parse_i64(args.at(3)).ok_or(CommandError::NOT_AN_INTEGER)?;
    let result = increase(context, args, "hincrby", |current| {
        let current = current.map_or(Ok(0), integer_of)?;
        current.checked_add(increment).map(Sum::Integer).ok_or(CommandError::OVERFLOW)
    })?;
    if let Sum::Integer(value) = result {
        context.reply.integer(value);
    }
    Ok(())
}

pub(super) fn hincrbyfloat(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let increment = Extended::parse(args.at(3)).ok_or(CommandError::NOT_A_FLOAT)?;
    if !increment.is_finite() {
        return Err(CommandError::new("ERR value is NaN or Infinity"));
    }
    let result = increase(context, args, "hincrbyfloat", |current| {
        let mut scratch = IntBuffer::new();
        let text = current.as_ref().map_or(&b"0"[..], |element| element.as_bytes(&mut scratch));
        let current = Extended::parse(text).ok_or(CommandError::new("ERR hash value is not a float"))?;
        let sum = current
            .plus(increment)
            .filter(Extended::is_finite)
            .ok_or(CommandError::new("ERR increment would produce NaN or Infinity"))?;
        let mut text = Vec::with_capacity(24);
        sum.write_human(&mut text);
        Ok(Sum::Float(text))
    })?;
    context.reply.bulk(result.text(&mut IntBuffer::new()));
    Ok(())
}

/// The new value of a counter.
enum Sum {
    Integer(i64),
    /// In the form in which it is stored.
    Float(Vec<u8>),
}

impl Sum {
    fn text<'a>(&'a self, scratch: &'a mut IntBuffer) -> &'a [u8] {
        match self {
            Sum::Integer(value) => scratch.format(*value),
            Sum::Float(text) => text,
        }
    }
}

/// Sets the field of `HINCRBY` or `HINCRBYFLOAT` (its `name` is the event's too) to the sum of its value.
fn increase(
    context: &mut Context<'_>,
    args: Args<'_>,
    name: &'static str,
    sum: impl FnOnce(Option<Element<'_>>) -> Result<Sum, CommandError>,
) -> Result<Sum, CommandError> {
    let (key, field) = (args.at(1), args.at(2));
    let keys = &mut *context.keys;
    let deadline_ms = creation_deadline_ms(args.from(4), keys.now_ms(), name)?;
    let limits = Limits::of(&keys.settings);
    let mut scratch = IntBuffer::new();
    let result = if let Some(mut entry) = keys.find_mut_kind(key, Kind::Hash)? {
        let place = Place::find(&entry, field);
        let result = sum(place.value(&entry))?;
        place.set(&mut entry, field, result.text(&mut scratch), limits);
        result
    } else {
        let result = sum(None)?;
        let header = Header { key, deadline_ms, version: None, access: keys.new_access() };
        let pairs = std::iter::once((field, result.text(&mut scratch)));
        let (entry, _) = hash::create(header, pairs, limits);
        keys.add(entry);
        result
    };
    keys.changed(Class::Hash, name, key);
    Ok(result)
}

/// The deadline that `[EX seconds | PX milliseconds]` gives a key made by this call, in ms since the epoch.
fn creation_deadline_ms(options: Args<'_>, now_ms: i64, name: &str) -> Result<Option<i64>, CommandError> {
    let unit_ms = match options.len() {
        0 => return Ok(None),
        2 if options.is(0, "ex") => 1000,
        2 if options.is(0, "px") => 1,
        _ => return Err(CommandError::SYNTAX),
    };
    let time = parse_i64(options.at(1)).ok_or(CommandError::NOT_AN_INTEGER)?;
    let deadline_ms = time.checked_mul(unit_ms).and_then(|time_ms| time_ms.checked_add(now_ms));
    match deadline_ms {
        Some(deadline_ms) if time > 0 => Ok(Some(deadline_ms)),
        _ => Err(CommandError::invalid_expire_time(name)),
    }
}

pub(super) fn htransfer(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, source, destination) = (args.at(1), args.at(2), args.at(3));
    let amount = parse_i64(args.at(4)).ok_or(CommandError::NOT_AN_INTEGER)?;
    let cap = match args.len() {
        5 => i64::MAX,
        7 if args.is(5, "max") => parse_i64(args.at(6)).ok_or(CommandError::NOT_AN_INTEGER)?,
        _ => return Err(CommandError::SYNTAX),
    };
    if amount < 1 {
        return Err(CommandError::MUST_BE_POSITIVE);
    }
    if source == destination {
        return Err(CommandError::new("ERR source and destination fields are the same"));
    }
    let keys = &mut *context.keys;
    let limits = Limits::of(&keys.settings);
    let Some(mut entry) = keys.find_mut_kind(key, Kind::Hash)? else {
        context.reply.null_array();
        return Ok(());
    };
    let place = Place::find(&entry, source);
    let held = place.value(&entry).map(integer_of).transpose()?;
    let received = Place::find(&entry, destination).value(&entry).map_or(Ok(0), integer_of)?;
    let moved = held.filter(|held| *held >= amount).and_then(|held| {
        let destination_after = received.checked_add(amount).filter(|after| *after <= cap)?;
        Some((held - amount, destination_after))
    });
    let Some((source_after, destination_after)) = moved else {
        context.reply.null_array();
        return Ok(());
    };
    let mut text = IntBuffer::new();
    place.set(&mut entry, source, text.format(source_after), limits);
    // The first change may have moved the second field.
    Place::find(&entry, destination).set(&mut entry, destination, text.format(destination_after), limits);
    drop(entry);
    keys.changed(Class::Hash, "htransfer", key);
    context.reply.array(2);
    context.reply.integer(source_after);
    context.reply.integer(destination_after);
    Ok(())
}
