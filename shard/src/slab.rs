//! The block allocator behind every entry, member and field of a shard.
//!
//! General allocators round small sizes up to coarse classes (80, 96, 112, …), which costs a keyspace of small entries
//! up to a tenth of its memory. Here a class is 8 bytes wide up to [`LARGEST_BLOCK`]; above it a block comes from the
//! process's allocator, rounded up to a sixteenth of its power of two so that a growing value is not moved at every
//! append. A block's size is a pure function of the bytes asked for ([`block_size`]), so nothing stores it.
//!
//! The pages are mapped from the kernel (see `chunk.rs`), not taken from the process's allocator.
//!
//! Each thread has a slab of its own and no block may leave its thread: there is no lock and no atomic. The types built
//! on blocks are `!Send`, which keeps that promise at compile time.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::cell::UnsafeCell;
use std::ptr::{self, NonNull};

#[cfg(test)]
use crate::chunk::CHUNK_SIZE;
use crate::chunk::{Chunk, Chunks, PAGE_SIZE, Run, RunLength};

/// Blocks up to this many bytes are carved from slab pages.
pub const LARGEST_BLOCK: usize = 1024;

const GRANULE: usize = 8;
const CLASSES: usize = LARGEST_BLOCK / GRANULE + 1;

/// Blocks up to this many bytes really come from pages. With `--cfg ruvio_system_blocks` none does: each comes from the
/// process's allocator, so that memory checkers see the bounds and the end of every block.
const LARGEST_PAGED: usize = if cfg!(ruvio_system_blocks) { 0 } else { LARGEST_BLOCK };

/// The bytes a block for `wanted` bytes really takes.
#[inline]
pub const fn block_size(wanted: usize) -> usize {
    if wanted <= LARGEST_BLOCK {
        if wanted == 0 { GRANULE } else { (wanted + GRANULE - 1) & !(GRANULE - 1) }
    } else {
        let step = 1usize << (usize::BITS - 1 - (wanted - 1).leading_zeros() - 4);
        (wanted + step - 1) & !(step - 1)
    }
}

/// Head of a page; its blocks follow.
struct Page {
    free: *mut FreeBlock,
    next: *mut Page,
    previous: *mut Page,
    chunk: NonNull<Chunk>,
    used: u32,
    /// Blocks never handed out yet start here (bytes from the page's start).
    untouched: u32,
    class: u32,
}

const PAGE_HEADER: usize = (size_of::<Page>() + GRANULE - 1) & !(GRANULE - 1);

struct FreeBlock {
    next: *mut FreeBlock,
}

struct Slab {
    /// For each class, the pages with room.
    partial: [*mut Page; CLASSES],
    chunks: Chunks,
    /// Bytes of all blocks in use, the large ones excepted.
    block_bytes: usize,
    /// Bytes of large blocks, and of what else of the keyspace is memory of the process's allocator.
    outside_bytes: usize,
}

/// What a thread's slab holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlabUsage {
    /// Bytes mapped for pages; the process's allocator does not count them.
    pub held_bytes: usize,
    /// Bytes in use within them.
    pub used_bytes: usize,
    /// Bytes of the keyspace that are memory of the process's allocator: large blocks, nodes of lists and trees.
    pub outside_bytes: usize,
}

impl SlabUsage {
    /// Bytes that the keyspace of this thread takes.
    pub fn keyspace_bytes(&self) -> usize {
        self.used_bytes + self.outside_bytes
    }
}

thread_local! {
    static SLAB: UnsafeCell<Slab> = const {
        UnsafeCell::new(Slab {
            partial: [ptr::null_mut(); CLASSES],
            chunks: Chunks::new(),
            block_bytes: 0,
            outside_bytes: 0,
        })
    };
}

/// Runs `work` on this thread's slab.
#[inline]
fn with_slab<R>(work: impl FnOnce(&mut Slab) -> R) -> R {
    // SAFETY: the cell is the thread's own, and no function of this module calls back into another one from within
    // `work`, so there is never a second reference.
    SLAB.with(|slab| work(unsafe { &mut *slab.get() }))
}

/// What this thread's slab holds now.
pub fn usage() -> SlabUsage {
    with_slab(|slab| SlabUsage {
        held_bytes: slab.chunks.held_bytes(),
        used_bytes: slab.block_bytes,
        outside_bytes: slab.outside_bytes,
    })
}

/// Notes that the keyspace holds `taken` bytes more, and `given_back` less, of the process's allocator.
#[inline]
pub(crate) fn note_outside(taken: usize, given_back: usize) {
    with_slab(|slab| slab.outside_bytes = slab.outside_bytes + taken - given_back);
}

fn large_layout(size: usize) -> Layout {
    Layout::from_size_align(size, GRANULE).expect("block sizes are bounded by the protocol's limits")
}

