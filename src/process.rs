//! What all cores of the process share: how it was started, its counters, and the cores' inboxes.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ruvio_shard::error::CommandError;
use ruvio_shard::log::Durability;

use crate::configuration::Configuration;
use crate::core::mailbox::Mailbox;
use crate::core::script::beside::BusyShards;
use crate::core::slow_log::SlowLog;
use crate::core::subscriber_counts::SubscriberCounts;
use crate::data::DataDirectory;
use crate::functions::{Libraries, LibrarySet, payload};
use crate::options::Options;
use crate::scripts::ScriptCache;

/// The state that cores share. Nothing here is touched on the path of a command that stays on its core, but flags that
/// are only read there.
pub struct Process {
    /// How it was started.
    pub options: Options,
    /// An inbox a core.
    pub cores: Vec<Mailbox>,
    /// What an operator may change, as it is now. Cores hold a copy.
    configuration: RwLock<Arc<Configuration>>,
    /// 40 hexadecimal digits that name this run.
    pub run_id: String,
    /// The same for the shared port, which the cluster view shows as a node without slots.
    pub router_id: String,
    /// 40 hexadecimal digits for each shard's node.
    pub node_ids: Vec<String>,
    /// The same for each shard's group of nodes.
    pub shard_ids: Vec<String>,
    /// When it started.
    pub started: Instant,
    /// Shards that do not serve yet, because data are read.
    pub loading: AtomicUsize,
    /// Those of them that have not come to the end of their files.
    pub reading: AtomicUsize,
    /// The directory of the data, where data is kept.
    pub data: Option<DataDirectory>,
    /// Shards whose log cannot be written, and the number of the error of the last that came to it.
    pub log_troubles: AtomicUsize,
    pub log_error: AtomicI32,
    /// When a shard's last checkpoint ended, in seconds since the epoch; at first, when the process started.
    pub last_save_s: AtomicU64,
    /// The processors that it may run on.
    cpus: Vec<usize>,
    /// Why the process ends, if something went wrong.
    pub failure: Mutex<Option<String>>,
    /// Set when all cores are to end.
    pub stopping: AtomicBool,
    /// Clients connected.
    pub connected: AtomicUsize,
    /// Clients that get what `MONITOR` shows.
    pub monitors: AtomicUsize,
    /// Calls of `MIGRATE` whose data are under way.
    pub migrations: AtomicUsize,
    /// Subscribers of all cores.
    pub subscriber_counts: SubscriberCounts,
    /// Clients that are told of changes of what they keep copies of.
    pub tracking_clients: AtomicUsize,
    /// Keys that they have read, on all cores.
    pub tracked_keys: AtomicUsize,
    /// Most memory that was seen in use, in bytes.
    pub peak_memory: AtomicU64,
    /// The scripts that are known.
    pub scripts: ScriptCache,
    /// The libraries of functions.
    pub libraries: Libraries,
    /// The shards that have run a script for too long.
    pub busy: BusyShards,
    /// Whether scripts end with the process, whatever they have done (`SHUTDOWN NOSAVE`).
    pub abandons_scripts: AtomicBool,
    /// Slow commands.
    pub slow_log: Mutex<SlowLog>,
    next_client: AtomicU64,
    next_flush: AtomicU64,
}

/// The niceness of threads that work in the background: a tenth of the weight of a core's thread.
const BACKGROUND_NICENESS: i32 = 10;

impl Process {
    /// The state of a process that starts now.
    pub fn new(
        options: Options,
        configuration: Configuration,
        data: Option<DataDirectory>,
        cpus: &[usize],
    ) -> std::io::Result<Process> {
        let cpus = cpus.to_vec();
        let mut cores = Vec::new();
        for _ in 0..options.shards {
            cores.push(Mailbox::new()?);
        }
        let identifiers = |_| random_identifier();
        let slow_log = SlowLog::new(configuration.slow_log_max_len);
        Ok(Process {
            run_id: random_identifier(),
            router_id: random_identifier(),
            node_ids: (0..options.shards).map(identifiers).collect(),
            shard_ids: (0..options.shards).map(identifiers).collect(),
            configuration: RwLock::new(Arc::new(configuration)),
            loading: AtomicUsize::new(if data.is_some() { options.shards } else { 0 }),
            reading: AtomicUsize::new(options.shards),
            data,
            failure: Mutex::new(None),
            log_troubles: AtomicUsize::new(0),
            log_error: AtomicI32::new(0),
            last_save_s: AtomicU64::new((now_ms() / 1000).max(0) as u64),
            cpus,
            started: Instant::now(),
            stopping: AtomicBool::new(false),
            connected: AtomicUsize::new(0),
            monitors: AtomicUsize::new(0),
            migrations: AtomicUsize::new(0),
            subscriber_counts: SubscriberCounts::default(),
            tracking_clients: AtomicUsize::new(0),
            tracked_keys: AtomicUsize::new(0),
            peak_memory: AtomicU64::new(0),
            scripts: ScriptCache::default(),
            libraries: Libraries::default(),
            busy: BusyShards::new(options.shards),
            abandons_scripts: AtomicBool::new(false),
            slow_log: Mutex::new(slow_log),
            next_client: AtomicU64::new(1),
            next_flush: AtomicU64::new(0),
            options,
            cores,
        })
    }

