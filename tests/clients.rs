//! Real clients doing real work, plain and cluster-aware.
//!
//! A client that is not installed is passed over with a line that says so, unless `RUVIO_REQUIRE_CLIENTS=1`. The
//! programs and the packages they need are in `tests/clients`; `RUVIO_TEST_PYTHON` names another interpreter, and
//! `MEMTIER_BENCHMARK` the program where it is not on the path.

use crate::support::Server;
use crate::support::program::{available, node, node_has, python, run, succeed};
use redis::cluster::{ClusterClient, cluster_pipe};
use redis::{ConnectionLike, RedisResult, cmd, pipe};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Checks that the work of a cluster-aware client reaches each shard at its own port.
#[track_caller]
fn without_forwarding(work: impl FnOnce(&Server)) {
    let server = Server::start();
    let before = server.info_number("forwarded_commands");
    let commands_before = server.info_number("total_commands_processed");
    work(&server);
    assert!(server.info_number("total_commands_processed") > commands_before + 5, "the client did no work");
    let forwarded = server.info_number("forwarded_commands") - before;
    assert_eq!(forwarded, 0, "a cluster-aware client sends each command to the shard that owns its key");
}

fn redis_py(mode: &str, server: &Server) {
    succeed(python().arg("python_client.py").arg(server.port().to_string()).arg(mode));
}

#[test]
fn redis_py_works() {
    if available("redis-py", python().args(["-c", "import redis"])) {
        redis_py("plain", &Server::start());
    }
}

#[test]
fn redis_py_cluster_works_without_forwarding() {
    if available("redis-py", python().args(["-c", "import redis.cluster"])) {
        without_forwarding(|server| redis_py("cluster", server));
    }
}

fn redis_py_caches(mode: &str, server: &Server) {
    succeed(python().arg("python_caching.py").arg(server.port().to_string()).arg(mode));
}

#[test]
fn redis_py_caches_what_it_has_read() {
    if available("redis-py", python().args(["-c", "import redis.cache"])) {
        redis_py_caches("plain", &Server::start());
    }
}

#[test]
fn redis_py_cluster_caches_what_it_has_read() {
    if available("redis-py", python().args(["-c", "import redis.cluster, redis.cache"])) {
        without_forwarding(|server| redis_py_caches("cluster", server));
    }
}

fn node_client(program: &str, mode: &str, server: &Server) {
    succeed(node().arg(program).arg(server.port().to_string()).arg(mode));
}

#[test]
fn node_redis_works() {
    if node_has("redis") {
        node_client("node_redis.js", "plain", &Server::start());
    }
}

#[test]
fn node_redis_cluster_works_without_forwarding() {
    if node_has("redis") {
        without_forwarding(|server| node_client("node_redis.js", "cluster", server));
    }
}

#[test]
fn ioredis_works() {
    if node_has("ioredis") {
        node_client("node_ioredis.js", "plain", &Server::start());
    }
}

#[test]
fn ioredis_cluster_works_without_forwarding() {
    if node_has("ioredis") {
        without_forwarding(|server| node_client("node_ioredis.js", "cluster", server));
    }
}

/// What the Rust client does in both modes.
fn rust_client_work(connection: &mut dyn ConnectionLike) -> RedisResult<()> {
    let binary: Vec<u8> = (0..=255).collect::<Vec<u8>>().repeat(40);
    cmd("SET").arg("binary").arg(&binary).exec(connection)?;
    assert_eq!(cmd("GET").arg("binary").query::<Vec<u8>>(connection)?, binary);
    assert_eq!(cmd("GET").arg("missing").query::<Option<String>>(connection)?, None);
    assert_eq!(cmd("INCRBY").arg("counter").arg(42).query::<i64>(connection)?, 42);
    assert_eq!(cmd("HSET").arg("hash").arg(&["a", "1", "b", "2"]).query::<i64>(connection)?, 2);
    let hash: HashMap<String, i64> = cmd("HGETALL").arg("hash").query(connection)?;
    assert_eq!(hash, HashMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]));
    assert_eq!(cmd("RPUSH").arg("list").arg(&["x", "y", "z"]).query::<i64>(connection)?, 3);
    assert_eq!(cmd("LRANGE").arg("list").arg(0).arg(-1).query::<Vec<String>>(connection)?, ["x", "y", "z"]);
    assert_eq!(cmd("ZADD").arg("zset").arg(&["1", "one", "2.5", "two"]).query::<i64>(connection)?, 2);
    let pairs: Vec<(String, f64)> = cmd("ZRANGE").arg("zset").arg(&["0", "-1", "WITHSCORES"]).query(connection)?;
    assert_eq!(pairs, [("one".to_owned(), 1.0), ("two".to_owned(), 2.5)]);
    assert_eq!(cmd("EXPIRE").arg("list").arg(100).query::<i64>(connection)?, 1);
    assert!((1..=100).contains(&cmd("TTL").arg("list").query::<i64>(connection)?));
    let error = cmd("LPUSH").arg("zset").arg("x").query::<i64>(connection).expect_err("the wrong type");
    assert_eq!(error.code(), Some("WRONGTYPE"));
    for number in 0..500 {
        cmd("SET").arg(format!("many:{number}")).arg(number).exec(connection)?;
        assert_eq!(cmd("GET").arg(format!("many:{number}")).query::<i64>(connection)?, number);
    }
    Ok(())
}

