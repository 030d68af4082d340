//! What an operator may change while the server runs (`CONFIG SET`).

use std::collections::BTreeMap;

use ruvio_shard::script::Limits;
use ruvio_shard::settings::Settings;

use self::keyspace_events::KeyspaceEvents;
use crate::options::{Durability, Options};

pub mod keyspace_events;
mod noted;
pub mod parameters;
mod values;

/// Bounds on what may wait to be sent to a client, as `client-output-buffer-limit` gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimit {
    /// Past this many bytes the client is disconnected at once; 0 for no limit.
    pub hard_bytes: u64,
    /// Past this many bytes it is disconnected after `soft_seconds`; 0 for no limit.
    pub soft_bytes: u64,
    /// See `soft_bytes`.
    pub soft_seconds: u64,
}

/// What kind of client an [`OutputLimit`] is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputClass {
    /// Who gets replies only.
    Normal,
    /// Replicas, and monitors.
    Replica,
    /// Who subscribes to something.
    Subscriber,
}

/// The least important message that is heard (`loglevel`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hears {
    /// All.
    Debug,
    /// From verbose on.
    Verbose,
    /// From notices on.
    Notice,
    /// Only warnings.
    Warning,
    /// None.
    Nothing,
}

impl Hears {
    /// All of them.
    pub const ALL: [Hears; 5] = [Hears::Debug, Hears::Verbose, Hears::Notice, Hears::Warning, Hears::Nothing];

    /// Redis's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Hears::Debug => "debug",
            Hears::Verbose => "verbose",
            Hears::Notice => "notice",
            Hears::Warning => "warning",
            Hears::Nothing => "nothing",
        }
    }
}

/// The configuration. Each field is named after Redis's parameter.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What shards must know.
    pub settings: Settings,
    /// Clients that may be connected at once.
    pub max_clients: usize,
    /// Seconds after which an idle client is disconnected; 0 for never.
    pub timeout_s: u64,
    /// Seconds between TCP keep-alive probes; 0 for none.
    pub tcp_keepalive_s: u64,
    /// When writes are answered (`appendonly`, `appendfsync`).
    pub durability: Durability,
    /// A checkpoint is made when the log since the last one has this percentage of its size; 0 for never
    /// (`auto-aof-rewrite-percentage`).
    pub log_growth_percentage: u64,
    /// And at least this many bytes (`auto-aof-rewrite-min-size`).
    pub log_growth_min_bytes: u64,
    /// Most bytes of requests a client may have unexecuted.
    pub client_query_buffer_limit: usize,
    /// For normal clients, replicas (and monitors), and subscribers.
    pub client_output_buffer_limits: [OutputLimit; 3],
    /// Commands that take at least this long are logged, in µs; negative for none, 0 for all.
    pub slow_log_slower_than_us: i64,
    /// Entries of the slow log.
    pub slow_log_max_len: usize,
    /// Latency events from this many ms on are recorded; 0 for none.
    pub latency_monitor_threshold_ms: u64,
    /// Whether latencies of commands are recorded.
    pub latency_tracking: bool,
    /// The percentiles that `INFO latencystats` shows.
    pub latency_tracking_percentiles: Vec<f64>,
    /// Most keys of which it is known who has read them; 0 for no limit.
    pub tracking_table_max_keys: usize,
    /// The password of the default user; empty for none.
    pub require_pass: Vec<u8>,
    /// After so many ms of a script others are answered that it runs; 0 for never.
    pub busy_reply_threshold_ms: u64,
    /// Which messages of scripts are written to standard error.
    pub log_level: Hears,
    /// Bytes that the interpreters of a core may take, each.
    pub script_memory_limit: usize,
    /// Which keyspace events are published.
    pub keyspace_events: KeyspaceEvents,
    /// Values of parameters that have no effect, where they are not the default.
    pub noted: BTreeMap<&'static str, String>,
}

impl Configuration {
    /// The configuration a server starts with.
    pub fn new(options: &Options) -> Configuration {
        Configuration {
            settings: Settings {
                maxmemory: options.maxmemory,
                maxmemory_policy: options.maxmemory_policy,
                cross_slot: options.cross_slot,
                ..Settings::default()
            },
            max_clients: 10_000,
            timeout_s: 0,
            tcp_keepalive_s: 300,
            durability: options.durability,
            log_growth_percentage: 100,
            log_growth_min_bytes: 64 << 20,
            client_query_buffer_limit: 1 << 30,
            client_output_buffer_limits: [
                OutputLimit::default(),
                OutputLimit { hard_bytes: 256 << 20, soft_bytes: 64 << 20, soft_seconds: 60 },
                OutputLimit { hard_bytes: 32 << 20, soft_bytes: 8 << 20, soft_seconds: 60 },
            ],
            slow_log_slower_than_us: 10_000,
            slow_log_max_len: 128,
            latency_monitor_threshold_ms: 0,
            latency_tracking: true,
            latency_tracking_percentiles: vec![50.0, 99.0, 99.9],
            tracking_table_max_keys: 1_000_000,
            require_pass: Vec::new(),
            busy_reply_threshold_ms: 5000,
            log_level: Hears::Notice,
            script_memory_limit: 256 << 20,
            keyspace_events: KeyspaceEvents::default(),
            noted: BTreeMap::new(),
        }
    }

    /// What scripts are bounded by.
    pub fn script_limits(&self) -> Limits {
        Limits { memory_bytes: self.script_memory_limit }
    }

    /// The limit of a class of clients.
    #[inline]
    pub fn output_limit(&self, class: OutputClass) -> OutputLimit {
        self.client_output_buffer_limits[class as usize]
    }
}
