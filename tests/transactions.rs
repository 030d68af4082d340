//! Transactions and watched keys, on a server with two shards: a client's keys are as often on another core as on its own.

use crate::support::{Connection, Server, Value, check, replies, wait_until};

/// A hash tag on each shard of two.
const TAGS: [&str; 2] = ["{a}", "{b}"];

#[test]
fn a_transaction_replies_in_the_order_of_its_commands() {
    let server = Server::start();
    let mut connection = server.connect();
    for tag in TAGS {
        let script = r"
            MULTI => OK
            SET {t}k 1 => QUEUED
            PING => +QUEUED
            INCR {t}k => +QUEUED
            LPUSH {t}k x => +QUEUED
            ECHO hello => +QUEUED
            TAKE {t}k 5 => +QUEUED
            GET {t}k => +QUEUED
            EXEC => *
            GET {t}k => 2
        "
        .replace("=> QUEUED", "=> +QUEUED")
        .replace("{t}", tag);
        check(&mut connection, &script);
        let replies = connection.pipeline([
            "MULTI",
            &format!("INCR {tag}n"),
            "PING",
            &format!("TAKE {tag}n 5"),
            &format!("LPUSH {tag}n x"),
            &format!("GET {tag}n"),
            "EXEC",
        ]);
        let reply = &replies[6].elements();
        assert_eq!(reply[0], Value::Integer(1));
        assert_eq!(reply[1], Value::Simple("PONG".to_owned()));
        assert!(reply[2].is_null(), "a refused native command is nil at its place");
        assert!(reply[3].error().starts_with("WRONGTYPE"));
        assert_eq!(reply[4].text(), "1");
    }
}

#[test]
fn what_cannot_be_queued_makes_exec_refuse() {
    replies(
        r"
        EXEC => -ERR EXEC without MULTI
        DISCARD => -ERR DISCARD without MULTI
        MULTI => OK
        MULTI => -ERR MULTI calls can not be nested
        WATCH a => -ERR WATCH inside MULTI is not allowed
        EXEC => []
        MULTI => OK
        NOSUCH => -ERR unknown command*
        SET a 1 => +QUEUED
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        MULTI => OK
        GET => -ERR wrong number of arguments for 'get' command
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        MULTI => OK
        SET a 1 => +QUEUED
        SET b 1 => -CROSSSLOT Keys in request don't hash to the same slot
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        WATCH a => OK
        MULTI => OK
        SET b 1 => -CROSSSLOT Keys in request don't hash to the same slot
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        WATCH a b => -CROSSSLOT Keys in request don't hash to the same slot
        MULTI => OK
        SET a 1 => +QUEUED
        DISCARD => OK
        EXISTS a => :0
        ",
    );
}

#[test]
fn a_transaction_on_a_shards_port_keeps_to_that_shard() {
    let server = Server::start();
    let moved = TAGS.map(|tag| {
        let mut connection = server.connect_to_shard(0);
        connection.line("MULTI");
        let reply = connection.line(&format!("SET {tag} 1"));
        let executed = connection.line("EXEC");
        match reply {
            Value::Error(text) => {
                assert!(text.starts_with("MOVED "), "{text}");
                assert!(executed.error().starts_with("EXECABORT"));
                assert!(connection.line(&format!("WATCH {tag}")).error().starts_with("MOVED "));
                true
            }
            _ => {
                assert_eq!(executed.elements().len(), 1);
                assert_eq!(connection.line(&format!("WATCH {tag}")), Value::Simple("OK".to_owned()));
                false
            }
        }
    });
    assert_ne!(moved[0], moved[1], "the tags are on different shards");
}

#[test]
fn selecting_in_a_transaction_holds_from_there_on() {
    replies(
        r#"
        MULTI => OK
        SET k 0 => +QUEUED
        SELECT 1 => +QUEUED
        SET k 1 => +QUEUED
        SELECT x => +QUEUED
        GET k => +QUEUED
        EXEC => *
        GET k => 1
        SELECT 0 => OK
        GET k => 0
        "#,
    );
}

