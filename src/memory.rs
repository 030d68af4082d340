//! The memory figure: what the process's allocator has handed out, and what is in use of the slabs' pages.
//!
//! The pages of slabs are mapped from the kernel, so the allocator does not see them, and what is unused of them counts
//! nowhere.
//!
//! A core counts in a place of its own, so counting costs two plain memory accesses; threads that are no core share
//! one. A block may be freed by another thread than the one that took it: a single count says nothing about its core and
//! can fall below zero, their sum is right. What a core's keys take is counted by the slabs, whose memory stays with its
//! thread.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use mimalloc::MiMalloc;

/// Cores that can count for themselves.
pub const MAX_CORES: usize = 256;

/// A counter in a cache line of its own.
#[repr(align(64))]
struct Counter(AtomicI64);

static HELD: [Counter; MAX_CORES + 1] = [const { Counter(AtomicI64::new(0)) }; MAX_CORES + 1];

/// Bytes in use of the pages of cores' slabs.
static SLAB_USED: [Counter; MAX_CORES] = [const { Counter(AtomicI64::new(0)) }; MAX_CORES];

/// Bytes that the keys of cores take, of the slabs and of the allocator.
static KEYSPACE: [Counter; MAX_CORES] = [const { Counter(AtomicI64::new(0)) }; MAX_CORES];

/// Of these, what may be evicted, as far as a core knows.
static EVICTABLE: [Counter; MAX_CORES] = [const { Counter(AtomicI64::new(0)) }; MAX_CORES];

/// Bytes that the logs of cores hold until they are written.
static LOG: [Counter; MAX_CORES] = [const { Counter(AtomicI64::new(0)) }; MAX_CORES];

/// Cores that count for themselves.
static CORES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CORE: Cell<usize> = const { Cell::new(MAX_CORES) };
}

/// Lets this thread count as core `core`.
pub fn become_core(core: usize) {
    assert!(core < MAX_CORES, "a process has at most {MAX_CORES} cores");
    CORE.set(core);
    CORES.fetch_max(core + 1, Ordering::Relaxed);
}

/// Notes how many bytes of the slab of this thread's core are in use, and what its keys take.
pub fn note_slab() {
    if let (Some(used), Some(keyspace)) = (SLAB_USED.get(CORE.get()), KEYSPACE.get(CORE.get())) {
        let usage = ruvio_shard::slab::usage();
        used.0.store(usage.used_bytes as i64, Ordering::Relaxed);
        keyspace.0.store(usage.keyspace_bytes() as i64, Ordering::Relaxed);
    }
}

/// The allocator's name.
pub const ALLOCATOR_NAME: &str = "mimalloc";

/// mimalloc's option for how long memory stays with it that is free, in ms: `mi_option_purge_delay` in its `mimalloc.h`.
const PURGE_DELAY: std::ffi::c_int = 15;

/// How long that is here. With mimalloc's own second, what a huge collection has left was given back in one call, which took
/// up to 20 ms.
const PURGE_DELAY_MS: std::ffi::c_long = 10;

/// Has the allocator give free memory back soon, and so a little at a time. To be called before there are other threads.
pub fn give_back_soon() {
    // SAFETY: the option is a number, and mimalloc looks at it whenever it frees pages.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) };
}

/// Has this thread give free memory back to the kernel.
pub fn release() {
    // SAFETY: mi_collect works on the calling thread's heap only and may be called at any time.
    unsafe { libmimalloc_sys::mi_collect(true) };
}

/// Bytes that the process holds in use.
pub fn used() -> u64 {
    note_slab();
    let cores = CORES.load(Ordering::Relaxed);
    let sum = |counters: &[Counter]| -> i64 { counters.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum() };
    (sum(&HELD[..cores]) + sum(&HELD[MAX_CORES..]) + sum(&SLAB_USED[..cores])).max(0) as u64
}

/// Notes what the log of this thread's core holds.
#[inline]
pub fn note_log(bytes: usize) {
    if let Some(log) = LOG.get(CORE.get()) {
        log.0.store(bytes as i64, Ordering::Relaxed);
    }
}

/// Bytes held in use that no limit is for: what is logged takes memory until it is written, and to evict keys would not
/// free it.
pub fn not_limited() -> u64 {
    let cores = CORES.load(Ordering::Relaxed);
    LOG[..cores].iter().map(|counter| counter.0.load(Ordering::Relaxed).max(0) as u64).sum()
}

/// Bytes held in use that count against the limit.
pub fn limited() -> u64 {
    used().saturating_sub(not_limited())
}

/// Bytes that the keys of core `core` take, as of its last turn.
pub fn keyspace_of(core: usize) -> u64 {
    KEYSPACE[core].0.load(Ordering::Relaxed).max(0) as u64
}

/// Notes that the keys of this thread's core that may be evicted take `bytes`; whether that is no less than the average
/// of the cores that have any.
pub fn is_due(bytes: u64) -> bool {
    let Some(own) = EVICTABLE.get(CORE.get()) else { return true };
    own.0.store(bytes as i64, Ordering::Relaxed);
    let (mut sum, mut cores) = (0, 0);
    for counter in &EVICTABLE[..CORES.load(Ordering::Relaxed)] {
        let bytes = counter.0.load(Ordering::Relaxed) as u64;
        sum += bytes;
        cores += u64::from(bytes > 0);
    }
    bytes * cores >= sum
}

#[inline]
fn count(bytes: i64) {
    let core = CORE.get();
    let counter = &HELD[core].0;
    if core == MAX_CORES {
        counter.fetch_add(bytes, Ordering::Relaxed);
    } else {
        // Only this thread writes here, so no read-modify-write instruction is needed.
        counter.store(counter.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }
}

/// mimalloc, with a count of the bytes it holds for us.
pub struct CountingAllocator;

#[inline]
fn rounded(layout: Layout) -> i64 {
    // mimalloc's own classes: 8 bytes wide up to 64, then a quarter of a power of two.
    let size = layout.size().max(8);
    let step = if size <= 64 { 8 } else { 1 << (usize::BITS - 1 - (size - 1).leading_zeros() - 2) };
    ((size + step - 1) & !(step - 1)) as i64
}

// SAFETY: every call goes to mimalloc unchanged; counting touches no allocated memory and does not allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(rounded(layout));
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-rounded(layout));
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(rounded(layout));
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size, rounded up to the alignment, does not overflow.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        count(rounded(new_layout) - rounded(layout));
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.realloc(pointer, layout, new_size) }
    }
}
