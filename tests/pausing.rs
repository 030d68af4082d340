//! `CLIENT PAUSE`: what waits, for how long, and that what is paused stays as it is.

use crate::support::{Connection, Server, Value, check, encode_command, replies, wait_until};
use std::time::{Duration, Instant};

/// A key of each of the two shards.
const KEYS: [&str; 2] = ["a", "b"];

#[track_caller]
fn wait_for_blocked(server: &Server, count: i64) {
    wait_until("clients should wait", || server.info_number("blocked_clients") == count);
}

#[track_caller]
fn send_line(connection: &mut Connection, line: &str) {
    connection.send(&encode_command(&line.split(' ').collect::<Vec<_>>()));
}

#[test]
fn writes_wait_and_reads_do_not_until_the_pause_is_ended() {
    let server = Server::start();
    let mut operator = server.connect();
    check(&mut operator, "CLIENT PAUSE 100000 WRITE => OK");
    let mut waiting = Vec::new();
    for (number, key) in KEYS.iter().enumerate() {
        let mut connection = server.connect();
        send_line(&mut connection, &format!("SET {key} 1"));
        send_line(&mut connection, &format!("GET {key}"));
        waiting.push(connection);
        wait_for_blocked(&server, number as i64 + 1);
        check(&mut operator, &format!("GET {key} => nil"));
    }
    let lines = operator.line("CLIENT LIST").text().to_owned();
    assert_eq!(lines.matches(" flags=b ").count(), 2, "{lines}");
    assert_eq!(lines.matches(" cmd=set ").count(), 2, "{lines}");
    check(&mut operator, "PING => +PONG\nCLIENT UNPAUSE => OK");
    for connection in &mut waiting {
        assert_eq!(connection.read_value(), Value::Simple("OK".into()));
        assert_eq!(connection.read_value(), Value::Bulk(b"1".to_vec()));
    }
    assert_eq!(server.info_number("blocked_clients"), 0);
}

#[test]
fn a_transaction_that_writes_waits_with_the_writes() {
    let server = Server::start();
    let mut operator = server.connect();
    let mut writer = server.connect();
    check(&mut writer, "MULTI => OK\nSET a 1 => +QUEUED");
    let mut reader = server.connect();
    check(&mut reader, "MULTI => OK\nGET a => +QUEUED");
    check(&mut operator, "CLIENT PAUSE 100000 WRITE => OK");
    send_line(&mut writer, "EXEC");
    wait_for_blocked(&server, 1);
    check(&mut reader, "EXEC => [nil]");
    check(&mut operator, "CLIENT UNPAUSE => OK");
    assert_eq!(writer.read_value(), Value::Array(vec![Value::Simple("OK".into())]));
}

