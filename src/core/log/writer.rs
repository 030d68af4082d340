//! Writing and syncing segments through a ring of the core's own.
//!
//! At most one write is under way, and one round of syncs. What a write needs of disk space was reserved before any of its
//! commands was executed, so that a full disk refuses commands and fails no write.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;

use io_uring::{IoUring, opcode, types};
use rustix::event::EventfdFlags;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use ruvio_shard::error::CommandError;
use ruvio_shard::log::{Buffer, HEADER_BYTES, Header};

use crate::data::segment_path;
use crate::options::Durability;

/// Entries of the ring.
const RING_ENTRIES: u32 = 16;

/// Bytes of a segment, unless a single write is longer.
const SEGMENT_BYTES: u64 = 64 << 20;

/// The least that is reserved for a segment when the disk is nearly full.
const SMALLEST_SEGMENT_BYTES: u64 = 256 << 10;

/// Bytes handed to the kernel at once, at most.
const LONGEST_WRITE: u32 = 1 << 30;

/// With `everysec` a sync starts this long after the one before, in ms.
const SYNC_EVERY_MS: i64 = 1000;

/// When data has waited this long for a sync that should take a second, replies wait for it, in ms.
const SYNC_OVERDUE_MS: i64 = 2000;

/// After trouble the writer tries again this often, in ms.
const RETRY_MS: i64 = 100;

/// User data of completions.
const WRITE: u64 = 1;
const SYNC: u64 = 2;

/// A segment that is open for writing.
struct Segment {
    file: Rc<File>,
    path: PathBuf,
    /// Bytes in it.
    len: u64,
    /// Bytes reserved for it.
    limit: u64,
}

/// A write under way.
struct Write {
    bytes: Vec<u8>,
    done: usize,
    /// The position of the log behind it.
    end: u64,
}

/// A round of syncs under way.
struct Sync {
    files: Vec<Rc<File>>,
    outstanding: usize,
    failed: Option<Errno>,
    /// How far the log was written when it began.
    position: u64,
}

/// What stands in the way of writing.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trouble {
    /// There is no room for more.
    Full(Errno),
    /// A write failed, and is tried again.
    Write(Errno),
    /// A sync failed. What it was to make safe may be lost, whatever a later sync says.
    Sync(Errno),
}

/// Writes a shard's log.
pub struct Writer {
    /// Records to be written.
    pub buffer: Buffer,
    directory: PathBuf,
    header: Header,
    durability: Durability,
    ring: IoUring,
    eventfd: OwnedFd,
    segment: Segment,
    /// The segment that follows, where it had to be made ahead.
    next: Option<Segment>,
    /// Files with data that no sync has covered, but for the current segment; directories too.
    unsynced: Vec<Rc<File>>,
    write: Option<Write>,
    sync: Option<Sync>,
    spare: Vec<u8>,
    written: u64,
    synced: u64,
    /// How far the log says of itself that it is synced.
    marked: u64,
    sync_started_ms: i64,
    /// Since when something is written and not synced, in ms since the epoch.
    unsynced_since_ms: Option<i64>,
    /// A position at which a segment has to begin.
    rotate_at: Option<u64>,
    trouble: Option<Trouble>,
    retry_ms: i64,
}

/// Where a log is to go on.
pub struct Start {
    /// The directory of the shard's files.
    pub directory: PathBuf,
    /// What its segments say of themselves; `position` is where the log goes on.
    pub header: Header,
    /// When replies may be sent.
    pub durability: Durability,
}

impl Writer {
    /// Goes on in a new segment.
    pub fn new(start: Start, now_ms: i64) -> io::Result<Writer> {
        let ring = IoUring::new(RING_ENTRIES)?;
        let eventfd = rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        ring.submitter().register_eventfd(eventfd.as_raw_fd())?;
        let Start { directory, header, durability } = start;
        let segment = create(&directory, header.position, 0)?;
        let position = header.position;
        Ok(Writer {
            buffer: Buffer::new(position),
            unsynced: vec![Rc::new(File::open(&directory)?)],
            directory,
            header,
            durability,
            ring,
            eventfd,
            segment,
            next: None,
            write: None,
            sync: None,
            spare: Vec::new(),
            written: position,
            synced: position,
            marked: position,
            sync_started_ms: now_ms,
            unsynced_since_ms: None,
            rotate_at: None,
            trouble: None,
            retry_ms: 0,
        })
    }

