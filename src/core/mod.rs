//! A core: its shard, its clients and its turn.
//!
//! A core takes turns. In a turn it takes in what is ready (messages of other cores, connections, input), executes it,
//! and then sends once: a batch to each core, a buffer to each client. Only when nothing is ready does it sleep, in
//! `epoll_wait` itself: asking the executor to wait costs a third of a small request. Other cores wake it through an
//! eventfd in the same set.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quanta::Clock;
use rustix::event::epoll;
use rustix::time::Timespec;
use ruvio_shard::args::ArgRange;
use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::shard::Shard;
use ruvio_shard::slot::shard_slots;

use self::client::{ClientKey, Clients};
use self::counters::{CommandStats, Counters};
use self::exchange::Outbox;
use self::forward::Batch;
use self::gather::Gathering;
use self::latency::LatencyEvents;
use self::loading::Loading;
use self::log::Log;
use self::lone::{Lone, Source};
use self::mailbox::Message;
use self::pause::Pause;
use self::script::Scripts;
use self::serve::Planned;
use self::slow_log::SlowEntry;
use self::subscriber_counts::Receivers;
use self::subscriptions::Subscribers;
use self::tracking::Tracked;
use self::transaction::Queue;
use self::waiting::Waiting;
use self::watch::Watches;
use crate::configuration::Configuration;
use crate::memory;
use crate::process::{Process, now_ms, now_ns};
use crate::registry::registry;

mod accept;
pub mod client;
mod configure;
pub mod counters;
mod dividing;
mod exchange;
mod execute;
pub mod flush;
pub mod forward;
pub mod gather;
pub mod latency;
pub mod loading;
pub mod log;
mod lone;
pub mod mailbox;
mod monitor;
mod notifications;
mod observe;
mod order;
pub mod pause;
mod publish;
pub mod script;
mod serve;
pub mod slow_log;
mod split;
pub mod subscriber_counts;
pub mod subscriptions;
mod tick;
mod tracked;
pub mod tracking;
mod transaction;
pub mod waiting;
mod watch;

pub use tick::TICKS_A_SECOND;

/// Events taken from the kernel at once.
const EVENTS: usize = 256;

/// Bytes read from a client at once.
const SCRATCH_BYTES: usize = 64 << 10;

const SHARED_LISTENER: u64 = u64::MAX;
const SHARD_LISTENER: u64 = u64::MAX - 1;
const WAKER: u64 = u64::MAX - 2;
const LOG: u64 = u64::MAX - 3;

/// The sockets a core listens on.
pub struct Listeners {
    /// On the shared port.
    pub shared: OwnedFd,
    /// On the shard's own port.
    pub shard: OwnedFd,
}

