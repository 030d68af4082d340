//! The nodes of the counted B+tree: how they split, join and are cut.
//!
//! All leaves are at the same depth and no node but the root is empty. A node is *thin* when it holds less than a quarter of
//! what it could. Only the root and the last node of each level may be thin: there, ascending insertion leaves full nodes
//! behind it and starts new ones.

use std::cmp::Ordering;
use std::mem::{replace, size_of};
use std::ops::Range;

use arrayvec::ArrayVec;

use crate::slab;

/// The account of what the nodes of a tree hold on the heap, kept as they change so that reading it costs nothing; it goes
/// with the tree.
#[derive(Default)]
pub(super) struct Heap {
    bytes: usize,
}

impl Heap {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives a leaf room for `len` keys, and takes back room it no longer needs.
    ///
    /// A leaf grows by an eighth of the most it can hold, so little of it is unused; it shrinks by two eighths at least, so
    /// that a key that comes and goes does not move it each time.
    fn fit<K, const LEAF: usize>(&mut self, keys: &mut Vec<K>, len: usize) {
        let step = const { if LEAF < 8 { 1 } else { LEAF / 8 } };
        let held = keys.capacity();
        if held >= len && held - len < 2 * step {
            return;
        }
        let wanted = len.next_multiple_of(step);
        if wanted > held {
            keys.reserve_exact(wanted - keys.len());
        } else {
            keys.shrink_to(wanted);
        }
        self.changed(keys.capacity() * size_of::<K>(), held * size_of::<K>());
    }

    fn leaf_freed<K>(&mut self, keys: &Vec<K>) {
        self.changed(0, keys.capacity() * size_of::<K>());
    }

    #[inline]
    fn changed(&mut self, taken: usize, given_back: usize) {
        self.bytes = self.bytes + taken - given_back;
        slab::note_outside(taken, given_back);
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        slab::note_outside(0, self.bytes);
    }
}

/// A node of the tree.
pub(super) enum Node<K, const LEAF: usize, const FANOUT: usize> {
    /// Keys in order.
    Leaf(Vec<K>),
    /// Children in order.
    Inner(Box<Inner<K, LEAF, FANOUT>>),
}

/// Children, with the first key of each and the number of keys under it: three arrays of equal length.
pub(super) struct Inner<K, const LEAF: usize, const FANOUT: usize> {
    firsts: ArrayVec<K, FANOUT>,
    counts: ArrayVec<usize, FANOUT>,
    children: ArrayVec<Node<K, LEAF, FANOUT>, FANOUT>,
}

/// What became of an insertion.
pub(super) enum Insertion<K, const LEAF: usize, const FANOUT: usize> {
    /// An equal key was there: nothing changed.
    Present,
    /// The key is in the node.
    Done,
    /// The key is in, and the node had to give its upper part away: this is to stand to its right.
    Split(Node<K, LEAF, FANOUT>),
}

impl<K: Copy, const LEAF: usize, const FANOUT: usize> Node<K, LEAF, FANOUT> {
    /// Adds a key. `rightmost` says that no node of this level stands to the right.
    pub(super) fn insert(
        &mut self,
        key: K,
        compare: &mut impl FnMut(&K, &K) -> Ordering,
        rightmost: bool,
        heap: &mut Heap,
    ) -> Insertion<K, LEAF, FANOUT> {
        match self {
            Node::Leaf(keys) => match search(keys, |probe| compare(probe, &key)) {
                Ok(_) => Insertion::Present,
                Err(at) => match insert_in_leaf::<K, LEAF>(keys, at, key, rightmost, heap) {
                    None => Insertion::Done,
                    Some(right) => Insertion::Split(Node::Leaf(right)),
                },
            },
            Node::Inner(inner) => inner.insert(key, compare, rightmost, heap),
        }
    }

