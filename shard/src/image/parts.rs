//! Saving a collection in parts, while it changes.
//!
//! A collection of many elements would hold its core up if it were saved at once. It is begun instead, when the walk over
//! all keys comes to it or when it is about to change, and has a walk of its own from then on. An element that is to
//! be changed or removed before that walk has come to it is saved first; it, and what is added ahead of the walk, is
//! passed over later. So each element that was there at the beginning is saved once, as it was.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::HashSet;
use std::rc::Rc;

use crate::table::{Block, SCAN_BITS, Table};

/// Elements visited between two looks at how much has been saved.
const STEP: usize = 64;

/// Collections with at least so many elements are saved in parts.
pub(crate) const IN_PARTS_FROM: usize = 512;

/// How much is to be saved in one go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) elements: usize,
    pub(crate) bytes: usize,
}

/// What of a collection is saved and not written yet.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Elements, in order where the collection has one.
    pub(crate) elements: Vec<u8>,
    /// Elements of a list from its right end on, the last one first.
    pub(crate) from_the_right: Vec<u8>,
    /// Elements that are still to be saved.
    pub(crate) left: usize,
}

/// The parts of a collection, which the image and the collection both hold.
#[derive(Clone, Debug)]
pub(crate) struct SharedParts(Rc<RefCell<Parts>>);

impl SharedParts {
    /// Those of a collection of `elements` elements.
    pub(crate) fn new(elements: usize) -> SharedParts {
        SharedParts(Rc::new(RefCell::new(Parts { left: elements, ..Parts::default() })))
    }

    pub(crate) fn borrow(&self) -> Ref<'_, Parts> {
        self.0.borrow()
    }

    pub(crate) fn borrow_mut(&self) -> RefMut<'_, Parts> {
        self.0.borrow_mut()
    }

    /// Whether these are the same parts.
    pub(crate) fn are(&self, other: &SharedParts) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

/// The saving of a table's elements, while it goes on.
#[derive(Debug, Default)]
pub(crate) struct TableSaving(Option<Box<Saving>>);

/// Where the walk over a table of elements is, and what was changed ahead of it.
#[derive(Debug)]
struct Saving {
    parts: SharedParts,
    /// Elements whose hashes are below this scan position are saved.
    position: u64,
    /// Elements at or behind it that are not to be saved any more: they are already, or they are new.
    ahead: Ahead,
}

/// Names of elements.
#[derive(Debug, Default)]
pub(crate) struct Ahead(HashSet<Box<[u8]>>);

impl Ahead {
    #[inline]
    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        !self.0.is_empty() && self.0.contains(name)
    }
}

impl TableSaving {
    /// Begins to save all elements that are there now.
    pub(crate) fn begin(&mut self, parts: SharedParts) {
        self.0 = Some(Box::new(Saving { parts, position: 0, ahead: Ahead::default() }));
    }

    /// Ends it.
    pub(crate) fn stop(&mut self) {
        self.0 = None;
    }

    /// What is saved.
    pub(crate) fn parts(&self) -> Option<&SharedParts> {
        self.0.as_ref().map(|saving| &saving.parts)
    }

    /// Whether it goes on.
    #[inline]
    pub(crate) fn goes_on(&self) -> bool {
        self.0.is_some()
    }

    /// An element is about to change, or to be removed: `save` appends it as it is, unless that was done.
    #[cold]
    pub(crate) fn before_change(&mut self, hash: u64, name: &[u8], save: impl FnOnce(&mut Vec<u8>)) {
        let Some(saving) = &mut self.0 else { return };
        if saving.is_to_come(hash) && !saving.ahead.contains(name) {
            let mut parts = saving.parts.borrow_mut();
            save(&mut parts.elements);
            parts.left -= 1;
            saving.ahead.0.insert(name.into());
        }
    }

    /// An element was added.
    #[inline]
    pub(crate) fn added(&mut self, hash: u64, name: &[u8]) {
        if let Some(saving) = &mut self.0
            && saving.is_to_come(hash)
        {
            saving.ahead.0.insert(name.into());
        }
    }

    /// Saves some more elements of `table`; true, and it is over, when all are saved. `save_unless` appends an element,
    /// unless its name is among those ahead; whether it did.
    pub(crate) fn advance<T: Block>(
        &mut self,
        table: &Table<T>,
        budget: Budget,
        save_unless: impl Fn(T::Ref<'_>, &Ahead, &mut Vec<u8>) -> bool,
    ) -> bool {
        let done = self.0.as_mut().is_none_or(|saving| saving.advance(table, budget, save_unless));
        if done {
            self.0 = None;
        }
        done
    }
}

impl Saving {
    /// Whether the walk has still to come to an element with this hash.
    fn is_to_come(&self, hash: u64) -> bool {
        hash >> (u64::BITS - SCAN_BITS) >= self.position
    }

    fn advance<T: Block>(
        &mut self,
        table: &Table<T>,
        budget: Budget,
        save_unless: impl Fn(T::Ref<'_>, &Ahead, &mut Vec<u8>) -> bool,
    ) -> bool {
        let mut parts = self.parts.borrow_mut();
        let parts = &mut *parts;
        let mut visited = 0;
        while parts.left > 0 {
            let count = STEP.min(budget.elements - visited);
            let (seen, next) = table.scan(self.position, count, false, |element| {
                parts.left -= usize::from(save_unless(element, &self.ahead, &mut parts.elements));
            });
            visited += seen.max(1);
            let Some(position) = next else { break };
            self.position = position;
            if visited >= budget.elements || parts.elements.len() >= budget.bytes {
                return false;
            }
        }
        true
    }
}

/// Appends bytes with their length.
pub(crate) fn save_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let len = u32::try_from(bytes.len()).expect("the protocol bounds lengths below 4 GiB");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}
