//! The fixed window.

use super::{Decision, FIXED_BYTES, Limiter, Request, invalid_window, wait_ms};
use crate::entry::Encoding;
use crate::error::CommandError;

/// A window that is open until its deadline, and what was used in it.
///
/// The first counted call opens the window. Another `window_ms` takes effect with the next window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    used: i64,
    end_ms: i64,
}

impl Limiter for FixedWindow {
    const ENCODING: Encoding = Encoding::FixedLimit;
    type Bytes = [u8; FIXED_BYTES];

    fn load(bytes: &[u8], deadline_ms: i64) -> FixedWindow {
        let used = bytes.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes).max(0));
        FixedWindow { used, end_ms: deadline_ms }
    }

    fn bytes(&self) -> [u8; FIXED_BYTES] {
        self.used.to_le_bytes()
    }

    fn deadline_ms(&self) -> i64 {
        self.end_ms
    }

    fn decide(state: Option<FixedWindow>, request: Request) -> Result<Decision<FixedWindow>, CommandError> {
        let Request { now_ms, max, window_ms, cost } = request;
        let fresh_end_ms = now_ms.checked_add(window_ms).ok_or_else(invalid_window)?;
        let window = match state {
            Some(window) if window.end_ms > now_ms => window,
            _ => FixedWindow { used: 0, end_ms: fresh_end_ms },
        };
        let left = max.saturating_sub(window.used).max(0);
        if cost == 0 {
            return Ok(Decision::Looked { remaining: left });
        }
        if cost > left {
            return Ok(Decision::Refused { retry_after_ms: wait_ms(window.end_ms.into(), now_ms) });
        }
        let state = FixedWindow { used: window.used + cost, end_ms: window.end_ms };
        Ok(Decision::Accepted { remaining: left - cost, state })
    }
}
