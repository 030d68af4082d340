//! What a core does by itself: expiry, eviction, freeing, and looking after its clients.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Core;
use super::client::{ClientKey, UNCOUNTED_OUTPUT};
use super::counters::Sample;
use super::loading::Loading;
use crate::configuration::OutputClass;
use crate::memory;

/// Ticks of a core in a second.
pub const TICKS_A_SECOND: i64 = 10;

/// Milliseconds between ticks.
const TICK_MS: i64 = 1000 / TICKS_A_SECOND;

/// What background work may take of a turn, in ns.
const BACKGROUND_NS: u64 = 500_000;

/// The same while clients are served: a request waits for no more than this.
const BACKGROUND_BESIDE_CLIENTS_NS: u64 = 100_000;

/// How long the core rests from making a checkpoint after each part of it while clients are served, in ns. Nobody waits for a
/// checkpoint, and whoever writes it and the log need the processors too.
const CHECKPOINT_REST_NS: u64 = 100_000;

/// Clients are taken to be served for this long after something came from one, in ms.
const SERVING_MS: i64 = 20;

/// Keys that expiry looks at, and elements that freeing frees, before the clock is asked again.
const STEP: usize = 256;

impl Core {
    /// Whether there is work that does not wait for an event.
    fn has_background_work(&self) -> bool {
        self.background_rest_ns().is_some()
    }

    /// How long background work waits if no event comes, in ns; `None` when there is none.
    pub(super) fn background_rest_ns(&self) -> Option<u64> {
        let is_urgent = self.expiring
            || self.shard.keys.has_remains()
            || self.tracked.has_work()
            || self.loading.as_ref().is_some_and(Loading::is_active);
        if is_urgent {
            Some(0)
        } else if self.has_checkpoint_work() {
            Some(if self.is_serving() { CHECKPOINT_REST_NS } else { 0 })
        } else {
            None
        }
    }

    /// Whether clients have sent something of late.
    fn is_serving(&self) -> bool {
        self.now_ms - self.served_ms < SERVING_MS
    }

    /// Does background work for a bounded time.
    pub(super) fn background(&mut self) {
        if !self.has_background_work() {
            return;
        }
        if self.loading.as_ref().is_some_and(Loading::is_active) {
            self.load();
            return;
        }
        let start = self.clock.raw();
        let allowed_ns = if self.is_serving() { BACKGROUND_BESIDE_CLIENTS_NS } else { BACKGROUND_NS };
        let in_time = |core: &Core| core.clock.delta_as_nanos(start, core.clock.raw()) < allowed_ns;
        while self.shard.keys.has_remains() && in_time(self) {
            self.shard.keys.reclaim(STEP);
        }
        if self.expiring {
            let start = self.clock.raw();
            while self.expiring && in_time(self) {
                self.sweep();
            }
            self.note_latency_since("expire-cycle", start);
        }
        while self.has_checkpoint_work() && in_time(self) && self.advance_checkpoint() {}
        while self.tracked.has_work() && in_time(self) {
            self.tracked.reads.reclaim(STEP);
            self.limit_reads(STEP);
        }
    }

    /// Has `LATENCY` know how long something took that began at `start` of the core's clock, if it took long.
    fn note_latency_since(&mut self, event: &'static str, start: u64) {
        if self.configuration.latency_monitor_threshold_ms > 0 {
            let duration_ns = self.clock.delta_as_nanos(start, self.clock.raw());
            self.note_latency(event, duration_ns / 1_000_000);
        }
    }

    /// Has `LATENCY` know how long something took, if it took long.
    pub(super) fn note_latency(&mut self, event: &'static str, duration_ms: u64) {
        let threshold_ms = self.configuration.latency_monitor_threshold_ms;
        if threshold_ms > 0 && duration_ms >= threshold_ms {
            self.latency_events.record(event, self.now_ms / 1000, duration_ms);
        }
    }

    /// Has `LATENCY` know what took longest since the last tick of evictions, writes and syncs, if it took long.
    fn note_background_latency(&mut self) {
        let evictions = self.shard.take_longest_eviction();
        self.note_latency("eviction-cycle", evictions.as_millis() as u64);
        let Some(log) = &mut self.log else { return };
        let longest = log.writer.take_longest();
        let alone = if log.checkpoints.is_busy() { "aof-write-active-child" } else { "aof-write-alone" };
        self.note_latency("aof-write", longest.write_ms.max(longest.write_beside_sync_ms));
        self.note_latency(alone, longest.write_ms);
        self.note_latency("aof-write-pending-fsync", longest.write_beside_sync_ms);
        self.note_latency("aof-fsync-always", longest.awaited_sync_ms);
    }

