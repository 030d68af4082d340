//! A core's write-ahead log: what its commands did is written while the core goes on, and replies wait until it is.
//!
//! A command that changes something leaves a record in a buffer. At the end of a turn the buffer is handed to the kernel as
//! one write, through a ring of the core's own; what the next turns add waits for the next write. A reply to a command
//! that left a record is sent once the record is [acknowledged](ruvio_shard::log::Writer::acknowledged): written, or synced too,
//! as the durability demands. Commands that change nothing wait for nothing but earlier replies of their client.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use ruvio_shard::args::{Args, OwnedArgs};
use ruvio_shard::command::Flags;
use ruvio_shard::error::CommandError;
use ruvio_shard::log::Trouble;
use ruvio_shard::log::replay::{FLUSH_DATABASE, SWAP_DATABASES};

use super::Core;
use super::client::ClientKey;
use super::mailbox::Message;
use crate::memory;
use crate::process::now_ms;
use crate::registry::Registered;

pub mod checkpoint;
pub mod disk;
mod grouping;
pub mod recovery;

use checkpoint::Checkpoints;
use disk::RingDisk;
use grouping::Grouping;

/// What writes the log of a core.
pub type Writer = ruvio_shard::log::Writer<RingDisk>;

/// Bytes of a segment, unless a single write is longer.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// Bytes of records that may wait to be written before the core takes no more input.
const STALLED_BYTES: usize = 64 << 20;

/// Bytes that a record takes beside its words, at most, for each word and for the record.
const RECORD_OVERHEAD: usize = 64;

/// The log of a shard, and the reading of its data.
#[derive(Clone, Debug, Default)]
pub struct DataPart {
    /// Bytes of records since the log began.
    pub log_bytes: u64,
    /// Those of them that replies need not wait for.
    pub acknowledged_bytes: u64,
    /// What stands in the way of writing the log.
    pub trouble: Option<String>,
    /// How often acknowledgements had to wait for a sync that took too long.
    pub delayed_syncs: u64,
    /// Bytes of the log since the last checkpoint, and of that.
    pub since_checkpoint: u64,
    pub checkpoint_bytes: u64,
    /// Whether a checkpoint is made, and whether the last one failed.
    pub makes_checkpoint: bool,
    pub checkpoint_failed: bool,
    /// Bytes to be read at the start, and bytes that were, while that goes on.
    pub to_load: u64,
    pub loaded: u64,
}

/// The log of a core, and what waits for it.
pub struct Log {
    /// What writes it.
    pub writer: Writer,
    /// Its checkpoints.
    pub checkpoints: Checkpoints,
    /// Whether commands are being collected into one record.
    grouped: bool,
    /// Whether the process knows that the log cannot be written.
    in_trouble: bool,
    /// Clients whose replies wait for a position, in the order of the positions.
    clients: VecDeque<(u64, ClientKey)>,
    /// Messages to other cores that do.
    messages: VecDeque<(u64, usize, Message)>,
    /// When the next sync begins that they wait for.
    grouping: Grouping,
}

impl Log {
    /// A log that goes on where `writer` stands.
    pub fn new(writer: Writer, checkpoints: Checkpoints) -> Log {
        Log {
            writer,
            checkpoints,
            grouped: false,
            in_trouble: false,
            clients: VecDeque::new(),
            messages: VecDeque::new(),
            grouping: Grouping::default(),
        }
    }
}

impl Core {
    /// Why a command that writes is refused now, if it is.
    #[inline]
    pub(super) fn log_refusal(&mut self, command: &Registered, args: Args<'_>) -> Option<CommandError> {
        let log = self.log.as_mut()?;
        if !command.spec.flags.has(Flags::WRITE) {
            return None;
        }
        let needed = args.span() + (args.len() + 1) * RECORD_OVERHEAD;
        log.writer.refusal(needed)
    }

    /// Adds a command that has changed something to the log.
    #[inline]
    pub(super) fn log_command(&mut self, database: usize, args: Args<'_>) {
        if self.log.is_some() {
            self.log_evicted();
            self.log_words(database, args);
        }
    }

    fn log_words(&mut self, database: usize, args: Args<'_>) {
        let Some(log) = &mut self.log else { return };
        if log.grouped {
            log.writer.buffer.command(database, args);
        } else {
            log.writer.buffer.begin(self.now_ms);
            log.writer.buffer.command(database, args);
            log.writer.buffer.end_record();
        }
        memory::note_log(log.writer.held_bytes());
    }

    /// Adds the removal of keys that were evicted.
    #[inline]
    pub(super) fn log_evicted(&mut self) {
        let Some(evicted) = self.shard.keys.evicted.as_mut().filter(|evicted| !evicted.is_empty()) else { return };
        for (database, key) in std::mem::take(evicted) {
            self.log_deletion(database, &key);
        }
    }

    /// Notes that a key was removed by no command.
    pub(super) fn log_deletion(&mut self, database: usize, key: &[u8]) {
        let words: OwnedArgs = [b"DEL", key].into_iter().collect();
        self.log_words(database, words.as_args());
    }

