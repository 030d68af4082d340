//! Transactions: queueing commands, and executing them on the core that owns their keys, as one message.
//!
//! All keys of a transaction belong to one core. What its commands do to keys happens there without anything in between;
//! commands of the server among them (`PING`, `CLIENT …`) are run by the client's core when the replies are put together.
//! Only commands on whole databases (`FLUSHALL`, `DBSIZE`, …) split a transaction, because they work on every core: what
//! stands before and behind them is executed in parts, in order.

use ruvio_shard::args::{ArgRange, Args};
use ruvio_shard::command::Flags;
use ruvio_shard::error::CommandError;
use ruvio_shard::reply::Reply;
use ruvio_shard::shard::Call;

use super::Core;
use super::client::{Client, ClientKey, Door};
use super::forward::{Batch, Forwarded};
use super::mailbox::Message;
use super::tracking::Mode;
use super::waiting::Place;
use crate::commands::{mode_after, selected_database};
use crate::registry::{Registered, Run, Slots};

/// A command of a transaction.
struct Queued {
    command: &'static Registered,
    /// Its words are the next this many ranges.
    words: usize,
    slot: Option<u16>,
}

/// The commands of a client between `MULTI` and `EXEC`.
#[derive(Default)]
pub struct Queue {
    commands: Vec<Queued>,
    bytes: Vec<u8>,
    ranges: Vec<ArgRange>,
    /// The slot of all keys so far.
    slot: Option<u16>,
    /// Whether a command was refused, so that `EXEC` will be.
    failed: bool,
}

impl Queue {
    /// How many commands are queued.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Bytes of their words.
    pub fn bytes(&self) -> usize {
        self.bytes.len() + self.ranges.len() * size_of::<ArgRange>()
    }

    /// Has `EXEC` refuse.
    pub(super) fn fail(&mut self) {
        self.failed = true;
    }
}

/// What a client watches: on one core, since all keys of a transaction are.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// The slot of the keys.
    pub slot: u16,
    /// The core that owns them.
    pub owner: usize,
}

/// A transaction under way on the client's core.
pub struct Execution {
    queue: Queue,
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
    /// Whether nothing was executed, because a watched key had changed.
    aborted: bool,
}

impl Core {
    /// Queues a command of a client that is in a transaction.
    pub(super) fn queue_command(&mut self, key: ClientKey, command: &'static Registered, slots: Slots, args: Args<'_>) {
        let limit = self.configuration.client_query_buffer_limit;
        // As in Redis nothing is queued while there is no room, whatever it would do.
        let has_room = self.configuration.settings.maxmemory == 0 || self.shard.make_room();
        let Some(client) = self.clients.get_mut(key) else { return };
        let (door, local) = (client.door, client.local.ip());
        let watched = client.watched;
        let Some(queue) = client.transaction.as_mut() else { return };
        let refusal = match slots {
            _ if command.spec.flags.has(Flags::NO_MULTI) => {
                Some(CommandError::new("ERR Command not allowed inside a transaction"))
            }
            Slots::Several => Some(CommandError::CROSS_SLOT),
            _ if !has_room => Some(CommandError::OUT_OF_MEMORY),
            Slots::One(slot)
                if queue.slot.or(watched.map(|watched| watched.slot)).is_some_and(|other| other != slot) =>
            {
                Some(CommandError::CROSS_SLOT)
            }
            Slots::One(slot) if door == Door::Shard && self.process.owner(slot) != self.number => {
                self.counters.moved += 1;
                let announced = self.process.announced_address(self.process.owner(slot), local);
                Some(CommandError::new(format!("MOVED {slot} {announced}")))
            }
            _ if queue.bytes() > limit => Some(CommandError::new(format!(
                "ERR the transaction has more than client-query-buffer-limit ({limit}) bytes; make it smaller"
            ))),
            _ => None,
        };
        if let Some(error) = refusal {
            queue.failed = true;
            self.command_stats[command.index].rejected += 1;
            self.reject(key, &error);
            return;
        }
        let slot = match slots {
            Slots::One(slot) => Some(slot),
            _ => None,
        };
        queue.slot = queue.slot.or(slot);
        for word in args.iter() {
            queue.ranges.push(ArgRange { start: queue.bytes.len() as u32, len: word.len() as u32 });
            queue.bytes.extend_from_slice(word);
        }
        queue.commands.push(Queued { command, words: args.len(), slot });
        client.push_reply(b"+QUEUED\r\n");
        self.want_flush(key);
    }

