//! Reading a shard's data back, a slice of work at a time: its checkpoint, and the log after it.
//!
//! Reading changes nothing. What has to be removed or cut off before the log goes on is known at the end, and done by
//! [`Recovery::settle`] once every shard could be read.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::Advice;
use ruvio_shard::log::{
    Ending, HEADER_BYTES, Header, Record, Refusal, Segment, is_proof_of_sync, records_behind, seal,
};
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

use super::checkpoint::{Checkpoints, remove_older};
use crate::data;

mod checkpoint_file;
mod failure;
#[cfg(test)]
mod tests;

use checkpoint_file::CheckpointFile;
pub use failure::{Damage, Failure, Loss};

/// Records between two looks at the clock.
const RECORDS_A_LOOK: usize = 64;

/// The settings under which commands are executed again that were executed before: what was refused then is not in the log,
/// and what was evicted then is.
pub fn settings_for_replay(settings: &Settings) -> Settings {
    Settings { maxmemory: 0, proto_max_bulk_len: u32::MAX as usize, cross_slot: true, ..settings.clone() }
}

/// What came of a slice of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more to do.
    More,
    /// All is read.
    Done,
}

/// The checkpoint that was read.
#[derive(Debug)]
pub struct ReadCheckpoint {
    /// Its file.
    pub path: PathBuf,
    /// The position in the log that it is of.
    pub position: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Its keys.
    pub keys: u64,
}

/// A segment that was read, as far as it could be.
#[derive(Debug)]
pub struct ReadSegment {
    /// Its file.
    pub path: PathBuf,
    /// The position in the log that it begins at.
    pub position: u64,
    /// Bytes of the file that were read.
    pub bytes: u64,
    /// Records of commands.
    pub records: u64,
    /// The time of the last of them, in ms since the epoch.
    pub last_ms: Option<i64>,
    /// Whether it says that the log goes on behind it.
    pub is_sealed: bool,
}

/// What was not written to its end, as when the process or the machine stopped in the middle.
#[derive(Debug)]
pub struct Tail {
    /// The file that it begins in.
    pub path: PathBuf,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// Bytes from there on.
    pub bytes: u64,
    /// Later segments, which are part of it.
    pub later: Vec<PathBuf>,
}

/// The segment in reading.
struct Current {
    content: Vec<u8>,
    offset: usize,
}

/// The reading of a shard's data.
pub struct Recovery {
    directory: PathBuf,
    /// The checkpoint, while it is read.
    reading_checkpoint: Option<CheckpointFile>,
    /// What every segment must say of itself; `position` is where the next one has to start.
    header: Header,
    /// Segments still to be read, the next one last.
    left: Vec<(u64, PathBuf)>,
    current: Option<Current>,
    /// Whether what was read last says that there is a segment behind it.
    is_next_named: bool,
    replies: Vec<u8>,
    /// The checkpoint, once it is read.
    pub checkpoint: Option<ReadCheckpoint>,
    /// Segments that were read; the last may be in reading.
    pub segments: Vec<ReadSegment>,
    /// What was not written to its end.
    pub tail: Option<Tail>,
    /// The time of the last record, in ms since the epoch; 0 without one.
    pub time_ms: i64,
    /// Bytes to be read.
    pub total_bytes: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
}

impl Recovery {
    /// Begins to read the data in `directory`, whose files must have this header. Whether the first segment must be there, the
    /// manifest says.
    pub fn new(directory: PathBuf, mut header: Header, is_first_named: bool) -> Result<Recovery, Failure> {
        let unreadable = |error| Failure::Unreadable(format!("cannot read {}: {error}", directory.display()));
        let mut total_bytes = 0;
        let mut reading_checkpoint = None;
        if let Some((position, path)) = data::checkpoints(&directory).map_err(unreadable)?.pop() {
            header.position = position;
            let checkpoint = CheckpointFile::open(path, header)?;
            total_bytes += checkpoint.bytes;
            reading_checkpoint = Some(checkpoint);
        }
        let mut left = data::segments(&directory).map_err(unreadable)?;
        // Those before a checkpoint may be left over where the process died before it had removed them all.
        left.retain(|(position, _)| *position >= header.position);
        for (_, path) in &left {
            total_bytes += fs::metadata(path).map_err(unreadable)?.len();
        }
        left.reverse();
        Ok(Recovery {
            directory,
            reading_checkpoint,
            header,
            left,
            current: None,
            is_next_named: is_first_named,
            replies: Vec::new(),
            checkpoint: None,
            segments: Vec::new(),
            tail: None,
            time_ms: 0,
            total_bytes,
            read_bytes: 0,
        })
    }