/// A core and all it owns.
pub struct Core {
    /// Which core, and which shard, this is.
    pub number: usize,
    /// What all cores share.
    pub process: Arc<Process>,
    /// The keys.
    pub shard: Shard,
    /// The connections.
    pub clients: Clients,
    /// The clients that subscribe to something.
    subscribers: Subscribers,
    /// What an operator set.
    pub configuration: Arc<Configuration>,
    /// Counters of this core.
    pub counters: Counters,
    /// Counters of each command, by its index.
    pub command_stats: Vec<CommandStats>,
    /// What took long on this core.
    pub latency_events: LatencyEvents,
    /// The time of the turn, in ms since the epoch.
    pub now_ms: i64,
    /// When the core went to sleep, in ns since the epoch; 0 while it is awake.
    asleep_since_ns: i64,
    /// A fast clock for durations.
    pub clock: Clock,
    epoll: OwnedFd,
    listeners: Listeners,
    outboxes: Vec<Outbox>,
    #[expect(clippy::vec_box, reason = "batches travel boxed; keeping the box saves an allocation a batch")]
    spare_batches: Vec<Box<Batch>>,
    /// Empty queues of transactions, with room.
    #[expect(
        clippy::vec_box,
        reason = "a client holds its queue boxed; keeping the box saves an allocation a transaction"
    )]
    spare_queues: Vec<Box<Queue>>,
    /// What the slow log should note of the calls of the script that has just run, or runs.
    slow_in_script: VecDeque<SlowEntry>,
    spare_buffers: Vec<Vec<u8>>,
    to_flush: Vec<ClientKey>,
    to_resume: Vec<ClientKey>,
    /// Clients whose input buffer may be larger than what is in it.
    keep_input: Vec<ClientKey>,
    /// Bytes that may be owed to a normal client at once.
    most_unsent: usize,
    /// Nanoseconds of a call from which on `LATENCY` or the slow log may want to know of it.
    noted_from_ns: u64,
    /// Bytes owed to a client from which on it is not served.
    paused_unsent: usize,
    /// The log, once all that was logged before is read.
    log: Option<Log>,
    /// The reading of the data, while it goes on.
    pub loading: Option<Loading>,
    /// Commands that wait for keys of this core.
    pub waiting: Waiting,
    /// What is watched of the keys of this core.
    pub watches: Watches,
    /// What clients keep copies of.
    pub tracked: Tracked,
    /// Kept for the next message: who receives it, and how it is encoded.
    receivers: Receivers,
    encoded_push: Vec<u8>,
    /// Whether an outbox holds publications.
    has_publications: bool,
    /// Until when and what of the clients' commands waits, if it does.
    pause: Option<Pause>,
    /// Clients whose next command waits for the end of the pause.
    postponed: Vec<ClientKey>,
    /// Scripts, and the one that runs.
    scripts: Scripts,
    /// Clients whose next command waits for the end of the script that runs.
    held_back: Vec<ClientKey>,
    /// What other cores want, and what waits for the end of the script that runs.
    deferred: VecDeque<Message>,
    /// What a command of the server replied to the script that called it.
    gathered_for_script: Vec<u8>,
    /// The client whose input is being executed.
    serving: Option<ClientKey>,
    gatherings: HashMap<u64, Gathering>,
    next_gathering: u64,
    scratch: Vec<u8>,
    planned: Vec<Planned>,
    planned_ranges: Vec<ArgRange>,
    next_tick_ms: i64,
    /// When something last came from a client, in ms since the epoch.
    served_ms: i64,
    /// Whether the last sweep found so much that the next turn goes on.
    expiring: bool,
    lone: Lone,
}

impl Core {
    /// A core that has the calling thread to itself.
    pub fn new(number: usize, process: Arc<Process>, listeners: Listeners) -> std::io::Result<Core> {
        memory::become_core(number);
        let configuration = process.configuration();
        let shards = process.options.shards;
        let meter = MemoryMeter { total: memory::limited, is_due: memory::is_due };
        let mut shard =
            Shard::new(process.options.databases, configuration.settings.clone(), meter, rand::random::<u64>());
        shard.keys.owned_slots = shard_slots(number, shards);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let readable = epoll::EventFlags::IN;
        epoll::add(&epoll, &listeners.shared, epoll::EventData::new_u64(SHARED_LISTENER), readable)?;
        epoll::add(&epoll, &listeners.shard, epoll::EventData::new_u64(SHARD_LISTENER), readable)?;
        epoll::add(&epoll, process.cores[number].eventfd(), epoll::EventData::new_u64(WAKER), readable)?;
        let mut core = Core {
            number,
            shard,
            clients: Clients::default(),
            subscribers: Subscribers::default(),
            configuration,
            counters: Counters::default(),
            command_stats: registry().all().iter().map(|_| CommandStats::default()).collect(),
            latency_events: LatencyEvents::default(),
            now_ms: now_ms(),
            asleep_since_ns: 0,
            clock: Clock::new(),
            epoll,
            listeners,
            outboxes: (0..shards).map(|_| Outbox::default()).collect(),
            spare_batches: Vec::new(),
            spare_queues: Vec::new(),
            slow_in_script: VecDeque::new(),
            spare_buffers: Vec::new(),
            to_flush: Vec::new(),
            to_resume: Vec::new(),
            keep_input: Vec::new(),
            most_unsent: usize::MAX,
            noted_from_ns: 0,
            paused_unsent: serve::PAUSED_UNSENT,
            log: None,
            loading: None,
            waiting: Waiting::default(),
            watches: Watches::default(),
            tracked: Tracked::new(shards),
            receivers: Receivers::default(),
            encoded_push: Vec::new(),
            has_publications: false,
            pause: None,
            postponed: Vec::new(),
            scripts: Scripts::default(),
            held_back: Vec::new(),
            deferred: VecDeque::new(),
            gathered_for_script: Vec::new(),
            serving: None,
            gatherings: HashMap::new(),
            next_gathering: 0,
            scratch: vec![0; SCRATCH_BYTES],
            planned: Vec::new(),
            planned_ranges: Vec::new(),
            next_tick_ms: 0,
            served_ms: 0,
            expiring: false,
            lone: Lone::default(),
            process,
        };
        core.counters.since = core.clock.raw();
        core.update_observed();
        core.take_output_limits();
        core.take_call_thresholds();
        Ok(core)
    }