/// Takes a block of `block_size(wanted)` bytes, aligned to 8. Its content is undefined.
#[inline]
pub fn allocate(wanted: usize) -> NonNull<u8> {
    let size = block_size(wanted);
    if size > LARGEST_PAGED {
        let layout = large_layout(size);
        note_outside(size, 0);
        // SAFETY: the layout's size is not zero.
        return NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
    }
    with_slab(|slab| slab.allocate(size))
}

/// Gives a block back.
///
/// # Safety
/// `block` came from [`allocate`] (or [`resize`]) on this thread with the same `block_size(wanted)`, and is not used
/// afterwards.
#[inline]
pub unsafe fn free(block: NonNull<u8>, wanted: usize) {
    let size = block_size(wanted);
    if size > LARGEST_PAGED {
        note_outside(0, size);
        // SAFETY: the caller's promise: same size, so same layout.
        unsafe { dealloc(block.as_ptr(), large_layout(size)) };
    } else {
        // SAFETY: the caller's promise.
        with_slab(|slab| unsafe { slab.free(block) });
    }
}

/// Changes a block from `old` to `new` wanted bytes; keeps the first `min(old, new)` bytes.
///
/// # Safety
/// As for [`free`], with `old` for `wanted`. The returned block replaces `block`.
pub unsafe fn resize(block: NonNull<u8>, old: usize, new: usize) -> NonNull<u8> {
    let (old_size, new_size) = (block_size(old), block_size(new));
    if old_size == new_size {
        return block;
    }
    if old_size > LARGEST_PAGED && new_size > LARGEST_PAGED {
        let layout = large_layout(new_size);
        note_outside(new_size, old_size);
        // SAFETY: the block was allocated with the old layout, by the caller's promise.
        let moved = unsafe { realloc(block.as_ptr(), large_layout(old_size), new_size) };
        return NonNull::new(moved).unwrap_or_else(|| handle_alloc_error(layout));
    }
    let moved = allocate(new);
    // SAFETY: both blocks are valid for the smaller of the two lengths and distinct.
    unsafe {
        ptr::copy_nonoverlapping(block.as_ptr(), moved.as_ptr(), old.min(new));
        free(block, old);
    }
    moved
}

impl Slab {
    #[inline]
    fn allocate(&mut self, size: usize) -> NonNull<u8> {
        let class = size / GRANULE;
        let page = self.partial[class];
        if page.is_null() {
            return self.allocate_from_new_page(class);
        }
        // SAFETY: pages in `partial` are live and have room: a free block, or an untouched one.
        unsafe { self.take_from(page, class) }
    }

    #[cold]
    fn allocate_from_new_page(&mut self, class: usize) -> NonNull<u8> {
        let page = self.new_page();
        // SAFETY: `new_page` returns PAGE_SIZE writable bytes, aligned to PAGE_SIZE, whose header it set up.
        unsafe {
            (*page).class = class as u32;
            self.link(page);
            self.take_from(page, class)
        }
    }

    /// # Safety
    /// `page` is a live page of `class` with room.
    #[inline]
    unsafe fn take_from(&mut self, page: *mut Page, class: usize) -> NonNull<u8> {
        let size = class * GRANULE;
        // SAFETY: by the promise above the page has a free block, or `untouched` leaves room for one more.
        unsafe {
            let block = if (*page).free.is_null() {
                let block = page.cast::<u8>().add((*page).untouched as usize);
                (*page).untouched += size as u32;
                block
            } else {
                let block = (*page).free;
                (*page).free = (*block).next;
                block.cast()
            };
            (*page).used += 1;
            self.block_bytes += size;
            if (*page).free.is_null() && (*page).untouched as usize + size > PAGE_SIZE {
                self.unlink(page);
            }
            NonNull::new_unchecked(block)
        }
    }

    /// # Safety
    /// `block` is a live block of one of this slab's pages.
    #[inline]
    unsafe fn free(&mut self, block: NonNull<u8>) {
        let page = block.as_ptr().map_addr(|address| address & !(PAGE_SIZE - 1)).cast::<Page>();
        // SAFETY: pages are aligned to their size, so the mask gives the block's own page, whose header is live.
        unsafe {
            let class = (*page).class as usize;
            let size = class * GRANULE;
            let was_full = (*page).free.is_null() && (*page).untouched as usize + size > PAGE_SIZE;
            let free = block.as_ptr().cast::<FreeBlock>();
            (*free).next = (*page).free;
            (*page).free = free;
            (*page).used -= 1;
            self.block_bytes -= size;
            if was_full {
                self.link(page);
            }
            if (*page).used == 0 {
                self.unlink(page);
                self.release_page(page);
            }
        }
    }

    /// # Safety
    /// `page` is live and in no list.
    unsafe fn link(&mut self, page: *mut Page) {
        // SAFETY: list members are live pages.
        unsafe {
            let head = &mut self.partial[(*page).class as usize];
            (*page).previous = ptr::null_mut();
            (*page).next = *head;
            if !(*head).is_null() {
                (**head).previous = page;
            }
            *head = page;
        }
    }

