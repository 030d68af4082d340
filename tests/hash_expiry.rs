//! Fields of hashes that expire: setting, reading, and what happens when their time has come.

use crate::support::{Server, Value, against_reference_server, check, replies, replies_resp3, wait_until};

#[test]
fn deadlines_are_set_read_and_taken_away() {
    replies(
        r#"
        7.2|HSET h a 1 b 2 c 3 => :3
        7.2|HEXPIRE h 100 FIELDS 3 a b missing => [:1 :1 :-2]
        7.2|HTTL h FIELDS 4 a b c missing => [:100 :100 :-1 :-2]
        7.2|HPTTL h FIELDS 1 a => [:90000..100000]
        7.2|HEXPIREAT h 9999999999 FIELDS 1 a => [:1]
        7.2|HEXPIRETIME h FIELDS 2 a c => [:9999999999 :-1]
        7.2|HPEXPIREAT h 9999999999001 FIELDS 1 a => [:1]
        7.2|HPEXPIRETIME h FIELDS 1 a => [:9999999999001]
        7.2|HEXPIRETIME h FIELDS 1 a => [:10000000000]
        7.2|HPEXPIRE h 200000 FIELDS 1 a => [:1]
        7.2|HTTL h FIELDS 1 a => [:200]
        7.2|HPERSIST h FIELDS 3 a c missing => [:1 :-1 :-2]
        7.2|HTTL h FIELDS 1 a => [:-1]
        7.2|TTL h => :-1
        7.2|HEXPIRE missing 1 FIELDS 2 a b => [:-2 :-2]
        7.2|HTTL missing FIELDS 1 a => [:-2]
        7.2|HPERSIST missing FIELDS 1 a => [:-2]
        7.2|HEXPIRE h 100 XX FIELDS 2 a b => [:0 :1]
        7.2|HEXPIRE h 200 NX FIELDS 2 a b => [:1 :0]
        7.2|HEXPIRE h 150 GT FIELDS 3 a b c => [:0 :1 :0]
        7.2|HEXPIRE h 120 LT FIELDS 3 a b c => [:1 :1 :1]
        7.2|HPEXPIREAT h 1 FIELDS 2 a b => [:2 :2]
        7.2|HGETALL h => ??[c 3]
        7.2|HEXPIRE h 0 FIELDS 1 c => [:2]
        7.2|EXISTS h => :0
    "#,
    );
}

#[test]
fn setting_a_field_clears_its_deadline_and_counting_in_it_does_not() {
    replies(
        r#"
        7.2|HSET h a 1 b 2 c 3 d 4 => :4
        7.2|HEXPIRE h 100 FIELDS 4 a b c d => [:1 :1 :1 :1]
        7.2|HSET h a 5 => :0
        7.2|HINCRBY h b 5 => :7
        7.2|HINCRBYFLOAT h c 0.5 => 3.5
        7.2|HSETNX h d 9 => :0
        7.2|HTTL h FIELDS 4 a b c d => [:-1 :100 :100 :100]
        7.2|COPY h {h}copy => :1
        7.2|RENAME h {h}other => OK
        7.2|HTTL {h}copy FIELDS 2 a b => [:-1 :100]
        7.2|HTTL {h}other FIELDS 2 a b => [:-1 :100]
        7.2|OBJECT ENCODING {h}other => listpackex
        7.2|MOVE {h}other 3 => :1
        7.2|SELECT 3 => OK
        7.2|HTTL {h}other FIELDS 2 a b => [:-1 :100]
        7.2|CONFIG SET hash-max-listpack-entries 3 => OK
        7.2|HSET {h}other e 5 => :1
        7.2|OBJECT ENCODING {h}other => hashtable
        7.2|HTTL {h}other FIELDS 3 a b e => [:-1 :100 :-1]
    "#,
    );
}

#[test]
fn fields_are_read_set_and_removed_with_their_deadlines() {
    replies(
        r#"
        7.2|HSETEX h EX 100 FIELDS 2 a 1 b 2 => :1
        7.2|HTTL h FIELDS 2 a b => [:100 :100]
        7.2|HSETEX h KEEPTTL FIELDS 1 a 3 => :1
        7.2|HTTL h FIELDS 1 a => [:100]
        7.2|HSETEX h FIELDS 1 a 4 => :1
        7.2|HTTL h FIELDS 1 a => [:-1]
        7.2|HSETEX h FNX FIELDS 2 a 5 c 5 => :0
        7.2|HSETEX h FXX PX 50000 FIELDS 2 a 5 c 5 => :0
        7.2|HSETEX h FXX PX 50000 FIELDS 2 a 5 b 5 => :1
        7.2|HSETEX h EXAT 9999999999 FNX FIELDS 1 c 6 => :1
        7.2|HEXPIRETIME h FIELDS 2 b c => [* :9999999999]
        7.2|HSETEX missing FXX FIELDS 1 a 1 => :0
        7.2|EXISTS missing => :0
        7.2|HGETEX h FIELDS 2 a missing => [5 nil]
        7.2|HGETEX h PERSIST FIELDS 2 a b => [5 5]
        7.2|HTTL h FIELDS 2 a b => [:-1 :-1]
        7.2|HGETEX h EX 70 FIELDS 1 a => [5]
        7.2|HTTL h FIELDS 1 a => [:70]
        7.2|HGETEX h PXAT 1 FIELDS 1 a => [5]
        7.2|HGETALL h => ??[b 5 c 6]
        7.2|HGETEX missing EX 70 FIELDS 1 a => [nil]
        7.2|HGETDEL h FIELDS 2 b missing => [5 nil]
        7.2|HLEN h => :1
        7.2|HGETDEL h FIELDS 1 c => [6]
        7.2|EXISTS h => :0
        7.2|HGETDEL h FIELDS 1 c => [nil]
        7.2|HSETEX h PXAT 1 FIELDS 1 a 1 => :1
        7.2|EXISTS h => :0
    "#,
    );
    replies_resp3(
        r#"
        7.2|HSETEX h EX 100 FIELDS 1 a 1 => :1
        7.2|HGETEX h FIELDS 2 a b => [1 nil]
        7.2|HTTL h FIELDS 2 a b => [:100 :-2]
        7.2|HGETDEL h FIELDS 2 a b => [1 nil]
    "#,
    );
}

