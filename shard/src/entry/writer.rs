//! Filling the block of an entry.

use std::ptr::{self, NonNull};

use super::{Encoding, LONG};

/// The fewest little-endian bytes for an integer: encoding, bytes, how many of them.
#[inline]
pub(super) fn integer_bytes(value: i64) -> (Encoding, [u8; 8], usize) {
    let bytes = value.to_le_bytes();
    if value == i64::from(value as i8) {
        (Encoding::Int8, bytes, 1)
    } else if value == i64::from(value as i16) {
        (Encoding::Int16, bytes, 2)
    } else if value == i64::from(value as i32) {
        (Encoding::Int32, bytes, 4)
    } else {
        (Encoding::Int64, bytes, 8)
    }
}

/// Fills a block from front to back.
pub(super) struct Writer {
    at: *mut u8,
    end: *mut u8,
}

impl Writer {
    /// # Safety
    /// `block` has `total` writable bytes.
    #[inline]
    pub(super) unsafe fn new(block: NonNull<u8>, total: usize) -> Writer {
        // SAFETY: the caller's promise.
        unsafe { Writer::new_at(block, 0, total) }
    }

    /// # Safety
    /// `block` has `total` writable bytes and `start <= total`.
    #[inline]
    pub(super) unsafe fn new_at(block: NonNull<u8>, start: usize, total: usize) -> Writer {
        // SAFETY: the caller's promise.
        unsafe { Writer { at: block.as_ptr().add(start), end: block.as_ptr().add(total) } }
    }

    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.end.addr() - self.at.addr(), "a block is as long as its parts");
        // SAFETY: checked above; a new block or one borrowed mutably does not overlap `bytes`.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.at, bytes.len());
            self.at = self.at.add(bytes.len());
        }
    }

    #[inline]
    pub(super) fn put_length(&mut self, len: usize) {
        if len < LONG as usize {
            self.put(&[len as u8]);
        } else {
            let len = u32::try_from(len).expect("the protocol bounds lengths below 4 GiB");
            self.put(&[LONG]);
            self.put(&len.to_le_bytes());
        }
    }

    #[inline]
    pub(super) fn finish(self) {
        debug_assert_eq!(self.at, self.end);
    }
}