    /// Removes the key that compares equal.
    pub(super) fn remove(&mut self, compare: &mut impl FnMut(&K) -> Ordering, heap: &mut Heap) -> Option<K> {
        match self {
            Node::Leaf(keys) => {
                let at = search(keys, compare).ok()?;
                Some(remove_from_leaf::<K, LEAF>(keys, at, heap))
            }
            Node::Inner(inner) => {
                let child = inner.child_before(&mut |probe| compare(probe) != Ordering::Greater);
                let key = inner.children[child].remove(compare, heap)?;
                inner.counts[child] -= 1;
                inner.mend(child, heap);
                Some(key)
            }
        }
    }

    /// Removes the key of a rank; `None` when there are not so many keys.
    pub(super) fn remove_at(&mut self, rank: usize, heap: &mut Heap) -> Option<K> {
        match self {
            Node::Leaf(keys) => (rank < keys.len()).then(|| remove_from_leaf::<K, LEAF>(keys, rank, heap)),
            Node::Inner(inner) => {
                let (child, rank_in_child) = inner.locate(rank);
                let key = inner.children.get_mut(child)?.remove_at(rank_in_child, heap)?;
                inner.counts[child] -= 1;
                inner.mend(child, heap);
                Some(key)
            }
        }
    }

    /// Removes the keys of a range of ranks, which is within the node and not empty, and hands them over in order.
    ///
    /// It leaves nodes thin along the cut: see [`Node::mend_towards`].
    pub(super) fn cut(&mut self, ranks: Range<usize>, removed: &mut impl FnMut(K), heap: &mut Heap) {
        match self {
            Node::Leaf(keys) => {
                keys.drain(ranks).for_each(removed);
                heap.fit::<K, LEAF>(keys, keys.len());
            }
            Node::Inner(inner) => inner.cut(ranks, removed, heap),
        }
    }

    /// Joins the thin nodes on the way to the key of a rank, which must be there, with their neighbours.
    pub(super) fn mend_towards(&mut self, rank: usize, heap: &mut Heap) {
        let Node::Inner(inner) = self else { return };
        // From the top down first: a thin node below may have no neighbour until its parent has got one.
        let (child, _) = inner.locate(rank);
        inner.mend(child, heap);
        let (child, rank_in_child) = inner.locate(rank);
        inner.children[child].mend_towards(rank_in_child, heap);
        inner.mend(child, heap);
    }

    /// As the root: gives way to an only child, or to an empty leaf when no child is left.
    pub(super) fn collapse(&mut self, heap: &mut Heap) {
        while let Node::Inner(inner) = self
            && inner.children.len() <= 1
        {
            heap.changed(0, size_of::<Inner<K, LEAF, FANOUT>>());
            *self = inner.children.pop().unwrap_or(Node::Leaf(Vec::new()));
        }
        if let Node::Leaf(keys) = self
            && keys.is_empty()
        {
            heap.leaf_freed(keys);
            *keys = Vec::new();
        }
    }

    /// Frees the node and hands its keys over in order. The depth of the recursion is that of the tree.
    fn dissolve(self, removed: &mut impl FnMut(K), heap: &mut Heap) {
        match self {
            Node::Leaf(keys) => {
                heap.leaf_freed(&keys);
                keys.into_iter().for_each(removed);
            }
            Node::Inner(inner) => {
                heap.changed(0, size_of::<Inner<K, LEAF, FANOUT>>());
                for child in inner.children {
                    child.dissolve(removed, heap);
                }
            }
        }
    }

    fn first(&self) -> Option<K> {
        match self {
            Node::Leaf(keys) => keys.first().copied(),
            Node::Inner(inner) => inner.firsts.first().copied(),
        }
    }

    fn count(&self) -> usize {
        match self {
            Node::Leaf(keys) => keys.len(),
            Node::Inner(inner) => inner.counts.iter().sum(),
        }
    }

    pub(super) fn is_thin(&self) -> bool {
        match self {
            Node::Leaf(keys) => keys.len() < (LEAF / 4).max(2),
            Node::Inner(inner) => inner.children.len() < (FANOUT / 4).max(2),
        }
    }
}

