//! The hash commands, option by option.

use crate::support::{Server, Value, replies, replies_resp3};
use std::collections::BTreeSet;

#[test]
fn fields_are_set_read_and_removed() {
    replies(
        r#"
        HSET h a 1 b 2 => :2
        HSET h a 3 c 4 => :1
        HGET h a => 3
        HGET h missing => nil
        HGET missing a => nil
        HMSET h d 5 e 6 => OK
        HMGET h a d missing => [3 5 nil]
        HMGET missing a b => [nil nil]
        HLEN h => :5
        HLEN missing => :0
        HEXISTS h a => :1
        HEXISTS h zz => :0
        HEXISTS missing a => :0
        HSTRLEN h d => :1
        HSTRLEN h zz => :0
        HGETALL h => ??[a 3 b 2 c 4 d 5 e 6]
        HKEYS h => ?[a b c d e]
        HVALS h => ?[3 2 4 5 6]
        HGETALL missing => ??[]
        HKEYS missing => ?[]
        HVALS missing => ?[]
        HSETNX h a 9 => :0
        HSETNX h n 9 => :1
        HDEL h a b zz => :2
        HDEL h a => :0
        HDEL missing a => :0
        HDEL h c d e n => :4
        EXISTS h => :0
    "#,
    );
}

#[test]
fn hash_commands_check_arity_and_type() {
    replies(
        r#"
        HSET h => -ERR wrong number of arguments for 'hset' command
        HSET h a => -ERR wrong number of arguments for 'hset' command
        HSET h a 1 b => -ERR wrong number of arguments for 'hset' command
        HMSET h a => -ERR wrong number of arguments for 'hmset' command
        HMSET h a 1 b => -ERR wrong number of arguments for 'hmset' command
        HGET h => -ERR wrong number of arguments for 'hget' command
        HMGET h => -ERR wrong number of arguments for 'hmget' command
        HDEL h => -ERR wrong number of arguments for 'hdel' command
        HSETNX h a => -ERR wrong number of arguments for 'hsetnx' command
        HINCRBY h a => -ERR wrong number of arguments for 'hincrby' command
        SET s v => OK
        HSET s a 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        HMSET s a 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        HGET s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        HMGET s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        HDEL s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        HLEN s => -WRONGTYPE Operation against a key holding the wrong kind of value
        HGETALL s => -WRONGTYPE Operation against a key holding the wrong kind of value
        HKEYS s => -WRONGTYPE Operation against a key holding the wrong kind of value
        HVALS s => -WRONGTYPE Operation against a key holding the wrong kind of value
        HEXISTS s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        HSTRLEN s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        HSETNX s a 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        HINCRBY s a 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        HINCRBYFLOAT s a 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        HRANDFIELD s => -WRONGTYPE Operation against a key holding the wrong kind of value
        HRANDFIELD s 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        HSCAN s 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#,
    );
}

#[test]
fn hincrby_counts_in_a_field() {
    replies(
        r#"
        HINCRBY h a 5 => :5
        HINCRBY h a -7 => :-2
        HSET h s abc => :1
        HINCRBY h s 1 => -ERR hash value is not an integer
        HSET h s " 1" => :0
        HINCRBY h s 1 => -ERR hash value is not an integer
        HSET h m 9223372036854775807 => :1
        HINCRBY h m 1 => -ERR increment or decrement would overflow
        HSET h n -9223372036854775808 => :1
        HINCRBY h n -1 => -ERR increment or decrement would overflow
        HINCRBY h a x => -ERR value is not an integer or out of range
        HINCRBY h a 1.5 => -ERR value is not an integer or out of range
        HINCRBY h a 9223372036854775808 => -ERR value is not an integer or out of range
        HGET h a => "-2"
        HINCRBYFLOAT h f 1.5 => 1.5
        HINCRBYFLOAT h f -0.25 => 1.25
        HINCRBYFLOAT h a 0.5 => "-1.5"
        HINCRBYFLOAT h a x => -ERR value is not a valid float
        HINCRBYFLOAT h a inf => -ERR value is NaN or Infinity
        HINCRBYFLOAT h a nan => -ERR value is not a valid float
        HINCRBYFLOAT h s 1 => -ERR hash value is not a float
        HSET h t abc => :1
        HINCRBYFLOAT h t 1 => -ERR hash value is not a float
        HGET h f => 1.25
        EXPIRE h 100 => :1
        HINCRBY h a2 1 => :1
        TTL h => :100
    "#,
    );
}

