//! What a core contributes to `INFO`, and all cores' contributions together.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use ruvio_shard::keys::KeyStats;

use crate::core::Core;
use crate::core::counters::{CommandStats, Counters};
use crate::core::log::DataPart;

/// Keys with a deadline that are looked at for the average of a database.
const SAMPLED_DEADLINES: usize = 32;

/// What is in a database.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DatabasePart {
    /// Keys.
    pub keys: usize,
    /// Keys with a deadline.
    pub with_deadline: usize,
    /// Hashes that have fields with a deadline.
    pub with_field_deadlines: usize,
    /// Time to live of the keys with a deadline, in ms: their average times their number.
    pub ttl_ms: f64,
}

impl DatabasePart {
    /// Average time to live, in ms.
    pub fn average_ttl_ms(&self) -> u64 {
        if self.with_deadline == 0 { 0 } else { (self.ttl_ms / self.with_deadline as f64) as u64 }
    }
}

/// A core's counters, as of one moment.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Counters of its connections and commands.
    pub counters: Counters,
    /// Counters of its keys.
    pub keys: KeyStats,
    /// Its part of each database.
    pub databases: Vec<DatabasePart>,
    /// Counters of each command; empty unless they were asked for.
    pub commands: Vec<CommandStats>,
    /// Nanoseconds spent on commands, and in turns.
    pub command_ns: u64,
    pub busy_ns: u64,
    /// Connections.
    pub clients: usize,
    /// Connections that subscribe to something.
    pub subscribers: usize,
    /// Bytes that its connections take, with their buffers.
    pub client_bytes: usize,
    /// Most input a client has waiting, in bytes.
    pub longest_input: usize,
    /// Most output a client has waiting, in bytes.
    pub longest_output: usize,
    /// Connections that wait for a key.
    pub blocked: usize,
    /// Those of them that do so for a limited time.
    pub blocked_with_timeout: usize,
    /// Keys that are waited for.
    pub blocking_keys: usize,
    /// Its keys that clients keep copies of.
    pub tracked_keys: usize,
    /// The clients of each of them, together.
    pub tracked_items: usize,
    /// The log and the reading of data.
    pub data: DataPart,
    /// Objects that wait to be freed piecemeal.
    pub to_free: usize,
    /// Bytes that the interpreters of scripts and of functions hold.
    pub interpreter_bytes: (usize, usize),
}

impl Part {
    /// What `core` contributes now.
    pub fn of(core: &Core, with_commands: bool) -> Part {
        let mut part = Part {
            counters: core.counters.clone(),
            keys: core.shard.keys.stats,
            databases: databases(core),
            commands: if with_commands { core.command_stats.clone() } else { Vec::new() },
            command_ns: core
                .command_stats
                .iter()
                .map(|stats| stats.total_ns)
                .sum::<u64>()
                .saturating_sub(core.counters.nested_ns),
            busy_ns: core.busy_ns(),
            clients: core.clients.iter().count(),
            blocked: core.waiting.len(),
            blocked_with_timeout: core.waiting.with_timeout(),
            blocking_keys: core.waiting.keys(),
            tracked_keys: core.tracked.reads.len(),
            tracked_items: core.tracked.reads.readers(),
            data: core.data_part(),
            to_free: core.shard.keys.pending_remains(),
            interpreter_bytes: core.interpreter_bytes(),
            ..Part::default()
        };
        for (_, client) in core.clients.iter() {
            part.blocked += usize::from(client.postponed);
            let buffers = client.input.capacity() + client.output.capacity() + client.held.capacity();
            part.subscribers += usize::from(client.subscriptions.is_some());
            part.client_bytes += size_of_val(client) + buffers;
            part.longest_input = part.longest_input.max(client.input.len());
            part.longest_output = part.longest_output.max(client.unsent());
        }
        part
    }

