//! Where a slab's pages come from: chunks mapped straight from the kernel.
//!
//! A chunk is as large as a huge page and aligned to its own size; its pages are handed out front to back, one by one or
//! in runs of four. What the kernel backs it with is decided here. A slab up to [`SMALL_BYTES`] lives in small pages, so
//! that it takes no more than it touches. A larger one asks for huge pages, because random look-ups over it would
//! otherwise pay for a walk of the page tables each time: at once for every further chunk, and for those it has in the
//! background (`khugepaged`), since copying them on the spot would hold the core up.

use std::alloc::{Layout, handle_alloc_error};
use std::ptr::{self, NonNull};

/// Bytes of a page.
pub(crate) const PAGE_SIZE: usize = 16 * 1024;
/// Pages of a long run.
pub(crate) const LONG_RUN: usize = 4;

const PAGES_IN_CHUNK: usize = 128;
/// Bytes of a chunk: a huge page.
pub(crate) const CHUNK_SIZE: usize = PAGE_SIZE * PAGES_IN_CHUNK;
const ALL_FREE: u128 = u128::MAX;
/// The bits at which a long run may start: runs are aligned to their own size.
const LONG_RUN_STARTS: u128 = u128::MAX / 0xf;

/// Bytes of chunks that a slab holds in small pages before it asks for huge ones.
const SMALL_BYTES: usize = 64 * 1024 * 1024;

/// Chunks that are searched for a long run before another one is mapped.
const LONG_RUN_TRIES: usize = 8;

/// Pages side by side, aligned to their length, and the chunk that they belong to.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) memory: NonNull<u8>,
    pub(crate) chunk: NonNull<Chunk>,
}

/// Pages mapped at once.
pub(crate) struct Chunk {
    memory: NonNull<u8>,
    free_pages: u128,
    next: *mut Chunk,
    previous: *mut Chunk,
}

/// A thread's chunks.
pub(crate) struct Chunks {
    /// Those with a free page.
    with_room: *mut Chunk,
    held_bytes: usize,
    /// Chunks that are wholly free: at most one is kept.
    empty: usize,
    /// The chunks in small pages.
    small: [Option<NonNull<u8>>; SMALL_BYTES / CHUNK_SIZE],
}

impl Chunks {
    pub(crate) const fn new() -> Chunks {
        Chunks { with_room: ptr::null_mut(), held_bytes: 0, empty: 0, small: [None; SMALL_BYTES / CHUNK_SIZE] }
    }

    /// Bytes of all chunks.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Takes a page; its content is undefined.
    pub(crate) fn take_page(&mut self) -> Run {
        if self.with_room.is_null() {
            self.map_chunk();
        }
        let chunk = self.with_room;
        // SAFETY: `with_room` holds live chunks with a free page.
        unsafe { self.take(chunk, (*chunk).free_pages.trailing_zeros() as usize, 1) }
    }

    /// Takes [`LONG_RUN`] pages; their content is undefined.
    pub(crate) fn take_long_run(&mut self) -> Run {
        let mut chunk = self.with_room;
        for _ in 0..LONG_RUN_TRIES {
            if chunk.is_null() {
                break;
            }
            // SAFETY: members of the list are live.
            let free = unsafe { (*chunk).free_pages };
            let starts = free & free >> 1 & free >> 2 & free >> 3 & LONG_RUN_STARTS;
            if starts != 0 {
                // SAFETY: the chunk is live, and these four pages of it are free.
                return unsafe { self.take(chunk, starts.trailing_zeros() as usize, LONG_RUN) };
            }
            // SAFETY: members of the list are live.
            chunk = unsafe { (*chunk).next };
        }
        self.map_chunk();
        // SAFETY: the new chunk is the first of the list, and wholly free.
        unsafe { self.take(self.with_room, 0, LONG_RUN) }
    }

    /// # Safety
    /// `chunk` is in `with_room`, and its `count` pages from `index` on are free.
    unsafe fn take(&mut self, chunk: *mut Chunk, index: usize, count: usize) -> Run {
        // SAFETY: the chunk is live, and the pages lie within its memory.
        unsafe {
            if (*chunk).free_pages == ALL_FREE {
                self.empty -= 1;
            }
            (*chunk).free_pages &= !(((1 << count) - 1) << index);
            if (*chunk).free_pages == 0 {
                self.unlink(chunk);
            }
            Run { memory: (*chunk).memory.add(index * PAGE_SIZE), chunk: NonNull::new_unchecked(chunk) }
        }
    }

