//! The bytes of a list's node.

use std::ops::{Deref, DerefMut};

use crate::slab;

/// Growable bytes whose memory counts as the keyspace's.
#[derive(Default)]
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    /// An empty buffer with room for exactly so many bytes.
    pub(super) fn with_capacity(capacity: usize) -> Buffer {
        let bytes = Vec::with_capacity(capacity);
        slab::note_outside(bytes.capacity(), 0);
        Buffer(bytes)
    }

    /// A copy of these bytes.
    pub(super) fn of(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer::with_capacity(bytes.len());
        buffer.0.extend_from_slice(bytes);
        buffer
    }

    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    #[inline]
    pub(super) fn extend_from_slice(&mut self, bytes: &[u8]) {
        let held = self.0.capacity();
        self.0.extend_from_slice(bytes);
        self.changed_from(held);
    }

    /// Becomes `len` bytes long; new ones are 0.
    pub(super) fn resize(&mut self, len: usize) {
        let held = self.0.capacity();
        self.0.resize(len, 0);
        self.changed_from(held);
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    #[inline]
    fn changed_from(&self, held: usize) {
        if self.0.capacity() != held {
            slab::note_outside(self.0.capacity(), held);
        }
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Buffer {
        Buffer::of(&self.0)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        slab::note_outside(0, self.0.capacity());
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}
