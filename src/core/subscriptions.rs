//! Who of a core's clients subscribes to what.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Core;
use super::client::ClientKey;
use super::subscriber_counts::{Name, Topic};

const TOPICS: [Topic; 3] = [Topic::Channel, Topic::Pattern, Topic::ShardChannel];

/// What a client subscribes to; a client has it for as long as that is anything.
#[derive(Debug, Default)]
pub struct Subscriptions {
    names: [HashSet<Name>; TOPICS.len()],
}

impl Subscriptions {
    /// How many names of a topic.
    pub fn count(&self, topic: Topic) -> usize {
        self.names[topic as usize].len()
    }

    /// The names of a topic.
    pub fn names(&self, topic: Topic) -> impl Iterator<Item = &Name> {
        self.names[topic as usize].iter()
    }

    /// The count that confirmations show: shard channels count apart.
    pub fn shown_count(&self, topic: Topic) -> usize {
        match topic {
            Topic::Channel | Topic::Pattern => self.count(Topic::Channel) + self.count(Topic::Pattern),
            Topic::ShardChannel => self.count(Topic::ShardChannel),
        }
    }

    fn is_empty(&self) -> bool {
        self.names.iter().all(HashSet::is_empty)
    }
}

/// A core's clients by what they subscribe to.
#[derive(Default)]
pub struct Subscribers {
    /// The clients of a name are sorted by their place, so that many come and go cheaply.
    clients: [HashMap<Name, Vec<ClientKey>>; TOPICS.len()],
}

impl Subscribers {
    /// The clients that subscribe to `name`.
    #[inline]
    pub fn of(&self, topic: Topic, name: &[u8]) -> &[ClientKey] {
        self.clients[topic as usize].get(name).map_or(&[], |clients| clients)
    }

    fn add(&mut self, topic: Topic, name: Name, key: ClientKey) {
        let clients = self.clients[topic as usize].entry(name).or_default();
        if let Err(place) = clients.binary_search_by_key(&key.index, |client| client.index) {
            clients.insert(place, key);
        }
    }

    fn remove(&mut self, topic: Topic, name: &[u8], key: ClientKey) {
        let Some(clients) = self.clients[topic as usize].get_mut(name) else { return };
        if let Ok(place) = clients.binary_search_by_key(&key.index, |client| client.index) {
            clients.remove(place);
        }
        if clients.is_empty() {
            self.clients[topic as usize].remove(name);
        }
    }
}

impl Core {
    /// Subscribes a client; returns the count to confirm.
    pub fn subscribe(&mut self, key: ClientKey, topic: Topic, name: &[u8]) -> usize {
        let Some(client) = self.clients.get_mut(key) else { return 0 };
        let subscriptions = client.subscriptions.get_or_insert_default();
        if !subscriptions.names[topic as usize].contains(name) {
            // One copy of the name serves the core.
            let known = self.subscribers.clients[topic as usize].get_key_value(name);
            let name = known.map_or_else(|| Name::from(name), |(name, _)| Arc::clone(name));
            subscriptions.names[topic as usize].insert(Arc::clone(&name));
            self.process.subscriber_counts.add(topic, &name, self.number);
            self.subscribers.add(topic, name, key);
        }
        subscriptions.shown_count(topic)
    }

    /// Unsubscribes a client, if it subscribes; returns the count to confirm.
    pub fn unsubscribe(&mut self, key: ClientKey, topic: Topic, name: &[u8]) -> usize {
        let Some(client) = self.clients.get_mut(key) else { return 0 };
        let Some(subscriptions) = &mut client.subscriptions else { return 0 };
        let was_subscribed = subscriptions.names[topic as usize].remove(name);
        let count = subscriptions.shown_count(topic);
        if subscriptions.is_empty() {
            client.subscriptions = None;
        }
        if was_subscribed {
            self.forget(key, topic, name);
        }
        count
    }

    /// Ends all subscriptions of a client without a word.
    pub fn unsubscribe_all(&mut self, key: ClientKey) {
        if let Some(client) = self.clients.get_mut(key)
            && let Some(subscriptions) = client.subscriptions.take()
        {
            self.forget_all(key, &subscriptions);
        }
    }

    /// Takes the subscriptions of a client that is gone out of the tables.
    pub(super) fn forget_all(&mut self, key: ClientKey, subscriptions: &Subscriptions) {
        for topic in TOPICS {
            for name in subscriptions.names(topic) {
                self.forget(key, topic, name);
            }
        }
    }

    fn forget(&mut self, key: ClientKey, topic: Topic, name: &[u8]) {
        self.subscribers.remove(topic, name, key);
        self.process.subscriber_counts.remove(topic, name, self.number);
    }
}
