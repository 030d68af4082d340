//! The deadlines of a large hash's fields in order, so that what is due is found without a walk.
//!
//! A field is told by the hash of its name: the table finds it by that. Should two fields of one deadline share all 64
//! bits, they share their place here; the second is then seen to have expired only when it is looked at.

use crate::ordered::OrderTree;

/// When a field expires, and the hash of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FieldDue {
    /// Ms since the epoch.
    pub(super) deadline_ms: i64,
    /// The hash of the name.
    pub(super) hash: u64,
}

/// The fields of a hash that have a deadline, the earliest first.
#[derive(Default)]
pub(super) struct Deadlines(OrderTree<FieldDue>);

impl Deadlines {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The earliest.
    pub(super) fn first(&self) -> Option<FieldDue> {
        self.0.first()
    }

    pub(super) fn add(&mut self, due: FieldDue) {
        self.0.insert(due, FieldDue::cmp);
    }

    pub(super) fn remove(&mut self, due: FieldDue) {
        self.0.remove(&due, FieldDue::cmp);
    }

    /// Frees about `budget` of them; true when nothing is left.
    pub(super) fn reclaim(&mut self, budget: usize) -> bool {
        self.0.reclaim(budget, drop)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}
