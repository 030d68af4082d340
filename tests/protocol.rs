//! The wire: framing, malformed input, and connections that end at any point.

use crate::support::{Server, Value, encode_command};
use std::io::Write;
use std::thread;
use std::time::Duration;

/// What each malformed input is answered with before the server closes the connection.
const MALFORMED: [(&[u8], &str); 13] = [
    (b"*1\r\n$-1\r\n", "ERR Protocol error: invalid bulk length"),
    (b"*1\r\n$-5\r\n", "ERR Protocol error: invalid bulk length"),
    (b"*1\r\n$x\r\n", "ERR Protocol error: invalid bulk length"),
    (b"*1\r\n$\r\n", "ERR Protocol error: invalid bulk length"),
    (b"*1\r\n$ 1\r\n", "ERR Protocol error: invalid bulk length"),
    (b"*2\r\n$3\r\nGET\r\n$536870913\r\n", "ERR Protocol error: invalid bulk length"),
    (b"*2\r\n$3\r\nGET\r\n$9223372036854775808\r\n", "ERR Protocol error: invalid bulk length"),
    (b"*1\r\n+PING\r\n", "ERR Protocol error: expected '$', got '+'"),
    (b"*x\r\n", "ERR Protocol error: invalid multibulk length"),
    (b"*2147483648\r\n", "ERR Protocol error: invalid multibulk length"),
    (b"*99999999999999999999\r\n", "ERR Protocol error: invalid multibulk length"),
    (b"SET a \"unbalanced\r\n", "ERR Protocol error: unbalanced quotes in request"),
    (b"SET a 'b'c\r\n", "ERR Protocol error: unbalanced quotes in request"),
];

#[test]
fn malformed_frames_are_answered_and_the_connection_closed() {
    let server = Server::start();
    for (input, answer) in MALFORMED {
        let mut connection = server.connect();
        connection.send(input);
        let came = connection.try_read_value().unwrap_or_else(|error| panic!("{}: {error}", input.escape_ascii()));
        assert_eq!(came.error(), answer, "{}", input.escape_ascii());
        connection.expect_close();
    }
    assert_eq!(server.connect().line("PING"), Value::Simple("PONG".to_owned()), "nobody else is disturbed");
}

#[test]
fn commands_before_a_malformed_frame_are_answered() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(b"SET a 1\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$-7\r\nGET a\r\n");
    assert_eq!(connection.read_value(), Value::Simple("OK".to_owned()));
    assert_eq!(connection.read_value().text(), "1");
    assert_eq!(connection.read_value().error(), "ERR Protocol error: invalid bulk length");
    connection.expect_close();
}

#[test]
fn lines_without_an_end_are_refused_at_64_kilobytes() {
    let server = Server::start();
    for (start, answer) in [
        (b"".as_slice(), "ERR Protocol error: too big inline request"),
        (b"*", "ERR Protocol error: too big mbulk count string"),
        (b"*1\r\n$", "ERR Protocol error: too big bulk count string"),
    ] {
        let mut connection = server.connect();
        connection.send(start);
        // The server may close before all is sent.
        let _ = connection.try_send(&vec![b'1'; 70_000]);
        assert_eq!(connection.read_value().error(), answer);
        connection.expect_close();
    }
}

#[test]
fn empty_commands_are_passed_over() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(b"*0\r\n*-1\r\n*-10\r\n\r\n   \r\n\n*1\r\n$4\r\nPING\r\n");
    assert_eq!(connection.read_value(), Value::Simple("PONG".to_owned()));
    connection.expect_silence(Duration::from_millis(30));
}