impl<K: Copy, const LEAF: usize, const FANOUT: usize> Inner<K, LEAF, FANOUT> {
    fn new(heap: &mut Heap) -> Box<Self> {
        heap.changed(size_of::<Self>(), 0);
        Box::new(Self { firsts: ArrayVec::new(), counts: ArrayVec::new(), children: ArrayVec::new() })
    }

    /// A root over two nodes.
    pub(super) fn of_two(left: Node<K, LEAF, FANOUT>, right: Node<K, LEAF, FANOUT>, heap: &mut Heap) -> Box<Self> {
        let mut inner = Self::new(heap);
        inner.place(0, left);
        inner.place(1, right);
        inner
    }

    pub(super) fn child(&self, at: usize) -> &Node<K, LEAF, FANOUT> {
        &self.children[at]
    }

    /// The last child whose first key is `before`, or the first child.
    pub(super) fn child_before(&self, before: &mut impl FnMut(&K) -> bool) -> usize {
        partition_point(&self.firsts, before).saturating_sub(1)
    }

    /// The number of keys in the children to the left of one.
    pub(super) fn keys_ahead_of(&self, child: usize) -> usize {
        self.counts[..child].iter().sum()
    }

    /// The child that holds the key of a rank, and the key's rank in it. The number of children when there are not so many
    /// keys.
    pub(super) fn locate(&self, mut rank: usize) -> (usize, usize) {
        for (child, count) in self.counts.iter().enumerate() {
            match rank.checked_sub(*count) {
                None => return (child, rank),
                Some(rest) => rank = rest,
            }
        }
        (self.counts.len(), rank)
    }

    fn insert(
        &mut self,
        key: K,
        compare: &mut impl FnMut(&K, &K) -> Ordering,
        rightmost: bool,
        heap: &mut Heap,
    ) -> Insertion<K, LEAF, FANOUT> {
        let at = self.child_before(&mut |probe| compare(probe, &key) != Ordering::Greater);
        let child_is_rightmost = rightmost && at + 1 == self.children.len();
        match self.children[at].insert(key, compare, child_is_rightmost, heap) {
            Insertion::Present => Insertion::Present,
            Insertion::Done => {
                self.counts[at] += 1;
                self.refresh_first(at);
                Insertion::Done
            }
            Insertion::Split(right) => {
                self.counts[at] = self.children[at].count();
                self.refresh_first(at);
                match self.add(at + 1, right, rightmost, heap) {
                    None => Insertion::Done,
                    Some(right) => Insertion::Split(Node::Inner(right)),
                }
            }
        }
    }

    /// Adds a child; returns the upper part of the children when they had to be split.
    fn add(&mut self, at: usize, child: Node<K, LEAF, FANOUT>, rightmost: bool, heap: &mut Heap) -> Option<Box<Self>> {
        if self.children.len() < FANOUT {
            self.place(at, child);
            return None;
        }
        let mut right = Self::new(heap);
        let kept = kept_in_split(at, FANOUT, rightmost);
        self.level(&mut right, kept);
        match at.checked_sub(kept) {
            Some(at_in_right) => right.place(at_in_right, child),
            None => self.place(at, child),
        }
        Some(right)
    }

    /// Puts a child where there is room for it.
    fn place(&mut self, at: usize, child: Node<K, LEAF, FANOUT>) {
        let Some(first) = child.first() else { return };
        self.firsts.insert(at, first);
        self.counts.insert(at, child.count());
        self.children.insert(at, child);
    }

    /// Moves children between two neighbours so that the left has `kept`.
    fn level(&mut self, right: &mut Self, kept: usize) {
        level(&mut self.firsts, &mut right.firsts, kept);
        level(&mut self.counts, &mut right.counts, kept);
        level(&mut self.children, &mut right.children, kept);
    }

    fn refresh_first(&mut self, at: usize) {
        if let Some(first) = self.children[at].first() {
            self.firsts[at] = first;
        }
    }

