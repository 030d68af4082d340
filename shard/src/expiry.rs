//! Active expiry: removes what has expired though nobody asks for it.
//!
//! The sweep walks the tables in order and looks only at blocks marked as having a deadline, so keys without one cost
//! next to nothing. Each call is bounded; the position is kept between calls.

use crate::shard::Shard;
use crate::slot::SLOTS;

/// Where the sweep is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sweep {
    database: usize,
    slot: usize,
    position: u64,
}

/// What one call of [`Shard::sweep_expired`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Keys looked at.
    pub examined: usize,
    /// Keys removed.
    pub expired: usize,
    /// Whether the sweep passed the end of the keyspace and starts anew.
    pub wrapped: bool,
}

/// A slot without deadlines counts as this fraction of a key.
const EMPTY_SLOTS_A_KEY: usize = 32;

impl Shard {
    /// Looks at up to about `budget` keys from where the last call stopped, and removes those that expired before
    /// `now_ms`. Stops at the end of the keyspace.
    pub fn sweep_expired(&mut self, now_ms: i64, budget: usize) -> Swept {
        let mut swept = Swept::default();
        let mut empty_slots = 0;
        let mut due: Vec<Box<[u8]>> = Vec::new();
        while swept.examined + empty_slots / EMPTY_SLOTS_A_KEY < budget {
            let Some(database) = self.keys.databases().get(self.expiry.database) else {
                self.expiry = Sweep::default();
                swept.wrapped = true;
                return swept;
            };
            let table = if database.is_empty() { None } else { database.table(self.expiry.slot as u16) };
            let Some(table) = table else {
                self.expiry.slot = 0;
                self.expiry.position = 0;
                self.expiry.database += 1;
                continue;
            };
            let next = if table.marked() == 0 {
                empty_slots += 1;
                None
            } else {
                let (visited, next) = table.scan(self.expiry.position, budget - swept.examined, true, |entry| {
                    if entry.deadline_ms().is_some_and(|deadline_ms| deadline_ms <= now_ms) {
                        due.push(entry.key().into());
                    }
                });
                swept.examined += visited;
                next
            };
            self.keys.begin(self.expiry.database, now_ms, Some(self.expiry.slot as u16));
            for key in due.drain(..) {
                swept.expired += usize::from(self.keys.remove_expired(&key));
            }
            match next {
                Some(position) => self.expiry.position = position,
                None => {
                    self.expiry.position = 0;
                    self.expiry.slot += 1;
                    if self.expiry.slot == SLOTS {
                        self.expiry.slot = 0;
                        self.expiry.database += 1;
                    }
                }
            }
        }
        swept
    }
}
