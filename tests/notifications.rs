//! Keyspace notifications: the events that Redis publishes, in its order, to subscribers on every core.

use crate::differential::{Generator, number_from_environment};
use crate::support::{Connection, Server, Value, encode_command, replies, wait_until};
use std::collections::BTreeMap;

const BATCH: usize = 40;

/// Subscribes to everything about keys.
fn observer(server: &Server, shard: u16) -> Connection {
    let mut observer = server.connect_to_shard(shard);
    observer.line("PSUBSCRIBE __key*");
    observer
}

/// The channel, without its prefix, and the payload of the next message.
fn next_event(observer: &mut Connection) -> (String, String) {
    let message = observer.read_value();
    let [kind, _, channel, payload] = message.elements() else { panic!("no message: {message:?}") };
    assert_eq!(kind.text(), "pmessage");
    let text = |value: &Value| value.bytes().escape_ascii().to_string();
    (text(channel).trim_start_matches("__key").to_owned(), text(payload))
}

/// The events up to the one that says that `mark` was set, as `event key` by the channels of events.
fn events_until(observer: &mut Connection, mark: &str) -> Vec<String> {
    let mut events = Vec::new();
    loop {
        let (channel, payload) = next_event(observer);
        if channel == "event@0__:set" && payload == mark {
            return events;
        }
        if let Some(event) = channel.strip_prefix("event@") {
            events.push(format!("{} {payload}", event.replace("__:", " ")));
        }
    }
}

#[test]
fn random_commands_publish_the_events_of_redis() {
    let Some(redis) = Server::start_redis(&[]) else {
        println!("skipped: no redis-server on PATH to compare with");
        return;
    };
    let server = Server::start();
    let commands = number_from_environment("RUVIO_DIFFERENTIAL_COMMANDS").unwrap_or(20_000) as usize;
    let seed = number_from_environment("RUVIO_DIFFERENTIAL_SEED").unwrap_or_else(rand::random);
    let mut generator = Generator::new(seed);
    let mut connections = [server.connect(), redis.connect()];
    let mut observers = [server.connect(), redis.connect()];
    for (connection, observer) in connections.iter_mut().zip(&mut observers) {
        assert_eq!(connection.line("CONFIG SET notify-keyspace-events KEAmn"), Value::Simple("OK".to_owned()));
        observer.line("PSUBSCRIBE __key*");
    }
    // The first of each command.
    let mut differences: BTreeMap<String, String> = BTreeMap::new();
    for start in (0..commands).step_by(BATCH) {
        let mut frames = Vec::new();
        let mut shown = Vec::new();
        let mut tags = Vec::new();
        for number in start..start + BATCH {
            let (words, _) = generator.command();
            frames.extend(encode_command(&words));
            // In the command's slot, so that its event comes behind those of the command.
            frames.extend(encode_command(&[
                "SETRANGE",
                &format!("{{{}}}mark", generator.tag),
                "0",
                &number.to_string(),
            ]));
            let words: Vec<String> = words.iter().map(|word| format!("\"{}\"", word.escape_ascii())).collect();
            shown.push(words.join(" "));
            tags.push(generator.tag);
        }
        let [ours, theirs] = [0, 1].map(|side| {
            connections[side].send(&frames);
            let replies: Vec<Value> = (0..BATCH * 2).map(|_| connections[side].read_value()).collect();
            (events_by_tag(&mut observers[side]), replies)
        });
        for (tag, our_events) in &ours.0 {
            let places = (0..BATCH).filter(|&place| tags[place] == *tag);
            for (place, (ours_here, theirs_here)) in places.zip(our_events.iter().zip(&theirs.0[tag])) {
                let (command, reply) = (&shown[place], &ours.1[place * 2]);
                // What is looked up for the members of a set is looked up in no order.
                let in_any_order = command.starts_with("\"SORT");
                let sorted = |events: &Vec<(String, String)>| {
                    let mut events = events.clone();
                    events.sort();
                    events
                };
                if ours_here != theirs_here && !(in_any_order && sorted(ours_here) == sorted(theirs_here)) {
                    let name = command.split(' ').next().unwrap_or_default().to_owned();
                    differences.entry(name).or_insert_with(|| {
                        format!("{command} ({reply:?})\n  ours:    {ours_here:?}\n  Redis's: {theirs_here:?}")
                    });
                }
            }
        }
        assert_eq!(ours.0.len(), theirs.0.len());
    }
    let differences: Vec<String> = differences.into_values().collect();
    assert!(differences.is_empty(), "seed {seed}:\n{}", differences.join("\n"));
}

