//! Reading a shard's log back, a slice of work a turn.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::Advice;
use ruvio_shard::image::{Block, Blocks};
use ruvio_shard::log::{Ending, HEADER_BYTES, Header, Record, Segment, is_proof_of_sync};
use ruvio_shard::shard::Shard;

use super::checkpoint::{Checkpoints, remove_older};
use crate::data;

/// Bytes of a checkpoint that are read from its file at once.
const READ_BYTES: usize = 1 << 20;

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
        /// What is known of the checkpoint that was read.
        checkpoints: Checkpoints,
    },
}

/// The reading of a shard's data: its checkpoint, and the log after it.
pub struct Recovery {
    directory: PathBuf,
    /// The checkpoint, while it is read.
    checkpoint: Option<CheckpointReader>,
    /// What is known of it.
    position: u64,
    checkpoint_bytes: u64,
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
        for unfinished in ["next-log", "checkpoint.new"].map(|name| directory.join(name)) {
            if unfinished.exists() {
                fs::remove_file(&unfinished)
                    .map_err(|error| format!("cannot remove {}: {error}", unfinished.display()))?;
            }
        }
        let unreadable = |error| format!("cannot read the directory {}: {error}", directory.display());
        // What the process before has named goes nowhere any more: not the checkpoint that older files are removed for, nor the
        // segments that the log goes on behind.
        data::sync_directory(&directory).map_err(unreadable)?;
        let (mut header, mut checkpoint, mut checkpoint_bytes) = (header, None, 0);
        if let Some((position, path)) = data::checkpoints(&directory).map_err(unreadable)?.pop() {
            header.position = position;
            let reader = CheckpointReader::open(path, header)?;
            checkpoint_bytes = reader.len;
            checkpoint = Some(reader);
            // Left over where the process died before it had removed them all.
            remove_older(&directory, position)
                .map_err(|error| format!("cannot remove older files in {}: {error}", directory.display()))?;
        }
        let mut segments = data::segments(&directory).map_err(unreadable)?;
        settle(&segments).map_err(unreadable)?;
        let mut total_bytes = checkpoint_bytes;
        for (_, path) in &segments {
            total_bytes +=
                fs::metadata(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?.len();
        }
        segments.reverse();
        Ok(Recovery {
            directory,
            checkpoint,
            position: header.position,
            checkpoint_bytes,
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
        while let Some(checkpoint) = &mut self.checkpoint {
            if Instant::now() >= until {
                return Ok(Progress::More);
            }
            let (bytes, is_last) = checkpoint.read_block(shard)?;
            self.read_bytes += bytes;
            if is_last {
                self.checkpoint = None;
            }
        }
        loop {
            let Some((path, bytes, offset)) = self.current.take() else {
                if !self.open_next()? {
                    let checkpoints = Checkpoints::after(self.position, self.checkpoint_bytes);
                    return Ok(Progress::Done { position: self.header.position, time_ms: self.time_ms, checkpoints });
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
                    let start = position - (end - HEADER_BYTES) as u64;
                    self.cut_or_refuse(&path, &bytes, (start, end), "the record there is damaged")?;
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
        if position != self.header.position {
            // What was before it was never stored, or has been lost.
            let problem = format!("the log from position {} on is missing before it", self.header.position);
            return self.cut_or_refuse(&path, &bytes, (position, 0), &problem).map(|()| false);
        }
        let header = match Header::decode(&bytes) {
            Ok(header) => header,
            Err(problem) => return self.cut_or_refuse(&path, &bytes, (position, 0), &problem).map(|()| false),
        };
        if header != self.header {
            let problem = format!("it is the segment {header:?} where {:?} is expected", self.header);
            return Err(refusal(&path, 0, &problem));
        }
        self.read_bytes += HEADER_BYTES as u64;
        self.current = Some((path, bytes, HEADER_BYTES));
        Ok(true)
    }

    /// Cuts off what was not written to its end: everything from offset `to` of the segment in `path` on, which is `bytes`
    /// and starts at `start`, and all segments behind it. When something there says that it was on stable storage, it
    /// has been lost, and that is an error.
    fn cut_or_refuse(
        &mut self,
        path: &Path,
        bytes: &[u8],
        (start, to): (u64, usize),
        problem: &str,
    ) -> Result<(), String> {
        let end = self.header.position;
        let lost = || refusal(path, to, &format!("{problem}, and it was on stable storage"));
        if is_proof_of_sync(bytes, start, end) {
            return Err(lost());
        }
        for (start, later) in &self.segments {
            let bytes = fs::read(later).map_err(|error| format!("cannot read {}: {error}", later.display()))?;
            if is_proof_of_sync(&bytes, *start, end) {
                return Err(lost());
            }
        }
        let cut = || {
            for (_, later) in &self.segments {
                fs::remove_file(later)?;
            }
            if to < HEADER_BYTES {
                fs::remove_file(path)?;
            } else {
                let file = OpenOptions::new().write(true).open(path)?;
                file.set_len(to as u64)?;
                file.sync_all()?;
            }
            data::sync_directory(&self.directory)
        };
        cut().map_err(|error| format!("cannot cut {}: {error}", path.display()))?;
        let count = self.segments.len();
        self.segments.clear();
        if bytes.len() > to {
            let behind = if count > 0 { format!(", and {count} segments behind it") } else { String::new() };
            let cut = bytes.len() - to;
            eprintln!("ruvio: the last {cut} bytes of {} are no whole record and are cut off{behind}", path.display());
        }
        Ok(())
    }
}

/// Sees to it that what is read of the segments is on stable storage, so that the log can go on behind it. What the process
/// before has written and not synced gets there now. What it had failed to sync is no longer there, though the kernel
/// shows it until it has to read it again.
fn settle(segments: &[(u64, PathBuf)]) -> io::Result<()> {
    for (start, path) in segments.iter().rev() {
        let file = File::open(path)?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
        if is_proof_of_sync(&fs::read(path)?, *start, start.saturating_sub(1)) {
            break;
        }
    }
    Ok(())
}

/// A checkpoint that is read block by block.
struct CheckpointReader {
    path: PathBuf,
    file: BufReader<File>,
    /// Bytes of the file.
    len: u64,
    blocks: Blocks,
    block: Vec<u8>,
}

impl CheckpointReader {
    /// Opens the checkpoint in `path`, which must have this header.
    fn open(path: PathBuf, expected: Header) -> Result<CheckpointReader, String> {
        let unreadable = |error| format!("cannot read {}: {error}", path.display());
        let file = File::open(&path).map_err(unreadable)?;
        let len = file.metadata().map_err(unreadable)?.len();
        let mut file = BufReader::with_capacity(READ_BYTES, file);
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).map_err(unreadable)?;
        let blocks = Blocks::open(&header).map_err(|problem| refusal(&path, 0, &problem))?;
        if blocks.header() != expected {
            let problem = format!("it is the checkpoint {:?} where {expected:?} is expected", blocks.header());
            return Err(refusal(&path, 0, &problem));
        }
        Ok(CheckpointReader { path, file, len, blocks, block: Vec::new() })
    }

    /// Adds the next block to the shard; how many bytes it has, and whether it is the last.
    fn read_block(&mut self, shard: &mut Shard) -> Result<(u64, bool), String> {
        let offset = self.blocks.offset();
        let damaged = |problem: String| refusal(&self.path, offset as usize, &problem);
        let cut = |_| damaged("it ends in the middle of a block".to_owned());
        let mut head = [0; Blocks::HEAD_BYTES];
        self.file.read_exact(&mut head).map_err(cut)?;
        let body = Blocks::body_bytes(&head).map_err(damaged)?;
        if offset + (head.len() + body) as u64 > self.len {
            return Err(damaged("it ends in the middle of a block".to_owned()));
        }
        self.block.clear();
        self.block.extend_from_slice(&head);
        self.block.resize(head.len() + body, 0);
        self.file.read_exact(&mut self.block[head.len()..]).map_err(cut)?;
        shard.keys.begin(0, i64::MIN, None);
        let is_last = self.blocks.add(&self.block, &mut shard.keys).map_err(damaged)? == Block::End;
        Ok((self.block.len() as u64, is_last))
    }
}

fn refusal(path: &Path, offset: usize, problem: &str) -> String {
    format!("{} cannot be read at offset {offset}: {problem}", path.display())
}
