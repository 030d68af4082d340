//! Active expiry: removes what has expired though nobody asks for it.
//!
//! The sweep walks the tables in order and looks only at blocks marked as having a deadline, so keys without one cost
//! next to nothing. Each call is bounded; the position is kept between calls.

use crate::shard::Shard;

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

/// Finding the next slot with deadlines counts as this many keys, so that slots with few of them are not for free.
const SLOT_COST: usize = 2;

impl Shard {
    /// Looks at up to about `budget` keys from where the last call stopped, and removes those that expired before
    /// `now_ms`. Stops at the end of the keyspace.
    pub fn sweep_expired(&mut self, now_ms: i64, budget: usize) -> Swept {
        let mut swept = Swept::default();
        let mut spent = 0;
        let mut due: Vec<Box<[u8]>> = Vec::new();
        while spent < budget {
            let Some(database) = self.keys.databases().get(self.expiry.database) else {
                self.expiry = Sweep::default();
                swept.wrapped = true;
                return swept;
            };
            let Some((slot, table)) = database
                .next_slot(self.expiry.slot, true)
                .and_then(|slot| database.table(slot).map(|table| (slot, table)))
            else {
                self.expiry = Sweep { database: self.expiry.database + 1, ..Sweep::default() };
                continue;
            };
            if usize::from(slot) != self.expiry.slot {
                self.expiry.slot = slot.into();
                self.expiry.position = 0;
            }
            let (visited, next) = table.scan(self.expiry.position, budget - spent, true, |entry| {
                if entry.deadline_ms().is_some_and(|deadline_ms| deadline_ms <= now_ms) {
                    due.push(entry.key().into());
                }
            });
            swept.examined += visited;
            spent += visited + SLOT_COST;
            self.keys.begin(self.expiry.database, now_ms, Some(slot));
            for key in due.drain(..) {
                swept.expired += usize::from(self.keys.remove_expired(&key));
            }
            match next {
                Some(position) => self.expiry.position = position,
                None => {
                    self.expiry.position = 0;
                    self.expiry.slot += 1;
                }
            }
        }
        swept
    }
}
