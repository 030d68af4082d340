//! The shared port of a server with two shards: commands go to the owner of their key, replies come back in order.

use crate::support::{Options, Server, Value, encode_command};
use std::collections::BTreeSet;
use std::thread;

#[test]
fn replies_come_in_the_order_of_requests_whatever_shard_answers() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut frames = Vec::new();
    let mut expected = Vec::new();
    let mut request = |words: &[&str], reply: String| {
        frames.extend(encode_command(words));
        expected.push(reply);
    };
    for index in 0..2_000 {
        let key = format!("key:{index}");
        request(&["SET", &key, &index.to_string()], "+OK".to_owned());
        match index % 9 {
            0 => request(&["DBSIZE"], format!(":{}", index + 1)),
            1 => request(&["ECHO", &key], format!("\"{key}\"")),
            2 => request(&["PING"], "+PONG".to_owned()),
            3 => request(&["GET", "key:0"], "\"0\"".to_owned()),
            4 => request(
                &["LPUSH", &key, "x"],
                "-WRONGTYPE Operation against a key holding the wrong kind of value".to_owned(),
            ),
            5 => request(&["NOSUCH"], "-ERR unknown command 'NOSUCH', with args beginning with: ".to_owned()),
            6 => request(&["MGET", "a", "b"], "-CROSSSLOT Keys in request don't hash to the same slot".to_owned()),
            7 => request(&["MGET", &key, &format!("{{{key}}}none")], format!("[\"{index}\" nil]")),
            _ => request(&["KEYS", &key], format!("[\"{key}\"]")),
        }
        request(&["GET", &key], format!("\"{index}\""));
    }
    let mut sender = connection.sender();
    let writer = thread::spawn(move || std::io::Write::write_all(&mut sender, &frames).expect("send the pipeline"));
    for (position, expected) in expected.iter().enumerate() {
        assert_eq!(&format!("{:?}", connection.read_value()), expected, "reply {position}");
    }
    writer.join().expect("the sender");
}

#[test]
fn whole_process_commands_keep_their_place_in_a_pipeline() {
    let server = Server::start();
    let mut connection = server.connect();
    for round in 0..50 {
        let mut lines: Vec<String> = (0..20).map(|index| format!("SET key:{index} {round}")).collect();
        lines.push("DBSIZE".to_owned());
        lines.push("FLUSHALL".to_owned());
        lines.push("DBSIZE".to_owned());
        lines.extend((0..20).map(|index| format!("GET key:{index}")));
        lines.extend((0..5).map(|index| format!("SET late:{index} v")));
        lines.push("DBSIZE".to_owned());
        lines.push("FLUSHDB".to_owned());
        let replies = connection.pipeline(lines.iter().map(String::as_str));
        assert_eq!(replies[20], Value::Integer(20), "all writes before are counted");
        assert_eq!(replies[22], Value::Integer(0));
        assert!(replies[23..43].iter().all(Value::is_null), "nothing from before the flush is left");
        assert_eq!(replies[48], Value::Integer(5));
    }
}

#[test]
fn the_database_of_a_connection_goes_with_its_commands() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut lines = Vec::new();
    for database in 0..16 {
        lines.push(format!("SELECT {database}"));
        lines.extend((0..10).map(|index| format!("SET key:{index} {database}:{index}")));
    }
    for database in 0..16 {
        lines.push(format!("SELECT {database}"));
        lines.extend((0..10).map(|index| format!("GET key:{index}")));
        lines.push("DBSIZE".to_owned());
    }
    let replies = connection.pipeline(lines.iter().map(String::as_str));
    for (database, replies) in replies[16 * 11..].chunks(12).enumerate() {
        for (index, value) in replies[1..11].iter().enumerate() {
            assert_eq!(value.text(), format!("{database}:{index}"));
        }
        assert_eq!(replies[11], Value::Integer(10));
    }
}

