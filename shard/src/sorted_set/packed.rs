//! The packed form of a sorted set: member, score, member, score, … in the order of the set.
//!
//! A score is an integer where it is integral, else its shortest text. So negative zero is read back as zero.

use std::cmp::Ordering;
use std::ops::Range;

use crate::entry::Entry;
use crate::number::{parse_f64, write_f64};
use crate::packed::{self, Element, Elements, IntBuffer};
use crate::sorted_set::range::{LexRange, ScoreRange};
use crate::sorted_set::scored;

/// The score that an element stands for.
#[inline]
pub(super) fn score_of(element: Element<'_>) -> f64 {
    match element {
        Element::Int(value) => value as f64,
        // Only what `write_f64` wrote is ever stored, so this parses.
        Element::Bytes(text) => parse_f64(text).unwrap_or(0.0),
    }
}

/// The score as an integer, where it is one that is stored as such.
#[inline]
pub fn integral(score: f64) -> Option<i64> {
    const LARGEST: f64 = (i64::MAX / 2) as f64;
    (score.abs() <= LARGEST && score.trunc() == score).then_some(score as i64)
}

/// Appends a score in its packed form.
pub(super) fn encode_score(score: f64, out: &mut Vec<u8>) {
    match integral(score) {
        Some(value) => packed::encode_int(value, out),
        None => {
            let mut text = Vec::with_capacity(32);
            write_f64(score, &mut text);
            packed::encode(&text, out);
        }
    }
}

/// Appends a member and its score in their packed form.
pub(super) fn encode_pair(member: &[u8], score: f64, out: &mut Vec<u8>) {
    packed::encode(member, out);
    encode_score(score, out);
}

/// Members and scores of a packed sequence, from either end.
#[derive(Clone)]
pub struct Pairs<'a> {
    elements: Elements<'a>,
}

impl<'a> Pairs<'a> {
    /// All pairs.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Pairs<'a> {
        Pairs { elements: Elements::new(bytes) }
    }

    /// The pairs of a range of ranks.
    pub fn within(bytes: &'a [u8], ranks: Range<usize>) -> Pairs<'a> {
        let start = offset_of(bytes, 0, ranks.start);
        let end = offset_of(bytes, start, ranks.len());
        Pairs { elements: Elements::within(bytes, start..end) }
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (Element<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (_, member) = self.elements.next()?;
        let (_, score) = self.elements.next()?;
        Some((member, score_of(score)))
    }
}

impl DoubleEndedIterator for Pairs<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let (_, score) = self.elements.next_back()?;
        let (_, member) = self.elements.next_back()?;
        Some((member, score_of(score)))
    }
}

/// Where the pair stands that comes `pairs` pairs behind the one at offset `start`; at most the end.
fn offset_of(bytes: &[u8], start: usize, pairs: usize) -> usize {
    match pairs.checked_mul(2).and_then(|elements| elements.checked_sub(1)) {
        None => start,
        Some(last) => {
            Elements::within(bytes, start..bytes.len()).nth(last).map_or(bytes.len(), |(position, _)| position.end)
        }
    }
}

/// Number of pairs.
pub(super) fn count(bytes: &[u8]) -> usize {
    let mut elements = Elements::new(bytes);
    std::iter::from_fn(|| elements.nth(1)).count()
}

/// Whether there are more than `limit` pairs, `more` of them added. Counts only when it must.
#[inline]
pub(super) fn exceeds(bytes: &[u8], more: usize, limit: usize) -> bool {
    /// The fewest bytes of a pair: two elements of a header and a backlen.
    const PAIR_BYTES: usize = 4;
    let at_most = (bytes.len() / PAIR_BYTES).saturating_add(more);
    at_most > limit && count(bytes).saturating_add(more) > limit
}

/// A member that was found.
pub(super) struct Found {
    /// The bytes of the member.
    pub member: Range<usize>,
    /// The bytes of the score.
    pub score_bytes: Range<usize>,
    /// The score.
    pub score: f64,
}

