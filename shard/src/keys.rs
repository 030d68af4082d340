//! The keyspace of a shard, as command handlers see it.
//!
//! Look-ups remove what has expired, so a handler never meets an expired key. [`Keys::find`] is for reading: it counts
//! hits and misses and notes the access. [`Keys::find_mut`] is for changing. Every change that a client could notice is
//! told to [`Keys::changed`], once a key: what follows from a change (log, watched keys, notifications) hangs there.

use std::ops::RangeInclusive;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::access;
use crate::changes::{Change, Observed};
use crate::entry::{Entry, EntryRef, Kind};
use crate::error::CommandError;
use crate::events::Class;
use crate::hash_key;
use crate::image::Image;
use crate::remains::Remains;
use crate::settings::Settings;
use crate::slot::{SLOTS, key_slot};
use crate::table::{Position, Table};

pub use crate::database::{Database, EntryMut};
pub use images::Walk;

mod fields;
mod images;

/// What a shard counts about its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyStats {
    /// Look-ups for reading that found their key.
    pub hits: u64,
    /// Look-ups for reading that did not.
    pub misses: u64,
    /// Keys removed because they had expired.
    pub expired: u64,
    /// Fields of hashes removed because they had expired.
    pub expired_fields: u64,
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
    /// The slots whose keys this shard owns.
    pub owned_slots: RangeInclusive<u16>,
    /// Counters.
    pub stats: KeyStats,
    /// For commands that choose at random, and for eviction.
    pub random: SmallRng,
    /// Whether reading leaves access stamps as they are (`CLIENT NO-TOUCH`).
    pub no_touch: bool,
    /// Whether a script is in progress, which was given its memory when it began, and whose effects have an order.
    pub in_script: bool,
    /// Keys that were evicted, with their databases, for whoever keeps a log and takes them out; `None` where nobody does.
    pub evicted: Option<Vec<(usize, Box<[u8]>)>>,
    /// Whether what has expired stays, though it is not found, and nothing is evicted (`CLIENT PAUSE`).
    pub paused: bool,
    /// Whether that holds for the call in progress: a write that is executed nevertheless changes the keyspace anyway.
    keeps_expired: bool,
    /// What is noted of what happens to keys.
    pub observed: Observed,
    changes: Vec<Change>,
    /// The image in the making, if one is.
    image: Option<Box<Image>>,
    /// Collections that are saved in parts in it, as far as they are not saved as a whole yet.
    begun: Vec<images::Begun>,
    /// The mark of entries that need not be saved.
    mark: bool,
    remains: Remains,
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
            owned_slots: 0..=(SLOTS - 1) as u16,
            stats: KeyStats::default(),
            random: SmallRng::seed_from_u64(seed),
            no_touch: false,
            in_script: false,
            evicted: None,
            paused: false,
            keeps_expired: false,
            observed: Observed::default(),
            changes: Vec::new(),
            image: None,
            begun: Vec::new(),
            mark: false,
            remains: Remains::default(),
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
        self.keeps_expired = self.paused;
    }

    /// Has the call in progress remove what has expired even during a pause.
    pub(crate) fn remove_expired_though_paused(&mut self) {
        self.keeps_expired = false;
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
        let database = &self.databases[self.selected];
        let position = database.find(slot, hash_key(key), key)?;
        if database.at(slot, position).deadline_ms().is_some_and(|deadline_ms| deadline_ms <= self.now_ms) {
            if !self.keeps_expired {
                self.expire_at(slot, position);
            }
            return None;
        }
        Some((slot, position))
    }

    #[cold]
    fn expire_at(&mut self, slot: u16, position: Position) {
        let entry = self.databases[self.selected].remove(slot, position);
        self.stats.expired += 1;
        self.changed(Class::Expired, "expired", entry.view().key());
        self.discard(entry);
    }

    /// Finds a key for reading: counts a hit or a miss, and notes the access.
    #[inline]
    pub fn find(&mut self, key: &[u8]) -> Option<EntryRef<'_>> {
        let (slot, position) = self.locate_counted(key)?;
        if !self.no_touch {
            self.note_access(slot, position);
        }
        Some(self.databases[self.selected].at(slot, position))
    }

    /// Finds a key to tell something of it that is no use of its value: counts a hit or a miss, notes no access.
    #[inline]
    pub fn find_untouched(&mut self, key: &[u8]) -> Option<EntryRef<'_>> {
        let (slot, position) = self.locate_counted(key)?;
        Some(self.databases[self.selected].at(slot, position))
    }

    /// Notes an access to a key, whatever `no_touch` says; whether the key is there. Counts a hit or a miss.
    pub fn touch(&mut self, key: &[u8]) -> bool {
        let Some((slot, position)) = self.locate_counted(key) else { return false };
        self.note_access(slot, position);
        true
    }

    #[inline]
    fn locate_counted(&mut self, key: &[u8]) -> Option<(u16, Position)> {
        let found = self.locate(key);
        if found.is_some() {
            self.stats.hits += 1;
        } else {
            self.count_miss(key);
        }
        found
    }

    /// Counts a look-up for reading that did not find its key.
    #[inline]
    pub fn count_miss(&mut self, key: &[u8]) {
        self.stats.misses += 1;
        if self.observed.misses {
            self.note(Class::Miss, "keymiss", key);
        }
    }

    #[inline]
    fn note_access(&mut self, slot: u16, position: Position) {
        let database = &mut self.databases[self.selected];
        let stamp = database.at(slot, position).access();
        let stamped = access::touched(stamp, self.now_ms, &self.settings, &mut self.random);
        if stamped != stamp {
            database.at_mut(slot, position).set_access(stamped);
        }
    }

    /// Finds a key for reading, and its type must be `kind`.
    #[inline]
    pub fn find_kind(&mut self, key: &[u8], kind: Kind) -> Result<Option<EntryRef<'_>>, CommandError> {
        match self.find(key) {
            Some(entry) if entry.kind() != kind => Err(CommandError::WRONG_TYPE),
            found => Ok(found),
        }
    }

    /// A key that was looked up in this call already, without removing it if it has expired.
    pub fn get(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        let entry = self.table(self.slot_of(key))?.get(hash_key(key), key)?;
        Some(entry).filter(|entry| entry.deadline_ms().is_none_or(|deadline_ms| deadline_ms > self.now_ms))
    }

    /// Finds a key without counting or noting anything.
    #[inline]
    pub fn peek(&mut self, key: &[u8]) -> Option<EntryRef<'_>> {
        let (slot, position) = self.locate(key)?;
        Some(self.databases[self.selected].at(slot, position))
    }

    /// Finds a key without counting or noting anything, and its type must be `kind`.
    #[inline]
    pub fn peek_kind(&mut self, key: &[u8], kind: Kind) -> Result<Option<EntryRef<'_>>, CommandError> {
        match self.peek(key) {
            Some(entry) if entry.kind() != kind => Err(CommandError::WRONG_TYPE),
            found => Ok(found),
        }
    }

    /// Finds a key to change it; the access is noted.
    #[inline]
    pub fn find_mut(&mut self, key: &[u8]) -> Option<EntryMut<'_>> {
        let (slot, position) = self.locate(key)?;
        self.save_before_change(slot, position);
        let mut entry = self.databases[self.selected].at_mut(slot, position);
        if !self.no_touch {
            let stamp = entry.view().access();
            let stamped = access::touched(stamp, self.now_ms, &self.settings, &mut self.random);
            if stamped != stamp {
                entry.set_access(stamped);
            }
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
                self.save_before_change(slot, position);
                if !self.begun.is_empty() {
                    self.note_moved(slot, entry.view());
                }
                let mut place = self.databases[self.selected].at_mut(slot, position);
                let old = std::mem::replace(&mut *place, entry);
                drop(place);
                self.discard(old);
            }
            None => self.add(entry),
        }
    }

    /// Adds an entry whose key is not there.
    #[inline]
    pub fn add(&mut self, mut entry: Entry) {
        entry.set_mark(self.mark);
        let key = entry.view().key();
        let (slot, hash) = (self.slot_of(key), hash_key(key));
        if self.observed.new_keys {
            self.note(Class::New, "new", key);
        }
        if !self.begun.is_empty() {
            self.note_moved(slot, entry.view());
        }
        self.databases[self.selected].insert(slot, hash, entry);
    }

    /// Takes an entry out.
    pub fn take(&mut self, key: &[u8]) -> Option<Entry> {
        let (slot, position) = self.locate(key)?;
        self.save_before_change(slot, position);
        Some(self.databases[self.selected].remove(slot, position))
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
    pub fn discard(&mut self, entry: Entry) {
        let entry = if self.begun.is_empty() { Some(entry) } else { self.detach(entry) };
        let Some(entry) = entry else { return };
        self.stats.lazy_freed += u64::from(self.remains.add_entry(entry));
    }

    /// Frees about `budget` elements of what waits to be freed; true when nothing is left.
    pub fn reclaim(&mut self, budget: usize) -> bool {
        self.stats.lazy_freed += self.remains.reclaim(budget);
        self.remains.is_empty()
    }

    /// Whether something waits to be freed.
    pub fn has_remains(&self) -> bool {
        !self.remains.is_empty()
    }

    /// Objects that wait to be freed, and flushed databases.
    pub fn pending_remains(&self) -> usize {
        self.remains.len()
    }

    /// Notes that `key` of the selected database changed in a way that clients can see. What goes because it expired or
    /// to make room is no change that the command in progress made, so it is not counted as one.
    #[inline]
    pub fn changed(&mut self, class: Class, event: &'static str, key: &[u8]) {
        self.stats.dirty += u64::from(!matches!(class, Class::Expired | Class::Evicted));
        if self.observed.changes {
            self.note(class, event, key);
        }
    }

    /// Removes a key that has lost its last element. The change that took it is counted already.
    pub fn remove_emptied(&mut self, key: &[u8]) {
        if self.remove(key) {
            self.changed_besides(Class::Generic, "del", key);
        }
    }

    /// Like [`Keys::changed`], for a change that is counted together with another one of the same call.
    #[inline]
    pub fn changed_besides(&mut self, class: Class, event: &'static str, key: &[u8]) {
        if self.observed.changes {
            self.note(class, event, key);
        }
    }

    /// Notes an event of a call that left `key` as it was, where Redis tells of it all the same.
    pub fn unchanged(&mut self, class: Class, event: &'static str, key: &[u8]) {
        if self.observed.changes {
            self.note(class, event, key);
        }
    }

    #[cold]
    fn note(&mut self, class: Class, event: &'static str, key: &[u8]) {
        self.changes.push(Change { database: self.selected, class, event, key: key.into() });
    }

    /// Whether something was noted since [`Keys::take_changes`].
    #[inline]
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// What was noted, in order.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Notes that `key` changed where Redis has no event for it: in how its value is represented, or as a side effect.
    #[inline]
    pub fn changed_without_event(&mut self, _key: &[u8]) {
        self.stats.dirty += 1;
    }

    /// Notes that `key` changed because something expired in it: like [`Keys::changed`], but no change that the command
    /// in progress made.
    pub fn changed_by_time(&mut self, class: Class, event: &'static str, key: &[u8]) {
        let dirty = self.stats.dirty;
        self.changed(class, event, key);
        self.stats.dirty = dirty;
    }

    /// Removes every key of database `database`; returns how many there were. Memory is freed piecemeal.
    pub fn flush(&mut self, database: usize) -> usize {
        let len = self.databases[database].len();
        if len > 0 {
            self.abandon_image();
        }
        self.remains.add_content(self.databases[database].take_content());
        if database == 0 {
            self.databases[0].prepare();
        }
        self.stats.dirty += len as u64;
        len
    }

    /// Exchanges two databases.
    pub fn swap_databases(&mut self, one: usize, other: usize) {
        self.abandon_image();
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
        self.locate(key);
        self.stats.expired > expired
    }

    /// Looks at a key of any database, or at one with a deadline, each with the same chance: `look` is given the number
    /// of its database, the entry and the settings.
    pub(crate) fn sample(&mut self, with_deadline: bool, look: impl FnOnce(usize, EntryRef<'_>, &Settings)) {
        let candidates = |database: &Database| if with_deadline { database.with_deadline() } else { database.len() };
        let total: usize = self.databases.iter().map(candidates).sum();
        if total == 0 {
            return;
        }
        let mut left = self.random.random_range(0..total);
        for (number, database) in self.databases.iter().enumerate() {
            let here = candidates(database);
            if left < here {
                if let Some(entry) = database.sample(with_deadline, &mut self.random) {
                    look(number, entry, &self.settings);
                }
                return;
            }
            left -= here;
        }
    }

    /// A key of a database, each with the same chance.
    pub(crate) fn sample_in(&mut self, database: usize) -> Option<EntryRef<'_>> {
        self.databases[database].sample(false, &mut self.random)
    }

    /// Asks the processor to load the table of a slot.
    #[inline]
    pub fn prefetch_table(&self, database: usize, slot: u16) {
        if let Some(table) = self.databases[database].table(slot) {
            table.prefetch();
        }
    }

    /// Asks the processor to load where the word for `key` is.
    #[inline]
    pub fn prefetch_word(&self, database: usize, slot: u16, hash: u64) {
        if let Some(table) = self.databases[database].table(slot) {
            table.prefetch_word(hash);
        }
    }

    /// Asks the processor to load the entry of a key.
    #[inline]
    pub fn prefetch_entry(&self, database: usize, slot: u16, hash: u64) {
        if let Some(table) = self.databases[database].table(slot) {
            table.prefetch_block(hash);
        }
    }
}
