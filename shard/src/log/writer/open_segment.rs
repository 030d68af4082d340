//! The segments that a writer has open: the one it writes to, and the one that follows.

use crate::log::HEADER_BYTES;
use crate::log::disk::{Disk, DiskError, FileName};

/// The least that is reserved for a segment when the disk is nearly full, in bytes.
const SMALLEST_SEGMENT_BYTES: u64 = 256 << 10;

/// What a write may have beside its records: the header of a segment, a record that says how far the log is synced, and the
/// seal behind all of them.
const OVERHEAD_BYTES: u64 = HEADER_BYTES as u64 + 32;

/// A segment that is open for writing.
pub(super) struct Segment<F> {
    pub(super) file: F,
    /// Bytes in it.
    pub(super) len: u64,
    /// Bytes reserved for it.
    pub(super) limit: u64,
}

impl<F> Segment<F> {
    pub(super) fn fits(&self, bytes: u64) -> bool {
        self.len + bytes + OVERHEAD_BYTES <= self.limit
    }
}

/// A segment that follows.
pub(super) struct Next<F> {
    pub(super) segment: Segment<F>,
    /// Whether it has the name of a segment already, and not that of a reserve.
    is_named: bool,
}

impl<F> Next<F> {
    /// Makes a segment with room for `needed` bytes or, where the disk has as much, a whole segment.
    pub(super) fn reserve<D: Disk<File = F>>(
        disk: &mut D,
        needed: u64,
        segment_bytes: u64,
    ) -> Result<Next<F>, DiskError> {
        let segment = create(disk, FileName::Reserve, needed, segment_bytes)?;
        Ok(Next { segment, is_named: false })
    }

    /// Gives it the name of the segment that starts at `position`.
    pub(super) fn name<D: Disk<File = F>>(&mut self, disk: &mut D, position: u64) -> Result<(), DiskError> {
        if !self.is_named {
            disk.rename(FileName::Reserve, FileName::Segment(position))?;
            self.is_named = true;
        }
        Ok(())
    }
}

/// Makes a segment with room for `needed` bytes or, where the disk has as much, a whole segment.
pub(super) fn create<D: Disk>(
    disk: &mut D,
    name: FileName,
    needed: u64,
    segment_bytes: u64,
) -> Result<Segment<D::File>, DiskError> {
    let least = (needed + OVERHEAD_BYTES).max(SMALLEST_SEGMENT_BYTES.min(segment_bytes));
    let (file, limit) = disk.create(name, least, least.max(segment_bytes))?;
    Ok(Segment { file, len: 0, limit })
}
