//! The keyspace of a shard, as command handlers see it.
//!
//! Look-ups remove what has expired, so a handler never meets an expired key. [`Keys::find`] is for reading: it counts
//! hits and misses and notes the access. [`Keys::find_mut`] is for changing. Every change that a client could notice is
//! told to [`Keys::changed`], once a key: what follows from a change (log, watched keys, notifications) hangs there.

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::access;
use crate::entry::{Entry, EntryRef, Kind};
use crate::error::CommandError;
use crate::events::Class;
use crate::hash_key;
use crate::object::Object;
use crate::settings::Settings;
use crate::slot::{SLOTS, key_slot};
use crate::table::{BlockMut, Position, Table};

/// An entry borrowed to be changed.
pub type EntryMut<'a> = BlockMut<'a, Entry>;

/// Collections up to this many elements are freed on the spot, larger ones piecemeal by [`Keys::reclaim`].
const FREED_AT_ONCE: usize = 64;

/// One of a shard's databases: a table a slot.
#[derive(Default)]
pub struct Database {
    /// Empty until the first key comes.
    slots: Vec<Table<Entry>>,
    len: usize,
}

impl Database {
    /// Number of keys, expired ones included that nobody has noticed yet.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of keys with a deadline.
    pub fn with_deadline(&self) -> usize {
        self.slots.iter().map(Table::marked).sum()
    }

    /// The table of `slot`, unless the database was never used.
    pub fn table(&self, slot: u16) -> Option<&Table<Entry>> {
        self.slots.get(slot as usize)
    }

    fn table_mut(&mut self, slot: u16) -> &mut Table<Entry> {
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, Table::new);
        }
        &mut self.slots[slot as usize]
    }

    /// Makes the tables of an unused database, so that the first key does not have to.
    pub fn prepare(&mut self) {
        self.table_mut(0);
    }
}

/// What a shard counts about its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyStats {
    /// Look-ups for reading that found their key.
    pub hits: u64,
    /// Look-ups for reading that did not.
    pub misses: u64,
    /// Keys removed because they had expired.
    pub expired: u64,
    /// Keys removed to make room.
    pub evicted: u64,
    /// Objects freed piecemeal.
    pub lazy_freed: u64,
    /// Changes since the start.
    pub dirty: u64,
}

/// The databases of a shard, and the time and database of the call in progress.
pub struct Keys {
    databases: Vec<Database>,
    selected: usize,
    /// The slot that every key of the call belongs to, where that is known.
    slot: Option<u16>,
    now_ms: i64,
    /// Settings that commands depend on.
    pub settings: Settings,
    /// Counters.
    pub stats: KeyStats,
    /// For commands that choose at random, and for eviction.
    pub random: SmallRng,
    /// Whether reading leaves access stamps as they are (`CLIENT NO-TOUCH`).
    pub no_touch: bool,
    remains: Vec<Remains>,
}

/// Something large on its way out.
enum Remains {
    Object(Box<Object>),
    Tables(Vec<Table<Entry>>),
}

impl Keys {
    /// `databases` empty databases. `seed` makes everything random repeatable.
    pub fn new(databases: usize, settings: Settings, seed: u64) -> Keys {
        let mut keys = Keys {
            databases: Vec::new(),
            selected: 0,
            slot: None,
            now_ms: 0,
            settings,
            stats: KeyStats::default(),
            random: SmallRng::seed_from_u64(seed),
            no_touch: false,
            remains: Vec::new(),
        };
        keys.databases.resize_with(databases.max(1), Database::default);
        keys.databases[0].prepare();
        keys
    }

    /// Sets what the next look-ups go by: the database, the time in ms since the epoch, and the slot that all keys
    /// belong to, where that is known.
    #[inline]
    pub fn begin(&mut self, database: usize, now_ms: i64, slot: Option<u16>) {
        debug_assert!(database < self.databases.len());
        self.selected = database;
        self.now_ms = now_ms;
        self.slot = slot;
    }

    /// The time of the call in progress, in ms since the epoch.
    #[inline]
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// The number of the selected database.
    #[inline]
    pub fn selected(&self) -> usize {
        self.selected
    }

    /// The databases.
    pub fn databases(&self) -> &[Database] {
        &self.databases
    }

    /// Works in another database for a moment: returns the one selected before.
    pub fn select(&mut self, database: usize) -> usize {
        debug_assert!(database < self.databases.len());
        std::mem::replace(&mut self.selected, database)
    }

