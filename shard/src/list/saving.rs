//! Saving a large list in parts, while it changes (see [`crate::image::parts`]).
//!
//! It is saved from the left, node by node. What is pushed to the left is before what is saved, and what is pushed to the
//! right is behind what is to be saved; elements that are popped before the walk has come to them are saved first, those
//! at the right end in their own order. Before any other change the rest is saved in one go: such a change visits much of
//! the list itself.

use super::End;
use super::large::LargeList;
use crate::image::parts::{Budget, SharedParts, save_bytes};
use crate::packed::Elements;

/// Where the walk over a list is.
#[derive(Debug)]
pub(super) struct Saving {
    parts: SharedParts,
    /// The first node that is not saved; never the first of all while something is left to be saved.
    next_node: usize,
    /// Elements at the right end that were pushed since it began.
    pushed_right: usize,
}

impl LargeList {
    /// Begins to save the elements, all that are there now.
    pub(crate) fn begin_saving(&mut self, parts: SharedParts) {
        self.saving = Some(Box::new(Saving { parts, next_node: 0, pushed_right: 0 }));
        self.save_node();
    }

    /// Gives what saves the elements of each node.
    pub(crate) fn save_all(&self, mut save: impl FnMut(&dyn Fn(&mut Vec<u8>))) {
        self.nodes.iter().for_each(|node| save(&|out| save_bytes(node.packed(), out)));
    }

    /// Stops saving.
    pub(crate) fn stop_saving(&mut self) {
        self.saving = None;
    }

    /// What is saved of it, while that goes on.
    pub(crate) fn parts(&self) -> Option<&SharedParts> {
        self.saving.as_ref().map(|saving| &saving.parts)
    }

    /// Saves some more; true when all elements are saved.
    pub(crate) fn save_some(&mut self, budget: Budget) -> bool {
        let (mut visited, mut bytes) = (0, 0);
        while self.saving.is_some() && visited < budget.elements && bytes < budget.bytes {
            let (elements, len) = self.save_node();
            visited += elements;
            bytes += len;
        }
        self.saving.is_none()
    }

    /// Saves all that is left.
    #[cold]
    pub(super) fn save_rest(&mut self) {
        while self.saving.is_some() {
            self.save_node();
        }
    }

    /// Saves the elements of the next node; how many they are, and their bytes.
    fn save_node(&mut self) -> (usize, usize) {
        let Some(saving) = &mut self.saving else { return (0, 0) };
        let mut parts = saving.parts.borrow_mut();
        let Some(node) = self.nodes.get(saving.next_node).filter(|_| parts.left > 0) else {
            drop(parts);
            self.saving = None;
            return (0, 0);
        };
        saving.next_node += 1;
        let (packed, count) = (node.packed(), node.count().min(parts.left));
        // Behind what was there at the beginning are elements pushed since.
        let first_behind = if count < node.count() { Elements::new(packed).nth(count) } else { None };
        let end = first_behind.map_or(packed.len(), |(position, _)| position.range().start);
        save_bytes(&packed[..end], &mut parts.elements);
        parts.left -= count;
        let is_done = parts.left == 0;
        drop(parts);
        if is_done {
            self.saving = None;
        }
        (count, end)
    }

    /// An element was pushed to an end, into a new node if `is_new`.
    #[cold]
    pub(super) fn pushed_while_saving(&mut self, end: End, is_new: bool) {
        if let Some(saving) = &mut self.saving {
            match end {
                End::Left => saving.next_node += usize::from(is_new),
                End::Right => saving.pushed_right += 1,
            }
        }
    }

    /// Up to `count` elements of the node at an end are about to be removed, the node with the last of them.
    #[cold]
    pub(super) fn save_before_removal(&mut self, end: End, count: usize) {
        let Some(saving) = &mut self.saving else { return };
        let node = match end {
            End::Left => self.nodes.front(),
            End::Right => self.nodes.back(),
        };
        let Some(node) = node else { return };
        let count = count.min(node.count());
        match end {
            End::Left if count == node.count() => {
                // The node goes. The one that is the first then is saved, too.
                if saving.next_node == 1 {
                    self.save_node();
                }
                if let Some(saving) = &mut self.saving {
                    saving.next_node -= 1;
                }
            }
            End::Left => {}
            End::Right => {
                let pushed = count.min(saving.pushed_right);
                saving.pushed_right -= pushed;
                let mut parts = saving.parts.borrow_mut();
                let saved = (count - pushed).min(parts.left);
                parts.left -= saved;
                let elements = Elements::new(node.packed()).rev().skip(pushed).take(saved);
                for (position, _) in elements {
                    save_bytes(&node.packed()[position.range()], &mut parts.from_the_right);
                }
                let is_done = parts.left == 0;
                drop(parts);
                if is_done {
                    self.saving = None;
                }
            }
        }
    }
}
