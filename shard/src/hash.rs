//! Hash values: packed inside the entry while they are small, a table of fields from then on.
//!
//! A packed hash is a packed sequence of field, value, field, value, … in the order in which the fields came. Their
//! number is not stored: the sequence tells it, and its length alone tells most often that there is room for one more.

use std::cell::Cell;
use std::ops::Range;

use crate::entry::{Encoding, Entry, EntryRef, Header};
use crate::object::Object;
use crate::packed::{self, Element, Elements};
use crate::settings::Settings;
use crate::table::{Position, SCAN_BITS};

mod field;
mod large;

pub use field::FieldRef;
pub use large::LargeHash;

/// A packed hash never grows past this many bytes, whatever the settings.
const PACKED_BYTES_MAX: usize = 1 << 30;

/// The fewest bytes of a packed field with its value.
const PAIR_BYTES_MIN: usize = 4;

/// The scratch buffer is kept for the next call up to this many bytes.
const SCRATCH_KEPT_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Lends `work` an empty buffer that need not be allocated each time.
#[inline]
fn with_scratch<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut buffer = SCRATCH.take();
    buffer.clear();
    let result = work(&mut buffer);
    if buffer.capacity() <= SCRATCH_KEPT_BYTES {
        SCRATCH.set(buffer);
    }
    result
}

/// Up to where a hash stays packed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    fields: usize,
    part_bytes: usize,
}

impl Limits {
    /// The limits of the settings.
    #[inline]
    pub fn of(settings: &Settings) -> Limits {
        Limits { fields: settings.hash_max_listpack_entries, part_bytes: settings.hash_max_listpack_value }
    }

    #[inline]
    fn admits(self, part: &[u8]) -> bool {
        part.len() <= self.part_bytes && part.len() < PACKED_BYTES_MAX
    }

    /// Whether a packed hash may take one more field of `more_bytes` bytes.
    #[inline]
    fn has_room(self, packed: &[u8], more_bytes: usize) -> bool {
        packed.len() + more_bytes <= PACKED_BYTES_MAX
            && (packed.len() / PAIR_BYTES_MIN < self.fields || count_packed(packed) < self.fields)
    }
}

fn count_packed(bytes: &[u8]) -> usize {
    Elements::new(bytes).count() / 2
}

/// A hash to be read.
#[derive(Clone, Copy)]
pub enum Hash<'a> {
    /// Packed fields and values.
    Packed(&'a [u8]),
    /// A table of fields.
    Large(&'a LargeHash),
}

impl<'a> Hash<'a> {
    /// The hash that an entry holds; the caller looked it up as one.
    #[inline]
    pub fn of(entry: EntryRef<'a>) -> Hash<'a> {
        match entry.object() {
            None => Hash::Packed(entry.payload()),
            Some(Object::Hash(large)) => Hash::Large(large),
            Some(_) => unreachable!("looked up as a hash"),
        }
    }

    /// Number of fields; walks a packed hash.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            Hash::Packed(bytes) => count_packed(bytes),
            Hash::Large(large) => large.len(),
        }
    }

    /// Whether there is no field.
    #[inline]
    pub fn is_empty(self) -> bool {
        match self {
            Hash::Packed(bytes) => bytes.is_empty(),
            Hash::Large(large) => large.is_empty(),
        }
    }

    /// The value of a field.
    #[inline]
    pub fn get(self, field: &[u8]) -> Option<Element<'a>> {
        match self {
            Hash::Packed(bytes) => {
                let name = packed::find(bytes, field, 1)?;
                packed::next_after(bytes, name.end).map(|(_, value)| value)
            }
            Hash::Large(large) => large.get(field).map(Element::Bytes),
        }
    }

    /// Visits every field with its value.
    pub fn for_each(self, mut visit: impl FnMut(Element<'a>, Element<'a>)) {
        match self {
            Hash::Packed(bytes) => {
                let mut elements = Elements::new(bytes).map(|(_, element)| element);
                while let (Some(field), Some(value)) = (elements.next(), elements.next()) {
                    visit(field, value);
                }
            }
            Hash::Large(large) => {
                for field in large.iter() {
                    let (name, value) = field.parts();
                    visit(Element::Bytes(name), Element::Bytes(value));
                }
            }
        }
    }

    /// A field chosen with equal chance for each, with its value; `random(n)` gives a number below `n`.
    pub fn random(self, mut random: impl FnMut(usize) -> usize) -> Option<(Element<'a>, Element<'a>)> {
        match self {
            Hash::Packed([]) => None,
            Hash::Packed(bytes) => {
                let fields = count_packed(bytes);
                let (name, field) = packed::get(bytes, random(fields) * 2, fields * 2)?;
                packed::next_after(bytes, name.end).map(|(_, value)| (field, value))
            }
            Hash::Large(large) => {
                let (name, value) = large.random(random)?.parts();
                Some((Element::Bytes(name), Element::Bytes(value)))
            }
        }
    }

    /// Visits at least `count` fields from cursor `from` on, where there are as many, and all of a packed hash. Returns
    /// the cursor to go on from, 0 at the end. A field that is there during the whole scan is visited.
    pub fn scan(self, from: u64, count: usize, mut visit: impl FnMut(Element<'a>, Element<'a>)) -> u64 {
        match self {
            Hash::Packed(_) => {
                self.for_each(visit);
                0
            }
            // No scan gives such a cursor.
            Hash::Large(_) if from >> SCAN_BITS != 0 => 0,
            Hash::Large(large) => {
                let next = large.scan(from, count, |field| {
                    let (name, value) = field.parts();
                    visit(Element::Bytes(name), Element::Bytes(value));
                });
                next.unwrap_or(0)
            }
        }
    }
}