    #[inline]
    fn slot_of(&self, key: &[u8]) -> u16 {
        match self.slot {
            Some(slot) => {
                debug_assert_eq!(slot, key_slot(key));
                slot
            }
            None => key_slot(key),
        }
    }

    #[inline]
    fn locate(&mut self, key: &[u8]) -> Option<(u16, Position)> {
        let slot = self.slot_of(key);
        let table = self.databases[self.selected].slots.get(slot as usize)?;
        let position = table.find(hash_key(key), key)?;
        if table.at(position).deadline_ms().is_some_and(|deadline_ms| deadline_ms <= self.now_ms) {
            self.expire_at(slot, position);
            return None;
        }
        Some((slot, position))
    }

    #[cold]
    fn expire_at(&mut self, slot: u16, position: Position) {
        let entry = self.remove_at(slot, position);
        self.stats.expired += 1;
        self.changed(Class::Expired, "expired", entry.view().key());
        self.discard(entry);
    }

    #[inline]
    fn remove_at(&mut self, slot: u16, position: Position) -> Entry {
        let database = &mut self.databases[self.selected];
        database.len -= 1;
        database.slots[slot as usize].remove(position)
    }

    /// Finds a key for reading: counts a hit or a miss, and notes the access.
    #[inline]
    pub fn find(&mut self, key: &[u8]) -> Option<EntryRef<'_>> {
        let Some((slot, position)) = self.locate(key) else {
            self.stats.misses += 1;
            return None;
        };
        self.stats.hits += 1;
        let touch = !self.no_touch;
        let table = &mut self.databases[self.selected].slots[slot as usize];
        if touch {
            let stamp = table.at(position).access();
            let stamped = access::touched(stamp, self.now_ms, &self.settings, &mut self.random);
            if stamped != stamp {
                table.at_mut(position).set_access(stamped);
            }
        }
        Some(table.at(position))
    }

    /// Finds a key for reading, and its type must be `kind`.
    #[inline]
    pub fn find_kind(&mut self, key: &[u8], kind: Kind) -> Result<Option<EntryRef<'_>>, CommandError> {
        match self.find(key) {
            Some(entry) if entry.kind() != kind => Err(CommandError::WRONG_TYPE),
            found => Ok(found),
        }
    }

    /// Finds a key without counting or noting anything.
    #[inline]
    pub fn peek(&mut self, key: &[u8]) -> Option<EntryRef<'_>> {
        let (slot, position) = self.locate(key)?;
        Some(self.databases[self.selected].slots[slot as usize].at(position))
    }

    /// Finds a key to change it; the access is noted.
    #[inline]
    pub fn find_mut(&mut self, key: &[u8]) -> Option<EntryMut<'_>> {
        let (slot, position) = self.locate(key)?;
        let mut entry = self.databases[self.selected].slots[slot as usize].at_mut(position);
        let stamp = entry.view().access();
        let stamped = access::touched(stamp, self.now_ms, &self.settings, &mut self.random);
        if stamped != stamp {
            entry.set_access(stamped);
        }
        Some(entry)
    }

    /// Finds a key to change it, and its type must be `kind`.
    #[inline]
    pub fn find_mut_kind(&mut self, key: &[u8], kind: Kind) -> Result<Option<EntryMut<'_>>, CommandError> {
        match self.find_mut(key) {
            Some(entry) if entry.view().kind() != kind => Err(CommandError::WRONG_TYPE),
            found => Ok(found),
        }
    }

    /// Whether a key is there; nothing is counted.
    #[inline]
    pub fn contains(&mut self, key: &[u8]) -> bool {
        self.locate(key).is_some()
    }

    /// The access stamp for an entry made now.
    #[inline]
    pub fn new_access(&self) -> u32 {
        access::initial(self.now_ms, &self.settings)
    }

    /// Adds an entry, or replaces the one with its key altogether.
    #[inline]
    pub fn put(&mut self, entry: Entry) {
        let key = entry.view().key();
        match self.locate(key) {
            Some((slot, position)) => {
                let mut place = self.databases[self.selected].slots[slot as usize].at_mut(position);
                let old = std::mem::replace(&mut *place, entry);
                drop(place);
                self.discard(old);
            }
            None => self.add(entry),
        }
    }

    /// Adds an entry whose key is not there.
    #[inline]
    pub fn add(&mut self, entry: Entry) {
        let key = entry.view().key();
        let (slot, hash) = (self.slot_of(key), hash_key(key));
        let database = &mut self.databases[self.selected];
        database.table_mut(slot).insert(hash, entry);
        database.len += 1;
    }

    /// Takes an entry out.
    pub fn take(&mut self, key: &[u8]) -> Option<Entry> {
        let (slot, position) = self.locate(key)?;
        Some(self.remove_at(slot, position))
    }

    /// Removes a key; whether it was there. The caller tells [`Keys::changed`].
    #[inline]
    pub fn remove(&mut self, key: &[u8]) -> bool {
        match self.take(key) {
            Some(entry) => {
                self.discard(entry);
                true
            }
            None => false,
        }
    }

    /// Frees an entry: at once when it is small, else piecemeal.
    #[inline]
    pub fn discard(&mut self, mut entry: Entry) {
        if entry.view().object().is_some_and(|object| object.elements() > FREED_AT_ONCE)
            && let Some(object) = entry.take_object()
        {
            self.stats.lazy_freed += 1;
            self.remains.push(Remains::Object(object));
        }
    }

    /// Frees about `budget` elements of what waits to be freed; true when nothing is left.
    pub fn reclaim(&mut self, budget: usize) -> bool {
        let mut left = budget;
        while left > 0 {
            match self.remains.last_mut() {
                None => return true,
                Some(Remains::Object(object)) => {
                    let before = object.elements();
                    if object.reclaim(left) {
                        self.remains.pop();
                    }
                    left = left.saturating_sub(before.min(left).max(1));
                }
                Some(Remains::Tables(tables)) => match tables.last_mut() {
                    None => {
                        self.remains.pop();
                    }
                    Some(table) => {
                        let mut entries = Vec::new();
                        if table.drain_some(left, |entry| entries.push(entry)) {
                            tables.pop();
                        }
                        left = left.saturating_sub(entries.len() + 1);
                        for entry in entries {
                            self.discard_drained(entry);
                        }
                    }
                },
            }
        }
        self.remains.is_empty()
    }

    /// Like `discard`, but below the tables being drained, so that those stay on top of the stack.
    fn discard_drained(&mut self, mut entry: Entry) {
        if entry.view().object().is_some_and(|object| object.elements() > FREED_AT_ONCE)
            && let Some(object) = entry.take_object()
        {
            self.stats.lazy_freed += 1;
            self.remains.insert(0, Remains::Object(object));
        }
    }

    /// Whether something waits to be freed.
    pub fn has_remains(&self) -> bool {
        !self.remains.is_empty()
    }

    /// Objects that wait to be freed.
    pub fn pending_remains(&self) -> usize {
        self.remains.len()
    }

    /// Notes that `key` of the selected database changed in a way that clients can see.
    #[inline]
    pub fn changed(&mut self, _class: Class, _event: &'static str, _key: &[u8]) {
        self.stats.dirty += 1;
    }

    /// Removes every key of database `database`; returns how many there were. Memory is freed piecemeal.
    pub fn flush(&mut self, database: usize) -> usize {
        let taken = std::mem::take(&mut self.databases[database]);
        if database == 0 {
            self.databases[0].prepare();
        }
        self.stats.dirty += taken.len as u64;
        if !taken.slots.is_empty() {
            self.remains.push(Remains::Tables(taken.slots));
        }
        taken.len
    }

    /// Exchanges two databases.
    pub fn swap_databases(&mut self, one: usize, other: usize) {
        self.databases.swap(one, other);
        self.stats.dirty += 1;
    }

    /// The table of `slot` in the selected database.
    pub fn table(&self, slot: u16) -> Option<&Table<Entry>> {
        self.databases[self.selected].table(slot)
    }

    /// Removes `key` of the selected database when it has expired; whether it did.
    pub fn remove_expired(&mut self, key: &[u8]) -> bool {
        let expired = self.stats.expired;
        self.slot = None;
        self.locate(key);
        self.stats.expired > expired
    }

    /// Asks the processor to load where the word for `key` is.
    #[inline]
    pub fn prefetch_word(&self, database: usize, slot: u16, hash: u64) {
        if let Some(table) = self.databases[database].slots.get(slot as usize) {
            table.prefetch_word(hash);
        }
    }

    /// Asks the processor to load the entry of a key.
    #[inline]
    pub fn prefetch_entry(&self, database: usize, slot: u16, hash: u64) {
        if let Some(table) = self.databases[database].slots.get(slot as usize) {
            table.prefetch_block(hash);
        }
    }
}
