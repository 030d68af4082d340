//! What a core sends the others and takes in from them.

use std::collections::VecDeque;
use std::sync::Arc;

use ruvio_shard::command::Flags;
use ruvio_shard::shard::Call;

use super::Core;
use super::execute::Caller;
use super::forward::Batch;
use super::lone::Source;
use super::mailbox::{Message, Work};
use super::publish::Publication;
use super::waiting::Place;

/// Messages taken in a turn, so that clients of this core are served too.
const TAKEN_AT_ONCE: usize = 256;

/// Batches kept for reuse.
const SPARE_BATCHES: usize = 64;

/// What waits to be sent to one core.
#[derive(Default)]
pub struct Outbox {
    /// Commands of this turn.
    batch: Option<Box<Batch>>,
    /// What was published in this turn.
    publications: Vec<Arc<Publication>>,
    /// Messages that found the inbox full.
    overflow: VecDeque<Message>,
    /// Whether messages were pushed since the core was last woken.
    to_wake: bool,
}

impl Core {
    /// The batch for core `target`.
    pub(super) fn batch_for(&mut self, target: usize) -> &mut Batch {
        let outbox = &mut self.outboxes[target];
        if outbox.batch.as_ref().is_some_and(|batch| batch.is_full()) {
            self.send_batch(target);
        }
        let from = self.number as u16;
        let spare = &mut self.spare_batches;
        self.outboxes[target].batch.get_or_insert_with(|| {
            let mut batch = spare.pop().unwrap_or_default();
            batch.from = from;
            batch.executed_by = target as u16;
            batch
        })
    }

    fn send_batch(&mut self, target: usize) {
        if let Some(batch) = self.outboxes[target].batch.take() {
            self.push(target, Message::Forward(batch));
        }
    }

    /// Sends a message to core `target`, behind all that was sent to it before, and behind what was published.
    pub fn send(&mut self, target: usize, message: Message) {
        self.send_publications();
        self.send_batch(target);
        self.push(target, message);
    }

    /// As [`Core::send`], for a reply: on the core that it goes to it comes before what its command has published, so that
    /// a client which subscribes to what it does itself has the reply first.
    pub(super) fn send_reply_now(&mut self, target: usize, message: Message) {
        let publishes = self.has_publications;
        if publishes {
            let own = std::mem::take(&mut self.outboxes[target].publications);
            self.send_publications();
            self.outboxes[target].publications = own;
        }
        self.send_batch(target);
        self.push(target, message);
        self.has_publications = publishes;
        self.send_publications();
    }

    /// Keeps a message for subscribers of core `target`, to be sent with others.
    pub(super) fn add_publication(&mut self, target: usize, publication: Arc<Publication>) {
        self.outboxes[target].publications.push(publication);
        self.has_publications = true;
    }

    /// Sends what was published, behind the commands for every core: a subscriber that reads what the publisher wrote
    /// before finds it, whichever core has it.
    fn send_publications(&mut self) {
        if !std::mem::take(&mut self.has_publications) {
            return;
        }
        for target in 0..self.outboxes.len() {
            self.send_batch(target);
        }
        for target in 0..self.outboxes.len() {
            let publications = std::mem::take(&mut self.outboxes[target].publications);
            if !publications.is_empty() {
                self.push(target, Message::Task(Box::new(move |core: &mut Core| core.deliver_all(&publications))));
            }
        }
    }

    fn push(&mut self, target: usize, message: Message) {
        let outbox = &mut self.outboxes[target];
        outbox.to_wake = true;
        if !outbox.overflow.is_empty() {
            outbox.overflow.push_back(message);
        } else if let Err(message) = self.process.cores[target].push(message) {
            outbox.overflow.push_back(message);
        }
    }

    /// Sends what the turn has collected, and wakes those who got something.
    pub(super) fn send_outboxes(&mut self) {
        if self.tracked.has_news() {
            self.tell_news();
        }
        self.send_publications();
        for target in 0..self.outboxes.len() {
            self.send_batch(target);
            let outbox = &mut self.outboxes[target];
            let mailbox = &self.process.cores[target];
            while let Some(message) = outbox.overflow.pop_front() {
                outbox.to_wake = true;
                if let Err(message) = mailbox.push(message) {
                    outbox.overflow.push_front(message);
                    break;
                }
            }
            if std::mem::take(&mut outbox.to_wake) {
                mailbox.wake();
            }
        }
    }

