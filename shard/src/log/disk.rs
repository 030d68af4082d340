//! What a log's writer needs of a disk. The server has one that works through a ring of the kernel's, tests have one that fails.

use std::fmt;
use std::io;

/// Why a disk could not do what it was told: an error number of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskError(i32);

impl DiskError {
    /// An error of the device.
    pub const IO: DiskError = DiskError(libc::EIO);

    /// No space is left.
    pub const NO_SPACE: DiskError = DiskError(libc::ENOSPC);

    /// The error with this number.
    pub fn from_code(code: i32) -> DiskError {
        DiskError(code)
    }

    /// Its number.
    pub fn code(self) -> i32 {
        self.0
    }

    /// Whether it goes away when something is deleted.
    pub fn is_lack_of_space(self) -> bool {
        matches!(self.0, libc::ENOSPC | libc::EDQUOT)
    }

    /// Whether nothing is wrong, and the same can be done again at once.
    pub fn is_interruption(self) -> bool {
        matches!(self.0, libc::EINTR | libc::EAGAIN)
    }
}

impl From<io::Error> for DiskError {
    fn from(error: io::Error) -> DiskError {
        DiskError(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<DiskError> for io::Error {
    fn from(error: DiskError) -> io::Error {
        io::Error::from_raw_os_error(error.0)
    }
}

impl fmt::Display for DiskError {
    /// In the words of the operating system, without the number, as Redis shows it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = io::Error::from_raw_os_error(self.0).to_string();
        formatter.write_str(text.split(" (os error").next().unwrap_or_default())
    }
}

/// What a writer calls its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileName {
    /// The segment that starts at a position.
    Segment(u64),
    /// A segment made ahead, whose position is not known yet. It is of no use to whoever reads the log.
    Reserve,
}

/// What a disk has done, of what was begun.
#[derive(Debug)]
pub enum Completion {
    /// A write: its bytes, and how many of those that were to be written are.
    Write(Vec<u8>, Result<usize, DiskError>),
    /// Syncs begun together: whether all succeeded.
    Sync(Result<(), DiskError>),
}

/// Where a log's segments are. A write and one round of syncs may be under way at a time.
pub trait Disk {
    /// An open file, or a directory; it stays open as long as a clone is there.
    type File: Clone;

    /// Makes a file, or empties the one there is, and reserves `wanted` bytes for it; fewer where there are not as many, but
    /// not fewer than `least`. Returns how many. Where that fails, a segment that was there is still there, or is empty.
    fn create(&mut self, name: FileName, least: u64, wanted: u64) -> Result<(Self::File, u64), DiskError>;

    /// The directory of the files. To sync it puts on stable storage which files there are, and under which names.
    fn directory(&mut self) -> Result<Self::File, DiskError>;

    /// Gives a file another name, in place of the file that has it.
    fn rename(&mut self, from: FileName, to: FileName) -> Result<(), DiskError>;

    /// Begins to write `bytes` from `from` on, at `offset` of the file.
    fn write(&mut self, file: &Self::File, offset: u64, bytes: Vec<u8>, from: usize);

    /// Begins to put on stable storage what was written to these files.
    fn sync(&mut self, files: Vec<Self::File>);

    /// Something that was begun and has ended, if it was not told yet.
    fn next_completion(&mut self) -> Option<Completion>;

    /// Waits until something that was begun has ended.
    fn wait(&mut self) -> Result<(), DiskError>;
}
