//! What the server keeps for a client, of its input and of its output: the limits, and what is shown of it.

use std::io::{ErrorKind, Read};

use crate::support::{Connection, Server, Value, against_reference_server, wait_until};

const OK: &str = "OK";
const OUTPUT_LIMITS: &str = "client-output-buffer-limit";

#[track_caller]
fn set(connection: &mut Connection, parameter: &str, value: &str) {
    assert_eq!(connection.call(&["CONFIG", "SET", parameter, value]), Value::Simple(OK.to_owned()));
}

/// A connection whose name is `name`.
#[track_caller]
fn named(server: &Server, name: &str) -> Connection {
    let mut connection = server.connect();
    assert_eq!(connection.call(&["CLIENT", "SETNAME", name]), Value::Simple(OK.to_owned()));
    connection
}

/// A field of the line that `CLIENT LIST` has for the client `name`.
#[track_caller]
fn shown(connection: &mut Connection, name: &str, field: &str) -> u64 {
    let list = connection.line("CLIENT LIST");
    let name = format!(" name={name} ");
    let line = list.text().lines().find(|line| line.contains(&name)).unwrap_or_else(|| panic!("no{name}in the list"));
    let prefix = format!("{field}=");
    let value = line.split(' ').find_map(|word| word.strip_prefix(&prefix[..]));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no number {field} in {line}"))
}

/// Waits until the server ends the connection, and panics when anything comes before.
#[track_caller]
fn expect_nothing_but_the_end(client: &Connection) {
    let mut received = Vec::new();
    let ended = client.sender().read_to_end(&mut received);
    assert!(received.is_empty(), "{} bytes came", received.len());
    assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
}

#[test]
fn nothing_of_a_reply_beyond_the_hard_limit_is_sent() {
    let server = Server::start();
    let mut connection = server.connect();
    // Keys of both shards, so that one of them is another core's.
    for key in ["a", "b", "c", "d", "e", "f"] {
        connection.call(&["SET", key, &"x".repeat(300_000)]);
    }
    set(&mut connection, OUTPUT_LIMITS, "normal 100kb 0 0");
    for key in ["a", "b", "c", "d", "e", "f"] {
        let mut client = server.connect();
        client.send(format!("GET {key}\r\nSET done:{key} 1\r\n").as_bytes());
        expect_nothing_but_the_end(&client);
        let mut client = server.connect();
        client.pipeline(["MULTI", &format!("GET {key}")]);
        client.send(b"EXEC\r\n");
        expect_nothing_but_the_end(&client);
    }
    assert_eq!(connection.line("STRLEN a"), Value::Integer(300_000), "others are not touched");
    if !against_reference_server() {
        assert_eq!(server.info_number("client_output_buffer_limit_disconnections"), 12);
    }
    // What is no longer than the limit, or wanted by nobody, harms nobody.
    assert_eq!(connection.line("GETRANGE a 0 99999").bytes().len(), 100_000);
    connection.send(b"CLIENT REPLY OFF\r\nGET a\r\nCLIENT REPLY ON\r\n");
    assert_eq!(connection.read_value(), Value::Simple(OK.to_owned()));
    set(&mut connection, OUTPUT_LIMITS, "normal 0 0 0");
    assert_eq!(connection.line("GET a").bytes().len(), 300_000);
}

#[test]
fn small_replies_pass_under_the_smallest_limit() {
    let server = Server::start();
    let mut connection = server.connect();
    set(&mut connection, OUTPUT_LIMITS, "normal 1 0 0");
    for _ in 0..100 {
        assert_eq!(connection.line("PING"), Value::Simple("PONG".to_owned()));
    }
}

#[test]
fn commands_behind_the_one_that_passes_the_limit_are_not_executed() {
    let server = Server::start();
    // With all keys on the client's own core each reply is there before the next command.
    let connect = || if against_reference_server() { server.connect() } else { server.connect_to_shard(0) };
    let mut connection = connect();
    set(&mut connection, OUTPUT_LIMITS, "normal 100kb 0 0");
    let long = "x".repeat(300_000);
    connection.call(&["SET", "{bar}long", &long]);
    let mut client = connect();
    client.send(b"GET {bar}long\r\nSET {bar}behind 1\r\n");
    expect_nothing_but_the_end(&client);
    assert_eq!(connection.line("EXISTS {bar}behind"), Value::Integer(0));
}

