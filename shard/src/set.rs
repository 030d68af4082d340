//! Set values, in the three forms that Redis knows: integers in ascending order, packed members, and a table.
//!
//! A set changes its form only towards the larger one, when one of the [`Limits`] is passed. Everything outside of this
//! module works on [`SetRef`] and on the functions here and does not look into the bytes of an entry.

use crate::entry::{Encoding, Entry, EntryRef, Header};
use crate::number::{IntBuffer, decimal_len};
use crate::object::Object;
use crate::packed::{self, Element, Elements};
use crate::settings::Settings;

mod integers;
mod large;
mod member;

pub use integers::Integers;
pub use large::LargeSet;

/// A packed set grows no longer than this many bytes, whatever the settings allow.
const PACKED_BYTES_MAX: usize = 1 << 30;

/// A set of integers grows no longer than this many members, whatever the settings allow.
const INTEGERS_MAX: usize = 1 << 30;

/// When a set changes its form.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    integers: usize,
    packed_members: usize,
    packed_member_bytes: usize,
}

impl Limits {
    /// The limits that `settings` give.
    #[inline]
    pub fn of(settings: &Settings) -> Limits {
        Limits {
            integers: settings.set_max_intset_entries.min(INTEGERS_MAX),
            packed_members: settings.set_max_listpack_entries,
            packed_member_bytes: settings.set_max_listpack_value,
        }
    }
}

