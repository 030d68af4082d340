//! Images of a shard: all its keys as they were at one moment, made while the shard goes on. `FORMAT.md` draws the bytes.
//!
//! Every entry has a mark, and all have the same while no image is made. To make one, the other mark becomes that of
//! what is saved; then a walk over all tables saves every entry that has the old one, a few at a time. An entry that is to
//! be changed or removed before the walk has come to it is saved first, and what is added has the new mark from the
//! start. So each entry is saved once, as it was, and nothing has to be remembered of what was changed.
//!
//! A collection with many elements is saved in parts (see [`parts`]), so that no entry takes long.
//!
//! What expires meanwhile may go without being saved: whoever reads the image reads what was done afterwards too, at the
//! times when it was done, and to that a key that has expired and one that is not there are the same.

pub(crate) mod parts;
mod reader;
mod reader_parts;

#[cfg(test)]
mod tests;

pub use reader::{Block, Blocks};

use crate::entry::{EntryRef, Kind};
use crate::log::{HEADER_BYTES, Header, checksum};
use crate::object::Object;
use crate::rdb;
use parts::Parts;

/// The first bytes of an image.
pub(crate) const MAGIC: [u8; 8] = *b"RUVIOIMG";

/// Bytes of a block in front of its body: a checksum and the body's length.
const BLOCK_HEAD: usize = 8;

/// A block is closed when its body has this many bytes.
const BLOCK_BYTES: usize = 64 << 10;

/// What a block holds: entries.
const ENTRIES: u8 = 1;

/// What a block holds: the number of all entries. It is the last.
const END: u8 = 2;

/// What a block holds: the head of an entry that is saved in parts, and then in other blocks elements of it, elements of a
/// list from the right, and the end of it.
const PARTS_BEGIN: u8 = 3;
const PARTS: u8 = 4;
const PARTS_RIGHT: u8 = 5;
const PARTS_END: u8 = 6;

/// What an entry that is saved in parts is.
const LIST: u8 = 1;
const SET: u8 = 2;
const HASH: u8 = 3;
const SORTED_SET: u8 = 4;

/// Of an entry's first byte: it has a deadline, a version.
const HAS_DEADLINE: u8 = 1;
const HAS_VERSION: u8 = 2;

/// An image in the making.
#[derive(Debug)]
pub struct Image {
    /// Whole blocks that nobody has taken yet.
    out: Vec<u8>,
    /// The offset in the file of what `out` begins with.
    offset: u64,
    /// Where in `out` the block in the making starts.
    block: usize,
    entries: u64,
    /// Whether the image is of no use any more; then only the marks are brought in line.
    abandoned: bool,
    /// Where the walk is: database, slot and scan position.
    pub(crate) cursor: (usize, usize, u64),
    /// Collections are saved in parts that have at least so many elements.
    pub(crate) in_parts_from: usize,
    /// How many there were so far.
    numbered: u32,
}

impl Image {
    /// An empty image whose file begins with `header`.
    pub fn new(header: &Header) -> Image {
        let mut image = Image {
            out: header.encode_as(MAGIC).to_vec(),
            offset: 0,
            block: HEADER_BYTES,
            entries: 0,
            abandoned: false,
            cursor: (0, 0, 0),
            in_parts_from: parts::IN_PARTS_FROM,
            numbered: 0,
        };
        image.open_block(ENTRIES);
        image
    }

    fn open_block(&mut self, kind: u8) {
        self.block = self.out.len();
        self.out.extend_from_slice(&[0; BLOCK_HEAD]);
        self.out.push(kind);
    }