    /// Takes turns until the process stops.
    pub async fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS);
        self.begin_loading();
        while !self.process.stopping.load(Ordering::Relaxed) {
            self.wait(&mut events);
            self.turn(&events);
        }
        self.finish_log();
        self.send_outboxes();
        self.flush_clients();
    }

    /// Waits for something to do.
    fn wait(&mut self, events: &mut Vec<epoll::Event>) {
        let rest_ns = self.background_rest_ns();
        if rest_ns == Some(0) || self.has_overflow() || !self.to_resume.is_empty() || self.has_deferred() {
            self.poll(events, 0);
            return;
        }
        if self.spin_for_lone(events) {
            return;
        }
        let process = Arc::clone(&self.process);
        let mailbox = &process.cores[self.number];
        if mailbox.sleep() {
            let pause_ends_ms = self.pause.map_or(i64::MAX, |pause| pause.until_ms);
            let next_ms = self.waiting.next_deadline_ms().unwrap_or(i64::MAX).min(self.next_tick_ms).min(pause_ends_ms);
            self.asleep_since_ns = now_ns();
            let timeout_ms = (next_ms - self.asleep_since_ns / 1_000_000).clamp(0, 1000);
            let held_ns = self.sync_is_held_ns().map_or(i64::MAX, |left_ns| left_ns as i64);
            let rest_ns = rest_ns.map_or(i64::MAX, |rest_ns| rest_ns as i64);
            self.poll(events, (timeout_ms * 1_000_000).min(held_ns).min(rest_ns));
            mailbox.woke();
        } else {
            self.poll(events, 0);
        }
    }

    fn poll(&self, events: &mut Vec<epoll::Event>, timeout_ns: i64) {
        events.clear();
        let timeout = Timespec { tv_sec: timeout_ns / 1_000_000_000, tv_nsec: timeout_ns % 1_000_000_000 };
        // An interrupted wait is a turn without events.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout));
    }

    /// Looks at the time.
    #[inline]
    fn begin_turn(&mut self) {
        let now_ns = now_ns();
        if self.asleep_since_ns != 0 {
            self.counters.idle_ns += (now_ns - self.asleep_since_ns).max(0) as u64;
            self.asleep_since_ns = 0;
        }
        // The time of a log's records never goes back.
        self.now_ms = (now_ns / 1_000_000).max(self.now_ms);
        self.end_pause_in_time();
    }

    /// One turn.
    fn turn(&mut self, events: &[epoll::Event]) {
        self.begin_turn();
        self.counters.turns += 1;
        self.take_messages();
        self.take_events(events);
        self.end_overdue_waiting();
        self.resume_clients();
        // What other work than commands has changed.
        self.after_command(None);
        self.write_log();
        self.send_outboxes();
        self.flush_clients();
        self.lone.end_turn();
        self.background();
        if self.now_ms >= self.next_tick_ms {
            self.tick();
        }
        if self.shard.keys.has_changes() || self.tracked.has_news() || !self.to_flush.is_empty() {
            self.after_command(None);
            self.send_outboxes();
            self.flush_clients();
        }
    }

    /// Sees to the sockets that are ready, and to what the kernel has done.
    fn take_events(&mut self, events: &[epoll::Event]) {
        let stalled = self.has_overflow() || self.is_log_stalled();
        for event in events {
            match event.data.u64() {
                SHARED_LISTENER => self.accept(client::Door::Shared),
                SHARD_LISTENER => self.accept(client::Door::Shard),
                WAKER => self.process.cores[self.number].clear_signal(),
                LOG => self.advance_log(),
                token => {
                    self.lone.note(Source::Client(token));
                    let key = ClientKey::from_token(token);
                    if self.is_served_below(key) {
                        continue;
                    }
                    let flags = event.flags;
                    if flags.intersects(epoll::EventFlags::OUT) {
                        self.flush_client(key);
                    }
                    // Of a client that waits for a key nothing is read, so it has to be told that the client is gone.
                    let ended = epoll::EventFlags::HUP | epoll::EventFlags::ERR | epoll::EventFlags::RDHUP;
                    if flags.intersects(epoll::EventFlags::IN | ended) && !stalled {
                        self.read_client(key, flags.intersects(ended));
                    }
                }
            }
        }
    }
}
