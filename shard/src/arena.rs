//! The arrays of words of a database's small tables, kept without a gap.
//!
//! With hashes spread evenly, a database's 16,384 tables grow together from one capacity to the next. In a slab each
//! capacity that they have passed would keep pages that are mostly holes: half of what the words themselves take. So
//! here the arrays of a capacity lie densely over their pages: another one goes behind the last, and where one leaves,
//! the last moves into the hole and its owner is told. Nothing but the last page of each capacity is ever partly unused,
//! and no call moves more than one array.
//!
//! A page (or a long run of pages, for large arrays) begins with its number within the class and with the owners of its
//! arrays. Pages are aligned to their length, so an array's address leads to both.

use std::ptr::{self, NonNull};

use crate::chunk::{PAGE_SIZE, Run, RunLength};
use crate::slab;

/// The largest capacity, in words.
pub(crate) const LARGEST_CAPACITY: usize = 512;

/// Arrays of more words than this lie in long runs of pages, so that what no whole array fits into stays a small part.
const PAGE_CAPACITY: usize = 64;

/// The least capacity for `len` words: at most 1 word in `len` of 32, then a sixteenth to an eighth, is unused.
#[inline]
pub(crate) fn capacity_for(len: usize) -> usize {
    len.next_multiple_of(step_for(len))
}

#[inline]
fn step_for(len: usize) -> usize {
    match len {
        0..=32 => 2,
        33..=64 => 4,
        65..=128 => 8,
        _ => 16,
    }
}

/// The number of the class of a capacity.
#[inline]
fn class_of(capacity: usize) -> usize {
    match capacity {
        0..=32 => capacity / 2 - 1,
        33..=64 => 16 + (capacity - 36) / 4,
        65..=128 => 24 + (capacity - 72) / 8,
        _ => 32 + (capacity - 144) / 16,
    }
}

const CLASSES: usize = 32 + (LARGEST_CAPACITY - 144) / 16 + 1;

/// How a class divides its pages.
#[derive(Clone, Copy)]
struct Layout {
    run: RunLength,
    /// Bytes of a run.
    bytes: usize,
    /// Arrays in a run of pages.
    arrays: usize,
    /// Bytes before the first.
    first: usize,
    /// Bytes of each.
    stride: usize,
}

const NUMBER_BYTES: usize = 8;

impl Layout {
    #[inline]
    const fn of(capacity: usize) -> Layout {
        let run = if capacity <= PAGE_CAPACITY { RunLength::Page } else { RunLength::Long };
        let bytes = run.pages() * PAGE_SIZE;
        let stride = capacity * 8;
        // Owners take 2 bytes an array, rounded up to 8 altogether.
        let arrays = (bytes - NUMBER_BYTES - 6) / (stride + 2);
        Layout { run, bytes, arrays, first: NUMBER_BYTES + (arrays * 2).next_multiple_of(8), stride }
    }
}

/// The arrays of one capacity.
#[derive(Default)]
struct Class {
    runs: Vec<Run>,
    /// Arrays in the last run.
    in_last: usize,
}

/// An array that was moved, to be told to its owner.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) owner: u16,
    pub(crate) words: NonNull<u64>,
}

/// Arrays of words, each owned by a number.
#[derive(Default)]
pub(crate) struct Arena {
    /// By class; empty until the first array comes.
    classes: Vec<Class>,
}

/// # Safety
/// `run` is the memory of a live run, and `index` is less than its number of arrays.
#[inline]
unsafe fn owner_at(run: NonNull<u8>, index: usize) -> NonNull<u16> {
    // SAFETY: owners follow the number.
    unsafe { run.add(NUMBER_BYTES).cast::<u16>().add(index) }
}

/// # Safety
/// As for [`owner_at`], with the layout of the run.
#[inline]
unsafe fn array_at(run: NonNull<u8>, layout: Layout, index: usize) -> NonNull<u64> {
    // SAFETY: the array lies within the run.
    unsafe { run.add(layout.first + index * layout.stride).cast() }
}