/// What was published of a batch of commands, command by command for each tag. Only what concerns one slot has an order.
fn events_by_tag(observer: &mut Connection) -> BTreeMap<u32, Vec<Vec<(String, String)>>> {
    let mut all: BTreeMap<u32, Vec<Vec<(String, String)>>> = BTreeMap::new();
    let mut marks = 0;
    while marks < BATCH {
        let (channel, payload) = next_event(observer);
        let key = if channel.starts_with("space") { &channel } else { &payload };
        let (_, rest) = key.split_once('{').unwrap_or_else(|| panic!("a tag in {channel} or {payload}"));
        let (tag, name) = rest.split_once('}').expect("the tag's end");
        let commands = all.entry(tag.parse().expect("a number")).or_insert_with(|| vec![Vec::new()]);
        if name != "mark" {
            commands.last_mut().expect("one at least").push((channel, payload));
        } else if channel.ends_with("__:setrange") {
            commands.push(Vec::new());
            marks += 1;
        }
    }
    all
}

#[test]
fn a_change_on_any_core_reaches_observers_on_every_core() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("CONFIG SET notify-keyspace-events KEA");
    let mut observers = [observer(&server, 0), observer(&server, 1)];
    let mut named = server.connect_to_shard(1);
    named.line("SUBSCRIBE __keyspace@3__:key:7 __keyevent@3__:del");
    assert_eq!(named.read_value().elements()[2], Value::Integer(2));
    connection.line("SELECT 3");
    for index in 0..20 {
        connection.line(&format!("SET key:{index} v"));
    }
    connection.line("DEL key:7");
    for observer in &mut observers {
        for index in 0..20 {
            let key = format!("key:{index}");
            assert_eq!(next_event(observer), (format!("space@3__:{key}"), "set".to_owned()));
            assert_eq!(next_event(observer), ("event@3__:set".to_owned(), key));
        }
        assert_eq!(next_event(observer), ("space@3__:key:7".to_owned(), "del".to_owned()));
        assert_eq!(next_event(observer), ("event@3__:del".to_owned(), "key:7".to_owned()));
    }
    for wanted in [
        r#"["message" "__keyspace@3__:key:7" "set"]"#,
        r#"["message" "__keyspace@3__:key:7" "del"]"#,
        r#"["message" "__keyevent@3__:del" "key:7"]"#,
    ] {
        assert_eq!(format!("{:?}", named.read_value()), wanted);
    }
}

#[test]
fn an_event_is_published_before_the_reply_is_seen() {
    let server = Server::start();
    server.connect().line("CONFIG SET notify-keyspace-events KA");
    let mut observer = observer(&server, 0);
    observer.line("SUBSCRIBE mark");
    let mut writers = [server.connect_to_shard(0), server.connect_to_shard(1)];
    let mut publisher = server.connect_to_shard(0);
    let mut shared = [server.connect(), server.connect()];
    // One key on each shard.
    let keys = ["a", "b"].map(|key| {
        let owner = usize::from(writers[0].call(&["GET", key]) != Value::Null);
        (owner, key)
    });
    for round in 0..200 {
        let (owner, key) = keys[round % 2];
        let writer = if round % 4 < 2 { &mut writers[owner] } else { &mut shared[round % 2] };
        assert_eq!(writer.call(&["SET", key, "v"]), Value::Simple("OK".to_owned()));
        publisher.call(&["PUBLISH", "mark", "m"]);
        assert_eq!(next_event(&mut observer), (format!("space@0__:{key}"), "set".to_owned()));
        assert_eq!(observer.read_value().elements()[0].text(), "message");
    }
}

#[test]
fn who_changes_a_key_and_observes_it_gets_the_reply_first() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("CONFIG SET notify-keyspace-events K$");
    connection.line("HELLO 3");
    connection.line("PSUBSCRIBE __key*");
    for index in 0..50 {
        let key = format!("key:{index}");
        assert_eq!(connection.call(&["SET", &key, "v"]), Value::Simple("OK".to_owned()));
        let pushed = format!(r#">["pmessage" "__key*" "__keyspace@0__:{key}" "set"]"#);
        assert_eq!(format!("{:?}", connection.read_value()), pushed);
    }
}

#[test]
fn only_the_classes_asked_for_are_published() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut observer = observer(&server, 0);
    for (classes, wanted) in [
        ("Eg", vec!["0 expire {t}s", "0 del {t}s"]),
        ("E$", vec!["0 set {t}s"]),
        ("El", vec!["0 rpush {t}l"]),
        ("Es", vec!["0 sadd {t}set"]),
        ("Eh", vec!["0 hset {t}h"]),
        ("Ez", vec!["0 zadd {t}z"]),
        ("Em", vec!["0 keymiss {t}none"]),
        ("En", vec!["0 new {t}s", "0 new {t}l", "0 new {t}set", "0 new {t}h", "0 new {t}z"]),
        ("Eet", vec![]),
        ("A", vec![]),
    ] {
        connection.call(&["CONFIG", "SET", "notify-keyspace-events", ""]);
        connection.line("FLUSHALL");
        connection.call(&["CONFIG", "SET", "notify-keyspace-events", classes]);
        for line in [
            "SET {t}s v",
            "EXPIRE {t}s 100",
            "DEL {t}s",
            "RPUSH {t}l a",
            "SADD {t}set a",
            "HSET {t}h f v",
            "ZADD {t}z 1 a",
            "GET {t}none",
        ] {
            connection.line(line);
        }
        connection.line("CONFIG SET notify-keyspace-events E$");
        connection.line("SET {t}mark v");
        assert_eq!(events_until(&mut observer, "{t}mark"), wanted, "{classes}");
    }
}