#[test]
fn concurrent_increments_are_all_counted() {
    let server = Server::start();
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let mut connection = server.connect();
            thread::spawn(move || {
                for round in 0..50 {
                    let keys: Vec<String> = (0..20).map(|key| format!("INCR counter:{key}")).collect();
                    let before = format!("SET own:{worker} {round}");
                    let after = format!("GET own:{worker}");
                    let lines = [before.as_str()].into_iter().chain(keys.iter().map(String::as_str)).chain([&*after]);
                    let replies = connection.pipeline(lines);
                    assert_eq!(replies[21].text(), round.to_string(), "a connection reads its own writes");
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("a worker");
    }
    let mut connection = server.connect();
    for key in 0..20 {
        assert_eq!(connection.line(&format!("GET counter:{key}")).text(), "400");
    }
}

#[test]
fn forwarded_commands_are_counted() {
    let server = Server::start();
    let mut connection = server.connect();
    let keys: Vec<String> = (0..300).map(|index| format!("key:{index}")).collect();
    let mut other_port = server.connect_to_shard(0);
    let owned = keys.iter().filter(|key| !matches!(other_port.line(&format!("GET {key}")), Value::Error(_))).count();
    let before = server.info_number("forwarded_commands");
    for key in &keys {
        connection.line(&format!("SET {key} v"));
    }
    let forwarded = usize::try_from(server.info_number("forwarded_commands") - before).expect("a count");
    // Which core took the connection is not known: what it does not own is forwarded.
    assert!(forwarded == owned || forwarded == 300 - owned, "{forwarded} of 300, {owned} on the first shard");
}

#[test]
fn one_shard_forwards_nothing() {
    let server = Server::with(&Options { shards: 1, ..Options::default() });
    let mut connection = server.connect();
    for index in 0..100 {
        connection.line(&format!("SET key:{index} v"));
    }
    connection.line("DBSIZE");
    assert_eq!(server.info_number("forwarded_commands"), 0);
}

#[test]
fn large_values_are_forwarded_whole() {
    let server = Server::start();
    let mut connection = server.connect();
    for index in 0..6 {
        let key = format!("large:{index}");
        let value: Vec<u8> = (0..5_000_000_u32).map(|at| (at.wrapping_mul(index + 3) >> 5) as u8).collect();
        assert_eq!(connection.call(&[b"SET".as_slice(), key.as_bytes(), &value]), Value::Simple("OK".to_owned()));
        assert!(connection.line(&format!("GET {key}")).bytes() == value, "{key} came back changed");
    }
}

#[test]
fn a_client_that_leaves_with_forwarded_commands_under_way_disturbs_nobody() {
    let server = Server::start();
    for round in 0..100 {
        let mut leaving = server.connect();
        for index in 0..50 {
            leaving.send(&encode_command(&["SET", &format!("key:{index}"), &round.to_string()]));
        }
    }
    // What the others sent may still be under way: their keys are theirs.
    let mut connection = server.connect();
    for index in 0..50 {
        connection.line(&format!("SET mine:{index} last"));
        assert_eq!(connection.line(&format!("STRLEN mine:{index}")).integer(), 4);
    }
    for index in 0..50 {
        if let Value::Bulk(value) = connection.line(&format!("GET key:{index}")) {
            let round: u32 = std::str::from_utf8(&value).unwrap().parse().unwrap();
            assert!(round < 100, "a value that nobody set");
        }
    }
}

#[test]
fn a_scan_goes_on_over_any_connection() {
    let server = Server::start();
    let mut connection = server.connect();
    let keys: BTreeSet<String> = (0..2_000).map(|index| format!("key:{index}")).collect();
    for key in &keys {
        connection.line(&format!("SET {key} v"));
    }
    let mut found = Vec::new();
    let mut cursor = "0".to_owned();
    for round in 0_u16.. {
        assert!(round < 5_000, "SCAN does not come to an end");
        let mut connection = match round % 3 {
            0 => server.connect(),
            shard => server.connect_to_shard(shard - 1),
        };
        let reply = connection.call(&["SCAN", &cursor, "COUNT", "30"]);
        found.extend(reply.elements()[1].elements().iter().map(|key| key.text().to_owned()));
        cursor = reply.elements()[0].text().to_owned();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(found.len(), 2_000, "no key twice while none moves");
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), keys);
}

#[test]
fn swapdb_and_randomkey_reach_every_shard() {
    let server = Server::start();
    let mut connection = server.connect();
    for index in 0..100 {
        connection.line(&format!("SET key:{index} v"));
    }
    assert_eq!(connection.line("SWAPDB 0 9"), Value::Simple("OK".to_owned()));
    assert_eq!(connection.line("DBSIZE"), Value::Integer(0));
    assert_eq!(connection.line("RANDOMKEY"), Value::Null);
    connection.line("SELECT 9");
    assert_eq!(connection.line("DBSIZE"), Value::Integer(100));
    let seen: BTreeSet<Value> = (0..2_000).map(|_| connection.line("RANDOMKEY")).collect();
    assert_eq!(seen.len(), 100, "every key of both shards can be picked");
}

#[test]
fn config_reaches_every_shard() {
    let server = Server::start();
    for shard in 0..2 {
        let mut connection = server.connect_to_shard(shard);
        connection.line(&format!("CONFIG SET hash-max-listpack-entries {}", 3 + shard));
        for other in 0..2 {
            let reply = server.connect_to_shard(other).line("CONFIG GET hash-max-listpack-entries");
            assert_eq!(reply.field("hash-max-listpack-entries").text(), (3 + shard).to_string());
        }
    }
    let mut connection = server.connect();
    for index in 0..20 {
        connection.line(&format!("HSET hash:{index} a 1 b 2 c 3 d 4"));
        assert_eq!(connection.line(&format!("OBJECT ENCODING hash:{index}")).text(), "listpack");
        connection.line(&format!("HSET hash:{index} e 5"));
        assert_eq!(connection.line(&format!("OBJECT ENCODING hash:{index}")).text(), "hashtable");
    }
}

#[test]
fn client_list_and_kill_reach_connections_of_every_core() {
    let server = Server::start();
    let mut others: Vec<_> = (0..2).map(|shard| server.connect_to_shard(shard)).collect();
    let ids: Vec<i64> = others.iter_mut().map(|other| other.line("CLIENT ID").integer()).collect();
    assert_ne!(ids[0], ids[1], "numbers of connections are unique over the process");
    let mut connection = server.connect();
    let list = connection.line("CLIENT LIST");
    assert_eq!(list.text().lines().count(), 3);
    for (other, id) in others.iter_mut().zip(ids) {
        assert_eq!(connection.line(&format!("CLIENT KILL ID {id}")), Value::Integer(1));
        other.expect_close();
    }
}

#[test]
fn readers_that_never_read_are_bounded_in_memory_whichever_core_has_the_value() {
    let server = Server::start();
    let mut connection = server.connect();
    let value = "v".repeat(400_000);
    connection.call(&["SET", "large", &value]);
    let gets = encode_command(&["GET", "large"]).repeat(4_000);
    // One comes by way of the core that owns the key, and one by way of the other.
    let mut readers: Vec<_> = (0..2).map(|_| server.connect()).collect();
    readers.iter_mut().for_each(|reader| reader.send(&gets));
    // What comes behind it in a core's inbox is answered after it.
    for _ in 0..4 {
        let mut other = server.connect();
        assert_eq!(other.line("STRLEN large"), Value::Integer(400_000));
    }
    let peak = server.info_number("used_memory_peak").max(server.info_number("used_memory"));
    assert!(peak < 1_200_000_000, "{peak} bytes for readers that ask for 1,600,000,000 each");
    // Whoever reads gets what it asked for.
    let mut reader = readers.pop().unwrap();
    for _ in 0..1_000 {
        assert_eq!(reader.read_value().bytes().len(), 400_000);
    }
}
