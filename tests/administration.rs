//! The commands of the server group: configuration, command table, slow log, latency, memory, monitor.

use crate::support::{Connection, Server, Value, check, replies, wait_until};

#[test]
fn config_reads_and_writes_by_redis_names() {
    replies(
        r#"
        CONFIG GET maxmemory-policy => [maxmemory-policy noeviction]
        CONFIG SET maxmemory-policy allkeys-lru => OK
        CONFIG GET maxmemory-policy => [maxmemory-policy allkeys-lru]
        CONFIG SET maxmemory-policy bogus => -ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction
        CONFIG SET maxmemory 100mb => OK
        CONFIG GET maxmemory => [maxmemory 104857600]
        CONFIG SET maxmemory x => -ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value
        CONFIG SET maxmemory 0 => OK
        CONFIG SET nosuchparameter 1 => -ERR Unknown option or number of arguments for CONFIG SET - 'nosuchparameter'
        CONFIG SET maxmemory-samples 7 slowlog-max-len 33 => OK
        CONFIG GET maxmemory-samples => [maxmemory-samples 7]
        CONFIG GET slowlog-max-len => [slowlog-max-len 33]
        CONFIG SET maxmemory => -ERR wrong number of arguments for 'config|set' command
        CONFIG SET slowlog-max-len 5 maxmemory-samples x => -ERR CONFIG SET failed (possibly related to argument 'maxmemory-samples') - argument couldn't be parsed into an integer
        CONFIG GET slowlog-max-len => [slowlog-max-len 33]
        CONFIG SET maxmemory-samples 5 maxmemory-samples 6 => -ERR CONFIG SET failed (possibly related to argument 'maxmemory-samples') - duplicate parameter
        CONFIG GET nosuchparameter => []
        CONFIG GET maxmemory maxmemory-samples => ??[maxmemory 0 maxmemory-samples 7]
        CONFIG GET => -ERR wrong number of arguments for 'config|get' command
        CONFIG GET databases => [databases 16]
        CONFIG SET databases 5 => -ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config
        CONFIG RESETSTAT => OK
    "#,
    );
}

#[test]
fn the_command_table_can_be_asked() {
    let server = Server::start();
    let mut connection = server.connect();
    let count = connection.line("COMMAND COUNT").integer();
    assert!(count > 100, "{count} commands");
    assert_eq!(connection.line("COMMAND").elements().len() as i64, count);
    let names = connection.line("COMMAND LIST");
    let names: Vec<&str> = names.elements().iter().map(Value::text).collect();
    assert!(names.contains(&"set") && names.contains(&"client|list"), "{names:?}");
    let get = connection.line("COMMAND INFO get");
    let get = get.elements()[0].elements().to_vec();
    assert_eq!(get[0].text(), "get");
    assert_eq!(get[1].integer(), 2);
    let mut flags: Vec<&str> = get[2].elements().iter().map(Value::text).collect();
    flags.sort_unstable();
    assert_eq!(flags, ["fast", "readonly"]);
    assert_eq!(get[3..6], [1, 1, 1].map(Value::Integer));
    let mut categories: Vec<&str> = get[6].elements().iter().map(Value::text).collect();
    categories.sort_unstable();
    assert_eq!(categories, ["@fast", "@read", "@string"]);
    assert_eq!(get.len(), 10, "a description has ten parts");
    check(
        &mut connection,
        r#"
        COMMAND INFO nosuch => [nil]
        COMMAND GETKEYS GET a => [a]
        COMMAND GETKEYS MSET a 1 b 2 => [a b]
        COMMAND GETKEYS ZUNIONSTORE d 2 a b WEIGHTS 1 2 => [d a b]
        COMMAND GETKEYS LMPOP 2 a b LEFT => [a b]
        COMMAND GETKEYS PING a => -ERR The command has no key arguments
        COMMAND GETKEYS NOSUCH a => -ERR Invalid command specified
        COMMAND GETKEYS GET a b => -ERR Invalid number of arguments specified for command
        COMMAND NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try COMMAND HELP.
        COMMAND LIST FILTERBY PATTERN hincr* => ?[hincrby hincrbyfloat]
        COMMAND GETKEYSANDFLAGS SET a 1 => [[a [+OW +update]]]
        COMMAND GETKEYSANDFLAGS GET a => [[a [+RO +access]]]
        COMMAND GETKEYSANDFLAGS LMOVE a b LEFT LEFT => [[a [+RW +access +delete]] [b [+RW +insert]]]
    "#,
    );
    let documentation = connection.line("COMMAND DOCS get");
    let documentation = documentation.field("get");
    assert_eq!(documentation.field("group").text(), "string");
    assert_eq!(documentation.field("since").text(), "1.0.0");
    assert_eq!(documentation.field("arguments").elements()[0].field("type").text(), "key");
    assert!(!documentation.field("summary").text().is_empty());
    assert_eq!(documentation.field("complexity").text(), "O(1)");
}

