//! Hashes whose fields expire.
//!
//! A field that has expired goes when a command names it, or when the sweep comes to it. Until then the hash is not
//! seen to have it, but still counts it (`HLEN`), as in Redis. The key goes with its last field.

use super::{EntryMut, Keys};
use crate::entry::{Entry, EntryRef, Kind};
use crate::error::CommandError;
use crate::events::Class;
use crate::field_deadlines::HashDue;
use crate::hash::{self, Hash, Place};
use crate::table::Position;

#[inline]
fn is_due(entry: EntryRef<'_>, now_ms: i64) -> bool {
    hash::next_deadline_ms(entry).is_some_and(|deadline_ms| deadline_ms <= now_ms)
}

/// Removes those of `fields` that have expired; how many went.
fn remove_named<'f>(entry: &mut Entry, fields: impl IntoIterator<Item = &'f [u8]>, now_ms: i64) -> usize {
    let mut removed = 0;
    for field in fields {
        let place = Place::find(entry, field);
        if place.has_expired(entry, now_ms) {
            removed += usize::from(place.remove(entry));
        }
    }
    removed
}

impl Keys {
    /// Finds a hash for reading, as [`Keys::find_kind`] does; those of `fields` that have expired are removed first.
    #[inline]
    pub fn find_hash<'f>(
        &mut self,
        key: &[u8],
        fields: impl IntoIterator<Item = &'f [u8]>,
    ) -> Result<Option<Hash<'_>>, CommandError> {
        self.find_hash_after(key, |entry, now_ms| remove_named(entry, fields, now_ms))
    }

    /// Finds a hash for reading; all fields that have expired are removed first.
    pub fn find_hash_of_live(&mut self, key: &[u8]) -> Result<Option<Hash<'_>>, CommandError> {
        self.find_hash_after(key, |entry, now_ms| hash::remove_expired(entry, now_ms, usize::MAX))
    }

    #[inline]
    fn find_hash_after(
        &mut self,
        key: &[u8],
        expire: impl FnOnce(&mut Entry, i64) -> usize,
    ) -> Result<Option<Hash<'_>>, CommandError> {
        let Some((slot, position)) = self.locate_counted(key) else { return Ok(None) };
        if !self.no_touch {
            self.note_access(slot, position);
        }
        let entry = self.databases[self.selected].at(slot, position);
        if entry.kind() != Kind::Hash {
            return Err(CommandError::WRONG_TYPE);
        }
        if is_due(entry, self.now_ms) && !self.expire_fields(key, slot, position, expire) {
            return Ok(None);
        }
        Ok(Some(Hash::of(self.databases[self.selected].at(slot, position), self.now_ms)))
    }

    /// Finds a hash to change it, as [`Keys::find_mut_kind`] does; those of `fields` that have expired are removed
    /// first.
    #[inline]
    pub fn find_hash_mut<'f>(
        &mut self,
        key: &[u8],
        fields: impl IntoIterator<Item = &'f [u8]>,
    ) -> Result<Option<EntryMut<'_>>, CommandError> {
        let Some((slot, position)) = self.locate(key) else { return Ok(None) };
        if !self.no_touch {
            self.note_access(slot, position);
        }
        let entry = self.databases[self.selected].at(slot, position);
        if entry.kind() != Kind::Hash {
            return Err(CommandError::WRONG_TYPE);
        }
        let expire = |entry: &mut Entry, now_ms| remove_named(entry, fields, now_ms);
        if is_due(entry, self.now_ms) && !self.expire_fields(key, slot, position, expire) {
            return Ok(None);
        }
        self.save_before_change(slot, position);
        Ok(Some(self.databases[self.selected].at_mut(slot, position)))
    }

    /// Lets `expire` remove fields that have expired, and the key with the last of them; whether the key is still
    /// there.
    #[cold]
    fn expire_fields(
        &mut self,
        key: &[u8],
        slot: u16,
        position: Position,
        expire: impl FnOnce(&mut Entry, i64) -> usize,
    ) -> bool {
        let mut entry = self.databases[self.selected].at_mut(slot, position);
        let removed = expire(&mut entry, self.now_ms);
        let emptied = hash::is_empty(entry.view());
        drop(entry);
        if removed > 0 {
            self.stats.expired_fields += removed as u64;
            self.changed_by_time(Class::Hash, "hexpired", key);
        }
        if emptied {
            let entry = self.databases[self.selected].remove(slot, position);
            self.discard(entry);
            self.changed_by_time(Class::Generic, "del", key);
        }
        !emptied
    }

    /// Removes up to `budget` fields that have expired of a hash that is due in the selected database, or its key if
    /// that has expired.
    pub(crate) fn expire_due(&mut self, due: HashDue, budget: usize) {
        let database = &mut self.databases[self.selected];
        let Some(key) = database.due_key(due) else {
            database.forget_due(due);
            return;
        };
        if let Some((slot, position)) = self.locate(&key) {
            self.expire_fields(&key, slot, position, |entry, now_ms| hash::remove_expired(entry, now_ms, budget));
        }
    }
}
