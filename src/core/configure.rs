//! What `CONFIG` has every core do.

use std::sync::PoisonError;

use ruvio_shard::keys::KeyStats;

use super::Core;
use super::client::UNCOUNTED_OUTPUT;
use super::counters::{CommandStats, Counters};
use super::log::recovery::settings_for_replay;
use super::serve::PAUSED_UNSENT;
use crate::configuration::OutputClass;

impl Core {
    /// Takes over the process's configuration.
    pub fn take_configuration(&mut self) {
        self.configuration = self.process.configuration();
        self.shard.keys.settings = self.configuration.settings.clone();
        if self.loading.is_some() {
            self.shard.keys.settings = settings_for_replay(&self.shard.keys.settings);
        }
        self.take_output_limits();
        self.take_call_thresholds();
        self.shard.times_evictions = self.configuration.latency_monitor_threshold_ms > 0;
        self.set_log_durability();
        self.take_script_limits();
        self.update_observed();
        self.check_tracking_limit();
        let mut log = self.process.slow_log.lock().unwrap_or_else(PoisonError::into_inner);
        log.set_max_len(self.configuration.slow_log_max_len);
    }

    /// Keeps to the limits of clients' output.
    pub(super) fn take_output_limits(&mut self) {
        let most = |class| match self.configuration.output_limit(class).hard_bytes {
            0 => usize::MAX,
            bytes => usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(UNCOUNTED_OUTPUT),
        };
        let (normal, subscriber) = (most(OutputClass::Normal), most(OutputClass::Subscriber));
        self.most_unsent = normal;
        self.paused_unsent = PAUSED_UNSENT.min(normal.saturating_add(1));
        // A client may become a subscriber, or none, before it has the reply.
        self.shard.keys.settings.most_reply_bytes = normal.max(subscriber);
    }

    /// Keeps to the thresholds of `LATENCY` and of the slow log.
    pub(super) fn take_call_thresholds(&mut self) {
        let configuration = &self.configuration;
        // A negative one is no threshold, as 0 is none of `LATENCY`.
        let slow_us = u64::try_from(configuration.slow_log_slower_than_us).ok();
        let latency_ms = Some(configuration.latency_monitor_threshold_ms).filter(|&threshold_ms| threshold_ms > 0);
        let slow_ns = slow_us.map_or(u64::MAX, |slow_us| slow_us.saturating_mul(1000));
        self.noted_from_ns = latency_ms.map_or(slow_ns, |ms| slow_ns.min(ms.saturating_mul(1_000_000)));
    }

    /// Starts all counters anew.
    pub fn reset_statistics(&mut self) {
        self.counters = Counters { since: self.clock.raw(), ..Counters::default() };
        self.command_stats.fill_with(CommandStats::default);
        // The number of changes is no statistic: it tells how far the data are from what is saved.
        let dirty = self.shard.keys.stats.dirty;
        self.shard.keys.stats = KeyStats { dirty, ..KeyStats::default() };
    }
}
