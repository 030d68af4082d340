//! An ordered set of small keys that knows the rank of each: a counted B+tree.
//!
//! Keys sit in leaves, arrays of up to 64 of them; inner nodes hold, for each child, its first key and the number of keys
//! under it, so that a key is found from its rank and a rank from its key in one descent. Where a skip list pays two or
//! more pointers and an allocation for each element, this pays a fraction of a word.
//!
//! The order of keys may depend on data that lives outside them (a key may be a score and the address of a member), so the
//! comparison is an argument of each operation that needs one. It must be the same total order each time. A key that has
//! been removed is never given to a later comparison, so what it refers to may be freed.
//!
//! No operation on a single key moves more than a few nodes whatever the size of the set, and nothing is stored in one
//! growing block.

mod node;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::iter::FusedIterator;
use std::ops::Range;
use std::slice;

use node::{Heap, Inner, Insertion, Node};

/// Keys in sorted order, each present once, with ranks counted from 0.
///
/// `LEAF` is the most keys a leaf holds and `FANOUT` the most children an inner node has; both are at least 4. The defaults
/// make a full leaf of 16-byte keys fill a kibibyte, and an inner node a little less than one and a half.
pub struct OrderTree<K, const LEAF: usize = 64, const FANOUT: usize = 31> {
    root: Node<K, LEAF, FANOUT>,
    len: usize,
    heap: Heap,
}

impl<K: Copy> OrderTree<K> {
    /// An empty tree. It allocates nothing until the first key.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K, const LEAF: usize, const FANOUT: usize> Default for OrderTree<K, LEAF, FANOUT> {
    fn default() -> Self {
        const { assert!(LEAF >= 4 && FANOUT >= 4, "nodes are too small to be split and joined") };
        Self { root: Node::Leaf(Vec::new()), len: 0, heap: Heap::default() }
    }
}

impl<K: Copy, const LEAF: usize, const FANOUT: usize> OrderTree<K, LEAF, FANOUT> {
    /// The number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of heap its nodes hold, not counting what the allocator adds.
    pub fn heap_bytes(&self) -> usize {
        self.heap.bytes()
    }

    /// Adds a key in its place; `false`, and no change, when an equal one is there.
    ///
    /// `compare` is called with a key of the tree and `key`.
    pub fn insert(&mut self, key: K, mut compare: impl FnMut(&K, &K) -> Ordering) -> bool {
        match self.root.insert(key, &mut compare, true, &mut self.heap) {
            Insertion::Present => return false,
            Insertion::Done => {}
            Insertion::Split(right) => {
                let left = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
                self.root = Node::Inner(Inner::of_two(left, right, &mut self.heap));
            }
        }
        self.len += 1;
        true
    }

    /// Removes the key equal to `key` and returns it as it was stored.
    ///
    /// `compare` is called with a key of the tree and `key`.
    pub fn remove(&mut self, key: &K, mut compare: impl FnMut(&K, &K) -> Ordering) -> Option<K> {
        let removed = self.root.remove(&mut |probe| compare(probe, key), &mut self.heap)?;
        self.shrunk_by_one();
        Some(removed)
    }

    /// Removes the key of a rank.
    pub fn remove_at(&mut self, rank: usize) -> Option<K> {
        let key = self.root.remove_at(rank, &mut self.heap)?;
        self.shrunk_by_one();
        Some(key)
    }

    /// Removes the smallest key.
    pub fn pop_first(&mut self) -> Option<K> {
        self.remove_at(0)
    }

    /// Removes the largest key.
    pub fn pop_last(&mut self) -> Option<K> {
        self.remove_at(self.len.checked_sub(1)?)
    }

    /// The number of keys for which `before` is true, that is the rank of the first for which it is false.
    ///
    /// `before` must be true for a run of keys from the first and false from there on.
    pub fn partition_point(&self, mut before: impl FnMut(&K) -> bool) -> usize {
        let mut node = &self.root;
        let mut rank = 0;
        loop {
            match node {
                Node::Leaf(keys) => return rank + node::partition_point(keys, &mut before),
                Node::Inner(inner) => {
                    let child = inner.child_before(&mut before);
                    rank += inner.keys_ahead_of(child);
                    node = inner.child(child);
                }
            }
        }
    }

    /// The rank of the key equal to `key`.
    ///
    /// `compare` is called with a key of the tree and `key`.
    pub fn rank(&self, key: &K, mut compare: impl FnMut(&K, &K) -> Ordering) -> Option<usize> {
        let mut node = &self.root;
        let mut rank = 0;
        loop {
            match node {
                Node::Leaf(keys) => {
                    return node::search(keys, |probe| compare(probe, key)).ok().map(|at| rank + at);
                }
                Node::Inner(inner) => {
                    let child = inner.child_before(&mut |probe| compare(probe, key) != Ordering::Greater);
                    rank += inner.keys_ahead_of(child);
                    node = inner.child(child);
                }
            }
        }
    }

