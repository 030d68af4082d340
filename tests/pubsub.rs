//! Publish and subscribe across two shards: who gets what, in which order, and what subscribing does to a connection.

use crate::support::{Connection, Server, Value, check, encode_command, replies, wait_until};
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::thread;

const LIMITS: &str = "client-output-buffer-limit";

/// A connection to one shard's core that subscribes to `names` by `command`, all confirmed.
fn subscriber(server: &Server, shard: u16, command: &str, names: &[&str]) -> Connection {
    let mut connection = server.connect_to_shard(shard);
    subscribe(&mut connection, command, names);
    connection
}

fn subscribe(connection: &mut Connection, command: &str, names: &[&str]) {
    let mut words = vec![command];
    words.extend(names);
    connection.send(&encode_command(&words));
    for name in names {
        let confirmed = connection.read_value();
        assert_eq!(confirmed.elements()[1].text(), *name, "{confirmed:?}");
    }
}

/// The words of the next message.
fn message(connection: &mut Connection) -> Vec<String> {
    let message = connection.read_value();
    let text = |word: &Value| match word {
        Value::Integer(count) => count.to_string(),
        word => word.text().to_owned(),
    };
    message.elements().iter().map(text).collect()
}

#[test]
fn replies_are_those_of_redis() {
    replies(
        r#"
        SUBSCRIBE => -ERR wrong number of arguments for 'subscribe' command
        PUBLISH ch => -ERR wrong number of arguments for 'publish' command
        PUBLISH nobody m => :0
        SPUBLISH nobody m => :0
        PUBSUB => -ERR wrong number of arguments for 'pubsub' command
        PUBSUB nosuch => -ERR unknown subcommand 'nosuch'. Try PUBSUB HELP.
        PUBSUB CHANNELS a b => -ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.
        PUBSUB NUMPAT x => -ERR wrong number of arguments for 'pubsub|numpat' command
        PUBSUB NUMPAT => :0
        PUBSUB NUMSUB => []
        PUBSUB NUMSUB a b => [a :0 b :0]
        PUBSUB SHARDNUMSUB a b => [a :0 b :0]
        PUBSUB CHANNELS => []
        PUBSUB SHARDCHANNELS => []
        UNSUBSCRIBE => [unsubscribe nil :0]
        PUNSUBSCRIBE => [punsubscribe nil :0]
        SUNSUBSCRIBE => [sunsubscribe nil :0]
        UNSUBSCRIBE none => [unsubscribe none :0]
        COMMAND GETKEYS SSUBSCRIBE a => -ERR The command has no key arguments
        SUBSCRIBE a => [subscribe a :1]
        SUBSCRIBE a => [subscribe a :1]
        PSUBSCRIBE a* => [psubscribe a* :2]
        SSUBSCRIBE s => [ssubscribe s :1]
        PING => [pong ""]
        PING hello => [pong hello]
        PING a b => -ERR wrong number of arguments for 'ping' command
        GET a => -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        CONFIG GET maxmemory => -ERR Can't execute 'config|get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        PUBLISH a m => -ERR Can't execute 'publish': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        NOSUCH => -"ERR unknown command 'NOSUCH', with args beginning with: "
        UNSUBSCRIBE => [unsubscribe a :1]
        PUNSUBSCRIBE none => [punsubscribe none :1]
        PUNSUBSCRIBE a* => [punsubscribe a* :0]
        GET a => -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        SUNSUBSCRIBE s => [sunsubscribe s :0]
        GET a => nil
        PING => +PONG
        SUBSCRIBE b => [subscribe b :1]
        RESET => +RESET
        PING => +PONG
        PUBLISH b m => :0
        SUBSCRIBE b => [subscribe b :1]
        QUIT => OK
    "#,
    );
}

