//! The token bucket.

use super::{
    Decision, Limiter, Request, STORED_WINDOW_MAX_MS, TOKEN_BYTES, counter_overflow, invalid_window, number,
    put_number, stored_time_ms, wait_ms,
};
use crate::entry::Encoding;
use crate::error::CommandError;

/// The most that the missing tokens times the window's length can be: 9 bytes.
const MISSING_MAX: i128 = (1 << 72) - 1;

const WINDOW_END: usize = 5;
const MISSING_END: usize = WINDOW_END + 9;

/// What is missing from a bucket, and since when it refills.
///
/// Tokens are counted in parts of `1 / window_ms`, so that the `max` parts that flow in each millisecond, and the
/// `cost × window_ms` parts that a call takes, are whole numbers: nothing is ever rounded, whatever the number of calls.
/// The deadline is the millisecond in which the bucket is full.
///
/// `max` is the call's for the refill since the last counted call too; a bucket is full at its deadline even so. A
/// counted call with another `window_ms` carries over what is missing, rounded up to a part of the new window; until then
/// the bucket refills at the old pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    window_ms: i64,
    /// Missing at `counted_ms`, in parts.
    missing: i128,
    /// The latest time of a counted call.
    counted_ms: i64,
    deadline_ms: i64,
}

impl Limiter for TokenBucket {
    const ENCODING: Encoding = Encoding::TokenLimit;
    type Bytes = [u8; TOKEN_BYTES];

    fn load(bytes: &[u8], deadline_ms: i64) -> TokenBucket {
        // The numbers have 5 and 9 bytes, so each fits; a window of no length is none that was stored.
        let until_full_ms = number(&bytes[MISSING_END..TOKEN_BYTES]) as i64;
        TokenBucket {
            window_ms: (number(&bytes[..WINDOW_END]) as i64).max(1),
            missing: number(&bytes[WINDOW_END..MISSING_END]) as i128,
            counted_ms: deadline_ms.saturating_sub(until_full_ms),
            deadline_ms,
        }
    }

    fn bytes(&self) -> [u8; TOKEN_BYTES] {
        let mut bytes = [0; TOKEN_BYTES];
        put_number(&mut bytes[..WINDOW_END], self.window_ms as u128);
        put_number(&mut bytes[WINDOW_END..MISSING_END], self.missing as u128);
        // At most `window_ms`: a counted call leaves no more than `max` tokens missing.
        put_number(&mut bytes[MISSING_END..], (self.deadline_ms - self.counted_ms) as u128);
        bytes
    }

    fn deadline_ms(&self) -> i64 {
        self.deadline_ms
    }

    fn decide(state: Option<TokenBucket>, request: Request) -> Result<Decision<TokenBucket>, CommandError> {
        let Request { now_ms, window_ms, .. } = request;
        if window_ms > STORED_WINDOW_MAX_MS {
            return Err(invalid_window());
        }
        let (max, cost) = (i128::from(request.max), i128::from(request.cost));
        let full = TokenBucket { window_ms, missing: 0, counted_ms: now_ms, deadline_ms: i64::MAX };
        stored_time_ms(i128::from(now_ms) + i128::from(window_ms))?;
        let bucket = match state {
            Some(bucket) if bucket.deadline_ms > now_ms => bucket,
            _ => full,
        };
        let counted_ms = bucket.counted_ms.max(now_ms);
        let refilled = (i128::from(counted_ms) - i128::from(bucket.counted_ms)) * max;
        let missing = (bucket.missing - refilled).max(0);
        let old_window_ms = i128::from(bucket.window_ms);
        // Costs are whole, so comparing with the missing tokens rounded up is exact.
        let left = (max - div_ceil(missing, old_window_ms)).max(0);
        if cost == 0 {
            return Ok(Decision::Looked { remaining: left as i64 });
        }
        if cost > left {
            let excess = bucket.missing - (max - cost) * old_window_ms;
            let enough_at_ms = i128::from(bucket.counted_ms) + div_ceil(excess, max);
            let retry_at_ms = enough_at_ms.min(bucket.deadline_ms.into());
            return Ok(Decision::Refused { retry_after_ms: wait_ms(retry_at_ms, now_ms) });
        }
        let carried = if bucket.window_ms == window_ms {
            missing
        } else {
            div_ceil(missing * i128::from(window_ms), old_window_ms)
        };
        let missing = carried + cost * i128::from(window_ms);
        if missing > MISSING_MAX {
            return Err(counter_overflow());
        }
        let deadline_ms = stored_time_ms(i128::from(counted_ms) + div_ceil(missing, max))?;
        let state = TokenBucket { window_ms, missing, counted_ms, deadline_ms };
        Ok(Decision::Accepted { remaining: (left - cost) as i64, state })
    }
}

/// The quotient of a number that is not negative and a positive one, rounded up.
fn div_ceil(number: i128, divisor: i128) -> i128 {
    number.unsigned_abs().div_ceil(divisor.unsigned_abs()) as i128
}