#[test]
fn what_goes_by_itself_is_published() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("CONFIG SET notify-keyspace-events Exe");
    let mut observer = observer(&server, 1);
    let keys: Vec<String> = (0..20).map(|index| format!("key:{index}")).collect();
    for key in &keys {
        connection.call(&["SET", key, "v", "PX", "20"]);
    }
    let mut expired: Vec<(String, String)> = keys.iter().map(|_| next_event(&mut observer)).collect();
    expired.sort();
    let mut wanted: Vec<(String, String)> =
        keys.iter().map(|key| ("event@0__:expired".to_owned(), key.clone())).collect();
    wanted.sort();
    assert_eq!(expired, wanted, "nobody asked for the keys");
    connection.line("SELECT 2");
    connection.line("SET doomed v");
    connection.line("CONFIG SET maxmemory-policy allkeys-random maxmemory 1");
    assert_eq!(next_event(&mut observer), ("event@2__:evicted".to_owned(), "doomed".to_owned()));
    wait_until("the evicted key is gone", || connection.line("DBSIZE") == Value::Integer(0));
}

#[test]
fn native_commands_publish_the_events_that_are_documented() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut observer = observer(&server, 0);
    connection.line("CONFIG SET notify-keyspace-events EA");
    for line in [
        "SET {t}a 50",
        "HSET {t}h a 50",
        "ZADD {t}due 1 x 2 y 3 z",
        "SETV {t}v one",
        "SET {t}old same",
        "SET {t}mark v",
    ] {
        connection.line(line);
    }
    events_until(&mut observer, "{t}mark");
    for (line, wanted) in [
        ("TRANSFER {t}a {t}b 20", vec!["0 incrby {t}a", "0 incrby {t}b"]),
        ("TRANSFER {t}a {t}b 999", vec![]),
        ("HTRANSFER {t}h a b 20", vec!["0 hincrby {t}h"]),
        ("HTRANSFER {t}h a b 999", vec![]),
        ("TAKE {t}a 5", vec!["0 incrby {t}a"]),
        ("TAKE {t}a 999", vec![]),
        ("INCRBY {t}a 1 MAX 3", vec![]),
        ("INCR {t}new EX 100", vec!["0 incrby {t}new", "0 expire {t}new"]),
        ("INCR {t}new EX 100", vec!["0 incrby {t}new"]),
        ("HINCRBY {t}hnew f 1 EX 100", vec!["0 hincrby {t}hnew", "0 expire {t}hnew"]),
        ("ZINCRBY {t}znew 1 m EX 100", vec!["0 zincr {t}znew", "0 expire {t}znew"]),
        ("SET {t}a 99 IFGT EX 100", vec!["0 set {t}a", "0 expire {t}a"]),
        ("SET {t}a 1 IFGT", vec![]),
        ("SET {t}old new IFEQ same", vec!["0 set {t}old"]),
        ("DELIFEQ {t}old same", vec![]),
        ("DELIFEQ {t}old new", vec!["0 del {t}old"]),
        ("LIMIT {t}l 2 60000", vec!["0 limit {t}l"]),
        ("LIMIT {t}l 2 60000 COST 0", vec![]),
        ("LIMIT {t}l 2 60000 COST 2", vec![]),
        ("ZPOPBYSCORE {t}due 1", vec!["0 zpopbyscore {t}due"]),
        ("ZMOVEDUE {t}due {t}ready 2", vec!["0 zrem {t}due", "0 rpush {t}ready"]),
        ("ZMOVEDUE {t}due {t}ready 2", vec![]),
        ("ZPOPBYSCORE {t}due 3", vec!["0 zpopbyscore {t}due", "0 del {t}due"]),
        ("SETV {t}v two 1", vec!["0 set {t}v"]),
        ("SETV {t}v three 1", vec![]),
        ("GETV {t}v", vec![]),
    ] {
        connection.line(line);
        connection.line("SET {t}mark v");
        assert_eq!(events_until(&mut observer, "{t}mark"), wanted, "{line}");
    }
}

#[test]
fn the_flags_are_shown_as_redis_shows_them() {
    replies(
        r#"
        CONFIG GET notify-keyspace-events => [notify-keyspace-events ""]
        CONFIG SET notify-keyspace-events Kxq => -ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid event class character. Use 'Ag$lshzxeKEtmdn'.
        CONFIG SET notify-keyspace-events KE$lshzxegtdm => OK
        CONFIG GET notify-keyspace-events => [notify-keyspace-events AKEm]
        CONFIG SET notify-keyspace-events gKE => OK
        CONFIG GET notify-keyspace-events => [notify-keyspace-events gKE]
        CONFIG SET notify-keyspace-events "" => OK
        CONFIG GET notify-keyspace-events => [notify-keyspace-events ""]
    "#,
    );
}
