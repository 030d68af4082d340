//! Eviction: which keys go when memory is at its limit.
//!
//! `maxmemory` speaks for the whole process. A shard evicts its own keys while the process is over the limit and its
//! keys take at least as much as those of the average shard; a shard below the average leaves the work to those above
//! it, which do it in their own turns. Shards that hold nothing that may go do not count.

use std::time::{Duration, Instant};

use crate::access;
use crate::entry::EntryRef;
use crate::events::Class;
use crate::settings::{EvictionPolicy, Settings};
use crate::shard::Shard;
use crate::slab;

/// How the process measures memory, in bytes.
#[derive(Clone, Copy)]
pub struct MemoryMeter {
    /// What the whole process holds.
    pub total: fn() -> u64,
    /// Notes what the evictable keys of this thread's shard take; whether that is no less than the average of the shards
    /// that have any.
    pub is_due: fn(u64) -> bool,
}

impl MemoryMeter {
    /// A meter that reads 0: for shards without a limit.
    pub const NONE: MemoryMeter = MemoryMeter { total: || 0, is_due: |_| true };
}

/// Keys evicted for one command at the most; what is still missing then, the next commands and turns make up for.
const EVICTED_AT_ONCE: usize = 64;

/// Keys looked at for one evicted at the most, whatever `maxmemory-samples` says: more make no better choice.
const LARGEST_SAMPLE: usize = 64;

/// Elements of evicted collections freed for one command at the most.
const RECLAIMED_AT_ONCE: usize = 8192;

/// Elements freed between two looks at the meter.
const RECLAIMED_BETWEEN_LOOKS: usize = 256;

impl Shard {
    /// Makes room under `maxmemory`; false when the limit stands and nothing (more) may be evicted. During a pause the
    /// limit does not hold.
    ///
    /// What was removed before, and is freed piecemeal, goes first: no key has to go for memory that is on its way
    /// out. Where that takes longer than one command may, the command goes on.
    pub fn make_room(&mut self) -> bool {
        let limit = self.keys.settings.maxmemory;
        if self.keys.paused || (self.meter.total)() <= limit {
            return true;
        }
        if !self.times_evictions {
            return self.evict_down_to(limit);
        }
        let start = Instant::now();
        let has_room = self.evict_down_to(limit);
        self.longest_eviction = self.longest_eviction.max(start.elapsed());
        has_room
    }

    /// What the longest making of room took since this was asked last, if [`Shard::times_evictions`].
    pub fn take_longest_eviction(&mut self) -> Duration {
        std::mem::take(&mut self.longest_eviction)
    }

    fn evict_down_to(&mut self, limit: u64) -> bool {
        let may_evict = self.keys.settings.maxmemory_policy != EvictionPolicy::NoEviction;
        let mut reclaimed = 0;
        let mut evicted = 0;
        let mut key = Vec::new();
        loop {
            while self.keys.has_remains() {
                if reclaimed >= RECLAIMED_AT_ONCE {
                    return true;
                }
                self.keys.reclaim(RECLAIMED_BETWEEN_LOOKS);
                reclaimed += RECLAIMED_BETWEEN_LOOKS;
                if (self.meter.total)() <= limit {
                    return true;
                }
            }
            if !may_evict {
                return false;
            }
            if evicted == EVICTED_AT_ONCE || !self.is_due() {
                return true;
            }
            if !self.evict_one(&mut key) {
                (self.meter.is_due)(0);
                return false;
            }
            evicted += 1;
            if (self.meter.total)() <= limit {
                return true;
            }
        }
    }

    fn is_due(&self) -> bool {
        (self.meter.is_due)(slab::usage().keyspace_bytes() as u64)
    }

    /// Evicts in the course of a turn, without a command that asks for it; whether there is more to do.
    pub fn evict_in_turn(&mut self, now_ms: i64) -> bool {
        let settings = &self.keys.settings;
        if self.keys.paused || settings.maxmemory == 0 || settings.maxmemory_policy == EvictionPolicy::NoEviction {
            return false;
        }
        let limit = settings.maxmemory;
        if (self.meter.total)() <= limit || !self.is_due() {
            return false;
        }
        self.keys.begin(0, now_ms, None);
        self.make_room() && (self.meter.total)() > limit
    }

    /// Evicts the best of a few keys chosen at random; false when there is none that may go. `best` is room for a key.
    fn evict_one(&mut self, best: &mut Vec<u8>) -> bool {
        let policy = self.keys.settings.maxmemory_policy;
        let samples = match policy {
            EvictionPolicy::AllKeysRandom | EvictionPolicy::VolatileRandom => 1,
            _ => self.keys.settings.maxmemory_samples.clamp(1, LARGEST_SAMPLE),
        };
        let now_ms = self.keys.now_ms();
        let mut top: Option<(u64, usize)> = None;
        for _ in 0..samples {
            self.keys.sample(policy.is_volatile(), |database, entry, settings| {
                let score = score(entry, now_ms, settings);
                if top.is_none_or(|(highest, _)| score > highest) {
                    top = Some((score, database));
                    best.clear();
                    best.extend_from_slice(entry.key());
                }
            });
        }
        let Some((_, database)) = top else { return false };
        self.keys.begin(database, now_ms, None);
        // A key that had expired is gone as soon as it is looked for, and was not evicted.
        if self.keys.remove(best) {
            self.keys.stats.evicted += 1;
            self.keys.changed(Class::Evicted, "evicted", best);
            if let Some(evicted) = &mut self.keys.evicted {
                evicted.push((database, best.as_slice().into()));
            }
        }
        true
    }
}

/// How much an entry deserves to go.
fn score(entry: EntryRef<'_>, now_ms: i64, settings: &Settings) -> u64 {
    match settings.maxmemory_policy {
        EvictionPolicy::AllKeysLru | EvictionPolicy::VolatileLru => u64::from(access::idle_s(entry.access(), now_ms)),
        EvictionPolicy::AllKeysLfu | EvictionPolicy::VolatileLfu => {
            255 - u64::from(access::frequency(entry.access(), now_ms, settings).min(255))
        }
        EvictionPolicy::VolatileTtl => {
            u64::MAX - entry.deadline_ms().map_or(u64::MAX, |deadline_ms| deadline_ms.max(0) as u64)
        }
        EvictionPolicy::AllKeysRandom | EvictionPolicy::VolatileRandom | EvictionPolicy::NoEviction => 0,
    }
}
