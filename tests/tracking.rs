//! Client-side caching on a server with two shards: readers and writers on the same core and on different ones.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::{Connection, Options, Server, Value, check, encode_command, wait_until};

/// A hash tag on each shard of two.
const TAGS: [&str; 2] = ["{a}", "{b}"];

/// A connection in RESP3 that tracks with these options.
fn tracking(server: &Server, options: &str) -> Connection {
    let mut connection = server.connect();
    connection.line("HELLO 3");
    assert_eq!(shown(&connection.line(&format!("CLIENT TRACKING ON {options}"))), "+OK");
    connection
}

fn shown(value: &Value) -> String {
    format!("{value:?}")
}

fn invalidate(keys: &[&str]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
    format!(">[\"invalidate\" [{}]]", keys.join(" "))
}

#[track_caller]
fn expect_push(connection: &mut Connection, keys: &[&str]) {
    assert_eq!(shown(&connection.read_value()), invalidate(keys));
}

/// What the server tells a connection before the reply to a read on each core: all that was to be told.
fn told(connection: &mut Connection) -> Vec<String> {
    let mut told = Vec::new();
    for tag in TAGS {
        connection.send(&encode_command(&["GET", &format!("{tag}nothing")]));
        loop {
            match connection.read_value() {
                push @ Value::Push(_) => told.push(shown(&push)),
                reply => {
                    assert!(reply.is_null(), "the read replies {reply:?}");
                    break;
                }
            }
        }
    }
    told
}

#[track_caller]
fn expect_nothing(connection: &mut Connection) {
    assert_eq!(told(connection), Vec::<String>::new());
}

fn line(server: &Server, line: &str) -> Value {
    server.connect().line(line)
}

#[test]
fn a_reader_is_told_once_of_a_change_of_what_it_has_read() {
    let server = Server::start();
    let mut writer = server.connect();
    // Wherever the kernel puts a connection, some of these are on each core.
    for _ in 0..8 {
        let mut reader = tracking(&server, "");
        for tag in TAGS {
            let key = |name: &str| format!("{tag}{name}");
            reader.line(&format!("GET {tag}k"));
            reader.line(&format!("MGET {tag}one {tag}two {tag}three"));
            assert!(reader.line(&format!("LLEN {tag}s")).integer() == 0);
            writer.line(&format!("SET {tag}unread 1"));
            expect_nothing(&mut reader);
            writer.line(&format!("SET {tag}k 1"));
            expect_push(&mut reader, &[&key("k")]);
            writer.line(&format!("SET {tag}k 2"));
            expect_nothing(&mut reader);
            writer.line(&format!("MSET {tag}three 1 {tag}four 2 {tag}one 3"));
            expect_push(&mut reader, &[&key("three")]);
            expect_push(&mut reader, &[&key("one")]);
            writer.line(&format!("LPUSH {tag}s x"));
            expect_push(&mut reader, &[&key("s")]);
            // What it reads anew it is told of anew, whether the read was refused or not.
            assert!(reader.line(&format!("GET {tag}s")).error().starts_with("WRONGTYPE"));
            assert_eq!(reader.line(&format!("GET {tag}k")).text(), "2");
            writer.line(&format!("RENAME {tag}k {tag}two"));
            let mut both = [shown(&reader.read_value()), shown(&reader.read_value())];
            both.sort();
            assert_eq!(both, [invalidate(&[&key("k")]), invalidate(&[&key("two")])]);
            writer.line(&format!("DEL {tag}s"));
            expect_push(&mut reader, &[&key("s")]);
            writer.line(&format!("DEL {tag}two"));
            expect_nothing(&mut reader);
        }
        writer.line("FLUSHALL");
    }
}