    /// Sees to it that what is going to be read of the log is on stable storage, so that it can go on behind it. What the
    /// process before has written and not synced gets there now. What it had failed to sync is no longer there, though the
    /// kernel shows it until it has to read it again.
    pub fn make_stable(&self) -> Result<(), Failure> {
        // What the process before has named goes nowhere any more: not the checkpoint that older files are removed for, nor the
        // segments that the log goes on behind.
        let unsynced = |error| Failure::Unreadable(format!("cannot sync {}: {error}", self.directory.display()));
        data::sync_directory(&self.directory).map_err(unsynced)?;
        for (start, path) in &self.left {
            let sync = || -> io::Result<()> {
                let file = File::open(path)?;
                file.sync_all()?;
                Ok(rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?)
            };
            sync().map_err(|error| Failure::Unreadable(format!("cannot sync {}: {error}", path.display())))?;
            // Beyond its beginning: then the seals before it are stored, too.
            if is_proof_of_sync(&read(path)?, *start, *start) {
                break;
            }
        }
        Ok(())
    }

    /// The position behind all that was read.
    pub fn position(&self) -> u64 {
        self.header.position
    }

    /// Records of commands that were executed.
    pub fn records(&self) -> u64 {
        self.segments.iter().map(|segment| segment.records).sum()
    }

    /// What is known of the checkpoint that was read.
    pub fn checkpoints(&self) -> Checkpoints {
        self.checkpoint.as_ref().map_or_else(Checkpoints::default, |read| Checkpoints::after(read.position, read.bytes))
    }

    /// Reads and executes until `until`, or to the end.
    pub fn advance(&mut self, shard: &mut Shard, until: Instant) -> Result<Progress, Failure> {
        while let Some(checkpoint) = &mut self.reading_checkpoint {
            if Instant::now() >= until {
                return Ok(Progress::More);
            }
            let (bytes, is_last) = checkpoint.read_block(shard)?;
            self.read_bytes += bytes;
            if is_last {
                let (bytes, keys, position) = (checkpoint.bytes, checkpoint.entries(), self.header.position);
                self.checkpoint = Some(ReadCheckpoint { path: checkpoint.path.clone(), position, bytes, keys });
                self.reading_checkpoint = None;
            }
        }
        while Instant::now() < until {
            let more = match self.current.take() {
                Some(current) => self.read_some(current, shard)?,
                None => self.open_next()?,
            };
            if !more {
                return Ok(Progress::Done);
            }
        }
        Ok(Progress::More)
    }

    /// Reads some records of a segment; false when the log ends there.
    fn read_some(&mut self, current: Current, shard: &mut Shard) -> Result<bool, Failure> {
        let Current { content, offset } = current;
        let Some(read) = self.segments.last_mut() else { return Ok(true) };
        let mut segment = Segment::open_at(&content, offset)
            .map_err(|refusal| Failure::Unreadable(format!("{}: {refusal}", read.path.display())))?;
        let mut ending = None;
        let mut refusal = None;
        for _ in 0..RECORDS_A_LOOK {
            self.header.position = segment.position();
            read.bytes = segment.offset() as u64;
            match segment.next_record() {
                Ok(Record::Commands { time_ms, commands }) => {
                    if let Err(refused) = shard.replay(time_ms, &commands, &mut self.replies) {
                        refusal = Some(refused);
                        break;
                    }
                    self.time_ms = self.time_ms.max(time_ms);
                    read.last_ms = Some(time_ms);
                    read.records += 1;
                }
                Ok(Record::Synced(_)) => {}
                Err(reason) => {
                    ending = Some(reason);
                    break;
                }
            }
        }
        match refusal {
            None => {}
            Some(Refusal::Damaged(problem)) => {
                return Err(self.damage(&content, format!("the record there does not fit: {problem}")));
            }
            Some(refusal) => return Err(Failure::Unreadable(format!("{}: {refusal}", read.path.display()))),
        }
        let (end, end_position, may_be_torn_seal) = (segment.offset(), segment.position(), segment.may_be_torn_seal());
        if ending.is_none() {
            (self.header.position, read.bytes) = (end_position, end as u64);
        }
        self.read_bytes += (end - offset) as u64;
        match ending {
            None => self.current = Some(Current { content, offset: end }),
            Some(Ending::Whole) => {}
            Some(Ending::Sealed) => (read.is_sealed, self.is_next_named) = (true, true),
            // The process has died when it sealed the segment, and had gone on in the next.
            Some(Ending::Torn) if may_be_torn_seal && self.left.last().is_some_and(|next| next.0 == end_position) => {}
            Some(Ending::Torn) => {
                if self.is_synced_behind()? {
                    return Err(self.damage(&content, "the record there is damaged, and was on stable storage".into()));
                }
                self.end_at_tail(content.len())?;
                return Ok(false);
            }
            Some(Ending::Damaged) => {
                return Err(self.damage(&content, "the record there is damaged, and was on stable storage".into()));
            }
            Some(Ending::Malformed) => {
                return Err(self.damage(&content, "the record there has an impossible content".into()));
            }
        }
        Ok(true)
    }

