//! A shard's database: a table a slot, and counts that find keys without walking the slots.
//!
//! Slots are counted in groups of [`SLOTS_IN_GROUP`], all keys and those with a deadline. With them the n-th key is
//! found by one pass over the groups and the tables of one group, so a choice is uniform over the keys, and a walk over
//! the slots passes over empty ones in steps of a group.

use std::mem;
use std::ops::{Deref, DerefMut};

use rand::RngExt;
use rand::rngs::SmallRng;

use crate::entry::{Entry, EntryRef};
use crate::field_deadlines::{FieldDeadlines, HashDue};
use crate::hash::next_deadline_ms;
use crate::hash_key;
use crate::slot::SLOTS;
use crate::slot_tables::SlotTables;
use crate::table::{BlockMut, Position, SCAN_BITS, Table};

const SLOTS_IN_GROUP: usize = 32;

/// How many keys there are.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    keys: usize,
    with_deadline: usize,
}

impl Counts {
    #[inline]
    fn of(self, with_deadline: bool) -> usize {
        if with_deadline { self.with_deadline } else { self.keys }
    }

    #[inline]
    fn add(&mut self, has_deadline: bool) {
        self.keys += 1;
        self.with_deadline += usize::from(has_deadline);
    }

    #[inline]
    fn subtract(&mut self, has_deadline: bool) {
        self.keys -= 1;
        self.with_deadline -= usize::from(has_deadline);
    }

    #[inline]
    fn set_deadline(&mut self, has_deadline: bool) {
        if has_deadline {
            self.with_deadline += 1;
        } else {
            self.with_deadline -= 1;
        }
    }
}

#[inline]
fn has_deadline(entry: &Entry) -> bool {
    entry.view().deadline_ms().is_some()
}

/// One of a shard's databases. Keys that have expired count until somebody notices.
#[derive(Default)]
pub struct Database {
    /// Empty until the first key comes, as `groups` is.
    slots: SlotTables,
    groups: Vec<Counts>,
    total: Counts,
    field_deadlines: FieldDeadlines,
}