#[test]
fn the_rust_client_works_in_both_protocols() -> RedisResult<()> {
    for protocol in ["", "?protocol=resp3"] {
        let server = Server::start();
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/{protocol}", server.port()))?;
        let mut connection = client.get_connection()?;
        rust_client_work(&mut connection)?;
        let mut pipeline = pipe();
        for number in 0..1_000 {
            pipeline.cmd("SET").arg(format!("pipelined:{number}")).arg(number).ignore();
            pipeline.cmd("GET").arg(format!("pipelined:{number}"));
        }
        assert_eq!(pipeline.query::<Vec<i64>>(&mut connection)?, (0..1_000).collect::<Vec<_>>());
    }
    Ok(())
}

#[test]
fn the_rust_cluster_client_works_without_forwarding() {
    without_forwarding(|server| {
        let client = ClusterClient::new(vec![format!("redis://127.0.0.1:{}/", server.port())]).expect("a client");
        let mut connection = client.get_connection().expect("a connection");
        rust_client_work(&mut connection).expect("right answers");
        let mut pipeline = cluster_pipe();
        for number in 0..1_000 {
            pipeline.cmd("SET").arg(format!("pipelined:{number}")).arg(number).ignore();
            pipeline.cmd("GET").arg(format!("pipelined:{number}"));
        }
        let values: Vec<i64> = pipeline.query(&mut connection).expect("right answers");
        assert_eq!(values, (0..1_000).collect::<Vec<_>>());
    });
}

#[test]
fn redis_cli_follows_the_slots() {
    if !available("redis-cli", Command::new("redis-cli").arg("--version")) {
        return;
    }
    without_forwarding(|server| {
        let redis_cli = |words: &[&str]| {
            let mut command = Command::new("redis-cli");
            command.args(["-c", "-p", &server.shard_port(0).to_string()]).args(words);
            succeed(&mut command).trim_end().to_owned()
        };
        for number in 0..20 {
            let (key, value) = (format!("key:{number}"), format!("value {number}"));
            assert_eq!(redis_cli(&["SET", &key, &value]), "OK");
            assert_eq!(redis_cli(&["GET", &key]), value);
        }
        assert_eq!(redis_cli(&["DBSIZE"]), "20");
    });
}

#[test]
fn redis_cli_speaks_both_protocols() {
    if !available("redis-cli", Command::new("redis-cli").arg("--version")) {
        return;
    }
    let server = Server::start();
    for protocol in ["-2", "-3"] {
        let redis_cli = |words: &[&str]| {
            let mut command = Command::new("redis-cli");
            command.args([protocol, "--no-raw", "-p", &server.port().to_string()]).args(words);
            succeed(&mut command).trim_end().to_owned()
        };
        redis_cli(&["FLUSHALL"]);
        assert_eq!(redis_cli(&["HSET", "hash", "field", "1"]), "(integer) 1");
        let pair = if protocol == "-2" { "1) \"field\"\n2) \"1\"" } else { "1# \"field\" => \"1\"" };
        assert_eq!(redis_cli(&["HGETALL", "hash"]), pair);
        assert_eq!(redis_cli(&["GET", "missing"]), "(nil)");
        assert!(redis_cli(&["INFO", "server"]).contains("redis_version"));
    }
}

#[track_caller]
fn redis_benchmark(server: &Server, more: &[&str]) {
    let port = server.port().to_string();
    let mut command = Command::new("redis-benchmark");
    command.args(["-p", &port, "-n", "20000", "-c", "20", "-P", "8", "-r", "1000", "-q"]).args(more);
    let output = succeed(command.args(["-t", "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin"]));
    assert!(output.contains("ZPOPMIN"), "the last test has run: {output}");
    assert!(!output.to_lowercase().contains("error"), "{output}");
}

#[test]
fn redis_benchmark_works() {
    if available("redis-benchmark", Command::new("redis-benchmark").arg("--version")) {
        redis_benchmark(&Server::start(), &[]);
    }
}

#[test]
fn redis_benchmark_cluster_works_without_forwarding() {
    if available("redis-benchmark", Command::new("redis-benchmark").arg("--version")) {
        without_forwarding(|server| redis_benchmark(server, &["--cluster"]));
    }
}

/// The benchmark to run, or none: it is rarely packaged, so it is not among the clients that can be required.
fn memtier_benchmark() -> Option<PathBuf> {
    let program = std::env::var_os("MEMTIER_BENCHMARK").map_or_else(|| "memtier_benchmark".into(), PathBuf::from);
    match run(Command::new(&program).arg("--version")) {
        Ok((true, _)) => Some(program),
        _ => {
            println!("skipped: memtier_benchmark is neither on the path nor named by MEMTIER_BENCHMARK");
            None
        }
    }
}

#[track_caller]
fn memtier(program: &Path, server: &Server, more: &[&str]) {
    let port = server.port().to_string();
    let mut command = Command::new(program);
    command.args(["-s", "127.0.0.1", "-p", &port, "-t", "1", "-c", "10", "-n", "2000", "--pipeline", "8"]);
    let output = succeed(command.args(["--ratio", "1:1", "--key-maximum", "5000", "--hide-histogram"]).args(more));
    assert!(output.contains("Totals"), "{output}");
    assert!(!output.to_lowercase().contains("error"), "{output}");
}

#[test]
fn memtier_benchmark_works_in_both_protocols() {
    if let Some(program) = memtier_benchmark() {
        let server = Server::start();
        memtier(&program, &server, &["--protocol", "resp2"]);
        memtier(&program, &server, &["--protocol", "resp3"]);
    }
}

#[test]
fn memtier_benchmark_cluster_works_without_forwarding() {
    if let Some(program) = memtier_benchmark() {
        without_forwarding(|server| memtier(&program, server, &["--cluster-mode"]));
    }
}
