//! The string commands, option by option.

use crate::support::{Server, replies, replies_resp3};

#[test]
fn set_and_get_keep_any_bytes() {
    replies(
        r#"
        GET a => nil
        SET a 1 => OK
        GET a => 1
        SET a "" => OK
        GET a => ""
        SET b "\x00\r\n\xff\"" => OK
        GET b => "\x00\r\n\xff\""
        STRLEN b => :5
        SET "\x00key" v => OK
        GET "\x00key" => v
        SET a => -ERR wrong number of arguments for 'set' command
        GET => -ERR wrong number of arguments for 'get' command
        GET a b => -ERR wrong number of arguments for 'get' command
    "#,
    );
}

#[test]
fn set_conditions_decide_whether_it_writes() {
    replies(
        r#"
        SET a 1 XX => nil
        SET a 1 NX => OK
        SET a 2 NX => nil
        SET a 2 XX => OK
        GET a => 2
        SET a 3 NX XX => -ERR syntax error
        SET a 3 nx GET => 2
        GET a => 2
        SET b 3 NX GET => nil
        GET b => 3
        SET c 3 XX GET => nil
        EXISTS c => :0
        SET a 4 GET => 2
        SET a 5 GET XX => 4
        GET a => 5
        LPUSH l x => :1
        SET l y GET => -WRONGTYPE Operation against a key holding the wrong kind of value
        SET l y NX => nil
        SET l y => OK
        GET l => y
        SET a 1 bogus => -ERR syntax error
        SET a 1 EX => -ERR syntax error
        SET a 1 NX bogus => -ERR syntax error
    "#,
    );
}

#[test]
fn set_moves_the_deadline_as_its_options_say() {
    replies(
        r#"
        SET a 1 EX 100 => OK
        TTL a => :100
        SET a 2 KEEPTTL => OK
        TTL a => :100
        SET a 3 => OK
        TTL a => :-1
        SET a 1 PX 100000 => OK
        PTTL a => :90000..100000
        SET a 1 EXAT 9999999999 => OK
        EXPIRETIME a => :9999999999
        SET a 1 PXAT 9999999999999 => OK
        PEXPIRETIME a => :9999999999999
        SET a 1 EXAT 1 => OK
        EXISTS a => :0
        SET a 1 EX 0 => -ERR invalid expire time in 'set' command
        SET a 1 EX -1 => -ERR invalid expire time in 'set' command
        SET a 1 PX 0 => -ERR invalid expire time in 'set' command
        SET a 1 EXAT -5 => -ERR invalid expire time in 'set' command
        SET a 1 PXAT 0 => -ERR invalid expire time in 'set' command
        SET a 1 EX x => -ERR value is not an integer or out of range
        SET a 1 EX 9223372036854775807 => -ERR invalid expire time in 'set' command
        SET a 1 EX 9223372036854775 => -ERR invalid expire time in 'set' command
        SET a 1 PX 9223372036854775807 => -ERR invalid expire time in 'set' command
        SET a 1 EX 10 PX 10 => -ERR syntax error
        SET a 1 EX 10 KEEPTTL => -ERR syntax error
        SET a 1 KEEPTTL EX 10 => -ERR syntax error
        SET a 1 EX 10 EX 20 => OK
        SET a 1 EX 1.5 => -ERR value is not an integer or out of range
        SET a 1 EX 10 NX => nil
        TTL a => :20
        SET a 2 EX 20 NX => nil
        TTL a => :20
        SET a 2 XX GET EX 20 => 1
        TTL a => :20
    "#,
    );
}

