//! Clients that wait for keys (`BLPOP` and its like), on the core that owns the keys.
//!
//! A command that finds nothing leaves its words here, under each of its keys. When one of these gets a value of the right
//! kind, the commands that wait for it are executed again in the order they came, until nothing is left for them. The
//! reply goes to the client's own core, which reads nothing from the client meanwhile.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use ruvio_shard::args::{Args, OwnedArgs};
use ruvio_shard::entry::Kind;
use ruvio_shard::error::CommandError;
use ruvio_shard::reply::Reply;
use ruvio_shard::shard::Call;
use ruvio_shard::wait::Wait;

use super::Core;
use super::client::ClientKey;
use super::execute::Caller;
use super::mailbox::Message;
use super::slow_log::SlowEntry;
use crate::registry::Registered;

/// A key of a database.
pub type DatabaseKey = (usize, Box<[u8]>);

/// A client, wherever it is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The client's core.
    pub core: usize,
    /// The client on that core.
    pub client: ClientKey,
}

/// How a waiting ends that brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The reply is nil, as after the time-out.
    TimedOut,
    /// The reply is an error, as `CLIENT UNBLOCK … ERROR` wants it.
    Error,
    /// The client is gone.
    Silent,
}

/// A command that waits.
struct Waiter {
    place: Place,
    command: &'static Registered,
    words: OwnedArgs,
    call: Call,
    no_touch: bool,
    kind: Kind,
    keys: std::ops::Range<usize>,
    deadline_ms: Option<i64>,
}

/// The commands that wait on a core. Their numbers rise in the order they came.
#[derive(Default)]
pub struct Waiting {
    next: u64,
    waiters: HashMap<u64, Waiter>,
    by_key: HashMap<DatabaseKey, BTreeSet<u64>>,
    by_place: HashMap<Place, u64>,
    deadlines: BTreeSet<(i64, u64)>,
    /// Keys that got something since they were last looked at, in order.
    ready: VecDeque<DatabaseKey>,
    is_ready: HashSet<DatabaseKey>,
}

impl Waiting {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Whether none waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// How many keys are waited for.
    pub fn keys(&self) -> usize {
        self.by_key.len()
    }

    /// How many wait for a limited time.
    pub fn with_timeout(&self) -> usize {
        self.deadlines.len()
    }

    /// When the first of them has waited long enough, in ms since the epoch.
    pub fn next_deadline_ms(&self) -> Option<i64> {
        self.deadlines.first().map(|(deadline_ms, _)| *deadline_ms)
    }

    fn add(&mut self, waiter: Waiter) {
        let number = self.next;
        self.next += 1;
        let words = waiter.words.as_args();
        for index in waiter.keys.clone() {
            let key: DatabaseKey = (waiter.call.database, words.at(index).into());
            self.by_key.entry(key).or_default().insert(number);
        }
        if let Some(deadline_ms) = waiter.deadline_ms {
            self.deadlines.insert((deadline_ms, number));
        }
        self.by_place.insert(waiter.place, number);
        self.waiters.insert(number, waiter);
    }

    fn remove(&mut self, number: u64) -> Option<Waiter> {
        let waiter = self.waiters.remove(&number)?;
        let words = waiter.words.as_args();
        for index in waiter.keys.clone() {
            let key: DatabaseKey = (waiter.call.database, words.at(index).into());
            if let Some(numbers) = self.by_key.get_mut(&key) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    self.by_key.remove(&key);
                }
            }
        }
        if let Some(deadline_ms) = waiter.deadline_ms {
            self.deadlines.remove(&(deadline_ms, number));
        }
        self.by_place.remove(&waiter.place);
        Some(waiter)
    }

    /// Who came first of those that wait for a key and came after number `after`.
    fn next_for(&self, key: &DatabaseKey, after: Option<u64>) -> Option<u64> {
        let numbers = self.by_key.get(key)?;
        numbers.range(after.map_or(0, |after| after + 1)..).next().copied()
    }

    /// Notes that a key has changed, if somebody waits for it.
    pub(super) fn note_change(&mut self, database: usize, key: &[u8]) {
        let key: DatabaseKey = (database, key.into());
        if self.by_key.contains_key(&key) && self.is_ready.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// Notes that any key of a database may have changed.
    pub(super) fn note_database(&mut self, database: usize) {
        let keys: Vec<DatabaseKey> = self.by_key.keys().filter(|(other, _)| *other == database).cloned().collect();
        for (database, key) in keys {
            self.note_change(database, &key);
        }
    }
}

impl Core {
    /// Has a command wait that was executed here for the client at `place`.
    pub(super) fn start_waiting(
        &mut self,
        place: Place,
        command: &'static Registered,
        args: Args<'_>,
        call: Call,
        no_touch: bool,
        wait: Wait,
    ) {
        let deadline_ms = wait.timeout_ms.map(|timeout_ms| call.now_ms.saturating_add(timeout_ms));
        let words = args.iter().collect();
        let (kind, keys) = (wait.kind, wait.keys);
        self.waiting.add(Waiter { place, command, words, call, no_touch, kind, keys, deadline_ms });
        self.update_observed();
    }

    /// Serves those who wait for keys that have got something. What that changes may serve others in turn.
    pub(super) fn serve_ready(&mut self) {
        while let Some(key) = self.waiting.ready.pop_front() {
            self.waiting.is_ready.remove(&key);
            let mut after = None;
            while let Some(number) = self.waiting.next_for(&key, after)
                && self.execute_again(number, &key.1)
            {
                after = Some(number);
            }
            self.observe_changes(None);
        }
    }

