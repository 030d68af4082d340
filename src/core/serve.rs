//! Reading a client's requests and executing them.
//!
//! What was read is first split into requests, up to a window of them; then the places where their keys should be are
//! prefetched, all of them, so that the cache misses overlap; then they are executed in order.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use ruvio_shard::args::{ArgRange, Args};
use ruvio_shard::command::Flags;
use ruvio_shard::error::CommandError;
use ruvio_shard::hash_key;
use ruvio_shard::reply::Reply;
use ruvio_shard::shard::Call;

use super::Core;
use super::client::{ClientKey, Door, Piece};
use super::forward::{Batch, Forwarded};
use super::monitor::shown_words;
use super::slow_log::SlowEntry;
use crate::commands::{Flow, Request};
use crate::registry::{Found, Registered, Run, Slots, registry};
use crate::wire::{self, Framed, Limits};

/// Requests split ahead of execution.
const WINDOW: usize = 64;

/// Bytes read at once from a client that is in the middle of a large request, at most.
const LARGE_READ: usize = 1 << 20;

/// Most bytes that may wait to be executed, whatever is configured: offsets have 32 bits.
const MAX_INPUT: usize = 2 << 30;

/// Ranges of words kept for the next window.
const KEPT_RANGES: usize = 64 << 10;

/// A client with this many bytes unsent is not served until it has read.
const PAUSED_UNSENT: usize = 64 << 20;

/// A client with this many replies outstanding is not served until some came.
const PAUSED_PIECES: usize = 8192;

/// A paused client is served again below these.
pub(super) const RESUMED_UNSENT: usize = PAUSED_UNSENT / 2;
pub(super) const RESUMED_PIECES: usize = PAUSED_PIECES / 2;

/// Where a reply is written.
struct Out {
    buffer: Vec<u8>,
    /// Its length before the reply.
    before: usize,
    /// Whether it is the client's output, not what is held.
    direct: bool,
}

/// A request split off the input.
pub(super) struct Planned {
    /// Its words are the next this many of the window's ranges.
    words: usize,
    /// Where it starts in the input.
    start: usize,
    /// Where it ends.
    end: usize,
    found: Found,
    slots: Slots,
    /// The hash of its first key, for prefetching.
    hash: u64,
}

