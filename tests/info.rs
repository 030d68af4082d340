//! INFO: the sections and fields that tools read.

use crate::support::{Server, Value};
use std::collections::BTreeMap;

/// Section titles and the fields in each that monitoring tools and clients look for.
const FIELDS: [(&str, &[&str]); 9] = [
    (
        "Server",
        &[
            "redis_version",
            "redis_mode",
            "os",
            "arch_bits",
            "process_id",
            "run_id",
            "tcp_port",
            "server_time_usec",
            "uptime_in_seconds",
            "uptime_in_days",
            "hz",
            "executable",
            "config_file",
        ],
    ),
    (
        "Clients",
        &[
            "connected_clients",
            "cluster_connections",
            "maxclients",
            "client_recent_max_input_buffer",
            "client_recent_max_output_buffer",
            "blocked_clients",
            "tracking_clients",
            "clients_in_timeout_table",
        ],
    ),
    (
        "Memory",
        &[
            "used_memory",
            "used_memory_human",
            "used_memory_rss",
            "used_memory_rss_human",
            "used_memory_peak",
            "used_memory_peak_human",
            "total_system_memory",
            "maxmemory",
            "maxmemory_human",
            "maxmemory_policy",
            "mem_fragmentation_ratio",
            "mem_allocator",
        ],
    ),
    ("Persistence", &["loading", "rdb_changes_since_last_save", "rdb_bgsave_in_progress", "aof_enabled"]),
    (
        "Stats",
        &[
            "total_connections_received",
            "total_commands_processed",
            "instantaneous_ops_per_sec",
            "total_net_input_bytes",
            "total_net_output_bytes",
            "rejected_connections",
            "expired_keys",
            "evicted_keys",
            "keyspace_hits",
            "keyspace_misses",
            "total_error_replies",
        ],
    ),
    ("Replication", &["role", "connected_slaves", "master_replid", "master_repl_offset"]),
    ("CPU", &["used_cpu_sys", "used_cpu_user"]),
    ("Cluster", &["cluster_enabled"]),
    ("Keyspace", &["db0"]),
];

fn fields(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.to_owned(), value.trim_end().to_owned())).collect()
}

#[test]
fn info_has_the_sections_and_fields_tools_read() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("SET a 1 EX 1000");
    let info = connection.line("INFO");
    let text = info.text();
    let mut missing = Vec::new();
    for (section, names) in FIELDS {
        let title = format!("# {section}\r\n");
        match text.split_once(&title) {
            None => missing.push(section.to_owned()),
            Some((_, rest)) => {
                let found = fields(rest.split("\r\n# ").next().unwrap_or_default());
                missing
                    .extend(names.iter().filter(|name| !found.contains_key(**name)).map(|n| format!("{section}.{n}")));
            }
        }
    }
    assert!(missing.is_empty(), "missing in INFO: {missing:?}\n{text}");
    assert!(text.ends_with("\r\n") && !text.replace("\r\n", "").contains('\n'), "lines end with CR LF");
}

#[test]
fn info_gives_the_sections_asked_for() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut titles = |line: &str| -> Vec<String> {
        let info = connection.line(line);
        info.text().lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned).collect()
    };
    assert_eq!(titles("INFO server"), ["Server"]);
    assert_eq!(titles("INFO SERVER"), ["Server"]);
    assert_eq!(titles("INFO clients memory"), ["Clients", "Memory"]);
    assert_eq!(titles("INFO nosuchsection"), Vec::<String>::new());
    let everything = titles("INFO everything");
    assert!(everything.contains(&"Commandstats".to_owned()) && everything.contains(&"Latencystats".to_owned()));
    assert_eq!(titles("INFO default"), titles("INFO"));
    assert!(!titles("INFO").contains(&"Commandstats".to_owned()));
}

#[test]
fn info_in_resp3_is_verbatim_text() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("HELLO 3");
    assert!(matches!(connection.line("INFO"), Value::Verbatim(format, _) if format == "txt"));
    assert!(matches!(connection.line("CLIENT LIST"), Value::Verbatim(format, _) if format == "txt"));
}

#[test]
fn the_keyspace_section_counts_keys_and_deadlines() {
    let server = Server::start();
    let mut connection = server.connect();
    for index in 0..100 {
        connection.line(&format!("SET key:{index} v"));
    }
    for index in 0..40 {
        connection.line(&format!("EXPIRE key:{index} 1000"));
    }
    connection.line("SELECT 3");
    connection.line("SET only v");
    let keyspace = fields(connection.line("INFO keyspace").text());
    let db0 = &keyspace["db0"];
    assert!(db0.starts_with("keys=100,expires=40,avg_ttl="), "{db0}");
    let average_ms = db0.split("avg_ttl=").nth(1).and_then(|rest| rest.split(',').next());
    let average_ms: i64 = average_ms.and_then(|digits| digits.parse().ok()).expect("a number");
    assert!((1..=1_000_000).contains(&average_ms), "{db0}");
    assert!(keyspace["db3"].starts_with("keys=1,expires=0,avg_ttl=0"));
    assert_eq!(keyspace.len(), 2, "empty databases are left out");
}

#[test]
fn statistics_count_what_happened() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("CONFIG RESETSTAT");
    for index in 0..10 {
        connection.line(&format!("SET key:{index} v"));
        connection.line(&format!("GET key:{index}"));
        connection.line(&format!("GET nosuch:{index}"));
        connection.line(&format!("INCR key:{index}"));
    }
    connection.line("LPUSH key:0 x");
    connection.line("NOSUCH");
    connection.line("GET");
    let stats = fields(connection.line("INFO stats commandstats latencystats errorstats").text());
    assert_eq!(stats["keyspace_hits"], "10");
    assert_eq!(stats["keyspace_misses"], "10");
    assert_eq!(stats["total_error_replies"], "13");
    assert_eq!(stats["errorstat_ERR"], "count=12");
    assert_eq!(stats["errorstat_WRONGTYPE"], "count=1");
    let set = &stats["cmdstat_set"];
    assert!(set.starts_with("calls=10,usec=") && set.ends_with(",rejected_calls=0,failed_calls=0"), "{set}");
    assert!(stats["cmdstat_incr"].ends_with(",rejected_calls=0,failed_calls=10"), "{}", stats["cmdstat_incr"]);
    assert!(stats["cmdstat_get"].starts_with("calls=20,"), "{}", stats["cmdstat_get"]);
    assert!(stats["cmdstat_get"].ends_with(",rejected_calls=1,failed_calls=0"), "{}", stats["cmdstat_get"]);
    let latency = &stats["latency_percentiles_usec_set"];
    assert!(latency.starts_with("p50=") && latency.contains(",p99=") && latency.contains(",p99.9="), "{latency}");
}

#[test]
fn connections_are_counted() {
    let server = Server::start();
    let mut connection = server.connect();
    let before = server.info_number("total_connections_received");
    let mut others: Vec<_> = (0..5).map(|_| server.connect()).collect();
    for other in &mut others {
        other.line("PING");
    }
    crate::support::wait_until("six connections are there", || {
        fields(connection.line("INFO clients").text())["connected_clients"] == "6"
    });
    // Asking for it opens a connection of its own.
    let received = server.info_number("total_connections_received") - before;
    assert!((6..=7).contains(&received), "{received}");
}
