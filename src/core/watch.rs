//! Keys that clients watch (`WATCH`), on the core that owns them.

use std::collections::HashMap;

use super::Core;
use super::mailbox::Message;
use super::waiting::DatabaseKey;

/// What a client watches on this core.
#[derive(Default)]
struct Watcher {
    keys: Vec<DatabaseKey>,
    /// Whether one of them has changed.
    touched: bool,
}

/// All that is watched on a core, by the clients' process-wide numbers.
#[derive(Default)]
pub struct Watches {
    by_key: HashMap<DatabaseKey, Vec<u64>>,
    watchers: HashMap<u64, Watcher>,
}

impl Watches {
    /// Whether nothing is watched.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.watchers.is_empty()
    }

    fn add(&mut self, client: u64, database: usize, key: &[u8]) {
        let key: DatabaseKey = (database, key.into());
        let clients = self.by_key.entry(key.clone()).or_default();
        if !clients.contains(&client) {
            clients.push(client);
            self.watchers.entry(client).or_default().keys.push(key);
        }
    }

    fn remove(&mut self, client: u64) -> Option<Watcher> {
        let watcher = self.watchers.remove(&client)?;
        for key in &watcher.keys {
            if let Some(clients) = self.by_key.get_mut(key) {
                clients.retain(|other| *other != client);
                if clients.is_empty() {
                    self.by_key.remove(key);
                }
            }
        }
        Some(watcher)
    }

    /// Notes that a key has changed.
    pub(super) fn note_change(&mut self, database: usize, key: &[u8]) {
        if let Some(clients) = self.by_key.get(&(database, key.into())) {
            for client in clients {
                if let Some(watcher) = self.watchers.get_mut(client) {
                    watcher.touched = true;
                }
            }
        }
    }
}

impl Core {
    /// Has client number `client` watch keys that this core owns.
    pub(super) fn watch_here(&mut self, client: u64, database: usize, keys: &[Box<[u8]>]) {
        self.shard.keys.begin(database, self.now_ms, None);
        for key in keys {
            // What has expired goes now, so that its going is no change later.
            self.shard.keys.contains(key);
        }
        self.after_command(None);
        for key in keys {
            self.watches.add(client, database, key);
        }
        self.update_observed();
    }

    /// Has client number `client` find that what it watches has changed, because a script runs that nobody can see into.
    pub(super) fn watch_busy(&mut self, client: u64) {
        self.watches.watchers.entry(client).or_default().touched = true;
    }

    /// Ends what a client watches on this core.
    pub(super) fn unwatch_here(&mut self, client: u64) {
        if self.watches.remove(client).is_some() {
            self.update_observed();
        }
    }

    /// Ends what a client watches here; whether none of it has changed.
    pub(super) fn end_watch(&mut self, client: u64) -> bool {
        let Some(watcher) = self.watches.watchers.get(&client) else { return true };
        for (database, key) in watcher.keys.clone() {
            // A key that has expired since has changed.
            self.shard.keys.begin(database, self.now_ms, None);
            self.shard.keys.contains(&key);
        }
        self.after_command(None);
        let untouched = self.watches.remove(client).is_none_or(|watcher| !watcher.touched);
        self.update_observed();
        untouched
    }

    /// Notes that the keys of a database are about to be replaced as a whole by those of `other`, or to go.
    pub(super) fn touch_database(&mut self, database: usize, other: Option<usize>) {
        let watched: Vec<DatabaseKey> =
            self.watches.by_key.keys().filter(|(watched, _)| *watched == database).cloned().collect();
        for (_, key) in watched {
            let mut is_there = false;
            for place in [Some(database), other].into_iter().flatten() {
                self.shard.keys.begin(place, self.now_ms, None);
                is_there |= self.shard.keys.contains(&key);
            }
            if is_there {
                self.watches.note_change(database, &key);
            }
        }
    }

    /// Ends what a client watches on core `owner`.
    pub(super) fn unwatch_at(&mut self, owner: usize, client: u64) {
        if owner == self.number {
            self.unwatch_here(client);
        } else {
            self.send(owner, Message::Task(Box::new(move |core: &mut Core| core.unwatch_here(client))));
        }
    }
}
