//! Transactions: queueing commands, and executing them on the core that owns their keys, as one message.
//!
//! All keys of a transaction belong to one core. What its commands do to keys happens there without anything in between;
//! commands of the server among them (`PING`, `CLIENT …`) are run by the client's core when the replies are put together.
//! Only commands on whole databases (`FLUSHALL`, `DBSIZE`, …) split a transaction, because they work on every core: what
//! stands before and behind them is executed in parts, in order. What needs none of this is executed within `EXEC` (`at_home.rs`).

mod at_home;
mod queue;

use ruvio_shard::args::Args;
use ruvio_shard::command::Flags;
use ruvio_shard::error::CommandError;
use ruvio_shard::reply::Reply;
use ruvio_shard::shard::Call;

pub use self::queue::{KeyPlace, Queue};
use super::Core;
use super::client::{Client, ClientKey, Door};
use super::execute::Caller;
use super::forward::{Batch, Forwarded};
use super::mailbox::{Message, Task, Work};
use super::script::ScriptKind;
use super::script::beside::busy_error;
use super::tracking::Mode;
use super::waiting::Place;
use crate::commands::{mode_after, selected_database};
use crate::registry::{Registered, Run, Slots, registry};

/// The longest header of an array, in bytes.
const HEADER_BYTES: usize = 16;

/// Queues that are kept.
const SPARE_QUEUES: usize = 16;

/// A transaction under way on the client's core.
pub struct Execution {
    queue: Box<Queue>,
    /// The next command and its first range.
    next: usize,
    next_range: usize,
    owner: usize,
    /// Whether the client watches keys, as long as nobody has looked whether they changed.
    watched: bool,
    /// Whether the reply has begun.
    begun: bool,
}

/// Commands for the core that owns their keys, to be executed without anything in between.
pub struct Part {
    client: ClientKey,
    /// The client's process-wide number, if it is to be seen whether what it watches has changed.
    watcher: Option<u64>,
    batch: Box<Batch>,
    /// Whether the transaction begins with it, and a command of that needs memory.
    needs_memory: bool,
    /// Why nothing was executed, where nothing was.
    aborted: Option<Aborted>,
}

/// Why a transaction was not executed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aborted {
    /// A watched key had changed.
    Changed,
    /// Memory is at its limit, and a command needs some.
    OutOfMemory,
}

impl Core {
    /// Queues a command of a client that is in a transaction.
    pub(super) fn queue_command(&mut self, key: ClientKey, command: &'static Registered, slots: Slots, args: Args<'_>) {
        let limit = self.configuration.client_query_buffer_limit;
        // As in Redis nothing is queued while there is no room, whatever it would do.
        let has_room = self.has_room();
        let place = self.key_place(key, command, slots, args);
        let may_cross = self.may_cross_slots(key);
        let Some(client) = self.clients.get_mut(key) else { return };
        let watched = client.watched;
        let Some(queue) = client.transaction.as_mut() else { return };
        let refusal = match place {
            _ if command.spec.flags.has(Flags::NO_MULTI) => {
                Some(CommandError::new("ERR Command not allowed inside a transaction"))
            }
            _ if !has_room => Some(CommandError::OUT_OF_MEMORY),
            Ok(Some(place)) if queue.place.or(watched).is_some_and(|other| !place.goes_with(other, may_cross)) => {
                Some(CommandError::CROSS_SLOT)
            }
            _ if queue.bytes() > limit => Some(CommandError::new(format!(
                "ERR the transaction has more than client-query-buffer-limit ({limit}) bytes; make it smaller"
            ))),
            Ok(_) => None,
            Err(ref error) => Some(error.clone()),
        };
        if let Some(error) = refusal {
            queue.failed = true;
            self.command_stats[command.index].rejected += 1;
            self.reject(key, &error);
            return;
        }
        let place = place.ok().flatten();
        queue.push(command, place, args);
        client.push_reply(b"+QUEUED\r\n");
        self.want_flush(key);
    }