    /// Executes a waiting command again now that `key` has changed; false when nobody else need be looked at.
    fn execute_again(&mut self, number: u64, key: &[u8]) -> bool {
        let Some(waiter) = self.waiting.waiters.get(&number) else { return true };
        let call = Call { now_ms: self.now_ms, ..waiter.call };
        self.shard.keys.begin(call.database, call.now_ms, None);
        match self.shard.keys.peek(key).map(|entry| entry.kind()) {
            None => return false,
            Some(kind) if kind != waiter.kind => return true,
            Some(_) => {}
        }
        let Some(waiter) = self.waiting.remove(number) else { return true };
        let mut encoded = Vec::new();
        self.shard.keys.no_touch = waiter.no_touch;
        let start = self.clock.raw();
        let log_before = self.log_end();
        let caller = Caller { place: waiter.place, is_tracked: false };
        let executed = self.execute_on_shard(waiter.command, waiter.words.as_args(), call, caller, start, &mut encoded);
        self.shard.keys.no_touch = false;
        if executed.wait.is_some() {
            // Whatever the key holds is not for this command: it goes on waiting in its place.
            self.put_back(number, waiter);
            return true;
        }
        if let Some(entry) = executed.slow {
            self.log_slow_at(waiter.place, entry);
        }
        self.answer(waiter.place, log_before, encoded);
        self.observe_changes(Some(waiter.place));
        self.update_observed();
        true
    }

    fn put_back(&mut self, number: u64, waiter: Waiter) {
        let next = std::mem::replace(&mut self.waiting.next, number);
        self.waiting.add(waiter);
        self.waiting.next = next;
    }

    /// Ends what has waited long enough.
    pub(super) fn end_overdue_waiting(&mut self) {
        while let Some((deadline_ms, number)) = self.waiting.deadlines.first().copied()
            && deadline_ms <= self.now_ms
        {
            self.end_waiting(number, Ending::TimedOut);
        }
    }

    /// Ends the waiting of a client, if it still waits; whether it did.
    pub(super) fn cancel_waiting(&mut self, place: Place, ending: Ending) -> bool {
        match self.waiting.by_place.get(&place) {
            Some(&number) => {
                self.end_waiting(number, ending);
                true
            }
            None => false,
        }
    }

    fn end_waiting(&mut self, number: u64, ending: Ending) {
        let Some(waiter) = self.waiting.remove(number) else { return };
        self.update_observed();
        let mut encoded = Vec::new();
        let mut reply = Reply::new(&mut encoded, waiter.call.protocol);
        match ending {
            Ending::TimedOut => reply.null_array(),
            Ending::Error => {
                let error = CommandError::new("UNBLOCKED client unblocked via CLIENT UNBLOCK");
                reply.error(&error);
                self.count_error(&error);
            }
            Ending::Silent => return,
        }
        // Only now does the call count; what it waited is no time that it took.
        let now = self.clock.raw();
        let failed = ending == Ending::Error;
        if let Some(entry) = self.note_call(waiter.command, waiter.words.as_args(), now, now, failed) {
            self.log_slow_at(waiter.place, entry);
        }
        let log_before = self.log_end();
        self.answer(waiter.place, log_before, encoded);
    }

    /// Has the core of the client at `place` log what the client waited for: behind the command that ended the waiting,
    /// which is logged after it was executed.
    fn log_slow_at(&mut self, place: Place, entry: SlowEntry) {
        let log = move |core: &mut Core| core.log_slow(entry, place.client);
        self.send(place.core, Message::Task(Box::new(log)));
    }

    /// Sends the reply that a waiting client was owed, once what was logged since `log_before` is acknowledged.
    fn answer(&mut self, place: Place, log_before: u64, encoded: Vec<u8>) {
        let from = self.number;
        if place.core == from {
            self.await_log(place.client, log_before);
            self.end_blocking(place.client, from, &encoded);
        } else {
            self.send_reply(
                place.core,
                log_before,
                Message::Task(Box::new(move |core: &mut Core| core.end_blocking(place.client, from, &encoded))),
            );
        }
    }

    /// Lets a client of this core go on that waited on core `from`.
    pub(super) fn end_blocking(&mut self, key: ClientKey, from: usize, encoded: &[u8]) {
        let Some(client) = self.clients.get_mut(key) else { return };
        client.settle_owed(from as u16, encoded);
        self.unblock(key);
        self.want_flush(key);
    }

    /// Marks a client of this core as one that waits for a key on core `owner`.
    pub(super) fn block(&mut self, key: ClientKey, owner: usize) {
        let Some(client) = self.clients.get_mut(key) else { return };
        client.blocked_at = Some(owner);
        client.waiting = true;
        self.update_interest(key);
    }

    /// The opposite of [`Core::block`].
    pub(super) fn unblock(&mut self, key: ClientKey) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.blocked_at.take().is_some() {
            client.waiting = false;
            self.want_resume(key);
        }
    }

    /// Has the core where a client waits, if it does, end that; whether it waits.
    pub fn end_blocking_of(&mut self, key: ClientKey, ending: Ending) -> bool {
        let Some(owner) = self.clients.get(key).and_then(|client| client.blocked_at) else { return false };
        let place = Place { core: self.number, client: key };
        self.cancel_waiting_at(owner, place, ending);
        true
    }

    /// Ends the waiting of the client at `place` on core `owner`.
    pub(super) fn cancel_waiting_at(&mut self, owner: usize, place: Place, ending: Ending) {
        if owner == self.number {
            self.cancel_waiting(place, ending);
        } else {
            self.send(
                owner,
                Message::Task(Box::new(move |core: &mut Core| {
                    core.cancel_waiting(place, ending);
                })),
            );
        }
    }
}
