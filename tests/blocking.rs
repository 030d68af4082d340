//! Commands that wait for a key, on a server with two shards.

use std::time::{Duration, Instant};

use crate::support::{Connection, Options, Server, Value, check, encode_command, replies, wait_until};

const TAGS: [&str; 2] = ["{a}", "{b}"];

/// Sends a command that is to wait, and returns once it does.
fn waiting(server: &Server, line: &str) -> Connection {
    let before = server.info_number("blocked_clients");
    let mut connection = server.connect();
    connection.send(&encode_command(&line.split(' ').collect::<Vec<_>>()));
    wait_until("the client to wait", || server.info_number("blocked_clients") == before + 1);
    connection
}

fn shown(value: &Value) -> String {
    format!("{value:?}")
}

#[test]
fn what_is_there_is_taken_at_once() {
    replies(
        r"
        RPUSH {t}l a b c d e f => :6
        BLPOP {t}none {t}l 0 => [{t}l a]
        BRPOP {t}l 0 => [{t}l f]
        BLMOVE {t}l {t}m LEFT RIGHT 0 => b
        BRPOPLPUSH {t}l {t}m 0 => e
        BLMPOP 0 2 {t}none {t}l LEFT COUNT 5 => [{t}l [c d]]
        LRANGE {t}m 0 -1 => [e b]
        ZADD {t}z 1 a 2 b 3 c => :3
        BZPOPMIN {t}none {t}z 0 => [{t}z a 1]
        BZPOPMAX {t}z 0 => [{t}z c 3]
        BZMPOP 0 1 {t}z MIN => [{t}z [[b 2]]]
        ",
    );
}

#[test]
fn arguments_are_checked_before_anything_waits() {
    replies(
        r"
        BLPOP k x => -ERR timeout is not a float or out of range
        BLPOP k -1 => -ERR timeout is negative
        BLPOP k 1e300 => -ERR timeout is out of range
        BLPOP a b 1 => -CROSSSLOT Keys in request don't hash to the same slot
        SET s v => OK
        BLPOP s 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        BZPOPMIN s 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        BLMPOP 1 0 k LEFT => -ERR numkeys should be greater than 0
        BLMPOP 1 1 k UP => -ERR syntax error
        BZMPOP 1 1 k MIN COUNT 0 => -ERR count should be greater than 0
        ",
    );
}

#[test]
fn a_call_that_waited_counts_once_it_ends() {
    let server = Server::start();
    let mut connection = server.connect();
    for tag in TAGS {
        check(
            &mut connection,
            "CONFIG RESETSTAT => OK\nCONFIG SET slowlog-log-slower-than 0 => OK\nSLOWLOG RESET => OK",
        );
        let logged = |connection: &mut Connection| shown(&connection.line("SLOWLOG GET -1")).matches("BLPOP").count();
        let counted = |connection: &mut Connection| {
            connection.line("INFO commandstats").text().contains("cmdstat_blpop:calls=1,")
        };
        let mut waiter = waiting(&server, &format!("BLPOP {tag}l 0"));
        assert!(!connection.line("INFO commandstats").text().contains("cmdstat_blpop"));
        assert_eq!(logged(&mut connection), 0);
        let before = server.info_number("rdb_changes_since_last_save");
        connection.line(&format!("RPUSH {tag}l v"));
        waiter.read_value();
        assert_eq!(server.info_number("rdb_changes_since_last_save"), before + 2, "one is pushed, one is taken");
        assert!(counted(&mut connection));
        wait_until("the call to be logged", || logged(&mut connection) == 1);
        // A time-out ends it, too.
        check(&mut connection, "CONFIG RESETSTAT => OK\nSLOWLOG RESET => OK");
        assert!(waiter.line(&format!("BLPOP {tag}l 0.01")).is_null());
        assert!(counted(&mut connection));
        wait_until("the call to be logged", || logged(&mut connection) == 1);
    }
}

