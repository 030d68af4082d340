//! Hash values: packed inside the entry while they are small, a table of fields from then on.
//!
//! A packed hash is a packed sequence of field, value, field, value, … in the order in which the fields came. Their
//! number is not stored: the sequence tells it, and its length alone tells most often that there is room for one more.
//! Once a field was given a deadline the sequence has deadlines too (see `expiring.rs`), and stays so.
//!
//! A field that has expired is still there until somebody removes it: a command that names it, or the sweep. Nothing
//! that is read through a [`Hash`] shows it, but its number of fields.

use std::cell::Cell;

use crate::entry::{Encoding, Entry, EntryRef, Header};
use crate::object::Object;
use crate::packed::{self, Element, Elements};
use crate::settings::Settings;
use crate::table::SCAN_BITS;

mod deadlines;
mod expiring;
mod field;
mod large;
mod place;

pub use field::FieldRef;
pub use large::LargeHash;
pub use place::Place;

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
    fn has_room(self, form: Form<'_>, more_bytes: usize) -> bool {
        let (len, most_fields) = match form {
            Form::Packed(bytes) => (bytes.len(), bytes.len() / PAIR_BYTES_MIN),
            Form::Expiring(payload) => (payload.len(), expiring::elements_len(payload) / expiring::FIELD_BYTES_MIN),
            Form::Large(_) => return false,
        };
        len + more_bytes <= PACKED_BYTES_MAX && (most_fields < self.fields || form.len() < self.fields)
    }
}

/// What becomes of a field's deadline when the field is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// It stays as it is; a new field has none.
    Unchanged,
    /// It goes.
    Unlimited,
    /// It is this one, in ms since the epoch.
    Until(i64),
}

impl Lifetime {
    /// The deadline to be set, unless it stays.
    #[inline]
    fn change(self) -> Option<Option<i64>> {
        match self {
            Lifetime::Unchanged => None,
            Lifetime::Unlimited => Some(None),
            Lifetime::Until(deadline_ms) => Some(Some(deadline_ms)),
        }
    }
}

fn count_packed(bytes: &[u8]) -> usize {
    Elements::new(bytes).count() / 2
}