    /// Begins a transaction.
    pub fn begin_transaction(&mut self, key: ClientKey) -> Result<(), CommandError> {
        match self.clients.get_mut(key) {
            Some(client) if client.transaction.is_some() => Err(CommandError::new("ERR MULTI calls can not be nested")),
            Some(client) => {
                client.transaction = Some(Box::default());
                Ok(())
            }
            None => Ok(()),
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

    /// Has a client watch keys, which are all in `slot`.
    pub fn watch(&mut self, key: ClientKey, slot: u16, keys: Args<'_>) -> Result<(), CommandError> {
        let owner = self.process.owner(slot);
        let Some(client) = self.clients.get_mut(key) else { return Ok(()) };
        if client.transaction.is_some() {
            return Err(CommandError::new("ERR WATCH inside MULTI is not allowed"));
        }
        if client.watched.is_some_and(|watched| watched.slot != slot) {
            return Err(CommandError::CROSS_SLOT);
        }
        if client.door == Door::Shard && owner != self.number {
            self.counters.moved += 1;
            let announced = self.process.announced_address(owner, client.local.ip());
            return Err(CommandError::new(format!("MOVED {slot} {announced}")));
        }
        client.watched = Some(Watched { slot, owner });
        let (id, database) = (client.id, client.database);
        let keys: Vec<Box<[u8]>> = keys.iter().map(Box::from).collect();
        if owner == self.number {
            self.watch_here(id, database, &keys);
        } else {
            self.send(owner, Message::Task(Box::new(move |core: &mut Core| core.watch_here(id, database, &keys))));
        }
        Ok(())
    }

    /// Ends all that a client watches.
    pub fn unwatch(&mut self, key: ClientKey) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if let Some(watched) = client.watched.take() {
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
        let watched = client.watched.take();
        let owner = match (queue.slot, watched) {
            (Some(slot), _) => self.process.owner(slot),
            (None, Some(watched)) => watched.owner,
            (None, None) => home,
        };
        let Some(client) = self.clients.get_mut(key) else { return Ok(()) };
        client.waiting = true;
        client.executing = true;
        client.execution = Some(Box::new(Execution {
            queue: *queue,
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
            if execution.begun && execution.next == execution.queue.commands.len() {
                client.waiting = client.gathers();
                client.end_execution();
                self.want_resume(key);
                return;
            }
            if execution.begun && is_whole_process(execution.queue.commands[execution.next].command) {
                self.run_whole_process(key, execution);
                continue;
            }
            let watcher = std::mem::take(&mut execution.watched).then_some(client.id);
            let batch = Box::new(execution.batch(key, client, self.number, self.process.options.databases));
            let part = Part { client: key, watcher, batch, aborted: false };
            let owner = execution.owner;
            client.execution = Some(execution);
            if owner == self.number || (part.batch.commands.is_empty() && part.watcher.is_none()) {
                let part = self.execute_part(part);
                if !self.take_part(part) {
                    return;
                }
            } else {
                self.counters.forwarded += part.batch.commands.len() as u64;
                let home = self.number;
                let run = move |core: &mut Core| {
                    let part = core.execute_part(part);
                    let settle = move |core: &mut Core| {
                        if core.take_part(part) {
                            core.continue_transaction(key);
                        }
                    };
                    core.send(home, Message::Task(Box::new(settle)));
                };
                self.send(owner, Message::Task(Box::new(run)));
                return;
            }
        }
    }

    /// Executes a part of a transaction on the core that owns its keys.
    fn execute_part(&mut self, mut part: Part) -> Part {
        part.aborted = part.watcher.is_some_and(|watcher| !self.end_watch(watcher));
        if part.aborted {
            return part;
        }
        let mut batch = part.batch;
        let mut replies = std::mem::take(&mut batch.replies);
        let mut ends = std::mem::take(&mut batch.ends);
        let mut slow = Vec::new();
        let mut start = self.clock.raw();
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
            let executed = self.execute_on_shard(forwarded.command, args, call, start, &mut replies);
            start = executed.end;
            slow.extend(executed.slow.map(|entry| (place, entry)));
            ends.push(replies.len());
            self.observe_changes(Some(client));
            if forwarded.is_tracked {
                self.note_reads(client, forwarded.command, args);
            }
        }
        self.shard.keys.no_touch = false;
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
        let Some(client) = self.clients.get_mut(key) else { return false };
        let protocol = client.protocol;
        let Some(mut execution) = client.execution.take() else { return false };
        let mut encoded = Vec::new();
        if part.aborted {
            Reply::new(&mut encoded, protocol).null_array();
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
                Run::Shard(_) | Run::Container => {
                    if let Some(&end) = ends.next() {
                        encoded.extend_from_slice(&part.batch.replies[reply_start..end]);
                        reply_start = end;
                    }
                }
            }
        }
        self.reply_in_order(key, &mut encoded);
        for (_, entry) in part.batch.slow {
            self.log_slow(entry, key);
        }
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

/// Whether a command of the server works on keys, and so on every core.
fn is_whole_process(command: &Registered) -> bool {
    matches!(command.run, Run::Server(_)) && command.spec.flags.has_any(Flags::READ_ONLY.and(Flags::WRITE))
}

impl Execution {
    /// The commands on keys before the next command that works on every core.
    fn batch(&self, key: ClientKey, client: &Client, home: usize, databases: usize) -> Batch {
        let mut batch = Batch::default();
        batch.from = home as u16;
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
                Run::Shard(_) => {
                    let forwarded = Forwarded {
                        client: key,
                        command: queued.command,
                        words: queued.words as u32,
                        slot: queued.slot,
                        database: database as u16,
                        protocol: client.protocol,
                        no_touch: client.no_touch,
                        is_tracked: mode.is_some_and(Mode::notes_reads)
                            && queued.command.spec.flags.has(Flags::READ_ONLY),
                    };
                    batch.push(forwarded, args);
                }
                _ if queued.command.spec.name == "select" => {
                    database = selected_database(args, databases).unwrap_or(database);
                }
                _ => mode = mode_after(queued.command.spec.name, args, mode),
            }
        }
        batch
    }
}
