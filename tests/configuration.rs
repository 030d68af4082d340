//! CONFIG, and what changed parameters do.

use crate::support::{Options, Server, Value, check, replies, wait_until};

#[test]
fn a_change_holds_on_every_shard_once_it_is_confirmed() {
    let server = Server::start();
    let mut connection = server.connect();
    for (limit, encoding) in [("1", "hashtable"), ("128", "listpack")] {
        connection.call(&["CONFIG", "SET", "hash-max-ziplist-entries", limit]);
        for index in 0..32 {
            let key = format!("hash:{limit}:{index}");
            connection.call(&["HSET", &key, "a", "1", "b", "2"]);
            assert_eq!(connection.call(&["OBJECT", "ENCODING", &key]).text(), encoding, "{key}");
        }
    }
}

#[test]
fn limits_of_small_values_are_redis_own_at_the_start() {
    replies(
        r#"
        CONFIG GET hash-max-listpack-entries => [hash-max-listpack-entries 512]
        CONFIG GET hash-max-listpack-value => [hash-max-listpack-value 64]
        CONFIG GET set-max-intset-entries => [set-max-intset-entries 512]
        CONFIG GET zset-max-listpack-entries => [zset-max-listpack-entries 128]
        CONFIG GET zset-max-listpack-value => [zset-max-listpack-value 64]
        CONFIG GET list-max-listpack-size => [list-max-listpack-size -2]
        CONFIG GET hll-sparse-max-bytes => [hll-sparse-max-bytes 3000]
        "#,
    );
}

#[test]
fn parameters_are_checked_before_any_of_them_changes() {
    replies(
        r#"
        CONFIG SET timeout 9 hash-max-listpack-entries -1 => -ERR CONFIG SET failed (possibly related to argument 'hash-max-listpack-entries') - argument must be between 0 and 9223372036854775807 inclusive
        CONFIG SET timeout 9 latency-tracking maybe => -ERR CONFIG SET failed (possibly related to argument 'latency-tracking') - argument must be 'yes' or 'no'
        CONFIG SET timeout 9 proto-max-bulk-len 1 => -ERR CONFIG SET failed (possibly related to argument 'proto-max-bulk-len') - argument must be between 1048576 and 2147483648 inclusive
        CONFIG SET timeout 9 nosuch 1 => -ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'
        CONFIG SET timeout 9 maxclients => -ERR syntax error
        CONFIG GET timeout => [timeout 0]
        CONFIG SET TIMEOUT 9 hash-max-ziplist-entries 7 => OK
        CONFIG GET timeout => [timeout 9]
        CONFIG GET hash-max-*-entries => ??[hash-max-listpack-entries 7 hash-max-ziplist-entries 7]
        CONFIG SET latency-tracking-info-percentiles "50 99.5" => OK
        CONFIG GET latency-tracking-info-percentiles => [latency-tracking-info-percentiles "50 99.5"]
        CONFIG SET latency-tracking-info-percentiles 101 => -ERR CONFIG SET failed (possibly related to argument 'latency-tracking-info-percentiles') - latency-tracking-info-percentiles parameters should sit between [0.0,100.0]
        CONFIG SET client-output-buffer-limit "normal 1mb 1kb 5" => OK
        CONFIG SET client-output-buffer-limit "normal 1 2" => -ERR CONFIG SET failed (possibly related to argument 'client-output-buffer-limit') - Wrong number of arguments in buffer limit configuration.
        CONFIG GET client-output-buffer-limit => [client-output-buffer-limit "normal 1048576 1024 5 slave 268435456 67108864 60 pubsub 33554432 8388608 60"]
        CONFIG REWRITE => -ERR The server is running without a config file
        CONFIG RESETSTAT now => -ERR wrong number of arguments for 'config|resetstat' command
    "#,
    );
}

#[test]
fn what_the_server_does_in_one_way_only_can_be_set_to_that() {
    let server = Server::start();
    let mut connection = server.connect();
    for (name, value) in [("save", ""), ("appendonly", "no")] {
        assert_eq!(connection.call(&["CONFIG", "SET", name, value]), Value::Simple("OK".to_owned()), "{name}");
        assert_eq!(connection.call(&["CONFIG", "GET", name]).elements()[1].text(), value, "{name}");
    }
    let refused = connection.call(&["CONFIG", "SET", "save", "900 1"]);
    assert!(refused.error().starts_with("ERR CONFIG SET failed (possibly related to argument 'save') - "));
}

