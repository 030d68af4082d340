//! The bytes of an RDB file: read in order, counted, summed, and kept where they are asked for.

use std::fmt;
use std::io::Read;

use ruvio_shard::rdb::Checksum;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Kept bytes that are given back to the system when the next ones need less.
const KEPT_BYTES: usize = 16 << 20;

/// What is wrong with a file, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    offset: u64,
    text: String,
}

impl Problem {
    pub fn at(offset: u64, text: impl Into<String>) -> Problem {
        Problem { offset, text: text.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (at byte {})", self.text, self.offset)
    }
}

/// The first part of a string or a number in the form of RDB.
pub enum Length {
    /// A length, or the number itself.
    Plain(u64),
    /// How a string is encoded.
    Encoded(u8),
}

/// A file that is read from its beginning to its end.
pub struct Source<R> {
    input: R,
    buffer: Vec<u8>,
    /// What of the buffer was read from the file but not taken yet.
    start: usize,
    end: usize,
    /// What of the buffer in front of `start` is in the checksum.
    summed: usize,
    checksum: Checksum,
    /// Bytes taken, and all there are.
    offset: u64,
    len: u64,
    kept: Vec<u8>,
    keeps: bool,
}

impl<R: Read> Source<R> {
    /// Reads `input`, which has `len` bytes.
    pub fn new(input: R, len: u64) -> Source<R> {
        let checksum = Checksum::default();
        let buffer = vec![0; BUFFER_BYTES];
        Source { input, buffer, start: 0, end: 0, summed: 0, checksum, offset: 0, len, kept: Vec::new(), keeps: false }
    }

    /// How many bytes were taken.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether there is nothing more.
    pub fn is_at_end(&self) -> bool {
        self.offset >= self.len
    }

    /// Keeps what is taken from here on, and forgets what was kept before.
    pub fn keep(&mut self) {
        self.kept.clear();
        self.kept.shrink_to(KEPT_BYTES);
        self.keeps = true;
    }

    /// Keeps no more; what was kept stays.
    pub fn stop_keeping(&mut self) {
        self.keeps = false;
    }

    /// What was kept.
    pub fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// The checksum of all bytes taken.
    pub fn checksum(&mut self) -> u64 {
        self.sum();
        self.checksum.value()
    }

    fn sum(&mut self) {
        self.checksum.add(&self.buffer[self.summed..self.start]);
        self.summed = self.start;
    }

    /// The file is shorter than what it says.
    pub fn truncated(&self) -> Problem {
        Problem::at(self.len, "the file is truncated")
    }

    /// The next bytes of the buffer, at most `most` of them and at least one.
    fn take_some(&mut self, most: u64) -> Result<std::ops::Range<usize>, Problem> {
        if self.start == self.end {
            self.sum();
            (self.start, self.end, self.summed) = (0, 0, 0);
            let cannot_read = |error| Problem::at(self.offset, format!("cannot read the file: {error}"));
            self.end = loop {
                match self.input.read(&mut self.buffer) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    result => break result.map_err(cannot_read)?,
                }
            };
            if self.end == 0 {
                return Err(Problem::at(self.offset, "the file is truncated"));
            }
        }
        let taken = usize::try_from(most).unwrap_or(usize::MAX).min(self.end - self.start);
        let range = self.start..self.start + taken;
        self.start += taken;
        self.offset += taken as u64;
        Ok(range)
    }

    /// Takes `len` bytes.
    pub fn take(&mut self, len: u64) -> Result<(), Problem> {
        if len > self.len.saturating_sub(self.offset) {
            return Err(self.truncated());
        }
        let mut left = len;
        while left > 0 {
            let range = self.take_some(left)?;
            left -= range.len() as u64;
            if self.keeps {
                self.kept.extend_from_slice(&self.buffer[range]);
            }
        }
        Ok(())
    }

    /// Takes `N` bytes and returns them.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let mut bytes = [0; N];
        let mut filled = 0;
        if N as u64 > self.len.saturating_sub(self.offset) {
            return Err(self.truncated());
        }
        while filled < N {
            let range = self.take_some((N - filled) as u64)?;
            let part = &self.buffer[range];
            bytes[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        }
        if self.keeps {
            self.kept.extend_from_slice(&bytes);
        }
        Ok(bytes)
    }

    /// Takes a byte.
    pub fn byte(&mut self) -> Result<u8, Problem> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Takes the first part of a string or a number.
    pub fn length(&mut self) -> Result<Length, Problem> {
        let offset = self.offset;
        let first = self.byte()?;
        Ok(match (first >> 6, first) {
            (0, _) => Length::Plain(first.into()),
            (1, _) => Length::Plain(u64::from(first & 0x3f) << 8 | u64::from(self.byte()?)),
            (3, _) => Length::Encoded(first & 0x3f),
            (_, 0x80) => Length::Plain(u32::from_be_bytes(self.array()?).into()),
            (_, 0x81) => Length::Plain(u64::from_be_bytes(self.array()?)),
            _ => return Err(Problem::at(offset, format!("no length begins with byte {first}"))),
        })
    }

    /// Takes a number.
    pub fn number(&mut self) -> Result<u64, Problem> {
        let offset = self.offset;
        match self.length()? {
            Length::Plain(number) => Ok(number),
            Length::Encoded(_) => Err(Problem::at(offset, "there is a string where a number should be")),
        }
    }

    /// Takes a string, in whatever form.
    pub fn string(&mut self) -> Result<(), Problem> {
        let offset = self.offset;
        match self.length()? {
            Length::Plain(len) => self.take(len),
            Length::Encoded(0) => self.take(1),
            Length::Encoded(1) => self.take(2),
            Length::Encoded(2) => self.take(4),
            Length::Encoded(3) => {
                let compressed = self.number()?;
                self.number()?;
                self.take(compressed)
            }
            Length::Encoded(other) => Err(Problem::at(offset, format!("no string has the encoding {other}"))),
        }
    }

    /// Takes several strings.
    pub fn strings(&mut self, count: u64) -> Result<(), Problem> {
        (0..count).try_for_each(|_| self.string())
    }
}
