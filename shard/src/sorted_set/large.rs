//! The large form of a sorted set: a table of scored members and a tree that keeps them in order.
//!
//! The tree's keys refer to the table's blocks. A block never moves: its score is changed where it is, and the tree is
//! told of it. So that no comparison ever follows an address that is no longer good, a place leaves the tree before its
//! block leaves the table or gets another score, and enters it after the block is there.

use std::ops::Range;

use crate::hash_key;
use crate::image::parts::{Budget, TableSaving, save_bytes};
use crate::ordered::{Keys, OrderTree};
use crate::packed::Element;
use crate::sorted_set::packed::Pairs;
use crate::sorted_set::range::{LexRange, ScoreRange};
use crate::sorted_set::scored::{Place, Scored, ScoredRef};
use crate::sorted_set::{Effect, Updated};
use crate::table::{Position, Table};

/// Scores by member, in no order: what a union or an intersection is gathered in.
#[derive(Default)]
pub struct Scores {
    table: Table<Scored>,
}

/// A sorted set that has outgrown its packed form.
#[derive(Default)]
pub struct LargeSortedSet {
    table: Table<Scored>,
    order: OrderTree<Place>,
    block_bytes: usize,
    /// Where an image is that is made of it.
    pub(crate) saving: TableSaving,
}

fn save_scored(scored: ScoredRef<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&scored.score().to_le_bytes());
    save_bytes(scored.member(), out);
}

/// Compares two places of a tree.
macro_rules! by_place {
    () => {
        // SAFETY: the blocks of all places in the tree live, see the module's invariant, and so does the one looked for.
        |place, other| unsafe { place.compare(other) }
    };
}

impl Scores {
    /// Number of members.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Sets the score of `member` to what `merge` makes of the one it has, if it is there.
    pub fn merge(&mut self, member: &[u8], merge: impl FnOnce(Option<f64>) -> f64) {
        let hash = hash_key(member);
        match self.table.find(hash, member) {
            Some(position) => {
                let score = merge(Some(self.table.at(position).score()));
                self.table.at_mut(position).set_score(score);
            }
            None => {
                self.table.insert(hash, Scored::new(member, merge(None)));
            }
        }
    }

    /// Removes a member; whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let position = self.table.find(hash_key(member), member);
        position.map(|position| self.table.remove(position)).is_some()
    }
}

/// Puts the members in order.
impl From<Scores> for LargeSortedSet {
    fn from(scores: Scores) -> LargeSortedSet {
        let mut places: Vec<Place> = scores.table.iter().map(ScoredRef::place).collect();
        places.sort_unstable_by(by_place!());
        let mut order = OrderTree::new();
        for place in places {
            order.insert(place, by_place!());
        }
        let block_bytes = scores.table.iter().map(ScoredRef::block_bytes).sum();
        LargeSortedSet { table: scores.table, order, block_bytes, saving: TableSaving::default() }
    }
}

impl LargeSortedSet {
    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        // Of a set that is being freed this is what remains to be done: the tree is never emptied before the table.
        self.order.len()
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// A copy that shares nothing with the original.
    pub fn duplicate(&self) -> LargeSortedSet {
        let mut copy = LargeSortedSet::default();
        for scored in self.table.iter() {
            copy.add(hash_key(scored.member()), scored.member(), scored.score());
        }
        copy
    }

    /// Frees about `budget` members; true when nothing is left. Once begun, the set is good for nothing else.
    pub fn reclaim(&mut self, budget: usize) -> bool {
        let drained = self.table.drain_some(budget, drop);
        self.order.reclaim(budget, |_| {}) && drained
    }

    /// Saves some more; true when all are saved.
    pub(crate) fn save_some(&mut self, budget: Budget) -> bool {
        self.saving.advance(&self.table, budget, |scored, ahead, out| {
            let saves = !ahead.contains(scored.member());
            if saves {
                save_scored(scored, out);
            }
            saves
        })
    }

    /// Gives what saves each element.
    pub(crate) fn save_all(&self, mut save: impl FnMut(&dyn Fn(&mut Vec<u8>))) {
        self.table.iter().for_each(|element| save(&|out| save_scored(element, out)));
    }

    /// Bytes of memory it holds, about.
    pub fn heap_bytes(&self) -> usize {
        size_of::<LargeSortedSet>() + self.table.heap_bytes() + self.order.heap_bytes() + self.block_bytes
    }

    /// The pairs of a packed sequence, which are in order.
    pub(super) fn from_pairs(pairs: Pairs<'_>) -> LargeSortedSet {
        let mut set = LargeSortedSet::default();
        let mut scratch = crate::packed::IntBuffer::new();
        for (member, score) in pairs {
            let member = member.as_bytes(&mut scratch);
            set.add(hash_key(member), member, score);
        }
        set
    }

