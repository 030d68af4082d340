//! Reading a segment: its header, its records, and how it ends.

use super::{
    COMMANDS, HEADER_BYTES, MAGIC, MAX_BODY, RECORD_HEAD, Refusal, SEAL_BYTES, SEALED, SEALED_BODY, SYNCED,
    SYNCED_BODY, VERSION, checksum,
};
use crate::args::{ArgRange, Args};

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which shard's log it belongs to.
    pub shard: u32,
    /// How many shards there were.
    pub shards: u32,
    /// Names this division into shards; files of different ones do not go together.
    pub generation: u64,
    /// The position in the log of its first record.
    pub position: u64,
}

impl Header {
    /// Its bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        self.encode_as(MAGIC)
    }

    /// Its bytes, for a file that begins with `magic`.
    pub(crate) fn encode_as(&self, magic: [u8; 8]) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&magic);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.shard.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.shards.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.generation.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.position.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads it; the error says what is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Header, Refusal> {
        Header::decode_as(bytes, MAGIC)
    }

    /// Reads it from a file that has to begin with `magic`.
    pub(crate) fn decode_as(bytes: &[u8], magic: [u8; 8]) -> Result<Header, Refusal> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(format!("it has {} bytes, fewer than a header", bytes.len()).into());
        };
        if bytes[..8] != magic {
            return Err("it does not begin as such a file does".into());
        }
        if crc32c::crc32c(&bytes[..60]) != u32_at(bytes, 60) {
            return Err("the checksum of its header is wrong".into());
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(Refusal::Version(version));
        }
        Ok(Header {
            shard: u32_at(bytes, 12),
            shards: u32_at(bytes, 16),
            generation: u64_at(bytes, 24),
            position: u64_at(bytes, 32),
        })
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// A command as it was logged.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// The database that was selected.
    pub database: usize,
    /// Its words.
    pub args: Args<'a>,
}

/// A record.
#[derive(Debug)]
pub enum Record<'a> {
    /// Commands that were executed together.
    Commands {
        /// When, in ms since the epoch.
        time_ms: i64,
        /// The commands, in order.
        commands: Vec<Command<'a>>,
    },
    /// How far the log was on stable storage by then.
    Synced(u64),
}

/// Why there is no further record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The segment ends behind the last one.
    Whole,
    /// As [`Ending::Whole`], and the log goes on in the next segment, which has been there.
    Sealed,
    /// What follows is no whole record, as when the writer died in the middle of it.
    Torn,
    /// What follows is no record, though it was one: what stands behind it says that it was on stable storage.
    Damaged,
    /// What follows has the checksum of a record, and a content that no record has.
    Malformed,
}

/// A segment that is read from the front.
#[derive(Debug)]
pub struct Segment<'a> {
    header: Header,
    /// Everything behind the header.
    bytes: &'a [u8],
    next: usize,
    ranges: Vec<ArgRange>,
}

