//! A member of a large set: its length and its bytes in one block.
//!
//! ```text
//! byte 0      length, or 255 and then 4 bytes of length (little-endian)
//! ...         the member
//! ```

use std::ptr::{self, NonNull};

use crate::slab;
use crate::table::Block;

const LONG: u8 = 255;
const LONG_PREFIX: usize = 5;

/// A member, owned.
#[repr(transparent)]
pub struct Member(NonNull<u8>);

#[inline]
fn prefix_len(len: usize) -> usize {
    if len < LONG as usize { 1 } else { LONG_PREFIX }
}

/// The content of the block at `raw`.
///
/// # Safety
/// `raw` is the block of a live [`Member`], which is neither changed nor freed during `'a`.
#[inline]
unsafe fn content<'a>(raw: NonNull<u8>) -> &'a [u8] {
    // SAFETY: every block begins with its prefix, which tells how many initialised bytes follow; the caller promises
    // that they stay.
    unsafe {
        let base = raw.as_ptr();
        let (start, len) = match base.read() {
            LONG => (LONG_PREFIX, u32::from_le_bytes(base.add(1).cast::<[u8; 4]>().read_unaligned()) as usize),
            short => (1, short as usize),
        };
        std::slice::from_raw_parts(base.add(start), len)
    }
}

impl Member {
    /// A member with a copy of `bytes`.
    ///
    /// # Panics
    /// When there are 4 GiB of them or more, which the protocol does not let through.
    pub fn new(bytes: &[u8]) -> Member {
        let long = u32::try_from(bytes.len()).expect("the protocol bounds lengths below 4 GiB");
        let prefix = prefix_len(bytes.len());
        let block = slab::allocate(prefix + bytes.len());
        // SAFETY: the block has room for the prefix and the bytes, and is new, so it does not overlap them.
        unsafe {
            let base = block.as_ptr();
            if prefix == 1 {
                base.write(long as u8);
            } else {
                base.write(LONG);
                base.add(1).cast::<[u8; 4]>().write_unaligned(long.to_le_bytes());
            }
            ptr::copy_nonoverlapping(bytes.as_ptr(), base.add(prefix), bytes.len());
        }
        Member(block)
    }

    /// The member's bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the block is live and is borrowed with `self`.
        unsafe { content(self.0) }
    }

    /// Bytes of the block of a member of `len` bytes.
    #[inline]
    pub fn block_bytes(len: usize) -> usize {
        slab::block_size(prefix_len(len) + len)
    }
}

impl Drop for Member {
    #[inline]
    fn drop(&mut self) {
        let len = self.bytes().len();
        // SAFETY: the block was allocated for just this many bytes, and the member is gone.
        unsafe { slab::free(self.0, prefix_len(len) + len) };
    }
}

// SAFETY: slab blocks are aligned to 8 and user-space addresses fit 48 bits; the key is the content of the block.
unsafe impl Block for Member {
    type Ref<'a> = &'a [u8];

    #[inline]
    fn into_raw(self) -> NonNull<u8> {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }

    #[inline]
    unsafe fn from_raw(raw: NonNull<u8>) -> Member {
        Member(raw)
    }

    #[inline]
    unsafe fn view<'a>(raw: NonNull<u8>) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { content(raw) }
    }

    #[inline]
    unsafe fn key<'a>(raw: NonNull<u8>) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { content(raw) }
    }

    #[inline]
    unsafe fn marked(_raw: NonNull<u8>) -> bool {
        false
    }
}