    /// Has the commands up to [`Core::end_log_group`] be one record.
    pub(super) fn begin_log_group(&mut self) {
        self.log_evicted();
        if let Some(log) = &mut self.log {
            log.writer.buffer.begin(self.now_ms);
            log.grouped = true;
        }
    }

    /// Ends the record of a group; nothing is logged if nothing was changed.
    pub(super) fn end_log_group(&mut self) {
        if let Some(log) = &mut self.log {
            log.grouped = false;
            log.writer.buffer.end_record();
        }
    }

    /// As [`Core::begin_log_group`], unless commands are being collected already; whether it did.
    pub(super) fn open_log_group(&mut self) -> bool {
        let opens = self.log.as_ref().is_some_and(|log| !log.grouped);
        if opens {
            self.begin_log_group();
        }
        opens
    }

    /// Ends what [`Core::open_log_group`] began; `is_abandoned` for leaving nothing of it in the log.
    pub(super) fn close_log_group(&mut self, is_abandoned: bool) {
        if let Some(log) = self.log.as_mut().filter(|_| is_abandoned) {
            log.writer.buffer.abandon_record();
        }
        self.end_log_group();
    }

    /// Why no write would be taken now, if none would.
    pub(super) fn log_trouble(&mut self) -> Option<CommandError> {
        self.log.as_mut()?.writer.refusal(0)
    }

    /// Hands the records to the kernel that have ended while a script runs.
    pub(super) fn write_ended_records(&mut self) {
        let now_ms = self.now_ms;
        if let Some(log) = &mut self.log
            && log.writer.start(now_ms)
        {
            self.advance_log();
        }
    }

    /// Sees to what the log does by the clock while a script runs.
    pub(super) fn advance_log_beside_script(&mut self) {
        let now_ms = self.now_ms;
        if let Some(log) = &mut self.log {
            log.writer.tick(now_ms);
            self.advance_log();
        }
    }

    /// Notes that all keys of a database were removed.
    pub(super) fn log_flush(&mut self, database: usize) {
        let words: OwnedArgs = [FLUSH_DATABASE].into_iter().collect();
        self.log_words(database, words.as_args());
    }

    /// Notes that two databases were exchanged.
    pub(super) fn log_swap(&mut self, one: usize, other: usize) {
        let words: OwnedArgs = [SWAP_DATABASES.to_owned(), one.to_string(), other.to_string()].into_iter().collect();
        self.log_words(0, words.as_args());
    }