#[test]
fn every_reader_of_a_key_is_told() {
    let server = Server::start();
    let mut readers: Vec<Connection> = (0..20).map(|_| tracking(&server, "")).collect();
    for tag in TAGS {
        for reader in &mut readers {
            reader.line(&format!("GET {tag}k"));
        }
        assert_eq!((server.info_number("tracking_total_keys"), server.info_number("tracking_total_items")), (1, 20));
        line(&server, &format!("INCR {tag}k"));
        for reader in &mut readers {
            expect_push(reader, &[&format!("{tag}k")]);
        }
        assert_eq!((server.info_number("tracking_total_keys"), server.info_number("tracking_total_items")), (0, 0));
    }
}

#[test]
fn a_clients_own_change_is_told_after_its_reply_or_not_at_all() {
    let server = Server::start();
    for tag in TAGS {
        let mut client = tracking(&server, "");
        let key = format!("{tag}h");
        client.line(&format!("HGET {key} f"));
        assert_eq!(client.line(&format!("HSET {key} f 1")).integer(), 1);
        expect_push(&mut client, &[&key]);
        client.line(&format!("HGET {key} f"));
        assert_eq!(client.line(&format!("HDEL {key} f")).integer(), 1);
        expect_push(&mut client, &[&key]);
        // The change of another client is no change of its own.
        let mut client = tracking(&server, "NOLOOP");
        client.line(&format!("HGET {key} f"));
        client.line(&format!("HSET {key} f 1"));
        expect_nothing(&mut client);
        client.line(&format!("HGET {key} f"));
        line(&server, &format!("DEL {key}"));
        expect_push(&mut client, &[&key]);
    }
}

#[test]
fn reads_are_chosen_with_optin_and_optout() {
    let server = Server::start();
    for tag in TAGS {
        let key = |number: u32| format!("{tag}{number}");
        let change = |keys: std::ops::Range<u32>| {
            let mut writer = server.connect();
            keys.for_each(|number| drop(writer.line(&format!("INCR {}", key(number)))));
        };
        let mut client = tracking(&server, "OPTIN");
        client.line(&format!("GET {}", key(0)));
        client.line("CLIENT CACHING YES");
        client.line("CLIENT ID");
        client.line(&format!("GET {}", key(1)));
        client.line(&format!("GET {}", key(2)));
        client.line("CLIENT CACHING YES");
        client.line("NOSUCH");
        client.line(&format!("GET {}", key(3)));
        client.line("CLIENT CACHING YES");
        client.pipeline(["MULTI", &format!("GET {}", key(4)), &format!("GET {}", key(5)), "EXEC"]);
        client.line(&format!("GET {}", key(6)));
        let caching = format!("GET {}", key(7));
        client.pipeline(["MULTI", "CLIENT CACHING YES", &caching, "EXEC"]);
        change(0..8);
        assert_eq!(told(&mut client), [1, 4, 5, 7].map(|number| invalidate(&[&key(number)])));

        let mut client = tracking(&server, "OPTOUT");
        client.line(&format!("GET {}", key(0)));
        client.line("CLIENT CACHING NO");
        client.line(&format!("GET {}", key(1)));
        client.line(&format!("GET {}", key(2)));
        change(0..3);
        assert_eq!(told(&mut client), [0, 2].map(|number| invalidate(&[&key(number)])));
    }
}

#[test]
fn commands_over_several_shards_are_tracked() {
    let server = Server::with(&Options { arguments: &["--cross-slot", "allow"], ..Options::default() });
    let mut client = tracking(&server, "");
    let mut no_loop = tracking(&server, "NOLOOP");
    for client in [&mut client, &mut no_loop] {
        client.line("MGET {a}k {b}k");
    }
    no_loop.line("MSET {a}k 1 {b}k 1");
    expect_nothing(&mut no_loop);
    let both = |mut told: Vec<String>| {
        told.sort();
        assert_eq!(told, [invalidate(&["{a}k"]), invalidate(&["{b}k"])]);
    };
    both(told(&mut client));
    client.line("EXISTS {a}k {b}k");
    line(&server, "DEL {a}k {b}k");
    both(told(&mut client));
}

