//! The large form: a deque of packed nodes.
//!
//! Elements are pushed into the node at their end until it is full. Changes in the middle split a node that would grow
//! past the limit and join nodes that together fit it, so that of two neighbours away from the ends at least half is
//! used. An element that is larger than the limit has a node of its own.

use std::collections::VecDeque;
use std::collections::vec_deque;
use std::ops::Range;

use super::node::Node;
use super::saving::Saving;
use super::{End, Limit, Wanted};
use crate::packed::{self, Element, Elements};

/// A list that has outgrown its packed form.
#[derive(Default)]
pub struct LargeList {
    pub(super) nodes: VecDeque<Node>,
    len: usize,
    /// Where an image is that is made of it.
    pub(super) saving: Option<Box<Saving>>,
}

/// Where an element is: its node and its bytes there.
#[derive(Clone, Debug)]
pub(super) struct Place {
    node: usize,
    /// Which element of the node it is.
    index: usize,
    range: Range<usize>,
}

impl LargeList {
    /// A list of `count` packed elements.
    pub(super) fn from_packed(elements: &[u8], count: usize, limit: Limit) -> LargeList {
        let mut list = LargeList::default();
        if count == 0 {
            return list;
        }
        if limit.admits(elements.len(), count) {
            list.nodes.push_back(Node::new(elements, count));
            list.len = count;
        } else {
            for (position, _) in Elements::new(elements) {
                list.push(End::Right, &elements[position.range()], limit);
            }
        }
        list
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A copy that shares nothing with the original.
    pub fn duplicate(&self) -> LargeList {
        LargeList { nodes: self.nodes.clone(), len: self.len, saving: None }
    }

    /// Frees about `budget` elements; true when nothing is left.
    pub fn reclaim(&mut self, budget: usize) -> bool {
        let mut freed = 0;
        while freed < budget {
            match self.nodes.pop_back() {
                Some(node) => freed += node.count().max(1),
                None => break,
            }
        }
        self.len = self.len.saturating_sub(freed);
        self.nodes.is_empty()
    }

    /// Bytes of memory it holds, about.
    pub fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.nodes.iter().map(Node::heap_bytes).sum::<usize>()
    }

    /// The packed elements of each node in turn, and how many they are.
    pub fn nodes(&self) -> impl Iterator<Item = (&[u8], usize)> {
        self.nodes.iter().map(|node| (node.packed(), node.count()))
    }

    /// Whether all elements would fit one packed sequence of this limit; cheap where they would not.
    pub(super) fn fits(&self, limit: Limit) -> bool {
        // The ends apart, two neighbours are more than a node together.
        self.nodes.len() <= 5 && limit.admits(self.nodes.iter().map(Node::len).sum(), self.len)
    }

    /// Adds one encoded element at an end.
    #[inline]
    pub(crate) fn push(&mut self, end: End, encoded: &[u8], limit: Limit) {
        self.len += 1;
        let last = match end {
            End::Left => self.nodes.front_mut(),
            End::Right => self.nodes.back_mut(),
        };
        let mut is_new = false;
        match last {
            Some(node) if node.admits(encoded.len(), 1, limit) => node.push(end, encoded, limit),
            full => {
                is_new = true;
                if let Some(node) = full {
                    node.seal();
                }
                let node = if encoded.len() > limit.bytes {
                    Node::new(encoded, 1)
                } else {
                    let mut node = Node::default();
                    node.push(end, encoded, limit);
                    node
                };
                match end {
                    End::Left => self.nodes.push_front(node),
                    End::Right => self.nodes.push_back(node),
                }
            }
        }
        if self.saving.is_some() {
            self.pushed_while_saving(end, is_new);
        }
    }

    /// Removes up to `count` elements from an end.
    pub(super) fn remove(&mut self, end: End, count: usize) {
        let mut left = count;
        while left > 0 {
            if self.saving.is_some() {
                self.save_before_removal(end, left);
            }
            let last = match end {
                End::Left => self.nodes.front_mut(),
                End::Right => self.nodes.back_mut(),
            };
            let Some(node) = last else { return };
            let in_node = node.count();
            if in_node > left {
                node.remove(end, left);
                self.len -= left;
                return;
            }
            match end {
                End::Left => self.nodes.pop_front(),
                End::Right => self.nodes.pop_back(),
            };
            self.len -= in_node;
            left -= in_node;
        }
    }

    /// The node that holds the `index`-th element, and which element of that node it is.
    fn seek(&self, index: usize) -> Option<(usize, usize)> {
        if index >= self.len {
            return None;
        }
        if index < self.len / 2 {
            let mut left = index;
            for (number, node) in self.nodes.iter().enumerate() {
                if left < node.count() {
                    return Some((number, left));
                }
                left -= node.count();
            }
        } else {
            let mut behind = self.len - index;
            for (number, node) in self.nodes.iter().enumerate().rev() {
                if behind <= node.count() {
                    return Some((number, node.count() - behind));
                }
                behind -= node.count();
            }
        }
        None
    }

