//! A field of a large hash: name and value in one block.
//!
//! ```text
//! length of the name   — 1 byte with the length in bits 0–6; or these are all set and 4 bytes of length follow
//! 8 bytes              — deadline, ms since the epoch; only where there is one: bit 7 of the first byte tells
//! name
//! length of the value  — like the name's
//! value
//! ```
//!
//! Numbers are little-endian. The block's size follows from its content (see [`crate::slab`]).

use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use crate::slab;
use crate::table::Block;

/// Lengths from here on take 4 bytes more.
const LONG: u8 = 0x7f;

/// Set in the first byte of a field with a deadline.
const DEADLINE_FLAG: u8 = 0x80;

const DEADLINE_BYTES: usize = size_of::<i64>();

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
    /// The length that stands at `offset`, and how many bytes it takes.
    #[inline]
    fn length(self, offset: usize) -> (usize, usize) {
        // SAFETY: callers give an offset at which a length was written; the block lives and is unchanged for `'a`.
        unsafe {
            let at = self.0.as_ptr().add(offset);
            match at.read() & LONG {
                LONG => (u32::from_le_bytes(at.add(1).cast::<[u8; 4]>().read_unaligned()) as usize, 5),
                short => (short as usize, 1),
            }
        }
    }

    #[inline]
    fn slice(self, offset: usize, len: usize) -> &'a [u8] {
        // SAFETY: callers stay within the block, which lives and is unchanged for `'a`.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(offset), len) }
    }

    #[inline]
    fn has_deadline(self) -> bool {
        // SAFETY: every block begins with the length of the name.
        unsafe { self.0.as_ptr().read() & DEADLINE_FLAG != 0 }
    }

    /// The name, and the offset behind it.
    #[inline]
    fn name_part(self) -> (&'a [u8], usize) {
        let (len, head) = self.length(0);
        let start = head + if self.has_deadline() { DEADLINE_BYTES } else { 0 };
        (self.slice(start, len), start + len)
    }

    /// The value that lies behind the name, and the offset behind it.
    #[inline]
    fn value_part(self, name_end: usize) -> (&'a [u8], usize) {
        let (len, head) = self.length(name_end);
        (self.slice(name_end + head, len), name_end + head + len)
    }

    /// The field's name.
    #[inline]
    pub fn name(self) -> &'a [u8] {
        self.name_part().0
    }

    /// The field's value.
    #[inline]
    pub fn value(self) -> &'a [u8] {
        self.parts().1
    }

    /// Name and value.
    #[inline]
    pub fn parts(self) -> (&'a [u8], &'a [u8]) {
        let (name, end) = self.name_part();
        (name, self.value_part(end).0)
    }

    /// When the field expires, in ms since the epoch.
    #[inline]
    pub fn deadline_ms(self) -> Option<i64> {
        if !self.has_deadline() {
            return None;
        }
        let (_, head) = self.length(0);
        // SAFETY: with the flag set, the deadline's 8 bytes follow the name's length.
        let bytes = unsafe { self.0.as_ptr().add(head).cast::<[u8; DEADLINE_BYTES]>().read_unaligned() };
        Some(i64::from_le_bytes(bytes))
    }

    #[inline]
    fn len(self) -> usize {
        self.value_part(self.name_part().1).1
    }

    /// Bytes of the block.
    #[inline]
    pub fn block_bytes(self) -> usize {
        slab::block_size(self.len())
    }
}

impl Field {
    /// Makes a field; its deadline, if it has one, is in ms since the epoch.
    pub fn new(name: &[u8], value: &[u8], deadline_ms: Option<i64>) -> Field {
        let deadline_bytes = if deadline_ms.is_some() { DEADLINE_BYTES } else { 0 };
        let total = length_bytes(name.len()) + deadline_bytes + name.len() + length_bytes(value.len()) + value.len();
        let block = slab::allocate(total);
        // SAFETY: the block is new and has room for both parts with their lengths and the deadline, as counted above.
        unsafe {
            let start = block.as_ptr();
            let mut at = write_length(start, name.len());
            if let Some(deadline_ms) = deadline_ms {
                start.write(start.read() | DEADLINE_FLAG);
                at.cast::<[u8; DEADLINE_BYTES]>().write_unaligned(deadline_ms.to_le_bytes());
                at = at.add(DEADLINE_BYTES);
            }
            write_value(write_bytes(at, name), value);
        }
        Field(block)
    }