#[test]
fn inline_commands_are_split_as_a_shell_would() {
    let server = Server::start();
    let mut connection = server.connect();
    for (line, reply) in [
        (&b"PING\r\n"[..], "+PONG"),
        (b"PING\n", "+PONG"),
        (b"  PING   hello  \r\n", "\"hello\""),
        (b"ECHO \"a b\\x00\\n\\\"c\\t\\q\"\r\n", "\"a b\\x00\\n\\\"c\\tq\""),
        (b"ECHO 'a \\'b\\' \\n'\r\n", "\"a \\'b\\' \\\\n\""),
        (b"ECHO \"\"\r\n", "\"\""),
        (b"SET inline \"v 1\"\r\n", "+OK"),
        (b"GET inline\r\n", "\"v 1\""),
        (b"NOSUCH x\r\n", "-ERR unknown command 'NOSUCH', with args beginning with: 'x' "),
    ] {
        connection.send(line);
        assert_eq!(format!("{:?}", connection.read_value()), reply, "{}", line.escape_ascii());
    }
}

#[test]
fn a_frame_may_come_byte_by_byte() {
    let server = Server::start();
    let mut connection = server.connect();
    let frames = [encode_command(&["SET", "a", "hello"]), encode_command(&["GET", "a"]), b"PING\r\n".to_vec()].concat();
    for byte in frames {
        connection.send(&[byte]);
    }
    assert_eq!(connection.read_value(), Value::Simple("OK".to_owned()));
    assert_eq!(connection.read_value().text(), "hello");
    assert_eq!(connection.read_value(), Value::Simple("PONG".to_owned()));
}

#[test]
fn a_client_may_disconnect_after_any_byte() {
    let server = Server::start();
    let frame = [encode_command(&["SET", "before", "1"]), encode_command(&["SET", "after", "value"])].concat();
    for length in 0..frame.len() {
        let mut connection = server.connect();
        connection.send(&frame[..length]);
        if length % 2 == 0 {
            connection.finish_sending();
        }
    }
    let mut connection = server.connect();
    assert_eq!(connection.line("GET before").text(), "1");
    assert_eq!(connection.line("EXISTS after").integer(), 0, "half a command is no command");
    // All that is left of them is gone from the list of clients.
    crate::support::wait_until("the others are gone", || connection.line("CLIENT LIST").text().lines().count() == 1);
}

#[test]
fn what_was_sent_before_the_end_is_answered() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(b"SET a 1\r\nGET a\r\n");
    connection.finish_sending();
    assert_eq!(connection.read_value(), Value::Simple("OK".to_owned()));
    assert_eq!(connection.read_value().text(), "1");
    connection.expect_close();
}

#[test]
fn ten_thousand_commands_may_be_in_flight() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut sender = connection.sender();
    let writer = thread::spawn(move || {
        let mut frames = Vec::new();
        for index in 0..10_000 {
            frames.extend(encode_command(&["SET", &format!("key:{index}"), &index.to_string()]));
            frames.extend(encode_command(&["GET", &format!("key:{index}")]));
        }
        sender.write_all(&frames).expect("send the pipeline");
    });
    for index in 0..10_000 {
        assert_eq!(connection.read_value(), Value::Simple("OK".to_owned()));
        assert_eq!(connection.read_value().text(), index.to_string());
    }
    writer.join().expect("the sender");
}

#[test]
fn a_pipeline_sent_before_any_reply_is_read_is_answered_whole() {
    let server = Server::start();
    let mut connection = server.connect();
    let value = vec![b'v'; 1_000];
    connection.call(&[b"SET".as_slice(), b"a", &value]);
    // 20 MB of replies for 200 KB of commands: more than socket buffers hold.
    connection.send(&encode_command(&["GET", "a"]).repeat(20_000));
    for _ in 0..20_000 {
        assert!(connection.read_value().bytes() == value);
    }
}

