//! A field of an entry, to be changed or removed.

use std::ops::Range;

use super::{Form, Lifetime, Limits, PACKED_BYTES_MAX, expiring, large_mut, with_scratch};
use crate::entry::{Encoding, Entry};
use crate::packed::{self, Element};
use crate::table::Position;

/// Where a field of an entry is, or would be; valid until the entry changes. Fields that have expired but are still
/// there are found as well.
#[derive(Clone, Debug)]
pub struct Place(At);

#[derive(Clone, Debug)]
enum At {
    Missing,
    Packed { name: Range<usize>, value: Range<usize> },
    Expiring(expiring::Spans),
    Large(Position),
}

impl Place {
    /// Finds a field.
    pub fn find(entry: &Entry, field: &[u8]) -> Place {
        Place(match Form::of(entry.view()) {
            Form::Packed(bytes) => packed::find(bytes, field, 1)
                .and_then(|name| packed::next_after(bytes, name.end).map(|(value, _)| At::Packed { name, value }))
                .unwrap_or(At::Missing),
            Form::Expiring(payload) => expiring::find(payload, field).map_or(At::Missing, At::Expiring),
            Form::Large(large) => large.find(field).map_or(At::Missing, At::Large),
        })
    }

    /// Whether the field is there.
    #[inline]
    pub fn is_present(&self) -> bool {
        !matches!(self.0, At::Missing)
    }

    /// Whether the field is there and has not expired at `now_ms`.
    #[inline]
    pub fn is_live(&self, entry: &Entry, now_ms: i64) -> bool {
        self.is_present() && !self.has_expired(entry, now_ms)
    }

    /// Whether the field is there but has expired at `now_ms`.
    #[inline]
    pub fn has_expired(&self, entry: &Entry, now_ms: i64) -> bool {
        self.deadline_ms(entry).is_some_and(|deadline_ms| deadline_ms <= now_ms)
    }

    /// When the field expires, in ms since the epoch.
    #[inline]
    pub fn deadline_ms(&self, entry: &Entry) -> Option<i64> {
        match (&self.0, entry.view()) {
            (At::Missing | At::Packed { .. }, _) => None,
            (At::Expiring(spans), entry) => expiring::deadline_at(entry.payload(), spans),
            (At::Large(position), entry) => match Form::of(entry) {
                Form::Large(large) => large.at(*position).deadline_ms(),
                _ => None,
            },
        }
    }