#[test]
fn what_only_arranges_work_is_checked_and_kept() {
    replies(
        r#"
        CONFIG GET lazyfree-lazy-expire => [lazyfree-lazy-expire no]
        CONFIG SET lazyfree-lazy-expire YES list-compress-depth 2 repl-backlog-size 2mb hz 50 => OK
        CONFIG GET lazyfree-lazy-expire => [lazyfree-lazy-expire yes]
        CONFIG GET list-compress-depth => [list-compress-depth 2]
        CONFIG GET repl-backlog-size => [repl-backlog-size 2097152]
        CONFIG SET loglevel DEBUG busy-reply-threshold 7 => OK
        CONFIG GET loglevel => [loglevel debug]
        CONFIG GET lua-time-limit => [lua-time-limit 7]
        CONFIG SET hz 60 list-compress-depth -1 => -ERR CONFIG SET failed (possibly related to argument 'list-compress-depth') - argument must be between 0 and 2147483647 inclusive
        CONFIG GET hz => [hz 50]
        CONFIG SET loglevel loud => -ERR CONFIG SET failed (possibly related to argument 'loglevel') - argument(s) must be one of the following: debug, verbose, notice, warning, nothing
        CONFIG SET lazyfree-lazy-expire maybe => -ERR CONFIG SET failed (possibly related to argument 'lazyfree-lazy-expire') - argument must be 'yes' or 'no'
        CONFIG SET maxmemory-clients 0% => OK
        CONFIG SET maxmemory-clients 200% => -ERR CONFIG SET failed (possibly related to argument 'maxmemory-clients') - percentage argument must be less or equal to 100
    "#,
    );
}

#[test]
fn every_parameter_that_redis_can_set_takes_its_own_value() {
    // Those that Redis cannot set while it runs either.
    const IMMUTABLE: [&str; 6] = ["databases", "cluster-enabled", "tcp-backlog", "unixsocket", "tls-port", "daemonize"];
    let server = Server::start();
    let mut connection = server.connect();
    let all = connection.line("CONFIG GET *");
    for pair in all.elements().chunks(2).filter(|pair| !IMMUTABLE.contains(&pair[0].text())) {
        let reply = connection.call(&[&b"CONFIG"[..], b"SET", pair[0].bytes(), pair[1].bytes()]);
        assert_eq!(reply, Value::Simple("OK".to_owned()), "{}", pair[0].text());
    }
    assert_eq!(connection.line("CONFIG GET *").sorted_pairs(), all.sorted_pairs());
    let refused = connection.line("CONFIG SET port 1");
    assert!(refused.error().contains("(possibly related to argument 'port') - it is chosen when the server starts"));
}

#[test]
fn a_file_of_options_is_not_rewritten() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "maxmemory = \"64mb\"\n").expect("written");
    let path = file.path().to_str().expect("a path");
    let server = Server::with(&Options { arguments: &["--config", path], ..Options::default() });
    let mut connection = server.connect();
    assert_eq!(connection.line("CONFIG GET maxmemory").elements()[1].text(), "67108864");
    let refused = connection.line("CONFIG REWRITE");
    assert!(refused.error().starts_with("ERR Rewriting config file: "), "{refused:?}");
    assert_eq!(std::fs::read_to_string(file.path()).expect("still there"), "maxmemory = \"64mb\"\n");
}

#[test]
fn a_password_holds_for_new_connections_and_is_not_logged() {
    let server = Server::start();
    let mut connection = server.connect();
    check(
        &mut connection,
        r#"
        CONFIG SET slowlog-log-slower-than 0 => OK
        CONFIG SET requirepass secret => OK
        CONFIG SET slowlog-log-slower-than -1 => OK
        CONFIG GET requirepass => [requirepass secret]
        PING => +PONG
    "#,
    );
    for mut new in [server.connect(), server.connect_to_shard(0), server.connect_to_shard(1)] {
        check(
            &mut new,
            r#"
            PING => -NOAUTH Authentication required.
            AUTH secret => OK
            PING => +PONG
        "#,
        );
    }
    let log = format!("{:?}", connection.line("SLOWLOG GET -1"));
    assert!(log.contains("requirepass") && log.contains("(redacted)") && !log.contains("secret"), "{log}");
}