#[test]
fn a_pause_of_all_commands_ends_by_itself() {
    let server = Server::start();
    let start = Instant::now();
    let mut others = [server.connect(), server.connect(), server.connect_to_shard(0), server.connect_to_shard(1)];
    check(&mut others[0], "CLIENT PAUSE 300 => OK");
    for connection in &mut others {
        connection.send(b"PING\r\n");
    }
    for connection in &mut others {
        assert_eq!(connection.read_value(), Value::Simple("PONG".into()));
        // The server's clock counts whole milliseconds.
        assert!(start.elapsed() >= Duration::from_millis(299), "{:?}", start.elapsed());
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn a_later_pause_neither_shortens_nor_weakens_the_one_that_holds() {
    let server = Server::start();
    let mut operator = server.connect();
    let mut other = server.connect();
    check(&mut operator, "CLIENT PAUSE 100000 WRITE => OK\nCLIENT PAUSE 1 WRITE => OK");
    send_line(&mut other, "SET a 1");
    wait_for_blocked(&server, 1);
    check(&mut operator, "CLIENT UNPAUSE => OK");
    assert_eq!(other.read_value(), Value::Simple("OK".into()));

    let start = Instant::now();
    operator.send(b"CLIENT PAUSE 200 ALL\r\nCLIENT PAUSE 1 WRITE\r\nGET a\r\n");
    for expected in ["OK", "OK", "1"] {
        assert_eq!(operator.read_value().text(), expected);
    }
    assert!(start.elapsed() >= Duration::from_millis(199), "{:?}", start.elapsed());
}

#[test]
fn what_would_be_refused_is_refused_at_once() {
    let server = Server::start();
    let mut connection = server.connect();
    check(
        &mut connection,
        r"
        CLIENT PAUSE 100000 WRITE => OK
        SET a => -ERR wrong number of arguments for 'set' command
        MSET a 1 b 2 => -CROSSSLOT Keys in request don't hash to the same slot
        NOSUCH => -ERR unknown command 'NOSUCH', with args beginning with: *
        ",
    );
    let answers = (0..2).map(|shard| {
        let mut port = server.connect_to_shard(shard);
        port.send(b"SET a 1\r\nCLIENT UNPAUSE\r\n");
        port
    });
    let moved = answers.filter_map(|mut port| match port.read_value() {
        Value::Error(text) => text.starts_with("MOVED").then_some(()),
        _ => None,
    });
    assert_eq!(moved.count(), 1, "one of the shards does not own the key");
}

#[test]
fn what_has_expired_is_not_found_but_stays_until_the_end() {
    let server = Server::start();
    let mut connection = server.connect();
    for key in KEYS {
        connection.line(&format!("SET {key} 1 PX 50"));
    }
    for line in ["SADD {t}set gone", "SADD {t}other kept", "ZADD {t}zset 1 gone", "ZADD {t}ranks 1 kept"] {
        connection.line(line);
    }
    for key in ["{t}set", "{t}zset"] {
        connection.line(&format!("PEXPIRE {key} 50"));
    }
    check(&mut connection, "CLIENT PAUSE 100000 WRITE => OK");
    for key in ["{t}set", "{t}zset"] {
        wait_until("the key should expire", || connection.line(&format!("EXISTS {key}")) == Value::Integer(0));
    }
    for key in KEYS {
        wait_until("the key should expire", || connection.line(&format!("GET {key}")) == Value::Null);
        check(&mut connection, &format!("EXISTS {key} => :0\nTTL {key} => :-2\nTYPE {key} => +none"));
    }
    check(
        &mut connection,
        r"
        SUNION {t}set {t}other => [kept]
        SINTERCARD 2 {t}set {t}other => :0
        ZUNION 2 {t}zset {t}ranks => [kept]
        ",
    );
    // Long enough for the sweeps that would have removed them.
    let start = Instant::now();
    wait_until("time should pass", || start.elapsed() > Duration::from_millis(300));
    check(&mut connection, "DBSIZE => :6\nKEYS * => ?[{t}other {t}ranks]");
    for _ in 0..20 {
        let key = connection.line("RANDOMKEY");
        assert!(["{t}other", "{t}ranks"].contains(&key.text()), "{key:?} has expired");
    }
    assert_eq!(server.info_number("expired_keys"), 0);
    check(&mut connection, "CLIENT UNPAUSE => OK");
    wait_until("the keys should go", || connection.line("DBSIZE") == Value::Integer(2));
    assert_eq!(server.info_number("expired_keys"), 4);
}

#[test]
fn a_random_key_is_found_though_every_key_has_expired() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(b"SET key 1 PX 1\r\nCLIENT PAUSE 100000 WRITE\r\n");
    connection.read_value();
    connection.read_value();
    wait_until("the key should expire", || connection.line("GET key") == Value::Null);
    // It may have gone before the pause came.
    if connection.line("DBSIZE") == Value::Integer(1) {
        check(&mut connection, "RANDOMKEY => key");
    }
    check(&mut connection, "CLIENT UNPAUSE => OK");
    wait_until("the key should go", || connection.line("DBSIZE") == Value::Integer(0));
    check(&mut connection, "RANDOMKEY => nil");
}

#[test]
fn nothing_is_evicted_during_a_pause() {
    let server = Server::start();
    let mut connection = server.connect();
    for number in 0..100 {
        connection.line(&format!("SET key:{number} {}", "x".repeat(1000)));
    }
    connection.line("SET clock 1 PX 300");
    check(
        &mut connection,
        r"
        CLIENT PAUSE 100000 WRITE => OK
        CONFIG SET maxmemory 1 maxmemory-policy allkeys-lru => OK
        ",
    );
    wait_until("time should pass", || connection.line("GET clock") == Value::Null);
    assert_eq!(server.info_number("evicted_keys"), 0);
    check(&mut connection, "CLIENT UNPAUSE => OK");
    wait_until("keys should go", || server.info_number("evicted_keys") > 0);
}

#[test]
fn words_that_do_not_fit_are_refused() {
    replies(
        r"
        CLIENT PAUSE => -ERR wrong number of arguments for 'client|pause' command
        CLIENT PAUSE abc => -ERR timeout is not an integer or out of range
        CLIENT PAUSE -1 => -ERR timeout is negative
        7.2|CLIENT PAUSE 9223372036854775807 => -ERR timeout is out of range
        CLIENT PAUSE 1 x => -ERR CLIENT PAUSE mode must be WRITE or ALL
        CLIENT PAUSE 1 write x => -ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.
        CLIENT PAUSE 0 => OK
        PING => +PONG
        CLIENT UNPAUSE x => -ERR wrong number of arguments for 'client|unpause' command
        CLIENT UNPAUSE => OK
        ",
    );
}
