//! Transactions that the client's own core executes within `EXEC`: the common case, where its shard owns all keys and no
//! command needs the server.

use ruvio_shard::args::Args;
use ruvio_shard::reply::{Protocol, Reply};
use ruvio_shard::shard::Call;

use super::Queue;
use crate::core::Core;
use crate::core::client::ClientKey;
use crate::core::execute::Caller;
use crate::core::waiting::Place;

impl Core {
    /// Takes a client's queued commands if they can be executed here and now: they are commands on keys of this core, none was
    /// refused, nothing is watched, no script runs, and there is memory.
    pub fn take_transaction_for_here(&mut self, key: ClientKey) -> Option<Box<Queue>> {
        let client = self.clients.get(key)?;
        let queue = client.transaction.as_deref()?;
        let is_here = !queue.failed
            && !queue.needs_core
            && queue.owner().is_none_or(|owner| owner == self.number)
            && client.watched.is_none()
            && client.tracking.is_none();
        if !is_here || self.scripts.running().is_some() || (queue.needs_memory && !self.has_room()) {
            return None;
        }
        self.clients.get_mut(key)?.transaction.take()
    }

    /// Executes what [`Core::take_transaction_for_here`] took, and writes the reply of `EXEC`.
    pub fn execute_at_home(&mut self, key: ClientKey, queue: Box<Queue>, protocol: Protocol, out: &mut Vec<u8>) {
        let Some(client) = self.clients.get(key) else { return };
        let (database, no_touch) = (client.database, client.no_touch);
        let place = Place { core: self.number, client: key };
        let log_before = self.log_end();
        Reply::new(out, protocol).array(queue.commands.len());
        self.begin_log_group();
        let mut start = self.clock.raw();
        let mut words = &queue.ranges[..];
        for queued in &queue.commands {
            let (ranges, rest) = words.split_at(queued.words);
            words = rest;
            let args = Args::new(&queue.bytes, ranges);
            let call = Call { database, slot: queued.slot, now_ms: self.now_ms, protocol, may_wait: false };
            self.shard.keys.no_touch = no_touch;
            let caller = Caller { place, is_tracked: false };
            let executed = self.execute_on_shard(queued.command, args, call, caller, start, out);
            start = executed.end;
            if let Some(entry) = executed.slow {
                self.log_slow(entry, key);
            }
            if self.shard.keys.has_changes() {
                self.observe_changes(Some(place));
            }
        }
        self.shard.keys.no_touch = false;
        self.end_log_group();
        // Who waits for a key is served when the whole transaction has changed it.
        self.serve_ready();
        self.await_log(key, log_before);
        self.keep_queue(queue);
    }
}