    /// After a child lost keys: drops it when it is empty, and joins it with a neighbour when it is thin.
    fn mend(&mut self, at: usize, heap: &mut Heap) {
        let Some(first) = self.children[at].first() else {
            self.firsts.remove(at);
            self.counts.remove(at);
            self.children.remove(at).dissolve(&mut |_| {}, heap);
            return;
        };
        self.firsts[at] = first;
        if self.children[at].is_thin() && self.children.len() > 1 {
            self.join(at.saturating_sub(1), heap);
        }
    }

    /// Makes one node of a child and the next if that leaves room to grow, and else shares what they hold evenly.
    fn join(&mut self, at: usize, heap: &mut Heap) {
        let [left, right, ..] = &mut self.children[at..] else { return };
        match (left, right) {
            (Node::Leaf(left), Node::Leaf(right)) => {
                let total = left.len() + right.len();
                let kept = kept_in_join(total, LEAF);
                heap.fit::<K, LEAF>(left, kept.max(left.len()));
                heap.fit::<K, LEAF>(right, (total - kept).max(right.len()));
                match kept.checked_sub(left.len()) {
                    Some(moved) => left.extend(right.drain(..moved)),
                    None => {
                        let moved = left.len() - kept;
                        right.extend(left.drain(kept..));
                        right.rotate_right(moved);
                    }
                }
                heap.fit::<K, LEAF>(left, left.len());
                heap.fit::<K, LEAF>(right, right.len());
            }
            (Node::Inner(left), Node::Inner(right)) => {
                let kept = kept_in_join(left.children.len() + right.children.len(), FANOUT);
                left.level(right, kept);
            }
            // All leaves are at the same depth.
            _ => return,
        }
        self.counts[at] = self.children[at].count();
        self.counts[at + 1] = self.children[at + 1].count();
        if self.counts[at + 1] == 0 {
            self.firsts.remove(at + 1);
            self.counts.remove(at + 1);
            self.children.remove(at + 1).dissolve(&mut |_| {}, heap);
        } else {
            self.refresh_first(at + 1);
        }
    }

    fn cut(&mut self, ranks: Range<usize>, removed: &mut impl FnMut(K), heap: &mut Heap) {
        let mut start = 0;
        // The children that go as a whole stand together.
        let mut whole = 0..0;
        for at in 0..self.children.len() {
            let end = start + self.counts[at];
            let cut = ranks.start.max(start)..ranks.end.min(end);
            if cut == (start..end) {
                replace(&mut self.children[at], Node::Leaf(Vec::new())).dissolve(removed, heap);
                whole = if whole.is_empty() { at..at + 1 } else { whole.start..at + 1 };
            } else if !cut.is_empty() {
                self.counts[at] -= cut.len();
                self.children[at].cut(cut.start - start..cut.end - start, removed, heap);
                self.refresh_first(at);
            }
            start = end;
        }
        self.firsts.drain(whole.clone());
        self.counts.drain(whole.clone());
        self.children.drain(whole);
    }
}

/// The number of keys, from the first, for which `before` is true.
///
/// The keys of a node are most often not in the processor's caches. Probes at fixed places, one in each block of keys, can
/// be loaded together, where each probe of a binary search must wait for the one before it.
pub(super) fn partition_point<K>(keys: &[K], before: &mut impl FnMut(&K) -> bool) -> usize {
    const BLOCK: usize = 8;
    let mut start = 0;
    while let Some(last) = keys.get(start + BLOCK - 1)
        && before(last)
    {
        start += BLOCK;
    }
    start + keys[start..].iter().take(BLOCK).take_while(|key| before(key)).count()
}

/// The place of the key that compares equal, or the place where it would be.
pub(super) fn search<K>(keys: &[K], mut compare: impl FnMut(&K) -> Ordering) -> Result<usize, usize> {
    let mut found = false;
    let at = partition_point(keys, &mut |probe| {
        let ordering = compare(probe);
        found |= ordering == Ordering::Equal;
        ordering == Ordering::Less
    });
    if found { Ok(at) } else { Err(at) }
}

