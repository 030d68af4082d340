//! Scripts: a command a line with the reply it should get.

use super::connection::Connection;
use super::notation::{Expected, split_words};
use super::server::{Server, against_reference_server};

/// Runs a script and panics with every line whose reply differs.
///
/// A line is `command words => expected reply` in the notation of `notation.rs`. Empty lines and lines that start with
/// `#` say nothing to the server. A line that starts with `7.2|` holds from Redis 7.2 on, and is left out when the tests
/// themselves are checked against an older Redis.
#[track_caller]
pub fn check(connection: &mut Connection, script: &str) {
    let mut differences = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let command = match line.strip_prefix("7.2|") {
            Some(_) if against_reference_server() => continue,
            Some(rest) => rest,
            None => line,
        };
        let (words, expected) = command.rsplit_once(" => ").unwrap_or_else(|| panic!("no ` => ` in: {line}"));
        let words = split_words(words).unwrap_or_else(|problem| panic!("{problem}: {line}"));
        let expected = Expected::parse(expected).unwrap_or_else(|problem| panic!("{problem}: {line}"));
        let reply = connection.call(&words);
        if !expected.matches(&reply) {
            differences.push(format!("{line}\n    came: {reply:?}"));
        }
    }
    assert!(differences.is_empty(), "{} replies differ:\n{}", differences.len(), differences.join("\n"));
}

/// Runs a script against a server of its own, in RESP2.
#[track_caller]
pub fn replies(script: &str) {
    check(&mut Server::start().connect(), script);
}

/// Runs a script against a server of its own, in RESP3.
#[track_caller]
pub fn replies_resp3(script: &str) {
    check_resp3(&mut Server::start().connect(), script);
}

/// As [`check`], after a change to RESP3.
#[track_caller]
fn check_resp3(connection: &mut Connection, script: &str) {
    connection.call(&["HELLO", "3"]);
    check(connection, script);
}