    /// The position of the log behind all records so far; 0 without a log.
    #[inline]
    pub(super) fn log_end(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.writer.buffer.end())
    }

    /// Has a client's replies wait for what was logged since the log ended at `before`.
    #[inline]
    pub(super) fn await_log(&mut self, key: ClientKey, before: u64) {
        let end = self.log_end();
        if end > before
            && let Some(client) = self.clients.get_mut(key)
        {
            client.log_position = end;
        }
    }

    /// Whether a client's replies may be sent; if not, they are once the log is so far.
    #[inline]
    pub(super) fn may_send_replies(&mut self, key: ClientKey) -> bool {
        let Some(log) = &mut self.log else { return true };
        let Some(client) = self.clients.get_mut(key) else { return false };
        if client.log_position <= log.writer.acknowledged() {
            return true;
        }
        if !client.awaits_log {
            client.awaits_log = true;
            log.clients.push_back((client.log_position, key));
        }
        false
    }

    /// Sends a message to core `target` that replies to something, once what was logged since `before` is acknowledged. Such
    /// messages stay in order.
    pub(super) fn send_reply(&mut self, target: usize, before: u64, message: Message) {
        let Some(log) = &mut self.log else { return self.send_reply_now(target, message) };
        let end = log.writer.buffer.end();
        let position = if end > before { end } else { 0 };
        let is_behind = log.messages.iter().any(|(_, other, _)| *other == target);
        if position > log.writer.acknowledged() || is_behind {
            let position = position.max(log.messages.back().map_or(0, |(position, _, _)| *position));
            log.messages.push_back((position, target, message));
        } else {
            self.send_reply_now(target, message);
        }
    }

    /// Takes in what the kernel has done, and sends the replies that waited for it.
    pub(super) fn advance_log(&mut self) {
        let Some(log) = &self.log else { return };
        let groups = log.writer.syncs_always();
        let now_ns = if groups { self.elapsed_ns() } else { 0 };
        let Some(log) = &mut self.log else { return };
        let synced = log.writer.synced();
        // Whether the next one begins is decided once it is known whom this one releases.
        log.writer.holds_sync = groups && (log.writer.is_syncing() || log.grouping.left_ns(now_ns).is_some());
        log.writer.advance(self.now_ms);
        memory::note_log(log.writer.held_bytes());
        let acknowledged = log.writer.acknowledged();
        let has_synced = log.writer.synced() > synced;
        let mut released = 0;
        while let Some(log) = &mut self.log
            && log.messages.front().is_some_and(|(position, _, _)| *position <= acknowledged)
            && let Some((_, target, message)) = log.messages.pop_front()
        {
            released += 1;
            self.send(target, message);
        }
        while let Some(log) = &mut self.log
            && log.clients.front().is_some_and(|(position, _)| *position <= acknowledged)
            && let Some((_, key)) = log.clients.pop_front()
        {
            released += 1;
            if let Some(client) = self.clients.get_mut(key) {
                client.awaits_log = false;
                self.want_flush(key);
            }
        }
        let Some(log) = &mut self.log else { return };
        if !groups {
            return;
        }
        let waiting = log.clients.len() + log.messages.len();
        if has_synced {
            log.grouping.ended(now_ns, released, waiting);
        }
        if log.writer.holds_sync && !log.writer.is_syncing() && !log.grouping.holds(now_ns, waiting) {
            log.writer.holds_sync = false;
            log.writer.advance(self.now_ms);
        }
        if log.writer.is_syncing() {
            log.grouping.began(now_ns);
        }
    }

    /// How long the next sync is held back, in ns, where it is.
    pub(super) fn sync_is_held_ns(&self) -> Option<u64> {
        let log = self.log.as_ref().filter(|log| log.grouping.has_held())?;
        log.grouping.left_ns(self.elapsed_ns())
    }

    fn elapsed_ns(&self) -> u64 {
        self.clock.delta_as_nanos(0, self.clock.raw())
    }

    /// Tells the process, and the operator, that the log cannot be written any more, or can be again.
    #[cold]
    fn note_log_trouble(&mut self) {
        let Some(log) = &mut self.log else { return };
        let number = self.number;
        match log.writer.trouble() {
            Some(trouble) => {
                self.process.log_error.store(trouble.error().code(), Ordering::Relaxed);
                self.process.log_troubles.fetch_add(1, Ordering::Relaxed);
                eprintln!("ruvio: shard {number} refuses writes: {}", trouble.describe());
            }
            None => {
                self.process.log_troubles.fetch_sub(1, Ordering::Relaxed);
                eprintln!("ruvio: shard {number} accepts writes again");
            }
        }
        log.in_trouble = !log.in_trouble;
    }

    /// Hands the records of the turn to the kernel.
    #[inline]
    pub(super) fn write_log(&mut self) {
        if self.log.is_some() {
            self.log_evicted();
        }
        // The turn may have taken long: that is not to look like a slow write.
        let is_monitored = self.configuration.latency_monitor_threshold_ms > 0;
        let start_ms = if self.log.is_some() && is_monitored { now_ms().max(self.now_ms) } else { self.now_ms };
        if let Some(log) = &mut self.log
            && (log.writer.start(start_ms) || log.writer.holds_sync)
        {
            self.advance_log();
        }
        if self.log.as_ref().is_some_and(|log| log.writer.trouble().is_some() != log.in_trouble) {
            self.note_log_trouble();
        }
        self.begin_checkpoint();
    }

    /// Whether the log has something to be told of by the kernel.
    #[inline]
    pub(super) fn is_log_busy(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.writer.is_busy())
    }

    /// Whether so much waits to be written that no more input is taken.
    #[inline]
    pub(super) fn is_log_stalled(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.writer.buffer.len() > STALLED_BYTES)
    }

    /// What `INFO` says of the log and of the reading of data.
    pub fn data_part(&self) -> DataPart {
        let mut part = DataPart::default();
        if let Some(log) = &self.log {
            part.log_bytes = log.writer.buffer.end();
            part.acknowledged_bytes = log.writer.acknowledged();
            part.trouble = log.writer.trouble().map(Trouble::describe);
            part.delayed_syncs = log.writer.delayed_syncs();
            part.since_checkpoint = part.log_bytes - log.checkpoints.position;
            part.checkpoint_bytes = log.checkpoints.bytes;
            part.makes_checkpoint = log.checkpoints.is_busy();
            part.checkpoint_failed = log.checkpoints.failed;
        }
        if let Some(loading) = &self.loading {
            (part.to_load, part.loaded) = loading.progress();
        }
        part
    }

    /// Has replies wait for what the configuration says.
    pub(super) fn set_log_durability(&mut self) {
        if let Some(log) = &mut self.log {
            let durability = self.configuration.durability;
            log.writer.set_durability(durability);
            log.writer.disk.work_on(&self.process.log_processors(self.number, durability));
        }
    }

    /// Sees to what the log does by the clock.
    pub(super) fn tick_log(&mut self) {
        let now_ms = self.now_ms;
        if let Some(log) = &mut self.log {
            log.writer.tick(now_ms);
            self.advance_log();
            self.want_checkpoint_in_time();
        }
    }

    /// Writes and syncs all there is, before the core ends.
    pub(super) fn finish_log(&mut self) {
        self.write_log();
        let now_ms = self.now_ms;
        let Some(log) = &mut self.log else { return };
        match log.writer.finish(now_ms) {
            Ok(()) => self.advance_log(),
            Err(error) => self.process.fail(format!("the log of shard {} could not be finished: {error}", self.number)),
        }
    }
}