#[test]
fn a_reader_that_never_reads_does_not_stop_the_others() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.call(&[b"SET".as_slice(), b"a", &vec![b'v'; 100_000]]);
    let mut greedy = server.connect();
    let mut sender = greedy.sender();
    sender.set_write_timeout(Some(Duration::from_millis(200))).expect("set the time-out");
    // Ends when the server stops reading from a connection whose replies nobody takes, or after 50,000 commands.
    let frame = encode_command(&["GET", "a"]);
    for _ in 0..50_000 {
        if sender.write_all(&frame).is_err() {
            break;
        }
    }
    for _ in 0..100 {
        assert_eq!(connection.line("PING"), Value::Simple("PONG".to_owned()));
    }
    greedy.finish_sending();
}

#[test]
fn every_byte_survives_in_keys_and_values() {
    let server = Server::start();
    let mut connection = server.connect();
    let all: Vec<u8> = (0..=255).collect();
    for byte in 0..=255_u8 {
        let key = [b'k', byte, b'k'];
        connection.call(&[b"SET".as_slice(), &key, &all]);
        assert_eq!(connection.call(&[b"GET".as_slice(), &key]).bytes(), all);
    }
    assert_eq!(connection.line("DBSIZE").integer(), 256);
    connection.call(&[b"HSET".as_slice(), b"h", &all, &all]);
    assert_eq!(connection.call(&[b"HGET".as_slice(), b"h", &all]).bytes(), all);
    connection.call(&[b"ZADD".as_slice(), b"z", b"1", &all]);
    assert_eq!(connection.line("ZRANGE z 0 -1").elements()[0].bytes(), all);
}

#[test]
fn a_command_may_have_a_million_arguments() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut frame = b"*1000001\r\n$3\r\nDEL\r\n".to_vec();
    for index in 0..1_000_000 {
        let key = format!("{{t}}{index}");
        frame.extend(format!("${}\r\n{key}\r\n", key.len()).into_bytes());
    }
    connection.line("SET {t}777777 v");
    connection.send(&frame);
    assert_eq!(connection.read_value(), Value::Integer(1));
    let mut command = vec!["RPUSH".to_owned(), "l".to_owned()];
    command.extend((0..200_000).map(|index| index.to_string()));
    assert_eq!(connection.call(&command).integer(), 200_000);
    assert_eq!(connection.line("LINDEX l -1").text(), "199999");
}

// Redis itself reserves room for what is announced here.
#[test]
fn a_huge_announced_length_takes_no_memory_before_its_bytes_come() {
    let server = Server::start();
    let before = server.info_number("used_memory");
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let mut connection = server.connect();
        connection.send(b"*2147483647\r\n$3\r\nSET\r\n$1\r\na\r\n");
        waiting.push(connection);
        let mut connection = server.connect();
        connection.send(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$536870912\r\nabc");
        waiting.push(connection);
    }
    let mut connection = server.connect();
    assert_eq!(connection.line("PING"), Value::Simple("PONG".to_owned()));
    let grown = server.info_number("used_memory") - before;
    assert!(grown < 100_000_000, "forty half commands hold {grown} bytes");
}

#[test]
fn proto_max_bulk_len_can_be_lowered() {
    let server = Server::start();
    let mut connection = server.connect();
    assert_eq!(connection.line("CONFIG SET proto-max-bulk-len 1mb"), Value::Simple("OK".to_owned()));
    let fits = vec![b'v'; 1_048_576];
    assert_eq!(connection.call(&[b"SET".as_slice(), b"a", &fits]), Value::Simple("OK".to_owned()));
    assert_eq!(connection.line("APPEND a x").error(), "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    connection.send(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1048577\r\n");
    assert_eq!(connection.read_value().error(), "ERR Protocol error: invalid bulk length");
    connection.expect_close();
}

#[test]
fn an_http_request_ends_the_connection_before_its_body_is_executed() {
    let server = Server::start();
    for head in ["POST / HTTP/1.1\r\n", "Host: localhost\r\n", "pOsT x\r\n"] {
        let mut connection = server.connect();
        connection.send(format!("{head}\r\nSET smuggled 1\r\n").as_bytes());
        connection.expect_close();
    }
    assert_eq!(server.connect().line("EXISTS smuggled"), Value::Integer(0));
}
