//! A block that is changed where it is.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use super::Block;
use super::segment::{Segment, word_for};

/// A block of a table, borrowed to be changed; when the borrow ends the table takes note of its new address and mark.
pub struct BlockMut<'a, T: Block> {
    pub(super) block: ManuallyDrop<T>,
    pub(super) segment: &'a mut Segment,
    /// The directory's count of marked blocks, where there is a directory.
    pub(super) total_marked: Option<&'a mut usize>,
    pub(super) index: usize,
    pub(super) tag: u64,
}

impl<T: Block> Deref for BlockMut<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.block
    }
}

impl<T: Block> DerefMut for BlockMut<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.block
    }
}

impl<T: Block> Drop for BlockMut<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the block is not used again after this.
        let raw = unsafe { ManuallyDrop::take(&mut self.block) }.into_raw();
        // SAFETY: the block was given up just now.
        let marked = unsafe { T::marked(raw) };
        let before = self.segment.marked;
        self.segment.set(self.index, word_for(self.tag, raw, marked));
        if let Some(total) = &mut self.total_marked {
            **total = **total - before as usize + self.segment.marked as usize;
        }
    }
}
