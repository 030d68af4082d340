//! Reading a client's requests and having them executed.
//!
//! What was read is first split into requests, up to a window of them; then the places where their keys should be are
//! prefetched, all of them, so that the cache misses overlap; then they are executed in order.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use ruvio_shard::args::{ArgRange, Args};
use ruvio_shard::error::CommandError;
use ruvio_shard::hash_key;
use ruvio_shard::reply::Reply;

use super::client::{ClientKey, Replies};
use super::{Core, SCRATCH_BYTES};
use crate::registry::{Found, Slots, registry};
use crate::wire::{self, Framed, Limits};

/// Requests split ahead of execution.
pub(super) const WINDOW: usize = 64;

/// Bytes read at once from a client that is in the middle of a large request, at most.
const LARGE_READ: usize = 1 << 20;

/// Most bytes that may wait to be executed, whatever is configured: offsets have 32 bits.
const MAX_INPUT: usize = 2 << 30;

/// Ranges of words kept for the next window.
const KEPT_RANGES: usize = 64 << 10;

/// A client with this many bytes unsent is not served until it has read.
pub(super) const PAUSED_UNSENT: usize = 64 << 20;

/// A client with this many replies outstanding is not served until some came.
const PAUSED_PIECES: usize = 8192;

/// A half request's buffer is cut to its size after so many ms without more, as by Redis's `clientsCron`.
const IDLE_INPUT_MS: i64 = 2000;

/// A paused client is served again below these.
pub(super) const RESUMED_UNSENT: usize = PAUSED_UNSENT / 2;
pub(super) const RESUMED_PIECES: usize = PAUSED_PIECES / 2;

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

/// What came of an inline request.
enum Inline {
    /// It was executed, or there was nothing to execute.
    Executed,
    /// It waits for the end of a pause.
    Postponed,
    /// It cannot be read, and the connection ends.
    Broken,
}

impl Core {
    /// Reads what a client sent, and serves it; whether there was something, or the end.
    pub(super) fn read_client(&mut self, key: ClientKey, ended: bool) -> bool {
        let served_below = self.serving.replace(key);
        let came = self.read_and_serve(key, ended);
        self.serving = served_below;
        came
    }

    #[inline]
    fn read_and_serve(&mut self, key: ClientKey, ended: bool) -> bool {
        let Some(client) = self.clients.get_mut(key) else { return false };
        if !client.watches_read {
            // Input is not wanted now, so the event says that the connection is gone.
            if ended {
                self.close(key);
            }
            return ended;
        }
        if client.blocked_at.is_some() {
            // It has sent something, or it is gone: from now on the kernel tells of its end alone.
            let write = client.watches_write;
            self.set_interest(key, false, write, true);
            return true;
        }
        let received = if client.input.is_empty() {
            let mut scratch = std::mem::take(&mut self.scratch);
            if scratch.is_empty() {
                // The one there was holds the input of the client whose script runs.
                scratch = vec![0; SCRATCH_BYTES];
            }
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
            input.reserve(input.len().clamp(SCRATCH_BYTES, LARGE_READ));
            let received =
                rustix::net::recv(&client.socket, rustix::buffer::spare_capacity(&mut input), RecvFlags::empty())
                    .map(|(_, len)| len);
            if let Ok(len @ 1..) = received {
                self.note_input(key, len);
                if input.len() > self.configuration.client_query_buffer_limit && self.is_request_too_long(key, &input) {
                    self.end_for_input(key);
                    return true;
                }
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
            Err(Errno::AGAIN | Errno::INTR) => return false,
            Err(_) => self.close(key),
        }
        true
    }

    fn note_input(&mut self, key: ClientKey, len: usize) {
        self.counters.reads += 1;
        self.counters.bytes_in += len as u64;
        let now = self.now_ms;
        self.served_ms = now;
        if let Some(client) = self.clients.get_mut(key) {
            client.bytes_in += len as u64;
            client.active_ms = now;
        }
    }

    fn check_input(&mut self, key: ClientKey) {
        if self.clients.get(key).is_some_and(|client| !client.input.is_empty()) {
            self.check_kept_input(key);
        }
    }

    /// Sees to input that waits: for the rest of its request, or for the client to go on.
    #[cold]
    fn check_kept_input(&mut self, key: ClientKey) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.input.len() > self.configuration.client_query_buffer_limit.min(MAX_INPUT) {
            self.end_for_input(key);
        } else if !client.keeps_input {
            client.keeps_input = true;
            self.keep_input.push(key);
        }
    }

    /// Ends the connection of a client whose input passes the limit.
    #[cold]
    fn end_for_input(&mut self, key: ClientKey) {
        self.counters.query_limit_disconnections += 1;
        self.close(key);
    }

    /// Whether the first request in `input`, which is longer than the limit for it, is too long itself; otherwise others
    /// follow it, and it is to be executed.
    #[cold]
    fn is_request_too_long(&mut self, key: ClientKey, input: &[u8]) -> bool {
        let limit = self.configuration.client_query_buffer_limit;
        let max_bulk_len = self.configuration.settings.proto_max_bulk_len;
        let Some(client) = self.clients.get_mut(key) else { return false };
        let limits = Limits { max_bulk_len, authenticated: client.authenticated };
        let framed = wire::frame(input, &mut client.progress, limits);
        // It is split anew when it is served.
        client.progress.reset();
        match framed {
            Framed::Request(len) => len > limit,
            Framed::Incomplete => true,
            Framed::Broken(_) => false,
        }
    }

