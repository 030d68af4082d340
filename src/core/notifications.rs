//! Keyspace notifications: what happens to keys, published on channels named after the key and after the event.

use ruvio_shard::changes::{Change, Observed};

use super::Core;
use super::subscriber_counts::Topic;

impl Core {
    /// What of changes must be noted so that [`Core::notify`] is told of it.
    pub(super) fn notified(&self) -> Observed {
        self.configuration.keyspace_events.observed()
    }

    /// Publishes a change, if its class is enabled: the event on the key's channel, then the key on the event's.
    pub(super) fn notify(&mut self, change: &Change) {
        let events = self.configuration.keyspace_events;
        if !events.includes(change.class) || self.process.subscriber_counts.nobody_listens() {
            return;
        }
        let event = change.event.as_bytes();
        if events.by_key() {
            let channel = channel("keyspace", change.database, &change.key);
            self.publish(Topic::Channel, &channel, event);
        }
        if events.by_event() {
            let channel = channel("keyevent", change.database, event);
            self.publish(Topic::Channel, &channel, &change.key);
        }
    }
}

fn channel(kind: &str, database: usize, name: &[u8]) -> Vec<u8> {
    let mut channel = format!("__{kind}@{database}__:").into_bytes();
    channel.extend_from_slice(name);
    channel
}
