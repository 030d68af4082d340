//! What `CONFIG` has every core do.

use std::sync::PoisonError;

use ruvio_shard::keys::KeyStats;

use super::Core;
use super::counters::{CommandStats, Counters};
use super::log::recovery::settings_for_replay;

impl Core {
    /// Takes over the process's configuration.
    pub fn take_configuration(&mut self) {
        self.configuration = self.process.configuration();
        self.shard.keys.settings = self.configuration.settings.clone();
        if self.loading.is_some() {
            self.shard.keys.settings = settings_for_replay(&self.shard.keys.settings);
        }
        self.set_log_durability();
        self.take_script_limits();
        self.update_observed();
        self.check_tracking_limit();
        let mut log = self.process.slow_log.lock().unwrap_or_else(PoisonError::into_inner);
        log.set_max_len(self.configuration.slow_log_max_len);
    }

    /// Starts all counters anew.
    pub fn reset_statistics(&mut self) {
        self.counters = Counters::default();
        self.command_stats.fill_with(CommandStats::default);
        // The number of changes is no statistic: it tells how far the data are from what is saved.
        let dirty = self.shard.keys.stats.dirty;
        self.shard.keys.stats = KeyStats { dirty, ..KeyStats::default() };
    }
}