    /// The field's value.
    pub fn value<'a>(&self, entry: &'a Entry) -> Option<Element<'a>> {
        match (&self.0, Form::of(entry.view())) {
            (At::Packed { name, .. }, Form::Packed(bytes)) => {
                packed::next_after(bytes, name.end).map(|(_, value)| value)
            }
            (At::Expiring(spans), Form::Expiring(payload)) => expiring::value_at(payload, spans),
            (At::Large(position), Form::Large(large)) => Some(Element::Bytes(large.at(*position).value())),
            _ => None,
        }
    }

    /// Sets `field`, which was looked for here. It has no deadline from then on.
    pub fn set(self, entry: &mut Entry, field: &[u8], value: &[u8], limits: Limits) {
        self.put(entry, field, value, limits, Lifetime::Unlimited);
    }

    /// Sets the value of `field`, which was looked for here; a deadline that it has stays.
    pub fn set_value(self, entry: &mut Entry, field: &[u8], value: &[u8], limits: Limits) {
        self.put(entry, field, value, limits, Lifetime::Unchanged);
    }

    /// Sets `field`, which was looked for here, and what becomes of its deadline.
    pub fn put(self, entry: &mut Entry, field: &[u8], value: &[u8], limits: Limits, lifetime: Lifetime) {
        if let Lifetime::Until(_) = lifetime
            && let Form::Packed(_) = Form::of(entry.view())
        {
            make_expiring(entry);
            return Place::find(entry, field).put(entry, field, value, limits, lifetime);
        }
        if let At::Large(position) = self.0 {
            let large = large_mut(entry);
            large.set_at(position, value);
            if let Some(deadline_ms) = lifetime.change() {
                large.set_deadline_at(position, deadline_ms);
            }
        } else if !self.put_packed(entry, field, value, limits, lifetime) {
            let large = large_mut(entry);
            if self.is_present() {
                large.set(field, value, lifetime);
            } else {
                large.add(field, value, lifetime.change().flatten());
            }
        }
    }

    /// Sets the field where the hash stays in the packed form it has; whether it does.
    fn put_packed(&self, entry: &mut Entry, field: &[u8], value: &[u8], limits: Limits, lifetime: Lifetime) -> bool {
        let form = Form::of(entry.view());
        let (is_expiring, len) = match form {
            Form::Packed(bytes) => (false, bytes.len()),
            Form::Expiring(payload) => (true, payload.len()),
            Form::Large(_) => return false,
        };
        let (range, with_name) = match &self.0 {
            At::Missing => {
                let more_bytes = packed::encoded_len(value) + packed::encoded_len(field);
                if !limits.admits(field) || !limits.has_room(form, more_bytes) {
                    return false;
                }
                (len..len, true)
            }
            At::Packed { value, .. } => (value.clone(), false),
            At::Expiring(spans) if lifetime == Lifetime::Unchanged => (spans.value.clone(), false),
            At::Expiring(spans) => (spans.value.start..spans.deadline.end, false),
            At::Large(_) => return false,
        };
        if !limits.admits(value) || len + packed::encoded_len(value) > PACKED_BYTES_MAX {
            return false;
        }
        let with_deadline = is_expiring && (with_name || lifetime != Lifetime::Unchanged);
        let (before_ms, after_ms) = (self.deadline_ms(entry), lifetime.change().flatten());
        with_scratch(|encoded| {
            if with_name {
                packed::encode(field, encoded);
            }
            packed::encode(value, encoded);
            if with_deadline {
                expiring::encode_deadline(after_ms, encoded);
            }
            entry.splice(range, encoded);
        });
        if with_deadline && before_ms != after_ms {
            expiring::refresh(entry);
        }
        true
    }

    /// Sets or clears the deadline of `field`, which was looked for here, in ms since the epoch.
    pub fn set_deadline(self, entry: &mut Entry, field: &[u8], deadline_ms: Option<i64>) {
        match self.0 {
            At::Missing => {}
            At::Packed { .. } => {
                if deadline_ms.is_some() {
                    make_expiring(entry);
                    Place::find(entry, field).set_deadline(entry, field, deadline_ms);
                }
            }
            At::Expiring(spans) => {
                with_scratch(|encoded| {
                    expiring::encode_deadline(deadline_ms, encoded);
                    entry.splice(spans.deadline, encoded);
                });
                expiring::refresh(entry);
            }
            At::Large(position) => large_mut(entry).set_deadline_at(position, deadline_ms),
        }
    }

    /// Removes the field; whether it was there.
    pub fn remove(self, entry: &mut Entry) -> bool {
        match self.0 {
            At::Missing => return false,
            At::Packed { name, value } => entry.splice(name.start..value.end, &[]),
            At::Expiring(spans) => {
                entry.splice(spans.name.start..spans.deadline.end, &[]);
                expiring::refresh(entry);
            }
            At::Large(position) => large_mut(entry).remove_at(position),
        }
        true
    }
}

/// Gives a packed hash the form in which fields may have deadlines.
fn make_expiring(entry: &mut Entry) {
    let Form::Packed(pairs) = Form::of(entry.view()) else { return };
    // Each field takes a few bytes more.
    if pairs.len() > PACKED_BYTES_MAX / 2 {
        large_mut(entry);
        return;
    }
    with_scratch(|payload| {
        expiring::from_pairs(entry.view().payload(), payload);
        entry.set_payload(Encoding::ExpiringHash, &[payload]);
    });
}
