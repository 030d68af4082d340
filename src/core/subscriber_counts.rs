//! How many subscribers each channel and pattern has, and on which cores: all that a publisher needs to know.
//!
//! Cores change it when one of their clients subscribes or unsubscribes, and read it for every message published while
//! there are subscribers. A client's subscription is counted before it is confirmed, so whoever publishes after the
//! confirmation finds it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ruvio_shard::{glob, hash_key};

use crate::memory::MAX_CORES;

/// Parts of a directory of channels, so that cores seldom wait for each other.
const PARTS: usize = 64;

/// What a client subscribes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A channel of the whole process.
    Channel,
    /// All channels whose names match a pattern.
    Pattern,
    /// A channel that belongs to a slot, as keys do.
    ShardChannel,
}

/// The name of a channel, or a pattern.
pub type Name = Arc<[u8]>;

/// Cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreSet([u64; MAX_CORES.div_ceil(64)]);

impl CoreSet {
    /// Adds a core.
    #[inline]
    pub fn insert(&mut self, core: usize) {
        self.0[core / 64] |= 1 << (core % 64);
    }

    /// Whether a core is among them.
    #[inline]
    pub fn has(&self, core: usize) -> bool {
        self.0[core / 64] & 1 << (core % 64) != 0
    }

    /// Every core, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(place, bits)| {
            let mut left = bits;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(place * 64 + bit)
            })
        })
    }
}

/// Who receives a message.
#[derive(Debug, Default)]
pub struct Receivers {
    /// How many times it is received: a client that subscribes to the channel and to two patterns counts three times.
    pub count: usize,
    /// The cores of the clients.
    pub cores: CoreSet,
    /// The patterns that match.
    pub patterns: Vec<Name>,
}

impl Receivers {
    #[inline]
    fn add(&mut self, counts: &Counts) {
        for &(core, clients) in counts {
            self.count += clients as usize;
            self.cores.insert(core.into());
        }
    }
}

/// The subscribers to one name: how many each core has that has any.
type Counts = Vec<(u16, u32)>;

/// Whether what was counted is of one core, or of any.
fn is_of(counted: &(u16, u32), core: Option<usize>) -> bool {
    core.is_none_or(|core| usize::from(counted.0) == core)
}

type Part = HashMap<Name, Counts>;

/// All names of one topic that have subscribers.
struct Directory {
    parts: Box<[RwLock<Part>]>,
    /// Names in all parts.
    names: AtomicUsize,
}

impl Directory {
    fn new(parts: usize) -> Directory {
        Directory { parts: (0..parts).map(|_| RwLock::default()).collect(), names: AtomicUsize::new(0) }
    }

    fn part(&self, name: &[u8]) -> &RwLock<Part> {
        &self.parts[hash_key(name) as usize % self.parts.len()]
    }

    fn read(&self, name: &[u8]) -> RwLockReadGuard<'_, Part> {
        self.part(name).read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, name: &[u8]) -> RwLockWriteGuard<'_, Part> {
        self.part(name).write().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn len(&self) -> usize {
        self.names.load(Ordering::Acquire)
    }

    fn add(&self, name: &Name, core: u16) {
        let mut part = self.write(name);
        let counts = part.entry(Arc::clone(name)).or_default();
        match counts.iter_mut().find(|(other, _)| *other == core) {
            Some((_, clients)) => *clients += 1,
            None => {
                if counts.is_empty() {
                    self.names.fetch_add(1, Ordering::Release);
                }
                counts.push((core, 1));
            }
        }
    }

    fn remove(&self, name: &[u8], core: u16) {
        let mut part = self.write(name);
        let Some(counts) = part.get_mut(name) else { return };
        if let Some(place) = counts.iter().position(|(other, _)| *other == core) {
            counts[place].1 -= 1;
            if counts[place].1 == 0 {
                counts.swap_remove(place);
            }
        }
        if counts.is_empty() {
            part.remove(name);
            self.names.fetch_sub(1, Ordering::Release);
        }
    }

    fn visit(&self, mut visit: impl FnMut(&Name, &Counts)) {
        for part in &self.parts {
            let part = part.read().unwrap_or_else(PoisonError::into_inner);
            part.iter().for_each(|(name, counts)| visit(name, counts));
        }
    }
}

/// The subscribers of the whole process.
pub struct SubscriberCounts {
    channels: Directory,
    patterns: Directory,
    shard_channels: Directory,
}

impl Default for SubscriberCounts {
    fn default() -> SubscriberCounts {
        // Every message is compared with all patterns, so they are in one part.
        SubscriberCounts {
            channels: Directory::new(PARTS),
            patterns: Directory::new(1),
            shard_channels: Directory::new(PARTS),
        }
    }
}

impl SubscriberCounts {
    fn of(&self, topic: Topic) -> &Directory {
        match topic {
            Topic::Channel => &self.channels,
            Topic::Pattern => &self.patterns,
            Topic::ShardChannel => &self.shard_channels,
        }
    }