#[test]
fn commands_on_whole_databases_keep_their_place() {
    let server = Server::start();
    let mut connection = server.connect();
    for tag in TAGS {
        for key in ["x", "y", "z"] {
            connection.line(&format!("SET {key} 1"));
        }
        let set = format!("SET {tag} 2");
        let get = format!("GET {tag}");
        let replies =
            connection.pipeline(["MULTI", &set, "DBSIZE", "FLUSHALL", &get, &set, "DBSIZE", "EXEC", "DBSIZE"]);
        let reply = replies[7].elements();
        assert_eq!(reply[1], Value::Integer(4));
        assert!(reply[3].is_null());
        assert_eq!(reply[5], Value::Integer(1));
        assert_eq!(replies[8], Value::Integer(1));
        connection.line("FLUSHALL");
    }
}

/// Runs `change` between `WATCH` and `EXEC` of another client; whether the transaction was executed.
fn survives(server: &Server, watched: &str, change: impl FnOnce(&mut Connection)) -> bool {
    let mut watcher = server.connect();
    assert_eq!(watcher.line(&format!("WATCH {watched}")), Value::Simple("OK".to_owned()));
    change(&mut server.connect());
    watcher.line("MULTI");
    watcher.line("PING");
    !watcher.line("EXEC").is_null()
}

#[test]
fn any_change_of_a_watched_key_refuses_the_transaction() {
    let server = Server::start();
    let mut connection = server.connect();
    for tag in TAGS {
        let key = format!("{tag}k");
        let other = format!("{tag}other");
        for change in [
            format!("SET {key} 1"),
            format!("DEL {key}"),
            format!("EXPIRE {key} 100"),
            format!("RENAME {key} {other}"),
            format!("RENAME {other} {key}"),
            format!("COPY {other} {key} REPLACE"),
            format!("MOVE {key} 3"),
            format!("TAKE {key} 1"),
            format!("TRANSFER {key} {other} 1"),
            format!("TRANSFER {other} {key} 1"),
            "FLUSHALL".to_owned(),
            "FLUSHDB ASYNC".to_owned(),
            "SWAPDB 0 5".to_owned(),
        ] {
            connection.line("FLUSHALL");
            connection.line(&format!("SET {key} 10"));
            connection.line(&format!("SET {other} 10"));
            let survived = survives(&server, &key, |connection| {
                let reply = connection.line(&change);
                assert!(!matches!(reply, Value::Error(_)), "{change}: {reply:?}");
            });
            assert!(!survived, "{change}");
        }
        for no_change in [
            format!("GET {key}"),
            format!("SET {other} 1"),
            format!("SET {key} 1 NX"),
            format!("TAKE {key} 1000"),
            format!("TRANSFER {key} {other} 1000"),
            format!("SETRANGE {key} 0 \"\""),
        ] {
            connection.line("FLUSHALL");
            connection.line(&format!("SET {key} 10"));
            connection.line(&format!("SET {other} 10"));
            assert!(survives(&server, &key, |connection| drop(connection.line(&no_change))), "{no_change}");
        }
    }
}

#[test]
fn a_watched_key_that_expires_refuses_the_transaction() {
    let server = Server::start();
    let mut connection = server.connect();
    for tag in TAGS {
        let key = format!("{tag}k");
        connection.line(&format!("SET {key} v PX 30"));
        assert!(!survives(&server, &key, |connection| {
            wait_until("the key to expire", || connection.line(&format!("PTTL {key}")) == Value::Integer(-2));
        }));
        // Unseen by anybody, too.
        connection.line("CONFIG SET maxmemory 0");
        connection.line(&format!("SET {key} v PX 1"));
        wait_until("the key to expire", || connection.line(&format!("EXISTS {key}")) == Value::Integer(0));
        assert!(survives(&server, &key, |_| {}), "it had expired before it was watched");
    }
}

