//! The keys that clients have read and keep copies of, and the prefixes of keys that clients want to hear of, on the core
//! that owns the keys.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use ruvio_shard::reply::{Protocol, Reply};

use super::waiting::Place;

/// In the index: no key.
const NONE: u32 = u32::MAX;

/// Places of the smallest index.
const FIRST_PLACES: usize = 16;

/// A key and the clients that have read it since it last changed.
#[derive(Debug)]
pub struct ReadKey {
    /// The key.
    pub key: Box<[u8]>,
    /// Who has read it, sorted by core and place; of clients in the same place only the latest.
    pub readers: Vec<Place>,
    hash: u64,
}

/// Keys that clients have read. As in Redis, a key is its name alone, whatever the database.
///
/// The keys lie in an array, so that one can be chosen at random and all can be freed piecemeal; an open-addressed index
/// finds them.
#[derive(Debug, Default)]
pub struct ReadKeys {
    keys: Vec<ReadKey>,
    /// Positions in `keys`; at most half of the places are taken. Their number is a power of two, or 0.
    index: Vec<u32>,
    hasher: RandomState,
    readers: usize,
    remains: Vec<ReadKey>,
}

impl ReadKeys {
    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many readers the keys have, each counted for each of its keys.
    pub fn readers(&self) -> usize {
        self.readers
    }

