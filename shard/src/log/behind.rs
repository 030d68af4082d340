//! What can still be told of a log behind a place where no record is.

use super::segment::{body_at, commands, u32_at};
use super::{COMMANDS, RECORD_HEAD, SYNCED, SYNCED_BODY};

/// How many whole records of commands there are among `bytes`, which stand at `position` of the log and need not begin with a
/// record. A checksum depends on where its record stands, so what is found was a record there.
pub fn records_behind(bytes: &[u8], position: u64) -> u64 {
    let mut records = 0;
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() > RECORD_HEAD) {
        let length = u32_at(rest, 4) as usize;
        let kind = rest[RECORD_HEAD];
        // The checksum comes last: it may be over all that is left.
        let is_likely = rest[RECORD_HEAD..].get(..length).is_some_and(|body| match kind {
            SYNCED => length == SYNCED_BODY,
            COMMANDS => commands(body, &mut ranges).is_some(),
            _ => false,
        });
        if is_likely && body_at(rest, position.wrapping_add(at as u64)).is_some() {
            records += u64::from(kind == COMMANDS);
            at += RECORD_HEAD + length;
        } else {
            at += 1;
        }
    }
    records
}
