//! The parameters of `CONFIG GET` and `CONFIG SET`, under Redis's names.
//!
//! A parameter is settable only where its value has an effect. What Redis lets an operator choose and this server does
//! in one way only is shown as it is, and can be "set" to that value alone. Those of [`noted`](super::noted) are kept for the
//! programs that set them.

use super::keyspace_events::KeyspaceEvents;
use super::noted::{NOTED, Shape};
use super::{Configuration, values};
use crate::options::{Durability, Options};
use crate::start;

/// Most bytes of a word and of a request: offsets within a request have 32 bits, and a core reads ahead of the limit.
const MAX_REQUEST_BYTES: i64 = 2 << 30;

const ANY_SIZE: (i64, i64) = (0, i64::MAX);
const NOT_NEGATIVE: (i64, i64) = (0, i32::MAX as i64);

/// A parameter.
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// An older name, where it has one.
    pub alias: Option<&'static str>,
    /// What it is.
    pub(super) kind: Kind,
}

/// What a parameter is: how its value is read, shown and checked.
pub(super) enum Kind {
    /// An integer in a range.
    Integer { range: (i64, i64), get: fn(&Configuration) -> i64, set: fn(&mut Configuration, i64) },
    /// A number of bytes in a range.
    Memory { range: (i64, i64), get: fn(&Configuration) -> i64, set: fn(&mut Configuration, i64) },
    /// `yes` or `no`.
    Boolean { get: fn(&Configuration) -> bool, set: fn(&mut Configuration, bool) },
    /// Something with a notation of its own.
    Other { get: fn(&Configuration) -> Vec<u8>, set: fn(&mut Configuration, &[u8]) -> Result<(), String> },
    /// Chosen when the server starts.
    Started(fn(&Options) -> String),
    /// As [`Kind::Started`], and Redis lets it be changed later: it can be set to the value it has.
    Kept(fn(&Options) -> String),
    /// Has no effect.
    Noted { default: &'static str, shape: Shape },
    /// Has one value; the text says why.
    Always(&'static str, &'static str),
}

macro_rules! sized {
    ($kind:ident $name:literal $($alias:literal)?, $($field:ident).+ as $type:ty, $range:expr) => {
        Parameter {
            name: $name,
            alias: sized!(@alias $($alias)?),
            kind: Kind::$kind {
                range: $range,
                get: |configuration| configuration.$($field).+ as i64,
                set: |configuration, value| configuration.$($field).+ = value as $type,
            },
        }
    };
    (@alias) => { None };
    (@alias $alias:literal) => { Some($alias) };
}

const fn started(name: &'static str, get: fn(&Options) -> String) -> Parameter {
    Parameter { name, alias: None, kind: Kind::Started(get) }
}

const fn kept(name: &'static str, get: fn(&Options) -> String) -> Parameter {
    Parameter { name, alias: None, kind: Kind::Kept(get) }
}

const fn always(name: &'static str, value: &'static str, reason: &'static str) -> Parameter {
    Parameter { name, alias: None, kind: Kind::Always(value, reason) }
}

const NO_REPLICAS: &str = "this version does not replicate";

/// The parameters that have an effect, or a value of their own.
static PARAMETERS: &[Parameter] = &[
    sized!(Integer "hash-max-listpack-entries" "hash-max-ziplist-entries", settings.hash_max_listpack_entries as usize, ANY_SIZE),
    sized!(Memory "hash-max-listpack-value" "hash-max-ziplist-value", settings.hash_max_listpack_value as usize, ANY_SIZE),
    sized!(Integer "set-max-intset-entries", settings.set_max_intset_entries as usize, ANY_SIZE),
    sized!(Integer "set-max-listpack-entries", settings.set_max_listpack_entries as usize, ANY_SIZE),
    sized!(Memory "set-max-listpack-value", settings.set_max_listpack_value as usize, ANY_SIZE),
    sized!(Integer "zset-max-listpack-entries" "zset-max-ziplist-entries", settings.zset_max_listpack_entries as usize, ANY_SIZE),
    sized!(Memory "zset-max-listpack-value" "zset-max-ziplist-value", settings.zset_max_listpack_value as usize, ANY_SIZE),
    sized!(Integer "list-max-listpack-size" "list-max-ziplist-size", settings.list_max_listpack_size as i64, (i32::MIN as i64, i32::MAX as i64)),
    sized!(Memory "hll-sparse-max-bytes", settings.hll_sparse_max_bytes as usize, ANY_SIZE),
    sized!(Memory "proto-max-bulk-len", settings.proto_max_bulk_len as usize, (1 << 20, MAX_REQUEST_BYTES)),
    Parameter {
        name: "appendonly",
        alias: None,
        kind: Kind::Other {
            get: |configuration| values::yes_or_no(configuration.durability != Durability::Memory).into(),
            set: |configuration, value| {
                let is_on = configuration.durability != Durability::Memory;
                if value.eq_ignore_ascii_case(values::yes_or_no(is_on).as_bytes()) {
                    return Ok(());
                }
                Err("whether there is a log is chosen at the start, with --durability".to_owned())
            },
        },
    },
    Parameter {
        name: "appendfsync",
        alias: None,
        kind: Kind::Other {
            get: |configuration| match configuration.durability {
                Durability::Memory => "no".into(),
                durability => durability.name().into(),
            },
            set: |configuration, value| match (configuration.durability, value.to_ascii_lowercase().as_slice()) {
                (Durability::Memory, b"no") => Ok(()),
                (Durability::Memory, _) => {
                    Err("there is no log to sync; start with --durability everysec or always".to_owned())
                }
                (_, b"everysec") => {
                    configuration.durability = Durability::EverySecond;
                    Ok(())
                }
                (_, b"always") => {
                    configuration.durability = Durability::Always;
                    Ok(())
                }
                _ => Err("argument(s) must be one of the following: everysec, always".to_owned()),
            },
        },
    },
    sized!(Integer "auto-aof-rewrite-percentage", log_growth_percentage as u64, NOT_NEGATIVE),
    sized!(Memory "auto-aof-rewrite-min-size", log_growth_min_bytes as u64, NOT_NEGATIVE),
    sized!(Memory "client-query-buffer-limit", client_query_buffer_limit as usize, (1 << 20, MAX_REQUEST_BYTES)),
    sized!(Memory "maxmemory", settings.maxmemory as u64, ANY_SIZE),
    Parameter {
        name: "loglevel",
        alias: None,
        kind: Kind::Other {
            get: |configuration| configuration.log_level.name().into(),
            set: |configuration, value| {
                configuration.log_level = values::log_level(value)?;
                Ok(())
            },
        },
    },
    Parameter {
        name: "maxmemory-policy",
        alias: None,
        kind: Kind::Other {
            get: |configuration| configuration.settings.maxmemory_policy.name().into(),
            set: |configuration, value| {
                configuration.settings.maxmemory_policy = values::policy(value)?;
                Ok(())
            },
        },
    },
    sized!(Integer "maxmemory-samples", settings.maxmemory_samples as usize, (1, 64)),
    sized!(Integer "lfu-log-factor", settings.lfu_log_factor as u64, NOT_NEGATIVE),
    sized!(Integer "lfu-decay-time", settings.lfu_decay_time as u64, NOT_NEGATIVE),
    sized!(Integer "active-expire-effort", settings.active_expire_effort as u64, (1, 10)),
    Parameter {
        name: "maxclients",
        alias: None,
        kind: Kind::Other {
            get: |configuration| configuration.max_clients.to_string().into(),
            set: |configuration, value| {
                let clients = values::integer(value, (1, i64::from(u32::MAX)))? as u64;
                let possible = start::raise_descriptor_limit(clients);
                if possible < clients {
                    return Err(format!(
                        "The operating system is not able to handle the specified number of clients, try with {possible}"
                    ));
                }
                configuration.max_clients = clients as usize;
                Ok(())
            },
        },
    },
    sized!(Integer "timeout", timeout_s as u64, NOT_NEGATIVE),
    // The kernel takes no more.
    sized!(Integer "tcp-keepalive", tcp_keepalive_s as u64, (0, 32_767)),
    Parameter {
        name: "client-output-buffer-limit",
        alias: None,
        kind: Kind::Other {
            get: |configuration| values::show_output_limits(&configuration.client_output_buffer_limits).into(),
            set: |configuration, value| {
                values::change_output_limits(value, &mut configuration.client_output_buffer_limits)
            },
        },
    },
    sized!(Integer "busy-reply-threshold" "lua-time-limit", busy_reply_threshold_ms as u64, ANY_SIZE),
    sized!(Memory "script-memory-limit", script_memory_limit as usize, (1 << 20, i64::MAX)),
    sized!(Integer "slowlog-log-slower-than", slow_log_slower_than_us as i64, (-1, i64::MAX)),
    sized!(Integer "slowlog-max-len", slow_log_max_len as usize, ANY_SIZE),
    sized!(Integer "tracking-table-max-keys", tracking_table_max_keys as usize, ANY_SIZE),
    sized!(Integer "latency-monitor-threshold", latency_monitor_threshold_ms as u64, ANY_SIZE),
    Parameter {
        name: "latency-tracking",
        alias: None,
        kind: Kind::Boolean {
            get: |configuration| configuration.latency_tracking,
            set: |configuration, value| configuration.latency_tracking = value,
        },
    },
    Parameter {
        name: "latency-tracking-info-percentiles",
        alias: None,
        kind: Kind::Other {
            get: |configuration| values::show_percentiles(&configuration.latency_tracking_percentiles).into(),
            set: |configuration, value| {
                configuration.latency_tracking_percentiles = values::percentiles(value)?;
                Ok(())
            },
        },
    },
    Parameter {
        name: "requirepass",
        alias: None,
        kind: Kind::Other {
            get: |configuration| configuration.require_pass.clone(),
            set: |configuration, value| {
                configuration.require_pass = value.to_vec();
                Ok(())
            },
        },
    },
    Parameter {
        name: "notify-keyspace-events",
        alias: None,
        kind: Kind::Other {
            get: |configuration| configuration.keyspace_events.show().into(),
            set: |configuration, value| {
                configuration.keyspace_events =
                    KeyspaceEvents::parse(value).ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?;
                Ok(())
            },
        },
    },
    started("databases", |options| options.databases.to_string()),
    kept("port", |options| options.port.to_string()),
    kept("bind", |options| options.bind.to_string()),
    kept("dir", |options| {
        std::path::absolute(&options.dir).unwrap_or_else(|_| options.dir.clone()).display().to_string()
    }),
    kept("cluster-announce-ip", |options| options.announce_ip.clone().unwrap_or_default()),
    started("cluster-enabled", |options| values::yes_or_no(!options.cross_slot).into()),
    kept("cross-slot", |options| if options.cross_slot { "allow" } else { "deny" }.into()),
    started("tcp-backlog", |_| start::BACKLOG.to_string()),
    started("unixsocket", |_| String::new()),
    started("tls-port", |_| "0".into()),
    started("daemonize", |_| values::yes_or_no(false).into()),
    always("save", "", "checkpoints are made when the log has grown, see auto-aof-rewrite-percentage"),
    Parameter { alias: Some("slaveof"), ..always("replicaof", "", NO_REPLICAS) },
    Parameter { alias: Some("min-slaves-to-write"), ..always("min-replicas-to-write", "0", NO_REPLICAS) },
    always("activedefrag", "no", "memory is kept dense as it is used, there is no defragmentation to switch on"),
    Parameter {
        name: "maxmemory-clients",
        alias: None,
        kind: Kind::Other {
            get: |_| b"0".to_vec(),
            set: |_, value| match values::memory_or_percentage(value)? {
                0 => Ok(()),
                _ => Err("this version does not evict clients: the only value is '0'".into()),
            },
        },
    },
    always("protected-mode", "no", "this version has no protected mode; it listens where 'bind' says"),
];

/// Every parameter.
pub fn all() -> impl Iterator<Item = &'static Parameter> {
    PARAMETERS.iter().chain(NOTED)
}