#[test]
fn with_resp3_a_subscriber_may_do_anything() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("HELLO 3");
    for (line, wanted) in [
        ("SUBSCRIBE a", vec![r#">["subscribe" "a" :1]"#]),
        ("PSUBSCRIBE a*", vec![r#">["psubscribe" "a*" :2]"#]),
        ("SSUBSCRIBE s", vec![r#">["ssubscribe" "s" :1]"#]),
        ("PING", vec!["+PONG"]),
        ("SET k v", vec!["+OK"]),
        ("GET k", vec!["\"v\""]),
        // Its own messages come behind the reply.
        ("PUBLISH a m", vec![":2", r#">["message" "a" "m"]"#, r#">["pmessage" "a*" "a" "m"]"#]),
        ("SPUBLISH s m", vec![":1", r#">["smessage" "s" "m"]"#]),
        ("UNSUBSCRIBE none", vec![r#">["unsubscribe" "none" :2]"#]),
        ("UNSUBSCRIBE", vec![r#">["unsubscribe" "a" :1]"#]),
        ("UNSUBSCRIBE", vec![r#">["unsubscribe" nil :1]"#]),
        ("PUNSUBSCRIBE", vec![r#">["punsubscribe" "a*" :0]"#]),
        ("SUNSUBSCRIBE", vec![r#">["sunsubscribe" "s" :0]"#]),
    ] {
        connection.send(&encode_command(&line.split(' ').collect::<Vec<_>>()));
        for wanted in wanted {
            assert_eq!(format!("{:?}", connection.read_value()), wanted, "{line}");
        }
    }
}

#[test]
fn confirmations_and_messages_come_though_replies_are_off() {
    let server = Server::start();
    let mut publisher = server.connect();
    for hello in ["HELLO 2", "HELLO 3"] {
        let mut connection = server.connect();
        connection.line(hello);
        for words in [&["CLIENT", "REPLY", "OFF"][..], &["PING"], &["SUBSCRIBE", "a", "b"]] {
            connection.send(&encode_command(words));
        }
        for name in ["a", "b"] {
            assert_eq!(message(&mut connection)[..2], ["subscribe", name]);
        }
        assert_eq!(publisher.line("PUBLISH a m"), Value::Integer(1));
        assert_eq!(message(&mut connection), ["message", "a", "m"]);
        connection.send(&encode_command(&["UNSUBSCRIBE", "b"]));
        assert_eq!(message(&mut connection)[..2], ["unsubscribe", "b"]);
        drop(connection);
        wait_until("it has left", || publisher.line("PUBSUB CHANNELS") == Value::Array(vec![]));
    }
}

#[test]
fn several_channels_are_confirmed_one_by_one() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(&encode_command(&["SUBSCRIBE", "a", "b", "a"]));
    for count in [1, 2, 2] {
        assert_eq!(connection.read_value().elements()[2], Value::Integer(count));
    }
    connection.send(&encode_command(&["UNSUBSCRIBE"]));
    let mut names: Vec<String> = (0..2).map(|_| connection.read_value().elements()[1].text().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(connection.line("PING"), Value::Simple("PONG".to_owned()));
}

#[test]
fn a_message_reaches_subscribers_on_every_core_and_all_are_counted() {
    let server = Server::start();
    let mut subscribers: Vec<Connection> = Vec::new();
    for shard in [0, 1, 1] {
        subscribers.push(subscriber(&server, shard, "SUBSCRIBE", &["news", "sports"]));
    }
    let mut patterns = subscriber(&server, 0, "PSUBSCRIBE", &["n*", "[mn]ews", "x*"]);
    for shard in [0, 1] {
        let mut publisher = server.connect_to_shard(shard);
        assert_eq!(publisher.line("PUBLISH news hello"), Value::Integer(5), "three channels and two patterns");
        assert_eq!(publisher.line("PUBLISH sports goal"), Value::Integer(3));
        assert_eq!(publisher.line("PUBLISH other x"), Value::Integer(0));
        for subscriber in &mut subscribers {
            assert_eq!(message(subscriber), ["message", "news", "hello"]);
            assert_eq!(message(subscriber), ["message", "sports", "goal"]);
        }
        let mut both = [message(&mut patterns), message(&mut patterns)];
        both.sort();
        assert_eq!(both, [["pmessage", "[mn]ews", "news", "hello"], ["pmessage", "n*", "news", "hello"]]);
    }
    let mut connection = server.connect();
    check(
        &mut connection,
        r"
        PUBSUB CHANNELS => ?[news sports]
        PUBSUB CHANNELS n* => [news]
        PUBSUB NUMSUB news sports other => [news :3 sports :3 other :0]
        PUBSUB NUMPAT => :3
    ",
    );
    // Clients of a cluster add up what its nodes say.
    let mut shards = [server.connect_to_shard(0), server.connect_to_shard(1)];
    let _swimmer = subscriber(&server, 1, "SUBSCRIBE", &["swimming"]);
    check(
        &mut shards[0],
        r"
        PUBSUB CHANNELS => ?[news sports]
        PUBSUB NUMSUB news sports swimming => [news :1 sports :1 swimming :0]
        PUBSUB NUMPAT => :3
    ",
    );
    check(
        &mut shards[1],
        r"
        PUBSUB CHANNELS s* => ?[sports swimming]
        PUBSUB NUMSUB news sports swimming => [news :2 sports :2 swimming :1]
        PUBSUB NUMPAT => :0
    ",
    );
    let mut binary = subscriber(&server, 1, "SUBSCRIBE", &["bin"]);
    let payload: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    assert_eq!(connection.call(&[b"PUBLISH", &b"bin"[..], &payload]), Value::Integer(1));
    assert_eq!(binary.read_value().elements()[2].bytes(), payload);
}

#[test]
fn messages_of_one_publisher_arrive_in_its_order() {
    const MESSAGES: usize = 3_000;
    let server = Server::start();
    let mut subscribers: Vec<Connection> =
        [0, 1].into_iter().map(|shard| subscriber(&server, shard, "SUBSCRIBE", &["a", "b", "c"])).collect();
    subscribers.push(subscriber(&server, 1, "PSUBSCRIBE", &["?"]));
    let publishers: Vec<_> = [0, 1, 1]
        .into_iter()
        .enumerate()
        .map(|(publisher, shard)| {
            let mut connection = server.connect_to_shard(shard);
            thread::spawn(move || {
                for start in (0..MESSAGES).step_by(100) {
                    let lines: Vec<String> = (start..start + 100)
                        .map(|number| format!("PUBLISH {} {publisher}:{number}", ["a", "b", "c"][number % 3]))
                        .collect();
                    for reply in connection.pipeline(lines.iter().map(String::as_str)) {
                        assert_eq!(reply, Value::Integer(3));
                    }
                }
            })
        })
        .collect();
    for subscriber in &mut subscribers {
        let mut next: HashMap<String, usize> = HashMap::new();
        for _ in 0..MESSAGES * 3 {
            let words = message(subscriber);
            let (channel, payload) = (&words[words.len() - 2], &words[words.len() - 1]);
            let (publisher, number) = payload.split_once(':').expect("a publisher and a number");
            let expected = next.entry(publisher.to_owned()).or_default();
            assert_eq!(number, expected.to_string(), "of publisher {publisher}");
            assert_eq!(channel, ["a", "b", "c"][*expected % 3]);
            *expected += 1;
        }
    }
    for publisher in publishers {
        publisher.join().expect("a publisher");
    }
}

#[test]
fn a_subscriber_finds_what_was_written_before_the_message() {
    let server = Server::start();
    let mut publisher = server.connect();
    let mut subscriber = server.connect_to_shard(0);
    let mut readers = [server.connect_to_shard(0), server.connect_to_shard(1)];
    subscribe(&mut subscriber, "SUBSCRIBE", &["done"]);
    for round in 0..300 {
        let frames: Vec<u8> = (0..8)
            .flat_map(|key| encode_command(&["SET".to_owned(), format!("key:{key}"), round.to_string()]))
            .chain(encode_command(&["PUBLISH", "done", "x"]))
            .collect();
        publisher.send(&frames);
        message(&mut subscriber);
        for key in 0..8 {
            let key = format!("key:{key}");
            let values = readers.each_mut().map(|reader| reader.call(&["GET", &key]));
            let wanted = Value::Bulk(round.to_string().into_bytes());
            assert!(values.contains(&wanted), "round {round}, {key}: {values:?}");
        }
        for _ in 0..9 {
            publisher.read_value();
        }
    }
}

#[test]
fn messages_do_not_split_replies() {
    const ROUNDS: usize = 400;
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("HELLO 3");
    for index in 0..20 {
        connection.line(&format!("RPUSH list:{index} a b c d"));
    }
    connection.line("SUBSCRIBE ch");
    let publishers: Vec<_> = [0, 1]
        .into_iter()
        .map(|shard| {
            let mut publisher = server.connect_to_shard(shard);
            thread::spawn(move || {
                for number in 0..ROUNDS {
                    publisher.call(&["PUBLISH", "ch", &format!("{shard}:{number}")]);
                }
            })
        })
        .collect();
    let mut frames = Vec::new();
    for round in 0..ROUNDS {
        frames.extend(encode_command(&["LRANGE", &format!("list:{}", round % 20), "0", "-1"]));
        frames.extend(encode_command(&["DBSIZE"]));
        frames.extend(encode_command(&["ECHO", &round.to_string()]));
        frames.extend(encode_command(&["PUBLISH", "ch", &format!("self:{round}")]));
    }
    let mut sender = connection.sender();
    let writer = thread::spawn(move || sender.write_all(&frames).expect("send the requests"));
    let mut replies = Vec::new();
    let mut next: HashMap<String, usize> = HashMap::new();
    while replies.len() < ROUNDS * 4 || next.values().sum::<usize>() < ROUNDS * 3 {
        match connection.read_value() {
            Value::Push(words) => {
                let (publisher, number) = words[2].text().split_once(':').expect("a publisher and a number");
                let expected = next.entry(publisher.to_owned()).or_default();
                assert_eq!(number, expected.to_string(), "of publisher {publisher}");
                *expected += 1;
            }
            reply => replies.push(reply),
        }
    }
    for (round, replies) in replies.chunks(4).enumerate() {
        let wanted = format!(r#"[["a" "b" "c" "d"] :20 "{round}" :1]"#);
        assert_eq!(format!("{:?}", Value::Array(replies.to_vec())), wanted);
    }
    writer.join().expect("the writer");
    for publisher in publishers {
        publisher.join().expect("a publisher");
    }
}

#[test]
fn leaving_ends_all_subscriptions() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut leaving: Vec<Connection> = [0, 1, 0, 1, 0]
        .into_iter()
        .map(|shard| {
            let mut connection = subscriber(&server, shard, "SUBSCRIBE", &["ch", "other"]);
            subscribe(&mut connection, "PSUBSCRIBE", &["c*", "d*"]);
            connection
        })
        .collect();
    assert_eq!(connection.line("PUBLISH ch m"), Value::Integer(10));
    for subscriber in &mut leaving {
        message(subscriber);
        message(subscriber);
    }
    assert_eq!(server.info_number("pubsub_channels"), 2);
    assert_eq!(server.info_number("pubsub_patterns"), 2);
    assert_eq!(server.info_number("pubsub_clients"), 5);
    assert_eq!(leaving[0].line("RESET"), Value::Simple("RESET".to_owned()));
    assert_eq!(connection.line("PUBSUB NUMSUB ch").elements()[1], Value::Integer(4));
    assert_eq!(leaving[1].line("QUIT"), Value::Simple("OK".to_owned()));
    leaving[2].finish_sending();
    let id = connection.line("CLIENT LIST TYPE pubsub").text().lines().count();
    assert!((2..=4).contains(&id));
    leaving.truncate(4);
    wait_until("one of them is left", || connection.line("PUBSUB NUMSUB ch").elements()[1] == Value::Integer(1));
    drop(leaving);
    wait_until("all have left", || connection.line("PUBSUB CHANNELS") == Value::Array(vec![]));
    assert_eq!(connection.line("PUBSUB NUMPAT"), Value::Integer(0));
    assert_eq!(connection.line("PUBLISH ch m"), Value::Integer(0));
    assert_eq!(server.info_number("pubsub_clients"), 0);
}

#[test]
fn shard_channels_follow_slots() {
    let server = Server::start();
    // CLUSTER KEYSLOT a is 15495, of b 3300.
    let mut shards = [server.connect_to_shard(0), server.connect_to_shard(1)];
    let moved = |slot: u16, shard: u16| Value::Error(format!("MOVED {slot} 127.0.0.1:{}", server.shard_port(shard)));
    for command in [&["SSUBSCRIBE", "a"][..], &["SUNSUBSCRIBE", "a"], &["SPUBLISH", "a", "m"]] {
        assert_eq!(shards[0].call(command), moved(15495, 1));
    }
    assert_eq!(shards[1].line("SSUBSCRIBE b"), moved(3300, 0));
    let mut shared = server.connect();
    let cross_slot = "CROSSSLOT Keys in request don't hash to the same slot";
    assert_eq!(shared.line("SSUBSCRIBE a b").error(), cross_slot);
    assert_eq!(shards[0].line("SSUBSCRIBE a b").error(), cross_slot);
    subscribe(&mut shards[1], "SSUBSCRIBE", &["a", "{a}x"]);
    // A subscriber of one slot may have another beside it.
    subscribe(&mut shared, "SSUBSCRIBE", &["a"]);
    subscribe(&mut shared, "SSUBSCRIBE", &["b"]);
    let mut connection = server.connect();
    assert_eq!(connection.line("PUBLISH a m"), Value::Integer(0), "a channel of this name is another one");
    assert_eq!(connection.line("SPUBLISH a one"), Value::Integer(2));
    assert_eq!(connection.line("SPUBLISH b two"), Value::Integer(1));
    assert_eq!(server.connect_to_shard(1).line("SPUBLISH a three"), Value::Integer(2));
    for wanted in [["smessage", "a", "one"], ["smessage", "b", "two"], ["smessage", "a", "three"]] {
        assert_eq!(message(&mut shared), wanted);
    }
    assert_eq!(message(&mut shards[1]), ["smessage", "a", "one"]);
    assert_eq!(message(&mut shards[1]), ["smessage", "a", "three"]);
    check(
        &mut connection,
        r"
        PUBSUB SHARDCHANNELS => ?[a b {a}x]
        PUBSUB SHARDCHANNELS ? => ?[a b]
        PUBSUB SHARDNUMSUB a b c => [a :2 b :1 c :0]
        PUBSUB CHANNELS => []
    ",
    );
    check(
        &mut server.connect_to_shard(0),
        r"
        PUBSUB SHARDCHANNELS => [b]
        PUBSUB SHARDNUMSUB a b c => [a :0 b :1 c :0]
    ",
    );
    check(
        &mut server.connect_to_shard(1),
        r"
        PUBSUB SHARDCHANNELS => ?[a {a}x]
        PUBSUB SHARDNUMSUB a b => [a :2 b :0]
    ",
    );
    assert_eq!(server.info_number("pubsubshard_channels"), 3);
}

#[test]
fn clients_can_be_told_by_their_subscriptions() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut first = subscriber(&server, 0, "SUBSCRIBE", &["a", "b"]);
    subscribe(&mut first, "PSUBSCRIBE", &["*"]);
    let mut second = server.connect_to_shard(1);
    subscribe(&mut second, "SSUBSCRIBE", &["a"]);
    let list = connection.line("CLIENT LIST TYPE pubsub");
    let lines: Vec<&str> = list.text().lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains(" flags=P db=0 sub=2 psub=1 ssub=0 "), "{lines:?}");
    assert!(lines[1].contains(" flags=P db=0 sub=0 psub=0 ssub=1 "), "{lines:?}");
    assert_eq!(connection.line("CLIENT LIST TYPE normal").text().lines().count(), 1);
    connection.line("CONFIG SET timeout 1");
    let mut idle = server.connect();
    idle.expect_close();
    let mut connection = server.connect();
    connection.line("CONFIG SET timeout 0");
    assert_eq!(connection.line("PUBLISH a still-here"), Value::Integer(2));
    assert_eq!(connection.line("CLIENT KILL TYPE pubsub"), Value::Integer(2));
    message(&mut first);
    message(&mut first);
    first.expect_close();
    second.expect_close();
    assert_eq!(connection.line("PUBSUB NUMPAT"), Value::Integer(0));
}

#[test]
fn a_subscriber_that_does_not_read_is_let_go_at_the_hard_limit() {
    const MESSAGES: usize = 200;
    let server = Server::start();
    let mut connection = server.connect_to_shard(0);
    assert_eq!(connection.call(&["CONFIG", "SET", LIMITS, "pubsub 1mb 0 0"]), Value::Simple("OK".to_owned()));
    let _slow = [subscriber(&server, 0, "SUBSCRIBE", &["ch"]), subscriber(&server, 1, "SUBSCRIBE", &["ch"])];
    let mut quick = subscriber(&server, 1, "SUBSCRIBE", &["ch"]);
    let payload = vec![b'x'; 100_000];
    for _ in 0..MESSAGES {
        connection.call(&[b"PUBLISH", &b"ch"[..], &payload]);
        assert_eq!(quick.read_value().elements()[2].bytes(), payload);
    }
    assert_eq!(server.connect().line("PUBSUB NUMSUB ch").elements()[1], Value::Integer(1));
    assert_eq!(server.info_number("client_output_buffer_limit_disconnections"), 2);
}

#[test]
fn a_subscriber_that_does_not_read_is_let_go_at_the_soft_limit() {
    let server = Server::start();
    let mut connection = server.connect();
    assert_eq!(connection.call(&["CONFIG", "SET", LIMITS, "pubsub 0 100kb 1"]), Value::Simple("OK".to_owned()));
    let _slow = subscriber(&server, 1, "SUBSCRIBE", &["ch"]);
    let payload = vec![b'x'; 10 << 20];
    assert_eq!(connection.call(&[b"PUBLISH", &b"ch"[..], &payload]), Value::Integer(1));
    wait_until("the subscriber is gone", || connection.line("PUBLISH ch m") == Value::Integer(0));
    assert_eq!(server.info_number("client_output_buffer_limit_disconnections"), 1);
}

#[test]
fn a_subscriber_reads_late_and_misses_nothing() {
    const MESSAGES: usize = 2_000;
    let server = Server::start();
    let mut publisher = server.connect_to_shard(0);
    let mut late = subscriber(&server, 1, "SUBSCRIBE", &["ch"]);
    let payload = "x".repeat(5_000);
    for start in (0..MESSAGES).step_by(50) {
        let lines: Vec<String> = (start..start + 50).map(|number| format!("PUBLISH ch {number}:{payload}")).collect();
        publisher.pipeline(lines.iter().map(String::as_str));
    }
    for number in 0..MESSAGES {
        assert_eq!(message(&mut late)[2], format!("{number}:{payload}"));
    }
}

#[test]
fn many_subscriptions_come_and_go() {
    let server = Server::start();
    let mut connection = server.connect();
    let names: Vec<String> = (0..2_000).map(|index| format!("channel:{index}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut subscribers: Vec<Connection> =
        (0..10).map(|index| subscriber(&server, index % 2, "SUBSCRIBE", &names)).collect();
    assert_eq!(server.info_number("pubsub_channels"), 2_000);
    assert_eq!(connection.line("PUBLISH channel:77 m"), Value::Integer(10));
    for subscriber in &mut subscribers {
        assert_eq!(message(subscriber)[1], "channel:77");
        subscriber.send(&encode_command(&["UNSUBSCRIBE"]));
        let mut left: HashSet<&str> = names.iter().copied().collect();
        for count in (0..2_000).rev() {
            let confirmed = subscriber.read_value();
            assert_eq!(confirmed.elements()[2], Value::Integer(count));
            assert!(left.remove(confirmed.elements()[1].text()), "{confirmed:?} twice");
        }
    }
    assert_eq!(server.info_number("pubsub_channels"), 0);
}
