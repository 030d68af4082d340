//! Collections that have outgrown their packed form.

use crate::entry::Kind;
use crate::hash::LargeHash;
use crate::image::parts::{Budget, SharedParts};
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

    /// Begins to save the elements, all that are there now.
    pub(crate) fn begin_saving(&mut self, parts: SharedParts) {
        match self {
            Object::Hash(hash) => hash.saving.begin(parts),
            Object::List(list) => list.begin_saving(parts),
            Object::Set(set) => set.saving.begin(parts),
            Object::SortedSet(sorted_set) => sorted_set.saving.begin(parts),
        }
    }

    /// Saves some more elements; true when all are saved, or none are to be.
    pub(crate) fn save_some(&mut self, budget: Budget) -> bool {
        match self {
            Object::Hash(hash) => hash.save_some(budget),
            Object::List(list) => list.save_some(budget),
            Object::Set(set) => set.save_some(budget),
            Object::SortedSet(sorted_set) => sorted_set.save_some(budget),
        }
    }

    /// Saves nothing more.
    pub(crate) fn stop_saving(&mut self) {
        match self {
            Object::Hash(hash) => hash.saving.stop(),
            Object::List(list) => list.stop_saving(),
            Object::Set(set) => set.saving.stop(),
            Object::SortedSet(sorted_set) => sorted_set.saving.stop(),
        }
    }

    /// What is saved of it, while that goes on.
    pub(crate) fn parts(&self) -> Option<&SharedParts> {
        match self {
            Object::Hash(hash) => hash.saving.parts(),
            Object::List(list) => list.parts(),
            Object::Set(set) => set.saving.parts(),
            Object::SortedSet(sorted_set) => sorted_set.saving.parts(),
        }
    }

    /// Gives each element, or node of a list, in turn: what appends it to the parts of an image.
    pub(crate) fn save_all(&self, save: impl FnMut(&dyn Fn(&mut Vec<u8>))) {
        match self {
            Object::Hash(hash) => hash.save_all(save),
            Object::List(list) => list.save_all(save),
            Object::Set(set) => set.save_all(save),
            Object::SortedSet(sorted_set) => sorted_set.save_all(save),
        }
    }
}