    /// The `index`-th element.
    pub(super) fn get(&self, index: usize) -> Option<Element<'_>> {
        let (number, in_node) = self.seek(index)?;
        let node = &self.nodes[number];
        packed::get(node.packed(), in_node, node.count()).map(|(_, element)| element)
    }

    /// Where the `index`-th element is.
    pub(super) fn place(&self, index: usize) -> Option<Place> {
        let (number, in_node) = self.seek(index)?;
        let node = &self.nodes[number];
        let (range, _) = packed::get(node.packed(), in_node, node.count())?;
        Some(Place { node: number, index: in_node, range })
    }

    /// The elements from an end on without the first `skip`: those of the node it begins in, and the nodes after it.
    pub(super) fn walk(&self, end: End, skip: usize) -> Option<(Elements<'_>, vec_deque::Iter<'_, Node>)> {
        let index = match end {
            End::Left => skip,
            End::Right => self.len.checked_sub(skip)?.checked_sub(1)?,
        };
        let place = self.place(index)?;
        let elements = self.nodes[place.node].packed();
        Some(match end {
            End::Left => {
                (Elements::within(elements, place.range.start..elements.len()), self.nodes.range(place.node + 1..))
            }
            End::Right => (Elements::within(elements, 0..place.range.end), self.nodes.range(..place.node)),
        })
    }

    /// Where the first element that is `wanted` is.
    pub(super) fn find(&self, wanted: Wanted<'_>) -> Option<Place> {
        self.nodes.iter().enumerate().find_map(|(number, node)| {
            let mut elements = Elements::new(node.packed()).enumerate();
            elements.find(|(_, (_, element))| wanted.is(*element)).map(|(index, (position, _))| Place {
                node: number,
                index,
                range: position.range(),
            })
        })
    }

    /// Puts an encoded element in the place of another.
    pub(super) fn replace(&mut self, place: Place, encoded: &[u8], limit: Limit) {
        self.save_rest();
        let Place { node: number, index, range } = place;
        let node = &mut self.nodes[number];
        let count = node.count();
        if count == 1 || limit.admits(node.len() - range.len() + encoded.len(), count) {
            node.splice(range, encoded, count);
            self.join(number..number + 1, limit);
        } else {
            node.splice(range.clone(), &[], count - 1);
            self.len -= 1;
            self.insert_at(Place { node: number, index, range: range.start..range.start }, encoded, limit);
        }
    }

    /// Puts an encoded element beside another: before it (`Left`) or after it.
    pub(super) fn insert(&mut self, mut place: Place, side: End, encoded: &[u8], limit: Limit) {
        self.save_rest();
        match side {
            End::Left => place.range.end = place.range.start,
            End::Right => {
                place.range.start = place.range.end;
                place.index += 1;
            }
        }
        self.insert_at(place, encoded, limit);
    }

    /// Inserts an encoded element at the offset `place.range.start`, where the `place.index`-th element of the node
    /// begins or the node ends.
    fn insert_at(&mut self, place: Place, encoded: &[u8], limit: Limit) {
        let Place { node: number, index, range: Range { start: offset, .. } } = place;
        self.len += 1;
        let node = &mut self.nodes[number];
        let count = node.count();
        if node.admits(encoded.len(), 1, limit) {
            node.splice(offset..offset, encoded, count + 1);
            return;
        }
        // The new element goes between two nodes: beside the node, or between the halves of it.
        let between = if offset == 0 {
            number
        } else {
            if index < count {
                let behind = node.split_off(offset, index);
                self.nodes.insert(number + 1, behind);
            }
            number + 1
        };
        self.nodes.insert(between, Node::new(encoded, 1));
        // The node, the new one and what is behind it.
        self.join(number..number + 3, limit);
    }

    /// Removes up to `most` elements that are `wanted`, the ones nearest to `from`; returns how many.
    pub(super) fn remove_matching(&mut self, wanted: Wanted<'_>, most: usize, from: End, limit: Limit) -> usize {
        self.save_rest();
        let mut removed = 0;
        let mut changed: Option<Range<usize>> = None;
        for step in 0..self.nodes.len() {
            if removed == most {
                break;
            }
            let number = match from {
                End::Left => step,
                End::Right => self.nodes.len() - 1 - step,
            };
            let in_node = self.nodes[number].remove_matching(wanted, most - removed, from);
            if in_node > 0 {
                removed += in_node;
                changed = Some(match changed {
                    Some(range) => range.start.min(number)..range.end.max(number + 1),
                    None => number..number + 1,
                });
            }
        }
        self.len -= removed;
        if let Some(changed) = changed {
            self.join(changed, limit);
        }
        removed
    }

    /// Joins the nodes in `range` and the ones beside it with their neighbours wherever the limit allows, and drops the
    /// empty ones.
    fn join(&mut self, range: Range<usize>, limit: Limit) {
        let start = range.start.saturating_sub(1);
        let end = (range.end + 1).min(self.nodes.len());
        let mut kept = start;
        for number in start + 1..end {
            let node = std::mem::take(&mut self.nodes[number]);
            let before = &mut self.nodes[kept];
            if before.count() == 0 {
                *before = node;
            } else if node.count() > 0 && before.admits(node.len(), node.count(), limit) {
                before.append(&node);
            } else if node.count() > 0 {
                kept += 1;
                self.nodes[kept] = node;
            }
        }
        let drop_from = if self.nodes.get(kept).is_some_and(|node| node.count() == 0) { kept } else { kept + 1 };
        if drop_from < end {
            self.nodes.drain(drop_from..end);
        }
    }

    /// Whether every node holds what it may, for tests.
    #[cfg(test)]
    pub(super) fn check(&self, limit: Limit) {
        assert_eq!(self.len, self.nodes.iter().map(Node::count).sum::<usize>());
        for node in &self.nodes {
            assert!(node.count() > 0);
            assert_eq!(packed::validate(node.packed()), Some(node.count()));
            assert!(node.count() == 1 || limit.admits(node.len(), node.count()));
        }
    }
}
