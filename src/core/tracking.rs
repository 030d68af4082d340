//! Client-side caching: the core that owns a key knows which clients have read it, and has them told when it changes.
//!
//! A read is noted after the command is executed and before its reply leaves the core; what a change invalidates leaves
//! after the replies of the commands before it. Both travel to the client's core in order, so a client never keeps what
//! it read before a change it was told of. What is told goes by the client's state when it arrives.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rand::RngExt;
use ruvio_shard::args::Args;
use ruvio_shard::changes::Change;
use ruvio_shard::events::Class;
use ruvio_shard::reply::{Protocol, Reply};

use super::Core;
use super::client::ClientKey;
use super::mailbox::Message;
use super::tracked::{Prefixes, ReadKey, ReadKeys, encode_keys};
use super::waiting::Place;
use crate::registry::{Registered, Run};

/// The channel whose subscribers get what is redirected to them, with RESP2.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// How a client's reads are tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// Reads are not noted; the client hears of every change under its prefixes.
    pub broadcast: bool,
    /// Only reads behind `CLIENT CACHING YES` are noted.
    pub opt_in: bool,
    /// Reads behind `CLIENT CACHING NO` are not noted.
    pub opt_out: bool,
    /// The client does not hear of its own changes.
    pub no_loop: bool,
    /// Whether `CLIENT CACHING` was said for the next command.
    pub caching: bool,
}

impl Mode {
    /// Whether what the client reads now is noted.
    #[inline]
    pub fn notes_reads(self) -> bool {
        let is_wanted = match (self.opt_in, self.opt_out) {
            (true, _) => self.caching,
            (false, true) => !self.caching,
            (false, false) => true,
        };
        is_wanted && !self.broadcast
    }
}

/// The client that hears of changes in place of the one that tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// Its process-wide number.
    pub id: u64,
    /// Where it is, or was.
    pub place: Place,
}

/// The state of a client that tracks.
#[derive(Debug, Default)]
pub struct Tracking {
    /// What is tracked.
    pub mode: Mode,
    /// Who is told, if it is another client.
    pub redirection: Option<Redirection>,
    /// Whether that client was found to be gone.
    pub is_broken: bool,
    /// In broadcasting mode: prefixes of the keys to hear of.
    pub prefixes: BTreeSet<Box<[u8]>>,
}

/// Keys that are to be told to a client of another core.
struct Invalidation {
    client: ClientKey,
    keys: Arc<[u8]>,
    cause: Cause,
}

/// Why a client is told of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// It has read them, and another client has changed them, or they are not tracked any more.
    Read,
    /// It has read and changed them.
    OwnChange,
    /// They have its prefix.
    Prefix,
}

/// What a core knows for the clients of all cores.
#[derive(Default)]
pub struct Tracked {
    /// The keys of this core that were read.
    pub reads: ReadKeys,
    /// The prefixes of all clients.
    pub prefixes: Prefixes,
    /// What the clients of each core are to be told.
    outgoing: Vec<Vec<Invalidation>>,
    has_outgoing: bool,
    /// Flushes under way, and how many cores have done their part.
    flushes: HashMap<u64, usize>,
    /// Whether keys must be forgotten because there are too many.
    pub(super) is_over_limit: bool,
}

impl Tracked {
    /// Nothing, in a process with this many cores.
    pub fn new(cores: usize) -> Tracked {
        Tracked { outgoing: (0..cores).map(|_| Vec::new()).collect(), ..Tracked::default() }
    }

    /// Whether anybody is to be told of changes.
    #[inline]
    pub fn observes(&self) -> bool {
        !self.reads.is_empty() || !self.prefixes.is_empty()
    }

    /// Whether something waits to be told.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.has_outgoing || self.prefixes.has_changed()
    }

    /// Whether there is background work.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        self.is_over_limit || self.reads.has_remains()
    }
}

