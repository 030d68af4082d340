//! The hash table of a slot, and of every large hash, set and sorted set.
//!
//! A table is an array of 8-byte words kept *sorted by hash*: 16 bits of the key's hash on top, the block's address
//! below, and the block's mark (it has a deadline) in the lowest bit. A look-up interpolates: the position of a hash is
//! nearly its share of the hash space, a cache line away at most for the sizes a segment may have. Nothing is probed,
//! nothing is left behind by a removal, there is no load factor to pay for, and the order is the same for as long as a
//! key lives, which is what `SCAN` needs.
//!
//! Past [`SEGMENT_LIMIT`] keys a table becomes a directory of such segments (extendible hashing: the first bits of the
//! hash choose the segment; a full segment splits in two), so that no insertion ever moves more than a segment.
//!
//! A segment of depth `d` holds the keys whose first `d` hash bits agree. Its tags are the 16 hash bits that start at
//! bit `d / 8 * 8`: seven splits in eight need no look at the keys.

mod change;
mod segment;
mod walk;

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use self::segment::{Segment, address, capacity_for, tag_base, tag_of, word_for};
use crate::slab;

pub use self::change::BlockMut;

/// Keys in a segment before it splits.
pub const SEGMENT_LIMIT: usize = 512;

/// A table that shrinks to this many keys becomes one segment again.
const COLLAPSE_LIMIT: usize = 64;

const TAG_SHIFT: u32 = 48;
const MARK: u64 = 1;
const ADDRESS_MASK: u64 = (1 << TAG_SHIFT) - 1 - 7;

/// Tries to hit a block by chance before a table's segments, nearly empty then, are counted through.
const SAMPLE_TRIES: usize = 32;

/// Bytes that the processor loads at once.
const CACHE_LINE: usize = 64;

/// Hash bits that a scan position holds.
pub const SCAN_BITS: u32 = 38;

/// A heap block that a table can own.
///
/// # Safety
/// `into_raw` gives an address that is a multiple of 8 and fits 48 bits, `from_raw` undoes it, and `key` depends on
/// nothing but the block.
pub unsafe trait Block: Sized {
    /// A borrowed view of the block.
    type Ref<'a>: Copy;
    /// Gives the block up as an address.
    fn into_raw(self) -> NonNull<u8>;
    /// Takes the block back.
    ///
    /// # Safety
    /// `raw` came from `into_raw` and was not taken back before.
    unsafe fn from_raw(raw: NonNull<u8>) -> Self;
    /// A view of the block at `raw`.
    ///
    /// # Safety
    /// `raw` came from `into_raw`, was not taken back, and is not changed or freed while the view lives.
    unsafe fn view<'a>(raw: NonNull<u8>) -> Self::Ref<'a>;
    /// The key of the block at `raw`.
    ///
    /// # Safety
    /// As for `view`.
    unsafe fn key<'a>(raw: NonNull<u8>) -> &'a [u8];
    /// Whether the block at `raw` is to be counted as marked (it has a deadline).
    ///
    /// # Safety
    /// As for `view`.
    unsafe fn marked(raw: NonNull<u8>) -> bool;
}

/// Where a key is. Valid until the table changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    segment: u32,
    index: u32,
}

/// An array of words that a table was lent.
#[derive(Debug)]
pub(crate) struct LentWords {
    pub(crate) words: NonNull<u64>,
    pub(crate) capacity: usize,
}

const DIRECTORY: u16 = u16::MAX;

struct Deep {
    segment: Segment,
    depth: u32,
}

struct Directory {
    depth: u32,
    len: usize,
    marked: usize,
    /// For each value of the first `depth` hash bits, the index of its segment.
    entries: Vec<u32>,
    segments: Vec<Deep>,
}

/// Blocks by key.
pub struct Table<T: Block> {
    root: Segment,
    owns: PhantomData<T>,
}

impl<T: Block> Default for Table<T> {
    fn default() -> Self {
        Table::new()
    }
}

impl<T: Block> Table<T> {
    /// An empty table; takes no memory of its own.
    pub const fn new() -> Table<T> {
        Table { root: Segment::new(), owns: PhantomData }
    }

