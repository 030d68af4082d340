//! The bitmap commands, option by option.

use crate::support::replies;

#[test]
fn bits_are_set_and_read_one_by_one() {
    replies(
        r#"
        SETBIT k 7 1 => :0
        SETBIT k 7 0 => :1
        SETBIT k 7 1 => :0
        GET k => "\x01"
        SETBIT k 8 0 => :0
        STRLEN k => :2
        GETBIT k 7 => :1
        GETBIT k 6 => :0
        GETBIT k 4000000000 => :0
        GETBIT missing 3 => :0
        SET n 12 => OK
        GETBIT n 2 => :1
        SETBIT n 7 0 => :1
        GET n => "02"
        EXPIREAT n 9000000000 => :1
        SETBIT n 7 1 => :0
        EXPIRETIME n => :9000000000
        SETBIT k -1 1 => -ERR bit offset is not an integer or out of range
        SETBIT k x 1 => -ERR bit offset is not an integer or out of range
        SETBIT k #1 1 => -ERR bit offset is not an integer or out of range
        SETBIT k 4294967296 1 => -ERR bit offset is not an integer or out of range
        SETBIT k 1 2 => -ERR bit is not an integer or out of range
        SETBIT k 1 x => -ERR bit is not an integer or out of range
        GETBIT k -1 => -ERR bit offset is not an integer or out of range
        RPUSH list a => :1
        SETBIT list 1 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        GETBIT list 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#,
    );
}

#[test]
fn bits_are_counted_in_parts() {
    replies(
        r#"
        SET k foobar => OK
        BITCOUNT k => :26
        BITCOUNT k 0 0 => :4
        BITCOUNT k 1 1 BYTE => :6
        BITCOUNT k -2 -1 => :7
        BITCOUNT k 5 30 bit => :17
        BITCOUNT k -2 1 => :0
        BITCOUNT k -6 -7 => :0
        BITCOUNT k 0 -1000 => :4
        BITCOUNT k -1000 1000 BIT => :26
        BITCOUNT k 9223372036854775807 -9223372036854775808 => :0
        BITCOUNT missing => :0
        BITCOUNT missing 0 100 BIT => :0
        BITCOUNT k x 1 => -ERR value is not an integer or out of range
        BITCOUNT k 0 x => -ERR value is not an integer or out of range
        BITCOUNT k 0 1 bytes => -ERR syntax error
        BITCOUNT k 0 1 BIT BIT => -ERR syntax error
        RPUSH list a => :1
        BITCOUNT list => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#,
    );
}

/// Redis takes a start alone from 8.0 on, and since then it looks at the words before it looks for the key.
#[test]
fn the_end_of_a_count_may_be_left_out() {
    replies(
        r#"
        SET k foobar => OK
        7.2| BITCOUNT k 1 => :22
        7.2| BITCOUNT k -1 => :4
        7.2| BITCOUNT missing x 1 => -ERR value is not an integer or out of range
        7.2| BITPOS missing 1 x => -ERR value is not an integer or out of range
    "#,
    );
}

#[test]
fn first_bits_are_found_in_parts() {
    replies(
        r#"
        SET k "\xff\xf0\x00" => OK
        BITPOS k 0 => :12
        BITPOS k 1 => :0
        BITPOS k 1 2 => :-1
        BITPOS k 0 0 0 => :-1
        BITPOS k 0 0 1 BYTE => :12
        BITPOS k 0 3 11 BIT => :-1
        BITPOS k 0 3 12 BIT => :12
        BITPOS k 1 -2 -1 => :8
        BITPOS k 1 -13 -1 BIT => :11
        SET ones "\xff\xff" => OK
        BITPOS ones 0 => :16
        BITPOS ones 0 1 => :16
        BITPOS ones 0 0 -1 => :-1
        BITPOS ones 0 2 => :-1
        SET empty "" => OK
        BITPOS empty 0 => :-1
        BITPOS missing 0 => :0
        BITPOS missing 1 => :-1
        BITPOS k 2 => -ERR The bit argument must be 1 or 0.
        BITPOS k x => -ERR value is not an integer or out of range
        BITPOS k 1 0 x => -ERR value is not an integer or out of range
        BITPOS k 1 0 1 2 => -ERR syntax error
        BITPOS k 1 0 1 BIT BIT => -ERR syntax error
        RPUSH list a => :1
        BITPOS list 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#,
    );
}

