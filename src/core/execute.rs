//! Executing a request: on this core's shard, on another core, or by the server itself.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use ruvio_shard::args::Args;
use ruvio_shard::command::{Command as ShardCommand, Flags};
use ruvio_shard::error::CommandError;
use ruvio_shard::hash_key;
use ruvio_shard::log::{DiskError, refusal};
use ruvio_shard::reply::{Protocol, Reply};
use ruvio_shard::shard::{Call, Outcome};
use ruvio_shard::wait::Wait;

use super::Core;
use super::client::{ClientKey, Door, Piece};
use super::forward::{Batch, Forwarded};
use super::monitor::shown_words;
use super::serve::WINDOW;
use super::slow_log::SlowEntry;
use super::waiting::Place;
use crate::commands::{Flow, Request, Run as ServerRun, is_for_subscribers};
use crate::registry::{Found, Registered, Run, Slots};

/// Where a reply is written.
struct Out {
    buffer: Vec<u8>,
    /// Its length before the reply.
    before: usize,
    /// Whether it is the client's output, not what is held.
    direct: bool,
}

/// Who has a command executed.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    /// The client.
    pub(super) place: Place,
    /// Whether what it reads is noted.
    pub(super) is_tracked: bool,
}

/// What came of a command on this core's shard.
pub(super) struct Executed {
    /// What the slow log should note.
    pub(super) slow: Option<SlowEntry>,
    /// The clock's reading at the end.
    pub(super) end: u64,
    /// What the command waits for, if it does.
    pub(super) wait: Option<Wait>,
}

impl Core {
    /// Executes one request of a client.
    pub(super) fn execute_request(
        &mut self,
        key: ClientKey,
        found: &Found,
        slots: Slots,
        args: Args<'_>,
        start: &mut u64,
    ) {
        let Some(client) = self.clients.get_mut(key) else { return };
        client.commands += 1;
        if client.tracking.is_some() {
            client.end_caching();
        }
        self.counters.commands += 1;
        let command = match found {
            Found::Command(command) => *command,
            Found::WrongArity(command) => {
                self.command_stats[command.index].rejected += 1;
                self.fail_transaction(key);
                self.reject(key, &CommandError::wrong_arity(command.spec.name));
                return;
            }
            Found::Unknown(_) if is_of_http(args) => {
                // Somebody has a browser send commands here: what follows is not executed.
                client.closing = true;
                self.want_flush(key);
                return;
            }
            Found::Unknown(error) => {
                let error = error.clone();
                client.last_command = "NULL";
                self.fail_transaction(key);
                self.reject(key, &error);
                return;
            }
        };
        client.last_command = command.spec.name;
        let is_in_transaction = client.transaction.is_some();
        if !client.authenticated && !command.spec.flags.has(Flags::NO_AUTH) {
            self.command_stats[command.index].rejected += 1;
            self.reject(key, &CommandError::new("NOAUTH Authentication required."));
            return;
        }
        if client.monitor && command.spec.flags.has_any(Flags::READ_ONLY.and(Flags::WRITE)) {
            self.command_stats[command.index].rejected += 1;
            self.reject(key, &CommandError::new("ERR Replica can't interact with the keyspace"));
            return;
        }
        if self.process.loading.load(Ordering::Relaxed) > 0 && !command.spec.flags.has(Flags::LOADING) {
            self.command_stats[command.index].rejected += 1;
            self.fail_transaction(key);
            self.reject(key, &CommandError::LOADING);
            return;
        }
        if self.process.busy.any() && self.is_busy(key, command, slots, args) {
            self.command_stats[command.index].rejected += 1;
            self.refuse_busy(key, command, slots, args);
            return;
        }
        let Some(client) = self.clients.get_mut(key) else { return };
        let only_subscribes = client.subscriptions.is_some() && client.protocol == Protocol::Resp2;
        if only_subscribes && !is_for_subscribers(command.spec.name) && self.is_let_through(key, command, slots, args) {
            self.command_stats[command.index].rejected += 1;
            let name = command.spec.name;
            let allowed = "(P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET";
            let text = format!("ERR Can't execute '{name}': only {allowed} are allowed in this context");
            self.reject(key, &CommandError::new(text));
            return;
        }
        let is_let_through = |core: &Core| match command.run {
            Run::Shard(_) | Run::Script(_) => core.is_let_through(key, command, slots, args),
            Run::Server(_) | Run::Container => true,
        };
        if self.process.monitors.load(Ordering::Relaxed) > 0 && is_let_through(self) {
            self.feed_monitors(key, command, args);
        }
        if is_in_transaction && !is_transaction_control(command) {
            self.queue_command(key, command, slots, args);
            return;
        }
        match command.run {
            Run::Shard(_) | Run::Script(_) => self.route(key, command, slots, args, start),
            Run::Server(handler) => {
                // Other commands of the server find the owner of their keys themselves.
                if !command.spec.flags.has(Flags::PUBSUB) || !self.turn_away(key, command, slots, args) {
                    self.execute_on_server(key, command, handler, args, start);
                }
            }
            Run::Container => {
                self.reject(key, &CommandError::wrong_arity(command.spec.name));
            }
        }
    }