#[test]
fn exec_refuses_what_needs_memory_when_there_is_none() {
    let server = Server::start();
    let mut operator = server.connect();
    for tag in ["{a}", "{b}"] {
        let mut connection = server.connect();
        connection.line(&format!("WATCH {tag}"));
        connection.line("MULTI");
        connection.line(&format!("SET {tag}k v"));
        connection.line(&format!("GET {tag}k"));
        operator.line("CONFIG SET maxmemory 1");
        assert_eq!(
            connection.line("EXEC").error(),
            "EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'."
        );
        operator.line("CONFIG SET maxmemory 0");
        assert!(connection.line("EXEC").error().starts_with("ERR EXEC without MULTI"));
        check(&mut connection, &format!("GET {tag}k => nil"));
    }
    // What needs none is executed.
    let mut connection = server.connect();
    check(&mut connection, "SET k v => OK\nMULTI => OK\nGET k => +QUEUED\nDEL k => +QUEUED");
    operator.line("CONFIG SET maxmemory 1");
    check(&mut connection, "EXEC => [v :1]");
}

#[test]
fn the_list_of_clients_says_how_many_keys_they_watch() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut expect = |line: &str, keys: &str| {
        connection.line(line);
        let shown = connection.line("CLIENT INFO");
        assert!(shown.text().contains(&format!(" watch={keys} ")), "{line}: {}", shown.text());
    };
    expect("PING", "0");
    expect("WATCH {t}a {t}b {t}a", "2");
    expect("WATCH {t}a {t}c", "3");
    expect("UNWATCH", "0");
    expect("WATCH {t}a", "1");
    expect("DISCARD", "1");
    connection.line("MULTI");
    connection.line("EXEC");
    assert!(connection.line("CLIENT INFO").text().contains(" watch=0 "));
}

#[test]
fn a_client_may_change_its_mind() {
    let server = Server::start();
    for end in ["UNWATCH", "EXEC", "DISCARD"] {
        let mut watcher = server.connect();
        watcher.line("WATCH k");
        if end != "UNWATCH" {
            watcher.line("MULTI");
        }
        watcher.line(end);
        server.connect().line("SET k v");
        watcher.line("MULTI");
        watcher.line("GET k");
        assert_eq!(watcher.line("EXEC").elements().len(), 1, "{end} ends the watch");
    }
    let mut watcher = server.connect();
    watcher.line("WATCH k");
    watcher.line("SET k own");
    watcher.line("MULTI");
    assert!(watcher.line("EXEC").is_null(), "a client's own change counts");
    watcher.line("MULTI");
    assert_eq!(watcher.line("RESET"), Value::Simple("RESET".to_owned()));
    assert_eq!(watcher.line("GET k").text(), "own");
}

#[test]
fn transactions_are_not_interleaved() {
    let server = Server::start();
    let writers: Vec<_> = (0..6)
        .map(|_| {
            let mut connection = server.connect();
            std::thread::spawn(move || {
                for _ in 0..300 {
                    for tag in TAGS {
                        let incr = format!("INCR {tag}n");
                        let get = format!("GET {tag}n");
                        let replies = connection.pipeline(["MULTI", &get, &incr, &incr, &get, "EXEC"]);
                        let reply = replies[5].elements();
                        let before = if reply[0].is_null() { 0 } else { reply[0].text().parse::<i64>().unwrap() };
                        assert_eq!(reply[3].text().parse::<i64>().unwrap(), before + 2);
                    }
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
    for tag in TAGS {
        assert_eq!(server.connect().line(&format!("GET {tag}n")).text(), "3600");
    }
}

#[test]
fn optimistic_counters_lose_nothing() {
    let server = Server::start();
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let mut connection = server.connect();
            std::thread::spawn(move || {
                let mut done = 0;
                while done < 50 {
                    connection.line("WATCH {a}n");
                    let value = connection.line("GET {a}n");
                    let value = if value.is_null() { 0 } else { value.text().parse::<i64>().unwrap() };
                    connection.line("MULTI");
                    connection.line(&format!("SET {{a}}n {}", value + 1));
                    done += i64::from(!connection.line("EXEC").is_null());
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
    assert_eq!(server.connect().line("GET {a}n").text(), "200");
}
