//! A member of a large sorted set with its score, in one block.
//!
//! ```text
//! bytes 0–7   score, a double in the machine's byte order
//! byte 8      length of the member, or 255 and then 4 bytes of length
//! ...         member
//! ```

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use crate::slab;
use crate::table::Block;

const LENGTH_AT: usize = 8;
const LONG: u8 = 255;

/// A scored member, owned.
#[repr(transparent)]
pub struct Scored(NonNull<u8>);

/// A view of a scored member.
#[derive(Clone, Copy)]
pub struct ScoredRef<'a>(NonNull<u8>, PhantomData<&'a u8>);

/// Where a scored member stands in the order of its set: a copy of the score, and the address of the block.
///
/// It is good for as long as the block lives and keeps its score; who holds one must see to that.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The score.
    pub score: f64,
    block: NonNull<u8>,
}

/// Bytes of a block for a member of `len` bytes.
#[inline]
const fn total_len(len: usize) -> usize {
    LENGTH_AT + if len < LONG as usize { 1 } else { 5 } + len
}

/// The order of a sorted set: by score, then by the bytes of the member. Scores are never NaN.
#[inline]
pub fn compare(score: f64, member: &[u8], other_score: f64, other_member: &[u8]) -> Ordering {
    if score < other_score {
        Ordering::Less
    } else if score > other_score {
        Ordering::Greater
    } else {
        member.cmp(other_member)
    }
}

impl Scored {
    /// A block for `member`, which the protocol bounds below 4 GiB.
    #[inline]
    pub fn new(member: &[u8], score: f64) -> Scored {
        let len = member.len();
        let block = slab::allocate(total_len(len));
        // SAFETY: the block has `total_len` bytes, which are exactly those written here; it is new, so it does not
        // overlap `member`.
        unsafe {
            let base = block.as_ptr();
            base.cast::<f64>().write(score);
            let at = if len < LONG as usize {
                base.add(LENGTH_AT).write(len as u8);
                LENGTH_AT + 1
            } else {
                let len = u32::try_from(len).expect("the protocol bounds lengths below 4 GiB");
                base.add(LENGTH_AT).write(LONG);
                base.add(LENGTH_AT + 1).cast::<[u8; 4]>().write(len.to_le_bytes());
                LENGTH_AT + 5
            };
            ptr::copy_nonoverlapping(member.as_ptr(), base.add(at), len);
        }
        Scored(block)
    }

    /// A view of it.
    #[inline]
    pub fn view(&self) -> ScoredRef<'_> {
        ScoredRef(self.0, PhantomData)
    }

    /// Gives it another score.
    #[inline]
    pub fn set_score(&mut self, score: f64) {
        // SAFETY: every block begins with a score, blocks are aligned to 8, and this one is borrowed mutably.
        unsafe { self.0.as_ptr().cast::<f64>().write(score) };
    }
}

impl<'a> ScoredRef<'a> {
    /// The score.
    #[inline]
    pub fn score(self) -> f64 {
        // SAFETY: every block begins with a score and is aligned to 8.
        unsafe { self.0.as_ptr().cast::<f64>().read() }
    }

    /// The member.
    #[inline]
    pub fn member(self) -> &'a [u8] {
        // SAFETY: the length that the block begins with is the one it was allocated for; the block lives and its member
        // is unchanged for `'a`.
        unsafe {
            let base = self.0.as_ptr();
            match base.add(LENGTH_AT).read() {
                LONG => {
                    let len = u32::from_le_bytes(base.add(LENGTH_AT + 1).cast::<[u8; 4]>().read());
                    std::slice::from_raw_parts(base.add(LENGTH_AT + 5), len as usize)
                }
                short => std::slice::from_raw_parts(base.add(LENGTH_AT + 1), short as usize),
            }
        }
    }

    /// Bytes of memory the block takes.
    #[inline]
    pub fn block_bytes(self) -> usize {
        slab::block_size(total_len(self.member().len()))
    }

    /// Its place in the order.
    #[inline]
    pub(super) fn place(self) -> Place {
        Place { score: self.score(), block: self.0 }
    }
}

impl Place {
    /// The member.
    ///
    /// # Safety
    /// The block lives for `'a`.
    #[inline]
    pub unsafe fn member<'a>(self) -> &'a [u8] {
        ScoredRef(self.block, PhantomData).member()
    }

    /// The order of two places.
    ///
    /// # Safety
    /// Both blocks live.
    #[inline]
    pub unsafe fn compare(&self, other: &Place) -> Ordering {
        if self.score < other.score {
            Ordering::Less
        } else if self.score > other.score {
            Ordering::Greater
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.member().cmp(other.member()) }
        }
    }
}

impl Drop for Scored {
    #[inline]
    fn drop(&mut self) {
        let len = total_len(self.view().member().len());
        // SAFETY: the block was allocated for `len` bytes, and its owner is gone.
        unsafe { slab::free(self.0, len) };
    }
}

// SAFETY: slab blocks are aligned to 8 and user-space addresses fit 48 bits; the member is part of the block.
unsafe impl Block for Scored {
    type Ref<'a> = ScoredRef<'a>;

    #[inline]
    fn into_raw(self) -> NonNull<u8> {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }

    #[inline]
    unsafe fn from_raw(raw: NonNull<u8>) -> Scored {
        Scored(raw)
    }

    #[inline]
    unsafe fn view<'a>(raw: NonNull<u8>) -> ScoredRef<'a> {
        ScoredRef(raw, PhantomData)
    }

    #[inline]
    unsafe fn key<'a>(raw: NonNull<u8>) -> &'a [u8] {
        ScoredRef(raw, PhantomData).member()
    }

    #[inline]
    unsafe fn marked(_raw: NonNull<u8>) -> bool {
        false
    }
}