impl Core {
    /// Reads what a client sent, and serves it.
    pub(super) fn read_client(&mut self, key: ClientKey, ended: bool) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if !client.watches_read {
            // Input is not wanted now, so the event says that the connection is gone.
            if ended {
                self.close(key);
            }
            return;
        }
        let received = if client.input.is_empty() {
            let mut scratch = std::mem::take(&mut self.scratch);
            let received = rustix::net::recv(&client.socket, &mut scratch[..], RecvFlags::empty()).map(|(_, len)| len);
            if let Ok(len @ 1..) = received {
                self.note_input(key, len);
                let consumed = self.serve(key, &scratch[..len]);
                if consumed < len
                    && let Some(client) = self.clients.get_mut(key)
                {
                    client.input.extend_from_slice(&scratch[consumed..len]);
                }
            }
            self.scratch = scratch;
            received
        } else {
            let mut input = std::mem::take(&mut client.input);
            // As much again as there is: a large request is copied a bounded number of times while it grows.
            input.reserve(input.len().clamp(self.scratch.len(), LARGE_READ));
            let received =
                rustix::net::recv(&client.socket, rustix::buffer::spare_capacity(&mut input), RecvFlags::empty())
                    .map(|(_, len)| len);
            if let Ok(len @ 1..) = received {
                self.note_input(key, len);
                let consumed = self.serve(key, &input);
                consume(&mut input, consumed);
            }
            if let Some(client) = self.clients.get_mut(key) {
                client.input = input;
            }
            received
        };
        match received {
            // The client may have closed only its half of the connection.
            Ok(0) => self.close_after_replies(key),
            Ok(_) => self.check_input(key),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.close(key),
        }
    }

    fn note_input(&mut self, key: ClientKey, len: usize) {
        self.counters.reads += 1;
        self.counters.bytes_in += len as u64;
        let now = self.now_ms;
        if let Some(client) = self.clients.get_mut(key) {
            client.bytes_in += len as u64;
            client.active_ms = now;
        }
    }

    fn check_input(&mut self, key: ClientKey) {
        let limit = self.configuration.client_query_buffer_limit.min(MAX_INPUT);
        if self.clients.get(key).is_some_and(|client| client.input.len() > limit) {
            self.counters.query_limit_disconnections += 1;
            self.close(key);
        }
    }

    /// Serves clients that waited and may go on.
    pub(super) fn resume_clients(&mut self) {
        for key in std::mem::take(&mut self.to_resume) {
            let Some(client) = self.clients.get_mut(key) else { continue };
            client.to_resume = false;
            if client.paused && !client.may_resume() {
                continue;
            }
            client.paused = false;
            let mut input = std::mem::take(&mut client.input);
            let consumed = self.serve(key, &input);
            consume(&mut input, consumed);
            if let Some(client) = self.clients.get_mut(key) {
                client.input = input;
            }
            self.update_interest(key);
        }
    }

    /// Lets a client that waited be served in this turn or the next.
    pub(super) fn want_resume(&mut self, key: ClientKey) {
        if let Some(client) = self.clients.get_mut(key)
            && !client.to_resume
        {
            client.to_resume = true;
            self.to_resume.push(key);
        }
    }

    /// Executes the requests in `input`; returns how many bytes were consumed.
    fn serve(&mut self, key: ClientKey, input: &[u8]) -> usize {
        let mut done = 0;
        loop {
            let Some(client) = self.clients.get_mut(key) else { return done };
            if client.waiting || client.paused || client.closing {
                return done;
            }
            let limits = Limits {
                max_bulk_len: self.configuration.settings.proto_max_bulk_len,
                authenticated: client.authenticated,
            };
            let window = if client.authenticated { WINDOW } else { 1 };
            let mut planned = std::mem::take(&mut self.planned);
            let mut ranges = std::mem::take(&mut self.planned_ranges);
            let mut progress = std::mem::take(&mut client.progress);
            let mut next = done;
            let mut broken = None;
            while planned.len() < window {
                match wire::frame(&input[next..], &mut progress, limits) {
                    Framed::Request(len) => {
                        let first = ranges.len();
                        ranges.extend(
                            progress
                                .ranges()
                                .iter()
                                .map(|range| ArgRange { start: range.start + next as u32, len: range.len }),
                        );
                        progress.reset();
                        planned.push(plan(input, &ranges[first..], next, next + len));
                        next += len;
                    }
                    Framed::Incomplete => break,
                    Framed::Broken(text) => {
                        broken = Some(text);
                        break;
                    }
                }
            }
            if let Some(client) = self.clients.get_mut(key) {
                client.progress = progress;
            }
            let all = planned.len();
            let executed = self.execute_planned(key, input, &planned, &ranges);
            if let Some(last) = executed.checked_sub(1) {
                done = planned[last].end;
            }
            planned.clear();
            ranges.clear();
            ranges.shrink_to(KEPT_RANGES);
            self.planned = planned;
            self.planned_ranges = ranges;
            if executed < all {
                // What is left is split anew when the client goes on.
                if let Some(client) = self.clients.get_mut(key) {
                    client.progress.reset();
                }
                self.update_interest(key);
                return done;
            }
            if let Some(text) = broken {
                self.break_off(key, &text);
                return input.len();
            }
            if all < window {
                self.update_interest(key);
                return done;
            }
        }
    }

    /// Answers a client that does not speak the protocol, and ends the connection.
    fn break_off(&mut self, key: ClientKey, text: &str) {
        let error = CommandError::new(format!("ERR Protocol error: {text}"));
        self.count_error(&error);
        if let Some(client) = self.clients.get_mut(key) {
            let mut encoded = Vec::new();
            Reply::new(&mut encoded, client.protocol).error(&error);
            client.push_reply(&encoded);
            client.closing = true;
            self.want_flush(key);
            self.update_interest(key);
        }
    }

    /// Executes what was planned, in order, until the client must wait; returns how many requests were executed.
    fn execute_planned(&mut self, key: ClientKey, input: &[u8], planned: &[Planned], ranges: &[ArgRange]) -> usize {
        if planned.is_empty() {
            return 0;
        }
        let Some(client) = self.clients.get(key) else { return 0 };
        if planned.len() > 1 {
            let database = client.database;
            let keys = &self.shard.keys;
            for request in planned {
                if let Slots::One(slot) = request.slots {
                    keys.prefetch_table(database, slot);
                }
            }
            for request in planned {
                if let Slots::One(slot) = request.slots {
                    keys.prefetch_word(database, slot, request.hash);
                }
            }
            for request in planned {
                if let Slots::One(slot) = request.slots {
                    keys.prefetch_entry(database, slot, request.hash);
                }
            }
        }
        let mut start = self.clock.raw();
        let mut next_range = 0;
        for (index, request) in planned.iter().enumerate() {
            let words = &ranges[next_range..next_range + request.words];
            next_range += request.words;
            if request.words == 0 {
                if !self.execute_inline(key, &input[request.start..request.end], &mut start) {
                    return index + 1;
                }
            } else {
                self.execute_request(key, &request.found, request.slots, Args::new(input, words), &mut start);
            }
            match self.clients.get_mut(key) {
                None => return index + 1,
                Some(client) => {
                    if client.pieces.len() >= PAUSED_PIECES || client.unsent() >= PAUSED_UNSENT {
                        client.paused = true;
                    }
                    if client.waiting || client.paused || client.closing {
                        return index + 1;
                    }
                }
            }
        }
        planned.len()
    }

    /// Executes an inline request; false when the connection is to end.
    fn execute_inline(&mut self, key: ClientKey, line: &[u8], start: &mut u64) -> bool {
        if line.starts_with(b"*") {
            // An array without words is no request.
            return true;
        }
        let (mut buffer, mut ranges) = (Vec::new(), Vec::new());
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        if !wire::inline_words(content, &mut buffer, &mut ranges) {
            self.break_off(key, "unbalanced quotes in request");
            return false;
        }
        if ranges.is_empty() {
            return true;
        }
        let args = Args::new(&buffer, &ranges);
        let (found, slots, _) = look_up(args);
        self.execute_request(key, &found, slots, args, start);
        true
    }

    /// Executes one request of a client.
    fn execute_request(&mut self, key: ClientKey, found: &Found, slots: Slots, args: Args<'_>, start: &mut u64) {
        let Some(client) = self.clients.get_mut(key) else { return };
        client.commands += 1;
        self.counters.commands += 1;
        let command = match found {
            Found::Command(command) => *command,
            Found::WrongArity(command) => {
                self.command_stats[command.index].rejected += 1;
                self.reject(key, &CommandError::wrong_arity(command.spec.name));
                return;
            }
            Found::Unknown(error) => {
                let error = error.clone();
                self.reject(key, &error);
                return;
            }
        };
        client.last_command = command.spec.name;
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
        if self.process.monitors.load(std::sync::atomic::Ordering::Relaxed) > 0 && self.is_let_through(key, slots) {
            self.feed_monitors(key, command, args);
        }
        match command.run {
            Run::Shard(_) => self.route(key, command, slots, args, start),
            Run::Server(handler) => self.execute_on_server(key, command, handler, args, start),
            Run::Container => {
                self.reject(key, &CommandError::wrong_arity(command.spec.name));
            }
        }
    }

    /// Whether [`Core::route`] neither refuses a command nor sends the client elsewhere.
    fn is_let_through(&self, key: ClientKey, slots: Slots) -> bool {
        match slots {
            Slots::One(slot) => {
                let is_shared = self.clients.get(key).is_some_and(|client| client.door == Door::Shared);
                is_shared || self.process.owner(slot) == self.number
            }
            Slots::Several => false,
            Slots::None | Slots::Invalid => true,
        }
    }

    /// Runs a command on its shard: here, or by forwarding it; or tells the client where to go.
    #[inline]
    fn route(&mut self, key: ClientKey, command: &'static Registered, slots: Slots, args: Args<'_>, start: &mut u64) {
        let slot = match slots {
            Slots::One(slot) => slot,
            Slots::Several => {
                self.command_stats[command.index].rejected += 1;
                self.reject(key, &CommandError::CROSS_SLOT);
                return;
            }
            // Without keys, or with words that do not fit: the handler says what is wrong with them.
            Slots::None | Slots::Invalid => {
                self.execute_here(key, command, None, args, start);
                return;
            }
        };
        let owner = self.process.owner(slot);
        if owner == self.number {
            self.execute_here(key, command, Some(slot), args, start);
            return;
        }
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.door == Door::Shard {
            let announced = self.process.announced_address(owner, client.local.ip());
            let error = CommandError::new(format!("MOVED {slot} {announced}"));
            self.counters.moved += 1;
            self.command_stats[command.index].rejected += 1;
            self.reject(key, &error);
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
        };
        self.counters.forwarded += 1;
        self.batch_for(owner).push(forwarded, args);
    }

    #[inline]
    fn execute_here(
        &mut self,
        key: ClientKey,
        command: &'static Registered,
        slot: Option<u16>,
        args: Args<'_>,
        start: &mut u64,
    ) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let call = Call { database: client.database, slot, now_ms: self.now_ms, protocol: client.protocol };
        let no_touch = client.no_touch;
        let mut out = self.take_out(key);
        self.shard.keys.no_touch = no_touch;
        let (slow, end) = self.execute_on_shard(command, args, call, *start, &mut out.buffer);
        self.shard.keys.no_touch = false;
        *start = end;
        self.put_out(key, out);
        if let Some(entry) = slow {
            self.log_slow(entry, key);
        }
    }

    /// Runs a shard command and counts it; returns what the slow log should note, and the clock's reading at the end.
    #[inline]
    pub(super) fn execute_on_shard(
        &mut self,
        command: &'static Registered,
        args: Args<'_>,
        call: Call,
        start: u64,
        out: &mut Vec<u8>,
    ) -> (Option<SlowEntry>, u64) {
        let Run::Shard(shard_command) = command.run else { return (None, start) };
        self.counters.shard_commands += 1;
        let outcome = self.shard.execute(shard_command, args, call, out);
        if let Some(error) = &outcome.error {
            self.count_error(error);
        }
        let end = self.clock.raw();
        (self.note_call(command, args, start, end, outcome.error.is_some()), end)
    }

    /// Counts a call; returns what the slow log should note.
    #[inline]
    fn note_call(
        &mut self,
        command: &'static Registered,
        args: Args<'_>,
        start: u64,
        end: u64,
        failed: bool,
    ) -> Option<SlowEntry> {
        let duration_ns = self.clock.delta_as_nanos(start, end);
        self.command_stats[command.index].record(duration_ns, failed, self.configuration.latency_tracking);
        let threshold_ms = self.configuration.latency_monitor_threshold_ms;
        if threshold_ms > 0 && duration_ns / 1_000_000 >= threshold_ms {
            let event = if command.spec.flags.has(Flags::FAST) { "fast-command" } else { "command" };
            self.latency_events.record(event, self.now_ms / 1000, duration_ns / 1_000_000);
        }
        let threshold_us = self.configuration.slow_log_slower_than_us;
        if threshold_us >= 0
            && duration_ns / 1000 >= threshold_us as u64
            && !command.spec.flags.has(Flags::SKIP_SLOWLOG)
        {
            return Some(SlowEntry::new(self.now_ms / 1000, duration_ns / 1000, shown_words(command, args)));
        }
        None
    }

    fn execute_on_server(
        &mut self,
        key: ClientKey,
        command: &'static Registered,
        handler: crate::commands::Run,
        args: Args<'_>,
        start: &mut u64,
    ) {
        let Some(client) = self.clients.get(key) else { return };
        let protocol = client.protocol;
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
        if let Some(entry) = self.note_call(command, args, *start, end, failed) {
            self.log_slow(entry, key);
        }
        *start = end;
    }

    /// The buffer for the client's next reply: the output, or what is held behind replies that are still to come.
    #[inline]
    fn take_out(&mut self, key: ClientKey) -> Out {
        let Some(client) = self.clients.get_mut(key) else {
            return Out { buffer: Vec::new(), before: 0, direct: true };
        };
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
        self.want_flush(key);
    }

    /// Replies an error without running anything.
    fn reject(&mut self, key: ClientKey, error: &CommandError) {
        self.count_error(error);
        if let Some(client) = self.clients.get_mut(key) {
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
            if let Some(hash) = first_key(args) {
                keys.prefetch_word(forwarded.database as usize, forwarded.slot, hash);
            }
        }
        for (forwarded, args) in batch.iter().take(WINDOW) {
            if let Some(hash) = first_key(args) {
                keys.prefetch_entry(forwarded.database as usize, forwarded.slot, hash);
            }
        }
    }

    /// Adds an entry to the slow log, with its client.
    pub(super) fn log_slow(&mut self, mut entry: SlowEntry, key: ClientKey) {
        if let Some(client) = self.clients.get(key) {
            entry.client = client.peer.to_string();
            entry.client_name = client.name.clone();
        }
        let mut log = self.process.slow_log.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        log.push(entry);
    }

    /// Has the kernel tell of a client's input exactly while it may be served.
    pub(super) fn update_interest(&mut self, key: ClientKey) {
        use rustix::event::epoll::{EventData, EventFlags, modify};
        let epoll = self.epoll.as_fd();
        let Some(client) = self.clients.get_mut(key) else { return };
        let read = !(client.waiting || client.paused || client.closing);
        let write = client.sent < client.output.len() && client.blocked_on_write;
        if read == client.watches_read && write == client.watches_write {
            return;
        }
        client.watches_read = read;
        client.watches_write = write;
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, read);
        flags.set(EventFlags::OUT, write);
        // Fails only for a socket that is not in the set, which a client's always is.
        let _ = modify(epoll, &client.socket, EventData::new_u64(key.to_token()), flags);
    }
}

/// Removes what was consumed from the front; frees the buffer when nothing is left.
fn consume(input: &mut Vec<u8>, consumed: usize) {
    if consumed == input.len() {
        *input = Vec::new();
    } else if consumed > 0 {
        input.drain(..consumed);
    }
}

fn look_up(args: Args<'_>) -> (Found, Slots, u64) {
    let found = registry().find(args);
    let (slots, hash) = match &found {
        Found::Command(command) if !command.spec.keys.is_empty() => {
            (command.slots(args), args.get(1).map_or(0, hash_key))
        }
        _ => (Slots::None, 0),
    };
    (found, slots, hash)
}

fn plan(input: &[u8], words: &[ArgRange], start: usize, end: usize) -> Planned {
    if words.is_empty() {
        let nothing = Found::Unknown(CommandError::SYNTAX);
        return Planned { words: 0, start, end, found: nothing, slots: Slots::None, hash: 0 };
    }
    let (found, slots, hash) = look_up(Args::new(input, words));
    Planned { words: words.len(), start, end, found, slots, hash }
}
