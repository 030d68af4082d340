//! Publishing messages, and delivering them to the clients that subscribe.
//!
//! The publisher's core finds out who receives a message, and so which patterns match it, once. It delivers to its own
//! clients at once, and collects for each other core what was published, to be sent before its next message to any core
//! and at the end of the turn at the latest. So whoever sees an effect of what the publisher did next finds the message
//! on its way.

use std::sync::Arc;

use ruvio_shard::reply::{Protocol, Reply};

use super::Core;
use super::client::ClientKey;
use super::subscriber_counts::{Name, Topic};
use crate::configuration::OutputClass;

/// A buffer for encoding that is larger than this is not kept.
const KEPT_BYTES: usize = 64 << 10;

/// A message for clients of other cores.
pub struct Publication {
    /// [`Topic::Channel`] or [`Topic::ShardChannel`].
    topic: Topic,
    channel: Box<[u8]>,
    payload: Box<[u8]>,
    /// The patterns that match.
    patterns: Box<[Name]>,
}

impl Core {
    /// Sends a message to all who subscribe to `channel` ([`Topic::Channel`] or [`Topic::ShardChannel`]), on every core.
    /// Returns how many receive it; one that does so by several subscriptions counts as often.
    pub fn publish(&mut self, topic: Topic, channel: &[u8], payload: &[u8]) -> usize {
        let mut receivers = std::mem::take(&mut self.receivers);
        self.process.subscriber_counts.find(topic, channel, &mut receivers);
        let home = self.number;
        let mut shared: Option<Arc<Publication>> = None;
        for core in receivers.cores.iter().filter(|&core| core != home) {
            let publication = shared.get_or_insert_with(|| {
                let patterns = receivers.patterns.as_slice().into();
                Arc::new(Publication { topic, channel: channel.into(), payload: payload.into(), patterns })
            });
            self.add_publication(core, Arc::clone(publication));
        }
        if receivers.cores.has(home) {
            self.deliver(topic, channel, payload, &receivers.patterns);
        }
        let count = receivers.count;
        self.receivers = receivers;
        count
    }

    /// Delivers what another core published.
    pub(super) fn deliver_all(&mut self, publications: &[Arc<Publication>]) {
        for publication in publications {
            self.deliver(publication.topic, &publication.channel, &publication.payload, &publication.patterns);
        }
    }

    /// Delivers a message to this core's subscribers: to the channel, then to each pattern.
    fn deliver(&mut self, topic: Topic, channel: &[u8], payload: &[u8], patterns: &[Name]) {
        let mut encoded = std::mem::take(&mut self.encoded_push);
        let subscribers = std::mem::take(&mut self.subscribers);
        let mut over = Vec::new();
        let direct = subscribers.of(topic, channel);
        if !direct.is_empty() {
            let word: &[u8] = if topic == Topic::ShardChannel { b"smessage" } else { b"message" };
            encode(&[word, channel, payload], &mut encoded);
            self.push_to(direct, &mut encoded, &mut over);
        }
        for pattern in patterns {
            let clients = subscribers.of(Topic::Pattern, pattern);
            if !clients.is_empty() {
                encode(&[b"pmessage", pattern, channel, payload], &mut encoded);
                self.push_to(clients, &mut encoded, &mut over);
            }
        }
        self.subscribers = subscribers;
        if encoded.capacity() <= KEPT_BYTES {
            self.encoded_push = encoded;
        }
        for key in over {
            self.end_slow_subscriber(key);
        }
    }

    /// Puts an encoded push into the output of `keys`; notes in `over` who has too much of it.
    fn push_to(&mut self, keys: &[ClientKey], encoded: &mut [u8], over: &mut Vec<ClientKey>) {
        let limit = self.configuration.output_limit(OutputClass::Subscriber).hard_bytes;
        for &key in keys {
            let Some(client) = self.clients.get_mut(key).filter(|client| !client.closing) else { continue };
            // Both protocols differ in the first byte alone.
            encoded[0] = if client.protocol == Protocol::Resp3 { b'>' } else { b'*' };
            if client.output.capacity() == 0
                && let Some(spare) = self.spare_buffers.pop()
            {
                client.output = spare;
            }
            client.push_message(encoded);
            // A socket without room tells when there is some.
            if !client.to_flush && !client.blocked_on_write {
                client.to_flush = true;
                self.to_flush.push(key);
            }
            if limit > 0 && client.unsent() as u64 > limit {
                over.push(key);
            }
        }
    }

    /// Ends the connection of a subscriber that has more output waiting than it may, unless its socket takes it now.
    fn end_slow_subscriber(&mut self, key: ClientKey) {
        // The output of a client whose command runs is elsewhere now; the next message, or the next tick, looks again.
        if self.clients.get(key).is_none_or(|client| client.writing) {
            return;
        }
        self.flush_client(key);
        let limit = self.configuration.output_limit(OutputClass::Subscriber).hard_bytes;
        if self.clients.get(key).is_some_and(|client| client.unsent() as u64 > limit) {
            self.counters.output_limit_disconnections += 1;
            self.close(key);
        }
    }
}

/// Encodes a push of bulk strings, as RESP2 has it.
fn encode(words: &[&[u8]], encoded: &mut Vec<u8>) {
    encoded.clear();
    let mut reply = Reply::new(encoded, Protocol::Resp2);
    reply.push(words.len());
    words.iter().for_each(|word| reply.bulk(word));
}
