//! A set with a table of members.

use crate::hash_key;
use crate::set::member::Member;
use crate::table::Table;

/// A set that has outgrown its packed forms.
#[derive(Default)]
pub struct LargeSet {
    members: Table<Member>,
    /// Bytes of the members' blocks.
    block_bytes: usize,
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
        true
    }

    /// Removes `member`; whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let Some(position) = self.members.find(hash_key(member), member) else { return false };
        let removed = self.members.remove(position);
        self.block_bytes -= Member::block_bytes(removed.bytes().len());
        true
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
        let Some(position) = self.members.find(hash_key(chosen), chosen) else { return };
        let removed = self.members.remove(position);
        self.block_bytes -= Member::block_bytes(removed.bytes().len());
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

    /// Bytes of memory it holds, about.
    pub fn heap_bytes(&self) -> usize {
        size_of::<LargeSet>() + self.members.heap_bytes() + self.block_bytes
    }
}
