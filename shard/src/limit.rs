//! Rate limiters: the decision of one call, as pure functions of the state, the time and the request.
//!
//! A limiter's key is missing while nothing is used up: the first counted call makes it, and its deadline is the moment
//! at which nothing is used up again. So the deadline is part of the state ([`Limiter::deadline_ms`]), and the
//! [`Limiter`] types keep beside it only what it does not tell. All arithmetic is in integers and exact.
//!
//! What the three modes have in common:
//!
//! - `max` applies at once. What was used stays used, so raising it by ten leaves ten more; when more is used than the
//!   new `max` allows, nothing is left.
//! - `window_ms` never takes back time that has passed. The modes say when another one takes effect; a refused call,
//!   and one that only looks, never changes it.
//! - A state that cannot be stored is an error, and the call is not counted: more than 2^56 - 1 in a window of
//!   [`SlidingWindow`], more than 2^72 - 1 missing tokens times `window_ms` in a [`TokenBucket`], a deadline past the
//!   64-bit range. `max` itself may be any positive number.
//! - While a clock that stepped back has not caught up with the latest counted call, no used allowance returns.

use crate::entry::Encoding;
use crate::error::CommandError;

mod fixed;
mod sliding;
mod tokens;

pub use fixed::FixedWindow;
pub use sliding::SlidingWindow;
pub use tokens::TokenBucket;

/// Bytes of a fixed-window limiter's state.
pub const FIXED_BYTES: usize = 8;
/// Bytes of a sliding-window limiter's state.
pub const SLIDING_BYTES: usize = 19;
/// Bytes of a token bucket's state.
pub const TOKEN_BYTES: usize = 19;

/// The longest window of the modes that keep its length in their state, in ms: 34 years.
pub const STORED_WINDOW_MAX_MS: i64 = (1 << 40) - 1;

/// One call of `LIMIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The time, in ms since the epoch; not negative.
    pub now_ms: i64,
    /// The allowance of a window, at least 1.
    pub max: i64,
    /// The window's length in ms, at least 1.
    pub window_ms: i64,
    /// What the call uses up, from 0 to `max`. With 0 it only looks.
    pub cost: i64,
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<S> {
    /// The call only looked.
    Looked {
        /// What is left, rounded down.
        remaining: i64,
    },
    /// The call is counted.
    Accepted {
        /// What is left after it, rounded down.
        remaining: i64,
        /// The state from now on.
        state: S,
    },
    /// The call is not counted.
    Refused {
        /// The wait in ms after which the same call is accepted, and not earlier, if no other comes between.
        retry_after_ms: i64,
    },
}

/// The state of one mode.
pub trait Limiter: Copy {
    /// How entries hold it.
    const ENCODING: Encoding;
    /// The state's bytes, the deadline excepted.
    type Bytes: AsRef<[u8]>;

    /// Reads the state that an entry holds.
    fn load(bytes: &[u8], deadline_ms: i64) -> Self;

    /// The bytes an entry holds.
    fn bytes(&self) -> Self::Bytes;

    /// When nothing is used up any more, in ms since the epoch.
    fn deadline_ms(&self) -> i64;

    /// Decides a call; `state` is `None` while the key is missing. A state whose deadline has passed counts as missing.
    ///
    /// # Errors
    ///
    /// When the state or its deadline would leave the range that can be stored; nothing is counted then.
    fn decide(state: Option<Self>, request: Request) -> Result<Decision<Self>, CommandError>;
}

/// Whether bytes of foreign origin, as many as `encoding` has, are a state that a limiter may be in.
pub fn is_sound(encoding: Encoding, state: &[u8]) -> bool {
    /// Bytes of the window's length, with which the states begin that keep it.
    const WINDOW_BYTES: usize = 5;
    match encoding {
        Encoding::FixedLimit => state.last().is_some_and(|high| high & 0x80 == 0),
        Encoding::SlidingLimit | Encoding::TokenLimit => state.iter().take(WINDOW_BYTES).any(|byte| *byte != 0),
        _ => false,
    }
}

/// The error for a deadline or a window that cannot be stored.
fn invalid_window() -> CommandError {
    CommandError::invalid_expire_time("limit")
}

/// The error for counters that cannot be stored.
fn counter_overflow() -> CommandError {
    CommandError::new("ERR the limiter's counter would overflow")
}

/// A time computed in 128 bits, where it can be stored.
fn stored_time_ms(time_ms: i128) -> Result<i64, CommandError> {
    i64::try_from(time_ms).map_err(|_| invalid_window())
}

/// A wait until `time_ms`, which lies after `now_ms`.
fn wait_ms(time_ms: i128, now_ms: i64) -> i64 {
    i64::try_from(time_ms - i128::from(now_ms)).unwrap_or(i64::MAX)
}

/// A little-endian number of at most 16 bytes.
fn number(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte))
}

/// Fills `target` with the low bytes of `value`, little-endian.
fn put_number(target: &mut [u8], value: u128) {
    let bytes = value.to_le_bytes();
    let len = target.len();
    target.copy_from_slice(&bytes[..len]);
}

#[cfg(test)]
mod tests;