#[test]
fn broadcasting_tells_of_every_change_under_a_prefix() {
    let server = Server::start();
    for tag in TAGS {
        let key = |name: &str| format!("{tag}{name}");
        let mut client = tracking(&server, &format!("BCAST PREFIX {tag}a: PREFIX {tag}b:"));
        let mut everything = tracking(&server, "BCAST NOLOOP");
        let mut writer = server.connect();
        for command in ["MULTI", "INCR {t}a:2", "INCR {t}a:1", "INCR {t}a:2", "INCR {t}c:1", "INCR {t}b:1", "EXEC"] {
            writer.line(&command.replace("{t}", tag));
        }
        expect_push(&mut client, &[&key("a:1"), &key("a:2")]);
        expect_push(&mut client, &[&key("b:1")]);
        expect_push(&mut everything, &[&key("a:1"), &key("a:2"), &key("b:1"), &key("c:1")]);
        assert_eq!(server.info_number("tracking_total_prefixes"), 3);
        // Its own changes, and prefixes that come later.
        assert_eq!(everything.line(&format!("INCR {tag}a:1")).integer(), 2);
        expect_push(&mut client, &[&key("a:1")]);
        expect_nothing(&mut everything);
        assert_eq!(client.line(&format!("INCR {tag}a:1")).integer(), 3);
        expect_push(&mut client, &[&key("a:1")]);
        expect_push(&mut everything, &[&key("a:1")]);
        client.line(&format!("CLIENT TRACKING ON BCAST PREFIX {tag}c:"));
        writer.line(&format!("INCR {tag}c:1"));
        expect_push(&mut client, &[&key("c:1")]);
        expect_push(&mut everything, &[&key("c:1")]);
        // What expires is nobody's change.
        everything.line(&format!("SET {tag}volatile 1 PX 1"));
        expect_push(&mut everything, &[&key("volatile")]);
        client.line("CLIENT TRACKING OFF");
        writer.line(&format!("INCR {tag}a:1"));
        expect_push(&mut everything, &[&key("a:1")]);
        everything.line("CLIENT TRACKING OFF");
        writer.line(&format!("INCR {tag}a:1"));
        expect_nothing(&mut client);
        expect_nothing(&mut everything);
        assert_eq!(server.info_number("tracking_total_prefixes"), 0);
    }
}

#[test]
fn the_reply_of_a_transaction_is_not_interrupted() {
    let server = Server::start();
    let mut other = server.connect();
    for tag in TAGS {
        let mut client = tracking(&server, "");
        client.line(&format!("GET {tag}k"));
        let replies = client.pipeline([
            "MULTI",
            &format!("INCR {tag}k"),
            &format!("GET {tag}j"),
            "FLUSHALL",
            &format!("INCR {tag}k"),
            "EXEC",
        ]);
        assert_eq!(shown(&replies[5]), "[:1 nil +OK :1]");
        let mut pushes = [shown(&client.read_value()), shown(&client.read_value())];
        pushes.sort();
        assert_eq!(pushes, [">[\"invalidate\" [\"".to_owned() + tag + "k\"]]", ">[\"invalidate\" nil]".to_owned()]);
        // What it reads in a transaction is tracked, before a change in the same one and after it.
        client.pipeline(["MULTI", &format!("INCR {tag}k"), &format!("GET {tag}k"), "EXEC"]);
        other.line(&format!("INCR {tag}k"));
        expect_push(&mut client, &[&format!("{tag}k")]);
        client.pipeline(["MULTI", "CLIENT TRACKING OFF", "CLIENT TRACKING ON", &format!("GET {tag}k"), "EXEC"]);
        other.line(&format!("INCR {tag}k"));
        expect_push(&mut client, &[&format!("{tag}k")]);
        expect_nothing(&mut client);
    }
}

