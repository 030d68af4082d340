//! Active expiry: removes what has expired though nobody asks for it.
//!
//! The sweep walks the tables in order and looks only at blocks marked as having a deadline, so keys without one cost
//! next to nothing. Hashes with fields that expire are listed by their earliest deadline, so only those that are due are
//! looked at. Each call is bounded; the position is kept between calls.

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
    /// Keys looked at, and fields removed.
    pub examined: usize,
    /// Keys and fields removed.
    pub expired: usize,
    /// Whether the sweep passed the end of the keyspace, with no field left that is due, and starts anew.
    pub wrapped: bool,
}

/// Finding the next slot with deadlines counts as this many keys, so that slots with few of them are not for free.
const SLOT_COST: usize = 2;

/// Finding a hash with fields that are due counts as this many fields.
const HASH_COST: usize = 2;

impl Shard {
    /// Removes fields of hashes and keys that expired before `now_ms`: up to about half of `budget` fields, and looks
    /// with the rest of it at keys from where the last call stopped. Stops at the end of the keyspace.
    pub fn sweep_expired(&mut self, now_ms: i64, budget: usize) -> Swept {
        let mut swept = Swept::default();
        let mut spent = self.sweep_fields(now_ms, budget.div_ceil(2), &mut swept);
        let mut due: Vec<Box<[u8]>> = Vec::new();
        while spent < budget {
            let Some(database) = self.keys.databases().get(self.expiry.database) else {
                self.expiry = Sweep::default();
                swept.wrapped = !self.has_due_fields(now_ms);
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

    fn has_due_fields(&self, now_ms: i64) -> bool {
        self.keys.databases().iter().any(|database| database.first_due(now_ms).is_some())
    }

    /// Removes fields that are due until about `budget` is spent; how much was.
    fn sweep_fields(&mut self, now_ms: i64, budget: usize, swept: &mut Swept) -> usize {
        let gone = |shard: &Shard| shard.keys.stats.expired + shard.keys.stats.expired_fields;
        let mut spent = 0;
        for number in 0..self.keys.databases().len() {
            while spent < budget
                && let Some(due) = self.keys.databases()[number].first_due(now_ms)
            {
                let before = gone(self);
                self.keys.begin(number, now_ms, Some(due.slot()));
                self.keys.expire_due(due, budget - spent);
                let expired = (gone(self) - before) as usize;
                swept.examined += expired;
                swept.expired += expired;
                spent += expired + HASH_COST;
            }
        }
        spent
    }
}
