//! Reading an image back.

use super::reader_parts::UnfinishedParts;
use super::{BLOCK_HEAD, END, ENTRIES, HAS_DEADLINE, HAS_VERSION, MAGIC, PARTS, PARTS_BEGIN, PARTS_END, PARTS_RIGHT};
use crate::entry::Header as EntryHeader;
use crate::keys::Keys;
use crate::log::{HEADER_BYTES, Header, Refusal, checksum};
use crate::rdb::{self, Reader};

/// The longest body of a block, in bytes.
const MAX_BODY: usize = 1 << 31;

/// What a block has held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Entries, or parts of one, which were added.
    Entries,
    /// Nothing more: the image ends here.
    End,
}

/// Reads an image block by block. The bytes come from whoever reads the file.
pub struct Blocks {
    header: Header,
    offset: u64,
    entries: u64,
    unfinished: UnfinishedParts,
}

impl Blocks {
    /// Reads the header of an image; the error says what is wrong.
    pub fn open(bytes: &[u8; HEADER_BYTES]) -> Result<Blocks, Refusal> {
        let header = Header::decode_as(bytes, MAGIC)?;
        Ok(Blocks { header, offset: HEADER_BYTES as u64, entries: 0, unfinished: UnfinishedParts::default() })
    }

    /// What the image says of itself.
    pub fn header(&self) -> Header {
        self.header
    }

    /// The offset in the file of the next block.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How many entries were added.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Bytes of a block's head, of which [`Blocks::body_bytes`] tells how long the rest is.
    pub const HEAD_BYTES: usize = BLOCK_HEAD;

    /// How many bytes follow a block's head.
    pub fn body_bytes(head: &[u8; BLOCK_HEAD]) -> Result<usize, Refusal> {
        let len = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        if len == 0 || len > MAX_BODY { Err("a block has an impossible length".into()) } else { Ok(len) }
    }

    /// Adds the entries of a block, head included, to `keys`. The error says what is wrong with it.
    pub fn add(&mut self, block: &[u8], keys: &mut Keys) -> Result<Block, Refusal> {
        let (head, rest) = block.split_at_checked(4).ok_or("a block is cut")?;
        if head != checksum(self.offset, rest).to_le_bytes() {
            return Err("the checksum of a block is wrong".into());
        }
        self.offset += block.len() as u64;
        match rest.get(4..).and_then(<[u8]>::split_first) {
            Some((&ENTRIES, mut entries)) => {
                while !entries.is_empty() {
                    entries = self.add_entry(entries, keys)?;
                }
                Ok(Block::Entries)
            }
            Some((&kind @ (PARTS_BEGIN | PARTS | PARTS_RIGHT | PARTS_END), parts)) => {
                self.add_parts(kind, parts, keys)?;
                Ok(Block::Entries)
            }
            Some((&END, _)) if !self.unfinished.is_empty() => Err("a collection is not ended".into()),
            Some((&END, count)) if count == self.entries.to_le_bytes() => Ok(Block::End),
            Some((&END, _)) => Err("the number of its entries is wrong".into()),
            _ => Err("a block has an unknown kind".into()),
        }
    }

    /// Adds what a block has of a collection that is saved in parts.
    fn add_parts(&mut self, kind: u8, mut parts: &[u8], keys: &mut Keys) -> Result<(), Refusal> {
        let number = u32::from_le_bytes(take(&mut parts)?);
        match kind {
            PARTS_BEGIN => {
                let head = take_head(&mut parts, keys)?;
                let header = EntryHeader { version: head.version, ..head.header };
                self.unfinished.begin(number, head.database, header, parts)
            }
            PARTS_END if parts.is_empty() => {
                let (database, entry) = self.unfinished.end(number, &keys.settings)?;
                keys.select(database);
                keys.put(entry);
                self.entries += 1;
                Ok(())
            }
            PARTS_END => Err("something follows the end of a collection".into()),
            _ => self.unfinished.add(number, parts, kind == PARTS_RIGHT, &keys.settings),
        }
    }

    fn add_entry<'a>(&mut self, bytes: &'a [u8], keys: &mut Keys) -> Result<&'a [u8], Refusal> {
        let mut rest = bytes;
        let Head { database, header, version } = take_head(&mut rest, keys)?;
        let mut reader = Reader::new(rest);
        let damaged = |error: rdb::LoadError| Refusal::from(format!("an entry cannot be read: {error}"));
        let value_type = reader.byte().map_err(damaged)?;
        let mut entry = rdb::load(&mut reader, value_type, header, &keys.settings).map_err(damaged)?;
        if version.is_some() {
            entry.set_version(version);
        }
        keys.select(database);
        keys.put(entry);
        self.entries += 1;
        Ok(reader.rest())
    }
}

/// What stands before an entry's value. An entry gets its version last.
struct Head<'a> {
    database: usize,
    header: EntryHeader<'a>,
    version: Option<i64>,
}

fn take_head<'a>(rest: &mut &'a [u8], keys: &Keys) -> Result<Head<'a>, Refusal> {
    let flags = take::<1>(rest)?[0];
    let database = usize::from(u16::from_le_bytes(take(rest)?));
    let [a, b, c] = take(rest)?;
    let deadline_ms = if flags & HAS_DEADLINE != 0 { Some(i64::from_le_bytes(take(rest)?)) } else { None };
    let version = if flags & HAS_VERSION != 0 { Some(i64::from_le_bytes(take(rest)?)) } else { None };
    let len = u32::from_le_bytes(take(rest)?) as usize;
    let (key, behind) = rest.split_at_checked(len).ok_or("an entry is cut")?;
    *rest = behind;
    if database >= keys.databases().len() {
        return Err(Refusal::Database(database));
    }
    let header = EntryHeader { key, deadline_ms, version: None, access: u32::from_le_bytes([a, b, c, 0]) };
    Ok(Head { database, header, version })
}

pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Refusal> {
    let (head, rest) = bytes.split_first_chunk::<N>().ok_or("an entry is cut")?;
    *bytes = rest;
    Ok(*head)
}
