//! What a core does while a script runs on it.
//!
//! The interpreter asks every few thousand instructions. About once a millisecond the core then takes a turn without
//! keys: it reads sockets, forwards to other cores, takes in and sends replies and messages. What needs its own keys
//! waits for the end of the script: commands of its clients stay in their input, those of other cores in a queue. When
//! the script has run for `busy-reply-threshold`, they are answered `BUSY` instead.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use ruvio_shard::args::{Args, OwnedArgs};
use ruvio_shard::command::{Categories, Flags};
use ruvio_shard::error::CommandError;
use ruvio_shard::reply::Reply;
use ruvio_shard::script::Pulse;

use super::ScriptKind;
use crate::core::client::ClientKey;
use crate::core::forward::Batch;
use crate::core::mailbox::{Message, Work};
use crate::core::waiting::Place;
use crate::core::{Core, EVENTS};
use crate::process::now_ms;
use crate::registry::{Found, Registered, Run, Slots};

/// How often other things are seen to, in ns.
const SERVE_EVERY_NS: u64 = 1_000_000;

/// Messages taken in at once.
const TAKEN_AT_ONCE: usize = 256;

/// Messages that may wait for the script; when there are more, no others are taken in either.
const MOST_DEFERRED: usize = 64 << 10;

const NONE: u8 = 0;
const SCRIPT: u8 = 1;
const FUNCTION: u8 = 2;

/// Which shards have run a script for too long.
pub struct BusyShards {
    shards: Box<[AtomicU8]>,
    count: AtomicUsize,
}

impl BusyShards {
    /// None of so many.
    pub fn new(shards: usize) -> BusyShards {
        BusyShards { shards: (0..shards).map(|_| AtomicU8::new(NONE)).collect(), count: AtomicUsize::new(0) }
    }

