//! Segments: sorted arrays of words.

use std::ptr::{self, NonNull};

use crate::slab;

use super::{ADDRESS_MASK, Block, DIRECTORY, LentWords, MARK, SEGMENT_LIMIT, TAG_SHIFT};

/// A sorted array of words. `capacity == DIRECTORY` means that `words` is a `Box<Directory>` instead.
pub(super) struct Segment {
    pub(super) words: NonNull<u64>,
    pub(super) len: u16,
    pub(super) capacity: u16,
    pub(super) marked: u16,
    /// The array is somebody else's, who also changes its capacity (see [`Table::lend`]). Never with a directory.
    pub(super) lent: bool,
}

#[inline]
pub(super) fn tag_base(depth: u32) -> u32 {
    depth & !7
}

#[inline]
pub(super) fn tag_of(hash: u64, depth: u32) -> u64 {
    (hash << tag_base(depth)) >> TAG_SHIFT
}

#[inline]
pub(super) fn address(word: u64) -> NonNull<u8> {
    let raw = ptr::with_exposed_provenance_mut((word & ADDRESS_MASK) as usize);
    // SAFETY: words are made by `word_for` from non-null addresses.
    unsafe { NonNull::new_unchecked(raw) }
}

#[inline]
pub(super) fn word_for(tag: u64, raw: NonNull<u8>, marked: bool) -> u64 {
    let exposed = raw.as_ptr().expose_provenance() as u64;
    debug_assert_eq!(exposed & !ADDRESS_MASK, 0, "a block's address fits a word");
    tag << TAG_SHIFT | exposed | u64::from(marked)
}

pub(super) fn capacity_for(len: usize) -> usize {
    let step = match len {
        0..=64 => 4,
        65..=128 => 8,
        129..=256 => 16,
        _ => 32,
    };
    len.div_ceil(step) * step
}

impl Segment {
    pub(super) const fn new() -> Segment {
        Segment { words: NonNull::dangling(), len: 0, capacity: 0, marked: 0, lent: false }
    }

    #[inline]
    pub(super) fn words(&self) -> &[u64] {
        // SAFETY: `len` words are initialised and live; a dangling pointer goes with `len == 0`.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.len as usize) }
    }

    /// Index of the first word whose tag is at least `tag`.
    #[inline]
    pub(super) fn lower_bound(&self, tag: u64, depth: u32) -> usize {
        let words = self.words();
        if words.is_empty() {
            return 0;
        }
        let mut index = self.guess(tag, depth);
        if words[index] >> TAG_SHIFT < tag {
            index += 1;
            while index < words.len() && words[index] >> TAG_SHIFT < tag {
                index += 1;
            }
        } else {
            while index > 0 && words[index - 1] >> TAG_SHIFT >= tag {
                index -= 1;
            }
        }
        index
    }

    /// Where `tag` should be if the hashes were spread evenly; below `len`, which is not 0.
    #[inline]
    pub(super) fn guess(&self, tag: u64, depth: u32) -> usize {
        let spread = (tag << (depth & 7)) & 0xffff;
        (spread as usize * self.len as usize) >> 16
    }

    pub(super) fn set_capacity(&mut self, capacity: usize) {
        debug_assert!(capacity >= self.len as usize && capacity < DIRECTORY as usize);
        if capacity == self.capacity as usize {
            return;
        }
        assert!(!self.lent, "whoever lent an array changes its capacity");
        let words = if capacity == 0 { NonNull::dangling() } else { slab::allocate(capacity * 8).cast::<u64>() };
        // SAFETY: the new array has room for `len` words, and is the segment's own.
        unsafe { self.move_to(words, capacity, false) };
    }

    /// Moves the words to another array; the old one is freed, or returned where it was lent.
    ///
    /// # Safety
    /// `words` has room for `capacity` words, at least `len`, and stays valid: from the slab, unless it is `lent`.
    pub(super) unsafe fn move_to(&mut self, words: NonNull<u64>, capacity: usize, lent: bool) -> Option<LentWords> {
        // SAFETY: the new array has room for `len` words, and the old one holds them.
        unsafe { ptr::copy_nonoverlapping(self.words.as_ptr(), words.as_ptr(), self.len as usize) };
        let old = self.free_words();
        self.words = words;
        self.capacity = capacity as u16;
        self.lent = lent;
        old
    }

    /// Gives the array up: frees it, or returns it where it was lent.
    pub(super) fn free_words(&mut self) -> Option<LentWords> {
        let capacity = self.capacity as usize;
        let words = std::mem::replace(&mut self.words, NonNull::dangling());
        self.capacity = 0;
        if std::mem::take(&mut self.lent) {
            return Some(LentWords { words, capacity });
        }
        if capacity > 0 {
            // SAFETY: the array was allocated for `capacity` words, and the segment no longer refers to it.
            unsafe { slab::free(words.cast(), capacity * 8) };
        }
        None
    }

    pub(super) fn insert(&mut self, index: usize, word: u64) {
        let len = self.len as usize;
        assert!(index <= len && len < SEGMENT_LIMIT);
        if len == self.capacity as usize {
            self.set_capacity(capacity_for(len + 1));
        }
        // SAFETY: the array has room for one more word, and `index <= len`.
        unsafe {
            let at = self.words.as_ptr().add(index);
            ptr::copy(at, at.add(1), len - index);
            at.write(word);
        }
        self.len += 1;
        self.marked += (word & MARK) as u16;
    }

    pub(super) fn remove(&mut self, index: usize) -> u64 {
        let len = self.len as usize;
        assert!(index < len);
        // SAFETY: `index < len`.
        let word = unsafe {
            let at = self.words.as_ptr().add(index);
            let word = at.read();
            ptr::copy(at.add(1), at, len - index - 1);
            word
        };
        self.len -= 1;
        self.marked -= (word & MARK) as u16;
        if self.lent {
            return word;
        }
        let target = capacity_for(self.len as usize);
        if target * 2 <= self.capacity as usize || self.len == 0 {
            self.set_capacity(target);
        }
        word
    }

    #[inline]
    pub(super) fn set(&mut self, index: usize, word: u64) {
        assert!(index < self.len as usize);
        // SAFETY: `index < len`.
        let at = unsafe { &mut *self.words.as_ptr().add(index) };
        self.marked = self.marked - (*at & MARK) as u16 + (word & MARK) as u16;
        *at = word;
    }
}

impl Segment {
    /// Recomputes the tags for `depth` and restores the order.
    pub(super) fn retag<T: Block>(&mut self, depth: u32) {
        let len = self.len as usize;
        // SAFETY: `len` words are initialised, and `self` is borrowed mutably.
        let words = unsafe { std::slice::from_raw_parts_mut(self.words.as_ptr(), len) };
        for word in words.iter_mut() {
            let raw = address(*word);
            // SAFETY: the table owns the block.
            let hash = crate::hash_key(unsafe { T::key(raw) });
            *word = word_for(tag_of(hash, depth), raw, *word & MARK != 0);
        }
        words.sort_unstable_by_key(|word| word >> TAG_SHIFT);
    }
}