/// A view of a set.
#[derive(Clone, Copy)]
pub enum SetRef<'a> {
    /// Integers in ascending order.
    Integers(Integers<'a>),
    /// Packed members, in the order they were added.
    Packed(&'a [u8]),
    /// A table of members.
    Large(&'a LargeSet),
}

impl<'a> SetRef<'a> {
    /// The set in `entry`; `None` where the entry holds another type.
    #[inline]
    pub fn new(entry: EntryRef<'a>) -> Option<SetRef<'a>> {
        match entry.encoding() {
            Encoding::IntegerSet => Some(SetRef::Integers(Integers::new(entry.payload()))),
            Encoding::PackedSet => Some(SetRef::Packed(entry.payload())),
            Encoding::Object => match entry.object() {
                Some(Object::Set(set)) => Some(SetRef::Large(set)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Number of members. Walks a packed set.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            SetRef::Integers(integers) => integers.len(),
            SetRef::Packed(bytes) => count_packed(bytes),
            SetRef::Large(set) => set.len(),
        }
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(self) -> bool {
        match self {
            SetRef::Integers(integers) => integers.is_empty(),
            SetRef::Packed(bytes) => bytes.is_empty(),
            SetRef::Large(set) => set.is_empty(),
        }
    }

    /// Whether `member` is in the set.
    #[inline]
    pub fn contains(self, member: Element<'_>) -> bool {
        match self {
            SetRef::Integers(integers) => member.to_i64().is_some_and(|value| integers.search(value).is_ok()),
            SetRef::Packed(bytes) => packed::find(bytes, member.as_bytes(&mut IntBuffer::new()), 0).is_some(),
            SetRef::Large(set) => set.contains(member.as_bytes(&mut IntBuffer::new())),
        }
    }

    /// Every member.
    pub fn iter(self) -> impl Iterator<Item = Element<'a>> {
        let (integers, packed, large) = match self {
            SetRef::Integers(integers) => (Some(integers), None, None),
            SetRef::Packed(bytes) => (None, Some(bytes), None),
            SetRef::Large(set) => (None, None, Some(set)),
        };
        let integers = integers.into_iter().flat_map(|integers| integers.iter().map(Element::Int));
        let packed = packed.into_iter().flat_map(|bytes| Elements::new(bytes).map(|(_, member)| member));
        let large = large.into_iter().flat_map(|set| set.iter().map(Element::Bytes));
        integers.chain(packed).chain(large)
    }

    /// A member chosen with equal chance for each; `random(n)` gives a number below `n`.
    pub fn random(self, mut random: impl FnMut(usize) -> usize) -> Option<Element<'a>> {
        if self.is_empty() {
            return None;
        }
        match self {
            SetRef::Integers(integers) => Some(Element::Int(integers.at(random(integers.len())))),
            SetRef::Packed(bytes) => {
                let count = count_packed(bytes);
                packed::get(bytes, random(count), count).map(|(_, member)| member)
            }
            SetRef::Large(set) => set.random(random).map(Element::Bytes),
        }
    }

    /// `count` different members, each choice of them with equal chance, in the order of [`SetRef::iter`]; all members
    /// where there are no more.
    pub fn sample(self, count: usize, mut random: impl FnMut(usize) -> usize) -> impl Iterator<Item = Element<'a>> {
        let mut left = self.len();
        let mut wanted = count.min(left);
        self.iter().filter(move |_| {
            let chosen = random(left) < wanted;
            left -= 1;
            wanted -= usize::from(chosen);
            chosen
        })
    }
}

#[inline]
fn count_packed(bytes: &[u8]) -> usize {
    Elements::new(bytes).count()
}

/// An empty set that takes the form which suits `first`, its first member, and `expected` members. It must get a member
/// before it goes into the keyspace.
#[inline]
pub fn empty_for(header: Header<'_>, first: &[u8], expected: usize, limits: Limits) -> Entry {
    if Element::Bytes(first).to_i64().is_some() && expected <= limits.integers {
        empty_integers(header)
    } else if expected <= limits.packed_members {
        empty_packed(header)
    } else {
        Entry::with_object(header, Box::new(Object::Set(LargeSet::new())))
    }
}

/// An empty set of integers, which becomes what its members require.
pub fn empty_integers(header: Header<'_>) -> Entry {
    Entry::new(header, Encoding::IntegerSet, &[integers::EMPTY])
}

/// An empty packed set.
pub fn empty_packed(header: Header<'_>) -> Entry {
    Entry::new(header, Encoding::PackedSet, &[])
}

/// Makes a small set large at once when `expected` more members would make it so anyway.
pub fn prepare_for(entry: &mut Entry, expected: usize, limits: Limits) {
    let too_small = match entry.view().encoding() {
        Encoding::IntegerSet => expected > limits.integers,
        Encoding::PackedSet => expected > limits.packed_members,
        _ => false,
    };
    if too_small {
        make_large(entry);
    }
}

/// Adds `member` to the set in `entry`; whether it is new. The set changes its form where `limits` require it.
pub fn add(entry: &mut Entry, member: Element<'_>, limits: Limits) -> bool {
    match entry.view().encoding() {
        Encoding::IntegerSet => add_to_integers(entry, member, limits),
        Encoding::PackedSet => add_to_packed(entry, member, limits),
        _ => large_mut(entry).is_some_and(|set| set.insert(member.as_bytes(&mut IntBuffer::new()))),
    }
}

fn add_to_integers(entry: &mut Entry, member: Element<'_>, limits: Limits) -> bool {
    if let Some(value) = member.to_i64() {
        let added = integers::insert(entry, value);
        if added && Integers::new(entry.view().payload()).len() > limits.integers {
            make_large(entry);
        }
        return added;
    }
    let integers = Integers::new(entry.view().payload());
    // The first and the last are the longest in decimal, or as long as any.
    let longest = match integers.len() {
        0 => 0,
        len => decimal_len(integers.at(0)).max(decimal_len(integers.at(len - 1))),
    };
    if integers.len() < limits.packed_members && member.len().max(longest) <= limits.packed_member_bytes {
        let mut members = Vec::new();
        for value in integers.iter() {
            packed::encode_int(value, &mut members);
        }
        packed::encode(member.as_bytes(&mut IntBuffer::new()), &mut members);
        entry.set_payload(Encoding::PackedSet, &[&members]);
        true
    } else {
        make_large(entry);
        add(entry, member, limits)
    }
}

fn add_to_packed(entry: &mut Entry, member: Element<'_>, limits: Limits) -> bool {
    let mut scratch = IntBuffer::new();
    let bytes = member.as_bytes(&mut scratch);
    let members = entry.view().payload();
    if packed::find(members, bytes, 0).is_some() {
        return false;
    }
    let end = members.len();
    if bytes.len() > limits.packed_member_bytes
        || end + bytes.len() > PACKED_BYTES_MAX
        || count_packed(members) >= limits.packed_members
    {
        make_large(entry);
        return add(entry, member, limits);
    }
    let mut encoded = Vec::with_capacity(packed::encoded_len(bytes));
    packed::encode(bytes, &mut encoded);
    entry.splice(end..end, &encoded);
    true
}

/// Removes `member` from the set in `entry`; whether it was there. The set may be empty afterwards.
pub fn remove(entry: &mut Entry, member: Element<'_>) -> bool {
    match entry.view().encoding() {
        Encoding::IntegerSet => {
            let Some(value) = member.to_i64() else { return false };
            let Ok(index) = Integers::new(entry.view().payload()).search(value) else { return false };
            integers::remove_at(entry, index);
            true
        }
        Encoding::PackedSet => {
            let bytes = entry.view().payload();
            let Some(range) = packed::find(bytes, member.as_bytes(&mut IntBuffer::new()), 0) else { return false };
            entry.splice(range, &[]);
            true
        }
        _ => large_mut(entry).is_some_and(|set| set.remove(member.as_bytes(&mut IntBuffer::new()))),
    }
}

/// Takes out a member chosen with equal chance for each and shows it to `visit`; `random(n)` gives a number below `n`.
pub fn pop_random(entry: &mut Entry, mut random: impl FnMut(usize) -> usize, visit: impl FnOnce(Element<'_>)) {
    match SetRef::new(entry.view()) {
        Some(SetRef::Integers(integers)) if !integers.is_empty() => {
            let index = random(integers.len());
            visit(Element::Int(integers.at(index)));
            integers::remove_at(entry, index);
        }
        Some(SetRef::Packed(bytes)) if !bytes.is_empty() => {
            let count = count_packed(bytes);
            let Some((range, member)) = packed::get(bytes, random(count), count) else { return };
            visit(member);
            entry.splice(range, &[]);
        }
        Some(SetRef::Large(_)) => {
            if let Some(set) = large_mut(entry) {
                set.pop_random(random, |member| visit(Element::Bytes(member)));
            }
        }
        _ => {}
    }
}

/// Takes `count` members out of a small set, each choice of them with equal chance, and shows them to `visit`. False
/// where the set is large and was left as it is.
pub fn pop_sample_small(
    entry: &mut Entry,
    count: usize,
    mut random: impl FnMut(usize) -> usize,
    mut visit: impl FnMut(Element<'_>),
) -> bool {
    let Some(set) = SetRef::new(entry.view()) else { return false };
    let mut kept = Vec::new();
    let (mut left, mut wanted) = (set.len(), count);
    let mut choose = || {
        let chosen = random(left) < wanted;
        left -= 1;
        wanted -= usize::from(chosen);
        chosen
    };
    match set {
        SetRef::Integers(integers) => {
            let width = integers.width_bytes();
            kept.push(width as u8);
            for value in integers.iter() {
                if choose() {
                    visit(Element::Int(value));
                } else {
                    kept.extend_from_slice(&value.to_le_bytes()[..width]);
                }
            }
            entry.set_payload(Encoding::IntegerSet, &[&kept]);
        }
        SetRef::Packed(bytes) => {
            for (position, member) in Elements::new(bytes) {
                if choose() {
                    visit(member);
                } else {
                    kept.extend_from_slice(&bytes[position.range()]);
                }
            }
            entry.set_payload(Encoding::PackedSet, &[&kept]);
        }
        SetRef::Large(_) => return false,
    }
    true
}

/// Makes a set of integers of one that holds nothing else, where `limits` allow it.
pub fn make_integers(entry: &mut Entry, limits: Limits) {
    let Some(set) = SetRef::new(entry.view()) else { return };
    if matches!(set, SetRef::Integers(_)) || set.len() > limits.integers {
        return;
    }
    let mut replaced = empty_integers(entry.header());
    for member in set.iter() {
        let Some(value) = member.to_i64() else { return };
        integers::insert(&mut replaced, value);
    }
    *entry = replaced;
}

fn large_mut(entry: &mut Entry) -> Option<&mut LargeSet> {
    match entry.object_mut() {
        Some(Object::Set(set)) => Some(set),
        _ => None,
    }
}

fn make_large(entry: &mut Entry) {
    let Some(set) = SetRef::new(entry.view()) else { return };
    let mut large = LargeSet::new();
    for member in set.iter() {
        large.insert(member.as_bytes(&mut IntBuffer::new()));
    }
    entry.set_object(Box::new(Object::Set(large)));
}
