//! Finding members within an area: GEOSEARCH, GEORADIUS and their relatives.

use std::cmp::Ordering;

use super::nearest::sort_first;
use super::options::{Options, Order, Syntax, circle_at, place_at, place_of};
use super::read::{reply_distance, reply_place};
use crate::args::Args;
use crate::commands::sorted_set::reply_member;
use crate::commands::sorted_set::store::{remove_destination, store};
use crate::context::Context;
use crate::entry::{Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::geo::{Area, Place};
use crate::packed::{Element, IntBuffer};
use crate::reply::Reply;
use crate::sorted_set::{self, LargeSortedSet, Limits, ScoreRange, SortedSetRef};

/// A member within the area.
#[derive(Clone, Copy)]
struct Found<'a> {
    member: Element<'a>,
    score: f64,
    place: Place,
    distance_m: f64,
}

/// The members of a set within an area, cell by cell; at most `limit` of them, 0 for all.
fn members_within<'a>(set: SortedSetRef<'a>, area: &Area, limit: usize) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for cell in area.cells() {
        let (min, max) = cell.scores();
        let range = ScoreRange { min, max, min_exclusive: false, max_exclusive: true };
        for (member, score) in set.members(set.ranks_by_score(&range)) {
            let place = Place::from_score(score);
            if let Some(distance_m) = area.distance_m(place) {
                found.push(Found { member, score, place, distance_m });
                if found.len() == limit {
                    return found;
                }
            }
        }
    }
    found
}

/// Puts the first `count` members in order, and leaves the others behind them.
fn sort(found: &mut [Found<'_>], order: Order, count: usize) {
    let compare = |one: &Found<'_>, other: &Found<'_>| {
        let ordering = one.distance_m.partial_cmp(&other.distance_m).unwrap_or(Ordering::Equal);
        if order == Order::Descending { ordering.reverse() } else { ordering }
    };
    if count < found.len() {
        sort_first(found, count, &compare);
    } else {
        found.sort_by(compare);
    }
}

/// Searches the set at word `source`. `before` reads the centre and the shape where they stand before the options, which
/// begin at word `start`; it is given the set, if it is there.
fn search<'a>(
    context: &mut Context<'_>,
    args: Args<'a>,
    syntax: Syntax,
    (source, start): (usize, usize),
    before: impl FnOnce(Option<SortedSetRef<'_>>) -> Result<Options<'a>, CommandError>,
) -> CommandResult {
    let limits = Limits::of(&context.keys.settings);
    let access = context.keys.new_access();
    let set = context.keys.find_kind(args.at(source), Kind::SortedSet)?.map(SortedSetRef::of);
    let options = before(set)?.parse(args, start, syntax, set)?;
    let mut found = Vec::new();
    let mut unit_m = 1.0;
    if let (Some(set), Some(area)) = (set, options.area()) {
        unit_m = area.unit_m;
        found = members_within(set, &area, if options.any { options.count } else { 0 });
        // The first few of them mean nothing without an order.
        let is_counted = options.count > 0 && !options.any;
        let count = if options.count > 0 { options.count } else { found.len() };
        if let Some(order) = options.order.or(is_counted.then_some(Order::Ascending)) {
            sort(&mut found, order, count);
        }
        found.truncate(count);
    }
    let Some(key) = options.destination else {
        reply(&mut context.reply, &found, &options, unit_m);
        return Ok(());
    };
    if found.is_empty() {
        remove_destination(context, key);
        return Ok(());
    }
    let mut result = LargeSortedSet::default();
    let mut scratch = IntBuffer::new();
    for Found { member, score, distance_m, .. } in &found {
        let score = if options.store_distance { distance_m / unit_m } else { *score };
        result.set(member.as_bytes(&mut scratch), score);
    }
    let members = found.len();
    let entry = sorted_set::create_from_large(Header { key, access, ..Header::default() }, result, limits);
    let event = if syntax == Syntax::SearchAndStore { "geosearchstore" } else { "georadiusstore" };
    store(context, entry, event, members);
    Ok(())
}

fn reply(reply: &mut Reply<'_>, found: &[Found<'_>], options: &Options<'_>, unit_m: f64) {
    let details = [options.with_distance, options.with_score, options.with_place];
    let details = details.iter().filter(|wanted| **wanted).count();
    reply.array(found.len());
    for Found { member, score, place, distance_m } in found {
        if details > 0 {
            reply.array(1 + details);
        }
        reply_member(reply, *member);
        if options.with_distance {
            reply_distance(reply, distance_m / unit_m);
        }
        if options.with_score {
            reply.integer(*score as i64);
        }
        if options.with_place {
            reply_place(reply, *place);
        }
    }
}

pub(super) fn geosearch(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    search(context, args, Syntax::Search, (1, 2), |_| Ok(Options::new(None, None, None)))
}

pub(super) fn geosearchstore(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let destination = Some(args.at(1));
    search(context, args, Syntax::SearchAndStore, (2, 3), |_| Ok(Options::new(None, None, destination)))
}

pub(super) fn georadius(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    around_place(context, args, Syntax::Radius)
}

pub(super) fn georadius_ro(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    around_place(context, args, Syntax::ReadOnlyRadius)
}

pub(super) fn georadiusbymember(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    around_member(context, args, Syntax::Radius)
}

pub(super) fn georadiusbymember_ro(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    around_member(context, args, Syntax::ReadOnlyRadius)
}

/// `key longitude latitude radius unit …`
fn around_place(context: &mut Context<'_>, args: Args<'_>, syntax: Syntax) -> CommandResult {
    search(context, args, syntax, (1, 6), |_| {
        let centre = place_at(args, 2)?;
        Ok(Options::new(Some(centre), Some(circle_at(args, 4)?), None))
    })
}

/// `key member radius unit …`
fn around_member(context: &mut Context<'_>, args: Args<'_>, syntax: Syntax) -> CommandResult {
    search(context, args, syntax, (1, 5), |set| {
        // In a set that is missing nothing is found, whatever the radius.
        let Some(set) = set else { return Ok(Options::new(None, None, None)) };
        let centre = place_of(set, args.at(2))?;
        Ok(Options::new(Some(centre), Some(circle_at(args, 3)?), None))
    })
}
