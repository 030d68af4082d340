//! A set with a table of members.

use crate::hash_key;
use crate::image::parts::{Budget, TableSaving, save_bytes};
use crate::set::member::Member;
use crate::table::{Position, Table};

/// A set that has outgrown its packed forms.
#[derive(Default)]
pub struct LargeSet {
    members: Table<Member>,
    /// Bytes of the members' blocks.
    block_bytes: usize,
    /// Where an image is that is made of it.
    pub(crate) saving: TableSaving,
}

impl LargeSet {
    /// An empty set.
    pub fn new() -> LargeSet {
        LargeSet::default()
    }

    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether `member` is in the set.
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        self.members.find(hash_key(member), member).is_some()
    }

    /// Adds `member`; whether it is new.
    pub fn insert(&mut self, member: &[u8]) -> bool {
        let hash = hash_key(member);
        if self.members.find(hash, member).is_some() {
            return false;
        }
        self.block_bytes += Member::block_bytes(member.len());
        self.members.insert(hash, Member::new(member));
        self.saving.added(hash, member);
        true
    }

    /// Removes `member`; whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let hash = hash_key(member);
        let Some(position) = self.members.find(hash, member) else { return false };
        self.remove_at(hash, position);
        true
    }

    fn remove_at(&mut self, hash: u64, position: Position) -> Member {
        if self.saving.goes_on() {
            let member = self.members.at(position);
            self.saving.before_change(hash, member, |out| save_bytes(member, out));
        }
        let removed = self.members.remove(position);
        self.block_bytes -= Member::block_bytes(removed.bytes().len());
        removed
    }

    /// The members, in no order that lasts.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.members.iter()
    }

    /// A member chosen with equal chance for each; `random(n)` gives a number below `n`.
    pub fn random(&self, random: impl FnMut(usize) -> usize) -> Option<&[u8]> {
        self.members.random(random)
    }

    /// Takes out a member chosen with equal chance for each, and shows it to `visit`.
    pub fn pop_random(&mut self, random: impl FnMut(usize) -> usize, visit: impl FnOnce(&[u8])) {
        let Some(chosen) = self.members.random(random) else { return };
        let hash = hash_key(chosen);
        let Some(position) = self.members.find(hash, chosen) else { return };
        let removed = self.remove_at(hash, position);
        visit(removed.bytes());
    }

    /// Visits members from `position` on, see [`Table::scan`]; the position to go on from, unless this was the end.
    pub fn scan<'a>(&'a self, position: u64, count: usize, visit: impl FnMut(&'a [u8])) -> Option<u64> {
        self.members.scan(position, count, false, visit).1
    }

    /// A copy that shares nothing with the original.
    pub fn duplicate(&self) -> LargeSet {
        let mut copy = LargeSet::new();
        for member in self.iter() {
            copy.insert(member);
        }
        copy
    }

    /// Frees about `budget` members of a set that nobody uses any more; true when nothing is left.
    pub fn reclaim(&mut self, budget: usize) -> bool {
        let mut freed_bytes = 0;
        let empty = self.members.drain_some(budget, |member| {
            freed_bytes += Member::block_bytes(member.bytes().len());
        });
        self.block_bytes -= freed_bytes;
        empty
    }

    /// Saves some more; true when all are saved.
    pub(crate) fn save_some(&mut self, budget: Budget) -> bool {
        self.saving.advance(&self.members, budget, |member, ahead, out| {
            let saves = !ahead.contains(member);
            if saves {
                save_bytes(member, out);
            }
            saves
        })
    }

    /// Gives what saves each element.
    pub(crate) fn save_all(&self, mut save: impl FnMut(&dyn Fn(&mut Vec<u8>))) {
        self.iter().for_each(|element| save(&|out| save_bytes(element, out)));
    }

    /// Bytes of memory it holds, about.
    pub fn heap_bytes(&self) -> usize {
        size_of::<LargeSet>() + self.members.heap_bytes() + self.block_bytes
    }
}
