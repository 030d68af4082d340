//! Decides what of a log is written, when it is synced, and what may be acknowledged.
//!
//! At most one write is under way, and one round of syncs; what is added meanwhile waits for the next write. What a write
//! needs of disk space was reserved before any of its commands was executed, so that a full disk refuses commands and fails
//! no write.
//!
//! A write that fails is tried again. After a sync that failed, the kernel may have dropped what was to be stored, and says
//! so only once; and a write may fail for good. Then the files are given up, and the log is **renewed**: a checkpoint of
//! the whole shard, with all that was done to it, is made and stored, and the log goes on behind it in a new segment.
//! Until that has succeeded, commands that write are refused, and nothing more is acknowledged.

use super::disk::{Completion, Disk, DiskError, FileName};
use super::seals::{Covered, Seals};
use super::trouble::Trouble;
use super::{Buffer, HEADER_BYTES, Header, SEAL_BYTES, seal};
use crate::error::CommandError;

mod open_segment;
mod renewal;

use open_segment::{Next, Segment, create};
use renewal::Renewal;

/// With [`Durability::EverySecond`] a sync starts this long after the one before, in ms.
const SYNC_EVERY_MS: i64 = 1000;

/// When something has waited this long to be synced, which should take a second, nothing more is acknowledged before it is,
/// in ms.
const SYNC_OVERDUE_MS: i64 = 2000;

/// When there is no room for a command, others are refused until there is room for as much, but not for more than this,
/// in bytes: a huge one may never fit.
const MOST_AWAITED_BYTES: usize = 64 << 10;

/// A buffer that has grown beyond this is given back once it is written, in bytes.
const KEPT_BYTES: usize = 1 << 20;

/// After trouble the writer tries again this often, in ms.
const RETRY_MS: i64 = 100;

/// When what was done may be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// At once; no log is kept.
    Memory,
    /// Once it is written, so that it outlives the process; it is synced every second.
    EverySecond,
    /// Once it is synced.
    Always,
}

impl Durability {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Memory => "memory",
            Durability::EverySecond => "everysec",
            Durability::Always => "always",
        }
    }
}

/// How a log is to go on.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// What its segments say of themselves; `position` is where the log goes on.
    pub header: Header,
    /// When what was done may be acknowledged.
    pub durability: Durability,
    /// Bytes of a segment, unless a single write is longer.
    pub segment_bytes: u64,
}

/// A write that has not ended.
struct Write<F> {
    file: F,
    offset: u64,
    len: usize,
    done: usize,
    /// The position of the log behind it; `None` for a seal.
    end: Option<u64>,
    started_ms: i64,
    /// Whether a sync was under way then.
    beside_sync: bool,
    /// Bytes of memory that it takes.
    capacity: usize,
    /// Its bytes, while it waits to be tried again; otherwise the disk has them.
    failed: Option<Vec<u8>>,
}

/// How long what the disk does took at the most, until the core saw that it had ended; in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Longest {
    /// A write with no sync under way.
    pub write_ms: u64,
    /// A write that began while a sync was under way.
    pub write_beside_sync_ms: u64,
    /// A sync that replies wait for.
    pub awaited_sync_ms: u64,
}

/// A round of syncs under way.
struct Sync {
    /// How far the log was written when it began.
    position: u64,
    /// Since when the oldest of it waits to be synced.
    since_ms: Option<i64>,
    seals: Covered,
}