    /// A view of the field.
    #[inline]
    pub fn view(&self) -> FieldRef<'_> {
        FieldRef(self.0, PhantomData)
    }

    /// Replaces the value, in the same block where its size allows; the deadline stays.
    pub fn set_value(&mut self, value: &[u8]) {
        let view = self.view();
        let (name, name_end) = view.name_part();
        let total = name_end + length_bytes(value.len()) + value.len();
        if slab::block_size(total) == view.block_bytes() {
            // SAFETY: the block has room for `total` bytes, and is borrowed mutably, so `value` lies outside of it.
            unsafe { write_value(self.0.as_ptr().add(name_end), value) };
        } else {
            *self = Field::new(name, value, view.deadline_ms());
        }
    }

    /// Sets or clears the deadline, in ms since the epoch.
    pub fn set_deadline(&mut self, deadline_ms: Option<i64>) {
        let view = self.view();
        match (view.has_deadline(), deadline_ms) {
            (false, None) => {}
            (true, Some(deadline_ms)) => {
                let (_, head) = view.length(0);
                // SAFETY: with the flag set, the deadline's 8 bytes follow the name's length.
                unsafe {
                    let at = self.0.as_ptr().add(head).cast::<[u8; DEADLINE_BYTES]>();
                    at.write_unaligned(deadline_ms.to_le_bytes());
                }
            }
            _ => {
                let (name, value) = view.parts();
                *self = Field::new(name, value, deadline_ms);
            }
        }
    }
}

/// Writes a length; returns the place behind it.
///
/// # Safety
/// There is room for it at `at`.
#[inline]
unsafe fn write_length(at: *mut u8, len: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        if len < LONG as usize {
            at.write(len as u8);
            at.add(1)
        } else {
            let len = u32::try_from(len).expect("the protocol bounds lengths below 4 GiB");
            at.write(LONG);
            at.add(1).cast::<[u8; 4]>().write_unaligned(len.to_le_bytes());
            at.add(5)
        }
    }
}

/// Writes bytes; returns the place behind them.
///
/// # Safety
/// There is room for them at `at`, and they lie elsewhere.
#[inline]
unsafe fn write_bytes(at: *mut u8, bytes: &[u8]) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
        at.add(bytes.len())
    }
}

/// Writes the value with its length.
///
/// # Safety
/// There is room for both at `at`, and `value` lies elsewhere.
#[inline]
unsafe fn write_value(at: *mut u8, value: &[u8]) {
    // SAFETY: the caller's promise.
    unsafe { write_bytes(write_length(at, value.len()), value) };
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
    unsafe fn marked(raw: NonNull<u8>) -> bool {
        FieldRef(raw, PhantomData).has_deadline()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [usize; 12] = [0, 1, 5, 126, 127, 128, 254, 255, 256, 1_000, 5_000, 70_000];

    #[test]
    fn names_and_values_of_every_length_are_kept() {
        for (name_len, deadline_ms) in LENGTHS.iter().flat_map(|len| [(*len, None), (*len, Some(i64::MAX / 3))]) {
            let name = vec![b'n'; name_len];
            let mut field = Field::new(&name, b"first", deadline_ms);
            for value_len in LENGTHS.iter().chain(LENGTHS.iter().rev()) {
                let value = vec![b'v'; *value_len];
                field.set_value(&value);
                assert_eq!(field.view().parts(), (&name[..], &value[..]));
                assert_eq!(field.view().deadline_ms(), deadline_ms);
                assert!(field.view().block_bytes() >= name_len + value_len + 2);
            }
        }
    }

    #[test]
    fn deadlines_come_change_and_go() {
        for name_len in LENGTHS {
            let name = vec![b'n'; name_len];
            let mut field = Field::new(&name, b"value", None);
            let bytes = field.view().block_bytes();
            for deadline_ms in [Some(1), Some(i64::MAX), None, None, Some(7)] {
                field.set_deadline(deadline_ms);
                assert_eq!(field.view().deadline_ms(), deadline_ms);
                assert_eq!(field.view().parts(), (&name[..], &b"value"[..]));
            }
            field.set_deadline(None);
            assert_eq!(field.view().block_bytes(), bytes, "a field without a deadline does not pay for one");
        }
    }
}
