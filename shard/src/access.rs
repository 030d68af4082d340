//! Access stamps: 24 bits an entry that say when, or how often, it was used.
//!
//! With an LRU policy (and with none) a stamp is the time in seconds. With an LFU policy it is, as in Redis, 16 bits of
//! minutes and an 8-bit counter that rises with falling probability and decays with time.

use rand::RngExt;
use rand::rngs::SmallRng;

use crate::settings::Settings;

const MASK: u32 = 0xff_ffff;
const LFU_INITIAL: u32 = 5;

#[inline]
fn seconds(now_ms: i64) -> u32 {
    (now_ms / 1000) as u32 & MASK
}

#[inline]
fn minutes(now_ms: i64) -> u32 {
    (now_ms / 60_000) as u32 & 0xffff
}

/// The stamp of a new entry.
#[inline]
pub fn initial(now_ms: i64, settings: &Settings) -> u32 {
    if settings.maxmemory_policy.is_lfu() { minutes(now_ms) << 8 | LFU_INITIAL } else { seconds(now_ms) }
}

/// The stamp of a new entry that was used before, elsewhere: `frequency` counts with an LFU policy, the seconds since it
/// was last used with any other.
pub fn imported(idle_s: Option<u64>, frequency: Option<u8>, now_ms: i64, settings: &Settings) -> u32 {
    match (settings.maxmemory_policy.is_lfu(), frequency, idle_s) {
        (true, Some(frequency), _) => minutes(now_ms) << 8 | u32::from(frequency),
        // A stamp cannot tell more; the longest idle time it can is half a year.
        (false, _, Some(idle_s)) => seconds(now_ms).wrapping_sub(idle_s.min(MASK.into()) as u32) & MASK,
        _ => initial(now_ms, settings),
    }
}

/// The stamp of an entry that is used now.
#[inline]
pub fn touched(stamp: u32, now_ms: i64, settings: &Settings, random: &mut SmallRng) -> u32 {
    if !settings.maxmemory_policy.is_lfu() {
        return seconds(now_ms);
    }
    let mut counter = frequency(stamp, now_ms, settings);
    if counter < 255 {
        let base = counter.saturating_sub(LFU_INITIAL);
        let chance = 1.0 / (f64::from(base) * settings.lfu_log_factor as f64 + 1.0);
        if random.random::<f64>() < chance {
            counter += 1;
        }
    }
    minutes(now_ms) << 8 | counter
}

/// The frequency counter of a stamp, decayed to now.
pub fn frequency(stamp: u32, now_ms: i64, settings: &Settings) -> u32 {
    let counter = stamp & 0xff;
    if settings.lfu_decay_time == 0 {
        return counter;
    }
    let elapsed = minutes(now_ms).wrapping_sub(stamp >> 8) & 0xffff;
    counter.saturating_sub((u64::from(elapsed) / settings.lfu_decay_time) as u32)
}

/// Seconds since the last use, of a stamp that holds a time.
pub fn idle_s(stamp: u32, now_ms: i64) -> u32 {
    seconds(now_ms).wrapping_sub(stamp) & MASK
}
