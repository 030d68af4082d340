//! Commands that wait for a key: what the handler says when there is nothing to take yet.

use std::ops::Range;

use crate::entry::Kind;
use crate::error::CommandError;
use crate::number::parse_f64;

/// A command found nothing and waits. It is executed again once one of its keys has got a value of the kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The kind of value that it waits for.
    pub kind: Kind,
    /// Which of the command's words are the keys.
    pub keys: Range<usize>,
    /// For how long, in ms; `None` for as long as it takes.
    pub timeout_ms: Option<i64>,
}

/// Reads a time-out in seconds, in ms; `None` for none. `now_ms` is the time of the call.
pub fn parse_timeout(word: &[u8], now_ms: i64) -> Result<Option<i64>, CommandError> {
    let seconds = parse_f64(word).ok_or(CommandError::new("ERR timeout is not a float or out of range"))?;
    let timeout_ms = (seconds * 1000.0).ceil();
    if timeout_ms < 0.0 {
        return Err(CommandError::new("ERR timeout is negative"));
    }
    if timeout_ms >= (i64::MAX - now_ms) as f64 {
        return Err(CommandError::new("ERR timeout is out of range"));
    }
    Ok(Some(timeout_ms as i64).filter(|timeout_ms| *timeout_ms > 0))
}