    /// Whether any has.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    fn set(&self, shard: usize, kind: ScriptKind) {
        let state = match kind {
            ScriptKind::Script => SCRIPT,
            ScriptKind::Function => FUNCTION,
        };
        if self.shards[shard].swap(state, Ordering::Relaxed) == NONE {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn clear(&self, shard: usize) {
        if self.shards[shard].swap(NONE, Ordering::Relaxed) != NONE {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn of(&self, shard: usize) -> Option<ScriptKind> {
        match self.shards[shard].load(Ordering::Relaxed) {
            SCRIPT => Some(ScriptKind::Script),
            FUNCTION => Some(ScriptKind::Function),
            _ => None,
        }
    }

    fn first(&self) -> Option<ScriptKind> {
        (0..self.shards.len()).find_map(|shard| self.of(shard))
    }
}

/// The refusal while a script of this kind runs.
pub fn busy_error(kind: ScriptKind) -> CommandError {
    let command = match kind {
        ScriptKind::Script => "SCRIPT KILL",
        ScriptKind::Function => "FUNCTION KILL",
    };
    CommandError::new(format!("BUSY Redis is busy running a script. You can only call {command} or SHUTDOWN NOSAVE."))
}

/// The shards whose keys, or interpreter, a command needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Touched {
    None,
    One(usize),
    All,
}

impl Core {
    /// Sees to other things if it is time; says whether the script goes on.
    pub(super) fn pulse(&mut self, args: Args<'_>) -> Pulse {
        let now = self.clock.raw();
        let Some(running) = &self.scripts.running else { return Pulse::GoOn };
        if self.clock.delta_as_nanos(running.served, now) < SERVE_EVERY_NS {
            return Pulse::GoOn;
        }
        let elapsed_ms = self.clock.delta_as_nanos(running.started, now) / 1_000_000;
        self.serve_beside_script(args, elapsed_ms);
        let end = self.clock.raw();
        let abandons = self.process.abandons_scripts.load(Ordering::Relaxed);
        let stops = self.process.stopping.load(Ordering::Relaxed);
        let Some(running) = &mut self.scripts.running else { return Pulse::GoOn };
        running.served = end;
        let may_end = !running.has_written && (running.is_killed || stops);
        if may_end || abandons { Pulse::Kill } else { Pulse::GoOn }
    }

    /// A turn that touches no key.
    fn serve_beside_script(&mut self, args: Args<'_>, elapsed_ms: u64) {
        self.now_ms = now_ms().max(self.now_ms);
        let threshold_ms = self.configuration.busy_reply_threshold_ms;
        if let Some(running) = &mut self.scripts.running {
            if running.words.as_args().is_empty() {
                running.words = args.iter().collect::<OwnedArgs>();
            }
            if !running.is_busy && threshold_ms > 0 && elapsed_ms >= threshold_ms {
                running.is_busy = true;
                let kind = running.kind;
                self.process.busy.set(self.number, kind);
                self.refuse_deferred(kind);
                self.resume_held_back();
            }
        }
        self.take_messages_beside_script();
        let mut events = Vec::with_capacity(EVENTS);
        self.poll(&mut events, 0);
        self.take_events(&events);
        self.end_overdue_waiting();
        self.resume_clients();
        self.write_ended_records();
        self.send_outboxes();
        self.flush_clients();
        if self.now_ms >= self.next_tick_ms {
            self.tick_beside_script();
        }
    }

    fn take_messages_beside_script(&mut self) {
        let is_busy = self.scripts.running.as_ref().filter(|running| running.is_busy).map(|running| running.kind);
        for _ in 0..TAKEN_AT_ONCE {
            if self.deferred.len() >= MOST_DEFERRED {
                return;
            }
            let Some(message) = self.process.cores[self.number].pop() else { return };
            match (message, is_busy) {
                (Message::Replies(batch), _) => self.take_replies(batch),
                (Message::Task(task), _) => task(self),
                (message, None) => self.deferred.push_back(message),
                (message, Some(kind)) => self.refuse(message, kind),
            }
        }
    }

    /// Refuses what other cores want while a script runs for too long.
    fn refuse_deferred(&mut self, kind: ScriptKind) {
        for message in std::mem::take(&mut self.deferred) {
            self.refuse(message, kind);
        }
    }

    fn refuse(&mut self, message: Message, kind: ScriptKind) {
        match message {
            Message::Forward(batch) => self.refuse_batch(batch, kind),
            Message::Work(Work { refuse: Some(refuse), .. }) => refuse(self),
            waits @ Message::Work(_) => self.deferred.push_back(waits),
            Message::Replies(batch) => self.take_replies(batch),
            Message::Task(task) => task(self),
        }
    }

    /// Sends another core's commands back, each with an error.
    fn refuse_batch(&mut self, mut batch: Box<Batch>, kind: ScriptKind) {
        let error = busy_error(kind);
        let mut replies = std::mem::take(&mut batch.replies);
        let mut ends = std::mem::take(&mut batch.ends);
        for forwarded in &batch.commands {
            self.command_stats[forwarded.command.index].rejected += 1;
            Reply::new(&mut replies, forwarded.protocol).error(&error);
            ends.push(replies.len());
        }
        for _ in 0..batch.commands.len() {
            self.count_error(&error);
        }
        batch.replies = replies;
        batch.ends = ends;
        let home = batch.from as usize;
        let log_before = self.log_end();
        self.send_reply(home, log_before, Message::Replies(batch));
    }

    /// The shards that a command needs.
    fn touched(&self, key: ClientKey, command: &'static Registered, slots: Slots, args: Args<'_>) -> Touched {
        match slots {
            Slots::One(slot) => return Touched::One(self.process.owner(slot)),
            Slots::Several => {
                return match self.common_owner(key, command, args) {
                    Some(owner) => Touched::One(owner),
                    None if self.may_be_split(key, command) => Touched::All,
                    None => Touched::None,
                };
            }
            Slots::None | Slots::Invalid => {}
        }
        match command.run {
            Run::Shard(_) | Run::Script(_) => Touched::One(self.number),
            Run::Container => Touched::None,
            Run::Server(_) if command.spec.name == "exec" => self.touched_by_transaction(key),
            Run::Server(_) if command.spec.categories.has(Categories::SCRIPTING) => Touched::None,
            Run::Server(_) if command.spec.flags.has_any(Flags::READ_ONLY.and(Flags::WRITE)) => Touched::All,
            Run::Server(_) => Touched::None,
        }
    }

    fn touched_by_transaction(&self, key: ClientKey) -> Touched {
        let Some(client) = self.clients.get(key) else { return Touched::None };
        match &client.transaction {
            None => Touched::None,
            Some(queue) if queue.is_whole_process() => Touched::All,
            Some(queue) => {
                let watched = client.watched.map(|place| place.owner);
                Touched::One(queue.owner().or(watched).unwrap_or(self.number))
            }
        }
    }

    /// Whether a request waits for the end of the script that runs on this core.
    #[cold]
    pub(in crate::core) fn waits_for_script(
        &mut self,
        key: ClientKey,
        found: &Found,
        slots: Slots,
        args: Args<'_>,
    ) -> bool {
        let Found::Command(command) = found else { return false };
        if self.scripts.running.as_ref().is_none_or(|running| running.is_busy)
            || command.spec.flags.has(Flags::ALLOW_BUSY)
        {
            return false;
        }
        let is_on_this_core = match self.touched(key, command, slots, args) {
            Touched::None => false,
            Touched::One(shard) => shard == self.number,
            Touched::All => true,
        };
        let Some(client) = self.clients.get_mut(key) else { return false };
        let is_queued = client.transaction.is_some() && command.spec.name != "exec";
        if !is_on_this_core || is_queued || (!client.authenticated && !command.spec.flags.has(Flags::NO_AUTH)) {
            return false;
        }
        client.postponed = true;
        client.last_command = command.spec.name;
        self.held_back.push(key);
        true
    }

    /// Lets the clients go on that waited for the end of a script.
    pub(super) fn resume_held_back(&mut self) {
        for key in std::mem::take(&mut self.held_back) {
            if let Some(client) = self.clients.get_mut(key) {
                client.postponed = false;
                self.want_resume(key);
            }
        }
    }

    /// Whether a command needs a shard that has run a script for too long.
    #[cold]
    pub(in crate::core) fn is_busy(
        &mut self,
        key: ClientKey,
        command: &'static Registered,
        slots: Slots,
        args: Args<'_>,
    ) -> bool {
        self.busy_kind(key, command, slots, args).is_some()
    }

    fn busy_kind(
        &self,
        key: ClientKey,
        command: &'static Registered,
        slots: Slots,
        args: Args<'_>,
    ) -> Option<ScriptKind> {
        if command.spec.flags.has(Flags::ALLOW_BUSY) || !self.is_let_through(key, command, slots, args) {
            return None;
        }
        match self.touched(key, command, slots, args) {
            Touched::None => None,
            Touched::One(shard) => self.process.busy.of(shard),
            Touched::All => self.process.busy.first(),
        }
    }

    /// Refuses a command for which [`Core::is_busy`] holds.
    #[cold]
    pub(in crate::core) fn refuse_busy(
        &mut self,
        key: ClientKey,
        command: &'static Registered,
        slots: Slots,
        args: Args<'_>,
    ) {
        let Some(kind) = self.busy_kind(key, command, slots, args) else { return };
        let mut error = busy_error(kind);
        if command.spec.name == "exec" {
            // As in Redis the transaction is over.
            let _ = self.discard_transaction(key);
            error = CommandError::new(format!("EXECABORT Transaction discarded because of: {}", error.text()));
        } else {
            self.fail_transaction(key);
        }
        self.reject(key, &error);
    }

    /// What is left of a tick while a script runs.
    fn tick_beside_script(&mut self) {
        self.count_tick();
        self.advance_log_beside_script();
        self.look_after_clients();
    }

    /// Whether the client's input, or its output, is in use by what has the script run.
    pub(in crate::core) fn is_served_below(&self, key: ClientKey) -> bool {
        self.scripts.running.as_ref().is_some_and(|running| running.serving == Some(key))
    }

    /// Whether something waits for the end of a script that has ended.
    pub(in crate::core) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Tells those who observe what a command of a script changed.
    #[inline]
    pub(super) fn observe_script(&mut self, caller: Place) {
        if self.shard.keys.has_changes() {
            self.observe_changes(Some(caller));
        }
    }
}