    /// The score of a member.
    #[inline]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        self.table.get(hash_key(member), member).map(ScoredRef::score)
    }

    /// Rank and score of a member.
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let found = self.table.get(hash_key(member), member)?;
        let rank = self.order.rank(&found.place(), by_place!())?;
        Some((rank, found.score()))
    }

    /// Sets the score of a member to what `decide` makes of the one it has; `None` from it leaves everything as it is.
    #[inline]
    pub fn update<E>(
        &mut self,
        member: &[u8],
        decide: impl FnOnce(Option<f64>) -> Result<Option<f64>, E>,
    ) -> Result<Option<Updated>, E> {
        let hash = hash_key(member);
        let Some(position) = self.table.find(hash, member) else {
            return Ok(decide(None)?.map(|score| {
                self.add(hash, member, score);
                Updated { effect: Effect::Added, score }
            }));
        };
        let current = self.table.at(position).score();
        let Some(score) = decide(Some(current))? else { return Ok(None) };
        if score == current {
            return Ok(Some(Updated { effect: Effect::None, score: current }));
        }
        self.save_before_change(hash, position);
        self.order.remove(&self.table.at(position).place(), by_place!());
        self.table.at_mut(position).set_score(score);
        self.order.insert(self.table.at(position).place(), by_place!());
        Ok(Some(Updated { effect: Effect::Changed, score }))
    }

    /// Sets the score of a member, which is added if it is not there.
    pub fn set(&mut self, member: &[u8], score: f64) {
        let updated: Result<_, std::convert::Infallible> = self.update(member, |_| Ok(Some(score)));
        debug_assert!(matches!(updated, Ok(Some(_))));
    }

    /// Adds a member that is not there.
    #[inline]
    fn add(&mut self, hash: u64, member: &[u8], score: f64) {
        let position = self.table.insert(hash, Scored::new(member, score));
        let added = self.table.at(position);
        self.block_bytes += added.block_bytes();
        self.order.insert(added.place(), by_place!());
        self.saving.added(hash, member);
    }

    /// The member at `position` is about to change, or to be removed.
    #[inline]
    fn save_before_change(&mut self, hash: u64, position: Position) {
        if self.saving.goes_on() {
            save_before_change(&mut self.saving, &self.table, hash, position);
        }
    }

    /// Removes a member; whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let hash = hash_key(member);
        let Some(position) = self.table.find(hash, member) else { return false };
        self.save_before_change(hash, position);
        self.order.remove(&self.table.at(position).place(), by_place!());
        remove_block(&mut self.table, &mut self.block_bytes, position);
        true
    }

    /// Removes the members of a range of ranks.
    pub fn remove_ranks(&mut self, ranks: Range<usize>) {
        let LargeSortedSet { table, order, block_bytes, saving } = self;
        order.remove_range(ranks, |place| {
            // SAFETY: the place was in the tree until now, so its block is still in the table.
            let member = unsafe { place.member() };
            let hash = hash_key(member);
            if let Some(position) = table.find(hash, member) {
                if saving.goes_on() {
                    save_before_change(saving, table, hash, position);
                }
                remove_block(table, block_bytes, position);
            }
        });
    }

    /// The ranks of the members within a range of scores.
    #[inline]
    pub fn ranks_by_score(&self, range: &ScoreRange) -> Range<usize> {
        let start = self.order.partition_point(|place| range.is_below(place.score));
        let end = self.order.partition_point(|place| !range.is_above(place.score));
        start..end.max(start)
    }

    /// The ranks of the members within a range of members; all have the same score.
    pub fn ranks_by_lex(&self, range: &LexRange<'_>) -> Range<usize> {
        // SAFETY: the blocks of all places in the tree live, see the module's invariant.
        let start = self.order.partition_point(|place| range.is_below(unsafe { place.member() }));
        // SAFETY: as before.
        let end = self.order.partition_point(|place| !range.is_above(unsafe { place.member() }));
        start..end.max(start)
    }

    /// The members of a range of ranks, from either end.
    #[inline]
    pub fn members(&self, ranks: Range<usize>) -> LargeMembers<'_> {
        LargeMembers { places: self.order.range(ranks) }
    }

    /// Visits members from scan position `from` on, about `count` of them; returns the position to go on from, or
    /// `None` at the end. See [`Table::scan`].
    pub fn scan<'a>(&'a self, from: u64, count: usize, mut visit: impl FnMut(&'a [u8], f64)) -> Option<u64> {
        self.table.scan(from, count, false, |scored| visit(scored.member(), scored.score())).1
    }
}

fn save_before_change(saving: &mut TableSaving, table: &Table<Scored>, hash: u64, position: Position) {
    let scored = table.at(position);
    saving.before_change(hash, scored.member(), |out| save_scored(scored, out));
}

#[inline]
fn remove_block(table: &mut Table<Scored>, block_bytes: &mut usize, position: Position) {
    let removed = table.remove(position);
    *block_bytes -= removed.view().block_bytes();
}

/// Members of a [`LargeSortedSet`] in order, with their scores.
pub struct LargeMembers<'a> {
    /// Of the tree of a set that is borrowed for `'a`.
    places: Keys<'a, Place, 64, 31>,
}

impl<'a> LargeMembers<'a> {
    #[inline]
    fn member(place: Place) -> (Element<'a>, f64) {
        // SAFETY: the set stays borrowed, and so unchanged, for `'a`.
        (Element::Bytes(unsafe { place.member() }), place.score)
    }
}

impl<'a> Iterator for LargeMembers<'a> {
    type Item = (Element<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.places.next().map(Self::member)
    }
}

impl DoubleEndedIterator for LargeMembers<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.places.next_back().map(Self::member)
    }
}