    fn close_block(&mut self) {
        let body = (self.out.len() - self.block - BLOCK_HEAD) as u32;
        self.out[self.block + 4..self.block + 8].copy_from_slice(&body.to_le_bytes());
        let sum = checksum(self.offset + self.block as u64, &self.out[self.block + 4..]);
        self.out[self.block..self.block + 4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Adds an entry of database `database`.
    pub fn save(&mut self, database: usize, entry: EntryRef<'_>) {
        if self.abandoned {
            return;
        }
        self.entries += 1;
        self.push_head(database, entry);
        self.out.push(rdb::value_type(entry));
        rdb::save_value_plainly(entry, &mut self.out);
        if self.out.len() - self.block > BLOCK_BYTES {
            self.close_block();
            self.open_block(ENTRIES);
        }
    }

    /// Appends what stands before an entry's value.
    fn push_head(&mut self, database: usize, entry: EntryRef<'_>) {
        let (deadline_ms, version) = (entry.deadline_ms(), entry.version());
        let flags =
            if deadline_ms.is_some() { HAS_DEADLINE } else { 0 } | if version.is_some() { HAS_VERSION } else { 0 };
        let out = &mut self.out;
        out.push(flags);
        out.extend_from_slice(&(database as u16).to_le_bytes());
        out.extend_from_slice(&entry.access().to_le_bytes()[..3]);
        deadline_ms.into_iter().for_each(|deadline_ms| out.extend_from_slice(&deadline_ms.to_le_bytes()));
        version.into_iter().for_each(|version| out.extend_from_slice(&version.to_le_bytes()));
        out.extend_from_slice(&(entry.key().len() as u32).to_le_bytes());
        out.extend_from_slice(entry.key());
    }

    /// Whether an entry is to be saved in parts.
    pub(crate) fn is_for_parts(&self, entry: EntryRef<'_>) -> bool {
        !self.abandoned && entry.object().is_some_and(|object| object.elements() >= self.in_parts_from)
    }

    /// Begins to save an entry, for which [`Image::is_for_parts`], in parts; which one of the image it is.
    pub(crate) fn begin_parts(&mut self, database: usize, entry: EntryRef<'_>) -> u32 {
        let elements = entry.object().map_or(0, Object::elements);
        let number = self.numbered;
        self.numbered += 1;
        self.entries += 1;
        self.begin_block_of_parts(PARTS_BEGIN, number);
        self.push_head(database, entry);
        self.out.push(match entry.kind() {
            Kind::List => LIST,
            Kind::Set => SET,
            Kind::Hash => HASH,
            Kind::SortedSet => SORTED_SET,
            Kind::String | Kind::Limit => unreachable!("it has no elements"),
        });
        self.out.extend_from_slice(&(elements as u64).to_le_bytes());
        self.end_block_of_parts();
        number
    }

    fn begin_block_of_parts(&mut self, kind: u8, number: u32) {
        if self.out.len() > self.block + BLOCK_HEAD + 1 {
            self.close_block();
        } else {
            self.out.truncate(self.block);
        }
        self.open_block(kind);
        self.out.extend_from_slice(&number.to_le_bytes());
    }

    fn end_block_of_parts(&mut self) {
        self.close_block();
        self.open_block(ENTRIES);
    }

    /// Adds what is saved of a collection since the last time.
    pub(crate) fn add_parts(&mut self, number: u32, parts: &mut Parts) {
        for (kind, elements) in [(PARTS, &mut parts.elements), (PARTS_RIGHT, &mut parts.from_the_right)] {
            if !elements.is_empty() {
                self.begin_block_of_parts(kind, number);
                self.out.extend_from_slice(elements);
                self.end_block_of_parts();
                elements.clear();
            }
        }
    }

    /// Ends a collection of which everything was added.
    pub(crate) fn end_parts(&mut self, number: u32) {
        self.begin_block_of_parts(PARTS_END, number);
        self.end_block_of_parts();
    }

    /// Adds an entry, for which [`Image::is_for_parts`], in one go.
    pub(crate) fn save_in_parts(&mut self, database: usize, entry: EntryRef<'_>) {
        let number = self.begin_parts(database, entry);
        let mut parts = Parts::default();
        if let Some(object) = entry.object() {
            object.save_all(|save| {
                save(&mut parts.elements);
                if parts.elements.len() > BLOCK_BYTES {
                    self.add_parts(number, &mut parts);
                }
            });
        }
        self.add_parts(number, &mut parts);
        self.end_parts(number);
    }

    /// Adds the last block.
    pub fn end(&mut self) {
        if self.abandoned {
            return;
        }
        self.close_block();
        self.open_block(END);
        self.out.extend_from_slice(&self.entries.to_le_bytes());
        self.close_block();
        self.block = self.out.len();
    }

    /// Gives the image up: nothing more is saved.
    pub(crate) fn abandon(&mut self) {
        self.abandoned = true;
        self.out = Vec::new();
    }

    /// Whether it was given up.
    pub fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// How many entries are saved.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Bytes that wait to be taken.
    pub fn waiting_bytes(&self) -> usize {
        self.out.len()
    }

    /// Takes the blocks that are whole, to be written at the offset in the file that comes with them.
    pub fn take(&mut self) -> (u64, Vec<u8>) {
        let rest = self.out.split_off(self.block.min(self.out.len()));
        let whole = std::mem::replace(&mut self.out, rest);
        let offset = self.offset;
        self.offset += whole.len() as u64;
        self.block = 0;
        (offset, whole)
    }
}