#[test]
fn an_element_moved_to_another_list_counts_as_one_change() {
    let server = Server::start();
    for tag in TAGS {
        let mut waiter = waiting(&server, &format!("BLMOVE {tag}l {tag}m LEFT LEFT 0"));
        let before = server.info_number("rdb_changes_since_last_save");
        server.connect().line(&format!("RPUSH {tag}l v"));
        assert_eq!(waiter.read_value().text(), "v");
        assert_eq!(server.info_number("rdb_changes_since_last_save"), before + 2, "one is pushed, one is moved");
    }
}

#[test]
fn what_waited_is_logged_behind_what_ended_the_waiting() {
    // On one shard, so that the order is certain.
    let server = Server::with(&Options { shards: 1, ..Options::default() });
    let mut connection = server.connect();
    let mut waiter = waiting(&server, "BLPOP l 0");
    connection.line("CONFIG SET slowlog-log-slower-than 0");
    connection.line("SLOWLOG RESET");
    for line in ["MULTI", "RPUSH l v", "EXEC"] {
        connection.line(line);
    }
    waiter.read_value();
    let entries = connection.line("SLOWLOG GET 2");
    let words = |entry: &Value| entry.elements()[3].elements()[0].text().to_owned();
    assert_eq!(entries.elements().iter().map(words).collect::<Vec<_>>(), ["BLPOP", "RPUSH"]);
}

#[test]
fn the_list_of_clients_counts_what_has_ended() {
    let server = Server::start();
    let mut waiter = waiting(&server, "BLPOP l 0");
    let mut connection = server.connect();
    let mut totals = || {
        let lines = connection.line("CLIENT LIST").text().to_owned();
        let line = lines.lines().find(|line| line.contains(" cmd=blpop ")).expect("the waiter").to_owned();
        line.split_once(" tot-net-in=").expect("totals").1.to_owned()
    };
    assert_eq!(totals(), "29 tot-net-out=0 tot-cmds=0");
    server.connect().line("RPUSH l v");
    waiter.read_value();
    wait_until("the totals", || totals() == "29 tot-net-out=18 tot-cmds=1");
}

#[test]
fn a_time_out_is_kept_to_the_millisecond() {
    let server = Server::start();
    let mut connection = server.connect();
    for tag in TAGS {
        for (command, nil) in [
            (format!("BLPOP {tag}k 0.05"), "nil-array"),
            (format!("BLMOVE {tag}k {tag}l LEFT LEFT 0.05"), "nil-array"),
            (format!("BZPOPMAX {tag}k 0.05"), "nil-array"),
            (format!("BZMPOP 0.05 1 {tag}k MIN"), "nil-array"),
        ] {
            let start = Instant::now();
            let reply = connection.line(&command);
            let elapsed = start.elapsed();
            assert!(reply.is_null(), "{command}: {reply:?} instead of {nil}");
            assert!(elapsed >= Duration::from_millis(49), "{command} came after {elapsed:?}");
        }
    }
}

#[test]
fn who_came_first_is_served_first() {
    let server = Server::start();
    for tag in TAGS {
        let mut clients: Vec<Connection> = (0..5).map(|_| waiting(&server, &format!("BLPOP {tag}q 0"))).collect();
        let mut connection = server.connect();
        connection.line(&format!("RPUSH {tag}q 0 1 2"));
        connection.line(&format!("RPUSH {tag}q 3 4 5"));
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.read_value().elements()[1].text(), number.to_string());
        }
        assert_eq!(shown(&connection.line(&format!("LRANGE {tag}q 0 -1"))), "[\"5\"]");
    }
}