    /// Whether some inbox had no room.
    pub(super) fn has_overflow(&self) -> bool {
        self.outboxes.iter().any(|outbox| !outbox.overflow.is_empty())
    }

    /// Takes in what other cores sent.
    pub(super) fn take_messages(&mut self) {
        for _ in 0..TAKEN_AT_ONCE {
            let Some(message) = self.deferred.pop_front().or_else(|| self.process.cores[self.number].pop()) else {
                return;
            };
            match message {
                Message::Forward(batch) => self.execute_batch(batch),
                Message::Replies(batch) => self.take_replies(batch),
                Message::Task(task) | Message::Work(Work { run: task, .. }) => task(self),
            }
        }
    }

    /// Executes another core's commands and sends the batch back.
    fn execute_batch(&mut self, mut batch: Box<Batch>) {
        if let [only] = &batch.commands[..] {
            self.lone.note(Source::Forwarded { from: batch.from, token: only.client.to_token() });
        } else {
            self.lone.note(Source::Several);
        }
        let mut replies = std::mem::take(&mut batch.replies);
        let mut ends = std::mem::take(&mut batch.ends);
        let mut slow = Vec::new();
        let mut waiting = Vec::new();
        self.served_ms = self.now_ms;
        self.prefetch_batch(&batch);
        let log_before = self.log_end();
        let mut start = self.clock.raw();
        for (place, (forwarded, args)) in batch.iter().enumerate() {
            let call = Call {
                database: forwarded.database as usize,
                slot: forwarded.slot,
                now_ms: self.now_ms,
                protocol: forwarded.protocol,
                may_wait: true,
            };
            self.shard.keys.no_touch = forwarded.no_touch;
            let client = Place { core: batch.from as usize, client: forwarded.client };
            let caller = Caller { place: client, is_tracked: forwarded.is_tracked };
            let executed = self.execute_on_shard(forwarded.command, args, call, caller, start, &mut replies);
            start = executed.end;
            slow.extend(self.slow_entries(executed.slow).map(|entry| (place, entry)));
            if let Some(wait) = executed.wait {
                self.start_waiting(client, forwarded.command, args, call, forwarded.no_touch, wait);
                waiting.push(place);
            }
            ends.push(replies.len());
            self.after_command(Some(client));
            if forwarded.is_tracked {
                self.note_reads(client, forwarded.command, args);
            }
        }
        self.shard.keys.no_touch = false;
        batch.waiting = waiting;
        batch.replies = replies;
        batch.ends = ends;
        batch.slow = slow;
        let home = batch.from as usize;
        self.send_reply(home, log_before, Message::Replies(batch));
        self.send_invalidations();
    }

    /// Gives the clients the replies that another core sent.
    pub(super) fn take_replies(&mut self, mut batch: Box<Batch>) {
        let replies = std::mem::take(&mut batch.replies);
        let mut start = 0;
        let from = batch.executed_by;
        for (place, (forwarded, &end)) in batch.commands.iter().zip(&batch.ends).enumerate() {
            let key = forwarded.client;
            if !batch.waiting.is_empty() && batch.waiting.contains(&place) {
                continue;
            }
            if let Some(client) = self.clients.get_mut(key) {
                client.settle_owed(from, &replies[start..end]);
                if forwarded.command.spec.flags.has(Flags::BLOCKING) {
                    self.unblock(key);
                    self.want_flush(key);
                    start = end;
                    continue;
                }
                if client.paused && client.may_resume() {
                    self.want_resume(key);
                }
                self.want_flush(key);
            }
            start = end;
        }
        for (place, entry) in std::mem::take(&mut batch.slow) {
            if let Some(forwarded) = batch.commands.get(place) {
                self.log_slow(entry, forwarded.client);
            }
        }
        batch.replies = replies;
        self.keep_batch(batch);
    }

    /// Keeps a batch for the next use.
    pub(super) fn keep_batch(&mut self, mut batch: Box<Batch>) {
        batch.reset();
        if self.spare_batches.len() < SPARE_BATCHES {
            self.spare_batches.push(batch);
        }
    }
}