    /// The key of a rank.
    pub fn get(&self, rank: usize) -> Option<K> {
        let (keys, at) = self.leaf_of(rank)?;
        keys.get(at).copied()
    }

    /// The smallest key.
    pub fn first(&self) -> Option<K> {
        self.get(0)
    }

    /// The largest key.
    pub fn last(&self) -> Option<K> {
        self.get(self.len.checked_sub(1)?)
    }

    /// The keys of a range of ranks, from either end. Ranks past the last key are left out.
    pub fn range(&self, ranks: Range<usize>) -> Keys<'_, K, LEAF, FANOUT> {
        Keys { tree: self, ranks: self.clamp(ranks), front: [].iter(), back: [].iter() }
    }

    /// Removes the keys of a range of ranks and hands them over in order. Ranks past the last key are left out.
    ///
    /// Nodes that lie in the range as a whole are freed as a whole: the work is that of visiting each key once, and of two
    /// descents.
    pub fn remove_range(&mut self, ranks: Range<usize>, mut removed: impl FnMut(K)) {
        let ranks = self.clamp(ranks);
        if ranks.is_empty() {
            return;
        }
        self.root.cut(ranks.clone(), &mut removed, &mut self.heap);
        self.len -= ranks.len();
        self.root.collapse(&mut self.heap);
        if ranks.start < self.len {
            self.root.mend_towards(ranks.start, &mut self.heap);
        }
        if let Some(last_kept) = ranks.start.checked_sub(1) {
            self.root.mend_towards(last_kept, &mut self.heap);
        }
        self.root.collapse(&mut self.heap);
    }

    /// Removes up to `budget` of the largest keys and frees their nodes; whether the tree is now empty.
    ///
    /// Called until it returns true, it frees a tree of any size in bounded steps.
    pub fn reclaim(&mut self, budget: usize, removed: impl FnMut(K)) -> bool {
        self.remove_range(self.len.saturating_sub(budget)..self.len, removed);
        self.is_empty()
    }

    fn shrunk_by_one(&mut self) {
        self.len -= 1;
        self.root.collapse(&mut self.heap);
    }

    fn clamp(&self, ranks: Range<usize>) -> Range<usize> {
        let end = ranks.end.min(self.len);
        ranks.start.min(end)..end
    }

    /// The leaf that holds the key of a rank, and where in it.
    fn leaf_of(&self, mut rank: usize) -> Option<(&[K], usize)> {
        if rank >= self.len {
            return None;
        }
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(keys) => return Some((keys, rank)),
                Node::Inner(inner) => {
                    let (child, rank_in_child) = inner.locate(rank);
                    node = inner.child(child);
                    rank = rank_in_child;
                }
            }
        }
    }
}

/// The keys of a range of ranks; made by [`OrderTree::range`].
///
/// It keeps its place within a leaf at each end and descends by rank for the next leaf, so a step costs the leaf's share of
/// one descent.
pub struct Keys<'a, K, const LEAF: usize, const FANOUT: usize> {
    tree: &'a OrderTree<K, LEAF, FANOUT>,
    /// The ranks not yet handed out: they bound `front` and `back`, either of which may reach past the other.
    ranks: Range<usize>,
    front: slice::Iter<'a, K>,
    back: slice::Iter<'a, K>,
}

impl<K: Copy, const LEAF: usize, const FANOUT: usize> Iterator for Keys<'_, K, LEAF, FANOUT> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        let rank = self.ranks.next()?;
        if let Some(key) = self.front.next() {
            return Some(*key);
        }
        let (keys, at) = self.tree.leaf_of(rank)?;
        self.front = keys.get(at..)?.iter();
        self.front.next().copied()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ranks.size_hint()
    }
}

impl<K: Copy, const LEAF: usize, const FANOUT: usize> DoubleEndedIterator for Keys<'_, K, LEAF, FANOUT> {
    fn next_back(&mut self) -> Option<K> {
        let rank = self.ranks.next_back()?;
        if let Some(key) = self.back.next_back() {
            return Some(*key);
        }
        let (keys, at) = self.tree.leaf_of(rank)?;
        self.back = keys.get(..=at)?.iter();
        self.back.next_back().copied()
    }
}

impl<K: Copy, const LEAF: usize, const FANOUT: usize> ExactSizeIterator for Keys<'_, K, LEAF, FANOUT> {}

impl<K: Copy, const LEAF: usize, const FANOUT: usize> FusedIterator for Keys<'_, K, LEAF, FANOUT> {}
