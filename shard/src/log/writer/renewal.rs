//! Renewing a log that is given up, behind a checkpoint of all that was done.

use super::open_segment::{Next, Segment};
use super::{RETRY_MS, Writer};
use crate::log::disk::{Disk, DiskError};
use crate::log::trouble::Trouble;

/// A renewal that failed is tried again after twice the time as the one before, and at last this often, in ms.
const RENEWAL_RETRY_MS: i64 = 10_000;

/// The making of a new log behind a checkpoint.
pub(super) struct Renewal<F> {
    position: u64,
    segment: Segment<F>,
}

impl<D: Disk> Writer<D> {
    /// Whether the log can only be renewed, and that can begin now.
    pub fn wants_renewal(&self, now_ms: i64) -> bool {
        self.trouble.is_some_and(|trouble| trouble.is_hopeless(now_ms))
            && self.renewal.is_none()
            && self.sync.is_none()
            && self.write.as_ref().is_none_or(|write| write.failed.is_some())
            && now_ms >= self.retry_ms
    }

    /// Begins to renew the log, which wants it: returns the position that a checkpoint is to be made of, now. What was not
    /// written up to there is dropped, for the checkpoint has it. The error is that there is no file to go on in; then it is
    /// tried again later.
    pub fn begin_renewal(&mut self, now_ms: i64) -> Result<u64, DiskError> {
        debug_assert!(self.wants_renewal(now_ms));
        self.next = None;
        // The checkpoint is of use only with the segment behind it, so that has its name before.
        let position = self.buffer.ended();
        let made = Next::reserve(&mut self.disk, 0, self.segment_bytes)
            .and_then(|mut next| next.name(&mut self.disk, position).map(|()| next.segment));
        let segment = match made {
            Ok(segment) => segment,
            Err(error) => {
                self.postpone_renewal(now_ms);
                return Err(error);
            }
        };
        if let Some(Trouble::Write { error, .. }) = self.trouble {
            self.trouble = Some(Trouble::Broken { operation: "writing", error });
        }
        self.write = None;
        self.seals.clear();
        drop(self.buffer.take(Vec::new()));
        self.renewal = Some(Renewal { position, segment });
        Ok(position)
    }

    fn postpone_renewal(&mut self, now_ms: i64) {
        self.retry_ms = now_ms + self.renewal_pause_ms;
        self.renewal_pause_ms = (self.renewal_pause_ms * 2).min(RENEWAL_RETRY_MS);
    }

    /// Ends the renewal that was begun: its checkpoint is on stable storage under its name, or has failed.
    pub fn end_renewal(&mut self, is_durable: bool, now_ms: i64) {
        let Some(Renewal { position, segment }) = self.renewal.take() else { return };
        if !is_durable {
            self.postpone_renewal(now_ms);
            return;
        }
        self.segment = segment;
        self.unsynced.clear();
        self.unsynced_since_ms = None;
        self.rotate_at = None;
        (self.written, self.synced, self.marked) = (position, position, position);
        self.acknowledged = self.acknowledged.max(position);
        self.trouble = None;
        self.retry_ms = 0;
        self.renewal_pause_ms = RETRY_MS;
        self.advance(now_ms);
    }
}