#[test]
fn whatever_fills_a_key_wakes_those_who_wait() {
    let server = Server::start();
    let mut connection = server.connect();
    for tag in TAGS {
        connection.line(&format!("RPUSH {tag}source v"));
        connection.line(&format!("ZADD {tag}due 1 v"));
        for fill in [
            format!("LPUSH {tag}k v"),
            format!("RPOPLPUSH {tag}source {tag}k"),
            format!("ZMOVEDUE {tag}due {tag}k 5"),
            format!("LMOVE {tag}source2 {tag}k LEFT LEFT"),
            format!("RENAME {tag}source2 {tag}k"),
            format!("COPY {tag}source2 {tag}k"),
        ] {
            connection.line(&format!("RPUSH {tag}source2 v"));
            let mut client = waiting(&server, &format!("BLPOP {tag}k 0"));
            connection.line(&fill);
            assert_eq!(client.read_value().elements()[1].text(), "v", "{fill}");
            connection.line(&format!("DEL {tag}source2"));
        }
        let mut client = waiting(&server, &format!("BZPOPMIN {tag}z 0"));
        connection.line(&format!("ZADD {tag}z 5 m"));
        assert_eq!(client.read_value().elements()[1].text(), "m");
        // Another kind of value is not what it waits for.
        let mut client = waiting(&server, &format!("BLPOP {tag}k 0"));
        connection.line(&format!("SET {tag}k string"));
        connection.line(&format!("DEL {tag}k"));
        connection.line(&format!("RPUSH {tag}k at-last"));
        assert_eq!(client.read_value().elements()[1].text(), "at-last");
    }
}

#[test]
fn another_database_and_swapped_ones() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut client = waiting(&server, "BLPOP {a}k 0");
    connection.line("SELECT 7");
    connection.line("RPUSH {a}k seven");
    assert_eq!(server.info_number("blocked_clients"), 1);
    connection.line("SWAPDB 0 7");
    assert_eq!(client.read_value().elements()[1].text(), "seven");
}

#[test]
fn moves_that_wait_for_each_other_form_chains() {
    let server = Server::start();
    for tag in TAGS {
        let mut third = waiting(&server, &format!("BLPOP {tag}c 0"));
        let mut second = waiting(&server, &format!("BLMOVE {tag}b {tag}c LEFT RIGHT 0"));
        let mut first = waiting(&server, &format!("BLMOVE {tag}a {tag}b LEFT RIGHT 0"));
        server.connect().line(&format!("RPUSH {tag}a v"));
        assert_eq!(first.read_value().text(), "v");
        assert_eq!(second.read_value().text(), "v");
        assert_eq!(third.read_value().elements()[1].text(), "v");
        assert_eq!(server.connect().line("DBSIZE"), Value::Integer(0));
    }
}

#[test]
fn a_transaction_does_not_wait_and_is_seen_as_a_whole() {
    let server = Server::start();
    let mut connection = server.connect();
    for tag in TAGS {
        let pop = format!("BLPOP {tag}k 0");
        let move_one = format!("BLMOVE {tag}k {tag}l LEFT LEFT 0");
        let replies = connection.pipeline(["MULTI", &pop, &move_one, "EXEC"]);
        assert_eq!(shown(&replies[3]), "[nil-array nil]");
        let mut client = waiting(&server, &pop);
        let push = format!("RPUSH {tag}k 1 2");
        let take = format!("LPOP {tag}k");
        connection.pipeline(["MULTI", &push, &take, "EXEC"]);
        assert_eq!(client.read_value().elements()[1].text(), "2", "it sees what the transaction left");
        let mut client = waiting(&server, &pop);
        connection.pipeline(["MULTI", &push, &format!("DEL {tag}k"), "EXEC"]);
        assert_eq!(server.info_number("blocked_clients"), 1);
        connection.line(&format!("RPUSH {tag}k 3"));
        assert_eq!(client.read_value().elements()[1].text(), "3");
    }
}

