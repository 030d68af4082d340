//! The disk of a log: its directory, and a ring of the core's own through which the kernel writes and syncs.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use io_uring::{IoUring, opcode, squeue, types};
use rustix::event::EventfdFlags;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use ruvio_shard::log::{Completion, Disk, DiskError, FileName};

use crate::data::segment_path;

/// Entries of the ring: a write, and a round of syncs.
const RING_ENTRIES: u32 = 32;

/// Bytes handed to the kernel at once, at most.
const LONGEST_WRITE: u32 = 1 << 30;

/// User data of completions.
const WRITE: u64 = 1;
const SYNC: u64 = 2;

/// What the kernel reads while a write is under way.
struct Write {
    bytes: Vec<u8>,
    _file: Rc<File>,
}

/// A round of syncs under way.
struct Round {
    _files: Vec<Rc<File>>,
    outstanding: usize,
    failed: Option<DiskError>,
}

/// A directory whose files are written through a ring.
pub struct RingDisk {
    directory: PathBuf,
    ring: IoUring,
    eventfd: OwnedFd,
    write: Option<Write>,
    round: Option<Round>,
}

impl RingDisk {
    /// The directory `directory`, with a ring of its own.
    pub fn new(directory: PathBuf) -> io::Result<RingDisk> {
        let ring = IoUring::new(RING_ENTRIES)?;
        let eventfd = rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        ring.submitter().register_eventfd(eventfd.as_raw_fd())?;
        Ok(RingDisk { directory, ring, eventfd, write: None, round: None })
    }

    /// Has the kernel's workers run on these processors.
    pub fn work_on(&self, processors: &[usize]) {
        // A kernel that knows no such thing has them run where the core does, which is only slower.
        let _ = self.ring.submitter().register_iowq_aff(&processor_set(processors));
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Is written to whenever the kernel has done something. Nobody reads it: it is to be waited for by its edges.
    pub fn eventfd(&self) -> impl AsFd + '_ {
        self.eventfd.as_fd()
    }

    fn path_of(&self, name: FileName) -> PathBuf {
        match name {
            FileName::Segment(position) => segment_path(&self.directory, position),
            FileName::Reserve => self.directory.join("next-log"),
        }
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: what the entry points to, a write's bytes and an open file, is kept in `self.write` or `self.round` until its
        // completion was seen; `drop` waits for all of them.
        let pushed = unsafe { self.ring.submission().push(entry) };
        if pushed.is_err() {
            // The ring is full of what was not submitted yet.
            let _ = self.ring.submit();
            // SAFETY: as above.
            let pushed = unsafe { self.ring.submission().push(entry) };
            debug_assert!(pushed.is_ok(), "submitting empties the ring");
        }
    }

    fn submit(&self) {
        // An interrupted submission is made up for in `next_completion`.
        let _ = self.ring.submit();
    }
}

/// The set of these processors.
fn processor_set(processors: &[usize]) -> libc::cpu_set_t {
    // SAFETY: the type is an array of integers, for which zeros are a value: the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &processor in processors.iter().filter(|&&processor| processor < libc::CPU_SETSIZE as usize) {
        // SAFETY: the processor's bit is within the set, as just checked.
        unsafe { libc::CPU_SET(processor, &mut set) };
    }
    set
}

impl Disk for RingDisk {
    type File = Rc<File>;

    fn create(&mut self, name: FileName, least: u64, wanted: u64) -> Result<(Rc<File>, u64), DiskError> {
        let path = self.path_of(name);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        let mut reserved = wanted.max(least);
        loop {
            match rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, reserved) {
                Ok(()) => break,
                // Such a file system reserves nothing.
                Err(Errno::OPNOTSUPP) => break,
                Err(Errno::INTR) => {}
                Err(Errno::NOSPC | Errno::DQUOT) if reserved > least => reserved = (reserved / 2).max(least),
                Err(error) => {
                    // What is before a segment names it.
                    if name == FileName::Reserve {
                        let _ = std::fs::remove_file(&path);
                    }
                    return Err(DiskError::from_code(error.raw_os_error()));
                }
            }
        }
        Ok((Rc::new(file), reserved))
    }

    fn directory(&mut self) -> Result<Rc<File>, DiskError> {
        Ok(Rc::new(File::open(&self.directory)?))
    }

    fn rename(&mut self, from: FileName, to: FileName) -> Result<(), DiskError> {
        Ok(std::fs::rename(self.path_of(from), self.path_of(to))?)
    }

    fn write(&mut self, file: &Rc<File>, offset: u64, bytes: Vec<u8>, from: usize) {
        let rest = &bytes[from..];
        let len = u32::try_from(rest.len()).unwrap_or(LONGEST_WRITE).min(LONGEST_WRITE);
        let entry = opcode::Write::new(types::Fd(file.as_raw_fd()), rest.as_ptr(), len).offset(offset).build();
        self.write = Some(Write { bytes, _file: Rc::clone(file) });
        self.push(&entry.user_data(WRITE));
        self.submit();
    }

    fn sync(&mut self, files: Vec<Rc<File>>) {
        let entries: Vec<_> =
            files.iter().map(|file| opcode::Fsync::new(types::Fd(file.as_raw_fd())).build()).collect();
        self.round = Some(Round { outstanding: entries.len(), _files: files, failed: None });
        entries.into_iter().for_each(|entry| self.push(&entry.user_data(SYNC)));
        self.submit();
    }

    fn next_completion(&mut self) -> Option<Completion> {
        if !self.ring.submission().is_empty() {
            self.submit();
        }
        while let Some(completion) = self.ring.completion().next() {
            let result = completion.result();
            let outcome = usize::try_from(result).map_err(|_| DiskError::from_code(-result));
            if completion.user_data() == WRITE {
                let write = self.write.take()?;
                return Some(Completion::Write(write.bytes, outcome));
            }
            let round = self.round.as_mut()?;
            round.outstanding -= 1;
            if let Err(error) = outcome {
                round.failed = Some(error);
            }
            if round.outstanding == 0 {
                let round = self.round.take()?;
                return Some(Completion::Sync(round.failed.map_or(Ok(()), Err)));
            }
        }
        None
    }

    fn wait(&mut self) -> Result<(), DiskError> {
        match self.ring.submit_and_wait(1) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for RingDisk {
    fn drop(&mut self) {
        // The kernel may still read what it was given.
        while self.write.is_some() || self.round.is_some() {
            if self.next_completion().is_none() && self.wait().is_err() {
                break;
            }
        }
    }
}