#[test]
fn keys_that_expire_or_are_evicted_are_told() {
    let server = Server::start();
    for tag in TAGS {
        let mut client = tracking(&server, "");
        line(&server, &format!("SET {tag}k 1 PX 30"));
        client.line(&format!("GET {tag}k"));
        expect_push(&mut client, &[&format!("{tag}k")]);
        line(&server, &format!("SET {tag}k 1"));
        client.line(&format!("GET {tag}k"));
        check(&mut server.connect(), "CONFIG SET maxmemory-policy allkeys-random maxmemory 1 => OK");
        expect_push(&mut client, &[&format!("{tag}k")]);
        check(&mut server.connect(), "CONFIG SET maxmemory 0 => OK");
    }
}

#[test]
fn what_is_known_of_reads_is_bounded() {
    const READ: usize = 200;
    let server = Server::start();
    let mut client = tracking(&server, "");
    for number in 0..READ {
        client.line(&format!("GET {number}"));
    }
    assert_eq!(server.info_number("tracking_total_keys"), READ as i64);
    check(
        &mut server.connect(),
        r"
        CONFIG GET tracking-table-max-keys => [tracking-table-max-keys 1000000]
        CONFIG SET tracking-table-max-keys 3 => OK
        ",
    );
    let forgotten: HashSet<String> = (3..READ).map(|_| shown(&client.read_value())).collect();
    assert_eq!((forgotten.len(), server.info_number("tracking_total_keys")), (READ - 3, 3));
    // The next reads push others out.
    for number in READ..READ + 50 {
        client.send(&encode_command(&["GET", &number.to_string()]));
    }
    let (mut replies, mut pushes) = (0, 0);
    while replies < 50 || pushes < 50 {
        match client.read_value() {
            Value::Push(_) => pushes += 1,
            _ => replies += 1,
        }
    }
    assert_eq!(server.info_number("tracking_total_keys"), 3);
    check(&mut server.connect(), "CONFIG SET tracking-table-max-keys 0 => OK");
    for number in 0..READ {
        client.line(&format!("GET {number}"));
    }
    assert!(server.info_number("tracking_total_keys") >= READ as i64);
}

#[test]
fn everything_is_invalid_after_a_flush() {
    let server = Server::start();
    let mut readers: Vec<Connection> =
        ["", "", "NOLOOP", "BCAST", "BCAST"].map(|options| tracking(&server, options)).into_iter().collect();
    for flush in ["FLUSHALL", "FLUSHDB", "FLUSHALL ASYNC", "FLUSHDB SYNC"] {
        for tag in TAGS {
            readers[0].line(&format!("GET {tag}k"));
        }
        line(&server, flush);
        for reader in &mut readers {
            assert_eq!(shown(&reader.read_value()), ">[\"invalidate\" nil]");
            expect_nothing(reader);
        }
        line(&server, "FLUSHALL");
        for reader in &mut readers {
            reader.read_value();
        }
        assert_eq!(server.info_number("tracking_total_keys"), 0);
        for tag in TAGS {
            line(&server, &format!("INCR {tag}k"));
        }
        expect_nothing(&mut readers[0]);
        for reader in &mut readers[3..] {
            reader.read_value();
            reader.read_value();
        }
    }
    // The reply of a flush comes before what it tells its own client.
    assert_eq!(shown(&readers[0].line("FLUSHALL")), "+OK");
    assert_eq!(shown(&readers[0].read_value()), ">[\"invalidate\" nil]");
}

