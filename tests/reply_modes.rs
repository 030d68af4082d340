//! `CLIENT REPLY`: which commands are answered.

use crate::support::{Connection, Options, Server, Value, replies};

/// Sends lines at once and reads as many replies as are expected; the last one tells that no other came before it.
#[track_caller]
fn expect(connection: &mut Connection, lines: &str, expected: &[&str]) {
    let bytes = lines.trim().lines().map(|line| format!("{}\r\n", line.trim())).collect::<String>();
    connection.send(bytes.as_bytes());
    let replies: Vec<String> = expected
        .iter()
        .map(|_| match connection.read_value() {
            Value::Simple(text) | Value::Error(text) => text,
            Value::Integer(number) => number.to_string(),
            Value::Bulk(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(replies, expected, "{lines}");
}

#[test]
fn replies_are_left_out_wherever_they_come_from() {
    for shards in [1, 2, 3] {
        let server = Server::with(&Options { shards, ..Options::default() });
        let mut connection = server.connect();
        // Keys of several shards, a reply of all of them, of the server itself, and errors.
        expect(
            &mut connection,
            "SET a 1
             CLIENT REPLY OFF
             SET a 2
             SET b 2
             SET c 2
             DBSIZE
             SCAN 0
             PING
             NOSUCH
             LPUSH a x
             LPUSH b x
             GET
             CLIENT REPLY SKIP
             CLIENT REPLY ON
             GET a
             GET b
             GET c
             DBSIZE
             ECHO end",
            &["OK", "OK", "2", "2", "2", "3", "end"],
        );
        for skipped in ["GET a", "GET b", "GET c", "DBSIZE", "PING", "NOSUCH", "LPUSH a x", "LPUSH b x", "CONFIG GET *"]
        {
            expect(
                &mut connection,
                &format!("GET b\nCLIENT REPLY SKIP\n{skipped}\nGET a\nGET b\nECHO end"),
                &["2", "2", "2", "end"],
            );
        }
    }
}

#[test]
fn skip_is_for_one_command_only() {
    let server = Server::start();
    let mut connection = server.connect();
    expect(&mut connection, "CLIENT REPLY SKIP\nCLIENT REPLY SKIP\nECHO 1\nECHO 2", &["2"]);
    expect(&mut connection, "CLIENT REPLY SKIP\nCLIENT REPLY ON\nECHO 1", &["OK", "1"]);
    expect(&mut connection, "CLIENT REPLY OFF\nCLIENT REPLY SKIP\nECHO 1\nECHO 2\nCLIENT REPLY ON", &["OK"]);
    expect(&mut connection, "CLIENT REPLY OFF\nRESET\nECHO 1", &["RESET", "1"]);
}

#[test]
fn a_client_that_wants_no_replies_may_leave_and_break_off() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(b"CLIENT REPLY OFF\r\nSET a 1\r\nSET b 1\r\nQUIT\r\n");
    connection.expect_close();
    let mut connection = server.connect();
    connection.send(b"CLIENT REPLY OFF\r\nSET c 1\r\n*1\r\nx\r\n");
    connection.expect_close();
    let mut connection = server.connect();
    expect(&mut connection, "GET a\nGET b\nGET c", &["1", "1", "1"]);
}

#[test]
fn another_mode_is_refused() {
    replies(
        r"
        CLIENT REPLY => -ERR wrong number of arguments for 'client|reply' command
        CLIENT REPLY maybe => -ERR syntax error
        CLIENT REPLY on => OK
        ",
    );
}