    /// Opens the next segment; false when the log ends before it.
    fn open_next(&mut self) -> Result<bool, Failure> {
        if std::mem::take(&mut self.is_next_named)
            && self.left.last().is_none_or(|(position, _)| *position != self.header.position)
        {
            return Err(self.missing());
        }
        let Some((position, path)) = self.left.pop() else { return Ok(false) };
        let content = read(&path)?;
        let expected = self.header;
        let problem = match Header::decode(&content) {
            Ok(header) if header == (Header { position, ..expected }) && position >= expected.position => {
                (position > expected.position).then(|| {
                    format!(
                        "it ends there, and the log goes on at position {position} instead of {}",
                        expected.position
                    )
                })
            }
            Ok(header) => {
                let problem = format!("{} is {header:?}, where {expected:?} belongs", path.display());
                return Err(Failure::Unreadable(problem));
            }
            Err(refusal @ (Refusal::Version(_) | Refusal::Database(_))) => {
                return Err(Failure::Unreadable(format!("{}: {refusal}", path.display())));
            }
            Err(Refusal::Damaged(problem)) => Some(problem),
        };
        if let Some(problem) = problem {
            return self.end_before(position, path, content, problem).map(|()| false);
        }
        self.read_bytes += HEADER_BYTES as u64;
        self.segments.push(ReadSegment::new(path, position, HEADER_BYTES as u64));
        self.current = Some(Current { content, offset: HEADER_BYTES });
        Ok(true)
    }

    /// Ends the log before a segment that does not go on with it, or fails where that cannot be for want of a sync.
    fn end_before(&mut self, position: u64, path: PathBuf, content: Vec<u8>, problem: String) -> Result<(), Failure> {
        let is_gap = position > self.header.position;
        self.left.push((position, path));
        let is_synced = self.is_synced_behind()?;
        if is_gap && let Some(before) = self.segments.last() {
            // It is the end of the segment before that is missing, or all of one in between.
            let len = before.bytes as usize;
            return if is_synced { Err(self.damage(&[], problem)) } else { self.end_at_tail(len) };
        }
        if let Some((position, path)) = self.left.pop() {
            self.segments.push(ReadSegment::new(path, position, 0));
        }
        if is_synced || is_gap { Err(self.damage(&content, problem)) } else { self.end_at_tail(content.len()) }
    }