/// Where a field of an entry is, or would be; valid until the entry changes.
#[derive(Clone, Debug)]
pub struct Place(At);

#[derive(Clone, Debug)]
enum At {
    Missing,
    Packed { name: Range<usize>, value: Range<usize> },
    Large(Position),
}

impl Place {
    /// Finds a field.
    pub fn find(entry: &Entry, field: &[u8]) -> Place {
        Place(match Hash::of(entry.view()) {
            Hash::Packed(bytes) => packed::find(bytes, field, 1)
                .and_then(|name| packed::next_after(bytes, name.end).map(|(value, _)| At::Packed { name, value }))
                .unwrap_or(At::Missing),
            Hash::Large(large) => large.find(field).map_or(At::Missing, At::Large),
        })
    }

    /// Whether the field is there.
    #[inline]
    pub fn is_present(&self) -> bool {
        !matches!(self.0, At::Missing)
    }

    /// The field's value.
    pub fn value<'a>(&self, entry: &'a Entry) -> Option<Element<'a>> {
        match (&self.0, Hash::of(entry.view())) {
            (At::Packed { name, .. }, Hash::Packed(bytes)) => {
                packed::next_after(bytes, name.end).map(|(_, value)| value)
            }
            (At::Large(position), Hash::Large(large)) => Some(Element::Bytes(large.value_at(*position))),
            _ => None,
        }
    }

    /// Sets `field`, which was looked for here.
    pub fn set(self, entry: &mut Entry, field: &[u8], value: &[u8], limits: Limits) {
        let more_bytes = packed::encoded_len(value);
        match self.0 {
            At::Packed { value: range, .. } if limits.admits(value) => {
                let bytes = entry.view().payload().len();
                if bytes + more_bytes <= PACKED_BYTES_MAX {
                    return with_scratch(|encoded| {
                        packed::encode(value, encoded);
                        entry.splice(range, encoded);
                    });
                }
            }
            At::Missing if limits.admits(field) && limits.admits(value) => {
                if let Hash::Packed(bytes) = Hash::of(entry.view())
                    && limits.has_room(bytes, more_bytes + packed::encoded_len(field))
                {
                    let end = bytes.len();
                    return with_scratch(|encoded| {
                        packed::encode(field, encoded);
                        packed::encode(value, encoded);
                        entry.splice(end..end, encoded);
                    });
                }
            }
            At::Large(position) => return large_mut(entry).set_at(position, value),
            _ => {}
        }
        large_mut(entry).set(field, value);
    }

    /// Removes the field; whether it was there.
    pub fn remove(self, entry: &mut Entry) -> bool {
        match self.0 {
            At::Missing => return false,
            At::Packed { name, value } => entry.splice(name.start..value.end, &[]),
            At::Large(position) => large_mut(entry).remove_at(position),
        }
        true
    }
}