impl Arena {
    /// Takes an array of `capacity` words (as [`capacity_for`] gives it, not 0). Its content is undefined.
    pub(crate) fn take(&mut self, capacity: usize, owner: u16) -> NonNull<u64> {
        assert!(capacity > 0 && capacity <= LARGEST_CAPACITY && capacity == capacity_for(capacity));
        if self.classes.is_empty() {
            self.classes.resize_with(CLASSES, Class::default);
        }
        let layout = Layout::of(capacity);
        let class = &mut self.classes[class_of(capacity)];
        if class.runs.is_empty() || class.in_last == layout.arrays {
            let run = slab::take_run(layout.run);
            // SAFETY: a run begins with its number.
            unsafe { run.memory.cast::<usize>().write(class.runs.len()) };
            class.runs.push(run);
            class.in_last = 0;
        }
        slab::note_used(layout.stride, 0);
        let run = class.runs[class.runs.len() - 1].memory;
        let index = class.in_last;
        class.in_last += 1;
        // SAFETY: the run is live, and `index` is below its number of arrays.
        unsafe {
            owner_at(run, index).write(owner);
            array_at(run, layout, index)
        }
    }

    /// Gives an array back. The one that is returned was moved: its words are copied, its owner is to be told.
    ///
    /// # Safety
    /// `words` came from [`Arena::take`] of this arena with the same capacity, or from a [`Moved`] since, and is not used
    /// afterwards; nor is the address that the moved array had.
    pub(crate) unsafe fn give_back(&mut self, words: NonNull<u64>, capacity: usize) -> Option<Moved> {
        let layout = Layout::of(capacity);
        let class = &mut self.classes[class_of(capacity)];
        slab::note_used(0, layout.stride);
        // SAFETY: runs are aligned to their length, so the mask gives the array's own run, which begins with its number.
        let (number, index) = unsafe {
            let address = words.addr().get();
            let start = address & !(layout.bytes - 1);
            let number = words.as_ptr().with_addr(start).cast::<usize>().read();
            (number, (address - start - layout.first) / layout.stride)
        };
        let (last_number, last_index) = (class.runs.len() - 1, class.in_last - 1);
        let mut moved = None;
        if (number, index) != (last_number, last_index) {
            let (run, last) = (class.runs[number].memory, class.runs[last_number].memory);
            // SAFETY: both arrays are live and distinct. The words are copied whether they are in use or not.
            let owner = unsafe {
                let last_words = array_at(last, layout, last_index);
                ptr::copy_nonoverlapping(last_words.cast::<u8>().as_ptr(), words.cast().as_ptr(), layout.stride);
                let owner = owner_at(last, last_index).read();
                owner_at(run, index).write(owner);
                owner
            };
            moved = Some(Moved { owner, words });
        }
        class.in_last = last_index;
        if last_index == 0
            && let Some(run) = class.runs.pop()
        {
            // SAFETY: no array is left in the run.
            unsafe { slab::give_run_back(run, layout.run) };
            class.in_last = layout.arrays;
        }
        moved
    }

    /// Gives back one run of pages, whatever is in it; whether there was any.
    ///
    /// # Safety
    /// None of the arrays is used afterwards, and none is taken or given back.
    pub(crate) unsafe fn dismantle(&mut self) -> bool {
        while let Some(class) = self.classes.last_mut() {
            let Some(run) = class.runs.pop() else {
                self.classes.pop();
                continue;
            };
            let layout = Layout::of(capacity_of_class(self.classes.len() - 1));
            // The arrays of a class are counted as in use; those of its last run, popped first, may be fewer.
            let class = self.classes.last_mut().expect("looked at just now");
            slab::note_used(0, class.in_last * layout.stride);
            class.in_last = layout.arrays;
            // SAFETY: the caller promises that the arrays are not used any more.
            unsafe { slab::give_run_back(run, layout.run) };
            return true;
        }
        false
    }
}

