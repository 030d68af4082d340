//! An entry of the keyspace: key, deadline, version and value in one block.
//!
//! ```text
//! byte 0      encoding (bits 0–4), mark (bit 5), has a version (bit 6), has a deadline (bit 7)
//! bytes 1–3   access stamp: the time or the frequency of use, for eviction
//! byte 4      length of the key, or 255 and then 4 bytes of length
//! 8 bytes     deadline, ms since the epoch      — only where there is one
//! 8 bytes     version                           — only where there is one
//! ...         key
//! ...         value: a number of 1, 2, 4 or 8 bytes; or a length (1 byte, or 255 and 4 bytes) and that many bytes;
//!             or the address of a boxed `Object`
//! ```
//!
//! Numbers are little-endian and unaligned. What an entry does not use it does not store. The block's size follows from
//! its content, so no capacity is stored either (see [`crate::slab`]).

mod view;
mod writer;

use std::fmt;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use self::writer::{Writer, integer_bytes};
use crate::object::Object;
use crate::slab;
use crate::table::Block;

const VERSION_FLAG: u8 = 0x40;
const DEADLINE_FLAG: u8 = 0x80;
const MARK: u8 = 0x20;
const ENCODING_MASK: u8 = 0x1f;
const FIXED_HEADER: usize = 5;
const LONG: u8 = 255;

/// How an entry's value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    /// A string as it was set.
    Bytes = 0,
    /// A string that was changed in place (Redis's word for it is `raw` whatever its length).
    EditedBytes = 1,
    /// A string that is a canonical integer, in 1 byte.
    Int8 = 2,
    /// The same in 2 bytes.
    Int16 = 3,
    /// The same in 4 bytes.
    Int32 = 4,
    /// The same in 8 bytes.
    Int64 = 5,
    /// A list of packed elements.
    PackedList = 6,
    /// A hash: packed field, value, field, value, …
    PackedHash = 7,
    /// A set of packed members.
    PackedSet = 8,
    /// A set of integers: sorted, each in the same number of bytes.
    IntegerSet = 9,
    /// A sorted set: packed member, score, member, score, … in the order of the set.
    PackedSortedSet = 10,
    /// A fixed-window limiter.
    FixedLimit = 11,
    /// A sliding-window limiter.
    SlidingLimit = 12,
    /// A token bucket.
    TokenLimit = 13,
    /// A boxed [`Object`]: a collection that has outgrown its packed form.
    Object = 14,
    /// A hash whose fields may expire: the earliest deadline, then packed field, value, deadline, …
    ExpiringHash = 15,
}

/// Redis's type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `string`
    String,
    /// `list`
    List,
    /// `set`
    Set,
    /// `zset`
    SortedSet,
    /// `hash`
    Hash,
    /// `limit`, the state of a rate limiter
    Limit,
}

impl Kind {
    /// The word that `TYPE` answers.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::List => "list",
            Kind::Set => "set",
            Kind::SortedSet => "zset",
            Kind::Hash => "hash",
            Kind::Limit => "limit",
        }
    }
}

impl Encoding {
    const ALL: [Encoding; 16] = [
        Encoding::Bytes,
        Encoding::EditedBytes,
        Encoding::Int8,
        Encoding::Int16,
        Encoding::Int32,
        Encoding::Int64,
        Encoding::PackedList,
        Encoding::PackedHash,
        Encoding::PackedSet,
        Encoding::IntegerSet,
        Encoding::PackedSortedSet,
        Encoding::FixedLimit,
        Encoding::SlidingLimit,
        Encoding::TokenLimit,
        Encoding::Object,
        Encoding::ExpiringHash,
    ];

    /// Length of the value where the encoding fixes it; `None` where a length is stored.
    #[inline]
    const fn fixed_len(self) -> Option<usize> {
        match self {
            Encoding::Int8 => Some(1),
            Encoding::Int16 => Some(2),
            Encoding::Int32 => Some(4),
            Encoding::Int64 | Encoding::Object => Some(8),
            Encoding::FixedLimit => Some(crate::limit::FIXED_BYTES),
            Encoding::SlidingLimit => Some(crate::limit::SLIDING_BYTES),
            Encoding::TokenLimit => Some(crate::limit::TOKEN_BYTES),
            _ => None,
        }
    }