/// Writes a shard's log to a disk.
pub struct Writer<D: Disk> {
    /// Records to be written.
    pub buffer: Buffer,
    /// Whether a sync that replies wait for is put off, because others that can share it are about to come.
    pub holds_sync: bool,
    /// Where they are written.
    pub disk: D,
    header: Header,
    durability: Durability,
    segment_bytes: u64,
    segment: Segment<D::File>,
    /// The segment that follows, where it had to be made ahead.
    next: Option<Next<D::File>>,
    /// The seals of segments before, which are not on stable storage yet.
    seals: Seals<D::File>,
    /// Files with data that no sync has covered, but for the current segment; directories too.
    unsynced: Vec<D::File>,
    write: Option<Write<D::File>>,
    sync: Option<Sync>,
    spare: Vec<u8>,
    acknowledged: u64,
    written: u64,
    synced: u64,
    /// How far the log says of itself that it is synced, or how far that need not be said.
    marked: u64,
    sync_started_ms: i64,
    /// Since when something is written that no sync under way covers.
    unsynced_since_ms: Option<i64>,
    is_overdue: bool,
    delayed_syncs: u64,
    longest: Longest,
    /// A position at which a segment has to begin.
    rotate_at: Option<u64>,
    trouble: Option<Trouble>,
    /// Bytes that there was no room for.
    refused: usize,
    retry_ms: i64,
    renewal: Option<Renewal<D::File>>,
    /// How long the next renewal waits if the one under way fails.
    renewal_pause_ms: i64,
}

impl<D: Disk> Writer<D> {
    /// Goes on in a new segment. Its name has to be on stable storage, and what is before it to say that it follows.
    pub fn new(mut disk: D, start: Start, now_ms: i64) -> Result<Writer<D>, DiskError> {
        let Start { header, durability, segment_bytes } = start;
        let position = header.position;
        let segment = create(&mut disk, FileName::Segment(position), 0, segment_bytes)?;
        let directory = disk.directory()?;
        Ok(Writer {
            buffer: Buffer::new(position),
            holds_sync: false,
            disk,
            header,
            durability,
            segment_bytes,
            segment,
            next: None,
            seals: Seals::new(),
            unsynced: vec![directory],
            write: None,
            sync: None,
            spare: Vec::new(),
            acknowledged: position,
            written: position,
            synced: position,
            marked: position,
            sync_started_ms: now_ms,
            unsynced_since_ms: None,
            is_overdue: false,
            delayed_syncs: 0,
            longest: Longest::default(),
            rotate_at: None,
            trouble: None,
            refused: 0,
            retry_ms: 0,
            renewal: None,
            renewal_pause_ms: RETRY_MS,
        })
    }

    /// What a file of this shard says of itself that begins at `position`.
    pub fn header(&self, position: u64) -> Header {
        Header { position, ..self.header }
    }

    /// Changes when what was done may be acknowledged.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// Has the write that begins at `position`, where the buffer ends, go to a segment of its own, which has its name from now
    /// on; the error is that there is no room for one.
    pub fn rotate_at(&mut self, position: u64) -> Result<(), DiskError> {
        debug_assert!(self.buffer.is_empty() && self.buffer.end() == position);
        if self.segment.len == 0 && self.written == position {
            return Ok(());
        }
        let next = match &mut self.next {
            Some(next) => next,
            None => self.next.insert(Next::reserve(&mut self.disk, 0, self.segment_bytes)?),
        };
        next.name(&mut self.disk, position)?;
        self.rotate_at = Some(position);
        Ok(())
    }

    /// Up to which position what was done may be acknowledged.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Whether replies wait for syncs.
    pub fn syncs_always(&self) -> bool {
        self.durability == Durability::Always
    }

    /// Whether a sync is under way.
    pub fn is_syncing(&self) -> bool {
        self.sync.is_some()
    }

    /// How far the log is on stable storage.
    pub fn synced(&self) -> u64 {
        self.synced
    }

    /// How often acknowledgements had to wait for a sync that took too long.
    pub fn delayed_syncs(&self) -> u64 {
        self.delayed_syncs
    }

    /// What took longest since this was asked last.
    pub fn take_longest(&mut self) -> Longest {
        std::mem::take(&mut self.longest)
    }

    /// What stands in the way of writing.
    pub fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    /// Why a command that may log `needed` bytes is refused, if it is.
    #[inline]
    pub fn refusal(&mut self, needed: usize) -> Option<CommandError> {
        if self.trouble.is_none() && self.has_room(needed) {
            return None;
        }
        self.make_room(needed)
    }

    fn pending(&self) -> u64 {
        let writing = self.write.as_ref().map_or(0, |write| write.len - write.done);
        (self.buffer.len() + writing) as u64
    }