#[test]
fn a_client_that_waits_for_a_key_is_told_at_once() {
    let server = Server::start();
    let mut writer = server.connect();
    for read in TAGS {
        for waited in TAGS {
            let mut client = tracking(&server, "");
            client.line(&format!("GET {read}k"));
            client.send(&encode_command(&[
                "BLMOVE",
                &format!("{waited}l"),
                &format!("{waited}m"),
                "LEFT",
                "LEFT",
                "0",
            ]));
            wait_until("the client to wait", || server.info_number("blocked_clients") == 1);
            writer.line(&format!("INCR {read}k"));
            expect_push(&mut client, &[&format!("{read}k")]);
            writer.line(&format!("RPUSH {waited}l x"));
            assert_eq!(client.read_value().text(), "x");
            // The list that it filled itself.
            client.line(&format!("LRANGE {waited}m 0 -1"));
            client.send(&encode_command(&[
                "BLMOVE",
                &format!("{waited}l"),
                &format!("{waited}m"),
                "LEFT",
                "LEFT",
                "0",
            ]));
            wait_until("the client to wait", || server.info_number("blocked_clients") == 1);
            writer.line(&format!("RPUSH {waited}l y"));
            assert_eq!(client.read_value().text(), "y");
            expect_push(&mut client, &[&format!("{waited}m")]);
            writer.line("FLUSHALL");
        }
    }
}

#[test]
fn with_resp2_another_connection_is_told() {
    let server = Server::start();
    let mut writer = server.connect();
    let mut subscriber = server.connect();
    let id = subscriber.line("CLIENT ID").integer();
    subscriber.line("SUBSCRIBE __redis__:invalidate");
    let message = |keys: &str| format!("[\"message\" \"__redis__:invalidate\" {keys}]");
    // On every core, one that reads and another one that hears of prefixes.
    for _ in 0..4 {
        let mut reader = server.connect();
        let mut listener = server.connect();
        reader.line(&format!("CLIENT TRACKING ON REDIRECT {id}"));
        listener.line(&format!("CLIENT TRACKING ON BCAST PREFIX {{a}}b REDIRECT {id}"));
        check(&mut reader, &format!("CLIENT GETREDIR => :{id}"));
        for tag in TAGS {
            reader.line(&format!("GET {tag}k"));
            writer.line(&format!("INCR {tag}k"));
            assert_eq!(shown(&subscriber.read_value()), message(&format!("[\"{tag}k\"]")));
        }
        writer.line("INCR {a}b");
        assert_eq!(shown(&subscriber.read_value()), message("[\"{a}b\"]"));
        // In RESP3 it is told as any other client, subscriber or not.
        let mut target = server.connect();
        target.line("HELLO 3");
        let target_id = target.line("CLIENT ID").integer();
        listener.line("CLIENT TRACKING OFF");
        listener.line(&format!("CLIENT TRACKING ON REDIRECT {target_id}"));
        listener.line("GET {b}k");
        writer.line("INCR {b}k");
        expect_push(&mut target, &["{b}k"]);
        writer.line("FLUSHALL");
        assert_eq!(shown(&subscriber.read_value()), message("nil"));
        target.read_value();
    }
}

#[test]
fn a_client_is_told_when_the_one_it_redirects_to_is_gone() {
    let server = Server::start();
    for tag in TAGS {
        let mut target = server.connect();
        let id = target.line("CLIENT ID").integer();
        let mut client = tracking(&server, &format!("REDIRECT {id}"));
        client.line(&format!("MGET {tag}k {tag}j"));
        target.line("QUIT");
        target.expect_close();
        line(&server, &format!("INCR {tag}k"));
        assert_eq!(shown(&client.read_value()), format!(">[\"tracking-redir-broken\" :{id}]"));
        check(
            &mut client,
            &format!(
                r"
                CLIENT TRACKINGINFO => %[flags ~[on broken_redirect] redirect :{id} prefixes []]
                CLIENT GETREDIR => :{id}
                "
            ),
        );
        assert!(line(&server, "CLIENT LIST").text().contains(&format!("redir={id}")));
        assert!(line(&server, "CLIENT LIST").text().contains("flags=tR "));
        assert_eq!(shown(&client.line("CLIENT TRACKING ON")), "+OK");
        line(&server, &format!("INCR {tag}j"));
        expect_push(&mut client, &[&format!("{tag}j")]);
    }
}

