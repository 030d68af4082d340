//! Scripts that take long: they hold up their own keys and nothing else, and can be ended.

use std::time::{Duration, Instant};

use crate::support::{Connection, Options, Server, Value, encode_command, wait_until};

/// Has an endless script run, and waits until it does. It has written nothing.
fn run_endless(server: &Server, key: &str) -> Connection {
    let mut told = server.connect();
    told.call(&["SUBSCRIBE", "started"]);
    let running = run(server, "redis.call('publish', 'started', 'x'); while true do end", key);
    assert_eq!(told.read_value().elements()[1].text(), "started");
    running
}

fn run(server: &Server, script: &str, key: &str) -> Connection {
    let mut connection = server.connect();
    connection.send(&encode_command(&["EVAL", script, "1", key]));
    connection
}

fn busy(connection: &mut Connection, key: &str) -> bool {
    matches!(connection.call(&["GET", key]), Value::Error(text) if text.starts_with("BUSY"))
}

#[test]
fn a_slow_script_holds_up_its_own_keys_alone() {
    let server = Server::start();
    let mut connections: Vec<Connection> = (0..8).map(|_| server.connect()).collect();
    connections[0].call(&["SET", "{a}k", "x"]);
    connections[0].call(&["SET", "{b}k", "y"]);
    connections[0].call(&["CONFIG", "SET", "busy-reply-threshold", "100000"]);
    let mut running = run_endless(&server, "{a}script");
    // Commands for the script's shard wait, from every connection.
    let mut waiting: Vec<Connection> = (0..4).map(|_| server.connect()).collect();
    for connection in &mut waiting {
        connection.send(&encode_command(&["GET", "{a}k"]));
    }
    // Eight connections are on both cores.
    for connection in &mut connections {
        for _ in 0..50 {
            assert_eq!(connection.call(&["GET", "{b}k"]).text(), "y");
            assert_eq!(connection.call(&["PING"]), Value::Simple("PONG".into()));
            assert_eq!(connection.call(&["ECHO", "x"]).text(), "x");
        }
        let reply = connection.pipeline(["MULTI", "INCR {b}n", "EXEC"]).pop().expect("three replies");
        assert_eq!(reply.elements().len(), 1);
    }
    for connection in &mut waiting {
        connection.expect_silence(Duration::from_millis(20));
    }
    wait_until(
        "the script is killed",
        || matches!(connections[1].call(&["SCRIPT", "KILL"]), Value::Simple(text) if text == "OK"),
    );
    assert!(running.read_value().error().contains("Script killed by user with SCRIPT KILL"));
    for connection in &mut waiting {
        assert_eq!(connection.read_value().text(), "x");
    }
}

#[test]
fn past_the_threshold_commands_for_its_keys_are_answered_busy() {
    let server = Server::start();
    let mut connections: Vec<Connection> = (0..6).map(|_| server.connect()).collect();
    connections[0].call(&["CONFIG", "SET", "busy-reply-threshold", "50"]);
    assert_eq!(connections[0].call(&["CONFIG", "GET", "lua-time-limit"]).elements()[1].text(), "50");
    let mut early = server.connect();
    let mut running = run_endless(&server, "{a}script");
    early.send(&encode_command(&["GET", "{a}k"]));
    for connection in &mut connections {
        wait_until("commands for the shard are refused", || busy(connection, "{a}k"));
        assert!(connection.call(&["GET", "{b}k"]).is_null());
        assert!(connection.call(&["DBSIZE"]).error().starts_with("BUSY"));
        let replies = connection.pipeline(["MULTI", "GET {a}k", "EXEC"]);
        assert!(replies[1].error().starts_with("BUSY"), "{replies:?}");
        assert!(replies[2].error().starts_with("EXECABORT"), "{replies:?}");
        let replies = connection.pipeline(["MULTI", "GET {b}k", "EXEC"]);
        assert_eq!(replies[2].elements().len(), 1);
        assert!(connection.call(&["FUNCTION", "KILL"]).error().starts_with("BUSY"));
    }
    let early = early.read_value();
    assert!(early.is_null() || early.error().starts_with("BUSY"), "{early:?}");
    assert_eq!(connections[3].call(&["SCRIPT", "KILL"]), Value::Simple("OK".into()));
    assert!(running.read_value().error().contains("killed"));
    for connection in &mut connections {
        assert!(connection.call(&["GET", "{a}k"]).is_null());
    }
}

#[test]
fn what_catches_errors_cannot_outlive_a_kill() {
    let server = Server::start();
    let mut connection = server.connect();
    for script in [
        "while true do pcall(function() while true do end end) end",
        "local function again() return xpcall(function() while true do end end, again) end; while true do again() end",
        "while true do redis.pcall('get', KEYS[1]) end",
        "local run = coroutine.wrap(function() while true do pcall(function() while true do end end) end end); run()",
        "local t = {}; for i = 1, 1000 do t[i] = i end; while true do pcall(table.sort, t, function(a, b) return a < b end) end",
    ] {
        let mut running = run(&server, script, "{a}k");
        wait_until(
            "the script runs",
            || matches!(connection.call(&["SCRIPT", "KILL"]), Value::Simple(text) if text == "OK"),
        );
        let reply = running.read_value();
        assert!(matches!(reply, Value::Error(_)), "{script}: {reply:?}");
    }
}

