//! Deadlines: setting, reading, and what happens when they pass.

use crate::support::{Server, replies, wait_until};

#[test]
fn expire_sets_and_ttl_reads() {
    replies(
        r#"
        EXPIRE a 100 => :0
        TTL a => :-2
        PTTL a => :-2
        EXPIRETIME a => :-2
        PEXPIRETIME a => :-2
        SET a 1 => OK
        TTL a => :-1
        PTTL a => :-1
        EXPIRETIME a => :-1
        PEXPIRETIME a => :-1
        EXPIRE a 100 => :1
        TTL a => :100
        PTTL a => :90000..100000
        PEXPIRE a 200000 => :1
        PTTL a => :190000..200000
        EXPIREAT a 9999999999 => :1
        EXPIRETIME a => :9999999999
        PEXPIRETIME a => :9999999999000
        PEXPIREAT a 9999999999500 => :1
        EXPIRETIME a => :10000000000
        PEXPIRETIME a => :9999999999500
        PERSIST a => :1
        PERSIST a => :0
        PERSIST missing => :0
        TTL a => :-1
        EXPIRE a x => -ERR value is not an integer or out of range
        EXPIRE a 1.5 => -ERR value is not an integer or out of range
        EXPIRE a 9223372036854775807 => -ERR invalid expire time in 'expire' command
        EXPIRE a 9223372036854775 => -ERR invalid expire time in 'expire' command
        PEXPIRE a 9223372036854775807 => -ERR invalid expire time in 'pexpire' command
        PEXPIRE a 9223372036854770000 => -ERR invalid expire time in 'pexpire' command
        EXPIREAT a 9223372036854775807 => -ERR invalid expire time in 'expireat' command
        PEXPIREAT a 9223372036854775807 => :1
        PEXPIREAT a 9223372036854775808 => -ERR value is not an integer or out of range
        PERSIST a => :1
        EXPIRE a -9223372036854775808 => -ERR invalid expire time in 'expire' command
        EXPIRE a => -ERR wrong number of arguments for 'expire' command
        TTL => -ERR wrong number of arguments for 'ttl' command
        PERSIST => -ERR wrong number of arguments for 'persist' command
    "#,
    );
}

#[test]
fn a_deadline_in_the_past_deletes_the_key() {
    replies(
        r#"
        SET a 1 => OK
        EXPIRE a 0 => :1
        EXISTS a => :0
        SET a 1 => OK
        EXPIRE a -1 => :1
        EXISTS a => :0
        SET a 1 => OK
        PEXPIRE a -100 => :1
        EXISTS a => :0
        SET a 1 => OK
        EXPIREAT a 1 => :1
        EXISTS a => :0
        SET a 1 => OK
        PEXPIREAT a 0 => :1
        EXISTS a => :0
        SET a 1 => OK
        EXPIREAT a -5 => :1
        DBSIZE => :0
        RPUSH l a => :1
        EXPIRE l 0 => :1
        TYPE l => +none
    "#,
    );
}

#[test]
fn conditions_compare_with_the_deadline_there_is() {
    replies(
        r#"
        SET a 1 => OK
        EXPIRE a 100 XX => :0
        EXPIRE a 100 GT => :0
        TTL a => :-1
        EXPIRE a 100 LT => :1
        TTL a => :100
        EXPIRE a 200 NX => :0
        EXPIRE a 200 XX => :1
        TTL a => :200
        EXPIRE a 100 GT => :0
        EXPIRE a 300 gt => :1
        TTL a => :300
        EXPIRE a 400 LT => :0
        EXPIRE a 50 lt => :1
        TTL a => :50
        EXPIRE a 60 XX GT => :1
        TTL a => :60
        PEXPIRE a 10000 XX LT => :1
        EXPIRE a 100 NX XX => -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE a 100 NX GT => -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE a 100 NX LT => -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE a 100 GT LT => -ERR GT and LT options at the same time are not compatible
        EXPIRE a 100 bogus => -ERR Unsupported option bogus
        EXPIRE a 100 NX bogus => -ERR Unsupported option bogus
        EXPIREAT a 9999999999 GT => :1
        PEXPIREAT a 9999999999001 NX => :0
        PERSIST a => :1
        PEXPIREAT a 9999999999001 NX => :1
        PEXPIRETIME a => :9999999999001
        EXPIRE missing 100 NX => :0
    "#,
    );
}