    /// # Safety
    /// `page` is live and in its class's list.
    unsafe fn unlink(&mut self, page: *mut Page) {
        // SAFETY: list members are live pages.
        unsafe {
            if (*page).previous.is_null() {
                self.partial[(*page).class as usize] = (*page).next;
            } else {
                (*(*page).previous).next = (*page).next;
            }
            if !(*page).next.is_null() {
                (*(*page).next).previous = (*page).previous;
            }
        }
    }

    fn new_page(&mut self) -> *mut Page {
        let Run { memory, chunk } = self.chunks.take(RunLength::Page);
        let page = memory.cast::<Page>();
        // SAFETY: the run is a whole page, aligned to its size, and nobody else's.
        unsafe {
            page.write(Page {
                free: ptr::null_mut(),
                next: ptr::null_mut(),
                previous: ptr::null_mut(),
                chunk,
                used: 0,
                untouched: PAGE_HEADER as u32,
                class: 0,
            });
        }
        page.as_ptr()
    }

    /// # Safety
    /// `page` is live, empty and in no list.
    unsafe fn release_page(&mut self, page: *mut Page) {
        // SAFETY: the page was made of one run of one page, and the caller promises that nothing uses it any more.
        unsafe {
            let run = Run { memory: NonNull::new_unchecked(page.cast()), chunk: (*page).chunk };
            self.chunks.give_back(run);
        }
    }
}

fn run_layout(length: RunLength) -> Layout {
    let bytes = length.pages() * PAGE_SIZE;
    Layout::from_size_align(bytes, bytes).expect("a run is of few pages")
}

/// Takes pages side by side for blocks that somebody else divides them into. Their content is undefined.
pub(crate) fn take_run(length: RunLength) -> Run {
    if cfg!(ruvio_system_blocks) {
        let layout = run_layout(length);
        // SAFETY: the layout's size is not zero.
        let memory = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        return Run { memory, chunk: NonNull::dangling() };
    }
    with_slab(|slab| slab.chunks.take(length))
}

/// Gives a run back.
///
/// # Safety
/// `run` came from [`take_run`] on this thread, with the same length, and nothing uses it any more.
pub(crate) unsafe fn give_run_back(run: Run, length: RunLength) {
    if cfg!(ruvio_system_blocks) {
        // SAFETY: the caller's promise: same length, so same layout.
        return unsafe { dealloc(run.memory.as_ptr(), run_layout(length)) };
    }
    // SAFETY: the caller's promise.
    with_slab(|slab| unsafe { slab.chunks.give_back(run) });
}

/// Notes that `taken` bytes of the runs are in use now that were not, and `given_back` no longer.
pub(crate) fn note_used(taken: usize, given_back: usize) {
    with_slab(|slab| slab.block_bytes = slab.block_bytes + taken - given_back);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sizes_hold_what_was_asked_for_and_waste_little() {
        for wanted in 1..100_000 {
            let size = block_size(wanted);
            assert!(size >= wanted && size.is_multiple_of(GRANULE), "{wanted} -> {size}");
            let waste = if wanted <= LARGEST_BLOCK { GRANULE } else { wanted / 8 };
            assert!(size - wanted < waste, "{wanted} -> {size}");
            assert_eq!(block_size(size), size);
        }
    }

    #[test]
    fn blocks_do_not_overlap_and_all_memory_returns() {
        let mut blocks: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
        let mut state = 1u64;
        for step in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if state >> 63 == 0 || blocks.is_empty() {
                let wanted = 1 + (state >> 40) as usize % 1500;
                let block = allocate(wanted);
                // SAFETY: the block has `wanted` bytes.
                unsafe { ptr::write_bytes(block.as_ptr(), step as u8, wanted) };
                blocks.push((block, wanted, step as u8));
            } else {
                let (block, wanted, byte) = blocks.swap_remove((state >> 33) as usize % blocks.len());
                // SAFETY: the block is live and was filled over its whole length.
                let content = unsafe { std::slice::from_raw_parts(block.as_ptr(), wanted) };
                assert!(content.iter().all(|&b| b == byte));
                let grown = wanted + 40;
                // SAFETY: the block is live with this size.
                let block = unsafe { resize(block, wanted, grown) };
                // SAFETY: `resize` keeps the first bytes.
                let content = unsafe { std::slice::from_raw_parts(block.as_ptr(), wanted) };
                assert!(content.iter().all(|&b| b == byte));
                // SAFETY: the block is live with the grown size.
                unsafe { free(block, grown) };
            }
        }
        for (block, wanted, _) in blocks {
            // SAFETY: each is live and freed once.
            unsafe { free(block, wanted) };
        }
        assert_eq!(usage().keyspace_bytes(), 0);
        assert!(usage().held_bytes <= CHUNK_SIZE);
    }
}
