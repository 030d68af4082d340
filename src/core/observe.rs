//! What follows from changes of keys: watched keys are touched, those who wait for a key are served,
//! those who keep copies are told, and notifications are published.

use std::ops::Range;

use ruvio_shard::events::Class;

use super::Core;
use super::waiting::Place;

impl Core {
    /// Has the shard note what somebody wants to know, and nothing else.
    pub(super) fn update_observed(&mut self) {
        let mut observed = self.notified();
        observed.changes |= !self.watches.is_empty() || !self.waiting.is_empty() || self.tracked.observes();
        self.shard.keys.observed = observed;
    }

    /// To be called when a command of the client `maker`, or background work, has ended.
    #[inline]
    pub(super) fn after_command(&mut self, maker: Option<Place>) {
        if self.shard.keys.has_changes() {
            self.observe_changes(maker);
            self.serve_ready();
        }
    }

    /// Removes a key that no command removes, and sees to all that follows from it.
    pub fn delete_key(&mut self, database: usize, key: &[u8]) {
        self.shard.keys.begin(database, self.now_ms, None);
        if self.shard.keys.remove(key) {
            self.shard.keys.changed(Class::Generic, "del", key);
            self.log_deletion(database, key);
            self.after_command(None);
        }
    }

    /// Removes every key of databases, and sees to all that follows from it on this core.
    pub fn flush_databases(&mut self, databases: Range<usize>) {
        for database in databases {
            self.touch_database(database, None);
            if self.shard.keys.flush(database) > 0 {
                self.log_flush(database);
            }
        }
        self.forget_reads();
    }

    /// Exchanges two databases, and all that follows from it.
    pub fn swap_databases(&mut self, one: usize, other: usize) {
        if one == other {
            return;
        }
        self.touch_database(one, Some(other));
        self.touch_database(other, Some(one));
        self.shard.keys.swap_databases(one, other);
        self.log_swap(one, other);
        self.waiting.note_database(one);
        self.waiting.note_database(other);
        // After a script they are served when it has ended.
        if self.running_script().is_none() {
            self.serve_ready();
        }
    }

    /// Tells those who observe of the changes so far, which a command of the client `maker` made.
    pub(super) fn observe_changes(&mut self, maker: Option<Place>) {
        for change in self.shard.keys.take_changes() {
            // A look-up that finds nothing changes nothing.
            if !matches!(change.class, Class::New | Class::Miss) {
                self.watches.note_change(change.database, &change.key);
                if !self.waiting.is_empty() {
                    self.waiting.note_change(change.database, &change.key);
                }
                if self.tracked.observes() {
                    self.invalidate(&change, maker);
                }
            }
            self.notify(&change);
        }
    }
}
