//! `MIGRATE` to Redis, from Redis, and between servers of this kind.

use crate::support::{Connection, Server, Value, check};
use std::net::TcpListener;

/// Sends `MIGRATE 127.0.0.1 port` with the words behind it.
fn migrate(connection: &mut Connection, port: u16, rest: &str) -> Value {
    connection.line(&format!("MIGRATE 127.0.0.1 {port} {rest}"))
}

fn ok() -> Value {
    Value::Simple("OK".into())
}

/// Every promise that holds between `from` and `to`, whichever servers they are.
fn check_moves(from: &Server, to: &Server) {
    let (mut source, mut target) = (from.connect(), to.connect());
    let port = to.port();
    source.line("SET k text PX 100000");
    assert_eq!(migrate(&mut source, port, "k 0 5000"), ok());
    assert_eq!(source.line("EXISTS k"), Value::Integer(0));
    assert_eq!(target.line("GET k").text(), "text");
    let ttl_ms = target.line("PTTL k").integer();
    assert!((1..=100_000).contains(&ttl_ms), "{ttl_ms}");

    source.line("RPUSH k a b c");
    let busy = migrate(&mut source, port, "k 0 5000");
    assert_eq!(busy.error(), "ERR Target instance replied with error: BUSYKEY Target key name already exists.");
    assert_eq!(source.line("LLEN k"), Value::Integer(3));
    assert_eq!(migrate(&mut source, port, "k 0 5000 COPY REPLACE"), ok());
    assert_eq!(source.line("LLEN k"), Value::Integer(3));
    assert_eq!(target.line("LLEN k"), Value::Integer(3));

    source.line("SELECT 1");
    source.line("HSET other f v");
    assert_eq!(migrate(&mut source, port, "other 2 5000"), ok());
    target.line("SELECT 2");
    assert_eq!(target.line("HGET other f").text(), "v");
    source.line("SELECT 0");
    target.line("SELECT 0");

    let keys: Vec<String> = (0..1_000).map(|index| format!("{{t}}{index}")).collect();
    for key in &keys {
        source.call(&["SET", key, key]);
    }
    // Some of the keys are not there, and that is no fault.
    let all = format!("\"\" 0 5000 KEYS {{t}}missing {}", keys.join(" "));
    assert_eq!(migrate(&mut source, port, &all), ok());
    assert_eq!(source.line("EXISTS {t}0 {t}999"), Value::Integer(0));
    assert_eq!(target.line("EXISTS {t}0 {t}500 {t}999"), Value::Integer(3));

    // The keys before and after one that is refused are moved.
    check(&mut source, "MSET {t}x 1 {t}0 2 {t}y 3 => OK");
    let refused = migrate(&mut source, port, "\"\" 0 5000 KEYS {t}x {t}0 {t}y");
    assert_eq!(refused.error(), "ERR Target instance replied with error: BUSYKEY Target key name already exists.");
    assert_eq!(source.line("EXISTS {t}x {t}y"), Value::Integer(0));
    assert_eq!(source.line("EXISTS {t}0"), Value::Integer(1));
    assert_eq!(target.line("MGET {t}x {t}y").elements().len(), 2);
    assert_eq!(source.line("DEL {t}0"), Value::Integer(1));
    assert_eq!(source.line("DEL k"), Value::Integer(1));
    target.line("FLUSHALL");
}

#[test]
fn keys_move_between_servers_of_this_kind() {
    let (one, other) = (Server::start(), Server::start());
    check_moves(&one, &other);
}

#[test]
fn keys_move_to_redis_and_from_it() {
    let server = Server::start();
    let Some(redis) = Server::start_redis(&[]) else {
        println!("skipped: no redis-server on PATH to move keys to");
        return;
    };
    check_moves(&server, &redis);
    check_moves(&redis, &server);
}

#[test]
fn passwords_are_given_where_they_are_asked_for() {
    let Some(redis) = Server::start_redis(&[]) else {
        println!("skipped: no redis-server on PATH to move keys to");
        return;
    };
    let server = Server::start();
    let mut connection = server.connect();
    let mut operator = redis.connect();
    operator.line("ACL SETUSER mover on >key ~* +@all");
    operator.line("CONFIG SET requirepass secret");
    connection.line("SET k v");
    let without = migrate(&mut connection, redis.port(), "k 0 5000");
    assert_eq!(without.error(), "ERR Target instance replied with error: NOAUTH Authentication required.");
    let wrong = migrate(&mut connection, redis.port(), "k 0 5000 AUTH wrong");
    assert!(wrong.error().starts_with("ERR Target instance replied with error: WRONGPASS"), "{wrong:?}");
    assert_eq!(migrate(&mut connection, redis.port(), "k 0 5000 COPY AUTH secret"), ok());
    assert_eq!(migrate(&mut connection, redis.port(), "k 0 5000 REPLACE AUTH2 mover key"), ok());
    assert_eq!(connection.line("EXISTS k"), Value::Integer(0));
}

