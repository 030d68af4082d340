//! The form of a hash with many or long fields.

use super::Lifetime;
use super::deadlines::{Deadlines, FieldDue};
use super::field::{Field, FieldRef};
use crate::hash_key;
use crate::image::parts::{Budget, TableSaving, save_bytes};
use crate::packed::Element;
use crate::packed::IntBuffer;
use crate::table::{Position, SCAN_BITS, Table};

/// A hash that has outgrown its packed form.
#[derive(Default)]
pub struct LargeHash {
    fields: Table<Field>,
    /// Bytes of the fields' blocks.
    block_bytes: usize,
    /// The fields that have a deadline, where there are any.
    deadlines: Option<Box<Deadlines>>,
    /// Where an image is that is made of it.
    pub(crate) saving: TableSaving,
}

fn save_field(field: FieldRef<'_>, out: &mut Vec<u8>) {
    let (name, value) = field.parts();
    out.extend_from_slice(&field.deadline_ms().unwrap_or(0).to_le_bytes());
    save_bytes(name, out);
    save_bytes(value, out);
}

impl LargeHash {
    /// Number of fields, those that have expired but are still there included.
    #[inline]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Number of fields that have a deadline.
    #[inline]
    pub fn with_deadline(&self) -> usize {
        self.fields.marked()
    }

    /// The earliest deadline of a field, in ms since the epoch.
    #[inline]
    pub fn next_deadline_ms(&self) -> Option<i64> {
        self.deadlines.as_ref()?.first().map(|due| due.deadline_ms)
    }

    /// Where a field is; valid until the hash changes.
    #[inline]
    pub fn find(&self, field: &[u8]) -> Option<Position> {
        self.fields.find(hash_key(field), field)
    }