    #[inline]
    fn has_room(&self, needed: usize) -> bool {
        let wanted = self.pending() + needed as u64;
        self.rotate_at.is_none() && self.segment.fits(wanted)
            || self.next.as_ref().is_some_and(|next| next.segment.fits(wanted))
    }

    #[cold]
    fn make_room(&mut self, needed: usize) -> Option<CommandError> {
        // What is in the way is looked after ten times a second, not at every command.
        if self.trouble.is_none() {
            self.refused = needed.min(MOST_AWAITED_BYTES);
            self.reserve(needed);
        }
        self.trouble.map(Trouble::refusal)
    }

    /// Makes the segment that follows, with room for all that waits and `needed` bytes more.
    fn reserve(&mut self, needed: usize) {
        let wanted = self.pending() + needed as u64;
        // Where it starts is known when it is begun; until then it has a name of its own, which one that is too small had.
        self.next = None;
        match Next::reserve(&mut self.disk, wanted, self.segment_bytes) {
            Ok(next) => {
                self.next = Some(next);
                self.trouble = None;
            }
            Err(error) => self.trouble = Some(Trouble::Full(error)),
        }
    }

    /// Starts to write what the buffer holds, unless a write is under way; whether anything is under way.
    #[inline]
    pub fn start(&mut self, now_ms: i64) -> bool {
        if self.write.is_none() {
            let may_write = matches!(self.trouble, None | Some(Trouble::Full(_)));
            if self.seals.is_due() && !self.is_broken() {
                self.start_seal(now_ms);
            } else if !self.buffer.is_empty() && may_write {
                self.start_write(now_ms);
            }
        }
        self.is_busy()
    }