/// How a hash is stored.
#[derive(Clone, Copy)]
enum Form<'a> {
    /// Packed fields and values.
    Packed(&'a [u8]),
    /// Packed fields, values and deadlines.
    Expiring(&'a [u8]),
    /// A table of fields.
    Large(&'a LargeHash),
}

impl<'a> Form<'a> {
    /// The form of the hash that an entry holds; the caller looked it up as one.
    #[inline]
    fn of(entry: EntryRef<'a>) -> Form<'a> {
        match entry.object() {
            Some(Object::Hash(large)) => Form::Large(large),
            Some(_) => unreachable!("looked up as a hash"),
            None if entry.encoding() == Encoding::ExpiringHash => Form::Expiring(entry.payload()),
            None => Form::Packed(entry.payload()),
        }
    }

    /// Number of fields that are there; walks a packed hash.
    #[inline]
    fn len(self) -> usize {
        match self {
            Form::Packed(bytes) => count_packed(bytes),
            Form::Expiring(payload) => expiring::count(payload),
            Form::Large(large) => large.len(),
        }
    }

    #[inline]
    fn is_empty(self) -> bool {
        match self {
            Form::Packed(bytes) => bytes.is_empty(),
            Form::Expiring(payload) => expiring::elements_len(payload) == 0,
            Form::Large(large) => large.is_empty(),
        }
    }

    /// Visits every field that is there with its value and its deadline.
    fn for_each(self, mut visit: impl FnMut(Element<'a>, Element<'a>, Option<i64>)) {
        match self {
            Form::Packed(bytes) => {
                let mut elements = Elements::new(bytes).map(|(_, element)| element);
                while let (Some(field), Some(value)) = (elements.next(), elements.next()) {
                    visit(field, value, None);
                }
            }
            Form::Expiring(payload) => {
                expiring::fields(payload).for_each(|field| visit(field.name, field.value, field.deadline_ms));
            }
            Form::Large(large) => {
                for field in large.iter() {
                    let (name, value) = field.parts();
                    visit(Element::Bytes(name), Element::Bytes(value), field.deadline_ms());
                }
            }
        }
    }
}

/// The earliest deadline of a field of an entry, in ms since the epoch; `None` for anything but a hash with one.
#[inline]
pub fn next_deadline_ms(entry: EntryRef<'_>) -> Option<i64> {
    match entry.encoding() {
        Encoding::ExpiringHash | Encoding::Object => next_deadline_of_fields_ms(entry),
        _ => None,
    }
}

/// Apart, so that what is asked after each change of any entry stays small.
#[inline(never)]
fn next_deadline_of_fields_ms(entry: EntryRef<'_>) -> Option<i64> {
    match entry.object() {
        Some(Object::Hash(large)) => large.next_deadline_ms(),
        Some(_) => None,
        None => expiring::earliest_ms(entry.payload()),
    }
}

/// Whether the hash of an entry has no field.
#[inline]
pub fn is_empty(entry: EntryRef<'_>) -> bool {
    Form::of(entry).is_empty()
}

/// Removes up to `budget` fields that have expired at `now_ms`, the earliest first; how many went.
pub fn remove_expired(entry: &mut Entry, now_ms: i64, budget: usize) -> usize {
    match Form::of(entry.view()) {
        Form::Packed(_) => 0,
        Form::Expiring(_) => with_scratch(|left| {
            let removed = expiring::without_expired(entry.view().payload(), now_ms, budget, left);
            if removed > 0 {
                entry.set_payload(Encoding::ExpiringHash, &[left]);
            }
            removed
        }),
        Form::Large(_) => large_mut(entry).remove_expired(now_ms, budget),
    }
}

/// A hash to be read, at a certain time.
#[derive(Clone, Copy)]
pub struct Hash<'a> {
    form: Form<'a>,
    now_ms: i64,
}

impl<'a> Hash<'a> {
    /// A hash without fields.
    pub const EMPTY: Hash<'static> = Hash { form: Form::Packed(&[]), now_ms: 0 };

    /// The hash that an entry holds, without the fields that have expired at `now_ms`; the caller looked it up as one.
    #[inline]
    pub fn of(entry: EntryRef<'a>, now_ms: i64) -> Hash<'a> {
        Hash { form: Form::of(entry), now_ms }
    }

    #[inline]
    fn is_live(self, deadline_ms: Option<i64>) -> bool {
        deadline_ms.is_none_or(|deadline_ms| deadline_ms > self.now_ms)
    }

    /// Number of fields, those that have expired but are still there included; walks a packed hash.
    #[inline]
    pub fn len(self) -> usize {
        self.form.len()
    }

    /// Whether no field is there, not even one that has expired.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.form.is_empty()
    }

    /// Whether it is packed.
    #[inline]
    pub fn is_packed(self) -> bool {
        !matches!(self.form, Form::Large(_))
    }

    /// Number of fields that [`Hash::for_each`] visits; walks a hash that is packed or has deadlines.
    pub fn live_len(self) -> usize {
        match self.form {
            Form::Packed(bytes) => count_packed(bytes),
            Form::Large(large) if large.with_deadline() == 0 => large.len(),
            _ => {
                let mut live = 0;
                self.for_each(|_, _| live += 1);
                live
            }
        }
    }

    /// The value of a field, and the field's deadline in ms since the epoch.
    #[inline]
    pub fn get_with_deadline(self, field: &[u8]) -> Option<(Element<'a>, Option<i64>)> {
        let (value, deadline_ms) = match self.form {
            Form::Packed(bytes) => {
                let name = packed::find(bytes, field, 1)?;
                (packed::next_after(bytes, name.end)?.1, None)
            }
            Form::Expiring(payload) => {
                let spans = expiring::find(payload, field)?;
                (expiring::value_at(payload, &spans)?, expiring::deadline_at(payload, &spans))
            }
            Form::Large(large) => {
                let field = large.get(field)?;
                (Element::Bytes(field.value()), field.deadline_ms())
            }
        };
        self.is_live(deadline_ms).then_some((value, deadline_ms))
    }

    /// The value of a field.
    #[inline]
    pub fn get(self, field: &[u8]) -> Option<Element<'a>> {
        self.get_with_deadline(field).map(|(value, _)| value)
    }

    /// Visits every field with its value.
    pub fn for_each(self, mut visit: impl FnMut(Element<'a>, Element<'a>)) {
        self.form.for_each(|field, value, deadline_ms| {
            if self.is_live(deadline_ms) {
                visit(field, value);
            }
        });
    }

    /// Visits every field that is there, expired ones included, with its value and its deadline in ms since the epoch:
    /// all that is needed to make the hash again (see [`Place::put`]).
    pub fn for_each_stored(self, visit: impl FnMut(Element<'a>, Element<'a>, Option<i64>)) {
        self.form.for_each(visit);
    }

    /// A field chosen with equal chance for each that is there, expired ones included, with its value; `random(n)`
    /// gives a number below `n`.
    pub fn random(self, mut random: impl FnMut(usize) -> usize) -> Option<(Element<'a>, Element<'a>)> {
        match self.form {
            Form::Packed([]) => None,
            Form::Packed(bytes) => {
                let fields = count_packed(bytes);
                let (name, field) = packed::get(bytes, random(fields) * 2, fields * 2)?;
                packed::next_after(bytes, name.end).map(|(_, value)| (field, value))
            }
            Form::Expiring(payload) => {
                let fields = expiring::count(payload);
                if fields == 0 {
                    return None;
                }
                expiring::fields(payload).nth(random(fields)).map(|field| (field.name, field.value))
            }
            Form::Large(large) => {
                let (name, value) = large.random(random)?.parts();
                Some((Element::Bytes(name), Element::Bytes(value)))
            }
        }
    }

    /// Looks at at least `count` fields from cursor `from` on, where there are as many, and at all of a packed hash,
    /// and visits those that have not expired. Returns the cursor to go on from, 0 at the end. A field that is there during
    /// the whole scan is visited.
    pub fn scan(self, from: u64, count: usize, mut visit: impl FnMut(Element<'a>, Element<'a>)) -> u64 {
        match self.form {
            Form::Packed(_) | Form::Expiring(_) => {
                self.for_each(visit);
                0
            }
            // No scan gives such a cursor.
            Form::Large(_) if from >> SCAN_BITS != 0 => 0,
            Form::Large(large) => {
                let next = large.scan(from, count, |field| {
                    if self.is_live(field.deadline_ms()) {
                        let (name, value) = field.parts();
                        visit(Element::Bytes(name), Element::Bytes(value));
                    }
                });
                next.unwrap_or(0)
            }
        }
    }
}

/// The table of an entry's fields; a packed hash becomes one.
fn large_mut(entry: &mut Entry) -> &mut LargeHash {
    let form = Form::of(entry.view());
    if !matches!(form, Form::Large(_)) {
        let mut large = LargeHash::default();
        form.for_each(|field, value, deadline_ms| large.add_packed(field, value, deadline_ms));
        entry.set_object(Box::new(Object::Hash(large)));
    }
    match entry.object_mut() {
        Some(Object::Hash(large)) => large,
        _ => unreachable!("made a table just now, if it was none"),
    }
}

/// A table of the fields of a packed sequence of fields and values.
fn large_of(packed: &[u8]) -> Box<Object> {
    let mut large = LargeHash::default();
    Form::Packed(packed).for_each(|field, value, _| large.add_packed(field, value, None));
    Box::new(Object::Hash(large))
}

/// Makes a hash of `pairs`, of which the last for each field counts. Returns it with its number of fields.
pub fn create<'p>(header: Header<'_>, pairs: impl Pairs<'p>, limits: Limits) -> (Entry, usize) {
    if !may_pack(pairs.clone(), limits) {
        let mut large = LargeHash::default();
        let fields = pairs.filter(|(field, value)| large.set(field, value, Lifetime::Unlimited)).count();
        return (Entry::with_object(header, Box::new(Object::Hash(large))), fields);
    }
    with_scratch(|packed| {
        let fields = set_packed(packed, pairs);
        let entry = if packed.len() > PACKED_BYTES_MAX {
            Entry::with_object(header, large_of(packed))
        } else {
            Entry::new(header, Encoding::PackedHash, &[packed])
        };
        (entry, fields)
    })
}