    /// Has the client's `EXEC` refuse, if it is in a transaction.
    pub(super) fn fail_transaction(&mut self, key: ClientKey) {
        if let Some(queue) = self.clients.get_mut(key).and_then(|client| client.transaction.as_mut()) {
            queue.fail();
        }
    }

    /// Whether [`Core::route`] neither refuses a command nor sends the client elsewhere.
    pub(super) fn is_let_through(&self, key: ClientKey, command: &Registered, slots: Slots, args: Args<'_>) -> bool {
        match slots {
            Slots::One(slot) => {
                let is_shared = self.clients.get(key).is_some_and(|client| client.door == Door::Shared);
                is_shared || self.process.owner(slot) == self.number
            }
            Slots::Several => self.may_be_split(key, command) || self.common_owner(key, command, args).is_some(),
            Slots::None | Slots::Invalid => true,
        }
    }

    /// Refuses a command whose keys are in several slots, or that came in by the port of another shard than its keys';
    /// whether it did.
    #[cold]
    fn turn_away(&mut self, key: ClientKey, command: &'static Registered, slots: Slots, args: Args<'_>) -> bool {
        if self.is_let_through(key, command, slots, args) {
            return false;
        }
        let Some(client) = self.clients.get(key) else { return true };
        let error = match slots {
            Slots::One(slot) => {
                let announced = self.process.announced_address(self.process.owner(slot), client.local.ip());
                self.counters.moved += 1;
                CommandError::new(format!("MOVED {slot} {announced}"))
            }
            _ => CommandError::CROSS_SLOT,
        };
        self.command_stats[command.index].rejected += 1;
        self.reject(key, &error);
        true
    }

    /// Runs a command on its shard: here, or by forwarding it; or tells the client where to go.
    #[inline]
    fn route(&mut self, key: ClientKey, command: &'static Registered, slots: Slots, args: Args<'_>, start: &mut u64) {
        let (owner, slot) = match slots {
            Slots::One(slot) => (self.process.owner(slot), Some(slot)),
            Slots::Several => match self.common_owner(key, command, args) {
                Some(owner) => (owner, None),
                None => return self.execute_apart(key, command, args, start),
            },
            // Without keys, or with words that do not fit: the handler says what is wrong with them.
            Slots::None | Slots::Invalid => {
                self.execute_here(key, command, None, args, start);
                return;
            }
        };
        if owner == self.number {
            self.execute_here(key, command, slot, args, start);
            return;
        }
        let Some(client) = self.clients.get_mut(key) else { return };
        if let (Door::Shard, Some(_)) = (client.door, slot) {
            self.turn_away(key, command, slots, args);
            return;
        }
        client.pieces.push_back(Piece::Owed(owner as u16));
        let forwarded = Forwarded {
            client: key,
            command,
            words: args.len() as u32,
            slot,
            database: client.database as u16,
            protocol: client.protocol,
            no_touch: client.no_touch,
            is_tracked: client.notes_reads(command),
        };
        self.counters.forwarded += 1;
        self.batch_for(owner).push(forwarded, args);
        if command.spec.flags.has(Flags::BLOCKING) {
            self.block(key, owner);
        }
    }