    /// Gives back what buffers of half requests have beyond these, where nothing more has come for some time.
    pub(super) fn shrink_idle_input(&mut self) {
        let now_ms = self.now_ms;
        let clients = &mut self.clients;
        self.keep_input.retain(|&key| {
            let Some(client) = clients.get_mut(key) else { return false };
            let is_idle = now_ms - client.active_ms > IDLE_INPUT_MS;
            if is_idle {
                client.input.shrink_to_fit();
            }
            client.keeps_input = !is_idle && !client.input.is_empty();
            client.keeps_input
        });
    }

    /// Serves clients that waited and may go on.
    pub(super) fn resume_clients(&mut self) {
        for key in std::mem::take(&mut self.to_resume) {
            if self.is_served_below(key) {
                self.to_resume.push(key);
                continue;
            }
            let Some(client) = self.clients.get_mut(key) else { continue };
            client.to_resume = false;
            if client.paused && !client.may_resume() {
                continue;
            }
            client.paused = false;
            client.awaits_replies = false;
            let mut input = std::mem::take(&mut client.input);
            let served_below = self.serving.replace(key);
            let consumed = self.serve(key, &input);
            self.serving = served_below;
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
            if client.waiting || client.paused || client.postponed || client.closing {
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
            if client.wants_replies() {
                let mut encoded = Vec::new();
                Reply::new(&mut encoded, client.protocol).error(&error);
                client.push_reply(&encoded);
            }
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
        let mut owed = client.pieces.len();
        let mut start = self.clock.raw();
        let mut next_range = 0;
        for (index, request) in planned.iter().enumerate() {
            let words = &ranges[next_range..next_range + request.words];
            next_range += request.words;
            if request.words == 0 {
                let line = &input[request.start..request.end];
                match self.execute_inline(key, line, &mut start) {
                    Inline::Executed => {}
                    Inline::Postponed => return index,
                    Inline::Broken => return index + 1,
                }
            } else {
                let args = Args::new(input, words);
                if self.postpones(key, &request.found, request.slots, args)
                    || self.awaits_replies(key, &request.found, args)
                {
                    return index;
                }
                self.execute_request(key, &request.found, request.slots, args, &mut start);
            }
            match self.clients.get_mut(key) {
                None => return index + 1,
                Some(client) => {
                    if client.replies != Replies::Wanted {
                        client.end_command(owed);
                    }
                    owed = client.pieces.len();
                    if client.pieces.len() >= PAUSED_PIECES
                        || client.unsent() >= self.paused_unsent
                        || client.reckoned_owed() >= PAUSED_UNSENT
                    {
                        client.paused = true;
                        // What it has sent besides is not executed, as in Redis.
                        client.closing |= client.is_over_limit(self.most_unsent);
                    }
                    if client.waiting || client.paused || client.closing {
                        return index + 1;
                    }
                }
            }
        }
        planned.len()
    }

    /// Executes an inline request.
    fn execute_inline(&mut self, key: ClientKey, line: &[u8], start: &mut u64) -> Inline {
        if line.starts_with(b"*") {
            // An array without words is no request.
            return Inline::Executed;
        }
        let (mut buffer, mut ranges) = (Vec::new(), Vec::new());
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        if !wire::inline_words(content, &mut buffer, &mut ranges) {
            self.break_off(key, "unbalanced quotes in request");
            return Inline::Broken;
        }
        if ranges.is_empty() {
            return Inline::Executed;
        }
        let args = Args::new(&buffer, &ranges);
        let (found, slots, _) = look_up(args);
        if self.postpones(key, &found, slots, args) || self.awaits_replies(key, &found, args) {
            return Inline::Postponed;
        }
        self.execute_request(key, &found, slots, args, start);
        Inline::Executed
    }

    /// Has the kernel tell of a client's input while it may be served, and of its end while it waits for a key.
    ///
    /// Most clients send nothing while they wait for a key: the kernel goes on telling of their input, until there is some.
    pub(super) fn update_interest(&mut self, key: ClientKey) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let read = !(client.waiting || client.paused || client.postponed || client.closing);
        let write = client.sent < client.output.len() && client.blocked_on_write;
        let blocked = client.blocked_at.is_some();
        if !(blocked && client.watches_read && write == client.watches_write) {
            self.set_interest(key, read, write, blocked);
        }
    }

    fn set_interest(&mut self, key: ClientKey, read: bool, write: bool, end: bool) {
        use rustix::event::epoll::{EventData, EventFlags, modify};
        let epoll = self.epoll.as_fd();
        let Some(client) = self.clients.get_mut(key) else { return };
        if read == client.watches_read && write == client.watches_write && end == client.watches_end {
            return;
        }
        client.watches_read = read;
        client.watches_write = write;
        client.watches_end = end;
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, read);
        flags.set(EventFlags::OUT, write);
        flags.set(EventFlags::RDHUP, end);
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
