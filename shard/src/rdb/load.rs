//! From the bytes of a value to an entry of the keyspace, in the form that the settings call for.

use std::borrow::Cow;

use super::LoadError::{self, Damaged, Unsupported};
use super::containers::{Visit, intset_integers, listpack_elements, walk_listpack, walk_ziplist, walk_zipmap};
use super::reader::{Reader, Text};
use crate::commands::string::new_string;
use crate::entry::{Encoding, Entry, Header};
use crate::hash;
use crate::limit::{self, FIXED_BYTES, SLIDING_BYTES, TOKEN_BYTES};
use crate::list::{self, End, ListMut};
use crate::number::{IntBuffer, parse_f64};
use crate::packed::Element;
use crate::set;
use crate::settings::Settings;
use crate::sorted_set;

/// What walks a container.
type Walk = fn(&[u8], &mut Visit<'_>) -> Result<(), LoadError>;

/// Reads a value of type `value_type` and makes an entry of it. `header` gives the entry's key, deadline and access
/// stamp.
///
/// # Errors
/// [`LoadError::Damaged`] for what Redis would not have written, empty collections and repeated members among it; the
/// other errors for what has no place here.
pub fn load(
    reader: &mut Reader<'_>,
    value_type: u8,
    header: Header<'_>,
    settings: &Settings,
) -> Result<Entry, LoadError> {
    match value_type {
        super::TYPE_STRING => load_string(reader, header),
        super::TYPE_LIST | super::TYPE_LIST_ZIPLIST | super::TYPE_LIST_QUICKLIST | super::TYPE_LIST_QUICKLIST_2 => {
            load_list(reader, value_type, header, list::Limit::of(settings))
        }
        super::TYPE_SET | super::TYPE_SET_INTSET | super::TYPE_SET_LISTPACK => {
            load_set(reader, value_type, header, set::Limits::of(settings))
        }
        super::TYPE_SORTED_SET
        | super::TYPE_SORTED_SET_2
        | super::TYPE_SORTED_SET_ZIPLIST
        | super::TYPE_SORTED_SET_LISTPACK => {
            load_sorted_set(reader, value_type, header, sorted_set::Limits::of(settings))
        }
        super::TYPE_HASH
        | super::TYPE_HASH_ZIPMAP
        | super::TYPE_HASH_ZIPLIST
        | super::TYPE_HASH_LISTPACK
        | super::TYPE_HASH_DEADLINES
        | super::TYPE_HASH_LISTPACK_DEADLINES => load_hash(reader, value_type, header, hash::Limits::of(settings)),
        super::TYPE_LIMIT => load_limit(reader, header),
        super::TYPE_STREAM | super::TYPE_STREAM_2 | super::TYPE_STREAM_3 => Err(Unsupported("streams")),
        super::TYPE_MODULE | super::TYPE_MODULE_2 => Err(Unsupported("values of modules")),
        _ => Err(Damaged),
    }
}

fn load_string(reader: &mut Reader<'_>, header: Header<'_>) -> Result<Entry, LoadError> {
    Ok(match reader.text()? {
        Text::Integer(value) => Entry::with_integer(header, value),
        Text::Bytes(bytes) => new_string(header, &bytes),
    })
}

fn load_list(
    reader: &mut Reader<'_>,
    value_type: u8,
    header: Header<'_>,
    limit: list::Limit,
) -> Result<Entry, LoadError> {
    let mut entry = list::new_entry(header, limit, End::Right, [].into_iter());
    let mut push = |element: Element<'_>| {
        let mut scratch = IntBuffer::new();
        ListMut::new(&mut entry, limit).push(End::Right, [element.as_bytes(&mut scratch)].into_iter());
        Ok(())
    };
    match value_type {
        super::TYPE_LIST => {
            for _ in 0..reader.count()? {
                push(reader.text()?.element())?;
            }
        }
        super::TYPE_LIST_ZIPLIST => walk_ziplist(&reader.blob()?, &mut push)?,
        super::TYPE_LIST_QUICKLIST => {
            for _ in 0..reader.count()? {
                walk_ziplist(&reader.blob()?, &mut push)?;
            }
        }
        _ => {
            for _ in 0..reader.count()? {
                match reader.number()? {
                    super::NODE_PLAIN => {
                        let element = reader.text()?;
                        // Only what is long gets a node of its own.
                        if element.element().is_empty() {
                            return Err(Damaged);
                        }
                        push(element.element())?;
                    }
                    super::NODE_PACKED => walk_listpack(&reader.blob()?, &mut push)?,
                    _ => return Err(Damaged),
                }
            }
        }
    }
    if ListMut::new(&mut entry, limit).is_empty() { Err(Damaged) } else { Ok(entry) }
}

