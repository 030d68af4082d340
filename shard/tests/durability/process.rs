//! A process as far as its log goes: it executes commands, logs them, acknowledges them, makes checkpoints, dies, and
//! starts again, on a simulated disk.

use rand::rngs::SmallRng;
use rand::{Rng, RngExt};
use ruvio_shard::args::OwnedArgs;
use ruvio_shard::image::{Block, Blocks};
use ruvio_shard::log::{
    DiskError, Durability, Ending, HEADER_BYTES, Header, Record, SEAL_BYTES, Segment, Start, Writer, is_proof_of_sync,
    seal,
};
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

use super::disk::{Name, SimulatedDisk};
use crate::support;
use crate::support::databases::call;

pub const HEADER: Header = Header { shard: 0, shards: 1, generation: 1, position: 0 };

/// Milliseconds between ticks.
const TICK_MS: i64 = 100;

/// Bytes that a record takes beside its words, at most, for each word and for the record.
const RECORD_OVERHEAD: usize = 64;

/// A command with its database.
pub type Line = (usize, String);

/// What was logged as one record.
#[derive(Clone, Debug)]
pub struct Entry {
    pub time_ms: i64,
    /// What a model does to come to the same.
    pub lines: Vec<Line>,
    /// The position of the log behind it.
    pub end: u64,
    pub acknowledged_ms: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Image,
    Write,
    Sync,
    SyncNames,
    Rename,
    SyncDirectory,
    Remove,
}

struct Checkpoint {
    position: u64,
    is_renewal: bool,
    stage: Stage,
    bytes: Vec<u8>,
}

pub struct Process {
    pub shard: Shard,
    pub writer: Writer<SimulatedDisk>,
    pub checkpoint_wanted: bool,
    /// Checkpoints that were completed.
    pub checkpoints: u64,
    pub renewals: u64,
    /// How many of them have failed.
    pub failed: u64,
    checkpoint: Option<Checkpoint>,
    next_tick_ms: i64,
    disk: SimulatedDisk,
}

/// Why a start does not come to its end.
#[derive(Debug)]
pub enum Stopped {
    /// The process has died in the middle of something.
    Died,
    /// What was on stable storage is not there.
    Refused(String),
}

/// Dies after a number of steps, if at all.
pub struct Fuse(pub Option<u32>);