    /// The directory of the shard's files.
    pub fn directory(&self) -> &std::path::Path {
        &self.directory
    }

    /// What a file of this shard says of itself that begins at `position`.
    pub fn header(&self, position: u64) -> Header {
        Header { position, ..self.header }
    }

    /// Changes when replies may be sent.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// Has the write that begins at `position` go to a segment of its own.
    pub fn rotate_at(&mut self, position: u64) {
        self.rotate_at = Some(position);
    }

    /// Becomes readable when the kernel has done something.
    pub fn eventfd(&self) -> impl AsFd + '_ {
        self.eventfd.as_fd()
    }

    /// Up to which position replies may be sent.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        match self.durability {
            Durability::Always => self.synced,
            Durability::EverySecond if self.is_sync_overdue() => self.synced,
            Durability::EverySecond | Durability::Memory => self.written,
        }
    }

    #[inline]
    fn is_sync_overdue(&self) -> bool {
        self.unsynced_since_ms
            .is_some_and(|since_ms| self.sync_started_ms.max(self.retry_ms) - since_ms > SYNC_OVERDUE_MS)
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
        let writing = self.write.as_ref().map_or(0, |write| write.bytes.len() - write.done);
        (self.buffer.len() + writing) as u64
    }

    #[inline]
    fn has_room(&self, needed: usize) -> bool {
        let wanted = self.pending() + needed as u64;
        let fits = |segment: &Segment| segment.len + wanted + HEADER_BYTES as u64 <= segment.limit;
        fits(&self.segment) || self.next.as_ref().is_some_and(fits)
    }

    #[cold]
    fn make_room(&mut self, needed: usize) -> Option<CommandError> {
        match &self.trouble {
            Some(Trouble::Write(errno)) => return Some(misconf("writing", *errno)),
            Some(Trouble::Sync(errno)) => return Some(misconf("syncing", *errno)),
            Some(Trouble::Full(_)) | None => {}
        }
        if self.has_room(needed) {
            self.trouble = None;
            return None;
        }
        // Where the next segment starts is known when it is begun; until then it has a name of its own.
        if let Some(next) = self.next.take() {
            let _ = std::fs::remove_file(&next.path);
        }
        match create(&self.directory, u64::MAX, self.pending() + needed as u64) {
            Ok(next) => {
                self.next = Some(next);
                self.trouble = None;
                None
            }
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                self.trouble = Some(Trouble::Full(errno));
                Some(misconf("making room for", errno))
            }
        }
    }

    /// What stands in the way of writing, for people.
    pub fn trouble(&self) -> Option<String> {
        Some(match self.trouble.as_ref()? {
            Trouble::Full(errno) => format!("no room for the log: {errno}"),
            Trouble::Write(errno) => format!("writing the log failed: {errno}"),
            Trouble::Sync(errno) => format!("syncing the log failed: {errno}"),
        })
    }

    /// Starts to write what the buffer holds, unless a write is under way; whether anything is under way.
    #[inline]
    pub fn start(&mut self, now_ms: i64) -> bool {
        if self.write.is_none() && !self.buffer.is_empty() && !matches!(self.trouble, Some(Trouble::Sync(_))) {
            self.start_write(now_ms);
        }
        self.write.is_some() || self.sync.is_some()
    }

    fn start_write(&mut self, now_ms: i64) {
        if self.synced > self.marked && !self.buffer.is_open() {
            self.marked = self.synced;
            self.buffer.synced(self.synced);
        }
        let position = self.written;
        let must_rotate = self.segment.len > 0 && self.rotate_at == Some(position);
        let fits = self.segment.len + self.buffer.len() as u64 <= self.segment.limit;
        if (must_rotate || !fits)
            && let Err(error) = self.rotate(position)
        {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            self.trouble = Some(Trouble::Write(errno));
            self.retry_ms = now_ms;
            return;
        }
        let mut bytes = self.buffer.take(std::mem::take(&mut self.spare));
        let end = self.buffer.ended();
        if self.segment.len == 0 {
            let header = Header { position, ..self.header }.encode();
            bytes.splice(0..0, header);
        }
        self.unsynced_since_ms.get_or_insert(now_ms);
        self.write = Some(Write { bytes, done: 0, end });
        self.submit_write();
    }

    /// Goes on in the next segment, which starts at `position`.
    fn rotate(&mut self, position: u64) -> io::Result<()> {
        let mut next = match self.next.take() {
            Some(next) => next,
            None => create(&self.directory, u64::MAX, self.buffer.len() as u64)?,
        };
        let path = segment_path(&self.directory, position);
        std::fs::rename(&next.path, &path)?;
        next.path = path;
        let full = std::mem::replace(&mut self.segment, next);
        self.unsynced.push(full.file);
        self.unsynced.push(Rc::new(File::open(&self.directory)?));
        Ok(())
    }

    fn submit_write(&mut self) {
        let Some(write) = &self.write else { return };
        let rest = &write.bytes[write.done..];
        let len = u32::try_from(rest.len()).unwrap_or(LONGEST_WRITE);
        let entry = opcode::Write::new(types::Fd(self.segment.file.as_raw_fd()), rest.as_ptr(), len)
            .offset(self.segment.len + write.done as u64)
            .build()
            .user_data(WRITE);
        self.submit(entry);
    }

    fn submit(&mut self, entry: io_uring::squeue::Entry) {
        // SAFETY: what the entry points to, a write's bytes and an open file, is kept in `self.write`, `self.segment` and
        // `self.sync` until its completion was seen; `drop` waits for all of them.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        debug_assert!(pushed.is_ok(), "more entries than can be under way");
        // An interrupted submission is made up for by the next.
        let _ = self.ring.submit();
    }

    fn start_sync(&mut self, now_ms: i64) {
        let mut files = std::mem::take(&mut self.unsynced);
        files.push(Rc::clone(&self.segment.file));
        // A directory has to be synced behind the files it names.
        self.sync_started_ms = now_ms;
        self.unsynced_since_ms = None;
        let entries: Vec<_> =
            files.iter().map(|file| opcode::Fsync::new(types::Fd(file.as_raw_fd())).build().user_data(SYNC)).collect();
        self.sync = Some(Sync { outstanding: files.len(), files, failed: None, position: self.written });
        entries.into_iter().for_each(|entry| self.submit(entry));
    }

    /// Takes in what the kernel has done, and starts what follows from it.
    pub fn advance(&mut self, now_ms: i64) {
        let _ = rustix::io::read(&self.eventfd, &mut [0_u8; 8]);
        let completions: Vec<(u64, i32)> =
            self.ring.completion().map(|completion| (completion.user_data(), completion.result())).collect();
        for (kind, result) in completions {
            match kind {
                WRITE => self.end_write(result, now_ms),
                _ => self.end_sync(result, now_ms),
            }
        }
        self.start(now_ms);
        let is_due = match self.durability {
            Durability::Always => true,
            Durability::EverySecond => now_ms - self.sync_started_ms >= SYNC_EVERY_MS,
            Durability::Memory => false,
        };
        if is_due && self.written > self.synced && self.sync.is_none() && self.trouble.is_none() {
            self.start_sync(now_ms);
        }
    }

    fn end_write(&mut self, result: i32, now_ms: i64) {
        let Some(write) = &mut self.write else { return };
        match usize::try_from(result) {
            Ok(len) if len > 0 => {
                write.done += len;
                if matches!(self.trouble, Some(Trouble::Write(_))) {
                    self.trouble = None;
                }
                if write.done < write.bytes.len() {
                    self.submit_write();
                    return;
                }
                self.segment.len += write.bytes.len() as u64;
                self.written = write.end;
                if let Some(write) = self.write.take() {
                    self.spare = write.bytes;
                }
            }
            _ if matches!(-result, libc::EINTR | libc::EAGAIN) => self.submit_write(),
            _ => {
                // Nothing written at all is as bad as an error.
                let errno = if result == 0 { Errno::IO } else { Errno::from_raw_os_error(-result) };
                self.trouble = Some(Trouble::Write(errno));
                self.retry_ms = now_ms + RETRY_MS;
            }
        }
    }

    fn end_sync(&mut self, result: i32, now_ms: i64) {
        let Some(sync) = &mut self.sync else { return };
        sync.outstanding -= 1;
        if result < 0 {
            sync.failed = Some(Errno::from_raw_os_error(-result));
        }
        if sync.outstanding > 0 {
            return;
        }
        let Some(sync) = self.sync.take() else { return };
        drop(sync.files);
        match sync.failed {
            None => self.synced = sync.position,
            Some(errno) => {
                self.trouble = Some(Trouble::Sync(errno));
                self.unsynced_since_ms.get_or_insert(now_ms);
            }
        }
    }

    /// To be called ten times a second: syncs what is due, and tries again what failed.
    pub fn tick(&mut self, now_ms: i64) {
        match self.trouble {
            Some(Trouble::Write(_)) if now_ms >= self.retry_ms && self.sync.is_none() => {
                self.retry_ms = now_ms + RETRY_MS;
                if self.write.is_some() {
                    self.submit_write();
                } else {
                    self.start_write(now_ms);
                }
            }
            Some(Trouble::Full(_)) => {
                self.make_room(0);
            }
            _ => self.advance(now_ms),
        }
    }

    /// Writes and syncs all there is, and waits for it.
    pub fn finish(&mut self, now_ms: i64) -> io::Result<()> {
        loop {
            self.advance(now_ms);
            if self.trouble.is_some() {
                return Err(io::Error::other(self.trouble().unwrap_or_default()));
            }
            if self.write.is_none() && self.sync.is_none() && self.buffer.is_empty() {
                if self.synced == self.written {
                    return Ok(());
                }
                self.start_sync(now_ms);
            }
            self.ring.submit_and_wait(1)?;
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The kernel may still read what it was given.
        while self.write.is_some() || self.sync.is_some() {
            if self.ring.submit_and_wait(1).is_err() {
                break;
            }
            let completions: Vec<(u64, i32)> =
                self.ring.completion().map(|completion| (completion.user_data(), completion.result())).collect();
            for (kind, result) in completions {
                if kind == WRITE {
                    self.write = None;
                } else {
                    self.end_sync(result, 0);
                }
            }
        }
    }
}

/// Makes the file of a segment that starts at `position`, with room for `needed` bytes or a whole segment; a smaller one
/// where the disk has no more.
fn create(directory: &std::path::Path, position: u64, needed: u64) -> io::Result<Segment> {
    let path = if position == u64::MAX { directory.join("next-log") } else { segment_path(directory, position) };
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
    let least = (needed + 2 * HEADER_BYTES as u64).max(SMALLEST_SEGMENT_BYTES);
    let mut limit = least.max(SEGMENT_BYTES);
    loop {
        match rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, limit) {
            Ok(()) => break,
            // Such a file system reserves nothing.
            Err(Errno::OPNOTSUPP) => break,
            Err(Errno::INTR) => {}
            Err(Errno::NOSPC | Errno::DQUOT) if limit > least => limit = (limit / 2).max(least),
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                return Err(error.into());
            }
        }
    }
    Ok(Segment { file: Rc::new(file), path, len: 0, limit })
}

fn misconf(doing: &str, errno: Errno) -> CommandError {
    CommandError::new(format!(
        "MISCONF Errors {doing} the log: {}. Commands that may modify the data set are disabled until it can be written \
         again.",
        io::Error::from(errno)
    ))
}
