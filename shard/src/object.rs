//! Collections that have outgrown their packed form.

use crate::entry::Kind;
use crate::hash::LargeHash;
use crate::list::LargeList;
use crate::set::LargeSet;
use crate::sorted_set::LargeSortedSet;

/// A boxed collection.
pub enum Object {
    /// A hash with a table of fields.
    Hash(LargeHash),
    /// A list of packed nodes.
    List(LargeList),
    /// A set with a table of members.
    Set(LargeSet),
    /// A sorted set with a table of members and an ordered tree.
    SortedSet(LargeSortedSet),
}

impl Object {
    /// Redis's type.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self {
            Object::Hash(_) => Kind::Hash,
            Object::List(_) => Kind::List,
            Object::Set(_) => Kind::Set,
            Object::SortedSet(_) => Kind::SortedSet,
        }
    }

    /// Redis's word for the encoding.
    pub fn encoding_name(&self) -> &'static str {
        match self {
            Object::Hash(_) | Object::Set(_) => "hashtable",
            Object::List(_) => "quicklist",
            Object::SortedSet(_) => "skiplist",
        }
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        match self {
            Object::Hash(hash) => hash.len(),
            Object::List(list) => list.len(),
            Object::Set(set) => set.len(),
            Object::SortedSet(sorted_set) => sorted_set.len(),
        }
    }

    /// A copy that shares nothing with the original.
    pub fn duplicate(&self) -> Object {
        match self {
            Object::Hash(hash) => Object::Hash(hash.duplicate()),
            Object::List(list) => Object::List(list.duplicate()),
            Object::Set(set) => Object::Set(set.duplicate()),
            Object::SortedSet(sorted_set) => Object::SortedSet(sorted_set.duplicate()),
        }
    }

    /// Frees about `budget` elements of an object that nobody uses any more; true when nothing is left.
    pub fn reclaim(&mut self, budget: usize) -> bool {
        match self {
            Object::Hash(hash) => hash.reclaim(budget),
            Object::List(list) => list.reclaim(budget),
            Object::Set(set) => set.reclaim(budget),
            Object::SortedSet(sorted_set) => sorted_set.reclaim(budget),
        }
    }

    /// Bytes of memory it holds, about.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Object::Hash(hash) => hash.heap_bytes(),
            Object::List(list) => list.heap_bytes(),
            Object::Set(set) => set.heap_bytes(),
            Object::SortedSet(sorted_set) => sorted_set.heap_bytes(),
        }
    }
}
