//! HyperLogLogs: the commands, and their values on the way between this server and Redis.

use crate::support::{Connection, Server, Value, replies};

#[test]
fn elements_are_added_counted_and_merged() {
    replies(
        r#"
        PFADD {t}a x y z => :1
        PFADD {t}a x y z => :0
        PFADD {t}a => :0
        PFCOUNT {t}a => :3
        PFCOUNT {t}a => :3
        PFADD {t}empty => :1
        PFCOUNT {t}empty => :0
        PFCOUNT {t}missing => :0
        EXISTS {t}missing => :0
        PFADD {t}b z 1 2 => :1
        PFCOUNT {t}a {t}b {t}missing => :5
        PFMERGE {t}d {t}a {t}b {t}missing => OK
        PFCOUNT {t}d => :5
        PFMERGE {t}new => OK
        PFCOUNT {t}new => :0
        EXPIREAT {t}a 9000000000 => :1
        PFADD {t}a w => :1
        PFMERGE {t}a {t}b => OK
        EXPIRETIME {t}a => :9000000000
        TYPE {t}a => +string
        STRLEN {t}empty => :18
    "#,
    );
}

#[test]
fn the_forms_of_a_sketch_are_shown() {
    replies(
        r#"
        PFADD k foo bar zap a => :1
        PFDEBUG ENCODING k => +sparse
        PFDEBUG DECODE k => "Z:7348 v:5,1 Z:520 v:2,1 Z:2137 v:1,1 Z:2703 v:2,1 Z:3672"
        PFDEBUG TODENSE k => :1
        PFDEBUG TODENSE k => :0
        PFDEBUG encoding k => +dense
        STRLEN k => :12304
        PFDEBUG DECODE k => -ERR HLL encoding is not sparse
        PFADD k foo => :0
        PFADD k another => :1
        PFCOUNT k => :5
        PFADD s one => :1
        PFDEBUG OTHER s => -ERR Unknown PFDEBUG subcommand 'OTHER'
        PFDEBUG GETREG missing => -ERR The specified key does not exist
        PFDEBUG ENCODING => -ERR wrong number of arguments for 'pfdebug' command
        CONFIG GET hll-sparse-max-bytes => [hll-sparse-max-bytes 3000]
        CONFIG SET hll-sparse-max-bytes 20 => OK
        PFADD early a => :1
        PFDEBUG ENCODING early => +dense
    "#,
    );
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("PFADD k foo bar zap a");
    let registers = connection.line("PFDEBUG GETREG k");
    assert_eq!(registers.elements().len(), 16_384);
    assert_eq!(registers.elements().iter().filter(|register| register.integer() > 0).count(), 4);
    assert_eq!(connection.line("PFDEBUG ENCODING k").text(), "dense");
}

#[test]
fn what_is_no_sketch_or_a_corrupt_one_is_refused() {
    replies(
        r#"
        SET {t}text hello => OK
        PFADD {t}text a => -WRONGTYPE Key is not a valid HyperLogLog string value.
        PFCOUNT {t}text => -WRONGTYPE Key is not a valid HyperLogLog string value.
        PFCOUNT {t}missing {t}text => -WRONGTYPE Key is not a valid HyperLogLog string value.
        PFMERGE {t}d {t}text => -WRONGTYPE Key is not a valid HyperLogLog string value.
        EXISTS {t}d => :0
        PFDEBUG ENCODING {t}text => -WRONGTYPE Key is not a valid HyperLogLog string value.
        SET {t}number 1 => OK
        PFADD {t}number a => -WRONGTYPE Key is not a valid HyperLogLog string value.
        SET {t}form "HYLL\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff" => OK
        PFCOUNT {t}form => -WRONGTYPE Key is not a valid HyperLogLog string value.
        SET {t}short "HYLL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff" => OK
        PFCOUNT {t}short => -WRONGTYPE Key is not a valid HyperLogLog string value.
        RPUSH {t}list a => :1
        PFADD {t}list a => -WRONGTYPE Operation against a key holding the wrong kind of value
        PFCOUNT {t}list => -WRONGTYPE Operation against a key holding the wrong kind of value
        SET {t}corrupt "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xfe" => OK
        PFCOUNT {t}corrupt => -INVALIDOBJ Corrupted HLL object detected
        PFCOUNT {t}missing {t}corrupt => -INVALIDOBJ Corrupted HLL object detected
        PFMERGE {t}d {t}corrupt => -INVALIDOBJ Corrupted HLL object detected
        PFDEBUG TODENSE {t}corrupt => -INVALIDOBJ Corrupted HLL object detected
        SET {t}none "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80" => OK
        PFADD {t}none a => -INVALIDOBJ Corrupted HLL object detected
        PFDEBUG DECODE {t}none => ""
        SET {t}cached "HYLL\x01\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00" => OK
        PFCOUNT {t}cached => :7
    "#,
    );
}

fn add(connection: &mut Connection, key: &str, elements: std::ops::Range<usize>) {
    for number in elements {
        connection.call(&["PFADD", key, &format!("element:{number}")]);
    }
}

fn both(ours: &mut Connection, theirs: &mut Connection, line: &str) -> Value {
    let (our_reply, their_reply) = (ours.line(line), theirs.line(line));
    assert_eq!(our_reply, their_reply, "{line}");
    our_reply
}

#[test]
fn values_move_between_this_server_and_redis_byte_for_byte() {
    let Some(redis) = Server::start_redis(&[]) else {
        println!("skipped: no redis-server on PATH to compare with");
        return;
    };
    let server = Server::start();
    let (ours, theirs) = (&mut server.connect(), &mut redis.connect());
    for count in [0, 1, 10, 300, 1_200, 3_000, 12_000] {
        for connection in [&mut *ours, &mut *theirs] {
            connection.line("DEL {t}k {t}moved");
            connection.line("PFADD {t}k");
            add(connection, "{t}k", 0..count);
        }
        let our_value = ours.line("GET {t}k");
        assert_eq!(our_value, theirs.line("GET {t}k"), "{count} elements");
        // Each goes on with the other's bytes.
        let their_value = theirs.line("GET {t}k");
        ours.call(&[&b"SET"[..], b"{t}moved", their_value.bytes()]);
        theirs.call(&[&b"SET"[..], b"{t}moved", our_value.bytes()]);
        for connection in [&mut *ours, &mut *theirs] {
            add(connection, "{t}moved", count..count + 20);
        }
        both(ours, theirs, "GET {t}moved");
        both(ours, theirs, "PFCOUNT {t}moved");
        both(ours, theirs, "PFCOUNT {t}k {t}moved");
        both(ours, theirs, "PFMERGE {t}union {t}moved {t}k");
        both(ours, theirs, "PFCOUNT {t}union");
        both(ours, theirs, "GET {t}union");
    }
}