    /// Whether the value is a string held as an integer.
    #[inline]
    pub const fn is_integer(self) -> bool {
        matches!(self, Encoding::Int8 | Encoding::Int16 | Encoding::Int32 | Encoding::Int64)
    }
}

/// Everything of an entry but its value, for making one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header<'a> {
    /// The key.
    pub key: &'a [u8],
    /// When it expires, in ms since the epoch.
    pub deadline_ms: Option<i64>,
    /// Its version, if it is a versioned value.
    pub version: Option<i64>,
    /// The access stamp (24 bits).
    pub access: u32,
}

/// An entry, owned.
#[repr(transparent)]
pub struct Entry(NonNull<u8>);

/// A view of an entry.
#[derive(Clone, Copy)]
pub struct EntryRef<'a>(NonNull<u8>, PhantomData<&'a u8>);

#[inline]
fn length_bytes(len: usize) -> usize {
    if len < LONG as usize { 1 } else { 5 }
}

impl Entry {
    /// Makes an entry whose value is `parts` joined.
    ///
    /// For an [`Encoding`] of fixed length the parts must have that length; not for [`Encoding::Object`].
    #[inline]
    pub fn new(header: Header<'_>, encoding: Encoding, parts: &[&[u8]]) -> Entry {
        assert!(encoding != Encoding::Object);
        Entry::assemble(header, encoding, parts)
    }

    /// Makes an entry that holds a boxed collection.
    pub fn with_object(header: Header<'_>, object: Box<Object>) -> Entry {
        let mut entry = Entry::assemble(header, Encoding::Object, &[&[0; 8]]);
        entry.write_object(object);
        entry
    }

    /// Makes an entry that holds an integer, in the fewest bytes.
    #[inline]
    pub fn with_integer(header: Header<'_>, value: i64) -> Entry {
        let (encoding, bytes, len) = integer_bytes(value);
        Entry::assemble(header, encoding, &[&bytes[..len]])
    }

    #[inline]
    fn assemble(header: Header<'_>, encoding: Encoding, parts: &[&[u8]]) -> Entry {
        let payload_len: usize = parts.iter().map(|part| part.len()).sum();
        let prefix = match encoding.fixed_len() {
            Some(len) => {
                assert_eq!(len, payload_len, "a value of fixed length");
                0
            }
            None => length_bytes(payload_len),
        };
        let key_prefix = length_bytes(header.key.len()) - 1;
        let options = (usize::from(header.deadline_ms.is_some()) + usize::from(header.version.is_some())) * 8;
        let total = FIXED_HEADER + key_prefix + options + header.key.len() + prefix + payload_len;
        let block = slab::allocate(total);
        // SAFETY: the writer stays within `total` bytes: it writes exactly the parts counted above.
        let mut writer = unsafe { Writer::new(block, total) };
        let meta = encoding as u8
            | if header.version.is_some() { VERSION_FLAG } else { 0 }
            | if header.deadline_ms.is_some() { DEADLINE_FLAG } else { 0 };
        writer.put(&[meta]);
        writer.put(&header.access.to_le_bytes()[..3]);
        writer.put_length(header.key.len());
        if let Some(deadline_ms) = header.deadline_ms {
            writer.put(&deadline_ms.to_le_bytes());
        }
        if let Some(version) = header.version {
            writer.put(&version.to_le_bytes());
        }
        writer.put(header.key);
        if prefix > 0 {
            writer.put_length(payload_len);
        }
        for part in parts {
            writer.put(part);
        }
        writer.finish();
        Entry(block)
    }

