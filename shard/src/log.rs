//! A shard's write-ahead log: what is in its records and segments, and how they are read back. `FORMAT.md` draws the bytes.
//!
//! Nothing here touches a file. Records are made in a [`Buffer`]; a [`Writer`] decides what of it is written, synced and
//! acknowledged, and tells a [`Disk`]; segments are read from memory with [`Segment`], record by record.

mod behind;
mod buffer;
mod disk;
mod refusal;
pub mod replay;
mod seals;
mod segment;
mod trouble;
mod writer;

#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod tests;

pub use behind::records_behind;
pub use buffer::{Buffer, seal};
pub use disk::{Completion, Disk, DiskError, FileName};
pub use refusal::Refusal;
pub use segment::{Command, Ending, Header, Record, Segment, is_proof_of_sync};
pub use trouble::{Trouble, refusal};
pub use writer::{Durability, Longest, Start, Writer};

/// The first bytes of a segment.
const MAGIC: [u8; 8] = *b"RUVIOLOG";

/// The version of the format.
const VERSION: u32 = 1;

/// Bytes of a segment's header.
pub const HEADER_BYTES: usize = 64;

/// Bytes of a record in front of its body: a checksum and the body's length.
const RECORD_HEAD: usize = 8;

/// The longest body, in bytes: a transaction of the largest commands fits.
const MAX_BODY: usize = 1 << 31;

/// What a record holds: commands.
const COMMANDS: u8 = 1;

/// What a record holds: how far the log was on stable storage.
const SYNCED: u8 = 2;

/// Bytes of the body of a record that says how far the log was synced.
const SYNCED_BODY: usize = 9;

/// What the record at the end of a segment holds that says that the log goes on in another one.
const SEALED: u8 = 3;

/// Bytes of the body of such a record.
const SEALED_BODY: usize = 1;

/// Bytes of the record that seals a segment.
pub const SEAL_BYTES: usize = RECORD_HEAD + SEALED_BODY;

/// The checksum of a record. It depends on where the record stands, so that bytes which were a record elsewhere are none.
pub(crate) fn checksum(position: u64, length_and_body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&position.to_le_bytes()), length_and_body)
}
