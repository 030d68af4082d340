//! Walking over the blocks of a table: all of them, in the order of a scan, by chance, and taking them out piece by piece.

use super::segment::{Segment, address, tag_base, tag_of};
use super::{Block, DIRECTORY, Deep, MARK, Position, SAMPLE_TRIES, SCAN_BITS, SEGMENT_LIMIT, TAG_SHIFT, Table};

impl<T: Block> Table<T> {
    pub(super) fn segments(&self) -> impl Iterator<Item = &Segment> {
        let (root, deep) = match self.directory() {
            None => (Some(&self.root), &[][..]),
            Some(directory) => (None, &directory.segments[..]),
        };
        root.into_iter().chain(deep.iter().map(|deep| &deep.segment))
    }

    /// Every block, in no order that lasts.
    pub fn iter(&self) -> impl Iterator<Item = T::Ref<'_>> {
        // SAFETY: the table owns the blocks and stays borrowed.
        self.segments().flat_map(|segment| segment.words().iter().map(|&word| unsafe { T::view(address(word)) }))
    }

    /// Visits the blocks from scan position `from` on: at least `count` of them where there are as many, and always
    /// all that share a position. Returns the position to go on from, or `None` at the end.
    ///
    /// A position is the first [`SCAN_BITS`] bits of a hash, so it survives every change of the table: a key that is
    /// there during the whole scan is visited. With `marked_only` other blocks are passed over (but count).
    pub fn scan<'a>(
        &'a self,
        from: u64,
        count: usize,
        marked_only: bool,
        mut visit: impl FnMut(T::Ref<'a>),
    ) -> (usize, Option<u64>) {
        self.walk(from, count, |word, _| {
            if !marked_only || word & MARK != 0 {
                // SAFETY: the table owns the block and stays borrowed.
                visit(unsafe { T::view(address(word)) });
            }
        })
    }

    /// As [`Table::scan`], but gives the positions of the blocks, which are good until the table changes.
    pub fn scan_positions(&self, from: u64, count: usize, positions: &mut Vec<Position>) -> Option<u64> {
        self.walk(from, count, |_, position| positions.push(position)).1
    }

    fn walk(&self, from: u64, count: usize, mut visit: impl FnMut(u64, Position)) -> (usize, Option<u64>) {
        let mut from = from << (64 - SCAN_BITS);
        let mut visited = 0;
        loop {
            let (number, segment, depth) = self.segment_for(from);
            let base = tag_base(depth);
            let words = segment.words();
            let mut index = segment.lower_bound(tag_of(from, depth), depth);
            let mut last_tag = None;
            while let Some(&word) = words.get(index) {
                let tag = word >> TAG_SHIFT;
                if visited >= count && last_tag.is_some_and(|last| last != tag) {
                    let prefix = if base == 0 { 0 } else { from >> (64 - base) << (64 - base) };
                    let next = prefix | (tag << TAG_SHIFT) >> base;
                    return (visited, Some(next >> (64 - SCAN_BITS)));
                }
                last_tag = Some(tag);
                visited += 1;
                visit(word, Position { segment: number, index: index as u32 });
                index += 1;
            }
            if depth == 0 {
                return (visited, None);
            }
            let next_segment = (from >> (64 - depth)) + 1;
            if next_segment >> depth != 0 {
                return (visited, None);
            }
            from = next_segment << (64 - depth);
            if visited >= count {
                return (visited, Some(from >> (64 - SCAN_BITS)));
            }
        }
    }

    /// A block chosen with equal chance for each; `random(n)` gives a number below `n`.
    pub fn random(&self, random: impl FnMut(usize) -> usize) -> Option<T::Ref<'_>> {
        self.sample(false, random)
    }

    /// A block, or a marked one, chosen with equal chance for each; `random(n)` gives a number below `n`.
    pub fn sample(&self, marked_only: bool, mut random: impl FnMut(usize) -> usize) -> Option<T::Ref<'_>> {
        let candidates = self.count(marked_only);
        if candidates == 0 {
            return None;
        }
        if let Some(directory) = self.directory() {
            for _ in 0..SAMPLE_TRIES {
                let segment = &directory.segments[random(directory.segments.len())].segment;
                let index = random(SEGMENT_LIMIT);
                let word = if !marked_only {
                    segment.words().get(index)
                } else if index < segment.marked as usize {
                    segment.words().iter().filter(|word| **word & MARK != 0).nth(index)
                } else {
                    None
                };
                if let Some(&word) = word {
                    // SAFETY: the table owns the block and stays borrowed.
                    return Some(unsafe { T::view(address(word)) });
                }
            }
        }
        self.nth(random(candidates), marked_only)
    }

    /// The `index`-th block in table order, or the `index`-th marked one.
    pub fn nth(&self, index: usize, marked_only: bool) -> Option<T::Ref<'_>> {
        let mut left = index;
        for segment in self.segments() {
            let here = if marked_only { segment.marked as usize } else { segment.len as usize };
            if left >= here {
                left -= here;
                continue;
            }
            let mut candidates = segment.words().iter().filter(|word| !marked_only || **word & MARK != 0);
            // SAFETY: the table owns the block and stays borrowed.
            return candidates.nth(left).map(|&word| unsafe { T::view(address(word)) });
        }
        None
    }

    /// Takes blocks out, about `budget` of them, and hands them to `removed`; true when the table is empty. Once begun,
    /// the table is good for nothing else.
    pub fn drain_some(&mut self, budget: usize, mut removed: impl FnMut(T)) -> bool {
        let mut done = 0;
        while done < budget {
            let mut segment = match self.directory_mut() {
                None => std::mem::replace(&mut self.root, Segment::new()),
                Some(directory) => match directory.segments.pop() {
                    Some(deep) => {
                        directory.len -= deep.segment.len as usize;
                        directory.marked -= deep.segment.marked as usize;
                        // The directory no longer leads anywhere: what is left is only drained.
                        deep.segment
                    }
                    None => {
                        self.free_directory();
                        return true;
                    }
                },
            };
            done += segment.len as usize;
            for &word in segment.words() {
                // SAFETY: the word left the table with its segment.
                removed(unsafe { T::from_raw(address(word)) });
            }
            segment.free_words();
            if self.root.capacity != DIRECTORY {
                return true;
            }
        }
        false
    }

    /// Bytes of the table's own arrays (the blocks excepted).
    pub fn heap_bytes(&self) -> usize {
        match self.directory() {
            None => self.root.capacity as usize * 8,
            Some(directory) => {
                let arrays: usize = directory.segments.iter().map(|deep| deep.segment.capacity as usize * 8).sum();
                arrays + directory.entries.capacity() * 4 + directory.segments.capacity() * size_of::<Deep>()
            }
        }
    }
}