    /// How many names have subscribers.
    #[inline]
    pub fn names(&self, topic: Topic) -> usize {
        self.of(topic).len()
    }

    /// Whether nobody subscribes to channels or patterns.
    #[inline]
    pub fn nobody_listens(&self) -> bool {
        self.channels.len() == 0 && self.patterns.len() == 0
    }

    /// Whether there are no subscriptions at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.nobody_listens() && self.shard_channels.len() == 0
    }

    /// Counts a subscription of a client of core `core`.
    pub fn add(&self, topic: Topic, name: &Name, core: usize) {
        self.of(topic).add(name, core as u16);
    }

    /// Takes back what [`SubscriberCounts::add`] counted.
    pub fn remove(&self, topic: Topic, name: &[u8], core: usize) {
        self.of(topic).remove(name, core as u16);
    }

    /// How many clients subscribe to `name` itself, on one core or on all.
    pub fn count(&self, topic: Topic, name: &[u8], core: Option<usize>) -> usize {
        let part = self.of(topic).read(name);
        let counts = part.get(name).into_iter().flatten();
        counts.filter(|counted| is_of(counted, core)).map(|&(_, clients)| clients as usize).sum()
    }

    /// How many names have subscribers on one core.
    pub fn names_of_core(&self, topic: Topic, core: usize) -> usize {
        let mut names = 0;
        self.of(topic).visit(|_, counts| names += usize::from(counts.iter().any(|counted| is_of(counted, Some(core)))));
        names
    }

    /// The names with subscribers, on one core or on all, that match `pattern`, or all.
    pub fn matching(&self, topic: Topic, pattern: Option<&[u8]>, core: Option<usize>) -> Vec<Name> {
        let mut found = Vec::new();
        self.of(topic).visit(|name, counts| {
            if counts.iter().any(|counted| is_of(counted, core))
                && pattern.is_none_or(|pattern| glob::matches(pattern, name))
            {
                found.push(Arc::clone(name));
            }
        });
        found
    }

    /// Finds who receives a message to a channel ([`Topic::Channel`] or [`Topic::ShardChannel`]).
    pub fn find(&self, topic: Topic, channel: &[u8], receivers: &mut Receivers) {
        receivers.count = 0;
        receivers.cores = CoreSet::default();
        receivers.patterns.clear();
        if self.of(topic).len() > 0
            && let Some(counts) = self.of(topic).read(channel).get(channel)
        {
            receivers.add(counts);
        }
        if topic == Topic::Channel && self.patterns.len() > 0 {
            self.patterns.visit(|pattern, counts| {
                if glob::matches(pattern, channel) {
                    receivers.add(counts);
                    receivers.patterns.push(Arc::clone(pattern));
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_are_counted_a_subscription_and_named_by_core() {
        let counts = SubscriberCounts::default();
        let name = |text: &str| Name::from(text.as_bytes());
        counts.add(Topic::Channel, &name("news"), 0);
        counts.add(Topic::Channel, &name("news"), 200);
        counts.add(Topic::Channel, &name("news"), 200);
        counts.add(Topic::Pattern, &name("n*"), 64);
        counts.add(Topic::Pattern, &name("x*"), 1);
        counts.add(Topic::ShardChannel, &name("news"), 3);
        let mut receivers = Receivers::default();
        counts.find(Topic::Channel, b"news", &mut receivers);
        assert_eq!(receivers.count, 4);
        assert_eq!(receivers.cores.iter().collect::<Vec<_>>(), [0, 64, 200]);
        assert_eq!(receivers.patterns, [name("n*")]);
        counts.find(Topic::ShardChannel, b"news", &mut receivers);
        assert_eq!((receivers.count, receivers.patterns.len()), (1, 0));
        assert!(receivers.cores.has(3) && !receivers.cores.has(0));
        assert_eq!([0, 1, 200].map(|core| counts.count(Topic::Channel, b"news", Some(core))), [1, 0, 2]);
        assert_eq!([0, 1, 64].map(|core| counts.names_of_core(Topic::Pattern, core)), [0, 1, 1]);
        assert_eq!(counts.matching(Topic::Pattern, None, Some(64)), [name("n*")]);
        counts.remove(Topic::Channel, b"news", 200);
        assert_eq!((counts.count(Topic::Channel, b"news", None), counts.names(Topic::Channel)), (2, 1));
        counts.remove(Topic::Channel, b"news", 200);
        counts.remove(Topic::Channel, b"news", 0);
        assert_eq!((counts.count(Topic::Channel, b"news", None), counts.names(Topic::Channel)), (0, 0));
        assert!(!counts.nobody_listens(), "the patterns are left");
        assert_eq!(counts.matching(Topic::Pattern, Some(b"x?"), None), [name("x*")]);
    }
}