#[test]
fn time_is_the_wall_clock() {
    let server = Server::start();
    let reply = server.connect().line("TIME");
    let [seconds, microseconds] = reply.elements() else { panic!("two numbers") };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    let seconds: u64 = seconds.text().parse().expect("seconds");
    assert!(now.abs_diff(seconds) <= 2);
    assert!(microseconds.text().parse::<u32>().expect("microseconds") < 1_000_000);
}

#[test]
fn the_slow_log_holds_commands_above_its_limit() {
    let server = Server::start();
    let mut connection = server.connect();
    check(
        &mut connection,
        r#"
        CONFIG SET slowlog-log-slower-than -1 => OK
        SLOWLOG RESET => OK
        SLOWLOG LEN => :0
        SLOWLOG GET => []
        CONFIG SET slowlog-log-slower-than 0 => OK
        SET a 1 => OK
        GET a => 1
        CONFIG SET slowlog-log-slower-than -1 => OK
        SLOWLOG GET x => -ERR count should be greater than or equal to -1
        SLOWLOG GET -2 => -ERR count should be greater than or equal to -1
        SLOWLOG NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try SLOWLOG HELP.
    "#,
    );
    let log = connection.line("SLOWLOG GET -1");
    let commands: Vec<String> = log.elements().iter().map(|entry| format!("{:?}", entry.elements()[3])).collect();
    assert!(commands.contains(&r#"["SET" "a" "1"]"#.to_owned()), "{commands:?}");
    assert!(commands.contains(&r#"["GET" "a"]"#.to_owned()), "{commands:?}");
    let entry = log.elements()[0].elements();
    assert_eq!(entry.len(), 6, "number, time, duration, arguments, address, name");
    assert!(entry[0].integer() >= 0 && entry[1].integer() > 1_600_000_000 && entry[2].integer() >= 0);
    assert_eq!(connection.line("SLOWLOG GET 1").elements().len(), 1);
    connection.line("SLOWLOG RESET");
    assert_eq!(connection.line("SLOWLOG LEN").integer(), 0);
}

#[test]
fn the_slow_log_holds_what_scripts_call() {
    let server = Server::start();
    let mut connection = server.connect();
    let address = connection.local_address();
    let mut log_of = |threshold: &str, key: &str| -> Vec<Vec<Value>> {
        let script =
            "redis.call('ping'); redis.pcall('get'); redis.pcall('nosuch'); return redis.call('incr', KEYS[1])";
        connection.line("CONFIG SET slowlog-log-slower-than -1");
        connection.line("SLOWLOG RESET");
        connection.call(&["CONFIG", "SET", "slowlog-log-slower-than", threshold]);
        connection.call(&["EVAL", script, "1", key]);
        connection.line("CONFIG SET slowlog-log-slower-than -1");
        let log = connection.line("SLOWLOG GET -1");
        let entries = log.elements().iter().map(|entry| entry.elements().to_vec());
        entries.filter(|entry| entry[3].elements()[0].text() != "CONFIG").collect()
    };
    // The keys are of both shards: some of the scripts run on the other core.
    for key in ["a", "b", "c", "d"] {
        let entries = log_of("0", key);
        let names: Vec<&str> = entries.iter().map(|entry| entry[3].elements()[0].text()).collect();
        assert_eq!(names, ["EVAL", "incr", "ping"], "the latest comes first; what was refused was not executed");
        assert!(entries.iter().all(|entry| entry[4].text() == address), "all are of the client that sent the script");
        assert!(log_of("-1", key).is_empty());
    }
}

#[test]
fn latency_histograms_count_every_call() {
    let server = Server::start();
    let mut connection = server.connect();
    for index in 0..50 {
        connection.line(&format!("SET key:{index} v"));
    }
    let histogram = connection.line("LATENCY HISTOGRAM set");
    let set = histogram.field("set");
    assert_eq!(set.field("calls").integer(), 50);
    let buckets = set.field("histogram_usec");
    let counts: Vec<i64> = buckets.elements().chunks(2).map(|pair| pair[1].integer()).collect();
    assert_eq!(counts.last(), Some(&50), "the last bucket holds all calls");
    assert!(counts.is_sorted());
    check(
        &mut connection,
        r#"
        LATENCY HISTOGRAM nosuch => []
        LATENCY LATEST => []
        LATENCY HISTORY nosuch => []
        LATENCY RESET => :0
        LATENCY GRAPH nosuch => -ERR No samples available for event 'nosuch'
        LATENCY DOCTOR now => -ERR wrong number of arguments for 'latency|doctor' command
        LATENCY NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try LATENCY HELP.
        CONFIG RESETSTAT => OK
        LATENCY HISTOGRAM set => []
    "#,
    );
}

#[test]
fn memory_usage_grows_with_the_value() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("SET small v");
    connection.call(&["SET", "large", &"v".repeat(100_000)]);
    connection.line("RPUSH list a b c");
    let mut usage = |key: &str| connection.line(&format!("MEMORY USAGE {key}")).integer();
    assert!((20..200).contains(&usage("small")));
    assert!((100_000..140_000).contains(&usage("large")));
    assert!((20..500).contains(&usage("list")));
    check(
        &mut connection,
        r#"
        MEMORY USAGE missing => nil
        MEMORY USAGE small SAMPLES 5 => *
        MEMORY USAGE small SAMPLES x => -ERR value is not an integer or out of range
        MEMORY USAGE small bogus => -ERR syntax error
        MEMORY NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try MEMORY HELP.
    "#,
    );
}

#[test]
fn monitor_shows_the_commands_of_all_connections() {
    let server = Server::start();
    let mut monitor = server.connect();
    assert_eq!(monitor.line("MONITOR"), Value::Simple("OK".to_owned()));
    let mut worker = server.connect();
    worker.line("SELECT 3");
    for index in 0..20 {
        worker.call(&["SET".to_owned(), format!("key:{index}"), "a \"b\"\n\0".to_owned()]);
    }
    for index in 0..20 {
        let wanted = format!(r#""SET" "key:{index}" "a \"b\"\n\x00""#);
        loop {
            let shown = monitor.read_value();
            let (head, words) = shown.text().split_once("] ").expect("time, database and address in brackets");
            if words == wanted {
                assert!(head.contains(" [3 127.0.0.1:"), "{head}");
                assert!(head.split(' ').next().is_some_and(|time| time.parse::<f64>().is_ok()), "{head}");
                break;
            }
        }
    }
}

#[test]
fn a_monitor_that_is_reset_is_not_shown_that() {
    let server = Server::start();
    let mut monitor = server.connect();
    let mut other = server.connect();
    for connection in [&mut monitor, &mut other] {
        assert_eq!(connection.line("MONITOR"), Value::Simple("OK".to_owned()));
    }
    assert_eq!(monitor.line("RESET"), Value::Simple("RESET".to_owned()));
    let Value::Simple(shown) = other.read_value() else { panic!("no line is shown") };
    assert!(shown.ends_with(" \"RESET\""), "{shown}");
}

#[test]
fn shutdown_refuses_bad_words() {
    let server = Server::start();
    check(
        &mut server.connect(),
        r#"
        SHUTDOWN bogus => -ERR syntax error
        SHUTDOWN SAVE NOSAVE => -ERR syntax error
        SHUTDOWN ABORT => -ERR No shutdown in progress.
        PING => +PONG
    "#,
    );
}

#[test]
fn without_eviction_writes_beyond_maxmemory_are_refused() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("SET a 1");
    connection.line("CONFIG SET maxmemory-policy noeviction");
    connection.line("CONFIG SET maxmemory 1");
    check(
        &mut connection,
        r#"
        SET b 1 => -OOM command not allowed when used memory > 'maxmemory'.
        LPUSH l x => -OOM command not allowed when used memory > 'maxmemory'.
        GET a => 1
        DEL a => :1
        CONFIG SET maxmemory 0 => OK
        SET b 1 => OK
    "#,
    );
}

#[test]
fn each_policy_evicts_only_what_it_may() {
    for (policy, volatile_only) in [
        ("allkeys-lru", false),
        ("allkeys-lfu", false),
        ("allkeys-random", false),
        ("volatile-lru", true),
        ("volatile-lfu", true),
        ("volatile-random", true),
        ("volatile-ttl", true),
    ] {
        let server = Server::start();
        let mut connection = server.connect();
        let value = "v".repeat(1_000);
        for index in 0..2_000 {
            connection.call(&["SET", &format!("stays:{index}"), &value]);
        }
        let limit = server.info_number("used_memory") + 3_000_000;
        connection.line(&format!("CONFIG SET maxmemory-policy {policy}"));
        connection.line(&format!("CONFIG SET maxmemory {limit}"));
        for index in 0..10_000 {
            let reply = connection.call(&["SET", &format!("goes:{index}"), &value, "EX", "1000"]);
            assert_eq!(reply, Value::Simple("OK".to_owned()), "{policy}, write {index}");
        }
        assert!(server.info_number("evicted_keys") > 1_000, "{policy}");
        assert!(server.info_number("used_memory") < limit + 2_000_000, "{policy}");
        let kept = (0..2_000).filter(|index| connection.line(&format!("EXISTS stays:{index}")).integer() == 1).count();
        if volatile_only {
            assert_eq!(kept, 2_000, "{policy} took keys without a deadline");
        }
    }
}

#[test]
fn lfu_keeps_what_is_read_often() {
    let server = Server::start();
    let mut connection = server.connect();
    let value = "v".repeat(1_000);
    connection.line("CONFIG SET maxmemory-policy allkeys-lfu");
    connection.line("CONFIG SET maxmemory-samples 10");
    for index in 0..50 {
        connection.call(&["SET", &format!("hot:{index}"), &value]);
        for _ in 0..200 {
            connection.line(&format!("GET hot:{index}"));
        }
    }
    let limit = server.info_number("used_memory") + 2_000_000;
    connection.line(&format!("CONFIG SET maxmemory {limit}"));
    let mut written = 0;
    wait_until("enough has been evicted", || {
        for _ in 0..500 {
            connection.call(&["SET", &format!("cold:{written}"), &value]);
            written += 1;
        }
        server.info_number("evicted_keys") > 5_000
    });
    let kept = (0..50).filter(|index| connection.line(&format!("EXISTS hot:{index}")).integer() == 1).count();
    assert!(kept > 45, "only {kept} of 50 keys in use were kept");
}

/// Keys of each shard, as `INFO shards` has them.
fn keys_of_shards(connection: &mut Connection) -> Vec<u64> {
    let reply = connection.line("INFO shards");
    let text = reply.text();
    let lines = text.lines().filter(|line| line.starts_with("shard") && line.contains(",keys="));
    lines.map(|line| line.split(",keys=").nth(1).unwrap().split(',').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn eviction_takes_from_all_shards_alike_however_they_are_asked() {
    let server = Server::start();
    // All commands come by way of one core, so that half of them are forwarded.
    let mut connection = server.connect();
    connection.line("CONFIG SET maxmemory-policy allkeys-random");
    let value = "v".repeat(1_000);
    for index in 0..2_000 {
        connection.call(&["SET", &format!("key:{index}"), &value]);
    }
    let limit = server.info_number("used_memory");
    connection.line(&format!("CONFIG SET maxmemory {limit}"));
    for round in 0..15 {
        for index in 0..1_000 {
            connection.call(&["SET", &format!("more:{round}:{index}"), &value]);
            connection.call(&["GETRANGE", &format!("more:{round}:{index}"), "0", "-1"]);
        }
        let keys = keys_of_shards(&mut connection);
        let (least, most) = (*keys.iter().min().unwrap(), *keys.iter().max().unwrap());
        assert!(least * 10 > most * 8 && least > 500, "keys of the shards after {round} rounds: {keys:?}");
    }
}