#[test]
fn options_are_checked() {
    let server = Server::start();
    let mut connection = server.connect();
    let id = connection.line("CLIENT ID").integer().to_string();
    let script = r#"
        CLIENT TRACKING => -ERR wrong number of arguments for 'client|tracking' command
        CLIENT TRACKING perhaps => -ERR syntax error
        CLIENT TRACKING ON REDIRECT => -ERR syntax error
        CLIENT TRACKING ON REDIRECT x => -ERR value is not an integer or out of range
        CLIENT TRACKING ON REDIRECT 99999 => -ERR The client ID you want redirect to does not exist
        CLIENT TRACKING ON REDIRECT 99999 WHAT => -ERR The client ID you want redirect to does not exist
        CLIENT TRACKING OFF REDIRECT 0 => -ERR The client ID you want redirect to does not exist
        CLIENT TRACKING ON REDIRECT {id} REDIRECT {id} => -ERR A client can only redirect to a single other client
        CLIENT TRACKING ON PREFIX a => -ERR PREFIX option requires BCAST mode to be enabled
        CLIENT TRACKING ON BCAST OPTIN => -ERR OPTIN and OPTOUT are not compatible with BCAST
        CLIENT TRACKING ON OPTIN OPTOUT => -ERR You can't specify both OPTIN mode and OPTOUT mode
        CLIENT CACHING YES => -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
        CLIENT TRACKINGINFO => [flags [off] redirect :-1 prefixes []]
        CLIENT GETREDIR => :-1
        CLIENT TRACKING ON => OK
        CLIENT GETREDIR => :0
        CLIENT CACHING YES => -ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.
        CLIENT CACHING NO => -ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.
        CLIENT CACHING perhaps => -ERR syntax error
        CLIENT TRACKING ON BCAST => -ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.
        CLIENT TRACKING ON OPTIN NOLOOP => OK
        CLIENT TRACKING ON OPTOUT => -ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.
        CLIENT CACHING YES => OK
        CLIENT TRACKINGINFO => [flags [on optin caching-yes noloop] redirect :0 prefixes []]
        PING => +PONG
        CLIENT TRACKINGINFO => [flags [on optin noloop] redirect :0 prefixes []]
        CLIENT TRACKING OFF => OK
        CLIENT TRACKING ON BCAST PREFIX foo PREFIX foobar => -ERR Prefix 'foo' overlaps with another provided prefix 'foobar'. Prefixes for a single client must not overlap.
        CLIENT TRACKING ON BCAST PREFIX foo PREFIX bar => OK
        CLIENT TRACKING ON BCAST PREFIX ba => -ERR Prefix 'ba' overlaps with an existing prefix 'bar'. Prefixes for a single client must not overlap.
        CLIENT TRACKING ON BCAST => OK
        CLIENT TRACKINGINFO => [flags [on bcast] redirect :0 prefixes ["" bar foo]]
        RESET => +RESET
        CLIENT TRACKINGINFO => [flags [off] redirect :-1 prefixes []]
        CLIENT TRACKING ON OPTOUT => OK
        CLIENT CACHING NO => OK
        CLIENT TRACKINGINFO => [flags [on optout caching-no] redirect :0 prefixes []]
    "#;
    check(&mut connection, &script.replace("{id}", &id));
}

#[test]
fn tracking_ends_with_the_connection() {
    let server = Server::start();
    let mut clients = ["", "BCAST PREFIX a", "BCAST PREFIX b"].map(|options| tracking(&server, options));
    assert_eq!(server.info_number("tracking_clients"), 3);
    assert!(line(&server, "CLIENT LIST").text().contains("flags=tB "));
    clients[1].line("RESET");
    assert_eq!((server.info_number("tracking_clients"), server.info_number("tracking_total_prefixes")), (2, 1));
    drop(clients);
    wait_until("tracking to end", || server.info_number("tracking_clients") == 0);
    assert_eq!(server.info_number("tracking_total_prefixes"), 0);
}

