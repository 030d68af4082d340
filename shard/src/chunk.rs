//! Where a slab's pages come from: chunks mapped straight from the kernel.
//!
//! A chunk is as large as a huge page and aligned to its own size. Its pages are handed out front to back, one by one or
//! in runs of four; a chunk serves one of the two for as long as any of its pages is in use, or else single pages would
//! soon leave no four side by side anywhere.
//!
//! What the kernel backs a chunk with is decided here. It is filled in small pages, so that it takes no more than was
//! touched, and nobody waits until a huge page has been found and cleared, which may take milliseconds. Once a slab is
//! larger than [`COLLAPSE_BYTES`], where random look-ups begin to pay for walks of the page tables, huge pages are put
//! behind the chunks that are full, in the background (`huge_pages.rs`). Past [`PREPARE_BYTES`], where a chunk more is
//! little beside those there are, the next chunk is made ready in the background too, as one huge page.

use std::alloc::{Layout, handle_alloc_error};
use std::ptr::{self, NonNull};

use crate::huge_pages::{self, Prepared};

/// Bytes of a page.
pub(crate) const PAGE_SIZE: usize = 16 * 1024;
/// Pages of a long run.
pub(crate) const LONG_RUN: usize = 4;

const PAGES_IN_CHUNK: usize = 128;
/// Bytes of a chunk: a huge page.
pub(crate) const CHUNK_SIZE: usize = PAGE_SIZE * PAGES_IN_CHUNK;
const ALL_FREE: u128 = u128::MAX;
/// Bytes of chunks that a slab holds before it asks for huge pages.
const COLLAPSE_BYTES: usize = 8 << 20;
/// Bytes of chunks that a slab holds before it has chunks made ready.
const PREPARE_BYTES: usize = 52 << 20;

/// How many pages are taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunLength {
    /// One.
    Page = 0,
    /// [`LONG_RUN`].
    Long = 1,
}

impl RunLength {
    pub(crate) const fn pages(self) -> usize {
        match self {
            RunLength::Page => 1,
            RunLength::Long => LONG_RUN,
        }
    }
}

/// Pages side by side, aligned to their length, and the chunk that they belong to.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) memory: NonNull<u8>,
    pub(crate) chunk: NonNull<Chunk>,
}

/// Pages mapped at once.
pub(crate) struct Chunk {
    memory: NonNull<u8>,
    /// What it serves.
    length: RunLength,
    free_pages: u128,
    /// Whether it has a huge page, or one was asked for.
    huge: bool,
    next: *mut Chunk,
    previous: *mut Chunk,
}

/// A thread's chunks.
pub(crate) struct Chunks {
    /// For each length, those with some pages in use and some free.
    with_room: [*mut Chunk; 2],
    /// One that is wholly free.
    spare: *mut Chunk,
    held_bytes: usize,
    /// Memory that is made ready in the background; counted among `held_bytes`.
    prepared: Option<Prepared>,
}

impl Chunks {
    pub(crate) const fn new() -> Chunks {
        Chunks { with_room: [ptr::null_mut(); 2], spare: ptr::null_mut(), held_bytes: 0, prepared: None }
    }

    /// Bytes of all chunks.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Takes pages; their content is undefined.
    pub(crate) fn take(&mut self, length: RunLength) -> Run {
        if self.with_room[length as usize].is_null() {
            self.add_chunk(length);
        }
        let chunk = self.with_room[length as usize];
        // SAFETY: `with_room` holds live chunks with a free run of their length; the run lies within the chunk's memory.
        unsafe {
            let index = (*chunk).free_pages.trailing_zeros() as usize;
            (*chunk).free_pages &= !(((1 << length.pages()) - 1) << index);
            if (*chunk).free_pages == 0 {
                self.unlink(chunk);
                if !(*chunk).huge && self.held_bytes >= COLLAPSE_BYTES {
                    (*chunk).huge = true;
                    huge_pages::collapse((*chunk).memory, CHUNK_SIZE);
                }
            }
            Run { memory: (*chunk).memory.add(index * PAGE_SIZE), chunk: NonNull::new_unchecked(chunk) }
        }
    }

    /// Gives pages back.
    ///
    /// # Safety
    /// `run` was taken from here, and nothing uses it any more.
    pub(crate) unsafe fn give_back(&mut self, run: Run) {
        let chunk = run.chunk.as_ptr();
        // SAFETY: a chunk lives as long as any of its pages is in use.
        unsafe {
            let index = (run.memory.addr().get() - (*chunk).memory.addr().get()) / PAGE_SIZE;
            if (*chunk).free_pages == 0 {
                self.link(chunk);
            }
            (*chunk).free_pages |= ((1 << (*chunk).length.pages()) - 1) << index;
            if (*chunk).free_pages != ALL_FREE {
                return;
            }
            self.unlink(chunk);
            if self.spare.is_null() {
                self.spare = chunk;
                return;
            }
            let memory = (*chunk).memory;
            if !huge_pages::unmap_later(memory, CHUNK_SIZE) {
                unmap(memory, CHUNK_SIZE);
            }
            drop(Box::from_raw(chunk));
            self.held_bytes -= CHUNK_SIZE;
        }
    }

    #[cold]
    fn add_chunk(&mut self, length: RunLength) {
        let mut chunk = std::mem::replace(&mut self.spare, ptr::null_mut());
        if chunk.is_null() {
            chunk = self.map_chunk();
        }
        // SAFETY: the chunk is live, in no list, and wholly free, so that it may serve either length.
        unsafe {
            (*chunk).length = length;
            self.link(chunk);
        }
    }

    fn map_chunk(&mut self) -> *mut Chunk {
        let ready = self.prepared.take_if(|prepared| prepared.is_ready());
        let huge = ready.is_some();
        let memory = ready.map_or_else(map_aligned, Prepared::take);
        if !huge {
            self.held_bytes += CHUNK_SIZE;
        }
        if self.held_bytes >= PREPARE_BYTES && self.prepared.is_none() {
            self.held_bytes += CHUNK_SIZE;
            self.prepared = Some(huge_pages::prepare(map_aligned(), CHUNK_SIZE));
        }
        let (next, previous) = (ptr::null_mut(), ptr::null_mut());
        Box::into_raw(Box::new(Chunk { memory, length: RunLength::Page, free_pages: ALL_FREE, huge, next, previous }))
    }

    /// # Safety
    /// `chunk` is live and in no list.
    unsafe fn link(&mut self, chunk: *mut Chunk) {
        // SAFETY: list members are live chunks.
        unsafe {
            let head = &mut self.with_room[(*chunk).length as usize];
            (*chunk).previous = ptr::null_mut();
            (*chunk).next = *head;
            if !(*head).is_null() {
                (**head).previous = chunk;
            }
            *head = chunk;
        }
    }

    /// # Safety
    /// `chunk` is live and in the list.
    unsafe fn unlink(&mut self, chunk: *mut Chunk) {
        // SAFETY: list members are live chunks.
        unsafe {
            if (*chunk).previous.is_null() {
                self.with_room[(*chunk).length as usize] = (*chunk).next;
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