#[test]
fn setex_psetex_and_setnx_keep_their_old_forms() {
    replies(
        r#"
        SETEX a 100 v => OK
        TTL a => :100
        PSETEX a 100000 w => OK
        PTTL a => :90000..100000
        GET a => w
        SETEX a 0 v => -ERR invalid expire time in 'setex' command
        SETEX a -1 v => -ERR invalid expire time in 'setex' command
        SETEX a x v => -ERR value is not an integer or out of range
        PSETEX a 0 v => -ERR invalid expire time in 'psetex' command
        PSETEX a 9223372036854775807 v => -ERR invalid expire time in 'psetex' command
        SETEX a 10 => -ERR wrong number of arguments for 'setex' command
        SETNX a x => :0
        SETNX b x => :1
        GET b => x
        TTL b => :-1
        SETNX b => -ERR wrong number of arguments for 'setnx' command
    "#,
    );
}

#[test]
fn getex_getdel_and_getset_read_and_change_at_once() {
    replies(
        r#"
        GETEX a => nil
        SET a 1 => OK
        GETEX a EX 100 => 1
        TTL a => :100
        GETEX a => 1
        TTL a => :100
        GETEX a PERSIST => 1
        TTL a => :-1
        GETEX a PX 100000 => 1
        PTTL a => :90000..100000
        GETEX a EXAT 9999999999 => 1
        EXPIRETIME a => :9999999999
        GETEX a PXAT 9999999999999 => 1
        PEXPIRETIME a => :9999999999999
        GETEX a EX 0 => -ERR invalid expire time in 'getex' command
        GETEX a EX 10 PERSIST => -ERR syntax error
        GETEX a KEEPTTL => -ERR syntax error
        GETEX a NX => -ERR syntax error
        GETEX a EX => -ERR syntax error
        GETEX a PXAT 1 => 1
        EXISTS a => :0
        SET a 1 EX 100 => OK
        GETSET a 2 => 1
        TTL a => :-1
        GETSET b 2 => nil
        GETDEL a => 2
        GETDEL a => nil
        EXISTS a => :0
        RPUSH l x => :1
        GETEX l => -WRONGTYPE Operation against a key holding the wrong kind of value
        GETDEL l => -WRONGTYPE Operation against a key holding the wrong kind of value
        GETSET l y => -WRONGTYPE Operation against a key holding the wrong kind of value
        GETDEL => -ERR wrong number of arguments for 'getdel' command
    "#,
    );
}

#[test]
fn append_and_setrange_grow_a_string() {
    replies(
        r#"
        APPEND a foo => :3
        APPEND a bar => :6
        GET a => foobar
        SETRANGE a 1 XX => :6
        GET a => fXXbar
        SETRANGE a 8 end => :11
        GET a => "fXXbar\x00\x00end"
        SETRANGE b 3 x => :4
        GET b => "\x00\x00\x00x"
        SETRANGE c 0 "" => :0
        EXISTS c => :0
        SETRANGE a 0 "" => :11
        SETRANGE a -1 x => -ERR offset is out of range
        SETRANGE a x x => -ERR value is not an integer or out of range
        SETRANGE a 536870912 x => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        SETRANGE a 536870911 xy => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        SETRANGE a 9223372036854775807 x => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        SETRANGE c -1 "" => -ERR offset is out of range
        SET n 10 => OK
        APPEND n 5 => :3
        INCR n => :106
        SET t v EX 100 => OK
        APPEND t w => :2
        TTL t => :100
        SETRANGE t 0 z => :2
        TTL t => :100
        LPUSH l x => :1
        APPEND l x => -WRONGTYPE Operation against a key holding the wrong kind of value
        SETRANGE l 0 x => -WRONGTYPE Operation against a key holding the wrong kind of value
        SETRANGE l 0 "" => -WRONGTYPE Operation against a key holding the wrong kind of value
        STRLEN l => -WRONGTYPE Operation against a key holding the wrong kind of value
        STRLEN missing => :0
    "#,
    );
}