impl Database {
    /// Number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.total.keys
    }

    /// Whether there is no key.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.total.keys == 0
    }

    /// Number of keys with a deadline.
    #[inline]
    pub fn with_deadline(&self) -> usize {
        self.total.with_deadline
    }

    /// Number of keys with a hash that has fields with a deadline.
    pub fn with_field_deadlines(&self) -> usize {
        self.field_deadlines.len()
    }

    /// The hash whose fields expire first, if that is not after `now_ms`.
    pub(crate) fn first_due(&self, now_ms: i64) -> Option<HashDue> {
        self.field_deadlines.first_until(now_ms)
    }

    /// The key of a hash that is due.
    pub(crate) fn due_key(&self, due: HashDue) -> Option<Box<[u8]>> {
        let mut found = None;
        // A scan visits at least all keys that share the hash's first bits.
        self.slots.get(due.slot())?.scan(due.hash() >> (u64::BITS - SCAN_BITS), 1, false, |entry| {
            let deadline_ms = next_deadline_ms(entry);
            if deadline_ms.is_some_and(|ms| HashDue::new(ms, due.slot(), hash_key(entry.key())) == due) {
                found = Some(entry.key().into());
            }
        });
        found
    }

    /// Takes a hash that is due off the list.
    pub(crate) fn forget_due(&mut self, due: HashDue) {
        self.field_deadlines.remove(due);
    }

    /// The table of `slot`, unless the database was never used.
    #[inline]
    pub fn table(&self, slot: u16) -> Option<&Table<Entry>> {
        self.slots.get(slot)
    }

    /// Makes the tables of an unused database, so that the first key does not have to.
    pub fn prepare(&mut self) {
        if self.slots.is_empty() {
            self.slots.resize(SLOTS as u16);
            self.groups.resize(SLOTS / SLOTS_IN_GROUP, Counts::default());
        }
    }

    /// The first slot from `from` on that holds a key, or a key with a deadline.
    pub fn next_slot(&self, from: usize, with_deadline: bool) -> Option<u16> {
        let mut slot = from;
        while slot < self.slots.len() {
            if self.groups[slot / SLOTS_IN_GROUP].of(with_deadline) == 0 {
                slot = (slot / SLOTS_IN_GROUP + 1) * SLOTS_IN_GROUP;
                continue;
            }
            if self.slots[slot].count(with_deadline) > 0 {
                return Some(slot as u16);
            }
            slot += 1;
        }
        None
    }

    /// A key, or a key with a deadline, each with the same chance.
    pub fn sample(&self, with_deadline: bool, random: &mut SmallRng) -> Option<EntryRef<'_>> {
        let candidates = self.total.of(with_deadline);
        if candidates == 0 {
            return None;
        }
        let mut left = random.random_range(0..candidates);
        let group = self.groups.iter().position(|counts| {
            let here = counts.of(with_deadline);
            let found = left < here;
            if !found {
                left -= here;
            }
            found
        })?;
        for table in self.slots.range(group * SLOTS_IN_GROUP, SLOTS_IN_GROUP) {
            let here = table.count(with_deadline);
            if left < here {
                return table.sample(with_deadline, |below| random.random_range(0..below));
            }
            left -= here;
        }
        None
    }

    #[inline]
    pub(crate) fn find(&self, slot: u16, hash: u64, key: &[u8]) -> Option<Position> {
        self.slots.get(slot)?.find(hash, key)
    }

    #[inline]
    pub(crate) fn at(&self, slot: u16, position: Position) -> EntryRef<'_> {
        self.slots[slot as usize].at(position)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, slot: u16, position: Position) -> EntryMut<'_> {
        let block = self.slots.at_mut(slot, position);
        let had_deadline = has_deadline(&block);
        let mark = block.view().mark();
        let field_deadline_ms = next_deadline_ms(block.view());
        let group = &mut self.groups[slot as usize / SLOTS_IN_GROUP];
        let (total, field_deadlines) = (&mut self.total, &mut self.field_deadlines);
        EntryMut { block, slot, mark, had_deadline, field_deadline_ms, group, total, field_deadlines }
    }

    /// Gives an entry this mark, and changes nothing else.
    #[inline]
    pub(crate) fn set_mark(&mut self, slot: u16, position: Position, mark: bool) {
        self.slots.at_mut(slot, position).set_mark(mark);
    }

    #[inline]
    pub(crate) fn insert(&mut self, slot: u16, hash: u64, entry: Entry) {
        self.prepare();
        let has_deadline = has_deadline(&entry);
        if let Some(deadline_ms) = next_deadline_ms(entry.view()) {
            self.field_deadlines.changed(slot, hash, None, Some(deadline_ms));
        }
        self.slots.insert(slot, hash, entry);
        self.groups[slot as usize / SLOTS_IN_GROUP].add(has_deadline);
        self.total.add(has_deadline);
    }

    #[inline]
    pub(crate) fn remove(&mut self, slot: u16, position: Position) -> Entry {
        let entry = self.slots.remove(slot, position);
        let has_deadline = has_deadline(&entry);
        self.groups[slot as usize / SLOTS_IN_GROUP].subtract(has_deadline);
        self.total.subtract(has_deadline);
        if let Some(deadline_ms) = next_deadline_ms(entry.view()) {
            self.field_deadlines.changed(slot, hash_key(entry.view().key()), Some(deadline_ms), None);
        }
        entry
    }

    /// Leaves the database as new; returns what there is to be freed.
    pub(crate) fn take_content(&mut self) -> (SlotTables, FieldDeadlines) {
        let content = mem::take(self);
        (content.slots, content.field_deadlines)
    }
}

/// An entry borrowed to be changed; its key must stay. When the borrow ends, the database takes note.
pub struct EntryMut<'a> {
    block: BlockMut<'a, Entry>,
    slot: u16,
    /// The entry's mark, which stays whatever becomes of the entry.
    mark: bool,
    had_deadline: bool,
    /// The earliest deadline of a field, before the change.
    field_deadline_ms: Option<i64>,
    group: &'a mut Counts,
    total: &'a mut Counts,
    field_deadlines: &'a mut FieldDeadlines,
}

impl Deref for EntryMut<'_> {
    type Target = Entry;
    #[inline]
    fn deref(&self) -> &Entry {
        &self.block
    }
}

impl DerefMut for EntryMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Entry {
        &mut self.block
    }
}

impl Drop for EntryMut<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.block.view().mark() != self.mark {
            self.block.set_mark(self.mark);
        }
        let has_deadline = has_deadline(&self.block);
        if has_deadline != self.had_deadline {
            self.group.set_deadline(has_deadline);
            self.total.set_deadline(has_deadline);
        }
        let field_deadline_ms = next_deadline_ms(self.block.view());
        if field_deadline_ms != self.field_deadline_ms {
            let hash = hash_key(self.block.view().key());
            self.field_deadlines.changed(self.slot, hash, self.field_deadline_ms, field_deadline_ms);
        }
    }
}
