//! Which keys of a database hold hashes with fields that expire, in the order of the earliest deadline of each.
//!
//! A key is told by its slot and its hash, which finds it in the slot's table. Should two keys of one slot and one
//! deadline share all 64 bits, they share their place here, and fields of the second are seen to have expired only when
//! they are looked at.

use crate::ordered::OrderTree;

const SLOT_BITS: u32 = 14;

/// Deadlines from here on are as one: 35,000 years from the epoch.
const LAST_MS: i64 = (1 << (u64::BITS - SLOT_BITS)) - 1;

/// A hash, and the earliest deadline of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HashDue {
    /// The deadline in ms since the epoch, and in the lowest bits the slot.
    deadline_and_slot: u64,
    hash: u64,
}

impl HashDue {
    pub(crate) fn new(deadline_ms: i64, slot: u16, hash: u64) -> HashDue {
        let deadline_ms = deadline_ms.clamp(0, LAST_MS) as u64;
        HashDue { deadline_and_slot: deadline_ms << SLOT_BITS | u64::from(slot), hash }
    }

    pub(crate) fn deadline_ms(self) -> i64 {
        (self.deadline_and_slot >> SLOT_BITS) as i64
    }

    pub(crate) fn slot(self) -> u16 {
        (self.deadline_and_slot & ((1 << SLOT_BITS) - 1)) as u16
    }

    /// The hash of the key.
    pub(crate) fn hash(self) -> u64 {
        self.hash
    }
}

/// The hashes of a database that have fields with a deadline.
#[derive(Default)]
pub(crate) struct FieldDeadlines(OrderTree<HashDue>);

impl FieldDeadlines {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The hash with the earliest deadline, if that is not after `now_ms`.
    pub(crate) fn first_until(&self, now_ms: i64) -> Option<HashDue> {
        self.0.first().filter(|due| due.deadline_ms() <= now_ms)
    }

    pub(crate) fn remove(&mut self, due: HashDue) {
        self.0.remove(&due, HashDue::cmp);
    }

    /// Notes that the earliest deadline of the hash with key hash `hash` in `slot` changed.
    #[cold]
    pub(crate) fn changed(&mut self, slot: u16, hash: u64, before_ms: Option<i64>, after_ms: Option<i64>) {
        if let Some(before_ms) = before_ms {
            self.remove(HashDue::new(before_ms, slot, hash));
        }
        if let Some(after_ms) = after_ms {
            self.0.insert(HashDue::new(after_ms, slot, hash), HashDue::cmp);
        }
    }

    /// Frees about `budget` of them; true when nothing is left.
    pub(crate) fn reclaim(&mut self, budget: usize) -> bool {
        self.0.reclaim(budget, drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::SLOTS;

    #[test]
    fn what_goes_in_comes_out_in_the_order_of_deadlines() {
        const { assert!(SLOTS == 1 << SLOT_BITS) };
        let mut deadlines = FieldDeadlines::default();
        for (deadline_ms, slot, hash) in [(50, 16_383, 1), (7, 0, u64::MAX), (1 << 48, 3, 9), (7, 12, 0)] {
            deadlines.changed(slot, hash, None, Some(deadline_ms));
        }
        assert_eq!(deadlines.first_until(6), None);
        let mut order = Vec::new();
        while let Some(due) = deadlines.first_until(i64::MAX) {
            order.push((due.deadline_ms(), due.slot(), due.hash()));
            deadlines.remove(due);
        }
        assert_eq!(order, [(7, 0, u64::MAX), (7, 12, 0), (50, 16_383, 1), (1 << 48, 3, 9)]);
    }

    #[test]
    fn a_deadline_that_moves_takes_its_place_along() {
        let mut deadlines = FieldDeadlines::default();
        deadlines.changed(1, 2, None, Some(i64::MAX));
        assert_eq!(deadlines.len(), 1);
        deadlines.changed(1, 2, Some(i64::MAX), Some(100));
        assert_eq!(deadlines.first_until(100), Some(HashDue::new(100, 1, 2)));
        deadlines.changed(1, 2, Some(100), None);
        assert!(deadlines.is_empty());
    }
}