    /// Bytes of memory that records take, written or not, and room for others.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.buffer.capacity() + self.spare.capacity() + self.write.as_ref().map_or(0, |write| write.capacity)
    }

    /// Whether a write or a sync is under way.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.write.is_some() || self.sync.is_some()
    }

    fn start_write(&mut self, now_ms: i64) {
        if self.synced > self.marked && !self.buffer.is_open() {
            self.marked = self.synced;
            self.buffer.synced(self.synced);
        }
        let position = self.written;
        let must_rotate = self.rotate_at == Some(position);
        let header_bytes = if self.segment.len == 0 { HEADER_BYTES as u64 } else { 0 };
        let len = self.segment.len + header_bytes + (self.buffer.len() + SEAL_BYTES) as u64;
        let fits = len <= self.segment.limit;
        if (must_rotate || !fits)
            && let Err(error) = self.rotate(position)
        {
            self.fail_write(error, now_ms);
            return;
        }
        let mut bytes = self.buffer.take(std::mem::take(&mut self.spare));
        let end = self.buffer.ended();
        if self.segment.len == 0 {
            bytes.splice(0..0, self.header(position).encode());
        }
        self.unsynced_since_ms.get_or_insert(now_ms);
        let (file, offset) = (self.segment.file.clone(), self.segment.len);
        self.begin_write((file, offset), bytes, Some(end), now_ms);
    }

    /// Starts to write the seal that is due.
    fn start_seal(&mut self, now_ms: i64) {
        if let Some((file, offset, position)) = self.seals.due() {
            self.begin_write((file, offset), seal(position).to_vec(), None, now_ms);
        }
    }

    /// Begins a write at an offset of a file, behind which the log is written up to `end`; `None` for a seal.
    fn begin_write(&mut self, (file, offset): (D::File, u64), bytes: Vec<u8>, end: Option<u64>, now_ms: i64) {
        let (len, capacity) = (bytes.len(), bytes.capacity());
        self.disk.write(&file, offset, bytes, 0);
        let beside_sync = self.sync.is_some();
        let write = Write { file, offset, len, done: 0, end, started_ms: now_ms, beside_sync, capacity, failed: None };
        self.write = Some(write);
    }

    /// Goes on in the next segment, which starts at `position`.
    fn rotate(&mut self, position: u64) -> Result<(), DiskError> {
        let mut next = match self.next.take() {
            Some(next) => next,
            None => Next::reserve(&mut self.disk, self.buffer.len() as u64, self.segment_bytes)?,
        };
        let directory = self.disk.directory()?;
        next.name(&mut self.disk, position)?;
        let full = std::mem::replace(&mut self.segment, next.segment);
        // One without a record has the same name as the one in its place.
        if full.len > 0 {
            self.seals.add(full.file.clone(), full.len, position);
        }
        self.unsynced.extend([full.file, directory]);
        self.rotate_at = None;
        Ok(())
    }

    fn start_sync(&mut self, now_ms: i64) {
        let mut files = std::mem::take(&mut self.unsynced);
        files.push(self.segment.file.clone());
        self.sync_started_ms = now_ms;
        let seals = self.seals.covered();
        self.sync = Some(Sync { position: self.written, since_ms: self.unsynced_since_ms, seals });
        // The next one covers a write under way.
        self.unsynced_since_ms = self.write.as_ref().filter(|write| write.end.is_some()).map(|write| write.started_ms);
        self.disk.sync(files);
    }

    /// Takes in what the disk has done, and starts what follows from it.
    pub fn advance(&mut self, now_ms: i64) {
        while let Some(completion) = self.disk.next_completion() {
            match completion {
                Completion::Write(bytes, result) => self.end_write(bytes, result, now_ms),
                Completion::Sync(result) => self.end_sync(result, now_ms),
            }
        }
        self.start(now_ms);
        let is_due = match self.durability {
            Durability::Always => !self.holds_sync,
            Durability::EverySecond => now_ms - self.sync_started_ms >= SYNC_EVERY_MS || self.seals.is_written(),
            Durability::Memory => false,
        };
        // What a seal holds back, a sync before it does not bring forward.
        if is_due && !self.seals.is_due() && self.written > self.synced && self.sync.is_none() && !self.is_broken() {
            self.start_sync(now_ms);
        }
        self.acknowledge(now_ms);
    }

    /// Whether the files are given up, and only a renewal helps.
    pub fn is_broken(&self) -> bool {
        matches!(self.trouble, Some(Trouble::Broken { .. }))
    }

    fn acknowledge(&mut self, now_ms: i64) {
        let syncing_since_ms = self.sync.as_ref().and_then(|sync| sync.since_ms);
        let since_ms = syncing_since_ms.or(self.unsynced_since_ms);
        let was_overdue = self.is_overdue;
        self.is_overdue = since_ms.is_some_and(|since_ms| now_ms - since_ms > SYNC_OVERDUE_MS);
        self.delayed_syncs += u64::from(self.is_overdue && !was_overdue);
        let waits_for_sync = match self.durability {
            Durability::Always => true,
            Durability::EverySecond | Durability::Memory => self.is_overdue || self.is_broken(),
        };
        self.acknowledged = self.acknowledged.max(if waits_for_sync { self.synced } else { self.written });
    }

    fn end_write(&mut self, bytes: Vec<u8>, result: Result<usize, DiskError>, now_ms: i64) {
        let is_broken = self.is_broken();
        let Some(write) = &mut self.write else { return };
        match result {
            Ok(len) if len > 0 => {
                write.done += len;
                if matches!(self.trouble, Some(Trouble::Write { .. })) {
                    self.trouble = None;
                }
                if write.done == write.len {
                    let longest = &mut self.longest;
                    let longest_ms =
                        if write.beside_sync { &mut longest.write_beside_sync_ms } else { &mut longest.write_ms };
                    *longest_ms = (*longest_ms).max((now_ms - write.started_ms).max(0) as u64);
                    match write.end {
                        Some(end) => {
                            self.segment.len += write.len as u64;
                            self.written = end;
                            if bytes.capacity() <= KEPT_BYTES {
                                self.spare = bytes;
                            }
                        }
                        None => {
                            self.unsynced.push(write.file.clone());
                            self.seals.note_written();
                        }
                    }
                    self.write = None;
                } else if is_broken {
                    write.failed = Some(bytes);
                } else {
                    self.write_rest(bytes);
                }
            }
            Err(error) if error.is_interruption() && !is_broken => self.write_rest(bytes),
            _ => {
                write.failed = Some(bytes);
                // Nothing written at all is as bad as an error.
                self.fail_write(result.err().unwrap_or(DiskError::IO), now_ms);
            }
        }
    }

    fn write_rest(&mut self, bytes: Vec<u8>) {
        let Some(write) = &mut self.write else { return };
        write.failed = None;
        self.disk.write(&write.file, write.offset + write.done as u64, bytes, write.done);
    }

    fn fail_write(&mut self, error: DiskError, now_ms: i64) {
        let since_ms = match self.trouble {
            Some(Trouble::Broken { .. }) => return,
            Some(Trouble::Write { since_ms, .. }) => since_ms,
            Some(Trouble::Full(_)) | None => now_ms,
        };
        self.trouble = Some(Trouble::Write { error, since_ms });
        self.retry_ms = now_ms + RETRY_MS;
    }

    fn end_sync(&mut self, result: Result<(), DiskError>, now_ms: i64) {
        let Some(sync) = self.sync.take() else { return };
        if self.durability == Durability::Always {
            let took_ms = (now_ms - self.sync_started_ms).max(0) as u64;
            self.longest.awaited_sync_ms = self.longest.awaited_sync_ms.max(took_ms);
        }
        match result {
            Ok(()) => {
                self.seals.note_synced(sync.seals);
                self.synced = sync.position.min(self.seals.limit());
            }
            Err(error) => {
                self.trouble = Some(Trouble::Broken { operation: "syncing", error });
                self.unsynced_since_ms = sync.since_ms.or(self.unsynced_since_ms);
            }
        }
    }

    /// Has the log say that all of it is synced, once nothing was added for a second after the sync. So what is damaged later is
    /// no torn tail. Of the record itself nothing needs to be said.
    fn mark_when_idle(&mut self, now_ms: i64) {
        let holds_records = !self.buffer.is_empty() || self.buffer.is_open();
        let is_idle = !holds_records && self.written == self.synced && !self.is_busy();
        if is_idle && self.synced > self.marked && now_ms - self.sync_started_ms >= SYNC_EVERY_MS && self.has_room(0) {
            self.buffer.synced(self.synced);
            self.marked = self.buffer.end();
        }
    }

    /// To be called ten times a second: syncs what is due, says so, and tries again what failed.
    pub fn tick(&mut self, now_ms: i64) {
        match self.trouble {
            Some(Trouble::Write { .. }) if now_ms >= self.retry_ms => {
                self.retry_ms = now_ms + RETRY_MS;
                match &mut self.write {
                    Some(write) => {
                        if let Some(bytes) = write.failed.take() {
                            self.write_rest(bytes);
                        }
                    }
                    // There was no segment to write to.
                    None => self.start_write(now_ms),
                }
            }
            Some(Trouble::Full(_)) => {
                if self.has_room(self.refused) {
                    self.trouble = None;
                } else {
                    self.reserve(self.refused);
                }
            }
            None => self.mark_when_idle(now_ms),
            _ => {}
        }
        self.advance(now_ms);
    }

    /// Writes and syncs all there is, and waits for it.
    pub fn finish(&mut self, now_ms: i64) -> Result<(), DiskError> {
        let mut says_so = false;
        loop {
            self.advance(now_ms);
            if let Some(Trouble::Write { error, .. } | Trouble::Broken { error, .. }) = self.trouble {
                return Err(error);
            }
            if self.write.is_none() && self.sync.is_none() {
                if self.synced < self.written {
                    self.start_sync(now_ms);
                } else if self.synced == self.marked || says_so || self.buffer.is_open() {
                    return Ok(());
                } else {
                    // The last record says that all before it is stored: what is missing of that later is damage.
                    says_so = true;
                    self.marked = self.synced;
                    self.buffer.synced(self.synced);
                    continue;
                }
            }
            self.disk.wait()?;
        }
    }
}
