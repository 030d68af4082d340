//! Sorted sets: members with scores, in the order of their scores and, where those are equal, of their bytes.
//!
//! A small one is packed within its entry, a larger one is a table of members and a counted tree. The functions here
//! work on both forms and turn the first into the second when a limit is passed.

mod large;
mod packed;
mod range;
mod scored;

use std::ops::Range;

pub use large::{LargeSortedSet, Scores};
pub use packed::integral;
pub use range::{LexRange, ScoreRange};

use crate::entry::{Encoding, Entry, EntryRef, Header};
use crate::object::Object;
use crate::packed::{Element, IntBuffer};
use crate::settings::Settings;
use large::LargeMembers;
use packed::Pairs;

/// The longest packed form, in bytes, whatever the limits say.
const PACKED_BYTES_MAX: usize = 1 << 30;

/// What may be packed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most members.
    pub members: usize,
    /// The longest member, in bytes.
    pub member_bytes: usize,
}

impl Limits {
    /// The limits that are set.
    #[inline]
    pub fn of(settings: &Settings) -> Limits {
        Limits { members: settings.zset_max_listpack_entries, member_bytes: settings.zset_max_listpack_value }
    }
}

/// What became of a member in [`update`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It was not there before.
    Added,
    /// It has another score than before.
    Changed,
    /// It has the score it had.
    None,
}

/// What [`update`] did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Updated {
    /// What became of the member.
    pub effect: Effect,
    /// Its score now.
    pub score: f64,
}

/// A sorted set, borrowed to be read.
#[derive(Clone, Copy)]
pub enum SortedSetRef<'a> {
    /// Its packed form.
    Packed(&'a [u8]),
    /// Its large form.
    Large(&'a LargeSortedSet),
}

impl<'a> SortedSetRef<'a> {
    /// The sorted set of an entry; an empty one where the entry is of another type.
    #[inline]
    pub fn of(entry: EntryRef<'a>) -> SortedSetRef<'a> {
        match (entry.encoding(), entry.object()) {
            (Encoding::PackedSortedSet, _) => SortedSetRef::Packed(entry.payload()),
            (_, Some(Object::SortedSet(large))) => SortedSetRef::Large(large),
            _ => SortedSetRef::Packed(&[]),
        }
    }

    /// Number of members.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            SortedSetRef::Packed(bytes) => packed::count(bytes),
            SortedSetRef::Large(large) => large.len(),
        }
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(self) -> bool {
        match self {
            SortedSetRef::Packed(bytes) => bytes.is_empty(),
            SortedSetRef::Large(large) => large.is_empty(),
        }
    }

    /// The score of a member.
    #[inline]
    pub fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            SortedSetRef::Packed(bytes) => packed::find(bytes, member).map(|found| found.score),
            SortedSetRef::Large(large) => large.score(member),
        }
    }

    /// Rank (from 0) and score of a member.
    pub fn rank(self, member: &[u8]) -> Option<(usize, f64)> {
        match self {
            SortedSetRef::Packed(bytes) => packed::rank(bytes, member),
            SortedSetRef::Large(large) => large.rank(member),
        }
    }

    /// The ranks of the members within a range of scores.
    pub fn ranks_by_score(self, range: &ScoreRange) -> Range<usize> {
        match self {
            SortedSetRef::Packed(bytes) => packed::ranks_by_score(bytes, range),
            SortedSetRef::Large(large) => large.ranks_by_score(range),
        }
    }

    /// The ranks of the members within a range of members. It means something only where all scores are equal.
    pub fn ranks_by_lex(self, range: &LexRange<'_>) -> Range<usize> {
        match self {
            SortedSetRef::Packed(bytes) => packed::ranks_by_lex(bytes, range),
            SortedSetRef::Large(large) => large.ranks_by_lex(range),
        }
    }

    /// The members of a range of ranks with their scores, from either end. Ranks past the last member are left out.
    #[inline]
    pub fn members(self, ranks: Range<usize>) -> Members<'a> {
        match self {
            SortedSetRef::Packed(bytes) => Members::Packed(Pairs::within(bytes, ranks)),
            SortedSetRef::Large(large) => Members::Large(large.members(ranks)),
        }
    }

    /// All members with their scores, in order.
    #[inline]
    pub fn all(self) -> Members<'a> {
        match self {
            SortedSetRef::Packed(bytes) => Members::Packed(Pairs::new(bytes)),
            SortedSetRef::Large(large) => Members::Large(large.members(0..large.len())),
        }
    }
}

/// Members with their scores, in order.
pub enum Members<'a> {
    /// Of the packed form.
    Packed(Pairs<'a>),
    /// Of the large form.
    Large(LargeMembers<'a>),
}

impl<'a> Iterator for Members<'a> {
    type Item = (Element<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Members::Packed(pairs) => pairs.next(),
            Members::Large(members) => members.next(),
        }
    }
}

impl DoubleEndedIterator for Members<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Members::Packed(pairs) => pairs.next_back(),
            Members::Large(members) => members.next_back(),
        }
    }
}

