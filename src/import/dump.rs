//! The records of an RDB file. The format is described in Redis's `rdb.h` and `rdb.c`.

use std::io::Read;

use ruvio_shard::rdb::{self, Reader};

use super::source::{Problem, Source};
use super::values::{foreign_kind, module_type_name, take_module_data, take_value};
use crate::options::MAX_DATABASES;

/// The first bytes of a file; its version follows, in four digits.
const MAGIC: [u8; 5] = *b"REDIS";

/// Versions that are read: those of Redis 2.6 to 7.4.
const VERSIONS: std::ops::RangeInclusive<u32> = 6..=12;

const SLOT_INFO: u8 = 244;
const FUNCTION: u8 = 245;
const FUNCTION_OF_CANDIDATES: u8 = 246;
const MODULE_DATA: u8 = 247;
const IDLE: u8 = 248;
const FREQUENCY: u8 = 249;
const INFORMATION: u8 = 250;
const SIZES: u8 = 251;
const EXPIRES_MS: u8 = 252;
const EXPIRES_S: u8 = 253;
const DATABASE: u8 = 254;
const END: u8 = 255;

/// A record.
pub enum Record {
    /// A key. Its value is what [`Dump::value`] returns until the next record.
    Key(Key),
    /// The text of a library of functions.
    Library(Vec<u8>),
    /// Something that has no place here and belongs to no key; what it is.
    Foreign(String),
    /// The file is read to its end, and its checksum is right.
    End,
}

/// A key, as the file tells of it.
pub struct Key {
    /// Where its value begins.
    pub offset: u64,
    pub database: usize,
    pub name: Vec<u8>,
    /// Ms since the epoch.
    pub deadline_ms: Option<i64>,
    /// How long it was not used, in seconds.
    pub idle_s: Option<u64>,
    /// How often it was used, as Redis counts it.
    pub frequency: Option<u8>,
    pub value_type: u8,
    /// Why there is no place for its value, if there is none; the value is not kept then.
    pub foreign: Option<String>,
}

/// A file in reading.
pub struct Dump<R> {
    source: Source<R>,
    database: usize,
    deadline_ms: Option<i64>,
    idle_s: Option<u64>,
    frequency: Option<u8>,
}

impl<R: Read> Dump<R> {
    /// Begins to read a file of `len` bytes.
    pub fn open(input: R, len: u64) -> Result<Dump<R>, Problem> {
        let mut source = Source::new(input, len);
        let is_dump = len >= 9 && source.array()? == MAGIC;
        if !is_dump {
            return Err(Problem::at(0, "this is no RDB file: it does not begin with REDIS and a version"));
        }
        let digits = source.array::<4>()?;
        let version = str::from_utf8(&digits).ok().and_then(|digits| digits.parse::<u32>().ok());
        match version {
            Some(version) if VERSIONS.contains(&version) => {}
            Some(version) => {
                let (first, last) = (VERSIONS.start(), VERSIONS.end());
                let text = format!("the file has RDB version {version}; versions {first} to {last} can be imported");
                return Err(Problem::at(5, text));
            }
            None => return Err(Problem::at(5, "this is no RDB file: REDIS is not followed by a version")),
        }
        Ok(Dump { source, database: 0, deadline_ms: None, idle_s: None, frequency: None })
    }

    /// How many bytes were read.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// The value of the key that was read last, as RDB has it, without its type.
    pub fn value(&self) -> &[u8] {
        self.source.kept()
    }

    /// Reads on to the next record of interest.
    pub fn next(&mut self) -> Result<Record, Problem> {
        loop {
            let offset = self.source.offset();
            let source = &mut self.source;
            match source.byte()? {
                EXPIRES_MS => self.deadline_ms = Some(i64::from_le_bytes(source.array()?)),
                EXPIRES_S => self.deadline_ms = Some(i64::from(i32::from_le_bytes(source.array()?)) * 1000),
                IDLE => self.idle_s = Some(source.number()?),
                FREQUENCY => self.frequency = Some(source.byte()?),
                DATABASE => {
                    let number = source.number()?;
                    let database = usize::try_from(number).ok().filter(|&database| database < MAX_DATABASES);
                    let text = || format!("the file has a database {number}; there can be {MAX_DATABASES}, from 0 on");
                    self.database = database.ok_or_else(|| Problem::at(offset, text()))?;
                }
                SIZES => {
                    source.number()?;
                    source.number()?;
                }
                SLOT_INFO => {
                    source.number()?;
                    source.number()?;
                    source.number()?;
                }
                // What the server that wrote it was like.
                INFORMATION => source.strings(2)?,
                FUNCTION => return Ok(Record::Library(self.text()?)),
                FUNCTION_OF_CANDIDATES => {
                    return Err(Problem::at(
                        offset,
                        "a function in the form of candidates of Redis 7.0, which was changed",
                    ));
                }
                MODULE_DATA => {
                    let name = module_type_name(source.number()?);
                    // When the data were written: in front of the keys or behind them.
                    source.number()?;
                    source.number()?;
                    take_module_data(source)?;
                    return Ok(Record::Foreign(format!("data of module type {name} beside the keys")));
                }
                END => {
                    self.end()?;
                    return Ok(Record::End);
                }
                value_type => return self.key(value_type).map(Record::Key),
            }
        }
    }

    fn key(&mut self, value_type: u8) -> Result<Key, Problem> {
        let name = self.text()?;
        let offset = self.source.offset();
        let foreign = foreign_kind(value_type).map(str::to_owned);
        if foreign.is_none() {
            self.source.keep();
        }
        let taken = take_value(&mut self.source, value_type);
        self.source.stop_keeping();
        taken?;
        Ok(Key {
            offset,
            database: self.database,
            name,
            deadline_ms: self.deadline_ms.take(),
            idle_s: self.idle_s.take(),
            frequency: self.frequency.take(),
            value_type,
            foreign,
        })
    }

    /// A string, as what it stands for.
    fn text(&mut self) -> Result<Vec<u8>, Problem> {
        let offset = self.source.offset();
        self.source.keep();
        let taken = self.source.string();
        self.source.stop_keeping();
        taken?;
        let text = Reader::new(self.source.kept()).text();
        let text = text.map_err(|_| Problem::at(offset, "a compressed string is damaged"))?;
        Ok(match text {
            rdb::Text::Bytes(bytes) => bytes.into_owned(),
            rdb::Text::Integer(integer) => integer.to_string().into_bytes(),
        })
    }

    /// Reads the checksum, and makes sure that it is right and nothing follows.
    fn end(&mut self) -> Result<(), Problem> {
        let (offset, found) = (self.source.offset(), self.source.checksum());
        let expected = u64::from_le_bytes(self.source.array()?);
        // Redis writes a zero when it is told to make no checksums.
        if expected != 0 && expected != found {
            let text = format!("the checksum is wrong: {expected:016x} is written, {found:016x} comes of the content");
            return Err(Problem::at(offset, text));
        }
        if !self.source.is_at_end() {
            let text = "something follows the end, as in an append-only file; only RDB files can be imported";
            return Err(Problem::at(self.source.offset(), text));
        }
        Ok(())
    }
}
