//! What follows from changes of keys: notifications.

use super::Core;

impl Core {
    /// Has the shard note what somebody wants to know, and nothing else.
    pub(super) fn update_observed(&mut self) {
        self.shard.keys.observed = self.notified();
    }

    /// To be called when a command or background work has ended.
    #[inline]
    pub(super) fn after_command(&mut self) {
        if self.shard.keys.has_changes() {
            self.observe_changes();
        }
    }

    /// Tells those who observe of the changes so far.
    pub(super) fn observe_changes(&mut self) {
        for change in self.shard.keys.take_changes() {
            self.notify(&change);
        }
    }
}