#[test]
fn commands_over_the_threshold_become_latency_events() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("CONFIG SET latency-monitor-threshold 1");
    let long = "x".repeat(1 << 20);
    wait_until("a command took a millisecond", || {
        connection.call(&["RPUSH", "list", &long, &long, &long, &long]);
        connection.line("LRANGE list 0 -1");
        !connection.line("LATENCY LATEST").elements().is_empty()
    });
    connection.line("CONFIG SET latency-monitor-threshold 0");
    let latest = connection.line("LATENCY LATEST");
    let event = latest.elements()[0].elements();
    assert_eq!(event.len(), 4, "name, time, latest, worst");
    assert!(event[3].integer() >= event[2].integer() && event[2].integer() >= 1);
    let graph = connection.call(&["LATENCY", "GRAPH", event[0].text()]);
    assert!(graph.text().starts_with(&format!("{} - high ", event[0].text())), "{}", graph.text());
    let doctor = connection.line("LATENCY DOCTOR");
    assert!(doctor.text().contains(&format!("\n{}: ", event[0].text())), "{}", doctor.text());
    let history = connection.call(&["LATENCY", "HISTORY", event[0].text()]);
    assert_eq!(history.elements().last().expect("a sample").elements(), &event[1..3]);
    let events = latest.elements().len() as i64;
    assert_eq!(connection.line("LATENCY RESET nosuch").integer(), 0);
    assert_eq!(connection.line("LATENCY RESET").integer(), events);
    assert!(connection.line("LATENCY LATEST").elements().is_empty());
}

#[test]
fn containers_describe_their_subcommands() {
    let server = Server::start();
    let mut connection = server.connect();
    for container in ["CONFIG", "SLOWLOG", "LATENCY", "MEMORY", "COMMAND"] {
        let help = connection.line(&format!("{container} HELP"));
        let lines: Vec<&str> = help.elements().iter().map(Value::text).collect();
        assert_eq!(lines[0], format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
        assert_eq!(lines[lines.len() - 2], "HELP", "{container}");
    }
}

/// The longest that a reply of `LATENCY LATEST` has of an event, in ms.
fn worst_ms(latest: &Value, event: &str) -> Option<i64> {
    let found = latest.elements().iter().find(|sample| sample.elements()[0].text() == event);
    found.map(|sample| sample.elements()[3].integer())
}

#[test]
fn long_sweeps_of_expired_keys_become_latency_events() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("CONFIG SET latency-monitor-threshold 1 active-expire-effort 10");
    wait_until("a sweep took a millisecond", || {
        connection.call(&["EVAL", "for i = 1, 100000 do redis.call('set', KEYS[1] .. i, 1, 'px', 1) end", "1", "{a}"]);
        worst_ms(&connection.line("LATENCY LATEST"), "expire-cycle").is_some()
    });
}

#[test]
fn long_evictions_become_latency_events() {
    let server = Server::start();
    let mut connection = server.connect();
    // So many samples make each look for a key long.
    connection.line("CONFIG SET latency-monitor-threshold 1 maxmemory-policy allkeys-lru maxmemory-samples 64");
    wait_until("an eviction took a millisecond", || {
        connection.line("CONFIG SET maxmemory 0");
        connection.call(&["EVAL", "for i = 1, 100000 do redis.call('set', KEYS[1] .. i, i) end", "1", "{a}"]);
        connection.line("CONFIG SET maxmemory 1mb");
        connection.line("SET {a}b 1");
        worst_ms(&connection.line("LATENCY LATEST"), "eviction-cycle").is_some()
    });
}

#[test]
fn slow_writes_and_syncs_of_the_log_become_latency_events() {
    let server = Server::with(&Options { environment: &[("RUVIO_DURABILITY", "always")], ..Options::default() });
    let mut connection = server.connect();
    connection.line("CONFIG SET latency-monitor-threshold 1");
    let long = "x".repeat(8 << 20);
    let mut latest = Value::Null;
    wait_until("a write and a sync took a millisecond", || {
        connection.call(&["SET", "a", &long]);
        latest = connection.line("LATENCY LATEST");
        worst_ms(&latest, "aof-write").is_some() && worst_ms(&latest, "aof-fsync-always").is_some()
    });
    let kinds = ["aof-write-alone", "aof-write-pending-fsync", "aof-write-active-child"];
    let worst = kinds.into_iter().filter_map(|event| worst_ms(&latest, event)).max();
    assert_eq!(worst, worst_ms(&latest, "aof-write"), "a write is of one of the kinds: {latest:?}");
}