/// The table of an entry's fields; a packed hash becomes one.
fn large_mut(entry: &mut Entry) -> &mut LargeHash {
    if let Hash::Packed(bytes) = Hash::of(entry.view()) {
        let large = LargeHash::from_packed(bytes);
        entry.set_object(Box::new(Object::Hash(large)));
    }
    match entry.object_mut() {
        Some(Object::Hash(large)) => large,
        _ => unreachable!("made a table just now, if it was none"),
    }
}

/// Makes a hash of `pairs`, of which the last for each field counts. Returns it with its number of fields.
pub fn create<'p>(header: Header<'_>, pairs: impl Pairs<'p>, limits: Limits) -> (Entry, usize) {
    if !may_pack(pairs.clone(), limits) {
        let mut large = LargeHash::default();
        let fields = pairs.filter(|(field, value)| large.set(field, value)).count();
        return (Entry::with_object(header, Box::new(Object::Hash(large))), fields);
    }
    with_scratch(|packed| {
        let fields = set_packed(packed, pairs);
        let entry = if packed.len() > PACKED_BYTES_MAX {
            Entry::with_object(header, Box::new(Object::Hash(LargeHash::from_packed(packed))))
        } else {
            Entry::new(header, Encoding::PackedHash, &[packed])
        };
        (entry, fields)
    })
}

/// Sets the fields of a hash, of which the last for each field counts. Returns how many were new.
pub fn set_all<'p>(entry: &mut Entry, mut pairs: impl Pairs<'p>, limits: Limits) -> usize {
    if pairs.len() == 1
        && let Some((field, value)) = pairs.next()
    {
        let place = Place::find(entry, field);
        let is_new = !place.is_present();
        place.set(entry, field, value, limits);
        return usize::from(is_new);
    }
    if matches!(Hash::of(entry.view()), Hash::Large(_)) || !may_pack(pairs.clone(), limits) {
        let large = large_mut(entry);
        return pairs.filter(|(field, value)| large.set(field, value)).count();
    }
    with_scratch(|scratch| {
        scratch.extend_from_slice(entry.view().payload());
        let added = set_packed(scratch, pairs);
        let fits = scratch.len() / PAIR_BYTES_MIN <= limits.fields || count_packed(scratch) <= limits.fields;
        // Only what grew can have passed a limit: a hash that was packed under other limits stays so.
        if (added > 0 && !fits) || scratch.len() > PACKED_BYTES_MAX {
            entry.set_object(Box::new(Object::Hash(LargeHash::from_packed(scratch))));
        } else {
            entry.set_payload(Encoding::PackedHash, &[scratch]);
        }
        added
    })
}

/// Fields and values as a command gives them.
pub trait Pairs<'p>: ExactSizeIterator<Item = (&'p [u8], &'p [u8])> + Clone {}

impl<'p, I: ExactSizeIterator<Item = (&'p [u8], &'p [u8])> + Clone> Pairs<'p> for I {}

/// Whether a hash of no more than these may be packed.
fn may_pack<'p>(mut pairs: impl Pairs<'p>, limits: Limits) -> bool {
    pairs.len() <= limits.fields && pairs.all(|(field, value)| limits.admits(field) && limits.admits(value))
}

/// Sets fields of a packed sequence; how many were new.
fn set_packed<'p>(packed: &mut Vec<u8>, pairs: impl Pairs<'p>) -> usize {
    let mut added = 0;
    for (field, value) in pairs {
        let found = packed::find(packed, field, 1).and_then(|name| packed::next_after(packed, name.end));
        match found.map(|(range, _)| range) {
            Some(range) => packed::replace(packed, range, value),
            None => {
                packed::encode(field, packed);
                packed::encode(value, packed);
                added += 1;
            }
        }
    }
    added
}
