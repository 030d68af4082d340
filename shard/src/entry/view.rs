//! Reading an entry.

use super::{DEADLINE_FLAG, ENCODING_MASK, Encoding, EntryRef, FIXED_HEADER, Kind, LONG, MARK, VERSION_FLAG};
use crate::object::Object;
use crate::slab;

impl<'a> EntryRef<'a> {
    #[inline]
    pub(super) fn byte(self, offset: usize) -> u8 {
        // SAFETY: callers read within the header, which every block has.
        unsafe { self.0.as_ptr().add(offset).read() }
    }

    #[inline]
    pub(super) fn array<const N: usize>(self, offset: usize) -> [u8; N] {
        // SAFETY: callers stay within the block, whose content is initialised up to its end.
        unsafe { self.0.as_ptr().add(offset).cast::<[u8; N]>().read_unaligned() }
    }

    #[inline]
    pub(super) fn slice(self, offset: usize, len: usize) -> &'a [u8] {
        // SAFETY: callers stay within the block, which lives and is unchanged for `'a`.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(offset), len) }
    }

    /// How the value is stored.
    #[inline]
    pub fn encoding(self) -> Encoding {
        Encoding::ALL[(self.byte(0) & ENCODING_MASK) as usize]
    }

    /// The mark, which tells whether an image has the entry (see [`crate::image`]).
    #[inline]
    pub fn mark(self) -> bool {
        self.byte(0) & MARK != 0
    }

    /// The access stamp: 24 bits.
    #[inline]
    pub fn access(self) -> u32 {
        let [a, b, c] = self.array(1);
        u32::from_le_bytes([a, b, c, 0])
    }

    #[inline]
    pub(super) fn key_len(self) -> (usize, usize) {
        match self.byte(4) {
            LONG => (u32::from_le_bytes(self.array(FIXED_HEADER)) as usize, FIXED_HEADER + 4),
            short => (short as usize, FIXED_HEADER),
        }
    }

    #[inline]
    pub(super) fn options_len(self) -> usize {
        let meta = self.byte(0);
        ((meta >> 7) as usize + (meta >> 6 & 1) as usize) * 8
    }

    /// The key.
    #[inline]
    pub fn key(self) -> &'a [u8] {
        let (len, offset) = self.key_len();
        self.slice(offset + self.options_len(), len)
    }

    /// When the entry expires, in ms since the epoch.
    #[inline]
    pub fn deadline_ms(self) -> Option<i64> {
        if self.byte(0) & DEADLINE_FLAG == 0 {
            return None;
        }
        Some(i64::from_le_bytes(self.array(self.key_len().1)))
    }

    /// The version of a versioned string.
    #[inline]
    pub fn version(self) -> Option<i64> {
        let meta = self.byte(0);
        if meta & VERSION_FLAG == 0 {
            return None;
        }
        let offset = self.key_len().1 + (meta >> 7) as usize * 8;
        Some(i64::from_le_bytes(self.array(offset)))
    }

    #[inline]
    pub(super) fn value_start(self) -> usize {
        let (len, offset) = self.key_len();
        offset + self.options_len() + len
    }

    /// Offset and length of the value's bytes.
    #[inline]
    pub(super) fn payload_range(self) -> (usize, usize) {
        let start = self.value_start();
        match self.encoding().fixed_len() {
            Some(len) => (start, len),
            None => match self.byte(start) {
                LONG => (start + 5, u32::from_le_bytes(self.array(start + 1)) as usize),
                short => (start + 1, short as usize),
            },
        }
    }

    /// The value's bytes as they are stored.
    #[inline]
    pub fn payload(self) -> &'a [u8] {
        let (start, len) = self.payload_range();
        self.slice(start, len)
    }

    /// The integer of a string held as one.
    #[inline]
    pub fn integer(self) -> Option<i64> {
        let start = self.value_start();
        Some(match self.encoding() {
            Encoding::Int8 => i64::from(i8::from_le_bytes(self.array(start))),
            Encoding::Int16 => i64::from(i16::from_le_bytes(self.array(start))),
            Encoding::Int32 => i64::from(i32::from_le_bytes(self.array(start))),
            Encoding::Int64 => i64::from_le_bytes(self.array(start)),
            _ => return None,
        })
    }

    /// The boxed collection, where the value is one.
    #[inline]
    pub fn object(self) -> Option<&'a Object> {
        if self.encoding() != Encoding::Object {
            return None;
        }
        // SAFETY: with this encoding the value is the address of a `Box<Object>` that the entry owns; it lives and is
        // unchanged for `'a`.
        Some(unsafe { &*self.object_pointer() })
    }

    #[inline]
    pub(super) fn object_pointer(self) -> *mut Object {
        // SAFETY: callers checked the encoding, with which the value is a pointer.
        unsafe { self.0.as_ptr().add(self.value_start()).cast::<*mut Object>().read_unaligned() }
    }

    /// Redis's type of the value.
    #[inline]
    pub fn kind(self) -> Kind {
        match self.encoding() {
            Encoding::Bytes
            | Encoding::EditedBytes
            | Encoding::Int8
            | Encoding::Int16
            | Encoding::Int32
            | Encoding::Int64 => Kind::String,
            Encoding::PackedList => Kind::List,
            Encoding::PackedHash | Encoding::ExpiringHash => Kind::Hash,
            Encoding::PackedSet | Encoding::IntegerSet => Kind::Set,
            Encoding::PackedSortedSet => Kind::SortedSet,
            Encoding::FixedLimit | Encoding::SlidingLimit | Encoding::TokenLimit => Kind::Limit,
            Encoding::Object => {
                // SAFETY: the encoding was checked; see `object`.
                unsafe { &*self.object_pointer() }.kind()
            }
        }
    }

    /// Bytes of the block, its boxed collection excepted.
    #[inline]
    pub fn block_bytes(self) -> usize {
        slab::block_size(self.len())
    }

    /// Bytes of memory that the entry takes altogether: its block, the word that leads to it, and its boxed collection.
    pub fn memory_bytes(self) -> usize {
        let boxed = self.object().map_or(0, |object| size_of::<Object>() + object.heap_bytes());
        self.block_bytes() + size_of::<u64>() + boxed
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        let (start, len) = self.payload_range();
        start + len
    }
}