#[test]
fn hrandfield_respects_count_and_shape() {
    replies(
        r#"
        HRANDFIELD missing => nil
        HRANDFIELD missing 3 => []
        HRANDFIELD missing -3 => []
        HRANDFIELD missing 3 WITHVALUES => []
        HSET h a 1 => :1
        HRANDFIELD h => a
        HRANDFIELD h 0 => []
        HRANDFIELD h 5 => [a]
        HRANDFIELD h -3 => [a a a]
        HRANDFIELD h 1 WITHVALUES => [a 1]
        HRANDFIELD h -2 WITHVALUES => [a 1 a 1]
        HRANDFIELD h 1 bogus => -ERR syntax error
        HRANDFIELD h x => -ERR value is not an integer or out of range
        HRANDFIELD h 1 WITHVALUES extra => -ERR syntax error
        HRANDFIELD h -9223372036854775808 => -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        HRANDFIELD h -4611686018427387904 WITHVALUES => -ERR value is out of range
    "#,
    );
    replies_resp3(
        r#"
        HSET h a 1 => :1
        HRANDFIELD h -2 WITHVALUES => [[a 1] [a 1]]
        HRANDFIELD h 1 => [a]
        HGETALL h => %[a 1]
        HGETALL missing => %[]
        HRANDFIELD missing => nil
        HMGET h a b => [1 nil]
        HKEYS h => ?[a]
        HINCRBYFLOAT h a 0.5 => 1.5
    "#,
    );
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("HSET h a 1 b 2 c 3 d 4 e 5");
    let distinct: BTreeSet<Value> = connection.line("HRANDFIELD h 4").elements().iter().cloned().collect();
    assert_eq!(distinct.len(), 4, "a positive count gives distinct fields");
    assert_eq!(connection.line("HRANDFIELD h -50").elements().len(), 50, "a negative count allows repetition");
    assert_eq!(connection.line("HRANDFIELD h 50 WITHVALUES").elements().len(), 10);
}

#[test]
fn hash_encodings_change_at_the_configured_limits() {
    replies(
        r#"
        HSET h a 1 => :1
        OBJECT ENCODING h => listpack
        CONFIG SET hash-max-listpack-entries 2 => OK
        HSET h b 2 => :1
        OBJECT ENCODING h => listpack
        HSET h c 3 => :1
        OBJECT ENCODING h => hashtable
        HDEL h c b => :2
        OBJECT ENCODING h => hashtable
        CONFIG SET hash-max-listpack-value 4 => OK
        HSET g a 1234 => :1
        OBJECT ENCODING g => listpack
        HSET g a 12345 => :0
        OBJECT ENCODING g => hashtable
        HGET g a => 12345
        CONFIG GET hash-max-listpack-* => ??[hash-max-listpack-value 4 hash-max-listpack-entries 2]
        CONFIG SET hash-max-ziplist-entries 7 => OK
        CONFIG GET hash-max-listpack-entries => [hash-max-listpack-entries 7]
    "#,
    );
}

#[test]
fn hscan_gives_every_field_once_and_filters() {
    replies(
        r#"
        HSET h aa 1 ab 2 b 3 => :3
        HSCAN h 0 => [0 ??[aa 1 ab 2 b 3]]
        HSCAN h 0 MATCH b => [0 ??[b 3]]
        HSCAN h 0 COUNT 100 => [0 ??[aa 1 ab 2 b 3]]
        HSCAN h 0 NOVALUES COUNT 100 => [0 ?[aa ab b]]
        HSCAN h 0 MATCH a* novalues => [0 ??[aa ab]]
        HSCAN h 0 NOSCORES => -ERR NOSCORES option can only be used in ZSCAN
        HSCAN h 0 MATCH zz COUNT 5 => [0 ??[]]
        HSCAN missing 0 => [0 ??[]]
        HSCAN h x => -ERR invalid cursor
        HSCAN h 0 COUNT 0 => -ERR syntax error
        HSCAN h 0 COUNT x => -ERR value is not an integer or out of range
        HSCAN h 0 MATCH => -ERR syntax error
        HSCAN h 0 TYPE string => -ERR syntax error
    "#,
    );
    let server = Server::start();
    let mut connection = server.connect();
    let fields: Vec<String> = (0..1_000).map(|index| format!("field:{index}")).collect();
    for field in &fields {
        connection.call(&["HSET", "h", field, "v"]);
    }
    let mut found = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply = connection.call(&["HSCAN", "h", &cursor, "COUNT", "20"]);
        found.extend(reply.elements()[1].elements().chunks(2).map(|pair| pair[0].text().to_owned()));
        cursor = reply.elements()[0].text().to_owned();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(found.iter().collect::<BTreeSet<_>>(), fields.iter().collect::<BTreeSet<_>>());
}