impl Core {
    /// Has a client of this core track, or go on in another way. In broadcasting mode, [`Core::register_prefixes`] is still
    /// to be called on every core.
    pub fn start_tracking(
        &mut self,
        key: ClientKey,
        mode: Mode,
        redirection: Option<Redirection>,
        prefixes: BTreeSet<Box<[u8]>>,
    ) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.tracking.is_none() {
            self.process.tracking_clients.fetch_add(1, Ordering::Relaxed);
        }
        let tracking = client.tracking.get_or_insert_default();
        tracking.mode = mode;
        tracking.redirection = redirection;
        tracking.is_broken = false;
        tracking.prefixes.extend(prefixes);
    }

    /// Takes in all prefixes of the client at `place`.
    pub fn register_prefixes(&mut self, place: Place, no_loop: bool, prefixes: &BTreeSet<Box<[u8]>>) {
        self.tracked.prefixes.set(place, no_loop, prefixes);
        self.update_observed();
    }

    /// Ends a client's tracking. What was noted of its reads stays until the keys change.
    pub fn stop_tracking(&mut self, key: ClientKey) {
        if let Some(tracking) = self.clients.get_mut(key).and_then(|client| client.tracking.take()) {
            self.forget_tracking(key, *tracking);
        }
    }

    /// Sees to it that nobody knows of a client that tracked.
    pub(super) fn forget_tracking(&mut self, key: ClientKey, tracking: Tracking) {
        self.process.tracking_clients.fetch_sub(1, Ordering::Relaxed);
        if tracking.mode.broadcast {
            let place = Place { core: self.number, client: key };
            self.broadcast(move |core| {
                core.tracked.prefixes.remove(place, &tracking.prefixes);
                core.update_observed();
            });
        }
    }

    /// Notes that the client at `reader` has read the keys of a command.
    #[cold]
    pub(super) fn note_reads(&mut self, reader: Place, command: &Registered, args: Args<'_>) {
        if matches!(command.run, Run::Script(_)) {
            // What a script reads was noted when it was read.
            return;
        }
        let observed = self.tracked.observes();
        let reads = &mut self.tracked.reads;
        let mut added = 0;
        command.spec.visit_keys(args, |index| added += usize::from(reads.add(args.at(index), reader)));
        if added > 0 {
            self.process.tracked_keys.fetch_add(added, Ordering::Relaxed);
            self.check_tracking_limit();
            if !observed {
                self.update_observed();
            }
        }
    }

    /// Has those told who keep a copy of a key that has changed, or whose prefix it has. `maker` is the client whose
    /// command was executed.
    #[cold]
    pub(super) fn invalidate(&mut self, change: &Change, maker: Option<Place>) {
        if !self.tracked.prefixes.is_empty() {
            // What expires or has to go is nobody's change.
            let maker = maker.filter(|_| !matches!(change.class, Class::Expired | Class::Evicted));
            self.tracked.prefixes.note_change(&change.key, maker);
        }
        if let Some(read) = self.tracked.reads.take(&change.key) {
            self.process.tracked_keys.fetch_sub(1, Ordering::Relaxed);
            self.tell_readers(&read, maker);
        }
    }

    /// Tells the readers of a key that is not tracked any more.
    fn tell_readers(&mut self, read: &ReadKey, maker: Option<Place>) {
        if !self.tracked.observes() {
            self.update_observed();
        }
        let keys = encode_keys(std::iter::once(&*read.key));
        for &reader in &read.readers {
            let cause = if maker == Some(reader) { Cause::OwnChange } else { Cause::Read };
            self.tell(reader, Arc::clone(&keys), cause);
        }
    }

    fn tell(&mut self, place: Place, keys: Arc<[u8]>, cause: Cause) {
        let invalidation = Invalidation { client: place.client, keys, cause };
        if place.core == self.number {
            self.take_invalidation(&invalidation);
        } else {
            self.tracked.outgoing[place.core].push(invalidation);
            self.tracked.has_outgoing = true;
        }
    }

    /// Has the clients told who listen to prefixes, and sends the other cores what their clients are to be told.
    pub(super) fn tell_news(&mut self) {
        for (place, keys) in self.tracked.prefixes.take_changed() {
            self.tell(place, keys, Cause::Prefix);
        }
        self.send_invalidations();
    }

    /// Sends the other cores what their clients are to be told, behind the replies that wait for the log.
    #[inline]
    pub(super) fn send_invalidations(&mut self) {
        if !std::mem::take(&mut self.tracked.has_outgoing) {
            return;
        }
        let log_before = self.log_end();
        for core in 0..self.tracked.outgoing.len() {
            let invalidations = std::mem::take(&mut self.tracked.outgoing[core]);
            if !invalidations.is_empty() {
                let take = move |core: &mut Core| invalidations.iter().for_each(|each| core.take_invalidation(each));
                self.send_reply(core, log_before, Message::Task(Box::new(take)));
            }
        }
    }

    /// Tells a client of this core of keys, if it still wants to know.
    fn take_invalidation(&mut self, invalidation: &Invalidation) {
        let Some(client) = self.clients.get(invalidation.client) else { return };
        let Some(mode) = client.tracking.as_ref().map(|tracking| tracking.mode) else { return };
        let wanted = match invalidation.cause {
            Cause::Read => !mode.broadcast,
            Cause::OwnChange => !mode.broadcast && !mode.no_loop,
            Cause::Prefix => mode.broadcast,
        };
        if wanted {
            self.tell_client(invalidation.client, &invalidation.keys);
        }
    }

    /// Tells a client, or the one it redirects to, of encoded keys.
    fn tell_client(&mut self, key: ClientKey, keys: &Arc<[u8]>) {
        let Some(client) = self.clients.get(key) else { return };
        let Some(redirection) = client.tracking.as_ref().and_then(|tracking| tracking.redirection) else {
            self.push_invalidation(key, keys, false);
            return;
        };
        let source = Place { core: self.number, client: key };
        if redirection.place.core == self.number {
            self.push_redirected(redirection, source, keys);
        } else {
            let keys = Arc::clone(keys);
            let push = move |core: &mut Core| core.push_redirected(redirection, source, &keys);
            self.send(redirection.place.core, Message::Task(Box::new(push)));
        }
    }

    /// Tells a client of this core what concerns the one at `source`, which is told when that is not possible.
    fn push_redirected(&mut self, redirection: Redirection, source: Place, keys: &[u8]) {
        if self.push_invalidation(redirection.place.client, keys, true) {
            return;
        }
        let id = redirection.id;
        if source.core == self.number {
            self.note_broken(source.client, id);
        } else {
            let note = move |core: &mut Core| core.note_broken(source.client, id);
            self.send(source.core, Message::Task(Box::new(note)));
        }
    }

    /// Sends a client encoded keys in the form that its protocol has for them, if there is one. False when the client is
    /// gone.
    fn push_invalidation(&mut self, key: ClientKey, keys: &[u8], is_redirected: bool) -> bool {
        let Some(client) = self.clients.get_mut(key) else { return false };
        let mut encoded = Vec::with_capacity(keys.len() + 64);
        let mut reply = Reply::new(&mut encoded, client.protocol);
        if client.protocol == Protocol::Resp3 {
            reply.push(2);
            reply.bulk(b"invalidate");
        } else if is_redirected && client.subscriptions.is_some() {
            reply.array(3);
            reply.bulk(b"message");
            reply.bulk(CHANNEL);
        } else {
            return true;
        }
        reply.raw(keys);
        client.push_message(&encoded);
        self.want_flush(key);
        true
    }

    /// Tells a client that the one it redirects to is gone.
    fn note_broken(&mut self, key: ClientKey, id: u64) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let Some(tracking) = &mut client.tracking else { return };
        if tracking.redirection.is_none_or(|redirection| redirection.id != id) {
            return;
        }
        tracking.is_broken = true;
        if client.protocol == Protocol::Resp3 {
            let mut encoded = Vec::new();
            let mut reply = Reply::new(&mut encoded, client.protocol);
            reply.push(2);
            reply.bulk(b"tracking-redir-broken");
            reply.integer(id as i64);
            client.push_message(&encoded);
            self.want_flush(key);
        }
    }

    /// Forgets which keys of this core were read, because they are all gone.
    pub(super) fn forget_reads(&mut self) {
        if !self.tracked.reads.is_empty() {
            self.process.tracked_keys.fetch_sub(self.tracked.reads.len(), Ordering::Relaxed);
            self.tracked.reads.clear();
            self.update_observed();
        }
    }

    /// Tells every core that this one has done its part of flush number `flush`: behind the replies of what was read before,
    /// so that nobody keeps that.
    pub fn announce_flush(&mut self, flush: u64) {
        let before = self.log_end();
        let home = self.number;
        for core in (0..self.process.cores.len()).filter(|&core| core != home) {
            self.send_reply(core, before, Message::Task(Box::new(move |core: &mut Core| core.note_flush(flush))));
        }
        self.note_flush(flush);
    }

    /// Notes that a core has done its part of a flush. When all have, clients that track are told that whatever they keep is
    /// invalid.
    fn note_flush(&mut self, flush: u64) {
        let done = self.tracked.flushes.entry(flush).or_insert(0);
        *done += 1;
        if *done < self.process.cores.len() {
            return;
        }
        self.tracked.flushes.remove(&flush);
        let tracking = self.clients.iter().filter(|(_, client)| client.tracking.is_some());
        let clients: Vec<(ClientKey, Protocol)> = tracking.map(|(key, client)| (key, client.protocol)).collect();
        for (key, protocol) in clients {
            let mut all = Vec::new();
            Reply::new(&mut all, protocol).null();
            self.tell_client(key, &all.into());
        }
    }

    /// Sees whether this core must forget keys that were read: when there are too many, and more than its share are here.
    pub(super) fn check_tracking_limit(&mut self) {
        let limit = self.configuration.tracking_table_max_keys;
        self.tracked.is_over_limit = limit > 0
            && self.tracked.reads.len() > limit / self.process.cores.len()
            && self.process.tracked_keys.load(Ordering::Relaxed) > limit;
    }

    /// Forgets up to `budget` keys that are too many, chosen at random, and has their readers told.
    pub(super) fn limit_reads(&mut self, budget: usize) {
        let limit = self.configuration.tracking_table_max_keys;
        for _ in 0..budget {
            self.check_tracking_limit();
            if !self.tracked.is_over_limit {
                return;
            }
            // So that two cores do not both forget the last one that is too many.
            let one_less = |keys: usize| (keys > limit).then(|| keys - 1);
            if self.process.tracked_keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err() {
                return;
            }
            let position = self.shard.keys.random.random_range(0..self.tracked.reads.len());
            if let Some(read) = self.tracked.reads.take_at(position) {
                self.tell_readers(&read, None);
            }
        }
    }
}