impl<'a> Segment<'a> {
    /// Reads the header of a segment whose content is `bytes`.
    pub fn open(bytes: &'a [u8]) -> Result<Segment<'a>, Refusal> {
        let header = Header::decode(bytes)?;
        Ok(Segment { header, bytes: &bytes[HEADER_BYTES..], next: 0, ranges: Vec::new() })
    }

    /// As [`Segment::open`], to go on at an offset in the file that [`Segment::offset`] gave.
    pub fn open_at(bytes: &'a [u8], offset: usize) -> Result<Segment<'a>, Refusal> {
        let mut segment = Segment::open(bytes)?;
        segment.next = offset.saturating_sub(HEADER_BYTES).min(segment.bytes.len());
        Ok(segment)
    }

    /// What it says of itself.
    pub fn header(&self) -> Header {
        self.header
    }

    /// The position in the log of the next record.
    pub fn position(&self) -> u64 {
        self.header.position + self.next as u64
    }

    /// The offset in the file of the next record.
    pub fn offset(&self) -> usize {
        HEADER_BYTES + self.next
    }

    /// The next record; or why there is none, and then nothing is passed.
    pub fn next_record(&mut self) -> Result<Record<'_>, Ending> {
        let rest = &self.bytes[self.next..];
        if rest.is_empty() {
            return Err(Ending::Whole);
        }
        let position = self.position();
        let Some(body) = body_at(rest, position) else {
            return Err(if self.was_synced(position) { Ending::Damaged } else { Ending::Torn });
        };
        let record = match body.first() {
            Some(&SYNCED) if body.len() == SYNCED_BODY => Record::Synced(u64_at(body, 1)),
            Some(&SEALED) if rest.len() == SEAL_BYTES && body.len() == SEALED_BODY => return Err(Ending::Sealed),
            Some(&COMMANDS) => {
                let (time_ms, places) = commands(body, &mut self.ranges).ok_or(Ending::Malformed)?;
                let mut first = 0;
                let commands = places.into_iter().map(|(database, words)| {
                    let ranges = &self.ranges[first..first + words];
                    first += words;
                    Command { database, args: Args::new(body, ranges) }
                });
                Record::Commands { time_ms, commands: commands.collect() }
            }
            _ => return Err(Ending::Malformed),
        };
        self.next += RECORD_HEAD + body.len();
        Ok(record)
    }

    /// Whether what is left may be a seal that was not written to its end: behind it the log can go on.
    pub fn may_be_torn_seal(&self) -> bool {
        (1..=SEAL_BYTES).contains(&(self.bytes.len() - self.next))
    }

    /// Whether a record behind `position` says that the log was on stable storage beyond it.
    fn was_synced(&self, position: u64) -> bool {
        is_marked_beyond(&self.bytes[self.next..], self.position(), position)
    }
}

/// Whether a record in a segment says that the log was on stable storage beyond `position`: then what is missing there has
/// been lost, and was not just never written. `file` is the whole segment and `start` the position that its name says it
/// starts at; its header may be damaged.
pub fn is_proof_of_sync(file: &[u8], start: u64, position: u64) -> bool {
    file.get(HEADER_BYTES..).is_some_and(|records| is_marked_beyond(records, start, position))
}

/// Whether among `bytes`, whose first stands at `start` of the log, is a record that says that the log was on stable storage
/// beyond `position`. A seal says so of all before it.
fn is_marked_beyond(bytes: &[u8], start: u64, position: u64) -> bool {
    (0..bytes.len()).any(|at| {
        let (rest, stands) = (&bytes[at..], start.wrapping_add(at as u64));
        let Some(kind) = rest.get(4..RECORD_HEAD + 1) else { return false };
        let said = match (u32_at(kind, 0) as usize, kind[4]) {
            (SYNCED_BODY, SYNCED) => body_at(rest, stands).map(|body| u64_at(body, 1)),
            (SEALED_BODY, SEALED) => body_at(rest, stands).map(|_| stands),
            _ => None,
        };
        said.is_some_and(|said| said > position)
    })
}

/// The body of the record at the front of `rest`, if it is whole.
pub(super) fn body_at(rest: &[u8], position: u64) -> Option<&[u8]> {
    let head = rest.first_chunk::<RECORD_HEAD>()?;
    let length = u32_at(head, 4) as usize;
    if length == 0 || length > MAX_BODY {
        return None;
    }
    let whole = rest.get(4..RECORD_HEAD + length)?;
    (checksum(position, whole) == u32_at(head, 0)).then(|| &whole[4..])
}

/// Where the words of a record's commands are, and how many words each command has.
pub(super) fn commands(body: &[u8], ranges: &mut Vec<ArgRange>) -> Option<(i64, Vec<(usize, usize)>)> {
    ranges.clear();
    let mut reader = Reader { bytes: body, next: 1 };
    let time_ms = i64::from_le_bytes(reader.take(8)?.try_into().ok()?);
    let count = u32::from_le_bytes(reader.take(4)?.try_into().ok()?) as usize;
    let mut places = Vec::new();
    for _ in 0..count {
        let database = reader.number()?;
        let words = reader.number()?;
        if words == 0 {
            return None;
        }
        for _ in 0..words {
            let len = reader.number()?;
            let start = reader.next;
            reader.take(len)?;
            ranges.push(ArgRange { start: u32::try_from(start).ok()?, len: u32::try_from(len).ok()? });
        }
        places.push((database, words));
    }
    (reader.next == body.len()).then_some((time_ms, places))
}

struct Reader<'a> {
    bytes: &'a [u8],
    next: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let bytes = self.bytes.get(self.next..self.next.checked_add(len)?)?;
        self.next += len;
        Some(bytes)
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = 0_usize;
        for shift in (0..35).step_by(7) {
            let byte = *self.take(1)?.first()?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}