    /// Where a command's keys are, for a client that may use them there; `None` without keys.
    fn key_place(
        &mut self,
        key: ClientKey,
        command: &Registered,
        slots: Slots,
        args: Args<'_>,
    ) -> Result<Option<KeyPlace>, CommandError> {
        let place = match slots {
            Slots::One(slot) => KeyPlace { slot: Some(slot), owner: self.process.owner(slot) },
            Slots::Several => match self.common_owner(key, command, args) {
                Some(owner) => KeyPlace { slot: None, owner },
                None => return Err(CommandError::CROSS_SLOT),
            },
            Slots::None | Slots::Invalid => return Ok(None),
        };
        match (self.clients.get(key), place.slot) {
            (Some(client), Some(slot)) if client.door == Door::Shard && place.owner != self.number => {
                let announced = self.process.announced_address(place.owner, client.local.ip());
                self.counters.moved += 1;
                Err(CommandError::new(format!("MOVED {slot} {announced}")))
            }
            _ => Ok(Some(place)),
        }
    }

    /// Begins a transaction.
    pub fn begin_transaction(&mut self, key: ClientKey) -> Result<(), CommandError> {
        match self.clients.get_mut(key) {
            Some(client) if client.transaction.is_some() => Err(CommandError::new("ERR MULTI calls can not be nested")),
            Some(client) => {
                client.transaction = Some(self.spare_queues.pop().unwrap_or_default());
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn keep_queue(&mut self, mut queue: Box<Queue>) {
        if self.spare_queues.len() < SPARE_QUEUES && queue.reset() {
            self.spare_queues.push(queue);
        }
    }

    /// Forgets a transaction and what the client watches.
    pub fn discard_transaction(&mut self, key: ClientKey) -> Result<(), CommandError> {
        let Some(client) = self.clients.get_mut(key) else { return Ok(()) };
        if client.transaction.take().is_none() {
            return Err(CommandError::new("ERR DISCARD without MULTI"));
        }
        self.unwatch(key);
        Ok(())
    }

    /// Has a client watch keys: `args` are the words of `WATCH`.
    pub fn watch(&mut self, key: ClientKey, command: &Registered, args: Args<'_>) -> Result<(), CommandError> {
        if self.clients.get(key).is_some_and(|client| client.transaction.is_some()) {
            return Err(CommandError::new("ERR WATCH inside MULTI is not allowed"));
        }
        let Some(place) = self.key_place(key, command, command.slots(args), args)? else { return Ok(()) };
        let may_cross = self.may_cross_slots(key);
        let Some(client) = self.clients.get_mut(key) else { return Ok(()) };
        if client.watched.is_some_and(|watched| !place.goes_with(watched, may_cross)) {
            return Err(CommandError::CROSS_SLOT);
        }
        let owner = place.owner;
        client.watched = Some(place);
        let (id, database) = (client.id, client.database);
        client.watched_keys.extend(args.from(1).iter().map(|key| (database, Box::from(key))));
        let keys: Vec<Box<[u8]>> = args.from(1).iter().map(Box::from).collect();
        if owner == self.number {
            self.watch_here(id, database, &keys);
        } else {
            let run: Task = Box::new(move |core: &mut Core| core.watch_here(id, database, &keys));
            // What a script changes meanwhile counts as a change of what is watched.
            let refuse: Task = Box::new(move |core: &mut Core| core.watch_busy(id));
            self.send(owner, Message::Work(Work { run, refuse: Some(refuse) }));
        }
        Ok(())
    }

    /// Ends all that a client watches.
    pub fn unwatch(&mut self, key: ClientKey) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if let Some(watched) = client.take_watched() {
            let id = client.id;
            self.unwatch_at(watched.owner, id);
        }
    }

    /// Closes a client's transaction, to be executed by [`Core::continue_transaction`].
    pub fn close_transaction(&mut self, key: ClientKey) -> Result<(), CommandError> {
        let home = self.number;
        let Some(client) = self.clients.get_mut(key) else { return Ok(()) };
        let Some(queue) = client.transaction.take() else { return Err(CommandError::new("ERR EXEC without MULTI")) };
        if queue.failed {
            self.unwatch(key);
            return Err(CommandError::new("EXECABORT Transaction discarded because of previous errors."));
        }
        let watched = client.take_watched();
        let owner = queue.place.or(watched).map_or(home, |place| place.owner);
        let Some(client) = self.clients.get_mut(key) else { return Ok(()) };
        client.waiting = true;
        client.executing = true;
        client.execution = Some(Box::new(Execution {
            queue,
            next: 0,
            next_range: 0,
            owner,
            watched: watched.is_some(),
            begun: false,
        }));
        Ok(())
    }

    /// Executes the next part of a client's transaction, and all that need not wait.
    pub(super) fn continue_transaction(&mut self, key: ClientKey) {
        loop {
            let Some(client) = self.clients.get_mut(key) else { return };
            let Some(mut execution) = client.execution.take() else { return };
            if self.scripts.running().is_some() && execution.goes_on_at(self.number) {
                client.execution = Some(execution);
                let go_on: Task = Box::new(move |core: &mut Core| core.continue_transaction(key));
                self.deferred.push_back(Message::Task(go_on));
                return;
            }
            if execution.begun && execution.next == execution.queue.commands.len() {
                client.waiting = client.gathers();
                client.end_execution();
                self.want_resume(key);
                self.keep_queue(execution.queue);
                return;
            }
            if execution.begun && is_whole_process(execution.queue.commands[execution.next].command) {
                self.run_whole_process(key, execution);
                continue;
            }
            let watcher = std::mem::take(&mut execution.watched).then_some(client.id);
            let mut batch = self.spare_batches.pop().unwrap_or_default();
            batch.from = self.number as u16;
            execution.fill(&mut batch, key, client, self.process.options.databases);
            let needs_memory = !execution.begun && execution.queue.needs_memory;
            let part = Part { client: key, watcher, batch, needs_memory, aborted: None };
            let owner = execution.owner;
            client.execution = Some(execution);
            if owner == self.number || (part.batch.commands.is_empty() && part.watcher.is_none()) {
                let log_before = self.log_end();
                let part = self.execute_part(part);
                self.await_log(key, log_before);
                if !self.take_part(part) {
                    return;
                }
            } else {
                self.counters.forwarded += part.batch.commands.len() as u64;
                let home = self.number;
                let run = move |core: &mut Core| {
                    let log_before = core.log_end();
                    let part = core.execute_part(part);
                    let settle = move |core: &mut Core| {
                        if core.take_part(part) {
                            core.continue_transaction(key);
                        }
                    };
                    core.send_reply(home, log_before, Message::Task(Box::new(settle)));
                };
                let refuse = move |core: &mut Core| {
                    let busy = core.running_script().map_or(ScriptKind::Script, |running| running.kind);
                    core.send(home, Message::Task(Box::new(move |core: &mut Core| core.abort_busy(key, busy))));
                };
                self.send(owner, Message::Work(Work { run: Box::new(run), refuse: Some(Box::new(refuse)) }));
                return;
            }
        }
    }

    /// Ends a transaction that was refused because its shard runs a script for too long.
    fn abort_busy(&mut self, key: ClientKey, kind: ScriptKind) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let Some(execution) = client.execution.take() else { return };
        let reason = busy_error(kind);
        let mut error = reason.clone();
        if !execution.begun {
            error = CommandError::new(format!("EXECABORT Transaction discarded because of: {}", reason.text()));
        }
        let left = if execution.begun { execution.queue.commands.len() - execution.next } else { 1 };
        let mut encoded = Vec::new();
        (0..left).for_each(|_| Reply::new(&mut encoded, client.protocol).error(&error));
        client.push_reply(&encoded);
        client.waiting = client.gathers();
        client.end_execution();
        self.count_error(&error);
        if !execution.begun {
            self.note_refused_execution();
        }
        self.want_flush(key);
        self.want_resume(key);
    }

    /// Notes that an `EXEC`, which was counted when it closed the transaction, is refused.
    #[cold]
    fn note_refused_execution(&mut self) {
        if let Some(exec) = registry().get(b"exec") {
            self.command_stats[exec.index].take_back();
        }
    }

    /// Executes a part of a transaction on the core that owns its keys.
    fn execute_part(&mut self, mut part: Part) -> Part {
        let has_changed = part.watcher.is_some_and(|watcher| !self.end_watch(watcher));
        // As in Redis, which refuses EXEC for want of memory before it looks at what was watched.
        if part.needs_memory && self.configuration.settings.maxmemory > 0 && !self.shard.make_room() {
            part.aborted = Some(Aborted::OutOfMemory);
        } else if has_changed {
            part.aborted = Some(Aborted::Changed);
        }
        if part.aborted.is_some() {
            return part;
        }
        let mut batch = part.batch;
        let mut replies = std::mem::take(&mut batch.replies);
        let mut ends = std::mem::take(&mut batch.ends);
        let mut slow = Vec::new();
        let mut start = self.clock.raw();
        self.begin_log_group();
        let client = Place { core: batch.from as usize, client: part.client };
        for (place, (forwarded, args)) in batch.iter().enumerate() {
            let call = Call {
                database: forwarded.database as usize,
                slot: forwarded.slot,
                now_ms: self.now_ms,
                protocol: forwarded.protocol,
                may_wait: false,
            };
            self.shard.keys.no_touch = forwarded.no_touch;
            let caller = Caller { place: client, is_tracked: forwarded.is_tracked };
            let executed = self.execute_on_shard(forwarded.command, args, call, caller, start, &mut replies);
            start = executed.end;
            slow.extend(self.slow_entries(executed.slow).map(|entry| (place, entry)));
            ends.push(replies.len());
            self.observe_changes(Some(client));
            if forwarded.is_tracked {
                self.note_reads(client, forwarded.command, args);
            }
        }
        self.shard.keys.no_touch = false;
        self.end_log_group();
        self.serve_ready();
        batch.replies = replies;
        batch.ends = ends;
        batch.slow = slow;
        part.batch = batch;
        part
    }

    /// Puts the replies of a part together, with those of the server's own commands in it. False when the transaction is
    /// over, or its client is.
    fn take_part(&mut self, part: Part) -> bool {
        let key = part.client;
        let refusal = part.aborted.filter(|aborted| *aborted == Aborted::OutOfMemory).map(|_| {
            let reason = CommandError::OUT_OF_MEMORY;
            CommandError::new(format!("EXECABORT Transaction discarded because of: {}", reason.text()))
        });
        if let Some(error) = &refusal {
            self.count_error(error);
            self.note_refused_execution();
        }
        let Some(client) = self.clients.get_mut(key) else { return false };
        let protocol = client.protocol;
        let Some(mut execution) = client.execution.take() else { return false };
        let mut encoded = Vec::with_capacity(part.batch.replies.len() + HEADER_BYTES);
        if part.aborted.is_some() {
            let mut reply = Reply::new(&mut encoded, protocol);
            match &refusal {
                Some(error) => reply.error(error),
                None => reply.null_array(),
            }
            client.push_reply(&encoded);
            client.waiting = client.gathers();
            client.end_execution();
            self.want_flush(key);
            self.want_resume(key);
            return false;
        }
        if !execution.begun {
            Reply::new(&mut encoded, protocol).array(execution.queue.commands.len());
            execution.begun = true;
        }
        let mut reply_start = 0;
        let mut ends = part.batch.ends.iter();
        while let Some(queued) = execution.queue.commands.get(execution.next)
            && !is_whole_process(queued.command)
        {
            let ranges = execution.next_range..execution.next_range + queued.words;
            execution.next += 1;
            execution.next_range = ranges.end;
            match queued.command.run {
                Run::Server(handler) => {
                    self.reply_in_order(key, &mut encoded);
                    let args = Args::new(&execution.queue.bytes, &execution.queue.ranges[ranges]);
                    let mut start = self.clock.raw();
                    self.execute_on_server(key, queued.command, handler, args, &mut start);
                }
                Run::Shard(_) | Run::Script(_) | Run::Container => {
                    if let Some(&end) = ends.next() {
                        encoded.extend_from_slice(&part.batch.replies[reply_start..end]);
                        reply_start = end;
                    }
                }
            }
        }
        self.reply_in_order(key, &mut encoded);
        let mut batch = part.batch;
        for (_, entry) in batch.slow.drain(..) {
            self.log_slow(entry, key);
        }
        self.keep_batch(batch);
        let Some(client) = self.clients.get_mut(key) else { return false };
        // A command of the server may have ended its own waiting.
        client.waiting = true;
        client.execution = Some(execution);
        true
    }

    fn reply_in_order(&mut self, key: ClientKey, encoded: &mut Vec<u8>) {
        if let Some(client) = self.clients.get_mut(key) {
            client.push_reply(encoded);
            encoded.clear();
            self.want_flush(key);
        }
    }

    /// Runs a command that works on every core. Nobody waits for its reply, which keeps its place: every core takes in
    /// what it has to do before the next part.
    fn run_whole_process(&mut self, key: ClientKey, mut execution: Box<Execution>) {
        let queued = &execution.queue.commands[execution.next];
        let (command, ranges) = (queued.command, execution.next_range..execution.next_range + queued.words);
        execution.next += 1;
        execution.next_range = ranges.end;
        if let Run::Server(handler) = command.run {
            let args = Args::new(&execution.queue.bytes, &execution.queue.ranges[ranges]);
            let mut start = self.clock.raw();
            self.execute_on_server(key, command, handler, args, &mut start);
        }
        if let Some(client) = self.clients.get_mut(key) {
            client.waiting = true;
            client.execution = Some(execution);
        }
    }
}

/// Whether a command may read keys that a client's copies are of.
fn reads(command: &Registered) -> bool {
    command.spec.flags.has(Flags::READ_ONLY) || matches!(command.run, Run::Script(_))
}

/// Whether a command of the server works on keys, and so on every core.
fn is_whole_process(command: &Registered) -> bool {
    matches!(command.run, Run::Server(_)) && command.spec.flags.has_any(Flags::READ_ONLY.and(Flags::WRITE))
}

impl Execution {
    /// Whether its next step is done on core `core`.
    fn goes_on_at(&self, core: usize) -> bool {
        let is_over = self.begun && self.next == self.queue.commands.len();
        !is_over
            && (self.owner == core
                || self.queue.commands.is_empty()
                || self.queue.commands.get(self.next).is_some_and(|queued| is_whole_process(queued.command)))
    }

    /// Adds the commands on keys before the next command that works on every core.
    fn fill(&self, batch: &mut Batch, key: ClientKey, client: &Client, databases: usize) {
        let mut mode = client.tracking.as_ref().map(|tracking| tracking.mode);
        let mut range = self.next_range;
        let mut database = client.database;
        for queued in &self.queue.commands[self.next..] {
            if is_whole_process(queued.command) {
                break;
            }
            let args = Args::new(&self.queue.bytes, &self.queue.ranges[range..range + queued.words]);
            range += queued.words;
            match queued.command.run {
                Run::Shard(_) | Run::Script(_) => {
                    let forwarded = Forwarded {
                        client: key,
                        command: queued.command,
                        words: queued.words as u32,
                        slot: queued.slot,
                        database: database as u16,
                        protocol: client.protocol,
                        no_touch: client.no_touch,
                        is_tracked: mode.is_some_and(Mode::notes_reads) && reads(queued.command),
                    };
                    batch.push(forwarded, args);
                }
                _ if queued.command.spec.name == "select" => {
                    database = selected_database(args, databases).unwrap_or(database);
                }
                _ => mode = mode_after(queued.command.spec.name, args, mode),
            }
        }
    }
}