    /// Looks for expired keys once; goes on in the next turns while it finds many.
    fn sweep(&mut self) {
        let swept = self.shard.sweep_expired(self.now_ms, STEP);
        // Redis goes on while a tenth of what it looked at had expired.
        self.expiring = !swept.wrapped && swept.expired * 10 > swept.examined;
    }

    /// Notes that a tick has come, and what there is then.
    pub(super) fn count_tick(&mut self) {
        self.next_tick_ms = self.now_ms + TICK_MS;
        // Notes what this core holds, too.
        self.process.peak_memory.fetch_max(memory::used(), Ordering::Relaxed);
        self.counters.rates.push(Sample {
            time_ms: self.now_ms,
            commands: self.counters.commands,
            bytes_in: self.counters.bytes_in,
            bytes_out: self.counters.bytes_out,
            turns: self.counters.turns,
            busy_ns: self.busy_ns(),
        });
    }

    /// Nanoseconds spent in turns: all that were not spent waiting for the next one.
    pub fn busy_ns(&self) -> u64 {
        let all_ns = self.clock.delta_as_nanos(self.counters.since, self.clock.raw());
        all_ns.saturating_sub(self.counters.idle_ns)
    }

    /// Work of every tenth of a second.
    pub(super) fn tick(&mut self) {
        self.count_tick();
        // While data is read, time is that of its records.
        if self.loading.is_some() {
            self.look_after_clients();
            return;
        }
        if self.pause.is_some() {
            self.expiring = false;
        } else if self.configuration.settings.active_expire {
            let start = self.clock.raw();
            let effort = self.configuration.settings.active_expire_effort;
            // Up to a hundredth of the time with the lowest effort, when little has expired.
            let allowed_ns = 1_000_000 * effort;
            loop {
                let swept = self.shard.sweep_expired(self.now_ms, STEP);
                if swept.wrapped {
                    self.expiring = false;
                    break;
                }
                if self.clock.delta_as_nanos(start, self.clock.raw()) >= allowed_ns {
                    self.expiring = swept.expired * 10 > swept.examined;
                    self.counters.expire_time_cap_reached += u64::from(self.expiring);
                    break;
                }
            }
            self.note_latency_since("expire-cycle", start);
        }
        self.shard.evict_in_turn(self.now_ms);
        self.note_background_latency();
        self.after_command(None);
        self.tick_log();
        self.check_tracking_limit();
        self.forget_scripts();
        self.look_after_clients();
    }

    /// Ends connections that have been idle too long, or that let too much output pile up.
    pub(super) fn look_after_clients(&mut self) {
        self.shrink_idle_input();
        let in_ms = |seconds: u64| i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
        let timeout_ms = in_ms(self.configuration.timeout_s);
        let configuration = Arc::clone(&self.configuration);
        let normal = configuration.output_limit(OutputClass::Normal);
        let others = self.process.monitors.load(Ordering::Relaxed) > 0 || !self.process.subscriber_counts.is_empty();
        if timeout_ms == 0 && normal.hard_bytes == 0 && normal.soft_bytes == 0 && !others {
            return;
        }
        let now_ms = self.now_ms;
        let mut idle: Vec<ClientKey> = Vec::new();
        let mut over: Vec<ClientKey> = Vec::new();
        let keys: Vec<ClientKey> = self.clients.iter().map(|(key, _)| key).collect();
        for key in keys {
            let Some(client) = self.clients.get_mut(key) else { continue };
            // What a monitor or a subscriber is sent does not depend on what it reads; another client is paused.
            let class = client.output_class();
            let limit = configuration.output_limit(class);
            let uncounted = if class == OutputClass::Normal { UNCOUNTED_OUTPUT } else { 0 };
            let unsent = client.unsent().saturating_sub(uncounted) as u64;
            if limit.soft_bytes > 0 && unsent > limit.soft_bytes {
                let since = *client.over_soft_limit_since_ms.get_or_insert(now_ms);
                if now_ms - since > in_ms(limit.soft_seconds) {
                    over.push(key);
                    continue;
                }
            } else {
                client.over_soft_limit_since_ms = None;
            }
            if limit.hard_bytes > 0 && unsent > limit.hard_bytes {
                over.push(key);
            } else if timeout_ms > 0
                && class == OutputClass::Normal
                && !client.postponed
                && !client.writing
                && now_ms - client.active_ms > timeout_ms
            {
                idle.push(key);
            }
        }
        self.counters.output_limit_disconnections += over.len() as u64;
        for key in over.into_iter().chain(idle) {
            self.close(key);
        }
    }
}
