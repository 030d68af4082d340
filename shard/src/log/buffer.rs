//! Records that are not written yet.

use super::{COMMANDS, MAX_BODY, RECORD_HEAD, SEAL_BYTES, SEALED, SEALED_BODY, SYNCED, checksum};
use crate::args::Args;

/// Makes records, one behind the other.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    /// The position in the log of the first byte.
    position: u64,
    /// Where the record in the making starts, if there is one.
    open: Option<usize>,
    /// How many commands it has, and where their number stands.
    commands: u32,
}

/// Bytes of a body in front of its commands: kind, time, number of commands.
const COMMANDS_HEAD: usize = 1 + 8 + 4;

/// The record that ends a segment at `position` of the log, and says that the log goes on in the segment that begins there.
pub fn seal(position: u64) -> [u8; SEAL_BYTES] {
    let mut record = [0; SEAL_BYTES];
    record[4..8].copy_from_slice(&(SEALED_BODY as u32).to_le_bytes());
    record[8] = SEALED;
    let sum = checksum(position, &record[4..]);
    record[..4].copy_from_slice(&sum.to_le_bytes());
    record
}

impl Buffer {
    /// A buffer whose first record will stand at `position` of the log, which counts the bytes of all records since the
    /// log began.
    pub fn new(position: u64) -> Buffer {
        Buffer { position, ..Buffer::default() }
    }

    /// The position of the log behind all that was added.
    #[inline]
    pub fn end(&self) -> u64 {
        self.position + self.bytes.len() as u64
    }

    /// The position of the log behind the records that have ended.
    #[inline]
    pub fn ended(&self) -> u64 {
        self.position + self.open.unwrap_or(self.bytes.len()) as u64
    }

    /// Bytes that were added and not taken.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory that it takes.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether nothing is there to be taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() || self.open == Some(0)
    }

    /// Whether a record is in the making.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Drops the record that was begun.
    pub fn abandon_record(&mut self) {
        if let Some(start) = self.open.take() {
            self.bytes.truncate(start);
        }
    }

    /// Starts a record of commands that were executed at `time_ms`.
    #[inline]
    pub fn begin(&mut self, time_ms: i64) {
        debug_assert!(self.open.is_none());
        self.open = Some(self.bytes.len());
        self.commands = 0;
        self.bytes.extend_from_slice(&[0; RECORD_HEAD]);
        self.bytes.push(COMMANDS);
        self.bytes.extend_from_slice(&time_ms.to_le_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
    }

    /// Adds a command to the record that was begun.
    #[inline]
    pub fn command(&mut self, database: usize, args: Args<'_>) {
        debug_assert!(self.open.is_some());
        self.commands += 1;
        self.number(database);
        self.number(args.len());
        for word in args.iter() {
            self.number(word.len());
            self.bytes.extend_from_slice(word);
        }
    }

    /// Ends the record that was begun; one without commands leaves no trace. False when it is too long, and leaves no
    /// trace either.
    pub fn end_record(&mut self) -> bool {
        let Some(start) = self.open.take() else { return true };
        let body = self.bytes.len() - start - RECORD_HEAD;
        if self.commands == 0 || body > MAX_BODY {
            self.bytes.truncate(start);
            return self.commands == 0;
        }
        let count = start + RECORD_HEAD + COMMANDS_HEAD - 4;
        self.bytes[count..count + 4].copy_from_slice(&self.commands.to_le_bytes());
        self.complete(start);
        true
    }

    /// Adds a record that says that the log is on stable storage up to `synced`.
    pub fn synced(&mut self, synced: u64) {
        debug_assert!(self.open.is_none());
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; RECORD_HEAD]);
        self.bytes.push(SYNCED);
        self.bytes.extend_from_slice(&synced.to_le_bytes());
        self.complete(start);
    }

    /// Fills in the length and the checksum of the record that starts at `start` and ends here.
    fn complete(&mut self, start: usize) {
        let body = (self.bytes.len() - start - RECORD_HEAD) as u32;
        self.bytes[start + 4..start + 8].copy_from_slice(&body.to_le_bytes());
        let sum = checksum(self.position + start as u64, &self.bytes[start + 4..]);
        self.bytes[start..start + 4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Takes all records that have ended, to be written at the position of the first; `spare` is used for those to come.
    pub fn take(&mut self, mut spare: Vec<u8>) -> Vec<u8> {
        spare.clear();
        let ended = self.open.unwrap_or(self.bytes.len());
        spare.extend_from_slice(&self.bytes[ended..]);
        self.bytes.truncate(ended);
        self.position += ended as u64;
        self.open = self.open.map(|_| 0);
        std::mem::replace(&mut self.bytes, spare)
    }

    /// A number in as few bytes as it needs: 7 bits a byte, the lowest first, the top bit set in all but the last.
    #[inline]
    fn number(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}
