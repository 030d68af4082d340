//! Values move between this server and Redis as bytes, both ways.

use crate::support::{Connection, Server, Value};

/// A value of every type in small and large, as the words that make it.
fn values() -> Vec<Vec<Vec<u8>>> {
    let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    let many = |name: &str, count: usize, part: &dyn Fn(usize) -> String| {
        words(&format!("{name} key {}", (0..count).map(part).collect::<Vec<_>>().join(" ")))
    };
    let long = "long".repeat(50);
    let mut values: Vec<Vec<Vec<u8>>> = [
        "SET key text",
        "SET key 12",
        "SET key -1234567",
        "SET key 123456789012345",
        "RPUSH key a 1 -70000 5000000000 b",
        "HSET key field value number 12",
        "SADD key 1 -2 30000",
        "SADD key 1 70000",
        "SADD key 1 5000000000",
        "SADD key a b 12",
        "ZADD key 1 a 2.5 b -inf c inf d 1e300 e 3.141592653589793 f",
    ]
    .into_iter()
    .map(words)
    .collect();
    values.push(vec![b"SET".to_vec(), b"key".to_vec(), (0..=255).collect()]);
    values.push(words(&format!("SET key {}", "repeated".repeat(1_000))));
    values.push(many("RPUSH", 5_000, &|index| format!("element-{index}")));
    values.push(many("RPUSH", 3, &|index| "x".repeat(20_000 + index)));
    values.push(many("HSET", 1_000, &|index| format!("field-{index} {index}")));
    values.push(words(&format!("HSET key f {long} {long} g")));
    values.push(many("SADD", 1_000, &|index| index.to_string()));
    values.push(many("SADD", 1_000, &|index| format!("member-{index}")));
    values.push(many("ZADD", 1_000, &|index| format!("{} member-{index}", index as f64 / 8.0)));
    values
}

/// The value of a key, whatever its type.
fn content(connection: &mut Connection, key: &str) -> Value {
    match connection.call(&["TYPE", key]).text() {
        "string" => connection.call(&["GET", key]),
        "list" => connection.call(&["LRANGE", key, "0", "-1"]),
        "set" => connection.call(&["SMEMBERS", key]).sorted(),
        "hash" => connection.call(&["HGETALL", key]).sorted_pairs(),
        _ => {
            // Redis 7.0 shows 17 digits of a score, and later versions the fewest: compared by value.
            let members = connection.call(&["ZRANGE", key, "0", "-1", "WITHSCORES"]);
            let shown = members.elements().chunks(2).map(|pair| {
                let score: f64 = pair[1].text().parse().expect("a score");
                Value::Bulk(format!("{} {score:e}", pair[0].text()).into_bytes())
            });
            Value::Array(shown.collect())
        }
    }
}

#[track_caller]
fn check_move(from: &mut Connection, to: &mut Connection) {
    for value in values() {
        from.line("DEL key");
        from.call(&value);
        let payload = from.line("DUMP key");
        let reply = to.call(&[b"RESTORE".as_slice(), b"copy", b"100000", payload.bytes(), b"REPLACE"]);
        let shown = value.iter().take(4).map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(reply, Value::Simple("OK".into()), "{shown}");
        assert_eq!(content(to, "copy"), content(from, "key"), "{shown}");
        assert_eq!(to.line("TTL copy"), Value::Integer(100), "{shown}");
        // The copy is as good as any other value.
        let payload = to.line("DUMP copy");
        let reply = to.call(&[b"RESTORE".as_slice(), b"again", b"0", payload.bytes(), b"REPLACE"]);
        assert_eq!(reply, Value::Simple("OK".into()), "{shown}");
    }
}

#[test]
fn values_move_to_redis_and_back() {
    let server = Server::start();
    let Some(redis) = Server::start_redis(&["--sanitize-dump-payload", "yes"]) else {
        println!("skipped: no redis-server on PATH to move values to");
        return;
    };
    check_move(&mut server.connect(), &mut redis.connect());
    check_move(&mut redis.connect(), &mut server.connect());
}

#[test]
fn redis_refuses_the_state_of_a_limiter() {
    let server = Server::start();
    let Some(redis) = Server::start_redis(&[]) else {
        println!("skipped: no redis-server on PATH to move values to");
        return;
    };
    let mut connection = server.connect();
    connection.line("LIMIT key 5 100000");
    let payload = connection.line("DUMP key");
    let words = [b"RESTORE".as_slice(), b"copy", b"100000", payload.bytes()];
    assert_eq!(redis.connect().call(&words).error(), "ERR Bad data format");
    assert_eq!(connection.call(&words), Value::Simple("OK".into()));
    assert_eq!(connection.line("LIMIT copy 5 100000"), Value::Integer(3));
}