    /// The field at `position`.
    #[inline]
    pub fn at(&self, position: Position) -> FieldRef<'_> {
        self.fields.at(position)
    }

    /// A field by its name.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<FieldRef<'_>> {
        self.fields.get(hash_key(field), field)
    }

    /// Adds a field that is not there.
    pub fn add(&mut self, field: &[u8], value: &[u8], deadline_ms: Option<i64>) {
        let hash = hash_key(field);
        let block = Field::new(field, value, deadline_ms);
        self.block_bytes += block.view().block_bytes();
        self.fields.insert(hash, block);
        self.note_deadline(hash, None, deadline_ms);
        self.saving.added(hash, field);
    }

    /// Adds a field of a packed hash, in which it is once.
    pub(super) fn add_packed(&mut self, field: Element<'_>, value: Element<'_>, deadline_ms: Option<i64>) {
        let (mut field_text, mut value_text) = (IntBuffer::new(), IntBuffer::new());
        self.add(field.as_bytes(&mut field_text), value.as_bytes(&mut value_text), deadline_ms);
    }

    /// Replaces the value at `position`.
    pub fn set_at(&mut self, position: Position, value: &[u8]) {
        self.change(position, |field| field.set_value(value));
    }

    /// Sets or clears the deadline of the field at `position`, in ms since the epoch.
    pub fn set_deadline_at(&mut self, position: Position, deadline_ms: Option<i64>) {
        let field = self.fields.at(position);
        let before_ms = field.deadline_ms();
        if before_ms == deadline_ms {
            return;
        }
        let hash = hash_key(field.name());
        self.change(position, |field| field.set_deadline(deadline_ms));
        self.note_deadline(hash, before_ms, deadline_ms);
    }

    /// The field at `position` is about to change, or to be removed.
    #[inline]
    fn save_before_change(&mut self, position: Position) {
        if self.saving.goes_on() {
            let field = self.fields.at(position);
            self.saving.before_change(hash_key(field.name()), field.name(), |out| save_field(field, out));
        }
    }

    fn change(&mut self, position: Position, change: impl FnOnce(&mut Field)) {
        self.save_before_change(position);
        let mut field = self.fields.at_mut(position);
        let before = field.view().block_bytes();
        change(&mut field);
        let after = field.view().block_bytes();
        drop(field);
        self.block_bytes = self.block_bytes - before + after;
    }

    fn note_deadline(&mut self, hash: u64, before_ms: Option<i64>, after_ms: Option<i64>) {
        if let Some(deadline_ms) = before_ms
            && let Some(deadlines) = &mut self.deadlines
        {
            deadlines.remove(FieldDue { deadline_ms, hash });
        }
        if let Some(deadline_ms) = after_ms {
            self.deadlines.get_or_insert_default().add(FieldDue { deadline_ms, hash });
        } else if self.deadlines.as_ref().is_some_and(|deadlines| deadlines.is_empty()) {
            self.deadlines = None;
        }
    }

    /// Sets a field; whether it is new.
    pub(super) fn set(&mut self, field: &[u8], value: &[u8], lifetime: Lifetime) -> bool {
        match self.find(field) {
            Some(position) => {
                self.set_at(position, value);
                if let Some(deadline_ms) = lifetime.change() {
                    self.set_deadline_at(position, deadline_ms);
                }
                false
            }
            None => {
                self.add(field, value, lifetime.change().flatten());
                true
            }
        }
    }

    /// Removes the field at `position`.
    pub fn remove_at(&mut self, position: Position) {
        self.save_before_change(position);
        let field = self.fields.remove(position);
        let view = field.view();
        self.block_bytes -= view.block_bytes();
        if let Some(deadline_ms) = view.deadline_ms() {
            self.note_deadline(hash_key(view.name()), Some(deadline_ms), None);
        }
    }

    /// Removes up to `budget` fields whose deadline is not after `now_ms`, the earliest first; how many went.
    pub fn remove_expired(&mut self, now_ms: i64, budget: usize) -> usize {
        let (mut removed, mut name) = (0, Vec::new());
        while removed < budget {
            let due = self.deadlines.as_ref().and_then(|deadlines| deadlines.first());
            let Some(due) = due.filter(|due| due.deadline_ms <= now_ms) else { break };
            name.clear();
            let mut found = false;
            // A scan visits at least all fields that share the hash's first bits.
            self.fields.scan(due.hash >> (u64::BITS - SCAN_BITS), 1, true, |field| {
                if !found && field.deadline_ms() == Some(due.deadline_ms) && hash_key(field.name()) == due.hash {
                    found = true;
                    name.extend_from_slice(field.name());
                }
            });
            match self.find(&name).filter(|_| found) {
                Some(position) => {
                    self.remove_at(position);
                    removed += 1;
                }
                None => self.note_deadline(due.hash, Some(due.deadline_ms), None),
            }
        }
        removed
    }

    /// Every field, in no order that lasts; those that have expired but are still there included.
    pub fn iter(&self) -> impl Iterator<Item = FieldRef<'_>> {
        self.fields.iter()
    }

    /// A field chosen with equal chance for each; `random(n)` gives a number below `n`.
    pub fn random(&self, random: impl FnMut(usize) -> usize) -> Option<FieldRef<'_>> {
        self.fields.random(random)
    }

    /// Visits at least `count` fields from scan position `from` on, where there are as many; returns the position to go
    /// on from, or `None` at the end. See [`Table::scan`].
    pub fn scan<'a>(&'a self, from: u64, count: usize, visit: impl FnMut(FieldRef<'a>)) -> Option<u64> {
        self.fields.scan(from, count, false, visit).1
    }

    /// A copy that shares nothing with the original.
    pub fn duplicate(&self) -> LargeHash {
        let mut copy = LargeHash::default();
        for field in self.iter() {
            let (name, value) = field.parts();
            copy.add(name, value, field.deadline_ms());
        }
        copy
    }

    /// Frees about `budget` fields; true when nothing is left. Once begun, the hash is good for nothing else.
    pub fn reclaim(&mut self, budget: usize) -> bool {
        if let Some(deadlines) = &mut self.deadlines {
            if !deadlines.reclaim(budget) {
                return false;
            }
            self.deadlines = None;
        }
        self.fields.drain_some(budget, drop)
    }

    /// Saves some more; true when all are saved.
    pub(crate) fn save_some(&mut self, budget: Budget) -> bool {
        self.saving.advance(&self.fields, budget, |field, ahead, out| {
            let saves = !ahead.contains(field.name());
            if saves {
                save_field(field, out);
            }
            saves
        })
    }

    /// Gives what saves each element.
    pub(crate) fn save_all(&self, mut save: impl FnMut(&dyn Fn(&mut Vec<u8>))) {
        self.iter().for_each(|element| save(&|out| save_field(element, out)));
    }

    /// Bytes of memory it holds, about.
    pub fn heap_bytes(&self) -> usize {
        let deadlines = self.deadlines.as_ref().map_or(0, |deadlines| size_of::<Deadlines>() + deadlines.heap_bytes());
        self.fields.heap_bytes() + self.block_bytes + deadlines
    }
}
