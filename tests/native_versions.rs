//! SETV and GETV: values with a version.

use crate::support::{Server, replies, replies_resp3};

#[test]
fn every_setv_gives_the_next_version() {
    replies(
        r#"
        SETV a one => :1
        SETV a two => :2
        GETV a => [two :2]
        SETV a three 2 => :3
        SETV a four 2 => -ERR version mismatch
        SETV a four 4 => -ERR version mismatch
        SETV a four 0 => -ERR version mismatch
        GETV a => [three :3]
        GETV missing => nil-array
        SETV missing x 1 => -ERR version mismatch
        EXISTS missing => :0
        SETV created x 0 => :1
        SETV created y 0 => -ERR version mismatch
        SET plain v => OK
        GETV plain => [v :0]
        SETV plain w 1 => -ERR version mismatch
        SETV plain w 0 => :1
        GETV plain => [w :1]
        SETV "\x00" "\x00\r\n\xff" => :1
        GETV "\x00" => ["\x00\r\n\xff" :1]
        SETV empty "" => :1
        GETV empty => ["" :1]
        SET number 123 => OK
        GETV number => [123 :0]
    "#,
    );
    replies_resp3(
        r#"
        GETV missing => nil
        SETV a v => :1
        GETV a => [v :1]
    "#,
    );
}

#[test]
fn setv_checks_its_words() {
    replies(
        r#"
        SETV a => -ERR wrong number of arguments for 'setv' command
        SETV a v 1 2 => -ERR wrong number of arguments for 'setv' command
        GETV => -ERR wrong number of arguments for 'getv' command
        GETV a b => -ERR wrong number of arguments for 'getv' command
        SETV a v x => -ERR value is not an integer or out of range
        SETV a v 1.5 => -ERR value is not an integer or out of range
        SETV a v -1 => -ERR *
        RPUSH l x => :1
        SETV l v => -WRONGTYPE Operation against a key holding the wrong kind of value
        GETV l => -WRONGTYPE Operation against a key holding the wrong kind of value
        EXISTS a => :0
    "#,
    );
}

#[test]
fn a_versioned_value_reads_as_a_string() {
    replies(
        r#"
        SETV {t}a hello => :1
        GET {t}a => hello
        STRLEN {t}a => :5
        GETRANGE {t}a 1 3 => ell
        MGET {t}a {t}b => [hello nil]
        TYPE {t}a => +string
        EXISTS {t}a => :1
        GETEX {t}a EX 1000 => hello
        TTL {t}a => :1000
        GETV {t}a => [hello :1]
        SET {t}b hello => OK
        GETDEL {t}a => hello
        GETV {t}a => nil-array
    "#,
    );
}

#[test]
fn writes_of_a_whole_value_make_it_plain() {
    replies(
        r#"
        SETV {t}a v => :1
        SETV {t}a v => :2
        SET {t}a plain => OK
        GETV {t}a => [plain :0]
        SETV {t}a v => :1
        GETSET {t}a plain => v
        GETV {t}a => [plain :0]
        SETV {t}a v => :1
        SETEX {t}a 100 plain => OK
        GETV {t}a => [plain :0]
        SETV {t}a v => :1
        MSET {t}a plain => OK
        GETV {t}a => [plain :0]
        SETV {t}a v => :1
        SADD {t}s m => :1
        SUNIONSTORE {t}a {t}s => :1
        TYPE {t}a => +set
        DEL {t}a => :1
        SETV {t}a v => :1
        DEL {t}a => :1
        SETV {t}a v => :1
    "#,
    );
}

#[test]
fn changes_in_place_are_refused_and_name_setv() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("SETV {t}a 10");
    connection.line("SET {t}b 10");
    for command in [
        "INCR {t}a",
        "DECR {t}a",
        "INCRBY {t}a 5",
        "INCRBY {t}a 5 MAX 100",
        "DECRBY {t}a 5",
        "INCRBYFLOAT {t}a 1.5",
        "APPEND {t}a x",
        "SETRANGE {t}a 0 x",
        "TAKE {t}a 1",
        "TRANSFER {t}a {t}b 1",
        "TRANSFER {t}b {t}a 1",
    ] {
        let reply = connection.line(command);
        let text = reply.error();
        assert!(text.starts_with("ERR ") && text.contains("SETV"), "{command}: {text}");
    }
    assert_eq!(format!("{:?}", connection.line("GETV {t}a")), "[\"10\" :1]");
    assert_eq!(connection.line("GET {t}b").text(), "10");
}

#[test]
fn version_and_value_go_with_the_key() {
    replies(
        r#"
        SETV {t}a v => :1
        SETV {t}a w => :2
        EXPIRE {t}a 1000 => :1
        RENAME {t}a {t}b => OK
        GETV {t}b => [w :2]
        TTL {t}b => :1000
        COPY {t}b {t}c => :1
        GETV {t}c => [w :2]
        SETV {t}c x 2 => :3
        GETV {t}b => [w :2]
        RENAMENX {t}b {t}d => :1
        GETV {t}d => [w :2]
        MOVE {t}d 1 => :1
        SELECT 1 => OK
        GETV {t}d => [w :2]
    "#,
    );
}

#[test]
fn setv_keeps_the_deadline() {
    replies(
        r#"
        SET a v EX 1000 => OK
        SETV a w => :1
        TTL a => :1000
        SETV a x 1 => :2
        TTL a => :1000
        SETV a y 1 => -ERR version mismatch
        TTL a => :1000
        PERSIST a => :1
        GETV a => [x :2]
        SETV b v => :1
        TTL b => :-1
    "#,
    );
}

#[test]
fn one_of_many_concurrent_savers_wins_each_version() {
    let server = Server::start();
    server.connect().line("SETV document start");
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let mut connection = server.connect();
            std::thread::spawn(move || {
                let mut accepted = 0;
                for _ in 0..1_000 {
                    let version = connection.line("GETV document").elements()[1].integer();
                    let reply = connection.line(&format!("SETV document v {version}"));
                    match reply {
                        crate::support::Value::Integer(new) => {
                            assert_eq!(new, version + 1);
                            accepted += 1;
                        }
                        refused => assert_eq!(refused.error(), "ERR version mismatch"),
                    }
                }
                accepted
            })
        })
        .collect();
    let accepted: i64 = workers.into_iter().map(|worker| worker.join().expect("a worker")).sum();
    let reply = server.connect().line("GETV document");
    assert_eq!(reply.elements()[1].integer(), accepted + 1, "each accepted save is one version");
}
