//! A table for each slot, and the arena that their words lie in.
//!
//! What makes this safe: a table's lent array is always one of the arena beside it, taken with the table's slot as its
//! owner and with the capacity that the table knows. The arena is changed here alone, and whatever it moves is told to
//! the owner before anything else happens. A table that outgrows a segment keeps arrays of its own.

use std::ops::Index;

use crate::arena::{self, Arena};
use crate::entry::Entry;
use crate::table::{BlockMut, LentWords, Position, SEGMENT_LIMIT, Table};

const _: () = assert!(SEGMENT_LIMIT <= arena::LARGEST_CAPACITY);

/// Runs of arena pages cost this much of the budget of [`SlotTables::drain_some`] each.
const RUN_COST: usize = 16;

/// The tables of a database, by slot.
#[derive(Default)]
pub(crate) struct SlotTables {
    /// Before the arena, for they are dropped in this order.
    tables: Vec<Table<Entry>>,
    arena: Arena,
}

impl SlotTables {
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.tables.len()
    }

    /// Makes tables for the slots below `slots`.
    pub(crate) fn resize(&mut self, slots: u16) {
        self.tables.resize_with(slots as usize, Table::new);
    }

    #[inline]
    pub(crate) fn get(&self, slot: u16) -> Option<&Table<Entry>> {
        self.tables.get(slot as usize)
    }

    /// The tables of `count` slots from `first` on.
    pub(crate) fn range(&self, first: usize, count: usize) -> &[Table<Entry>] {
        &self.tables[first..][..count]
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, slot: u16, position: Position) -> BlockMut<'_, Entry> {
        self.tables[slot as usize].at_mut(position)
    }

    #[inline]
    pub(crate) fn insert(&mut self, slot: u16, hash: u64, entry: Entry) {
        if self.tables[slot as usize].is_full() {
            self.make_room(slot);
        }
        self.tables[slot as usize].insert(hash, entry);
    }

    #[inline]
    pub(crate) fn remove(&mut self, slot: u16, position: Position) -> Entry {
        let entry = self.tables[slot as usize].remove(position);
        if self.tables[slot as usize].wastes_lent_words() {
            self.fit(slot);
        }
        entry
    }

    /// Makes room for one more block in a full table.
    fn make_room(&mut self, slot: u16) {
        let len = self.tables[slot as usize].len();
        if len < SEGMENT_LIMIT {
            self.lend(slot, arena::capacity_for(len + 1));
        } else {
            // The table splits into segments of its own.
            let returned = self.tables[slot as usize].keep_own_words();
            self.give_back(returned);
        }
    }

    /// Makes the array of a table as small as it can be.
    fn fit(&mut self, slot: u16) {
        match self.tables[slot as usize].len() {
            0 => {
                let returned = self.tables[slot as usize].keep_own_words();
                self.give_back(returned);
            }
            len => self.lend(slot, arena::capacity_for(len)),
        }
    }

    fn lend(&mut self, slot: u16, capacity: usize) {
        let words = self.arena.take(capacity, slot);
        let table = &mut self.tables[slot as usize];
        // SAFETY: the arena's array has room for `capacity` words, at least the table's length, and stays the table's
        // until it is given back below, at the next change. Callers lend to tables below the limit only.
        let returned = unsafe { table.lend(LentWords { words, capacity }) };
        self.give_back(returned);
    }

    fn give_back(&mut self, returned: Option<LentWords>) {
        let Some(LentWords { words, capacity }) = returned else { return };
        // SAFETY: the table it was lent to no longer refers to it, and it came from this arena with this capacity.
        if let Some(moved) = unsafe { self.arena.give_back(words, capacity) } {
            // SAFETY: the arena copied the array of this owner, whole, to where it is now.
            unsafe { self.tables[moved.owner as usize].lent_words_moved(moved.words) };
        }
    }

    /// Takes the tables apart, about `budget` entries at a time, and hands these to `removed`; returns how much of the
    /// budget was used, or `None` when nothing is left. Once begun, the tables are good for nothing else.
    pub(crate) fn drain_some(&mut self, budget: usize, removed: &mut impl FnMut(Entry)) -> Option<usize> {
        if let Some(table) = self.tables.last_mut() {
            let mut entries = 0;
            let done = table.drain_some(budget, |entry| {
                entries += 1;
                removed(entry);
            });
            if done {
                self.tables.pop();
            }
            return Some(entries + 1);
        }
        // SAFETY: there is no table any more.
        unsafe { self.arena.dismantle() }.then_some(RUN_COST)
    }
}

impl Index<usize> for SlotTables {
    type Output = Table<Entry>;
    #[inline]
    fn index(&self, slot: usize) -> &Table<Entry> {
        &self.tables[slot]
    }
}