    /// Whether a record in the segments that are left says that the log was on stable storage beyond where reading has come
    /// to.
    fn is_synced_behind(&self) -> Result<bool, Failure> {
        for (start, path) in self.left.iter().rev() {
            if is_proof_of_sync(&read(path)?, *start, self.header.position) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The segment that has to be here is missing.
    fn missing(&self) -> Failure {
        let problem = match (self.segments.last(), &self.checkpoint) {
            (Some(before), _) => format!("{} says that the log goes on in it", before.path.display()),
            (None, Some(checkpoint)) => format!("{} needs it", checkpoint.path.display()),
            (None, None) => "the log begins with it".to_owned(),
        };
        let path = data::segment_path(&self.directory, self.header.position);
        match self.loss(Loss::default()) {
            Ok(loss) => Failure::Damaged(Damage { path, offset: 0, is_missing: true, problem, loss: Some(loss) }),
            Err(failure) => failure,
        }
    }

    /// The damage that reading has come to, in the last of the segments, whose file has this content.
    fn damage(&self, content: &[u8], problem: String) -> Failure {
        let Some(damaged) = self.segments.last() else { return Failure::Unreadable(problem) };
        let (path, offset) = (damaged.path.clone(), damaged.bytes);
        let cut_bytes = (content.len() as u64).saturating_sub(offset);
        let records = whole_records(content, offset as usize, damaged.position);
        match self.loss(Loss { records, bytes: cut_bytes, cut_bytes, segments: Vec::new() }) {
            Ok(loss) => Failure::Damaged(Damage { path, offset, is_missing: false, problem, loss: Some(loss) }),
            Err(failure) => failure,
        }
    }

    /// A loss, with that of the segments that are left.
    fn loss(&self, mut loss: Loss) -> Result<Loss, Failure> {
        for (start, path) in self.left.iter().rev() {
            let content = read(path)?;
            loss.bytes += content.len() as u64;
            loss.records += whole_records(&content, 0, *start);
            loss.segments.push(path.clone());
        }
        Ok(loss)
    }

    /// Ends the log where reading has come to, in the last of the segments, whose file has this many bytes.
    fn end_at_tail(&mut self, len: usize) -> Result<(), Failure> {
        let Some(torn) = self.segments.last() else { return Ok(()) };
        let mut tail =
            Tail { path: torn.path.clone(), offset: torn.bytes, bytes: len as u64 - torn.bytes, later: Vec::new() };
        for (_, path) in std::mem::take(&mut self.left).into_iter().rev() {
            let unreadable = |error| Failure::Unreadable(format!("cannot read {}: {error}", path.display()));
            tail.bytes += fs::metadata(&path).map_err(unreadable)?.len();
            tail.later.push(path);
        }
        self.tail = Some(tail);
        Ok(())
    }

    /// Removes what is of no use any more, and cuts off what was not written to its end, so that the log can go on; names the
    /// segment that it goes on in, and has what is before it say so.
    pub fn settle(&self) -> Result<(), String> {
        let directory = &self.directory;
        let changed = |error| format!("cannot change the files in {}: {error}", directory.display());
        for unfinished in ["next-log", "checkpoint.new"].map(|name| directory.join(name)) {
            remove_if_there(&unfinished).map_err(changed)?;
        }
        if let Some(checkpoint) = &self.checkpoint {
            remove_older(directory, checkpoint.position).map_err(changed)?;
        }
        if let Some(tail) = &self.tail {
            if tail.bytes > 0 {
                eprintln!("ruvio: {}", tail.describe("are cut off"));
            }
            tail.cut().map_err(changed)?;
        }
        let next = data::segment_path(directory, self.position());
        data::create_if_missing(&next).and_then(|()| data::sync_directory(directory)).map_err(changed)?;
        let mut unsealed = self.segments.iter().filter(|read| read.position < self.position() && !read.is_sealed);
        unsealed.try_for_each(ReadSegment::seal).map_err(changed)
    }
}

impl ReadSegment {
    fn new(path: PathBuf, position: u64, bytes: u64) -> ReadSegment {
        ReadSegment { path, position, bytes, records: 0, last_ms: None, is_sealed: false }
    }

    /// Says behind its last record, on stable storage, that the log goes on in the next segment.
    fn seal(&self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(&self.path)?;
        if file.metadata()?.len() > self.bytes {
            file.set_len(self.bytes)?;
        }
        let record = seal(self.position + self.bytes - HEADER_BYTES as u64);
        file.write_all_at(&record, self.bytes)?;
        file.sync_all()
    }
}

impl Tail {
    /// What it is and what is done with it, for people.
    pub fn describe(&self, what_is_done: &str) -> String {
        let path = self.path.display();
        let later = match self.later.len() {
            0 => String::new(),
            more => format!(" and {more} segments after it"),
        };
        format!("the last {} bytes of {path}{later} are no whole record and {what_is_done}", self.bytes)
    }

    fn cut(&self) -> io::Result<()> {
        // From the end: what is left at any moment is the log and a part of the tail.
        self.later.iter().rev().try_for_each(fs::remove_file)?;
        // What is before a segment may name it, so that it stays, though without a whole header it is empty.
        let kept = if self.offset < HEADER_BYTES as u64 { 0 } else { self.offset };
        let file = OpenOptions::new().write(true).open(&self.path)?;
        file.set_len(kept)?;
        file.sync_all()
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// How many whole records there are behind an offset in the file of a segment that starts at `position`, whatever its header
/// says.
fn whole_records(content: &[u8], offset: usize, position: u64) -> u64 {
    let offset = offset.max(HEADER_BYTES);
    let records = content.get(offset..).unwrap_or_default();
    records_behind(records, position.wrapping_add((offset - HEADER_BYTES) as u64))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::Unreadable(format!("cannot read {}: {error}", path.display())))
}