#[test]
fn waiting_can_be_ended_from_outside() {
    let server = Server::start();
    let mut connection = server.connect();
    for tag in TAGS {
        let mut clients: Vec<(i64, Connection)> = (0..3)
            .map(|_| {
                let mut client = server.connect();
                let id = client.line("CLIENT ID").integer();
                client.send(&encode_command(&["BLPOP", &format!("{tag}k"), "0"]));
                (id, client)
            })
            .collect();
        wait_until("all to wait", || server.info_number("blocked_clients") == 3);
        let (id, client) = &mut clients[0];
        assert_eq!(connection.line(&format!("CLIENT UNBLOCK {id} ERROR")), Value::Integer(1));
        assert_eq!(client.read_value().error(), "UNBLOCKED client unblocked via CLIENT UNBLOCK");
        assert_eq!(connection.line(&format!("CLIENT UNBLOCK {id}")), Value::Integer(0));
        let (id, client) = &mut clients[1];
        assert_eq!(connection.line(&format!("CLIENT UNBLOCK {id}")), Value::Integer(1));
        assert!(client.read_value().is_null());
        let (id, client) = &mut clients[2];
        assert_eq!(connection.line(&format!("CLIENT KILL ID {id}")), Value::Integer(1));
        client.expect_close();
        wait_until("nobody to wait", || server.info_number("blocked_clients") == 0);
        connection.line(&format!("RPUSH {tag}k v"));
        assert_eq!(connection.line(&format!("LLEN {tag}k")), Value::Integer(1), "nothing is given to who is gone");
    }
}

#[test]
fn a_client_that_leaves_waits_no_more() {
    let server = Server::start();
    for tag in TAGS {
        let clients: Vec<Connection> = (0..20).map(|_| waiting(&server, &format!("BLPOP {tag}k {tag}l 0"))).collect();
        drop(clients);
        wait_until("nobody to wait", || server.info_number("blocked_clients") == 0);
        assert_eq!(server.info_number("total_blocking_keys"), 0);
        let mut connection = server.connect();
        connection.line(&format!("RPUSH {tag}k v"));
        assert_eq!(connection.line(&format!("LLEN {tag}k")), Value::Integer(1));
    }
}

#[test]
fn commands_behind_one_that_waits_are_executed_after_it() {
    let server = Server::start();
    for tag in TAGS {
        let mut client = server.connect();
        let mut frames = encode_command(&["SET", &format!("{tag}before"), "1"]);
        frames.extend(encode_command(&["BLPOP", &format!("{tag}k"), "0"]));
        frames.extend(encode_command(&["GET", &format!("{tag}after")]));
        frames.extend(encode_command(&["PING"]));
        client.send(&frames);
        assert_eq!(client.read_value(), Value::Simple("OK".to_owned()));
        wait_until("the client to wait", || server.info_number("blocked_clients") == 1);
        let mut connection = server.connect();
        connection.line(&format!("SET {tag}after 2"));
        connection.line(&format!("RPUSH {tag}k v"));
        assert_eq!(client.read_value().elements()[1].text(), "v");
        assert_eq!(client.read_value().text(), "2");
        assert_eq!(client.read_value(), Value::Simple("PONG".to_owned()));
    }
}

#[test]
fn every_element_goes_to_exactly_one_of_many_who_wait() {
    let server = Server::start();
    let takers: Vec<_> = (0..8)
        .map(|number| {
            let mut connection = server.connect();
            let tag = TAGS[number % 2];
            std::thread::spawn(move || {
                let mut taken: Vec<i64> = Vec::new();
                loop {
                    let reply = connection.line(&format!("BLPOP {tag}jobs 0"));
                    match reply.elements()[1].text() {
                        "end" => return taken,
                        job => taken.push(job.parse().unwrap()),
                    }
                }
            })
        })
        .collect();
    let mut connection = server.connect();
    for job in 0..2_000 {
        let tag = TAGS[job % 2];
        connection.line(&format!("RPUSH {tag}jobs {job}"));
    }
    for tag in TAGS {
        connection.line(&format!("RPUSH {tag}jobs end end end end"));
    }
    let mut taken: Vec<i64> = takers.into_iter().flat_map(|taker| taker.join().expect("a taker")).collect();
    taken.sort_unstable();
    assert_eq!(taken, (0..2_000).collect::<Vec<_>>());
}