/// An empty sorted set in the form for `members` members of up to `longest` bytes.
pub fn create(header: Header<'_>, members: usize, longest: usize, limits: Limits) -> Entry {
    if members <= limits.members && longest <= limits.member_bytes {
        Entry::new(header, Encoding::PackedSortedSet, &[])
    } else {
        Entry::with_object(header, Box::new(Object::SortedSet(LargeSortedSet::default())))
    }
}

/// Makes a packed sorted set large at once when so many members are coming that it would probably become so anyway.
pub fn prepare_for(entry: &mut Entry, members: usize, limits: Limits) {
    if members > limits.members && entry.view().encoding() == Encoding::PackedSortedSet {
        let large = LargeSortedSet::from_pairs(Pairs::new(entry.view().payload()));
        entry.set_object(Box::new(Object::SortedSet(large)));
    }
}

/// A sorted set of one member.
pub fn create_with(header: Header<'_>, member: &[u8], score: f64, limits: Limits) -> Entry {
    if limits.members > 0 && member.len() <= limits.member_bytes.min(PACKED_BYTES_MAX) {
        let mut pair = Vec::with_capacity(member.len() + 24);
        packed::encode_pair(member, score, &mut pair);
        return Entry::new(header, Encoding::PackedSortedSet, &[&pair]);
    }
    let mut large = LargeSortedSet::default();
    large.set(member, score);
    Entry::with_object(header, Box::new(Object::SortedSet(large)))
}

/// A sorted set of the members that an iterator from `members` gives in order, each once.
pub fn create_from<'m, I: Iterator<Item = (Element<'m>, f64)>>(
    header: Header<'_>,
    members: impl Fn() -> I,
    limits: Limits,
) -> Entry {
    let mut bytes = Vec::new();
    let mut scratch = IntBuffer::new();
    for (index, (member, score)) in members().enumerate() {
        let is_large = index >= limits.members || member.len() > limits.member_bytes;
        if is_large || bytes.len() + member.len() > PACKED_BYTES_MAX {
            let mut large = LargeSortedSet::default();
            for (member, score) in members() {
                large.set(member.as_bytes(&mut scratch), score);
            }
            return Entry::with_object(header, Box::new(Object::SortedSet(large)));
        }
        packed::encode_pair(member.as_bytes(&mut scratch), score, &mut bytes);
    }
    Entry::new(header, Encoding::PackedSortedSet, &[&bytes])
}

/// A sorted set that was gathered in its large form, packed where the limits allow it.
pub fn create_from_large(header: Header<'_>, large: LargeSortedSet, limits: Limits) -> Entry {
    let members = || large.members(0..large.len());
    if large.len() <= limits.members && members().all(|(member, _)| member.len() <= limits.member_bytes) {
        return create_from(header, members, limits);
    }
    Entry::with_object(header, Box::new(Object::SortedSet(large)))
}

/// Sets the score of a member to what `decide` makes of the one it has, if it is there.
///
/// `None` from `decide` refuses: nothing changes and `None` is returned. An error from it changes nothing either.
/// Scores must not be NaN.
#[inline]
pub fn update<E>(
    entry: &mut Entry,
    limits: Limits,
    member: &[u8],
    decide: impl FnOnce(Option<f64>) -> Result<Option<f64>, E>,
) -> Result<Option<Updated>, E> {
    if let Some(large) = large_mut(entry) {
        return large.update(member, decide);
    }
    let bytes = entry.view().payload();
    let Some(found) = packed::find(bytes, member) else {
        let Some(score) = decide(None)? else { return Ok(None) };
        if member.len() > limits.member_bytes
            || bytes.len() + member.len() > PACKED_BYTES_MAX
            || packed::exceeds(bytes, 1, limits.members)
        {
            let mut large = LargeSortedSet::from_pairs(Pairs::new(bytes));
            large.set(member, score);
            entry.set_object(Box::new(Object::SortedSet(large)));
        } else {
            packed::insert(entry, member, score);
        }
        return Ok(Some(Updated { effect: Effect::Added, score }));
    };
    let Some(score) = decide(Some(found.score))? else { return Ok(None) };
    if score == found.score {
        return Ok(Some(Updated { effect: Effect::None, score: found.score }));
    }
    packed::set_score(entry, &found, member, score);
    Ok(Some(Updated { effect: Effect::Changed, score }))
}

/// Removes a member; whether it was there.
#[inline]
pub fn remove(entry: &mut Entry, member: &[u8]) -> bool {
    match large_mut(entry) {
        Some(large) => large.remove(member),
        None => packed::remove(entry, member),
    }
}

/// Removes the members of a range of ranks.
pub fn remove_ranks(entry: &mut Entry, ranks: Range<usize>) {
    match large_mut(entry) {
        Some(large) => large.remove_ranks(ranks),
        None => packed::remove_ranks(entry, ranks),
    }
}

#[inline]
fn large_mut(entry: &mut Entry) -> Option<&mut LargeSortedSet> {
    match entry.object_mut() {
        Some(Object::SortedSet(large)) => Some(large),
        _ => None,
    }
}