/// Reads keys as a caching client does: what comes is kept until the server says that it is invalid.
fn read_and_keep(mut connection: Connection, keys: &[String], stop: &AtomicBool) -> HashMap<String, Value> {
    let mut kept = HashMap::new();
    let mut asked: VecDeque<String> = VecDeque::new();
    let mut next = 0;
    let mut last = false;
    loop {
        let mut frames = Vec::new();
        for _ in 0..7 {
            next = (next * 31 + 7) % 1009;
            let key = &keys[next % keys.len()];
            if !kept.contains_key(key) && !asked.contains(key) {
                frames.extend(encode_command(&["GET", key]));
                asked.push_back(key.clone());
            }
        }
        if last {
            // Behind these there is nothing to come any more.
            for tag in TAGS {
                let key = format!("{tag}nothing");
                frames.extend(encode_command(&["GET", &key]));
                asked.push_back(key);
            }
        }
        connection.send(&frames);
        while !asked.is_empty() {
            match connection.read_value() {
                Value::Push(push) => match &push[1] {
                    Value::Array(invalid) => invalid.iter().for_each(|key| drop(kept.remove(key.text()))),
                    _ => kept.clear(),
                },
                value => drop(asked.pop_front().map(|key| kept.insert(key, value))),
            }
        }
        if last {
            return kept;
        }
        last = stop.load(Ordering::SeqCst);
    }
}

#[test]
fn no_client_keeps_what_is_out_of_date() {
    nothing_is_kept_out_of_date(&Server::start());
}

#[test]
fn no_client_keeps_what_is_out_of_date_while_replies_wait_for_the_log() {
    nothing_is_kept_out_of_date(&Server::with(&Options {
        arguments: &["--durability", "always"],
        ..Options::default()
    }));
}

#[track_caller]
fn nothing_is_kept_out_of_date(server: &Server) {
    let keys: Vec<String> = (0..24).map(|number| format!("{}{number}", TAGS[number % 2])).collect();
    for options in ["", "NOLOOP", "BCAST", "BCAST PREFIX {a} PREFIX {b}"] {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let readers: Vec<_> = (0..6)
                .map(|_| {
                    let connection = tracking(server, options);
                    scope.spawn(|| read_and_keep(connection, &keys, &stop))
                })
                .collect();
            let writers: Vec<_> = (1..=2)
                .map(|writer| {
                    let (mut connection, keys) = (server.connect(), &keys);
                    scope.spawn(move || {
                        // In pipelines, so that a core is given reads and changes of one key in one batch.
                        for round in 0..400 {
                            let lines: Vec<String> = (0..12)
                                .map(|number| {
                                    let step = round * 12 + number;
                                    let key = &keys[step * (writer * 2 + 3) % keys.len()];
                                    match step % 1000 {
                                        999 => "FLUSHALL".to_owned(),
                                        number if number % 50 == 49 => format!("DEL {key}"),
                                        number if number % 50 == 24 => format!("SET {key} x PX 1"),
                                        _ => format!("SET {key} {writer}:{step}"),
                                    }
                                })
                                .collect();
                            connection.pipeline(lines.iter().map(String::as_str));
                        }
                    })
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().expect("the writer ends"));
            // What is to expire is gone, and everybody was told, when a look at every key was answered.
            wait_until("keys to expire", || {
                let mut connection = server.connect();
                keys.iter().all(|key| connection.line(&format!("PTTL {key}")).integer() < 0)
            });
            stop.store(true, Ordering::SeqCst);
            let mut connection = server.connect();
            for reader in readers {
                let kept = reader.join().expect("the reader ends");
                for key in &keys {
                    if let Some(value) = kept.get(key) {
                        assert_eq!(
                            shown(value),
                            shown(&connection.line(&format!("GET {key}"))),
                            "{key} with {options:?}"
                        );
                    }
                }
            }
        });
    }
}