    #[inline]
    pub(super) fn execute_here(
        &mut self,
        key: ClientKey,
        command: &'static Registered,
        slot: Option<u16>,
        args: Args<'_>,
        start: &mut u64,
    ) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let (database, protocol) = (client.database, client.protocol);
        let call = Call { database, slot, now_ms: self.now_ms, protocol, may_wait: true };
        let (no_touch, is_tracked) = (client.no_touch, client.notes_reads(command));
        let mut out = self.take_out(key);
        self.shard.keys.no_touch = no_touch;
        let log_before = self.log_end();
        let place = Place { core: self.number, client: key };
        let executed =
            self.execute_on_shard(command, args, call, Caller { place, is_tracked }, *start, &mut out.buffer);
        self.shard.keys.no_touch = false;
        *start = executed.end;
        self.put_out(key, out);
        self.await_log(key, log_before);
        if executed.slow.is_some() || !self.slow_in_script.is_empty() {
            for entry in self.slow_entries(executed.slow) {
                self.log_slow(entry, key);
            }
        }
        if let Some(wait) = executed.wait {
            if let Some(client) = self.clients.get_mut(key) {
                client.pieces.push_back(Piece::Owed(self.number as u16));
            }
            self.block(key, self.number);
            self.start_waiting(place, command, args, call, no_touch, wait);
        }
        self.after_command(Some(place));
        if is_tracked {
            self.note_reads(place, command, args);
        }
    }

    /// Runs a shard command and counts it.
    #[inline(always)]
    pub(super) fn execute_on_shard(
        &mut self,
        command: &'static Registered,
        args: Args<'_>,
        call: Call,
        caller: Caller,
        start: u64,
        out: &mut Vec<u8>,
    ) -> Executed {
        let outcome = match command.run {
            Run::Shard(shard_command) => {
                let outcome = self.execute_logged(command, shard_command, args, call, out);
                if let Some(error) = &outcome.error {
                    self.count_error(error);
                    if *error == CommandError::REPLY_OVER_LIMIT {
                        self.end_over_limit(caller.place);
                    }
                }
                outcome
            }
            Run::Script(script) => self.execute_script(script, args, call, caller, out),
            Run::Server(_) | Run::Container => return Executed { slow: None, end: start, wait: None },
        };
        let end = self.clock.raw();
        // A call that waits is counted when it ends.
        let slow = match outcome.wait {
            None if outcome.refused => {
                self.command_stats[command.index].rejected += 1;
                None
            }
            None => self.note_call(command, args, start, end, outcome.error.is_some()),
            Some(_) => None,
        };
        Executed { slow, end, wait: outcome.wait }
    }

    /// Runs a shard command and logs what it changes; where that cannot be logged, it is refused.
    #[inline(always)]
    pub(super) fn execute_logged(
        &mut self,
        command: &'static Registered,
        shard_command: &ShardCommand,
        args: Args<'_>,
        call: Call,
        out: &mut Vec<u8>,
    ) -> Outcome {
        self.counters.shard_commands += 1;
        if let Some(error) = self.log_refusal(command, args) {
            Reply::new(out, call.protocol).error(&error);
            return Outcome { changes: 0, error: Some(error), refused: true, wait: None, logged: None };
        }
        let outcome = self.shard.execute(shard_command, args, call, out);
        if outcome.changes > 0 {
            match &outcome.logged {
                None => self.log_command(call.database, args),
                Some(words) => self.log_command(call.database, words.as_args()),
            }
        }
        outcome
    }

    /// Counts a call; returns what the slow log should note.
    #[inline]
    pub(super) fn note_call(
        &mut self,
        command: &'static Registered,
        args: Args<'_>,
        start: u64,
        end: u64,
        failed: bool,
    ) -> Option<SlowEntry> {
        let duration_ns = self.clock.delta_as_nanos(start, end);
        self.command_stats[command.index].record(duration_ns, failed, self.configuration.latency_tracking);
        if duration_ns < self.noted_from_ns { None } else { self.note_long_call(command, args, duration_ns) }
    }

    /// Has `LATENCY` know of a call that took long for it; returns what the slow log should note.
    #[cold]
    fn note_long_call(&mut self, command: &'static Registered, args: Args<'_>, duration_ns: u64) -> Option<SlowEntry> {
        let event = if command.spec.flags.has(Flags::FAST) { "fast-command" } else { "command" };
        self.note_latency(event, duration_ns / 1_000_000);
        let threshold_us = self.configuration.slow_log_slower_than_us;
        if threshold_us >= 0
            && duration_ns / 1000 >= threshold_us as u64
            && !command.spec.flags.has(Flags::SKIP_SLOWLOG)
        {
            return Some(SlowEntry::new(self.now_ms / 1000, duration_ns / 1000, shown_words(command, args)));
        }
        None
    }

    pub(super) fn execute_on_server(
        &mut self,
        key: ClientKey,
        command: &'static Registered,
        handler: ServerRun,
        args: Args<'_>,
        start: &mut u64,
    ) {
        let Some(client) = self.clients.get(key) else { return };
        let protocol = client.protocol;
        if let Some(error) = self.refusal_on_server(command) {
            self.command_stats[command.index].rejected += 1;
            self.reject(key, &error);
            return;
        }
        let mut out = self.take_out(key);
        let result = handler(&mut Request { core: self, client: key, args, out: &mut out.buffer, protocol });
        let failed = result.is_err();
        if let Err(error) = &result {
            out.buffer.truncate(out.before);
            Reply::new(&mut out.buffer, protocol).error(error);
            self.count_error(error);
        }
        self.put_out(key, out);
        if let Ok(Flow::Close) = result
            && let Some(client) = self.clients.get_mut(key)
        {
            client.closing = true;
        }
        let end = self.clock.raw();
        if result.as_ref().is_err_and(sends_elsewhere) {
            self.command_stats[command.index].rejected += 1;
        } else if let Some(entry) = self.note_call(command, args, *start, end, failed) {
            self.log_slow(entry, key);
        }
        *start = end;
        if let Ok(Flow::Execute) = result {
            self.continue_transaction(key);
        }
    }

    /// Why a command of the server that writes to shards, or that takes memory, is refused now, if it is.
    #[inline]
    fn refusal_on_server(&mut self, command: &Registered) -> Option<CommandError> {
        if command.spec.flags.has(Flags::DENY_OOM) && !self.has_room() {
            return Some(CommandError::OUT_OF_MEMORY);
        }
        let is_in_trouble =
            command.spec.flags.has(Flags::WRITE) && self.process.log_troubles.load(Ordering::Relaxed) > 0;
        is_in_trouble.then(|| refusal(DiskError::from_code(self.process.log_error.load(Ordering::Relaxed))))
    }

    /// Whether memory is below its limit, or can be brought there. While a script runs nothing is evicted for others, and
    /// they are let through.
    pub(super) fn has_room(&mut self) -> bool {
        self.configuration.settings.maxmemory == 0 || self.scripts.running().is_some() || self.shard.make_room()
    }

    /// The buffer for the client's next reply: the output, or what is held behind replies that are still to come.
    #[inline]
    fn take_out(&mut self, key: ClientKey) -> Out {
        let Some(client) = self.clients.get_mut(key) else {
            return Out { buffer: Vec::new(), before: 0, direct: true };
        };
        client.writing = true;
        let direct = client.pieces.is_empty();
        let mut buffer = std::mem::take(if direct { &mut client.output } else { &mut client.held });
        if buffer.capacity() == 0
            && let Some(spare) = self.spare_buffers.pop()
        {
            buffer = spare;
        }
        let before = buffer.len();
        Out { buffer, before, direct }
    }

    /// Gives the buffer of [`Core::take_out`] back.
    #[inline]
    fn put_out(&mut self, key: ClientKey, out: Out) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let Out { mut buffer, before, direct } = out;
        if !client.wants_replies() {
            buffer.truncate(before);
        }
        if direct {
            // A reply that was put together at once, by the only core, is already in the output.
            if !client.output.is_empty() {
                buffer.extend_from_slice(&client.output);
            }
            client.output = buffer;
        } else {
            let len = buffer.len() - before;
            client.held = buffer;
            if len > 0 {
                client.hold(len);
            }
        }
        client.writing = false;
        client.release_late();
        self.want_flush(key);
    }

    /// Replies an error without running anything.
    pub(super) fn reject(&mut self, key: ClientKey, error: &CommandError) {
        self.count_error(error);
        if let Some(client) = self.clients.get_mut(key)
            && client.wants_replies()
        {
            let mut encoded = Vec::new();
            Reply::new(&mut encoded, client.protocol).error(error);
            client.push_reply(&encoded);
            self.want_flush(key);
        }
    }

    /// Counts an error reply.
    pub fn count_error(&mut self, error: &CommandError) {
        self.counters.error_replies += 1;
        self.counters.count_error(error.code());
    }

    /// Asks the processor to load what a batch will need.
    pub(super) fn prefetch_batch(&self, batch: &Batch) {
        if batch.commands.len() < 2 {
            return;
        }
        let keys = &self.shard.keys;
        let first_key = |args: Args<'_>| args.get(1).map(hash_key);
        for (forwarded, args) in batch.iter().take(WINDOW) {
            if let (Some(slot), Some(hash)) = (forwarded.slot, first_key(args)) {
                keys.prefetch_word(forwarded.database as usize, slot, hash);
            }
        }
        for (forwarded, args) in batch.iter().take(WINDOW) {
            if let (Some(slot), Some(hash)) = (forwarded.slot, first_key(args)) {
                keys.prefetch_entry(forwarded.database as usize, slot, hash);
            }
        }
    }

    /// What the slow log should note of a command: of what its script called, and of itself.
    #[inline]
    pub(super) fn slow_entries(&mut self, own: Option<SlowEntry>) -> impl Iterator<Item = SlowEntry> + use<> {
        let is_over = self.scripts.running().is_none();
        let called = if is_over { std::mem::take(&mut self.slow_in_script) } else { VecDeque::new() };
        called.into_iter().chain(own)
    }

    /// Adds an entry to the slow log, with its client.
    pub(super) fn log_slow(&mut self, mut entry: SlowEntry, key: ClientKey) {
        if let Some(client) = self.clients.get(key) {
            entry.client = client.peer.to_string();
            entry.client_name = client.name.clone();
        }
        let mut log = self.process.slow_log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(entry);
    }
}

/// Whether the error is about where keys are, so that its command has not run.
#[cold]
fn sends_elsewhere(error: &CommandError) -> bool {
    matches!(error.code(), "MOVED" | "CROSSSLOT")
}

/// Whether a command is run at once even in a transaction.
fn is_transaction_control(command: &Registered) -> bool {
    matches!(command.spec.name, "exec" | "discard" | "multi" | "watch" | "quit" | "reset")
}

/// Whether the words are a line of an HTTP request, as Redis knows them.
#[cold]
fn is_of_http(args: Args<'_>) -> bool {
    [&b"post"[..], b"host:"].iter().any(|word| args.at(0).eq_ignore_ascii_case(word))
}