    /// A number no other client has had.
    pub fn next_client_id(&self) -> u64 {
        self.next_client.fetch_add(1, Ordering::Relaxed)
    }

    /// A number no other flush has.
    pub fn next_flush(&self) -> u64 {
        self.next_flush.fetch_add(1, Ordering::Relaxed)
    }

    /// Changes the libraries, once they are kept where data is kept.
    ///
    /// # Errors
    /// Those of `change`, and that the libraries could not be written; then they are as before.
    pub fn change_libraries(
        &self,
        change: impl FnOnce(&mut LibrarySet) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        self.libraries.change(change, |libraries| {
            let Some(data) = &self.data else { return Ok(()) };
            data.write_libraries(&payload::write(libraries))
                .map_err(|error| CommandError::new(format!("MISCONF the libraries could not be written: {error}")))
        })
    }

    /// The configuration as it is now.
    pub fn configuration(&self) -> Arc<Configuration> {
        self.configuration.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the configuration: `change` is given a copy, which takes effect when it returns `Ok`. Cores take it over
    /// when they are told.
    pub fn change_configuration<E>(
        &self,
        change: impl FnOnce(&mut Configuration) -> Result<(), E>,
    ) -> Result<Arc<Configuration>, E> {
        let mut current = self.configuration.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Configuration::clone(&current);
        change(&mut changed)?;
        *current = Arc::new(changed);
        Ok(current.clone())
    }

    /// The processor that a core's thread runs on.
    pub fn processor_of(&self, core: usize) -> usize {
        self.cpus[core % self.cpus.len()]
    }

    /// The processors on which the kernel writes and syncs a core's log. It does not interrupt itself: where a sync goes on,
    /// which takes several ms, a core can do nothing. With `always` the core waits for it anyway, and is woken sooner where it is.
    pub fn log_processors(&self, core: usize, durability: Durability) -> Vec<usize> {
        let own = self.processor_of(core);
        let others: Vec<usize> = self.cpus.iter().copied().filter(|&processor| processor != own).collect();
        if durability == Durability::Always || others.is_empty() { vec![own] } else { others }
    }

    /// Lets the calling thread, which inherited a core's processor, run on any processor.
    pub fn run_anywhere(&self) {
        let mut set = rustix::thread::CpuSet::new();
        self.cpus.iter().for_each(|&cpu| set.set(cpu));
        // It stays where it is otherwise, which is only slower.
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }

    /// Has the calling thread give way to the cores' threads, which answer clients: it gets little time while they use
    /// theirs.
    pub fn give_way() {
        // It is in their way otherwise, which is only slower.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), BACKGROUND_NICENESS);
    }

    /// Ends the process because of `problem`; the first one is told.
    pub fn fail(&self, problem: String) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(problem);
        self.stop();
    }

    /// Tells all cores to end.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for core in &self.cores {
            core.wake_always();
        }
    }

    /// The address announced for a shard's node: the one configured, or the one that the client came in by.
    pub fn announced_ip(&self, local: IpAddr) -> String {
        self.options.announce_ip.clone().unwrap_or_else(|| local.to_canonical().to_string())
    }

    /// The port of a shard.
    pub fn shard_port(&self, shard: usize) -> u16 {
        self.options.shard_port_base + shard as u16
    }

    /// `ip:port` of a shard's node, for `MOVED`.
    pub fn announced_address(&self, shard: usize, local: IpAddr) -> String {
        format!("{}:{}", self.announced_ip(local), self.shard_port(shard))
    }

    /// The shard that owns a slot.
    #[inline]
    pub fn owner(&self, slot: u16) -> usize {
        owner(slot, self.options.shards)
    }
}

/// The shard of `shards` that owns `slot`.
#[inline]
pub fn owner(slot: u16, shards: usize) -> usize {
    // The inverse of `shard_slots`: the greatest shard whose first slot is not behind `slot`.
    ((slot as usize + 1) * shards - 1) / ruvio_shard::slot::SLOTS
}

/// 40 random hexadecimal digits.
pub fn random_identifier() -> String {
    (0..5).map(|_| format!("{:08x}", rand::random::<u32>())).collect()
}

/// Milliseconds since the epoch.
#[inline]
pub fn now_ms() -> i64 {
    now_ns() / 1_000_000
}

/// Nanoseconds since the epoch.
#[inline]
pub fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_nanos() as i64)
}

#[cfg(test)]
mod tests {
    use ruvio_shard::slot::{SLOTS, shard_slots};

    #[test]
    fn a_slots_owner_is_the_shard_whose_range_holds_it() {
        for shards in [1, 2, 3, 5, 7, 16, 61, 256] {
            for slot in 0..SLOTS as u16 {
                assert!(shard_slots(super::owner(slot, shards), shards).contains(&slot), "{slot} of {shards}");
            }
        }
    }
}