/// The capacity of a class.
fn capacity_of_class(class: usize) -> usize {
    match class {
        0..16 => (class + 1) * 2,
        16..24 => 36 + (class - 16) * 4,
        24..32 => 72 + (class - 24) * 8,
        _ => 144 + (class - 32) * 16,
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: whoever was lent an array has gone before the arena.
        while unsafe { self.dismantle() } {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn capacities_hold_what_is_asked_for_and_have_a_class_each() {
        let mut capacities = Vec::new();
        for len in 1..=LARGEST_CAPACITY {
            let capacity = capacity_for(len);
            assert!(capacity >= len && capacity - len <= (len / 8).max(1), "{len} -> {capacity}");
            assert_eq!(capacity_for(capacity), capacity);
            assert_eq!(capacity_of_class(class_of(capacity)), capacity);
            if capacities.last() != Some(&capacity) {
                assert_eq!(class_of(capacity), capacities.len());
                capacities.push(capacity);
            }
            let layout = Layout::of(capacity);
            let end = layout.first + layout.arrays * layout.stride;
            assert!(NUMBER_BYTES + layout.arrays * 2 <= layout.first);
            assert!(
                end <= layout.bytes && layout.bytes - end < layout.bytes / 16,
                "{capacity} leaves {} bytes",
                layout.bytes - end
            );
        }
        assert_eq!(capacities.len(), CLASSES);
    }

    struct Held {
        words: NonNull<u64>,
        capacity: usize,
    }

    fn fill(held: &Held, owner: usize) {
        for index in 0..held.capacity {
            // SAFETY: the array has `capacity` words.
            unsafe { held.words.add(index).write((owner * 1000 + index) as u64) };
        }
    }

    fn check(held: &Held, owner: usize) {
        for index in 0..held.capacity {
            // SAFETY: the array has `capacity` words, all filled.
            assert_eq!(unsafe { held.words.add(index).read() }, (owner * 1000 + index) as u64);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// Each owner has at most one array; it keeps its content wherever it is moved, and the pages stay dense.
        #[test]
        fn arrays_keep_their_content(
            steps in prop::collection::vec((0usize..300, 0..=LARGEST_CAPACITY), 1..3000),
            spread in 1..=LARGEST_CAPACITY,
        ) {
            let before = slab::usage().used_bytes;
            let mut arena = Arena::default();
            let mut owners: Vec<Option<Held>> = Vec::new();
            owners.resize_with(300, || None);
            for (owner, len) in steps {
                if let Some(held) = owners[owner].take() {
                    check(&held, owner);
                    // SAFETY: the array is this owner's, and forgotten.
                    if let Some(moved) = unsafe { arena.give_back(held.words, held.capacity) } {
                        prop_assert_ne!(usize::from(moved.owner), owner);
                        let other = owners[usize::from(moved.owner)].as_mut().expect("an owner has an array");
                        prop_assert_eq!(other.capacity, held.capacity);
                        other.words = moved.words;
                    }
                }
                if len % spread > 0 {
                    let capacity = capacity_for(len % spread);
                    let held = Held { words: arena.take(capacity, owner as u16), capacity };
                    fill(&held, owner);
                    owners[owner] = Some(held);
                }
            }
            let mut arrays = vec![0usize; CLASSES];
            for (owner, held) in owners.iter().enumerate() {
                if let Some(held) = held {
                    check(held, owner);
                    arrays[class_of(held.capacity)] += 1;
                }
            }
            for (number, class) in arena.classes.iter().enumerate() {
                let layout = Layout::of(capacity_of_class(number));
                prop_assert_eq!(class.runs.len(), arrays[number].div_ceil(layout.arrays));
            }
            let held_bytes: usize = owners.iter().flatten().map(|held| held.capacity * 8).sum();
            prop_assert_eq!(slab::usage().used_bytes, before + held_bytes);
            drop(arena);
            prop_assert_eq!(slab::usage().used_bytes, before);
        }
    }
}