    /// Gives pages back.
    ///
    /// # Safety
    /// `run` was taken from here as `count` pages, and nothing uses them any more.
    pub(crate) unsafe fn give_back(&mut self, run: Run, count: usize) {
        let chunk = run.chunk.as_ptr();
        // SAFETY: a chunk lives as long as any of its pages is in use.
        unsafe {
            let index = (run.memory.addr().get() - (*chunk).memory.addr().get()) / PAGE_SIZE;
            if (*chunk).free_pages == 0 {
                self.link(chunk);
            }
            (*chunk).free_pages |= ((1 << count) - 1) << index;
            if (*chunk).free_pages != ALL_FREE {
                return;
            }
            if self.empty == 0 {
                self.empty = 1;
                return;
            }
            self.unlink(chunk);
            let memory = (*chunk).memory;
            if let Some(small) = self.small.iter_mut().find(|small| **small == Some(memory)) {
                *small = None;
            }
            unmap(memory, CHUNK_SIZE);
            drop(Box::from_raw(chunk));
            self.held_bytes -= CHUNK_SIZE;
        }
    }

    fn map_chunk(&mut self) {
        let memory = map_aligned();
        if self.held_bytes < SMALL_BYTES
            && let Some(room) = self.small.iter_mut().find(|small| small.is_none())
        {
            *room = Some(memory);
        } else {
            ask_for_huge_page(memory);
            self.small.iter_mut().filter_map(Option::take).for_each(ask_for_huge_page);
        }
        self.held_bytes += CHUNK_SIZE;
        self.empty += 1;
        let chunk = Chunk { memory, free_pages: ALL_FREE, next: ptr::null_mut(), previous: ptr::null_mut() };
        // SAFETY: the chunk was made just now and is in no list.
        unsafe { self.link(Box::into_raw(Box::new(chunk))) };
    }

    /// # Safety
    /// `chunk` is live and in no list.
    unsafe fn link(&mut self, chunk: *mut Chunk) {
        // SAFETY: list members are live chunks.
        unsafe {
            (*chunk).previous = ptr::null_mut();
            (*chunk).next = self.with_room;
            if !self.with_room.is_null() {
                (*self.with_room).previous = chunk;
            }
            self.with_room = chunk;
        }
    }

    /// # Safety
    /// `chunk` is live and in the list.
    unsafe fn unlink(&mut self, chunk: *mut Chunk) {
        // SAFETY: list members are live chunks.
        unsafe {
            if (*chunk).previous.is_null() {
                self.with_room = (*chunk).next;
            } else {
                (*(*chunk).previous).next = (*chunk).next;
            }
            if !(*chunk).next.is_null() {
                (*(*chunk).next).previous = (*chunk).previous;
            }
        }
    }
}

/// Maps a chunk's memory, aligned to its size.
fn map_aligned() -> NonNull<u8> {
    // Mapped one below the other, chunks are aligned as soon as the first one is.
    let memory = map(CHUNK_SIZE);
    let offset = memory.addr().get() % CHUNK_SIZE;
    if offset == 0 {
        return memory;
    }
    // SAFETY: the memory was mapped just now and is used by nobody. Of the larger mapping only the aligned chunk stays.
    unsafe {
        unmap(memory, CHUNK_SIZE);
        let wide = map(2 * CHUNK_SIZE);
        let before = wide.addr().get().next_multiple_of(CHUNK_SIZE) - wide.addr().get();
        unmap(wide, before);
        unmap(wide.add(before + CHUNK_SIZE), CHUNK_SIZE - before);
        wide.add(before)
    }
}

fn map(bytes: usize) -> NonNull<u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing that exists.
    let memory = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    match NonNull::new(memory.cast::<u8>()) {
        Some(memory) if memory.as_ptr().cast() != libc::MAP_FAILED => memory,
        _ => handle_alloc_error(Layout::from_size_align(bytes, PAGE_SIZE).expect("a constant layout")),
    }
}

/// # Safety
/// The memory was mapped by [`map`], and nothing uses it any more.
unsafe fn unmap(memory: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller's promise. It fails only where the kernel has no room to split a mapping, which then stays.
        unsafe { libc::munmap(memory.as_ptr().cast(), bytes) };
    }
}

/// Where the kernel has no huge pages, the small ones do.
fn ask_for_huge_page(memory: NonNull<u8>) {
    // SAFETY: advice about a live chunk changes nothing of its content.
    unsafe { libc::madvise(memory.as_ptr().cast(), CHUNK_SIZE, libc::MADV_HUGEPAGE) };
}