    fn write_object(&mut self, object: Box<Object>) {
        let start = self.view().value_start();
        // SAFETY: with the encoding `Object` the value has room for a pointer.
        unsafe { self.0.as_ptr().add(start).cast::<*mut Object>().write_unaligned(Box::into_raw(object)) };
    }

    /// A view of the entry.
    #[inline]
    pub fn view(&self) -> EntryRef<'_> {
        EntryRef(self.0, PhantomData)
    }

    /// Sets the access stamp (24 bits).
    #[inline]
    pub fn set_access(&mut self, access: u32) {
        let [a, b, c, _] = access.to_le_bytes();
        // SAFETY: bytes 1 to 3 are within every block.
        unsafe { self.0.as_ptr().add(1).cast::<[u8; 3]>().write([a, b, c]) };
    }

    /// The header, with the key borrowed from the entry.
    pub fn header(&self) -> Header<'_> {
        let view = self.view();
        Header { key: view.key(), deadline_ms: view.deadline_ms(), version: view.version(), access: view.access() }
    }

    /// Replaces the value; key, deadline, version and access stamp stay.
    #[inline]
    pub fn set_payload(&mut self, encoding: Encoding, parts: &[&[u8]]) {
        assert!(encoding != Encoding::Object);
        let payload_len: usize = parts.iter().map(|part| part.len()).sum();
        let start = self.view().value_start();
        let prefix = if encoding.fixed_len().is_some() { 0 } else { length_bytes(payload_len) };
        let total = start + prefix + payload_len;
        if self.view().encoding() != Encoding::Object
            && slab::block_size(total) == slab::block_size(self.view().len())
            && encoding.fixed_len().is_none_or(|len| len == payload_len)
        {
            // SAFETY: the block has room for `total` bytes: same block size.
            let mut writer = unsafe { Writer::new_at(self.0, start, total) };
            if prefix > 0 {
                writer.put_length(payload_len);
            }
            for part in parts {
                writer.put(part);
            }
            writer.finish();
            self.write_encoding(encoding);
        } else {
            *self = Entry::assemble(self.header(), encoding, parts);
        }
    }

    /// Replaces the value by an integer, in the fewest bytes.
    #[inline]
    pub fn set_integer(&mut self, value: i64) {
        let (encoding, bytes, len) = integer_bytes(value);
        self.set_payload(encoding, &[&bytes[..len]]);
    }

    /// Replaces the value by a boxed collection.
    pub fn set_object(&mut self, object: Box<Object>) {
        let mut replaced = Entry::assemble(self.header(), Encoding::Object, &[&[0; 8]]);
        replaced.write_object(object);
        *self = replaced;
    }

    /// Replaces `range` of the value's bytes by `replacement`. Only for encodings that store a length.
    pub fn splice(&mut self, range: std::ops::Range<usize>, replacement: &[u8]) {
        let view = self.view();
        let encoding = view.encoding();
        assert!(encoding.fixed_len().is_none());
        let (payload_start, old_len) = view.payload_range();
        assert!(range.start <= range.end && range.end <= old_len);
        let new_len = old_len - range.len() + replacement.len();
        let old_total = payload_start + old_len;
        let new_total = payload_start + new_len;
        let same_prefix = length_bytes(old_len) == length_bytes(new_len);
        if same_prefix && slab::block_size(old_total) == slab::block_size(new_total) {
            // SAFETY: old and new content both fit the block, whose size is that of both totals; the tail moves within.
            unsafe {
                let base = self.0.as_ptr();
                let payload = base.add(payload_start);
                ptr::copy(payload.add(range.end), payload.add(range.start + replacement.len()), old_len - range.end);
                ptr::copy_nonoverlapping(replacement.as_ptr(), payload.add(range.start), replacement.len());
            }
            self.write_same_length(new_len);
        } else if same_prefix && old_total > slab::LARGEST_BLOCK && range.start == old_len {
            // An append to a large value: let the allocator grow the block where it is.
            // SAFETY: the block was allocated for `old_total` bytes; the new one has room for `new_total`.
            unsafe {
                self.0 = slab::resize(self.0, old_total, new_total);
                let base = self.0.as_ptr();
                ptr::copy_nonoverlapping(replacement.as_ptr(), base.add(old_total), replacement.len());
            }
            self.write_same_length(new_len);
        } else {
            let payload = self.view().payload();
            let parts = [&payload[..range.start], replacement, &payload[range.end..]];
            *self = Entry::assemble(self.header(), encoding, &parts);
        }
    }

    /// Overwrites the length of the value where the new one takes as many bytes.
    #[inline]
    fn write_same_length(&mut self, len: usize) {
        let start = self.view().value_start();
        // SAFETY: a value that stores its length begins with one byte, or with five where that one is `LONG`.
        unsafe {
            let prefix = self.0.as_ptr().add(start);
            if len < LONG as usize {
                debug_assert_ne!(prefix.read(), LONG);
                prefix.write(len as u8);
            } else {
                debug_assert_eq!(prefix.read(), LONG);
                let len = u32::try_from(len).expect("the protocol bounds lengths below 4 GiB");
                prefix.add(1).cast::<[u8; 4]>().write_unaligned(len.to_le_bytes());
            }
        }
    }

    /// The value's bytes, to be changed without changing their number. Not for [`Encoding::Object`].
    pub fn payload_mut(&mut self) -> &mut [u8] {
        assert!(self.view().encoding() != Encoding::Object);
        let (start, len) = self.view().payload_range();
        // SAFETY: the range lies within the block, which is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr().add(start), len) }
    }

    /// The boxed collection, where the value is one.
    #[inline]
    pub fn object_mut(&mut self) -> Option<&mut Object> {
        if self.view().encoding() != Encoding::Object {
            return None;
        }
        // SAFETY: see `EntryRef::object`; the entry is borrowed mutably.
        Some(unsafe { &mut *self.view().object_pointer() })
    }

    /// Takes the boxed collection out, leaving an empty string.
    pub fn take_object(&mut self) -> Option<Box<Object>> {
        if self.view().encoding() != Encoding::Object {
            return None;
        }
        let pointer = self.view().object_pointer();
        let emptied = Entry::assemble(self.header(), Encoding::Bytes, &[]);
        let taken = std::mem::replace(self, emptied);
        // SAFETY: the pointer came from `Box::into_raw`; the old block is freed below without its object.
        unsafe {
            let object = Box::from_raw(pointer);
            let block = taken.0;
            let len = taken.view().len();
            std::mem::forget(taken);
            slab::free(block, len);
            Some(object)
        }
    }

    /// Sets how the value is stored where its bytes stay as they are: both encodings store a length, or both have the
    /// same fixed one. Not from or to [`Encoding::Object`].
    #[inline]
    pub fn set_encoding(&mut self, encoding: Encoding) {
        let old = self.view().encoding();
        assert!(old != Encoding::Object && encoding != Encoding::Object && old.fixed_len() == encoding.fixed_len());
        self.write_encoding(encoding);
    }

    #[inline]
    fn write_encoding(&mut self, encoding: Encoding) {
        // SAFETY: byte 0 is within every block.
        unsafe {
            let meta = self.0.as_ptr();
            meta.write(meta.read() & !ENCODING_MASK | encoding as u8);
        }
    }

    /// Sets or clears the mark.
    #[inline]
    pub fn set_mark(&mut self, mark: bool) {
        // SAFETY: byte 0 is within every block.
        unsafe {
            let meta = self.0.as_ptr();
            meta.write(meta.read() & !MARK | if mark { MARK } else { 0 });
        }
    }

    /// Sets or clears the deadline, in ms since the epoch.
    pub fn set_deadline(&mut self, deadline_ms: Option<i64>) {
        let view = self.view();
        match (view.byte(0) & DEADLINE_FLAG != 0, deadline_ms) {
            (false, None) => {}
            (true, Some(deadline_ms)) => {
                let offset = view.key_len().1;
                // SAFETY: with the flag set, the deadline's 8 bytes follow the key's length.
                unsafe { self.0.as_ptr().add(offset).cast::<[u8; 8]>().write_unaligned(deadline_ms.to_le_bytes()) };
            }
            _ => self.rebuild(|header| header.deadline_ms = deadline_ms),
        }
    }

    /// Sets or clears the version.
    pub fn set_version(&mut self, version: Option<i64>) {
        let view = self.view();
        match (view.byte(0) & VERSION_FLAG != 0, version) {
            (false, None) => {}
            (true, Some(version)) => {
                let offset = view.key_len().1 + (view.byte(0) >> 7) as usize * 8;
                // SAFETY: with the flag set, the version's 8 bytes follow the key's length and the deadline.
                unsafe { self.0.as_ptr().add(offset).cast::<[u8; 8]>().write_unaligned(version.to_le_bytes()) };
            }
            _ => self.rebuild(|header| header.version = version),
        }
    }

    /// The same entry under another key, in a block of its own; an object moves.
    pub fn rename(mut self, key: &[u8]) -> Entry {
        self.rebuild(|header| header.key = key);
        self
    }

    fn rebuild<'a>(&'a mut self, change: impl FnOnce(&mut Header<'a>)) {
        // The header borrows the key from the old block, which lives until the new one is whole.
        let old = Entry(self.0);
        let old = std::mem::ManuallyDrop::new(old);
        // SAFETY: the old block stays live and unchanged until it is freed at the end of this function.
        let view: EntryRef<'a> = EntryRef(old.0, PhantomData);
        let mut header =
            Header { key: view.key(), deadline_ms: view.deadline_ms(), version: view.version(), access: view.access() };
        change(&mut header);
        let (start, len) = view.payload_range();
        let rebuilt = if view.encoding() == Encoding::Object {
            let mut entry = Entry::assemble(header, Encoding::Object, &[&[0; 8]]);
            // SAFETY: ownership of the object moves: the old block is freed below without it.
            entry.write_object(unsafe { Box::from_raw(view.object_pointer()) });
            entry
        } else {
            Entry::assemble(header, view.encoding(), &[view.slice(start, len)])
        };
        let old_len = view.len();
        let old_block = std::mem::replace(&mut self.0, rebuilt.0);
        std::mem::forget(rebuilt);
        // SAFETY: the block was allocated for `old_len` bytes and nothing refers to it any more.
        unsafe { slab::free(old_block, old_len) };
    }
}