    #[inline]
    fn directory(&self) -> Option<&Directory> {
        if self.root.capacity == DIRECTORY {
            // SAFETY: with this capacity `words` is a `Box<Directory>` owned by the table.
            Some(unsafe { self.root.words.cast::<Directory>().as_ref() })
        } else {
            None
        }
    }

    #[inline]
    fn directory_mut(&mut self) -> Option<&mut Directory> {
        if self.root.capacity == DIRECTORY {
            // SAFETY: as in `directory`, and `self` is borrowed mutably.
            Some(unsafe { self.root.words.cast::<Directory>().as_mut() })
        } else {
            None
        }
    }

    /// Number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        match self.directory() {
            None => self.root.len as usize,
            Some(directory) => directory.len,
        }
    }

    /// Whether there is no key.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of marked blocks.
    #[inline]
    pub fn marked(&self) -> usize {
        match self.directory() {
            None => self.root.marked as usize,
            Some(directory) => directory.marked,
        }
    }

    /// Number of blocks, or of marked ones.
    #[inline]
    pub fn count(&self, marked_only: bool) -> usize {
        if marked_only { self.marked() } else { self.len() }
    }

    #[inline]
    fn segment_for(&self, hash: u64) -> (u32, &Segment, u32) {
        match self.directory() {
            None => (0, &self.root, 0),
            Some(directory) => {
                let number = directory.entries[(hash >> (64 - directory.depth)) as usize];
                let deep = &directory.segments[number as usize];
                (number, &deep.segment, deep.depth)
            }
        }
    }

    #[inline]
    fn segment(&self, number: u32) -> &Segment {
        match self.directory() {
            None => &self.root,
            Some(directory) => &directory.segments[number as usize].segment,
        }
    }

    #[inline]
    fn segment_mut(&mut self, number: u32) -> &mut Segment {
        if self.root.capacity == DIRECTORY {
            let directory = self.directory_mut().expect("checked just now");
            &mut directory.segments[number as usize].segment
        } else {
            &mut self.root
        }
    }

    /// Asks the processor to load the table itself.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(ptr::from_ref(self).cast());
    }

    /// Asks the processor to load the word where `hash` probably is.
    #[inline]
    pub fn prefetch_word(&self, hash: u64) {
        let (_, segment, depth) = self.segment_for(hash);
        if segment.len > 0 {
            let index = segment.guess(tag_of(hash, depth), depth);
            prefetch(segment.words()[index..].as_ptr().cast());
        }
    }

    /// Asks the processor to load the block that `hash` probably belongs to.
    #[inline]
    pub fn prefetch_block(&self, hash: u64) {
        let (_, segment, depth) = self.segment_for(hash);
        let tag = tag_of(hash, depth);
        let index = segment.lower_bound(tag, depth);
        if let Some(&word) = segment.words().get(index)
            && word >> TAG_SHIFT == tag
        {
            // Most entries reach into a second cache line.
            let block = address(word).as_ptr();
            prefetch(block);
            prefetch(block.wrapping_add(CACHE_LINE));
        }
    }

    /// Finds `key`, whose hash is `hash`.
    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<Position> {
        let (number, segment, depth) = self.segment_for(hash);
        let tag = tag_of(hash, depth);
        let words = segment.words();
        let mut index = segment.lower_bound(tag, depth);
        while let Some(&word) = words.get(index) {
            if word >> TAG_SHIFT != tag {
                break;
            }
            // SAFETY: the table owns the block and is borrowed.
            if unsafe { T::key(address(word)) } == key {
                return Some(Position { segment: number, index: index as u32 });
            }
            index += 1;
        }
        None
    }

    /// Asks the processor to load the block at `position`.
    #[inline]
    pub fn prefetch_at(&self, position: Position) {
        let block = address(self.segment(position.segment).words()[position.index as usize]).as_ptr();
        prefetch(block);
        prefetch(block.wrapping_add(CACHE_LINE));
    }

    /// The block at `position`.
    #[inline]
    pub fn at(&self, position: Position) -> T::Ref<'_> {
        let word = self.segment(position.segment).words()[position.index as usize];
        // SAFETY: the table owns the block and stays borrowed for as long as the view lives.
        unsafe { T::view(address(word)) }
    }

    /// Finds a block by key.
    #[inline]
    pub fn get(&self, hash: u64, key: &[u8]) -> Option<T::Ref<'_>> {
        self.find(hash, key).map(|position| self.at(position))
    }

    /// The block at `position`, to be changed; its key must stay.
    #[inline]
    pub fn at_mut(&mut self, position: Position) -> BlockMut<'_, T> {
        let (segment, total_marked) = if self.root.capacity == DIRECTORY {
            let directory = self.directory_mut().expect("checked just now");
            (&mut directory.segments[position.segment as usize].segment, Some(&mut directory.marked))
        } else {
            (&mut self.root, None)
        };
        let index = position.index as usize;
        let word = segment.words()[index];
        // SAFETY: the table owns the block; the guard puts it back before the borrow ends.
        let block = ManuallyDrop::new(unsafe { T::from_raw(address(word)) });
        BlockMut { block, segment, total_marked, index, tag: word >> TAG_SHIFT }
    }

    /// Whether the next block needs a larger array, or a further segment, first.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.root.len == self.root.capacity
    }

    /// Whether the table was lent an array of which more than a quarter is unused, or all of it.
    #[inline]
    pub(crate) fn wastes_lent_words(&self) -> bool {
        let (len, capacity) = (self.root.len as usize, self.root.capacity as usize);
        self.root.lent && (len == 0 || len * 4 + 16 < capacity * 3)
    }

    /// Lends the table an array for its words, in place of the one it has; returns that one where it was lent as well.
    /// Until the array is taken back the table neither frees it nor changes its capacity: before an insertion into a
    /// full table ([`Table::is_full`]) it must be lent a larger one, or be told to keep its own.
    ///
    /// # Safety
    /// The table is no directory, and the array has room for as many words as it has blocks and stays valid and
    /// unshared until it is taken back, or until the table is gone.
    pub(crate) unsafe fn lend(&mut self, array: LentWords) -> Option<LentWords> {
        debug_assert!(self.root.capacity != DIRECTORY && array.capacity >= self.root.len as usize);
        // SAFETY: the caller's promise.
        unsafe { self.root.move_to(array.words, array.capacity, true) }
    }

    /// Tells the table that the array it was lent, content and all, is elsewhere now.
    ///
    /// # Safety
    /// As for [`Table::lend`], and the words were copied.
    pub(crate) unsafe fn lent_words_moved(&mut self, words: NonNull<u64>) {
        debug_assert!(self.root.lent);
        self.root.words = words;
    }

    /// Makes the table keep its words in an array of its own; returns the one it was lent, if it was.
    pub(crate) fn keep_own_words(&mut self) -> Option<LentWords> {
        if !self.root.lent {
            return None;
        }
        let capacity = capacity_for(self.root.len as usize);
        if capacity == 0 {
            return self.root.free_words();
        }
        let words = slab::allocate(capacity * 8).cast::<u64>();
        // SAFETY: the array has room for `len` words, and is the table's own.
        unsafe { self.root.move_to(words, capacity, false) }
    }

    /// Adds a block whose key is not in the table.
    pub fn insert(&mut self, hash: u64, block: T) -> Position {
        let raw = block.into_raw();
        // SAFETY: the block was given up just now and is not changed while the view lives.
        let marked = unsafe { T::marked(raw) };
        loop {
            let (number, segment, depth) = self.segment_for(hash);
            if segment.len as usize == SEGMENT_LIMIT {
                self.split(hash);
                continue;
            }
            let tag = tag_of(hash, depth);
            let index = segment.lower_bound(tag, depth);
            self.segment_mut(number).insert(index, word_for(tag, raw, marked));
            if let Some(directory) = self.directory_mut() {
                directory.len += 1;
                directory.marked += usize::from(marked);
            }
            return Position { segment: number, index: index as u32 };
        }
    }

    /// Takes the block at `position` out.
    pub fn remove(&mut self, position: Position) -> T {
        let word = self.segment_mut(position.segment).remove(position.index as usize);
        if let Some(directory) = self.directory_mut() {
            directory.len -= 1;
            directory.marked -= (word & MARK) as usize;
            if directory.len <= COLLAPSE_LIMIT {
                self.collapse();
            }
        }
        // SAFETY: the word left the table, so the block is owned by nobody else.
        unsafe { T::from_raw(address(word)) }
    }

    /// Splits the full segment that `hash` belongs to.
    fn split(&mut self, hash: u64) {
        if self.root.capacity != DIRECTORY {
            let segment = std::mem::replace(&mut self.root, Segment::new());
            let (len, marked) = (segment.len as usize, segment.marked as usize);
            let segments = vec![Deep { segment, depth: 0 }];
            let directory = Box::new(Directory { depth: 1, len, marked, entries: vec![0, 0], segments });
            self.root.words = NonNull::from(Box::leak(directory)).cast();
            self.root.capacity = DIRECTORY;
        }
        let directory = self.directory_mut().expect("made above");
        let number = directory.entries[(hash >> (64 - directory.depth)) as usize] as usize;
        let depth = directory.segments[number].depth;
        assert!(depth < SCAN_BITS - 16, "more equal hash prefixes than a hash function gives");
        if depth == directory.depth {
            let doubled = directory.entries.iter().flat_map(|&entry| [entry, entry]).collect();
            directory.entries = doubled;
            directory.depth += 1;
        }
        let retag = tag_base(depth + 1) != tag_base(depth);
        let mut halves = [Segment::new(), Segment::new()];
        let old = std::mem::replace(&mut directory.segments[number].segment, Segment::new());
        let bit = 15 - (depth & 7);
        let middle = old.words().partition_point(|word| word >> (TAG_SHIFT + bit) & 1 == 0);
        let (low, high) = old.words().split_at(middle);
        for (half, words) in halves.iter_mut().zip([low, high]) {
            half.set_capacity(capacity_for(words.len()));
            for &word in words {
                let at = half.len as usize;
                half.insert(at, word);
            }
            if retag {
                half.retag::<T>(depth + 1);
            }
        }
        let mut old = old;
        old.free_words();
        let [low, high] = halves;
        directory.segments[number] = Deep { segment: low, depth: depth + 1 };
        let new_number = directory.segments.len() as u32;
        directory.segments.push(Deep { segment: high, depth: depth + 1 });
        let span = 1usize << (directory.depth - depth);
        let prefix = if depth == 0 { 0 } else { (hash >> (64 - depth)) as usize };
        let start = prefix * span + span / 2;
        directory.entries[start..start + span / 2].fill(new_number);
    }

    /// Makes one segment of a directory that has become small.
    fn collapse(&mut self) {
        let root = std::mem::replace(&mut self.root, Segment::new());
        debug_assert_eq!(root.capacity, DIRECTORY);
        // SAFETY: the root was a `Box<Directory>`, and the table no longer refers to it.
        let directory = unsafe { Box::from_raw(root.words.cast::<Directory>().as_ptr()) };
        for mut deep in directory.segments {
            for &word in deep.segment.words() {
                let raw = address(word);
                // SAFETY: the block is live; it moves from one segment to the other.
                let tag = tag_of(crate::hash_key(unsafe { T::key(raw) }), 0);
                let index = self.root.lower_bound(tag, 0);
                self.root.insert(index, word_for(tag, raw, word & MARK != 0));
            }
            deep.segment.free_words();
        }
    }

    fn free_directory(&mut self) {
        let root = std::mem::replace(&mut self.root, Segment::new());
        // SAFETY: called only while the root is a `Box<Directory>`, which the table then forgets.
        drop(unsafe { Box::from_raw(root.words.cast::<Directory>().as_ptr()) });
    }
}

impl<T: Block> Drop for Table<T> {
    fn drop(&mut self) {
        while !self.drain_some(usize::MAX, drop) {}
    }
}

#[inline]
fn prefetch(pointer: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect but on the caches, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch(pointer.cast::<i8>(), std::arch::x86_64::_MM_HINT_T0)
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = pointer;
}