#[test]
fn getrange_counts_from_both_ends() {
    replies(
        r#"
        SET a "Hello World" => OK
        GETRANGE a 0 4 => Hello
        GETRANGE a -5 -1 => World
        GETRANGE a 0 -1 => "Hello World"
        GETRANGE a 4 2 => ""
        GETRANGE a 100 200 => ""
        GETRANGE a -100 2 => Hel
        GETRANGE a -100 -50 => H
        GETRANGE a -1 -100 => ""
        GETRANGE a 5 9223372036854775807 => " World"
        GETRANGE a -9223372036854775808 9223372036854775807 => "Hello World"
        GETRANGE a x 1 => -ERR value is not an integer or out of range
        GETRANGE missing 0 -1 => ""
        SUBSTR a 0 4 => Hello
        SET n 12345 => OK
        GETRANGE n 1 3 => 234
        LPUSH l x => :1
        GETRANGE l 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#,
    );
}

#[test]
fn many_keys_are_set_and_read_at_once() {
    replies(
        r#"
        MSET {t}a 1 {t}b 2 {t}a 3 => OK
        MGET {t}a {t}b {t}c => [3 2 nil]
        MSET {t}a => -ERR wrong number of arguments for 'mset' command
        MSET {t}a 1 {t}b => -ERR wrong number of arguments for 'mset' command
        MSETNX {t}b 9 {t}z 9 => :0
        EXISTS {t}z => :0
        MSETNX {t}y 1 {t}z 2 => :1
        MGET {t}y {t}z => [1 2]
        MSETNX {t}a 1 {t}b => -ERR wrong number of arguments for 'msetnx' command
        MSETNX {t}q 1 {t}q 2 => :1
        GET {t}q => 2
        SET {t}a 1 EX 100 => OK
        MSET {t}a 2 => OK
        TTL {t}a => :-1
        LPUSH {t}l x => :1
        MGET {t}a {t}l => [2 nil]
        MGET => -ERR wrong number of arguments for 'mget' command
    "#,
    );
    replies_resp3(
        r#"
        SET {t}a 1 => OK
        MGET {t}a {t}c => [1 nil]
        GET {t}c => nil
        GETDEL {t}c => nil
    "#,
    );
}

#[test]
fn string_encodings_are_named_as_redis_names_them() {
    replies(
        r#"
        SET a 123 => OK
        OBJECT ENCODING a => int
        SET a 9223372036854775807 => OK
        OBJECT ENCODING a => int
        SET a 9223372036854775808 => OK
        OBJECT ENCODING a => embstr
        SET a -5 => OK
        OBJECT ENCODING a => int
        SET a 007 => OK
        OBJECT ENCODING a => embstr
        SET a "12345678901234567890123456789012345678901234" => OK
        OBJECT ENCODING a => embstr
        SET a "123456789012345678901234567890123456789012345" => OK
        OBJECT ENCODING a => raw
        SET a abc => OK
        APPEND a d => :4
        OBJECT ENCODING a => raw
        TYPE a => +string
    "#,
    );
}

#[test]
fn string_commands_refuse_other_types() {
    replies(
        r#"
        HSET h f v => :1
        GET h => -WRONGTYPE Operation against a key holding the wrong kind of value
        STRLEN h => -WRONGTYPE Operation against a key holding the wrong kind of value
        APPEND h x => -WRONGTYPE Operation against a key holding the wrong kind of value
        INCR h => -WRONGTYPE Operation against a key holding the wrong kind of value
        INCRBYFLOAT h 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        GETRANGE h 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        SETNX h x => :0
        MGET h => [nil]
        SET h now-a-string => OK
        GET h => now-a-string
        SETEX h 100 s => OK
        TYPE h => +string
    "#,
    );
}

#[test]
fn large_values_come_back_whole() {
    let server = Server::start();
    let mut connection = server.connect();
    for length in [1, 100, 16_383, 16_384, 65_536, 1_000_003, 20_000_000] {
        let value: Vec<u8> = (0..length).map(|index| (index * 7 + index / 251) as u8).collect();
        assert_eq!(connection.call(&[b"SET".as_slice(), b"large", &value]).text(), "OK");
        assert_eq!(connection.line("STRLEN large").integer(), length as i64);
        assert!(connection.line("GET large").bytes() == value, "{length} bytes came back changed");
    }
}