impl Drop for Entry {
    #[inline]
    fn drop(&mut self) {
        let view = self.view();
        let len = view.len();
        if view.encoding() == Encoding::Object {
            // SAFETY: the entry owns its object.
            drop(unsafe { Box::from_raw(view.object_pointer()) });
        }
        // SAFETY: the block was allocated for `len` bytes, and the entry is gone.
        unsafe { slab::free(self.0, len) };
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = self.view();
        formatter
            .debug_struct("Entry")
            .field("key", &String::from_utf8_lossy(view.key()))
            .field("encoding", &view.encoding())
            .finish_non_exhaustive()
    }
}

// SAFETY: slab blocks are aligned to 8 and user-space addresses fit 48 bits; the key is part of the block.
unsafe impl Block for Entry {
    type Ref<'a> = EntryRef<'a>;

    #[inline]
    fn into_raw(self) -> NonNull<u8> {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }

    #[inline]
    unsafe fn from_raw(raw: NonNull<u8>) -> Entry {
        Entry(raw)
    }

    #[inline]
    unsafe fn view<'a>(raw: NonNull<u8>) -> EntryRef<'a> {
        EntryRef(raw, PhantomData)
    }

    #[inline]
    unsafe fn key<'a>(raw: NonNull<u8>) -> &'a [u8] {
        EntryRef(raw, PhantomData).key()
    }

    #[inline]
    unsafe fn marked(raw: NonNull<u8>) -> bool {
        EntryRef(raw, PhantomData).byte(0) & DEADLINE_FLAG != 0
    }
}