impl Fuse {
    fn step(&mut self) -> Result<(), Stopped> {
        match &mut self.0 {
            Some(0) => Err(Stopped::Died),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

pub fn new_shard() -> Shard {
    let settings = Settings { hash_max_listpack_entries: 3, zset_max_listpack_entries: 3, ..Settings::default() };
    support::shard(settings, 1)
}

/// Executes a line, and returns what a log says of it, if it changed anything.
pub fn execute(shard: &mut Shard, time_ms: i64, (database, line): &Line) -> Option<Line> {
    if line == "FLUSHDB" {
        return (shard.keys.flush(*database) > 0).then(|| (*database, line.clone()));
    }
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let outcome = call(shard, *database, time_ms, &words).1;
    if outcome.changes == 0 {
        return None;
    }
    let logged = outcome.logged.map(|words| {
        let words: Vec<&str> =
            words.as_args().iter().map(|word| std::str::from_utf8(word).expect("a word of a test")).collect();
        words.join(" ")
    });
    Some((*database, logged.unwrap_or_else(|| line.clone())))
}

impl Process {
    /// Goes on with what `recover` found.
    pub fn new(
        (shard, position): (Shard, u64),
        disk: &SimulatedDisk,
        (durability, segment_bytes): (Durability, u64),
        now_ms: i64,
    ) -> Process {
        let start = Start { header: Header { position, ..HEADER }, durability, segment_bytes };
        let writer = Writer::new(disk.clone(), start, now_ms).expect("a disk that works at the start");
        Process {
            shard,
            writer,
            checkpoint_wanted: false,
            checkpoints: 0,
            renewals: 0,
            failed: 0,
            checkpoint: None,
            next_tick_ms: now_ms,
            disk: disk.clone(),
        }
    }

    /// Executes commands that belong together; what was logged of them. `Err` when they are refused.
    pub fn run(&mut self, now_ms: i64, lines: &[Line]) -> Result<Option<Entry>, String> {
        let words = |(_, line): &Line| line.split(' ').count();
        let needed = lines.iter().map(|line| line.1.len() + (words(line) + 1) * RECORD_OVERHEAD).sum();
        if let Some(error) = self.writer.refusal(needed) {
            return Err(error.to_string());
        }
        if lines.iter().any(|(_, line)| line == "FLUSHDB") {
            self.shard.keys.abandon_image();
        }
        self.writer.buffer.begin(now_ms);
        let mut logged = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            if number > 0 {
                // Beside a slow script the log goes on: its record is in the making meanwhile.
                self.writer.advance(now_ms);
                self.writer.tick(now_ms);
            }
            if let Some((database, line)) = execute(&mut self.shard, now_ms, line) {
                let args: OwnedArgs = line.split(' ').collect();
                self.writer.buffer.command(database, args.as_args());
                logged.push((database, line));
            }
        }
        assert!(self.writer.buffer.end_record());
        let end = self.writer.buffer.end();
        Ok((!logged.is_empty()).then_some(Entry { time_ms: now_ms, lines: logged, end, acknowledged_ms: None }))
    }

    /// What a core does at the end of a turn.
    pub fn end_turn(&mut self, now_ms: i64, random: &mut SmallRng) {
        if self.writer.start(now_ms) {
            self.writer.advance(now_ms);
        }
        self.begin_checkpoint(now_ms);
        self.advance_checkpoint(now_ms, random);
        if now_ms >= self.next_tick_ms {
            self.next_tick_ms = now_ms + TICK_MS;
            self.writer.tick(now_ms);
        }
    }

    fn begin_checkpoint(&mut self, now_ms: i64) {
        if self.checkpoint.is_some() {
            return;
        }
        let is_renewal = self.writer.wants_renewal(now_ms);
        let position = if is_renewal {
            let Ok(position) = self.writer.begin_renewal(now_ms) else { return };
            position
        } else if self.checkpoint_wanted && self.writer.buffer.is_empty() && !self.writer.is_broken() {
            let position = self.writer.buffer.end();
            if self.writer.rotate_at(position).is_err() {
                return;
            }
            position
        } else {
            return;
        };
        assert!(self.shard.keys.begin_image(&Header { position, ..HEADER }));
        self.checkpoint_wanted = false;
        self.checkpoint = Some(Checkpoint { position, is_renewal, stage: Stage::Image, bytes: Vec::new() });
    }

    fn advance_checkpoint(&mut self, now_ms: i64, random: &mut SmallRng) {
        if self.checkpoint.is_some() && random.random_bool(0.5) {
            match self.step_checkpoint(random) {
                Ok(false) => {}
                Ok(true) => self.end_checkpoint(true, now_ms),
                Err(_) => {
                    self.disk.remove(Name::NewCheckpoint);
                    self.end_checkpoint(false, now_ms);
                }
            }
        }
    }

    /// One step of the checkpoint under way; true at its end.
    fn step_checkpoint(&mut self, random: &mut impl Rng) -> Result<bool, DiskError> {
        let Some(checkpoint) = &mut self.checkpoint else { return Ok(false) };
        checkpoint.stage = match checkpoint.stage {
            Stage::Image => {
                let is_done = self.shard.keys.advance_image(random.random_range(1..6));
                let image = self.shard.keys.image().expect("the image of the checkpoint");
                if image.is_abandoned() {
                    return Err(DiskError::IO);
                }
                checkpoint.bytes.extend(image.take().1);
                if is_done {
                    self.shard.keys.end_image();
                    Stage::Write
                } else {
                    Stage::Image
                }
            }
            Stage::Write => {
                self.disk.write_file(Name::NewCheckpoint, &checkpoint.bytes)?;
                Stage::Sync
            }
            Stage::Sync => {
                self.disk.sync_file(Name::NewCheckpoint)?;
                Stage::SyncNames
            }
            Stage::SyncNames => {
                self.disk.sync_directory()?;
                Stage::Rename
            }
            Stage::Rename => {
                self.disk.rename(Name::NewCheckpoint, Name::Checkpoint(checkpoint.position))?;
                Stage::SyncDirectory
            }
            Stage::SyncDirectory => {
                self.disk.sync_directory()?;
                Stage::Remove
            }
            Stage::Remove => {
                let position = checkpoint.position;
                match self.disk.names().into_iter().find(|name| is_before(*name, position)) {
                    Some(older) => {
                        self.disk.remove(older);
                        Stage::Remove
                    }
                    None => return Ok(true),
                }
            }
        };
        Ok(false)
    }

    fn end_checkpoint(&mut self, is_durable: bool, now_ms: i64) {
        let Some(checkpoint) = self.checkpoint.take() else { return };
        if checkpoint.stage == Stage::Image {
            self.shard.keys.abandon_image();
            while !self.shard.keys.advance_image(usize::MAX) {}
            self.shard.keys.end_image();
        }
        if checkpoint.is_renewal {
            self.writer.end_renewal(is_durable, now_ms);
            self.renewals += u64::from(is_durable);
        }
        self.checkpoints += u64::from(is_durable);
        self.failed += u64::from(!is_durable);
    }
}

fn is_before(name: Name, position: u64) -> bool {
    match name {
        Name::Segment(start) | Name::Checkpoint(start) => start < position,
        Name::Reserve | Name::NewCheckpoint => false,
    }
}

/// A segment that was read.
struct Read {
    start: u64,
    /// Where its records end.
    offset: usize,
    ending: Ending,
}

fn segments(disk: &SimulatedDisk) -> Vec<u64> {
    let start = |name| if let Name::Segment(start) = name { Some(start) } else { None };
    disk.names().into_iter().filter_map(start).collect()
}

/// Reads the log back; the shard, and the position that the log goes on at. May die on the way.
pub fn recover(disk: &SimulatedDisk, fuse: &mut Fuse) -> Result<(Shard, u64), Stopped> {
    for name in [Name::Reserve, Name::NewCheckpoint] {
        if disk.names().contains(&name) {
            fuse.step()?;
            disk.remove(name);
        }
    }
    fuse.step()?;
    disk.sync_directory().expect("a disk that works at the start");
    let mut shard = new_shard();
    let mut expected = 0;
    let newest = disk.names().into_iter().rfind(|name| matches!(name, Name::Checkpoint(_)));
    if let Some(Name::Checkpoint(position)) = newest {
        expected = position;
        read_checkpoint(&disk.read(Name::Checkpoint(position)), position, &mut shard);
        for name in disk.names().into_iter().filter(|name| is_before(*name, position)) {
            fuse.step()?;
            disk.remove(name);
        }
    }
    for start in segments(disk).into_iter().rev() {
        fuse.step()?;
        disk.sync_file(Name::Segment(start)).expect("a disk that works at the start");
        disk.forget_cached(Name::Segment(start));
        if is_proof_of_sync(&disk.read(Name::Segment(start)), start, start) {
            break;
        }
    }
    let mut read: Vec<Read> = Vec::new();
    let mut left = segments(disk).into_iter();
    loop {
        let is_named = read.last().is_none_or(|last| last.ending == Ending::Sealed);
        let next = left.next();
        if is_named && next != Some(expected) {
            return Err(Stopped::Refused(format!("the segment at {expected} is missing")));
        }
        let Some(start) = next else { break };
        let bytes = disk.read(Name::Segment(start));
        if start > expected || Header::decode(&bytes).is_err() {
            cut(disk, (start, 0), expected, fuse)?;
            break;
        }
        let (position, offset, ending) = replay(&bytes, &mut shard);
        expected = position;
        read.push(Read { start, offset, ending });
        match ending {
            Ending::Whole | Ending::Sealed => {}
            Ending::Torn if bytes.len() - offset <= SEAL_BYTES && left.as_slice().first() == Some(&position) => {}
            Ending::Torn => {
                cut(disk, (start, offset), expected, fuse)?;
                break;
            }
            Ending::Damaged | Ending::Malformed => {
                return Err(Stopped::Refused(format!("{ending:?} at {position}")));
            }
        }
    }
    seal_all(disk, &read, expected, fuse)?;
    Ok((shard, expected))
}

/// Cuts off what is behind offset `to` of the segment that starts at `start`, and all segments behind it.
fn cut(disk: &SimulatedDisk, (start, to): (u64, usize), expected: u64, fuse: &mut Fuse) -> Result<(), Stopped> {
    let behind: Vec<u64> = segments(disk).into_iter().filter(|other| *other > start).collect();
    for other in std::iter::once(&start).chain(&behind) {
        if is_proof_of_sync(&disk.read(Name::Segment(*other)), *other, expected) {
            let all = segments(disk);
            return Err(Stopped::Refused(format!("the log from {expected} on was on stable storage: {all:?}")));
        }
    }
    for other in behind.into_iter().rev() {
        fuse.step()?;
        disk.remove(Name::Segment(other));
    }
    fuse.step()?;
    if start > expected {
        disk.remove(Name::Segment(start));
    } else {
        disk.cut(Name::Segment(start), to);
    }
    fuse.step()?;
    disk.sync_directory().expect("a disk that works at the start");
    Ok(())
}

/// Names the segment that the log goes on in, and has all before it say so.
fn seal_all(disk: &SimulatedDisk, read: &[Read], position: u64, fuse: &mut Fuse) -> Result<(), Stopped> {
    if !segments(disk).contains(&position) {
        fuse.step()?;
        disk.create_file(Name::Segment(position));
    }
    fuse.step()?;
    disk.sync_directory().expect("a disk that works at the start");
    for segment in read.iter().filter(|segment| segment.start < position && segment.ending != Ending::Sealed) {
        let name = Name::Segment(segment.start);
        fuse.step()?;
        disk.cut(name, segment.offset);
        fuse.step()?;
        disk.write_at(name, segment.offset, &seal(segment.start + (segment.offset - HEADER_BYTES) as u64));
        fuse.step()?;
        disk.sync_file(name).expect("a disk that works at the start");
    }
    Ok(())
}

fn read_checkpoint(bytes: &[u8], position: u64, shard: &mut Shard) {
    let mut blocks = Blocks::open(bytes.first_chunk().expect("a header")).expect("a checkpoint");
    assert_eq!(blocks.header(), Header { position, ..HEADER });
    let mut rest = &bytes[HEADER_BYTES..];
    shard.keys.begin(0, i64::MIN, None);
    loop {
        let len = Blocks::HEAD_BYTES + Blocks::body_bytes(rest.first_chunk().expect("a head")).expect("a length");
        let (block, behind) = rest.split_at(len);
        rest = behind;
        if blocks.add(block, &mut shard.keys).expect("a block") == Block::End {
            return;
        }
    }
}

/// Executes a segment's records; where they end, the offset of that, and why.
fn replay(bytes: &[u8], shard: &mut Shard) -> (u64, usize, Ending) {
    let mut segment = Segment::open(bytes).expect("a header");
    let mut replies = Vec::new();
    loop {
        match segment.next_record() {
            Ok(Record::Commands { time_ms, commands }) => {
                shard.replay(time_ms, &commands, &mut replies).expect("a record of this shard");
            }
            Ok(Record::Synced(_)) => {}
            Err(ending) => return (segment.position(), segment.offset(), ending),
        }
    }
}