#[test]
fn a_script_that_has_written_cannot_be_killed() {
    let mut server = Server::start();
    let mut connection = server.connect();
    let running = run(&server, "redis.call('set', KEYS[1], 'x'); while true do end", "{a}k");
    wait_until("the script has written", || {
        let reply = connection.call(&["SCRIPT", "KILL"]);
        reply.error().starts_with("UNKILLABLE")
    });
    connection.send(&encode_command(&["SHUTDOWN", "NOSAVE"]));
    assert!(server.wait_for_exit().success());
    drop(running);
}

#[test]
fn a_server_that_is_told_to_end_does_not_wait_for_an_endless_script() {
    let mut server = Server::start();
    let _running = run_endless(&server, "{a}k");
    let mut connection = server.connect();
    connection.call(&["CONFIG", "SET", "busy-reply-threshold", "10"]);
    wait_until("the script runs", || busy(&mut connection, "{a}k"));
    assert!(connection.call(&["SHUTDOWN", "SAVE"]).error().starts_with("BUSY"));
    connection.send(&encode_command(&["SHUTDOWN", "NOSAVE"]));
    assert!(server.wait_for_exit().success());
}

#[test]
fn clients_come_and_go_while_a_script_runs() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.call(&["CONFIG", "SET", "busy-reply-threshold", "100000"]);
    let running = run_endless(&server, "{a}k");
    for round in 0..30 {
        let mut other = server.connect();
        assert_eq!(other.call(&["SET", "{b}k", &round.to_string()]), Value::Simple("OK".into()));
        // Some leave while their command waits, and some in the middle of one.
        other.send(&encode_command(&["INCR", "{a}n"]));
        other.send(b"*2\r\n$3\r\nGET\r\n$3\r\nha");
    }
    // The client of the script leaves too: the script goes on, as in Redis.
    drop(running);
    assert_eq!(connection.call(&["GET", "{b}k"]).text(), "29");
    wait_until(
        "the script is killed",
        || matches!(connection.call(&["SCRIPT", "KILL"]), Value::Simple(text) if text == "OK"),
    );
    assert_eq!(connection.call(&["PING"]), Value::Simple("PONG".into()));
    assert!(connection.call(&["GET", "{a}k"]).is_null());
}

#[test]
fn the_time_of_a_script_stands_still() {
    let server = Server::start();
    let mut connection = server.connect();
    let script = "\
        redis.call('set', KEYS[1], 'x', 'px', 20)
        local start = os.clock()
        while os.clock() - start < 0.06 do end
        return redis.call('exists', KEYS[1])";
    assert_eq!(connection.call(&["EVAL", script, "1", "{a}k"]), Value::Integer(1));
    assert_eq!(connection.call(&["EXISTS", "{a}k"]), Value::Integer(0));
}

#[test]
fn others_are_served_quickly_while_a_script_runs() {
    let server = Server::with(&Options { shards: 2, ..Options::default() });
    let mut connections: Vec<Connection> = (0..8).map(|_| server.connect()).collect();
    connections[0].call(&["CONFIG", "SET", "busy-reply-threshold", "100000"]);
    let _running = run_endless(&server, "{a}k");
    let start = Instant::now();
    let mut served = 0;
    while start.elapsed() < Duration::from_millis(500) {
        for connection in &mut connections {
            connection.call(&["GET", "{b}k"]);
            served += 1;
        }
    }
    // Were each to wait for the script, none would come back at all.
    assert!(served >= 8);
    wait_until(
        "the script is killed",
        || matches!(connections[0].call(&["SCRIPT", "KILL"]), Value::Simple(text) if text == "OK"),
    );
}

#[test]
fn what_a_script_of_seconds_writes_is_logged_whole() {
    for durability in ["everysec", "always"] {
        let arguments = ["--durability", durability];
        let mut server = Server::with(&Options { shards: 1, arguments: &arguments, ..Options::default() });
        let mut connection = server.connect();
        connection.call(&["SET", "before", "1"]);
        // Long enough that all that was logged before it is synced, and a second has passed since.
        let source = "
            local now = function() local t = redis.call('time'); return t[1] * 1000 + t[2] / 1000 end
            redis.call('set', KEYS[1], 'first')
            local start = now()
            while now() - start < 2500 do end
            return redis.call('set', KEYS[2], 'second')";
        let reply = connection.call(&["EVAL", source, "2", "{s}a", "{s}b"]);
        assert_eq!(reply, Value::Simple("OK".into()));
        connection.call(&["SET", "after", "1"]);
        server.kill_and_restart();
        let mut connection = server.connect();
        for (key, value) in [("before", "1"), ("{s}a", "first"), ("{s}b", "second"), ("after", "1")] {
            assert_eq!(connection.call(&["GET", key]).text(), value, "{durability}: {key}");
        }
    }
}
