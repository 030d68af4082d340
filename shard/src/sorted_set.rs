//! SortedSet values.

/// A sorted_set that has outgrown its packed form.
#[derive(Default)]
pub struct LargeSortedSet {}

impl LargeSortedSet {
    /// Number of elements.
    pub fn len(&self) -> usize {
        0
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy that shares nothing with the original.
    pub fn duplicate(&self) -> Self {
        Self {}
    }

    /// Frees about `budget` elements; true when nothing is left.
    pub fn reclaim(&mut self, _budget: usize) -> bool {
        true
    }

    /// Bytes of memory it holds, about.
    pub fn heap_bytes(&self) -> usize {
        0
    }
}
