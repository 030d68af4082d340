//! Fields as counters.

use super::{Args, integer_of};
use crate::commands::options::{cap, creation_deadline, positive_at};
use crate::context::Context;
use crate::entry::Header;
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
    let deadline_ms = creation_deadline(args, 4, keys.now_ms(), name)?;
    let limits = Limits::of(&keys.settings);
    let mut scratch = IntBuffer::new();
    let (result, expires) = if let Some(mut entry) = keys.find_hash_mut(key, [field])? {
        let place = Place::find(&entry, field);
        let result = sum(place.value(&entry))?;
        place.set_value(&mut entry, field, result.text(&mut scratch), limits);
        (result, false)
    } else {
        let result = sum(None)?;
        let header = Header { key, deadline_ms, version: None, access: keys.new_access() };
        let pairs = std::iter::once((field, result.text(&mut scratch)));
        let (entry, _) = hash::create(header, pairs, limits);
        keys.add(entry);
        (result, deadline_ms.is_some())
    };
    keys.changed(Class::Hash, name, key);
    if expires {
        keys.changed(Class::Generic, "expire", key);
    }
    Ok(result)
}

pub(super) fn htransfer(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (key, source, destination) = (args.at(1), args.at(2), args.at(3));
    let amount = positive_at(args, 4)?;
    let cap = cap(args, 5)?.unwrap_or(i64::MAX);
    if source == destination {
        return Err(CommandError::new("ERR source and destination fields are the same"));
    }
    let keys = &mut *context.keys;
    let limits = Limits::of(&keys.settings);
    let Some(mut entry) = keys.find_hash_mut(key, [source, destination])? else {
        context.reply.null_array();
        return Ok(());
    };
    let place = Place::find(&entry, source);
    let Some(held) = place.value(&entry).map(integer_of).transpose()? else {
        context.reply.null_array();
        return Ok(());
    };
    let received = Place::find(&entry, destination).value(&entry).map_or(Ok(0), integer_of)?;
    let received = received.checked_add(amount).filter(|after| *after <= cap);
    let Some(destination_after) = received.filter(|_| held >= amount) else {
        context.reply.null_array();
        return Ok(());
    };
    let source_after = held - amount;
    let mut text = IntBuffer::new();
    place.set_value(&mut entry, source, text.format(source_after), limits);
    // The first change may have moved the second field.
    let place = Place::find(&entry, destination);
    place.set_value(&mut entry, destination, text.format(destination_after), limits);
    drop(entry);
    keys.changed(Class::Hash, "hincrby", key);
    context.reply.array(2);
    context.reply.integer(source_after);
    context.reply.integer(destination_after);
    Ok(())
}