    /// All parts together.
    pub fn sum(parts: &[Part]) -> Part {
        let mut all = Part::default();
        for part in parts {
            all.counters.merge(&part.counters);
            all.keys.hits += part.keys.hits;
            all.keys.misses += part.keys.misses;
            all.keys.expired += part.keys.expired;
            all.keys.expired_fields += part.keys.expired_fields;
            all.keys.evicted += part.keys.evicted;
            all.keys.lazy_freed += part.keys.lazy_freed;
            all.keys.dirty += part.keys.dirty;
            all.databases.resize(all.databases.len().max(part.databases.len()), DatabasePart::default());
            for (sum, own) in all.databases.iter_mut().zip(&part.databases) {
                sum.keys += own.keys;
                sum.with_deadline += own.with_deadline;
                sum.with_field_deadlines += own.with_field_deadlines;
                sum.ttl_ms += own.ttl_ms;
            }
            all.commands.resize(all.commands.len().max(part.commands.len()), CommandStats::default());
            for (sum, own) in all.commands.iter_mut().zip(&part.commands) {
                sum.merge(own);
            }
            all.command_ns += part.command_ns;
            all.busy_ns += part.busy_ns;
            all.clients += part.clients;
            all.subscribers += part.subscribers;
            all.client_bytes += part.client_bytes;
            all.longest_input = all.longest_input.max(part.longest_input);
            all.longest_output = all.longest_output.max(part.longest_output);
            all.blocked += part.blocked;
            all.blocked_with_timeout += part.blocked_with_timeout;
            all.blocking_keys += part.blocking_keys;
            all.tracked_keys += part.tracked_keys;
            all.tracked_items += part.tracked_items;
            all.data.log_bytes += part.data.log_bytes;
            all.data.acknowledged_bytes += part.data.acknowledged_bytes;
            all.data.since_checkpoint += part.data.since_checkpoint;
            all.data.checkpoint_bytes += part.data.checkpoint_bytes;
            all.data.makes_checkpoint |= part.data.makes_checkpoint;
            all.data.checkpoint_failed |= part.data.checkpoint_failed;
            all.data.delayed_syncs += part.data.delayed_syncs;
            all.data.to_load += part.data.to_load;
            all.data.loaded += part.data.loaded;
            if all.data.trouble.is_none() {
                all.data.trouble = part.data.trouble.clone();
            }
            all.to_free += part.to_free;
            all.interpreter_bytes.0 += part.interpreter_bytes.0;
            all.interpreter_bytes.1 += part.interpreter_bytes.1;
        }
        all
    }

    /// Keys in all databases.
    pub fn key_count(&self) -> usize {
        self.databases.iter().map(|database| database.keys).sum()
    }
}

fn databases(core: &Core) -> Vec<DatabasePart> {
    let mut random = SmallRng::seed_from_u64(rand::random::<u64>());
    let part = |database: &ruvio_shard::database::Database| {
        let with_deadline = database.with_deadline();
        let samples = with_deadline.min(SAMPLED_DEADLINES);
        let left_ms: f64 = (0..samples)
            .filter_map(|_| database.sample(true, &mut random)?.deadline_ms())
            .map(|deadline_ms| (deadline_ms - core.now_ms).max(0) as f64)
            .sum();
        let ttl_ms = if samples == 0 { 0.0 } else { left_ms / samples as f64 * with_deadline as f64 };
        let with_field_deadlines = database.with_field_deadlines();
        DatabasePart { keys: database.len(), with_deadline, with_field_deadlines, ttl_ms }
    };
    core.shard.keys.databases().iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_weighted_by_the_keys_of_each_core() {
        let part = |with_deadline, average_ms: f64| Part {
            databases: vec![DatabasePart {
                keys: 2 * with_deadline,
                with_deadline,
                with_field_deadlines: with_deadline,
                ttl_ms: average_ms * with_deadline as f64,
            }],
            longest_input: with_deadline,
            ..Part::default()
        };
        let all = Part::sum(&[part(1, 1000.0), part(3, 2000.0), part(0, 0.0)]);
        assert_eq!(all.databases[0].average_ttl_ms(), 1750);
        assert_eq!(all.databases[0].with_field_deadlines, 4);
        assert_eq!((all.key_count(), all.longest_input), (8, 3));
        assert_eq!(DatabasePart::default().average_ttl_ms(), 0);
    }
}
