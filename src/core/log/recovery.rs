//! Reading a shard's log back, a slice of work a turn.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;
use std::time::Instant;

use ruvio_shard::log::{Ending, HEADER_BYTES, Header, Record, Segment};
use ruvio_shard::shard::Shard;

use crate::data;

/// Records between two looks at the clock.
const RECORDS_A_LOOK: usize = 64;

/// What came of a slice of work.
pub enum Progress {
    /// There is more to do.
    More,
    /// All is read: where the log goes on, and the time of the last record in ms since the epoch.
    Done {
        /// The position of the log behind the last record.
        position: u64,
        /// The time of the last record, in ms since the epoch; 0 without one.
        time_ms: i64,
    },
}

/// The reading of a shard's log.
pub struct Recovery {
    directory: PathBuf,
    /// What every segment must say of itself; `position` is where the next one has to start.
    header: Header,
    /// Segments still to be read, the next one last.
    segments: Vec<(u64, PathBuf)>,
    /// The segment in reading, and where in its file.
    current: Option<(PathBuf, Vec<u8>, usize)>,
    time_ms: i64,
    replies: Vec<u8>,
    /// Bytes of all segments.
    pub total_bytes: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Records that were executed.
    pub records: u64,
}

impl Recovery {
    /// Begins to read the log in `directory`, whose segments must have this header.
    pub fn new(directory: PathBuf, header: Header) -> Result<Recovery, String> {
        let unfinished = directory.join("next-log");
        if unfinished.exists() {
            fs::remove_file(&unfinished).map_err(|error| format!("cannot remove {}: {error}", unfinished.display()))?;
        }
        let mut segments = data::segments(&directory)
            .map_err(|error| format!("cannot read the directory {}: {error}", directory.display()))?;
        let mut total_bytes = 0;
        for (_, path) in &segments {
            total_bytes +=
                fs::metadata(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?.len();
        }
        segments.reverse();
        Ok(Recovery {
            directory,
            header,
            segments,
            current: None,
            time_ms: 0,
            replies: Vec::new(),
            total_bytes,
            read_bytes: 0,
            records: 0,
        })
    }

    /// Reads and executes until `until`, or to the end.
    pub fn advance(&mut self, shard: &mut Shard, until: Instant) -> Result<Progress, String> {
        loop {
            let Some((path, bytes, offset)) = self.current.take() else {
                if !self.open_next()? {
                    return Ok(Progress::Done { position: self.header.position, time_ms: self.time_ms });
                }
                continue;
            };
            let mut segment = Segment::open_at(&bytes, offset).map_err(|problem| refusal(&path, 0, &problem))?;
            let start = segment.offset();
            let ending = loop {
                if self.records.is_multiple_of(RECORDS_A_LOOK as u64) && Instant::now() >= until {
                    break None;
                }
                let at = segment.offset();
                match segment.next_record() {
                    Ok(Record::Commands { time_ms, commands }) => {
                        shard.replay(time_ms, &commands, &mut self.replies).map_err(|problem| {
                            refusal(&path, at, &format!("the record there does not fit: {problem}"))
                        })?;
                        self.time_ms = self.time_ms.max(time_ms);
                        self.records += 1;
                    }
                    Ok(Record::Synced(_)) => self.records += 1,
                    Err(ending) => break Some(ending),
                }
            };
            let (end, position) = (segment.offset(), segment.position());
            self.read_bytes += (end - start) as u64;
            match ending {
                None => {
                    self.records += 1;
                    self.current = Some((path, bytes, end));
                    return Ok(Progress::More);
                }
                Some(Ending::Whole) => self.header.position = position,
                Some(Ending::Torn) => {
                    self.header.position = position;
                    self.cut(&path, bytes.len(), end)?;
                }
                Some(Ending::Damaged) => {
                    return Err(refusal(&path, end, "the record there is damaged, and was on stable storage"));
                }
                Some(Ending::Malformed) => {
                    return Err(refusal(&path, end, "the record there has an impossible content"));
                }
            }
        }
    }

    /// Opens the next segment; false when there is none.
    fn open_next(&mut self) -> Result<bool, String> {
        let Some((position, path)) = self.segments.pop() else { return Ok(false) };
        let bytes = fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        if bytes.len() < HEADER_BYTES && self.segments.is_empty() {
            // It was made, and the process died before it wrote anything.
            self.cut(&path, bytes.len(), 0)?;
            return Ok(false);
        }
        let header = Header::decode(&bytes).map_err(|problem| refusal(&path, 0, &problem))?;
        if header != self.header || header.position != position {
            let problem = format!("it is the segment {header:?} where {:?} is expected", self.header);
            return Err(refusal(&path, 0, &problem));
        }
        self.read_bytes += HEADER_BYTES as u64;
        self.current = Some((path, bytes, HEADER_BYTES));
        Ok(true)
    }

    /// Cuts off what was not written to its end.
    fn cut(&mut self, path: &std::path::Path, from: usize, to: usize) -> Result<(), String> {
        for (_, later) in &self.segments {
            let bytes = fs::read(later).map_err(|error| format!("cannot read {}: {error}", later.display()))?;
            if bytes.len() > HEADER_BYTES {
                return Err(refusal(path, to, "the record there is damaged, and the log goes on behind it"));
            }
        }
        for (_, later) in std::mem::take(&mut self.segments) {
            fs::remove_file(&later).map_err(|error| format!("cannot remove {}: {error}", later.display()))?;
        }
        eprintln!("ruvio: the last {} bytes of {} are no whole record and are cut off", from - to, path.display());
        let cut = || {
            if to < HEADER_BYTES {
                fs::remove_file(path)?;
            } else {
                let file = OpenOptions::new().write(true).open(path)?;
                file.set_len(to as u64)?;
                file.sync_all()?;
            }
            File::open(&self.directory)?.sync_all()
        };
        cut().map_err(|error| format!("cannot cut {}: {error}", path.display()))
    }
}

fn refusal(path: &std::path::Path, offset: usize, problem: &str) -> String {
    format!("{} cannot be read at offset {offset}: {problem}", path.display())
}