/// Finds a member.
#[inline]
pub(super) fn find(bytes: &[u8], member: &[u8]) -> Option<Found> {
    let member = packed::find(bytes, member, 1)?;
    let (score_bytes, score) = packed::next_after(bytes, member.end)?;
    Some(Found { member, score_bytes, score: score_of(score) })
}

/// Rank and score of a member.
pub(super) fn rank(bytes: &[u8], member: &[u8]) -> Option<(usize, f64)> {
    Pairs::new(bytes)
        .enumerate()
        .find(|(_, (element, _))| element.eq_bytes(member))
        .map(|(rank, (_, score))| (rank, score))
}

/// The ranks of the members within a range of scores.
pub(super) fn ranks_by_score(bytes: &[u8], range: &ScoreRange) -> Range<usize> {
    let below = Pairs::new(bytes).take_while(|(_, score)| range.is_below(*score)).count();
    let not_above = Pairs::new(bytes).take_while(|(_, score)| !range.is_above(*score)).count();
    below..not_above.max(below)
}

/// The ranks of the members within a range of members.
pub(super) fn ranks_by_lex(bytes: &[u8], range: &LexRange<'_>) -> Range<usize> {
    let run = |test: &dyn Fn(&[u8]) -> bool| {
        let mut scratch = IntBuffer::new();
        Pairs::new(bytes).take_while(|(member, _)| test(member.as_bytes(&mut scratch))).count()
    };
    let below = run(&|member| range.is_below(member));
    let not_above = run(&|member| !range.is_above(member));
    below..not_above.max(below)
}

/// Whether the pair `(member, score)` of a sequence comes before another.
fn is_before(member: Element<'_>, score: f64, other_member: &[u8], other_score: f64) -> bool {
    let mut scratch = IntBuffer::new();
    scored::compare(score, member.as_bytes(&mut scratch), other_score, other_member) == Ordering::Less
}

/// Adds a member that is not there.
pub(super) fn insert(entry: &mut Entry, member: &[u8], score: f64) {
    let bytes = entry.view().payload();
    // Most often the new member is the last.
    let offset = match Pairs::new(bytes).next_back() {
        Some((last, last_score)) if !is_before(last, last_score, member, score) => {
            let before =
                Pairs::new(bytes).take_while(|(other, other_score)| is_before(*other, *other_score, member, score));
            offset_of(bytes, 0, before.count())
        }
        _ => bytes.len(),
    };
    let mut pair = Vec::with_capacity(member.len() + 24);
    encode_pair(member, score, &mut pair);
    entry.splice(offset..offset, &pair);
}

/// Gives a member that was found another score, and another place where that is needed.
pub(super) fn set_score(entry: &mut Entry, found: &Found, member: &[u8], score: f64) {
    let bytes = entry.view().payload();
    let before = Elements::within(bytes, 0..found.member.start);
    let behind = Elements::within(bytes, found.score_bytes.end..bytes.len());
    let follows = Pairs { elements: before }.next_back().is_none_or(|(other, at)| is_before(other, at, member, score));
    let precedes = Pairs { elements: behind }.next().is_none_or(|(other, at)| !is_before(other, at, member, score));
    if follows && precedes {
        let mut encoded = Vec::with_capacity(24);
        encode_score(score, &mut encoded);
        entry.splice(found.score_bytes.clone(), &encoded);
    } else {
        entry.splice(found.member.start..found.score_bytes.end, &[]);
        insert(entry, member, score);
    }
}

/// Removes a member; whether it was there.
pub(super) fn remove(entry: &mut Entry, member: &[u8]) -> bool {
    let Some(found) = find(entry.view().payload(), member) else { return false };
    entry.splice(found.member.start..found.score_bytes.end, &[]);
    true
}

/// Removes the members of a range of ranks.
pub(super) fn remove_ranks(entry: &mut Entry, ranks: Range<usize>) {
    let bytes = entry.view().payload();
    let start = offset_of(bytes, 0, ranks.start);
    let end = offset_of(bytes, start, ranks.len());
    entry.splice(start..end, &[]);
}