#[test]
fn wrong_calls_have_the_errors_of_redis() {
    replies(
        r#"
        7.2|SET s v => OK
        7.2|HEXPIRE s 1 FIELDS 1 a => -WRONGTYPE Operation against a key holding the wrong kind of value
        7.2|HSETEX s FIELDS 1 a 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        7.2|HGETDEL s FIELDS 1 a => -WRONGTYPE Operation against a key holding the wrong kind of value
        7.2|HEXPIRE h 1 FIELDS 1 => -ERR wrong number of arguments for 'hexpire' command
        7.2|HSETEX h FIELDS 1 a => -ERR wrong number of arguments for 'hsetex' command
        7.2|HEXPIRE h -1 FIELDS 1 a => -ERR invalid expire time, must be >= 0
        7.2|HPEXPIRE h 70368744177663 FIELDS 1 a => -ERR invalid expire time in 'hpexpire' command
        7.2|HEXPIRE h 1 FIELDS 0 a => -"ERR Parameter `numFields` should be greater than 0"
        7.2|HEXPIRE h 1 FIELDS 2 a => -"ERR The `numfields` parameter must match the number of arguments"
        7.2|HTTL h FIELDS x a => -ERR Number of fields must be a positive integer
        7.2|HTTL h FIELD 1 a => -ERR Mandatory argument FIELDS is missing or not at the right position
        7.2|HSETEX h FNX FXX FIELDS 1 a 1 => -ERR Only one of FXX or FNX arguments can be specified
        7.2|HSETEX h EX 1 PX 1 FIELDS 1 a 1 => -ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified
        7.2|HSETEX h NX FIELDS 1 a 1 => -ERR unknown argument: NX
    "#,
    );
}

#[test]
fn an_expired_field_is_a_missing_field() {
    if against_reference_server() {
        return;
    }
    let server = Server::start();
    let mut connection = server.connect();
    for entries in ["0", "128"] {
        connection.call(&["CONFIG", "SET", "hash-max-listpack-entries", entries]);
        for (probe, expected) in [
            ("HGET h f", "nil"),
            ("HMGET h f g", "[nil 1]"),
            ("HEXISTS h f", ":0"),
            ("HSTRLEN h f", ":0"),
            ("HGETALL h", "[g 1]"),
            ("HKEYS h", "[g]"),
            ("HVALS h", "[1]"),
            ("HRANDFIELD h 5", "[g]"),
            ("HSCAN h 0", "[0 [g 1]]"),
            ("HINCRBY h f 3", ":3"),
            ("HSETNX h f 1", ":1"),
            ("HTRANSFER h f g 1", "nil-array"),
            ("HTTL h FIELDS 1 f", "[:-2]"),
            ("HPERSIST h FIELDS 1 f", "[:-2]"),
            ("HEXPIRE h 9 FIELDS 1 f", "[:-2]"),
            ("HGETDEL h FIELDS 1 f", "[nil]"),
            ("HGETEX h EX 9 FIELDS 1 f", "[nil]"),
            ("HSETEX h FXX FIELDS 1 f 1", ":0"),
        ] {
            connection.line("DEL h");
            connection.line("HSET h f 1 g 1");
            connection.line("HPEXPIRE h 1 FIELDS 1 f");
            wait_until("the deadline passes", || {
                server.connect().line("HPTTL h FIELDS 1 f").elements() == [Value::Integer(-2)]
            });
            check(&mut connection, &format!("{probe} => {expected}"));
        }
    }
}

#[test]
fn fields_go_by_themselves_and_the_key_with_the_last_of_them() {
    if against_reference_server() {
        return;
    }
    let server = Server::start();
    let mut connection = server.connect();
    for key in 0..50 {
        for number in 0..200 {
            connection.call(&["HSETEX", &format!("h{key}"), "PX", "30", "FIELDS", "1", &format!("f{number}"), "v"]);
        }
        connection.line(&format!("HSET m{key} stays 1 goes 1"));
        connection.line(&format!("HPEXPIRE m{key} 30 FIELDS 1 goes"));
    }
    wait_until("only the fields without a deadline are left", || {
        let mut connection = server.connect();
        (0..50).all(|key| connection.line(&format!("HLEN m{key}")) == Value::Integer(1))
            && connection.line("DBSIZE") == Value::Integer(50)
    });
    assert_eq!(server.info_number("expired_subkeys"), 50 * 201);
    let keyspace = connection.line("INFO keyspace");
    assert!(keyspace.text().contains("keys=50,expires=0,avg_ttl=0,subexpiry=0"), "{keyspace:?}");
}
