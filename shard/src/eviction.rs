//! Eviction: which keys go when memory is at its limit.
//!
//! `maxmemory` speaks for the whole process. A shard evicts its own keys while the process is over the limit and the
//! shard holds more than its even share; a shard below its share leaves the work to those above theirs, which do it in
//! their own turns.

use rand::RngExt;

use crate::access;
use crate::entry::EntryRef;
use crate::events::Class;
use crate::settings::EvictionPolicy;
use crate::shard::Shard;
use crate::slot::SLOTS;

/// How the process measures memory, in bytes.
#[derive(Clone, Copy)]
pub struct MemoryMeter {
    /// What the whole process holds.
    pub total: fn() -> u64,
    /// What this thread's shard holds.
    pub own: fn() -> u64,
    /// Shards of the process.
    pub shards: u64,
}

impl MemoryMeter {
    /// A meter that reads 0: for shards without a limit.
    pub const NONE: MemoryMeter = MemoryMeter { total: || 0, own: || 0, shards: 1 };
}

/// Keys evicted for one command at the most; what is still missing then, the next commands and turns make up for.
const EVICTED_AT_ONCE: usize = 64;

impl Shard {
    /// Makes room under `maxmemory`; false when the limit stands and nothing (more) may be evicted.
    pub(crate) fn make_room(&mut self) -> bool {
        let limit = self.keys.settings.maxmemory;
        if (self.meter.total)() <= limit {
            return true;
        }
        if self.keys.settings.maxmemory_policy == EvictionPolicy::NoEviction {
            return false;
        }
        let share = limit / self.meter.shards;
        for _ in 0..EVICTED_AT_ONCE {
            // Freed piecemeal otherwise, but now the memory is needed.
            self.keys.reclaim(1024);
            if (self.meter.total)() <= limit {
                return true;
            }
            if self.meter.shards > 1 && (self.meter.own)() <= share {
                return true;
            }
            if !self.evict_one() {
                return false;
            }
        }
        true
    }

    /// Evicts in the course of a turn, without a command that asks for it; whether there is more to do.
    pub fn evict_in_turn(&mut self, now_ms: i64) -> bool {
        let settings = &self.keys.settings;
        if settings.maxmemory == 0 || settings.maxmemory_policy == EvictionPolicy::NoEviction {
            return false;
        }
        let limit = settings.maxmemory;
        if (self.meter.total)() <= limit || (self.meter.own)() <= limit / self.meter.shards {
            return false;
        }
        self.keys.begin(0, now_ms, None);
        self.make_room();
        (self.meter.total)() > limit
    }

    /// Evicts the best of a few keys chosen at random; false when there is none that may go.
    fn evict_one(&mut self) -> bool {
        let policy = self.keys.settings.maxmemory_policy;
        let samples = match policy {
            EvictionPolicy::AllKeysRandom | EvictionPolicy::VolatileRandom => 1,
            _ => self.keys.settings.maxmemory_samples.max(1),
        };
        let mut best: Option<(u64, usize, Box<[u8]>)> = None;
        for _ in 0..samples {
            let Some((database, key, score)) = self.sample(policy) else { break };
            if best.as_ref().is_none_or(|(top, ..)| score > *top) {
                best = Some((score, database, key));
            }
        }
        let Some((_, database, key)) = best else { return false };
        let now_ms = self.keys.now_ms();
        self.keys.begin(database, now_ms, None);
        if self.keys.remove(&key) {
            self.keys.stats.evicted += 1;
            self.keys.changed(Class::Evicted, "evicted", &key);
        }
        true
    }

    /// A key that the policy may evict, with its database and how much it deserves it.
    fn sample(&mut self, policy: EvictionPolicy) -> Option<(usize, Box<[u8]>, u64)> {
        let only_marked = policy.is_volatile();
        let databases = self.keys.databases().len();
        let first = self.keys.random.random_range(0..databases);
        for offset in 0..databases {
            let number = (first + offset) % databases;
            if self.keys.databases()[number].is_empty() {
                continue;
            }
            let start = self.keys.random.random_range(0..SLOTS);
            let pick = self.keys.random.random::<u32>() as usize;
            let database = &self.keys.databases()[number];
            for step in 0..SLOTS {
                let Some(table) = database.table(((start + step) % SLOTS) as u16) else { break };
                let candidates = if only_marked { table.marked() } else { table.len() };
                if candidates > 0
                    && let Some(entry) = table.nth(pick % candidates, only_marked)
                {
                    return Some((number, entry.key().into(), self.score(entry, policy)));
                }
            }
        }
        None
    }

    fn score(&self, entry: EntryRef<'_>, policy: EvictionPolicy) -> u64 {
        let now_ms = self.keys.now_ms();
        match policy {
            EvictionPolicy::AllKeysLru | EvictionPolicy::VolatileLru => {
                u64::from(access::idle_s(entry.access(), now_ms))
            }
            EvictionPolicy::AllKeysLfu | EvictionPolicy::VolatileLfu => {
                255 - u64::from(access::frequency(entry.access(), now_ms, &self.keys.settings).min(255))
            }
            EvictionPolicy::VolatileTtl => {
                u64::MAX - entry.deadline_ms().map_or(u64::MAX, |deadline_ms| deadline_ms.max(0) as u64)
            }
            EvictionPolicy::AllKeysRandom | EvictionPolicy::VolatileRandom | EvictionPolicy::NoEviction => 0,
        }
    }
}
