//! INFO: the sections and fields that tools read.

use crate::support::{Connection, Server, Value};
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
            "redis_git_sha1",
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
            "eventloop_cycles",
            "eventloop_duration_sum",
            "eventloop_duration_cmd_sum",
            "instantaneous_eventloop_cycles_per_sec",
            "instantaneous_eventloop_duration_usec",
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

/// The calls, the rejected and the failed ones that `INFO commandstats` has for a command.
#[track_caller]
fn calls(connection: &mut Connection, command: &str) -> (u64, u64, u64) {
    let all = fields(connection.line("INFO commandstats").text());
    let Some(stats) = all.get(&format!("cmdstat_{command}")) else { return (0, 0, 0) };
    let number = |name: &str| {
        let value = stats.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {stats}"))
    };
    (number("calls"), number("rejected_calls"), number("failed_calls"))
}

#[test]
fn commands_refused_for_want_of_memory_were_not_called() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut other = server.connect();
    connection.line("SET a 1");
    connection.line("MULTI");
    connection.line("SET a 2");
    other.line("CONFIG SET maxmemory 1");
    other.line("CONFIG RESETSTAT");
    let reply = connection.line("EXEC");
    let refusal = "OOM command not allowed when used memory > 'maxmemory'.";
    assert_eq!(reply.error(), format!("EXECABORT Transaction discarded because of: {refusal}"));
    assert_eq!((calls(&mut other, "exec"), calls(&mut other, "set")), ((0, 1, 0), (0, 0, 0)));
    // The keys are of both shards: some of the commands come to their shard from the other.
    for key in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(connection.call(&["SET", key, "1"]).error(), refusal);
        assert_eq!(connection.call(&["GET", key]).is_null(), key != "a");
    }
    assert_eq!((calls(&mut other, "set"), calls(&mut other, "get")), ((0, 6, 0), (6, 0, 0)));
    connection.line("MULTI");
    assert_eq!(connection.line("SET a 1").error(), refusal);
    assert!(connection.line("EXEC").error().starts_with("EXECABORT"));
    assert_eq!((calls(&mut other, "set"), calls(&mut other, "exec")), ((0, 7, 0), (1, 1, 1)));
    // What a script calls is refused for itself, and a script that says what it does as a whole.
    connection.call(&["EVAL", "return redis.pcall('set', KEYS[1], 1)", "1", "a"]);
    assert_eq!((calls(&mut other, "set"), calls(&mut other, "eval")), ((0, 8, 0), (1, 0, 1)));
    assert_eq!(connection.call(&["EVAL", "#!lua\nreturn 1", "0"]).error(), refusal);
    assert_eq!(calls(&mut other, "eval"), (1, 1, 1));
    let library = "#!lua name=l\nredis.register_function('f', function() return 1 end)";
    assert_eq!(connection.call(&["FUNCTION", "LOAD", library]).error(), refusal);
    assert_eq!(calls(&mut other, "function|load"), (0, 1, 0));
    // Commands that run, and find nothing or something else, are called.
    assert_eq!(connection.line("FCALL nosuch 0").error(), "ERR Function not found");
    assert_eq!(calls(&mut other, "fcall"), (1, 0, 1));
}

#[test]
fn commands_for_keys_that_are_elsewhere_were_not_called() {
    if crate::support::against_reference_server() {
        return;
    }
    let server = Server::start();
    let mut connection = server.connect_to_shard(0);
    for command in ["GET", "WATCH", "SPUBLISH"] {
        let refused = ["a", "b", "c", "d", "e", "f"]
            .iter()
            .map(|key| match command {
                "SPUBLISH" => connection.call(&[command, key, "m"]),
                _ => connection.call(&[command, key]),
            })
            .filter(|reply| matches!(reply, Value::Error(text) if text.starts_with("MOVED ") || text.starts_with("CROSSSLOT ")))
            .count() as u64;
        assert!(refused > 0 && refused < 6, "{command}: {refused} of 6 keys are of the other shard");
        assert_eq!(calls(&mut connection, &command.to_lowercase()), (6 - refused, refused, 0), "{command}");
    }
    for command in ["MGET a b", "WATCH a b", "SSUBSCRIBE a b"] {
        let (name, before) = (command.split(' ').next().unwrap().to_lowercase(), connection.line("PING"));
        let rejected = calls(&mut connection, &name).1;
        assert!(connection.line(command).error().starts_with("CROSSSLOT "), "{command} after {before:?}");
        assert_eq!(calls(&mut connection, &name).1, rejected + 1, "{command}");
    }
}

#[test]
fn turns_of_the_cores_are_measured() {
    if crate::support::against_reference_server() {
        return;
    }
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("CONFIG RESETSTAT");
    let begun = std::time::Instant::now();
    for _ in 0..200 {
        connection.line("SET a 1");
    }
    // It counts as a script's time what its commands take.
    connection.call(&["EVAL", "for i = 1, 100000 do redis.call('get', KEYS[1]) end", "1", "a"]);
    let stats = fields(connection.line("INFO stats").text());
    let elapsed_us = begun.elapsed().as_micros() as u64;
    let number = |name: &str| stats[name].parse::<u64>().unwrap_or_else(|_| panic!("{name}: {}", stats[name]));
    let (all_us, commands_us) = (number("eventloop_duration_sum"), number("eventloop_duration_cmd_sum"));
    assert!(number("eventloop_cycles") > 200);
    assert!(commands_us > 1000 && commands_us <= all_us, "{commands_us} of {all_us} microseconds were commands'");
    // Of two cores, one of which had little to do.
    assert!(all_us < 2 * elapsed_us + 100_000, "{all_us} microseconds in {elapsed_us}");
    crate::support::wait_until("rates are known", || {
        let stats = fields(connection.line("INFO stats").text());
        stats["instantaneous_eventloop_cycles_per_sec"] != "0"
    });
    let mut idle = connection;
    idle.line("CONFIG RESETSTAT");
    idle.line("BLPOP nosuch 0.3");
    let idle_us: u64 = fields(idle.line("INFO stats").text())["eventloop_duration_sum"].parse().expect("a number");
    assert!(idle_us < 200_000, "{idle_us} microseconds in turns while two cores had nothing to do for 300 ms");
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