    /// Where in the index the key is, or the free place where it would be.
    fn find(&self, hash: u64, key: &[u8]) -> usize {
        let mask = self.index.len() - 1;
        let mut place = hash as usize & mask;
        while let Some(found) = self.keys.get(self.index[place] as usize)
            && (found.hash != hash || *found.key != *key)
        {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let places = (self.index.len() * 2).max(FIRST_PLACES);
        self.index.clear();
        self.index.resize(places, NONE);
        for (position, read) in self.keys.iter().enumerate() {
            let mut place = read.hash as usize & (places - 1);
            while self.index[place] != NONE {
                place = (place + 1) & (places - 1);
            }
            self.index[place] = position as u32;
        }
    }

    /// Notes that a client has read a key; whether nobody had before.
    pub fn add(&mut self, key: &[u8], reader: Place) -> bool {
        let order = |place: &Place| (place.core, place.client.index);
        if self.keys.len() * 2 >= self.index.len() {
            self.grow();
        }
        let hash = self.hasher.hash_one(key);
        let place = self.find(hash, key);
        if let Some(read) = self.keys.get_mut(self.index[place] as usize) {
            match read.readers.binary_search_by_key(&order(&reader), order) {
                // It takes the place of a client that is gone, if it is another.
                Ok(at) => read.readers[at] = reader,
                Err(at) => {
                    read.readers.insert(at, reader);
                    self.readers += 1;
                }
            }
            return false;
        }
        self.index[place] = self.keys.len() as u32;
        self.keys.push(ReadKey { key: key.into(), readers: vec![reader], hash });
        self.readers += 1;
        true
    }

    /// Takes a key out.
    pub fn take(&mut self, key: &[u8]) -> Option<ReadKey> {
        if self.keys.is_empty() {
            return None;
        }
        let place = self.find(self.hasher.hash_one(key), key);
        (self.index[place] != NONE).then(|| self.take_from(place))
    }

    /// Takes the key out that is at `position` of all [`ReadKeys::len`].
    pub fn take_at(&mut self, position: usize) -> Option<ReadKey> {
        let read = self.keys.get(position)?;
        let place = self.find(read.hash, &read.key);
        Some(self.take_from(place))
    }

    fn take_from(&mut self, place: usize) -> ReadKey {
        let mask = self.index.len() - 1;
        let position = self.index[place] as usize;
        // What follows without a gap moves up, unless it would come before the place it belongs to.
        let (mut hole, mut next) = (place, (place + 1) & mask);
        while let Some(read) = self.keys.get(self.index[next] as usize) {
            let wanted = read.hash as usize & mask;
            if (next.wrapping_sub(wanted) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.index[hole] = self.index[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.index[hole] = NONE;
        let last = self.keys.len() - 1;
        if position != last {
            let moved = &self.keys[last];
            let place = self.find(moved.hash, &moved.key);
            self.index[place] = position as u32;
        }
        let read = self.keys.swap_remove(position);
        self.readers -= read.readers.len();
        read
    }

    /// Forgets all keys, to be freed piecemeal.
    pub fn clear(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        if self.remains.is_empty() {
            self.remains = keys;
        } else {
            self.remains.extend(keys);
        }
        self.index = Vec::new();
        self.readers = 0;
    }

    /// Whether forgotten keys wait to be freed.
    #[inline]
    pub fn has_remains(&self) -> bool {
        !self.remains.is_empty()
    }

    /// Frees some of what was forgotten.
    pub fn reclaim(&mut self, budget: usize) {
        self.remains.truncate(self.remains.len().saturating_sub(budget));
        if self.remains.is_empty() {
            self.remains = Vec::new();
        }
    }
}

/// A client that wants to hear of every change under a prefix.
#[derive(Clone, Copy, Debug)]
struct Listener {
    place: Place,
    /// But of those it makes.
    no_loop: bool,
}

#[derive(Debug, Default)]
struct Prefix {
    listeners: Vec<Listener>,
    /// Keys that changed in this turn, and who changed each last.
    changed: BTreeMap<Box<[u8]>, Option<Place>>,
}

/// The prefixes that clients of all cores want to hear of.
#[derive(Debug, Default)]
pub struct Prefixes {
    prefixes: BTreeMap<Box<[u8]>, Prefix>,
    has_changed: bool,
}

impl Prefixes {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// Takes in all prefixes of a client.
    pub fn set(&mut self, place: Place, no_loop: bool, prefixes: &BTreeSet<Box<[u8]>>) {
        for prefix in prefixes {
            let listeners = &mut self.prefixes.entry(prefix.clone()).or_default().listeners;
            match listeners.iter_mut().find(|listener| listener.place == place) {
                Some(listener) => listener.no_loop = no_loop,
                None => listeners.push(Listener { place, no_loop }),
            }
        }
    }

    /// Forgets all prefixes of a client.
    pub fn remove(&mut self, place: Place, prefixes: &BTreeSet<Box<[u8]>>) {
        for prefix in prefixes {
            if let Some(known) = self.prefixes.get_mut(prefix) {
                known.listeners.retain(|listener| listener.place != place);
                if known.listeners.is_empty() {
                    self.prefixes.remove(prefix);
                }
            }
        }
    }

    /// Notes that a key has changed, and by whom.
    pub fn note_change(&mut self, key: &[u8], maker: Option<Place>) {
        for (_, prefix) in self.prefixes.iter_mut().filter(|(prefix, _)| key.starts_with(prefix)) {
            prefix.changed.insert(key.into(), maker);
            self.has_changed = true;
        }
    }

    /// Whether something has changed since [`Prefixes::take_changed`].
    #[inline]
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Whom to tell of what has changed, in one message a prefix: the encoded keys.
    pub fn take_changed(&mut self) -> Vec<(Place, Arc<[u8]>)> {
        let mut told = Vec::new();
        self.has_changed = false;
        for prefix in self.prefixes.values_mut().filter(|prefix| !prefix.changed.is_empty()) {
            let changed = std::mem::take(&mut prefix.changed);
            let all = encode_keys(changed.keys().map(|key| &**key));
            for listener in &prefix.listeners {
                let own = Some(listener.place);
                if !listener.no_loop || changed.values().all(|maker| *maker != own) {
                    told.push((listener.place, Arc::clone(&all)));
                    continue;
                }
                let others = changed.iter().filter(|(_, maker)| **maker != own).map(|(key, _)| &**key);
                if others.clone().next().is_some() {
                    told.push((listener.place, encode_keys(others)));
                }
            }
        }
        told
    }
}

/// An array of keys, the same in both protocols.
pub fn encode_keys<'k>(keys: impl Iterator<Item = &'k [u8]> + Clone) -> Arc<[u8]> {
    let mut encoded = Vec::new();
    let mut reply = Reply::new(&mut encoded, Protocol::Resp2);
    reply.array(keys.clone().count());
    keys.for_each(|key| reply.bulk(key));
    encoded.into()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::super::client::ClientKey;
    use super::*;

    fn place(core: usize, index: u32, generation: u32) -> Place {
        Place { core, client: ClientKey { index, generation } }
    }

    #[test]
    fn read_keys_are_found_and_taken_as_in_a_map() {
        let mut random = SmallRng::seed_from_u64(1);
        let (mut reads, mut model) = (ReadKeys::default(), HashMap::<Vec<u8>, BTreeSet<u32>>::new());
        for step in 0..200_000 {
            let key = random.random_range(0..3000u32).to_string().into_bytes();
            let client = random.random_range(0..4);
            match random.random_range(0..if step % 20_000 < 10_000 { 3 } else { 20 }) {
                0 | 1 => {
                    let readers = model.entry(key.clone()).or_default();
                    assert_eq!(reads.add(&key, place(1, client, 0)), readers.is_empty());
                    readers.insert(client);
                }
                2 if !reads.is_empty() => {
                    let taken = reads.take_at(random.random_range(0..reads.len())).expect("a key is there");
                    assert_eq!(taken.readers.len(), model.remove(&*taken.key).expect("the model has it").len());
                    assert!(reads.take(&taken.key).is_none());
                }
                _ => {
                    let taken = reads.take(&key).map(|read| read.readers);
                    let wanted = model.remove(&key);
                    assert_eq!(taken.map(|readers| readers.iter().map(|reader| reader.client.index).collect()), wanted);
                }
            }
            assert_eq!(reads.len(), model.len());
            assert_eq!(reads.readers(), model.values().map(BTreeSet::len).sum::<usize>());
        }
        reads.clear();
        assert_eq!((reads.len(), reads.readers()), (0, 0));
        while reads.has_remains() {
            reads.reclaim(100);
        }
    }

    #[test]
    fn a_client_takes_the_place_of_one_that_is_gone() {
        let mut reads = ReadKeys::default();
        for reader in [place(0, 7, 1), place(1, 7, 1), place(0, 7, 2), place(0, 7, 2)] {
            reads.add(b"k", reader);
        }
        assert_eq!(reads.readers(), 2);
        assert_eq!(reads.take(b"k").expect("it was read").readers, [place(0, 7, 2), place(1, 7, 1)]);
    }

    #[test]
    fn listeners_hear_once_of_each_key_and_not_of_their_own_changes() {
        let (one, other) = (place(0, 1, 0), place(1, 2, 0));
        let names = |names: &[&str]| names.iter().map(|name| name.as_bytes().into()).collect();
        let mut prefixes = Prefixes::default();
        prefixes.set(one, true, &names(&["a:"]));
        prefixes.set(other, false, &names(&["a:", "b:"]));
        for (key, maker) in [("a:1", other), ("a:2", one), ("a:2", one), ("c:1", one), ("a:3", one), ("a:3", other)] {
            prefixes.note_change(key.as_bytes(), Some(maker));
        }
        let keys = |keys: &[&str]| encode_keys(keys.iter().map(|key| key.as_bytes()));
        assert_eq!(prefixes.take_changed(), [(one, keys(&["a:1", "a:3"])), (other, keys(&["a:1", "a:2", "a:3"]))]);
        assert!(!prefixes.has_changed() && prefixes.take_changed().is_empty());
        prefixes.note_change(b"a:1", Some(one));
        prefixes.remove(other, &names(&["a:", "b:"]));
        assert_eq!(prefixes.take_changed(), []);
        assert_eq!(prefixes.len(), 1);
    }
}