#[test]
fn random_elements_without_end_end_the_connection_at_the_limit() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("HSET hash field value");
    connection.line("ZADD zset 1 member");
    connection.line("SADD set member");
    set(&mut connection, OUTPUT_LIMITS, "normal 1mb 0 0 pubsub 1mb 0 0");
    for command in [
        "HRANDFIELD hash -999999999",
        "HRANDFIELD hash -999999999 WITHVALUES",
        "HRANDFIELD hash -9223372036854775807",
        "ZRANDMEMBER zset -999999999",
        "ZRANDMEMBER zset -999999999 WITHSCORES",
        "ZRANDMEMBER zset -9223372036854775807",
        "SRANDMEMBER set -999999999",
        "SRANDMEMBER set -9223372036854775807",
    ] {
        let mut client = server.connect();
        client.send(format!("{command}\r\n").as_bytes());
        expect_nothing_but_the_end(&client);
    }
    assert_eq!(connection.line("HRANDFIELD hash -1000").elements().len(), 1000);
}

#[test]
fn random_elements_without_end_are_refused_where_there_is_no_limit() {
    if against_reference_server() {
        // It replies gigabytes.
        return;
    }
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("HSET hash field value");
    connection.line("ZADD zset 1 member");
    connection.line("SADD set member");
    for command in ["HRANDFIELD hash", "ZRANDMEMBER zset", "SRANDMEMBER set"] {
        for count in ["-999999999", "-9223372036854775807"] {
            let reply = connection.line(&format!("{command} {count}"));
            assert!(reply.error().starts_with("ERR value is out of range"), "{command} {count}: {reply:?}");
        }
    }
}

#[test]
fn a_request_beyond_the_limit_ends_the_connection() {
    let server = Server::start();
    let mut connection = server.connect();
    set(&mut connection, "client-query-buffer-limit", "1mb");
    let request = |len: usize| format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n${len}\r\n{}\r\n", "x".repeat(len));
    let lengths = [1_100_000, 1_200_000, 1_500_000, 2_000_000];
    for len in lengths {
        let mut client = server.connect();
        // The server may close before all is sent.
        let _ = client.try_send(request(len).as_bytes());
        expect_nothing_but_the_end(&client);
    }
    assert_eq!(connection.line("EXISTS a"), Value::Integer(0));
    if !against_reference_server() {
        assert_eq!(server.info_number("client_query_buffer_limit_disconnections"), lengths.len() as i64);
    }
    // Many requests may be longer together.
    let mut client = server.connect();
    client.send(request(700_000).repeat(4).as_bytes());
    for _ in 0..4 {
        assert_eq!(client.read_value(), Value::Simple(OK.to_owned()));
    }
    assert_eq!(connection.line("STRLEN a"), Value::Integer(700_000));
}

#[test]
fn client_list_shows_the_replies_that_are_not_read() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.call(&["SET", "long", &"x".repeat(10_000_000)]);
    let mut client = named(&server, "reader");
    assert_eq!(shown(&mut connection, "reader", "omem"), 0);
    client.send(b"GET long\r\nGET long\r\n");
    wait_until("much is not read", || shown(&mut connection, "reader", "omem") > 1_000_000);
    assert!(shown(&mut connection, "reader", "oll") > 0);
    assert!(shown(&mut connection, "reader", "obl") <= 16 << 10);
    let (listed, all) = (shown(&mut connection, "reader", "omem"), shown(&mut connection, "reader", "tot-mem"));
    assert!(all >= listed, "{listed} of {all} bytes");
    for _ in 0..2 {
        assert_eq!(client.read_value().bytes().len(), 10_000_000);
    }
    wait_until("all is read", || {
        ["omem", "oll", "obl"].iter().all(|field| shown(&mut connection, "reader", field) == 0)
    });
}

#[test]
fn half_a_request_takes_no_more_than_it_is_long_once_nothing_more_comes() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut client = named(&server, "writer");
    let head = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1000000\r\n";
    client.send(head);
    let mut sent = 0;
    // In parts, so that the buffer grows ahead of them.
    for _ in 0..7 {
        client.send(&[b'x'; 100_000]);
        sent += 100_000;
        wait_until("it is read", || shown(&mut connection, "writer", "qbuf") >= sent);
    }
    assert!(shown(&mut connection, "writer", "qbuf-free") > 10_000, "there is room for more at first");
    wait_until("the room is given back", || shown(&mut connection, "writer", "qbuf-free") < 10_000);
    assert!(shown(&mut connection, "writer", "idle") >= 2, "not before it is idle");
    client.send(&[b'x'; 300_000]);
    client.send(b"\r\n");
    assert_eq!(client.read_value(), Value::Simple(OK.to_owned()));
    assert_eq!(connection.line("STRLEN a"), Value::Integer(1_000_000));
}