/// Adds a key to a leaf; returns the upper part of the keys when they had to be split.
fn insert_in_leaf<K: Copy, const LEAF: usize>(
    keys: &mut Vec<K>,
    at: usize,
    key: K,
    rightmost: bool,
    heap: &mut Heap,
) -> Option<Vec<K>> {
    if keys.len() < LEAF {
        heap.fit::<K, LEAF>(keys, keys.len() + 1);
        keys.insert(at, key);
        return None;
    }
    let kept = kept_in_split(at, LEAF, rightmost);
    let mut right = Vec::new();
    heap.fit::<K, LEAF>(&mut right, LEAF - kept + usize::from(at >= kept));
    right.extend(keys.drain(kept..));
    match at.checked_sub(kept) {
        Some(at_in_right) => right.insert(at_in_right, key),
        None => keys.insert(at, key),
    }
    heap.fit::<K, LEAF>(keys, keys.len());
    Some(right)
}

fn remove_from_leaf<K: Copy, const LEAF: usize>(keys: &mut Vec<K>, at: usize, heap: &mut Heap) -> K {
    let key = keys.remove(at);
    heap.fit::<K, LEAF>(keys, keys.len());
    key
}

/// How many of the items of a full node stay in it when one more comes at `at`: half, or all when the new one is the last of
/// its whole level, so that ascending insertion leaves full nodes.
fn kept_in_split(at: usize, limit: usize, rightmost: bool) -> usize {
    if rightmost && at == limit { limit } else { limit / 2 }
}

/// How many of the items of two neighbours the left one gets: all if they fill no more than three quarters of it, so that it
/// is not split again soon, and else half.
fn kept_in_join(total: usize, limit: usize) -> usize {
    if total <= limit - limit / 4 { total } else { total / 2 }
}

/// Moves items between two neighbours, in order, so that the left has `kept`.
fn level<T, const N: usize>(left: &mut ArrayVec<T, N>, right: &mut ArrayVec<T, N>, kept: usize) {
    match kept.checked_sub(left.len()) {
        Some(moved) => left.extend(right.drain(..moved)),
        None => {
            let moved = left.len() - kept;
            right.extend(left.drain(kept..));
            right.rotate_right(moved);
        }
    }
}

#[cfg(test)]
impl<K: Copy + Ord + std::fmt::Debug, const LEAF: usize, const FANOUT: usize> Node<K, LEAF, FANOUT> {
    /// Checks what the module promises of its nodes; returns the depth and the bytes held, and appends the keys.
    pub(super) fn check(&self, is_root: bool, is_last: bool, all: &mut Vec<K>) -> (usize, usize) {
        assert!(is_root || self.count() > 0, "an empty node");
        assert!(is_root || is_last || !self.is_thin(), "a thin node within the tree");
        match self {
            Node::Leaf(keys) => {
                assert!(keys.len() <= LEAF);
                all.extend(keys);
                (0, keys.capacity() * size_of::<K>())
            }
            Node::Inner(inner) => {
                assert!(!is_root || inner.children.len() > 1, "a root of one child");
                assert_eq!(inner.firsts.len(), inner.children.len());
                assert_eq!(inner.counts.len(), inner.children.len());
                let mut bytes = size_of::<Inner<K, LEAF, FANOUT>>();
                let mut depths = Vec::new();
                for (at, child) in inner.children.iter().enumerate() {
                    assert_eq!(Some(inner.firsts[at]), child.first());
                    assert_eq!(inner.counts[at], child.count());
                    let child_is_last = is_last && at + 1 == inner.children.len();
                    let (depth, child_bytes) = child.check(false, child_is_last, all);
                    depths.push(depth);
                    bytes += child_bytes;
                }
                assert!(depths.iter().all(|depth| *depth == depths[0]), "leaves at different depths");
                (depths[0] + 1, bytes)
            }
        }
    }
}