/// Sets the fields of a hash, of which the last for each field counts; they have no deadline from then on. Returns how
/// many were new, or had expired at `now_ms`.
pub fn set_all<'p>(entry: &mut Entry, pairs: impl Pairs<'p>, limits: Limits, now_ms: i64) -> usize {
    if pairs.len() == 1 {
        return set_each(entry, pairs, limits, now_ms);
    }
    if !may_pack(pairs.clone(), limits) {
        large_mut(entry);
    }
    if !matches!(Form::of(entry.view()), Form::Packed(_)) {
        return set_each(entry, pairs, limits, now_ms);
    }
    with_scratch(|scratch| {
        scratch.extend_from_slice(entry.view().payload());
        let added = set_packed(scratch, pairs);
        let fits = scratch.len() / PAIR_BYTES_MIN <= limits.fields || count_packed(scratch) <= limits.fields;
        // Only what grew can have passed a limit: a hash that was packed under other limits stays so.
        if (added > 0 && !fits) || scratch.len() > PACKED_BYTES_MAX {
            entry.set_object(large_of(scratch));
        } else {
            entry.set_payload(Encoding::PackedHash, &[scratch]);
        }
        added
    })
}

/// [`set_all`], one field after the other.
#[inline]
fn set_each<'p>(entry: &mut Entry, pairs: impl Pairs<'p>, limits: Limits, now_ms: i64) -> usize {
    let mut added = 0;
    for (field, value) in pairs {
        let place = Place::find(entry, field);
        added += usize::from(!place.is_live(entry, now_ms));
        place.set(entry, field, value, limits);
    }
    added
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