/// The parameter with this name or older name, whatever the case of its letters; and whether it is the older one.
pub fn find(name: &[u8]) -> Option<(&'static Parameter, bool)> {
    all().find_map(|parameter| {
        if name.eq_ignore_ascii_case(parameter.name.as_bytes()) {
            return Some((parameter, false));
        }
        let alias = parameter.alias?;
        name.eq_ignore_ascii_case(alias.as_bytes()).then_some((parameter, true))
    })
}

impl Parameter {
    /// Whether `CONFIG SET` refuses it whatever the value.
    pub fn is_immutable(&self) -> bool {
        matches!(self.kind, Kind::Started(_))
    }

    /// Its value as `CONFIG GET` shows it.
    pub fn show(&self, configuration: &Configuration, options: &Options) -> Vec<u8> {
        match &self.kind {
            Kind::Integer { get, .. } | Kind::Memory { get, .. } => get(configuration).to_string().into(),
            Kind::Boolean { get, .. } => values::yes_or_no(get(configuration)).into(),
            Kind::Other { get, .. } => get(configuration),
            Kind::Started(get) | Kind::Kept(get) => get(options).into(),
            Kind::Noted { default, .. } => {
                configuration.noted.get(self.name).map_or(*default, String::as_str).as_bytes().to_vec()
            }
            Kind::Always(value, _) => (*value).into(),
        }
    }

    /// Reads `value` into `configuration`; an error says why that is not possible.
    pub fn change(&self, configuration: &mut Configuration, options: &Options, value: &[u8]) -> Result<(), String> {
        match &self.kind {
            Kind::Integer { range, set, .. } => set(configuration, values::integer(value, *range)?),
            Kind::Memory { range, set, .. } => set(configuration, values::memory(value, *range)?),
            Kind::Boolean { set, .. } => set(configuration, values::boolean(value)?),
            Kind::Other { set, .. } => return set(configuration, value),
            Kind::Started(_) => return Err("can't set immutable config".into()),
            Kind::Kept(get) => {
                let only = get(options);
                if value != only.as_bytes() {
                    return Err(format!("it is chosen when the server starts: the only value is '{only}'"));
                }
            }
            Kind::Noted { shape, .. } => {
                configuration.noted.insert(self.name, shape.read(value)?);
            }
            Kind::Always(only, reason) => {
                if !value.eq_ignore_ascii_case(only.as_bytes()) {
                    return Err(format!("{reason}: the only value is '{only}'"));
                }
            }
        }
        Ok(())
    }
}