fn load_set(
    reader: &mut Reader<'_>,
    value_type: u8,
    header: Header<'_>,
    limits: set::Limits,
) -> Result<Entry, LoadError> {
    let add = |entry: &mut Entry, member: Element<'_>| {
        if set::add(entry, member, limits) { Ok(()) } else { Err(Damaged) }
    };
    match value_type {
        super::TYPE_SET_INTSET => {
            let integers = intset_integers(&reader.blob()?)?;
            let mut entry = set::empty_integers(header);
            set::prepare_for(&mut entry, integers.len(), limits);
            integers.iter().try_for_each(|&value| add(&mut entry, Element::Int(value)))?;
            if integers.is_empty() { Err(Damaged) } else { Ok(entry) }
        }
        super::TYPE_SET_LISTPACK => {
            let listpack = reader.blob()?;
            let (_, count) = listpack_elements(&listpack)?;
            let mut entry = set::empty_packed(header);
            set::prepare_for(&mut entry, count, limits);
            walk_listpack(&listpack, &mut |member| add(&mut entry, member))?;
            if count == 0 { Err(Damaged) } else { Ok(entry) }
        }
        _ => {
            let count = reader.count()?;
            if count == 0 {
                return Err(Damaged);
            }
            let mut scratch = IntBuffer::new();
            let first = reader.text()?;
            let first = first.as_bytes(&mut scratch);
            let mut entry = set::empty_for(header, first, count, limits);
            add(&mut entry, Element::Bytes(first))?;
            for _ in 1..count {
                add(&mut entry, reader.text()?.element())?;
            }
            Ok(entry)
        }
    }
}

/// A sorted set in the making.
struct Scored {
    entry: Entry,
    limits: sorted_set::Limits,
}

impl Scored {
    fn add(&mut self, member: &[u8], score: f64) -> Result<(), LoadError> {
        if score.is_nan() {
            return Err(Damaged);
        }
        let added = sorted_set::update(&mut self.entry, self.limits, member, |present| match present {
            Some(_) => Err(Damaged),
            None => Ok(Some(score)),
        })?;
        debug_assert!(added.is_some());
        Ok(())
    }
}

fn load_sorted_set(
    reader: &mut Reader<'_>,
    value_type: u8,
    header: Header<'_>,
    limits: sorted_set::Limits,
) -> Result<Entry, LoadError> {
    match value_type {
        super::TYPE_SORTED_SET | super::TYPE_SORTED_SET_2 => {
            let count = reader.count()?;
            let mut scored = Scored { entry: sorted_set::create(header, count, 0, limits), limits };
            for _ in 0..count {
                let member = reader.text()?;
                let score = if value_type == super::TYPE_SORTED_SET {
                    decimal_score(reader)?
                } else {
                    f64::from_bits(reader.u64()?)
                };
                scored.add(member.as_bytes(&mut IntBuffer::new()), score)?;
            }
            if count == 0 { Err(Damaged) } else { Ok(scored.entry) }
        }
        _ => {
            let walk: Walk = if value_type == super::TYPE_SORTED_SET_ZIPLIST { walk_ziplist } else { walk_listpack };
            let blob = reader.blob()?;
            let mut scored = Scored { entry: sorted_set::create(header, 0, 0, limits), limits };
            walk_groups::<2>(&blob, walk, &mut |[member, score]| {
                let score = match score.element() {
                    Element::Int(value) => value as f64,
                    Element::Bytes(text) => parse_f64(text).ok_or(Damaged)?,
                };
                scored.add(member.element().as_bytes(&mut IntBuffer::new()), score)
            })?;
            Ok(scored.entry)
        }
    }
}

/// A score as text, its length before it; three lengths stand for what is no number, and the infinities.
fn decimal_score(reader: &mut Reader<'_>) -> Result<f64, LoadError> {
    match reader.byte()? {
        253 => Err(Damaged),
        254 => Ok(f64::INFINITY),
        255 => Ok(f64::NEG_INFINITY),
        len => parse_f64(reader.bytes(len.into())?).ok_or(Damaged),
    }
}

/// A hash in the making.
struct Fields {
    entry: Entry,
    limits: hash::Limits,
}

impl Fields {
    fn add(&mut self, field: Element<'_>, value: Element<'_>) -> Result<(), LoadError> {
        let (mut field_text, mut value_text) = (IntBuffer::new(), IntBuffer::new());
        let field = field.as_bytes(&mut field_text);
        let place = hash::Place::find(&self.entry, field);
        if place.is_present() {
            return Err(Damaged);
        }
        place.set(&mut self.entry, field, value.as_bytes(&mut value_text), self.limits);
        Ok(())
    }