#[test]
fn strings_are_combined_as_if_zeros_followed_them() {
    replies(
        r#"
        SET {t}a "\xff\x0f\x55" => OK
        SET {t}b "\x0f\xff" => OK
        BITOP AND {t}d {t}a {t}b => :3
        GET {t}d => "\x0f\x0f\x00"
        BITOP or {t}d {t}b {t}a => :3
        GET {t}d => "\xff\xff\x55"
        BITOP XOR {t}d {t}a {t}b {t}missing => :3
        GET {t}d => "\xf0\xf0\x55"
        BITOP NOT {t}d {t}a => :3
        GET {t}d => "\x00\xf0\xaa"
        BITOP AND {t}d {t}a {t}missing => :3
        GET {t}d => "\x00\x00\x00"
        EXPIREAT {t}a 9000000000 => :1
        BITOP NOT {t}a {t}a => :3
        GET {t}a => "\x00\xf0\xaa"
        TTL {t}a => :-1
        RPUSH {t}d2 x => :1
        BITOP OR {t}d2 {t}a => :3
        TYPE {t}d2 => +string
        BITOP AND {t}d {t}missing => :0
        EXISTS {t}d => :0
        BITOP NAND {t}d {t}a => -ERR syntax error
        BITOP NOT {t}d {t}a {t}b => -ERR BITOP NOT must be called with a single source key.
        RPUSH {t}list a => :1
        BITOP OR {t}d {t}a {t}list => -WRONGTYPE Operation against a key holding the wrong kind of value
        EXISTS {t}d => :0
    "#,
    );
}

#[test]
fn fields_are_read_set_and_added_to() {
    replies(
        r##"
        BITFIELD k SET u8 0 255 GET i8 0 INCRBY i5 100 1 GET u4 0 => [:0 :-1 :1 :15]
        STRLEN k => :14
        BITFIELD k GET u8 #0 GET u8 #1 GET u8 1 GET u63 4000000000 => [:255 :0 :254 :0]
        BITFIELD k SET i8 #1 -100 GET u8 8 => [:0 :156]
        BITFIELD k INCRBY u2 200 1 OVERFLOW SAT INCRBY u2 200 9 OVERFLOW FAIL INCRBY u2 200 1 GET u2 200 => [:1 :3 nil :3]
        BITFIELD k OVERFLOW WRAP INCRBY u2 200 1 => [:0]
        BITFIELD w SET i64 3 -9223372036854775808 INCRBY i64 3 -1 => [:0 :9223372036854775807]
        BITFIELD w OVERFLOW SAT INCRBY i64 3 1 SET i8 0 300 GET i8 0 => [:9223372036854775807 :15 :127]
        BITFIELD w OVERFLOW FAIL SET u8 0 256 => [nil]
        BITFIELD k => []
        BITFIELD k OVERFLOW SAT => []
        BITFIELD missing GET u8 0 => [:0]
        EXISTS missing => :0
        BITFIELD missing OVERFLOW FAIL SET u8 0 256 => [nil]
        STRLEN missing => :1
        BITFIELD_RO k GET u8 0 get i8 0 => [:255 :-1]
        BITFIELD_RO k => []
        BITFIELD_RO k SET u8 0 1 => -ERR BITFIELD_RO only supports the GET subcommand
        BITFIELD k GET u64 0 => -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        BITFIELD k GET i65 0 => -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        BITFIELD k GET u8 -1 => -ERR bit offset is not an integer or out of range
        BITFIELD k GET u8 #9223372036854775807 => -ERR bit offset is not an integer or out of range
        BITFIELD k SET u8 0 x => -ERR value is not an integer or out of range
        BITFIELD k OVERFLOW other => -ERR Invalid OVERFLOW type specified
        BITFIELD k GET u8 => -ERR syntax error
        BITFIELD k SET u8 0 => -ERR syntax error
        BITFIELD k SET u8 0 7 other => -ERR syntax error
        BITFIELD k GET u8 0 => [:255]
        RPUSH list a => :1
        BITFIELD list GET u8 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
        BITFIELD list SET u8 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
    "##,
    );
}
