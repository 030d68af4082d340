//! What is known of members: GEOPOS, GEODIST and GEOHASH.

use super::options::unit_m;
use crate::args::Args;
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::geo::Place;
use crate::number::{IntBuffer, write_f64_human};
use crate::reply::Reply;
use crate::sorted_set::SortedSetRef;

/// Replies longitude and latitude, with as many digits as they have.
pub(super) fn reply_place(reply: &mut Reply<'_>, place: Place) {
    reply.array(2);
    let mut text = Vec::with_capacity(24);
    for degrees in [place.longitude, place.latitude] {
        text.clear();
        write_f64_human(degrees, &mut text);
        reply.double_text(&text);
    }
}

/// Replies a distance with four digits behind the point.
pub(super) fn reply_distance(reply: &mut Reply<'_>, distance: f64) {
    const FRACTION: usize = 10_000;
    // Rounded as C's `llrint` does, halves to even.
    let scaled = (distance * FRACTION as f64).round_ties_even() as u64 as usize;
    let mut digits = IntBuffer::new();
    let mut text = Vec::with_capacity(24);
    text.extend_from_slice(digits.format((scaled / FRACTION) as i64));
    text.push(b'.');
    // The leading 1 keeps the zeros behind the point.
    text.extend_from_slice(&digits.format((FRACTION + scaled % FRACTION) as i64)[1..]);
    reply.bulk(&text);
}

/// Replies for each member named what `found` makes of its place, or what `missing` says.
fn reply_each(
    context: &mut Context<'_>,
    args: Args<'_>,
    found: impl Fn(&mut Reply<'_>, Place),
    missing: impl Fn(&mut Reply<'_>),
) -> CommandResult {
    let set = context.keys.find_kind(args.at(1), Kind::SortedSet)?.map(SortedSetRef::of);
    let members = args.from(2);
    context.reply.array(members.len());
    for member in members.iter() {
        match set.and_then(|set| set.score(member)) {
            Some(score) => found(&mut context.reply, Place::from_score(score)),
            None => missing(&mut context.reply),
        }
    }
    Ok(())
}

pub(super) fn geopos(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    reply_each(context, args, reply_place, |reply| reply.null_array())
}

pub(super) fn geohash(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    reply_each(context, args, |reply, place| reply.bulk(&place.geohash()), |reply| reply.null())
}

pub(super) fn geodist(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let unit_m = match args.len() {
        4 => 1.0,
        5 => unit_m(args.at(4))?,
        _ => return Err(CommandError::SYNTAX),
    };
    let set = context.keys.find_kind(args.at(1), Kind::SortedSet)?.map(SortedSetRef::of);
    let place = |index| Some(Place::from_score(set?.score(args.at(index))?));
    match (place(2), place(3)) {
        (Some(one), Some(other)) => reply_distance(&mut context.reply, one.distance_m(other) / unit_m),
        _ => context.reply.null(),
    }
    Ok(())
}