    /// Like [`Fields::add`], for a field that may have a deadline in ms since the epoch (0 for none).
    fn add_until(&mut self, field: Element<'_>, value: Element<'_>, deadline_ms: i64) -> Result<(), LoadError> {
        self.add(field, value)?;
        if deadline_ms > 0 {
            let mut scratch = IntBuffer::new();
            let name = field.as_bytes(&mut scratch);
            hash::Place::find(&self.entry, name).set_deadline(&mut self.entry, name, Some(deadline_ms));
        }
        Ok(())
    }
}

fn load_hash(
    reader: &mut Reader<'_>,
    value_type: u8,
    header: Header<'_>,
    limits: hash::Limits,
) -> Result<Entry, LoadError> {
    let mut fields = Fields { entry: Entry::new(header, Encoding::PackedHash, &[]), limits };
    let pairs = match value_type {
        super::TYPE_HASH | super::TYPE_HASH_DEADLINES => {
            let with_deadlines = value_type == super::TYPE_HASH_DEADLINES;
            // The deadlines behind it are counted from this one.
            let earliest_ms = if with_deadlines { reader.u64()? } else { 0 };
            i64::try_from(earliest_ms).map_err(|_| Damaged)?;
            let count = reader.count()?;
            for _ in 0..count {
                let deadline = if with_deadlines { reader.number()? } else { 0 };
                let (field, value) = (reader.text()?, reader.text()?);
                let deadline_ms = match deadline {
                    0 => 0,
                    _ => earliest_ms.checked_add(deadline - 1).ok_or(Damaged)?,
                };
                let deadline_ms = i64::try_from(deadline_ms).map_err(|_| Damaged)?;
                fields.add_until(field.element(), value.element(), deadline_ms)?;
            }
            if count == 0 { Err(Damaged) } else { Ok(()) }
        }
        super::TYPE_HASH_LISTPACK_DEADLINES => {
            let _earliest_ms = i64::try_from(reader.u64()?).map_err(|_| Damaged)?;
            walk_groups::<3>(&reader.blob()?, walk_listpack, &mut |[field, value, deadline]| {
                let Element::Int(deadline_ms) = deadline.element() else { return Err(Damaged) };
                fields.add_until(field.element(), value.element(), deadline_ms)
            })
        }
        _ => {
            let walk: Walk = match value_type {
                super::TYPE_HASH_ZIPMAP => walk_zipmap,
                super::TYPE_HASH_ZIPLIST => walk_ziplist,
                _ => walk_listpack,
            };
            walk_groups::<2>(&reader.blob()?, walk, &mut |[field, value]| fields.add(field.element(), value.element()))
        }
    };
    pairs.map(|()| fields.entry)
}

/// Visits the elements of a container in groups of `N`, at least one and none incomplete.
fn walk_groups<const N: usize>(
    blob: &[u8],
    walk: Walk,
    visit: &mut dyn FnMut(&[Text<'_>; N]) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    let mut group: [Text<'_>; N] = std::array::from_fn(|_| Text::Integer(0));
    let (mut filled, mut groups) = (0, 0_usize);
    walk(blob, &mut |element| {
        group[filled] = match element {
            Element::Int(value) => Text::Integer(value),
            Element::Bytes(bytes) => Text::Bytes(Cow::Owned(bytes.to_vec())),
        };
        filled += 1;
        if filled == N {
            filled = 0;
            groups += 1;
            visit(&group)?;
        }
        Ok(())
    })?;
    if filled == 0 && groups > 0 { Ok(()) } else { Err(Damaged) }
}

fn load_limit(reader: &mut Reader<'_>, header: Header<'_>) -> Result<Entry, LoadError> {
    let state = reader.blob()?;
    let (&mode, state) = state.split_first().ok_or(Damaged)?;
    let (encoding, len) = match mode {
        super::save::LIMIT_FIXED => (Encoding::FixedLimit, FIXED_BYTES),
        super::save::LIMIT_SLIDING => (Encoding::SlidingLimit, SLIDING_BYTES),
        super::save::LIMIT_TOKENS => (Encoding::TokenLimit, TOKEN_BYTES),
        _ => return Err(Damaged),
    };
    if state.len() != len || !limit::is_sound(encoding, state) {
        return Err(Damaged);
    }
    if header.deadline_ms.is_none() {
        return Err(LoadError::LimitWithoutDeadline);
    }
    Ok(Entry::new(header, encoding, &[state]))
}