#[test]
fn what_cannot_be_done_is_said() {
    let server = Server::start();
    let mut connection = server.connect();
    check(
        &mut connection,
        r#"
        SET k v => OK
        MSET {t}a 1 {t}b 2 => OK
        MIGRATE 127.0.0.1 1 missing 0 1000 => +NOKEY
        MIGRATE 127.0.0.1 1 "" 0 1000 KEYS {t}y {t}z => +NOKEY
        MIGRATE 127.0.0.1 1 "" 0 1000 KEYS => +NOKEY
        MIGRATE 127.0.0.1 1 k 0 1000 => -IOERR error or timeout writing to target instance
        MIGRATE 127.0.0.1 port k 0 1000 => -IOERR error or timeout writing to target instance
        MIGRATE no.such.host.invalid 1 k 0 1000 => -IOERR error or timeout connecting to the client
        MIGRATE 127.0.0.1 1 k 0 x => -ERR value is not an integer or out of range
        MIGRATE 127.0.0.1 1 k x 1000 => -ERR value is not an integer or out of range
        MIGRATE 127.0.0.1 1 k 0 1000 WHAT => -ERR syntax error
        MIGRATE 127.0.0.1 1 k 0 1000 AUTH => -ERR syntax error
        MIGRATE 127.0.0.1 1 k 0 1000 AUTH2 user => -ERR syntax error
        MIGRATE 127.0.0.1 1 k 0 1000 KEYS {t}a => -ERR When using MIGRATE KEYS option, the key argument must be set to the empty string
        MIGRATE 127.0.0.1 1 "" 0 1000 KEYS a b => -CROSSSLOT Keys in request don't hash to the same slot
        GET k => v
        MGET {t}a {t}b => [1 2]
    "#,
    );
    // A shard's port knows no keys of other shards.
    let moved = (0..2).map(|shard| server.connect_to_shard(shard).line("MIGRATE 127.0.0.1 1 k 0 1000"));
    let errors: Vec<String> = moved.map(|reply| reply.error().to_owned()).collect();
    assert!(errors.iter().any(|error| error.starts_with("MOVED ")), "{errors:?}");
    assert!(errors.iter().any(|error| error.starts_with("IOERR ")), "{errors:?}");
}

#[test]
fn no_core_waits_for_a_target_that_is_silent_and_a_changed_key_is_kept() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut other = server.connect();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    other.line("SET k v");
    connection.send(format!("MIGRATE 127.0.0.1 {port} k 0 20000\r\nPING\r\n").as_bytes());
    let (target, _) = silent.accept().expect("a connection");
    // The key can be used meanwhile.
    assert_eq!(other.line("APPEND k w"), Value::Integer(2));
    use std::io::{BufRead, BufReader, Write};
    let mut lines = BufReader::new(target.try_clone().expect("a second handle")).lines();
    let mut target = target;
    for wanted in ["SELECT", "RESTORE"] {
        let found = lines.by_ref().map(|line| line.expect("a line")).any(|line| line == wanted);
        assert!(found, "no {wanted} came");
        target.write_all(b"+OK\r\n").expect("answer");
    }
    assert_eq!(
        connection.read_value().error(),
        "ERR 1 of 1 keys changed here while they were sent, and were not deleted; the target has their earlier values"
    );
    assert_eq!(connection.read_value(), Value::Simple("PONG".into()));
    assert_eq!(other.line("GET k").text(), "vw");

    // A target that ends the connection, and one that says nothing in time.
    connection.send(format!("MIGRATE 127.0.0.1 {port} k 0 20000\r\n").as_bytes());
    drop(silent.accept().expect("a connection"));
    assert_eq!(connection.read_value().error(), "IOERR error or timeout reading to target instance");
    connection.send(format!("MIGRATE 127.0.0.1 {port} k 0 50\r\n").as_bytes());
    let _target = silent.accept().expect("a connection");
    assert_eq!(connection.read_value().error(), "IOERR error or timeout reading to target instance");
    assert_eq!(other.line("GET k").text(), "vw");
}

#[test]
fn calls_under_way_are_bounded() {
    let server = Server::start();
    server.connect().line("SET k v");
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let mut waiting = Vec::new();
    for _ in 0..16 {
        let mut connection = server.connect();
        connection.send(format!("MIGRATE 127.0.0.1 {port} k 0 20000\r\n").as_bytes());
        waiting.push((connection, silent.accept().expect("a connection")));
    }
    let refused = migrate(&mut server.connect(), port, "k 0 20000");
    assert_eq!(refused.error(), "ERR 16 calls of MIGRATE are in progress, try again");
    let (mut connection, target) = waiting.pop().expect("a call");
    drop(target);
    assert_eq!(connection.read_value().error(), "IOERR error or timeout reading to target instance");
    let mut connection = server.connect();
    connection.send(format!("MIGRATE 127.0.0.1 {port} k 0 20000\r\n").as_bytes());
    silent.accept().expect("a connection");
}
