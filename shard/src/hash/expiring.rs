//! The packed form of a hash whose fields may expire.
//!
//! ```text
//! 8 bytes   the earliest deadline, ms since the epoch, little-endian; `NEVER` where no field has one
//! ...       packed field, value, deadline, field, value, deadline, …; a deadline of 0 is none
//! ```
//!
//! The earliest deadline stands in front so that one look tells whether anything is due. Whoever changes a deadline
//! brings it up to date with [`refresh`].

use std::ops::Range;

use crate::entry::Entry;
use crate::hash_key;
use crate::packed::{self, Element, Elements, IntBuffer};

/// Stands for no deadline at all.
const NEVER: i64 = i64::MAX;

/// Bytes in front of the elements.
const HEAD: usize = size_of::<i64>();

/// The fewest bytes of a field with its value and deadline.
pub(super) const FIELD_BYTES_MIN: usize = 6;

/// Elements a field has.
const PARTS: usize = 3;

/// Where a field, its value and its deadline lie in the payload.
#[derive(Clone, Debug)]
pub(super) struct Spans {
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
    pub(super) deadline: Range<usize>,
}

/// A field as it is stored.
#[derive(Clone, Debug)]
pub(super) struct Stored<'a> {
    pub(super) name: Element<'a>,
    pub(super) value: Element<'a>,
    pub(super) deadline_ms: Option<i64>,
    /// Its bytes in the payload.
    pub(super) range: Range<usize>,
}

impl Stored<'_> {
    pub(super) fn has_expired(&self, now_ms: i64) -> bool {
        self.deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms)
    }
}

fn as_deadline(element: Element<'_>) -> Option<i64> {
    match element {
        Element::Int(deadline_ms) if deadline_ms != 0 => Some(deadline_ms),
        _ => None,
    }
}

/// The earliest deadline, in ms since the epoch.
#[inline]
pub(super) fn earliest_ms(payload: &[u8]) -> Option<i64> {
    let head = payload.first_chunk::<HEAD>()?;
    Some(i64::from_le_bytes(*head)).filter(|earliest_ms| *earliest_ms != NEVER)
}

/// Bytes of the elements.
#[inline]
pub(super) fn elements_len(payload: &[u8]) -> usize {
    payload.len().saturating_sub(HEAD)
}

/// Number of fields.
pub(super) fn count(payload: &[u8]) -> usize {
    Elements::within(payload, HEAD..payload.len()).count() / PARTS
}

/// Every field.
pub(super) fn fields(payload: &[u8]) -> impl Iterator<Item = Stored<'_>> {
    let mut elements = Elements::within(payload, HEAD..payload.len());
    std::iter::from_fn(move || {
        let (start, name) = elements.next()?;
        let (_, value) = elements.next()?;
        let (end, deadline) = elements.next()?;
        Some(Stored { name, value, deadline_ms: as_deadline(deadline), range: start.start..end.end })
    })
}

/// Where a field is.
pub(super) fn find(payload: &[u8], field: &[u8]) -> Option<Spans> {
    let name = packed::find(payload.get(HEAD..)?, field, PARTS - 1)?;
    let name = name.start + HEAD..name.end + HEAD;
    let (value, _) = packed::next_after(payload, name.end)?;
    let (deadline, _) = packed::next_after(payload, value.end)?;
    Some(Spans { name, value, deadline })
}

/// The value at `spans`.
pub(super) fn value_at<'a>(payload: &'a [u8], spans: &Spans) -> Option<Element<'a>> {
    packed::next_after(payload, spans.name.end).map(|(_, value)| value)
}

/// The deadline at `spans`, in ms since the epoch.
pub(super) fn deadline_at(payload: &[u8], spans: &Spans) -> Option<i64> {
    packed::next_after(payload, spans.value.end).and_then(|(_, deadline)| as_deadline(deadline))
}

/// Appends a deadline as it is stored.
pub(super) fn encode_deadline(deadline_ms: Option<i64>, out: &mut Vec<u8>) {
    packed::encode_int(deadline_ms.unwrap_or(0), out);
}

/// Makes the payload of a packed hash without deadlines one of this form.
pub(super) fn from_pairs(pairs: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&NEVER.to_le_bytes());
    let mut ranges = Elements::new(pairs).map(|(position, _)| position);
    while let (Some(field), Some(value)) = (ranges.next(), ranges.next()) {
        out.extend_from_slice(&pairs[field.start..value.end]);
        encode_deadline(None, out);
    }
}

fn earliest_of(payload: &[u8]) -> i64 {
    fields(payload).filter_map(|field| field.deadline_ms).min().unwrap_or(NEVER)
}

/// Brings the earliest deadline up to date.
pub(super) fn refresh(entry: &mut Entry) {
    let earliest_ms = earliest_of(entry.view().payload());
    entry.payload_mut()[..HEAD].copy_from_slice(&earliest_ms.to_le_bytes());
}

/// Leaves up to `budget` fields out that have expired at `now_ms`, the earliest first and those of one deadline in the
/// order of their hashes; appends the payload that is left. Returns how many were left out.
pub(super) fn without_expired(payload: &[u8], now_ms: i64, budget: usize, out: &mut Vec<u8>) -> usize {
    let order = |field: &Stored<'_>| {
        let hash = hash_key(field.name.as_bytes(&mut IntBuffer::new()));
        (field.deadline_ms, hash)
    };
    let mut due: Vec<_> =
        fields(payload).filter(|field| field.has_expired(now_ms)).map(|field| order(&field)).collect();
    due.sort_unstable();
    due.truncate(budget);
    let Some(last) = due.last() else {
        out.extend_from_slice(payload);
        return 0;
    };
    out.extend_from_slice(&NEVER.to_le_bytes());
    for field in fields(payload).filter(|field| !field.has_expired(now_ms) || order(field) > *last) {
        out.extend_from_slice(&payload[field.range]);
    }
    let earliest_ms = earliest_of(out);
    out[..HEAD].copy_from_slice(&earliest_ms.to_le_bytes());
    due.len()
}