#[test]
fn writes_that_change_a_value_in_place_keep_its_deadline() {
    replies(
        r#"
        RPUSH l a b => :2
        EXPIRE l 100 => :1
        RPUSH l c => :3
        LPOP l => a
        LSET l 0 x => OK
        TTL l => :100
        HSET h a 1 => :1
        EXPIRE h 100 => :1
        HSET h b 2 => :1
        HDEL h a => :1
        TTL h => :100
        SADD s a => :1
        EXPIRE s 100 => :1
        SADD s b => :1
        SREM s a => :1
        TTL s => :100
        ZADD z 1 a => :1
        EXPIRE z 100 => :1
        ZADD z 2 b => :1
        ZINCRBY z 1 a => 2
        TTL z => :100
        DEL z => :1
        ZADD z 1 a => :1
        TTL z => :-1
        RPUSH l2 a => :1
        EXPIRE l2 100 => :1
        LPOP l2 => a
        RPUSH l2 a => :1
        TTL l2 => :-1
    "#,
    );
}

#[test]
fn an_expired_key_is_a_missing_key() {
    let server = Server::start();
    let mut connection = server.connect();
    for (set_up, probe, expected) in [
        ("SET a 1", "GET a", "nil"),
        ("SET a 1", "INCR a", ":1"),
        ("SET a 1", "EXISTS a", ":0"),
        ("SET a 1", "TYPE a", "+none"),
        ("SET a 1", "STRLEN a", ":0"),
        ("SET a 1", "APPEND a x", ":1"),
        ("SET a 1", "SETNX a x", ":1"),
        ("SET a 1", "TTL a", ":-2"),
        ("SET a 1", "PERSIST a", ":0"),
        ("SET a 1", "DEL a", ":0"),
        ("SET a 1", "LPUSH a x", ":1"),
        ("SET a 1", "KEYS *", "[]"),
        ("SET a 1", "RANDOMKEY", "nil"),
        ("SET a 1", "RENAME a a", "-ERR no such key"),
        ("SET a 1", "COPY a a{a}", ":0"),
        ("HSET a f 1", "HGET a f", "nil"),
        ("HSET a f 1", "HSET a g 1", ":1"),
        ("RPUSH a x y", "LLEN a", ":0"),
        ("RPUSH a x y", "RPUSHX a z", ":0"),
        ("SADD a x", "SMEMBERS a", "[]"),
        ("SADD a x", "SADD a x", ":1"),
        ("ZADD a 1 x", "ZSCORE a x", "nil"),
        ("ZADD a 1 x", "ZADD a XX 1 x", ":0"),
    ] {
        connection.line("DEL a");
        connection.line(set_up);
        connection.line("PEXPIRE a 1");
        wait_until("the deadline passes", || server.connect().line("PTTL a").integer() < 0);
        assert_eq!(format!("{:?}", connection.line(probe)), expected, "{set_up}, expired, {probe}");
    }
}

#[test]
fn a_key_lives_until_its_deadline_and_no_longer() {
    let server = Server::start();
    let mut connection = server.connect();
    let now_ms = |connection: &mut crate::support::Connection| {
        let time = connection.line("TIME");
        let part = |index: usize| time.elements()[index].text().parse::<i64>().expect("a number");
        part(0) * 1_000 + part(1) / 1_000
    };
    for round in 0..20 {
        let key = format!("key:{round}");
        let deadline_ms = now_ms(&mut connection) + 20;
        connection.line(&format!("SET {key} v PXAT {deadline_ms}"));
        loop {
            let before_ms = now_ms(&mut connection);
            let there = connection.line(&format!("EXISTS {key}")).integer() == 1;
            let after_ms = now_ms(&mut connection);
            assert!(there || after_ms >= deadline_ms, "the key went {} ms early", deadline_ms - after_ms);
            assert!(!there || before_ms <= deadline_ms + 50, "the key stayed {} ms", before_ms - deadline_ms);
            if !there {
                break;
            }
        }
    }
}

#[test]
fn keys_nobody_reads_expire_too() {
    let server = Server::start();
    let mut connection = server.connect();
    for index in 0..1_000 {
        connection.line(&format!("SET key:{index} v PX 50"));
        connection.line(&format!("SET other:{index} v"));
    }
    wait_until("all expired keys are gone", || connection.line("DBSIZE").integer() == 1_000);
    assert!(server.info_number("expired_keys") >= 1_000);
    assert_eq!(connection.line("EXISTS other:0 other:0").integer(), 2);
}
