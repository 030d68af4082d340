//! The sliding window, from two counters.

use super::{
    Decision, Limiter, Request, SLIDING_BYTES, STORED_WINDOW_MAX_MS, counter_overflow, invalid_window, number,
    put_number, stored_time_ms, wait_ms,
};
use crate::entry::Encoding;
use crate::error::CommandError;

/// The most that a counter can hold: 7 bytes.
const COUNTER_MAX: i128 = (1 << 56) - 1;

const WINDOW_END: usize = 5;
const PREVIOUS_END: usize = WINDOW_END + 7;

/// The window in which the last counted call fell, and the one before it.
///
/// The first counted call opens a window; the windows follow each other without a gap for as long as the key lives.
/// What is used at a time is all of the current window and, of the previous one, the part that the last `window_ms`
/// still overlap: `current + previous × (window − elapsed) / window`, compared without rounding. The deadline is the end
/// of the window after the current one.
///
/// A counted call with another `window_ms` opens a window of that length at its time, which begins with all that is used
/// then, rounded up, and has none before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    window_ms: i64,
    previous: i64,
    current: i64,
    deadline_ms: i64,
}

/// The windows at some time, after those that ended were left behind.
struct Windows {
    start_ms: i128,
    window_ms: i128,
    previous: i128,
    current: i128,
}

impl SlidingWindow {
    fn at(self, now_ms: i64) -> Windows {
        let window_ms = i128::from(self.window_ms);
        let start_ms = i128::from(self.deadline_ms) - 2 * window_ms;
        let (previous, current) = (i128::from(self.previous), i128::from(self.current));
        if i128::from(now_ms) < start_ms + window_ms {
            Windows { start_ms, window_ms, previous, current }
        } else {
            Windows { start_ms: start_ms + window_ms, window_ms, previous: current, current: 0 }
        }
    }
}

impl Windows {
    /// What is used at `time_ms` of the current window, times the window's length.
    fn used_scaled(&self, time_ms: i128) -> i128 {
        let elapsed_ms = (time_ms - self.start_ms).clamp(0, self.window_ms);
        self.current * self.window_ms + self.previous * (self.window_ms - elapsed_ms)
    }

    /// The first time at which no more than `allowed` is used, if nothing else is counted. More is used now.
    fn free_at_ms(&self, allowed: i128) -> i128 {
        let end_ms = self.start_ms + self.window_ms;
        let (counter, left, start_ms) = if self.current <= allowed {
            (self.previous, allowed - self.current, self.start_ms)
        } else {
            (self.current, allowed, end_ms)
        };
        // The first e with counter × (window − e) ≤ left × window.
        start_ms + self.window_ms - (left * self.window_ms / counter.max(1)).min(self.window_ms)
    }
}

impl Limiter for SlidingWindow {
    const ENCODING: Encoding = Encoding::SlidingLimit;
    type Bytes = [u8; SLIDING_BYTES];

    fn load(bytes: &[u8], deadline_ms: i64) -> SlidingWindow {
        // The fields have 5 and 7 bytes, so each fits; a window of no length is none that was stored.
        SlidingWindow {
            window_ms: (number(&bytes[..WINDOW_END]) as i64).max(1),
            previous: number(&bytes[WINDOW_END..PREVIOUS_END]) as i64,
            current: number(&bytes[PREVIOUS_END..SLIDING_BYTES]) as i64,
            deadline_ms,
        }
    }

    fn bytes(&self) -> [u8; SLIDING_BYTES] {
        let mut bytes = [0; SLIDING_BYTES];
        put_number(&mut bytes[..WINDOW_END], self.window_ms as u128);
        put_number(&mut bytes[WINDOW_END..PREVIOUS_END], self.previous as u128);
        put_number(&mut bytes[PREVIOUS_END..], self.current as u128);
        bytes
    }

    fn deadline_ms(&self) -> i64 {
        self.deadline_ms
    }

    fn decide(state: Option<SlidingWindow>, request: Request) -> Result<Decision<SlidingWindow>, CommandError> {
        let Request { now_ms, max, window_ms, cost } = request;
        if window_ms > STORED_WINDOW_MAX_MS {
            return Err(invalid_window());
        }
        stored_time_ms(i128::from(now_ms) + 2 * i128::from(window_ms))?;
        let windows = match state {
            Some(state) if state.deadline_ms > now_ms => state.at(now_ms),
            _ => Windows { start_ms: now_ms.into(), window_ms: window_ms.into(), previous: 0, current: 0 },
        };
        let used_scaled = windows.used_scaled(now_ms.into());
        // Costs and allowances are whole, so comparing with what is used rounded up is exact.
        let used = used_scaled.unsigned_abs().div_ceil(windows.window_ms.unsigned_abs()) as i128;
        let left = (i128::from(max) - used).max(0);
        if cost == 0 {
            return Ok(Decision::Looked { remaining: left as i64 });
        }
        if i128::from(cost) > left {
            let free_at_ms = windows.free_at_ms(i128::from(max) - i128::from(cost));
            return Ok(Decision::Refused { retry_after_ms: wait_ms(free_at_ms, now_ms) });
        }
        let next = if windows.window_ms == i128::from(window_ms) {
            Windows { current: windows.current + i128::from(cost), ..windows }
        } else {
            let start_ms = windows.start_ms.max(now_ms.into());
            Windows { start_ms, window_ms: window_ms.into(), previous: 0, current: used + i128::from(cost) }
        };
        if next.current > COUNTER_MAX {
            return Err(counter_overflow());
        }
        let state = SlidingWindow {
            window_ms,
            previous: next.previous as i64,
            current: next.current as i64,
            deadline_ms: stored_time_ms(next.start_ms + 2 * next.window_ms)?,
        };
        Ok(Decision::Accepted { remaining: (left - i128::from(cost)) as i64, state })
    }
}
