//! What stands in the way of writing a log.

use super::disk::DiskError;
use crate::error::CommandError;

/// What stands in the way of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is no room for more.
    Full(DiskError),
    /// A write failed, and is tried again.
    Write {
        /// The last error.
        error: DiskError,
        /// Since when none succeeds, in ms since the epoch.
        since_ms: i64,
    },
    /// The files are given up, and only a checkpoint into new ones helps.
    Broken {
        /// What failed: a sync, after which what it was to make safe may be lost, whatever a later sync says, and whatever is
        /// read meanwhile; or writing, for too long.
        operation: &'static str,
        /// How.
        error: DiskError,
    },
}

impl Trouble {
    /// Writes that fail otherwise than for lack of space are not tried again for longer than this, in ms.
    const HOPELESS_AFTER_MS: i64 = 1000;

    /// Whether trying again what failed does not help, as far as can be told.
    pub(super) fn is_hopeless(self, now_ms: i64) -> bool {
        match self {
            Trouble::Full(_) => false,
            // A checkpoint needs more space than what could not be written.
            Trouble::Write { error, since_ms } => {
                !error.is_lack_of_space() && now_ms - since_ms >= Trouble::HOPELESS_AFTER_MS
            }
            Trouble::Broken { .. } => true,
        }
    }

    /// Whether a write waits for space, for as long as that takes.
    pub fn awaits_space(self) -> bool {
        matches!(self, Trouble::Write { error, .. } if error.is_lack_of_space())
    }

    /// The error behind it.
    pub fn error(self) -> DiskError {
        let (Trouble::Full(error) | Trouble::Write { error, .. } | Trouble::Broken { error, .. }) = self;
        error
    }

    /// What a command that writes is answered, in Redis's words.
    pub(super) fn refusal(self) -> CommandError {
        refusal(self.error())
    }

    /// For people.
    pub fn describe(self) -> String {
        match self {
            Trouble::Full(error) => format!("no room for the log: {error}"),
            Trouble::Write { error, .. } => format!("writing the log failed: {error}"),
            Trouble::Broken { operation, error } => {
                format!(
                    "{operation} the log failed: {error}; writes are accepted again once a checkpoint has succeeded"
                )
            }
        }
    }
}

/// What a command that writes is answered when a log cannot be written because of `error`, in Redis's words.
pub fn refusal(error: DiskError) -> CommandError {
    CommandError::new(format!("MISCONF Errors writing to the AOF file: {error}"))
}
