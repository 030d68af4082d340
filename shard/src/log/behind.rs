//! What can still be told of a log behind a place where no record is.

use super::segment::{body_at, commands, u32_at, u64_at};
use super::{COMMANDS, RECORD_HEAD, SYNCED, SYNCED_BODY};

/// What was found behind a place where no record is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// Whole records of commands.
    pub records: u64,
    /// The furthest position up to which one of the records says that the log was on stable storage; 0 without one.
    pub synced: u64,
}

impl Behind {
    /// Looks through `bytes`, which stand at `position` of the log and need not begin with a record. A checksum depends on
    /// where its record stands, so what is found was a record there.
    pub fn look(bytes: &[u8], position: u64) -> Behind {
        let mut found = Behind::default();
        let mut ranges = Vec::new();
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() > RECORD_HEAD) {
            let length = u32_at(rest, 4) as usize;
            // The checksum comes last: it may be over all that is left.
            let is_likely = match (rest[RECORD_HEAD], rest.get(RECORD_HEAD..).and_then(|rest| rest.get(..length))) {
                (SYNCED, Some(body)) => body.len() == SYNCED_BODY,
                (COMMANDS, Some(body)) => commands(body, &mut ranges).is_some(),
                _ => false,
            };
            let body = if is_likely { body_at(rest, position.wrapping_add(at as u64)) } else { None };
            match body {
                Some(body) if body[0] == SYNCED => found.synced = found.synced.max(u64_at(body, 1)),
                Some(_) => found.records += 1,
                None => {
                    at += 1;
                    continue;
                }
            }
            at += RECORD_HEAD + length;
        }
        found
    }
}
