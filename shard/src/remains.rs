//! What is too large to be freed at once: removed from the keyspace, and freed piecemeal between commands.

use crate::entry::Entry;
use crate::field_deadlines::FieldDeadlines;
use crate::object::Object;
use crate::slot_tables::SlotTables;

/// Collections up to this many elements are freed on the spot.
const FREED_AT_ONCE: usize = 64;

/// Objects and tables that nobody uses any more.
#[derive(Default)]
pub(crate) struct Remains {
    /// Freed before any further table is taken apart, so that they never pile up.
    objects: Vec<Object>,
    /// The tables of flushed databases.
    tables: Vec<SlotTables>,
    /// The lists of hashes with expiring fields that belonged to them.
    field_deadlines: Vec<FieldDeadlines>,
}

impl Remains {
    /// Frees an entry: at once when it is small, else only its block, and the object is kept here. Whether it was kept.
    #[inline]
    pub(crate) fn add_entry(&mut self, mut entry: Entry) -> bool {
        if entry.view().object().is_some_and(|object| object.elements() > FREED_AT_ONCE)
            && let Some(object) = entry.take_object()
        {
            self.objects.push(*object);
            return true;
        }
        false
    }

    /// Keeps a collection that has lost its key.
    pub(crate) fn add_object(&mut self, object: Object) {
        if object.elements() > FREED_AT_ONCE {
            self.objects.push(object);
        }
    }

    /// Keeps the content of a flushed database.
    pub(crate) fn add_content(&mut self, (tables, field_deadlines): (SlotTables, FieldDeadlines)) {
        if !tables.is_empty() {
            self.tables.push(tables);
        }
        if !field_deadlines.is_empty() {
            self.field_deadlines.push(field_deadlines);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.tables.is_empty() && self.field_deadlines.is_empty()
    }

    /// Objects that wait, and databases.
    pub(crate) fn len(&self) -> usize {
        self.objects.len() + self.tables.len()
    }

    /// Frees about `budget` elements or keys; returns how many further objects were found to be large.
    pub(crate) fn reclaim(&mut self, budget: usize) -> u64 {
        let mut left = budget;
        let mut kept = 0;
        while left > 0 {
            if let Some(object) = self.objects.last_mut() {
                let before = object.elements();
                if object.reclaim(left) {
                    self.objects.pop();
                }
                left = left.saturating_sub(before.min(left).max(1));
                continue;
            }
            if let Some(deadlines) = self.field_deadlines.last_mut() {
                let before = deadlines.len();
                if deadlines.reclaim(left) {
                    self.field_deadlines.pop();
                }
                left = left.saturating_sub(before.min(left).max(1));
                continue;
            }
            let Some(tables) = self.tables.last_mut() else { break };
            let mut entries = Vec::new();
            match tables.drain_some(left, &mut |entry| entries.push(entry)) {
                Some(work) => left = left.saturating_sub(work),
                None => {
                    self.tables.pop();
                }
            }
            for entry in entries {
                kept += u64::from(self.add_entry(entry));
            }
        }
        kept
    }
}
