//! A field of a large hash: name and value in one block.
//!
//! ```text
//! length of the name   — 1 byte with the length in bits 0–6; or these are all set and 4 bytes of length follow
//! name
//! length of the value  — likewise
//! value
//! ```
//!
//! Bit 7 of the name's length is 0: it is kept for a deadline of the field's own, which would lie behind the lengths, so
//! that fields without one need not pay for it. Lengths of 4 bytes are little-endian. The block's size follows from its
//! content (see [`crate::slab`]).

use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use crate::slab;
use crate::table::Block;

/// Lengths from here on take 4 bytes more.
const LONG: u8 = 0x7f;

/// A field, owned.
#[repr(transparent)]
pub struct Field(NonNull<u8>);

/// A view of a field.
#[derive(Clone, Copy)]
pub struct FieldRef<'a>(NonNull<u8>, PhantomData<&'a u8>);

#[inline]
fn length_bytes(len: usize) -> usize {
    if len < LONG as usize { 1 } else { 5 }
}

impl<'a> FieldRef<'a> {
    /// The bytes whose length stands at `offset`, and the offset behind them.
    #[inline]
    fn part(self, offset: usize) -> (&'a [u8], usize) {
        // SAFETY: callers give an offset at which a length was written, with that many bytes behind it; the block lives
        // and is unchanged for `'a`.
        unsafe {
            let at = self.0.as_ptr().add(offset);
            let (len, head) = match at.read() {
                LONG => (u32::from_le_bytes(at.add(1).cast::<[u8; 4]>().read_unaligned()) as usize, 5),
                short => (short as usize, 1),
            };
            (std::slice::from_raw_parts(at.add(head), len), offset + head + len)
        }
    }

    /// The field's name.
    #[inline]
    pub fn name(self) -> &'a [u8] {
        self.part(0).0
    }

    /// The field's value.
    #[inline]
    pub fn value(self) -> &'a [u8] {
        self.part(self.part(0).1).0
    }

    /// Name and value.
    #[inline]
    pub fn parts(self) -> (&'a [u8], &'a [u8]) {
        let (name, end) = self.part(0);
        (name, self.part(end).0)
    }

    #[inline]
    fn len(self) -> usize {
        self.part(self.part(0).1).1
    }

    /// Bytes of the block.
    #[inline]
    pub fn block_bytes(self) -> usize {
        slab::block_size(self.len())
    }
}

impl Field {
    /// Makes a field.
    pub fn new(name: &[u8], value: &[u8]) -> Field {
        let total = length_bytes(name.len()) + name.len() + length_bytes(value.len()) + value.len();
        let block = slab::allocate(total);
        // SAFETY: the block is new and has room for both parts with their lengths, as counted above.
        unsafe {
            let behind = write_part(block.as_ptr(), name);
            write_part(behind, value);
        }
        Field(block)
    }

    /// A view of the field.
    #[inline]
    pub fn view(&self) -> FieldRef<'_> {
        FieldRef(self.0, PhantomData)
    }

    /// Replaces the value, in the same block where its size allows.
    pub fn set_value(&mut self, value: &[u8]) {
        let view = self.view();
        let (name, value_start) = view.part(0);
        let total = value_start + length_bytes(value.len()) + value.len();
        if slab::block_size(total) == view.block_bytes() {
            // SAFETY: the block has room for `total` bytes, and is borrowed mutably, so `value` lies outside of it.
            unsafe { write_part(self.0.as_ptr().add(value_start), value) };
        } else {
            *self = Field::new(name, value);
        }
    }
}

/// Writes a part with its length; returns the place behind it.
///
/// # Safety
/// There is room for both at `at`, and `part` lies elsewhere.
#[inline]
unsafe fn write_part(at: *mut u8, part: &[u8]) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let head = if part.len() < LONG as usize {
            at.write(part.len() as u8);
            1
        } else {
            let len = u32::try_from(part.len()).expect("the protocol bounds lengths below 4 GiB");
            at.write(LONG);
            at.add(1).cast::<[u8; 4]>().write_unaligned(len.to_le_bytes());
            5
        };
        ptr::copy_nonoverlapping(part.as_ptr(), at.add(head), part.len());
        at.add(head + part.len())
    }
}

impl Drop for Field {
    #[inline]
    fn drop(&mut self) {
        let len = self.view().len();
        // SAFETY: the block was allocated for a length of the same block size, and the field is gone.
        unsafe { slab::free(self.0, len) };
    }
}

// SAFETY: slab blocks are aligned to 8 and user-space addresses fit 48 bits; the name is part of the block.
unsafe impl Block for Field {
    type Ref<'a> = FieldRef<'a>;

    #[inline]
    fn into_raw(self) -> NonNull<u8> {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }

    #[inline]
    unsafe fn from_raw(raw: NonNull<u8>) -> Field {
        Field(raw)
    }

    #[inline]
    unsafe fn view<'a>(raw: NonNull<u8>) -> FieldRef<'a> {
        FieldRef(raw, PhantomData)
    }

    #[inline]
    unsafe fn key<'a>(raw: NonNull<u8>) -> &'a [u8] {
        FieldRef(raw, PhantomData).name()
    }

    #[inline]
    unsafe fn marked(_raw: NonNull<u8>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_of_every_length_are_kept() {
        let lengths = [0, 1, 5, 126, 127, 128, 254, 255, 256, 1_000, 5_000, 70_000];
        for name_len in lengths {
            let name = vec![b'n'; name_len];
            let mut field = Field::new(&name, b"first");
            for value_len in lengths.iter().chain(lengths.iter().rev()) {
                let value = vec![b'v'; *value_len];
                field.set_value(&value);
                assert_eq!(field.view().parts(), (&name[..], &value[..]));
                assert!(field.view().block_bytes() >= name_len + value_len + 2);
            }
        }
    }
}
