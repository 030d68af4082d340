//! The commands that work on keys of any type.

use crate::support::{Server, Value, replies, replies_resp3};
use std::collections::BTreeSet;

#[test]
fn keys_are_counted_touched_and_deleted() {
    replies(
        r#"
        MSET {t}a 1 {t}b 2 {t}c 3 => OK
        EXISTS {t}a {t}a {t}zz => :2
        TOUCH {t}a {t}b {t}zz => :2
        DEL {t}a {t}zz => :1
        UNLINK {t}b {t}zz {t}c => :2
        DBSIZE => :0
        DEL {t}a => :0
        RPUSH l a => :1
        HSET h a 1 => :1
        SADD s a => :1
        ZADD z 1 a => :1
        SET v a => OK
        TYPE l => +list
        TYPE h => +hash
        TYPE s => +set
        TYPE z => +zset
        TYPE v => +string
        TYPE missing => +none
        DBSIZE => :5
        DEL => -ERR wrong number of arguments for 'del' command
        EXISTS => -ERR wrong number of arguments for 'exists' command
        UNLINK => -ERR wrong number of arguments for 'unlink' command
        TYPE => -ERR wrong number of arguments for 'type' command
        TOUCH => -ERR wrong number of arguments for 'touch' command
    "#,
    );
}

#[test]
fn rename_moves_the_value_with_its_deadline() {
    replies(
        r#"
        SET {t}a 1 EX 100 => OK
        SET {t}b 2 EX 500 => OK
        RENAME {t}a {t}b => OK
        GET {t}b => 1
        TTL {t}b => :100
        EXISTS {t}a => :0
        RENAME {t}a {t}b => -ERR no such key
        RENAME {t}b {t}b => OK
        RENAME {t}missing {t}missing => -ERR no such key
        RPUSH {t}l x y => :2
        RENAME {t}l {t}b => OK
        TTL {t}b => :-1
        LRANGE {t}b 0 -1 => [x y]
        SET {t}c 3 => OK
        RENAMENX {t}b {t}c => :0
        RENAMENX {t}b {t}d => :1
        RENAMENX {t}missing {t}e => -ERR no such key
        RENAMENX {t}d {t}d => :0
        LLEN {t}d => :2
        RENAME {t}a => -ERR wrong number of arguments for 'rename' command
    "#,
    );
}

#[test]
fn copy_leaves_the_source_as_it_is() {
    replies(
        r#"
        SET {t}a 1 EX 100 => OK
        COPY {t}a {t}b => :1
        GET {t}b => 1
        TTL {t}b => :100
        COPY {t}a {t}b => :0
        SET {t}a 2 => OK
        COPY {t}a {t}b REPLACE => :1
        GET {t}b => 2
        TTL {t}b => :-1
        COPY {t}missing {t}c => :0
        COPY {t}a {t}a => -ERR source and destination objects are the same
        COPY {t}a {t}a DB 0 => -ERR source and destination objects are the same
        COPY {t}a {t}a DB 1 => :1
        COPY {t}a {t}a DB 1 => :0
        COPY {t}a {t}a DB 1 REPLACE => :1
        COPY {t}a {t}c DB 99 => -ERR DB index is out of range
        COPY {t}a {t}c DB x => -ERR value is not an integer or out of range
        COPY {t}a {t}c DB => -ERR syntax error
        COPY {t}a {t}c bogus => -ERR syntax error
        RPUSH {t}l a b => :2
        COPY {t}l {t}m => :1
        RPUSH {t}l c => :3
        LRANGE {t}m 0 -1 => [a b]
        HSET {t}h f v => :1
        COPY {t}h {t}i => :1
        HGETALL {t}i => ??[f v]
        SADD {t}s 1 2 => :2
        COPY {t}s {t}u => :1
        SMEMBERS {t}u => ?[1 2]
        ZADD {t}z 1 a => :1
        COPY {t}z {t}y => :1
        ZRANGE {t}y 0 -1 WITHSCORES => [a 1]
        SELECT 1 => OK
        GET {t}a => 2
    "#,
    );
}

#[test]
fn move_and_swapdb_change_the_database() {
    replies(
        r#"
        SET a 1 EX 100 => OK
        SET b 2 => OK
        MOVE a 1 => :1
        MOVE a 1 => :0
        EXISTS a => :0
        MOVE b 0 => -ERR source and destination objects are the same
        MOVE b 16 => -ERR DB index is out of range
        MOVE b -1 => -ERR DB index is out of range
        MOVE b x => -ERR value is not an integer or out of range
        SELECT 1 => OK
        GET a => 1
        TTL a => :100
        SET b 3 => OK
        SELECT 0 => OK
        MOVE b 1 => :0
        GET b => 2
        SWAPDB 0 1 => OK
        GET a => 1
        GET b => 3
        SWAPDB 0 0 => OK
        SWAPDB 0 16 => -ERR DB index is out of range
        SWAPDB x 1 => -ERR invalid first DB index
        SWAPDB 0 x => -ERR invalid second DB index
        SWAPDB 0 -1 => -ERR DB index is out of range
        SELECT 1 => OK
        GET b => 2
        DBSIZE => :1
        SWAPDB 0 => -ERR wrong number of arguments for 'swapdb' command
    "#,
    );
}

#[test]
fn databases_are_apart_from_each_other() {
    replies(
        r#"
        SET a zero => OK
        SELECT 15 => OK
        GET a => nil
        SET a fifteen => OK
        DBSIZE => :1
        SELECT 16 => -ERR DB index is out of range
        SELECT -1 => -ERR DB index is out of range
        SELECT x => -ERR value is not an integer or out of range
        SELECT 999999999999 => -ERR value is out of range, value must between -2147483648 and 2147483647
        SELECT => -ERR wrong number of arguments for 'select' command
        GET a => fifteen
        FLUSHDB => OK
        DBSIZE => :0
        SELECT 0 => OK
        GET a => zero
        SELECT 3 => OK
        SET x 1 => OK
        FLUSHALL => OK
        SELECT 0 => OK
        DBSIZE => :0
        FLUSHALL ASYNC => OK
        FLUSHALL SYNC => OK
        FLUSHDB ASYNC => OK
        FLUSHDB SYNC => OK
        FLUSHALL bogus => -ERR syntax error
        FLUSHDB bogus => -ERR syntax error
    "#,
    );
}

#[test]
fn keys_matches_glob_patterns() {
    replies(
        r#"
        SET hello 1 => OK
        SET hallo 1 => OK
        SET hxllo 1 => OK
        SET heello 1 => OK
        SET "h*llo" 1 => OK
        SET "[x]" 1 => OK
        KEYS * => ?["[x]" hxllo "h*llo" hello hallo heello]
        KEYS h?llo => ?[hxllo "h*llo" hello hallo]
        KEYS h*llo => ?[hxllo "h*llo" hello hallo heello]
        KEYS h[ae]llo => ?[hello hallo]
        KEYS h[^e]llo => ?[hxllo "h*llo" hallo]
        KEYS h[a-f]llo => ?[hello hallo]
        KEYS "h\\*llo" => ?["h*llo"]
        KEYS "\\[x\\]" => ?["[x]"]
        KEYS nothing* => ?[]
        KEYS "" => ?[]
        KEYS hel[ => ?[]
        KEYS *l*l* => ?[hxllo "h*llo" hello hallo heello]
        KEYS => -ERR wrong number of arguments for 'keys' command
    "#,
    );
}

#[test]
fn randomkey_gives_any_key() {
    let server = Server::start();
    let mut connection = server.connect();
    assert_eq!(connection.line("RANDOMKEY"), Value::Null);
    let keys: BTreeSet<String> = (0..20).map(|index| format!("key:{index}")).collect();
    for key in &keys {
        connection.call(&["SET", key, "v"]);
    }
    let mut seen = BTreeSet::new();
    for _ in 0..1_000 {
        seen.insert(connection.line("RANDOMKEY").text().to_owned());
    }
    assert_eq!(seen, keys, "1,000 picks of 20 keys leave one out with a probability below 10^-20");
}

#[test]
fn scan_visits_every_key_that_stays() {
    let server = Server::start();
    let mut connection = server.connect();
    for index in 0..3_000 {
        connection.line(&format!("SET stays:{index} v"));
        connection.line(&format!("SET goes:{index} v"));
    }
    let mut found = BTreeSet::new();
    let mut cursor = "0".to_owned();
    let mut round = 0;
    loop {
        let reply = connection.call(&["SCAN", &cursor, "COUNT", "50"]);
        found.extend(reply.elements()[1].elements().iter().map(|key| key.text().to_owned()));
        cursor = reply.elements()[0].text().to_owned();
        if cursor == "0" {
            break;
        }
        for index in round * 30..(round + 1) * 30 {
            connection.line(&format!("DEL goes:{index}"));
            connection.line(&format!("SET comes:{index} v"));
        }
        round += 1;
        assert!(round < 10_000, "SCAN does not come to an end");
    }
    let missing = (0..3_000).find(|index| !found.contains(&format!("stays:{index}")));
    assert_eq!(missing, None, "a key that was there all the time was left out");
}

#[test]
fn scan_filters_by_pattern_and_type() {
    replies(
        r#"
        SET a 1 => OK
        SET ab 1 => OK
        RPUSH l 1 => :1
        ZADD z 1 a => :1
        SCAN 0 COUNT 1000 => [0 ?[a ab l z]]
        SCAN 0 MATCH a* COUNT 1000 => [0 ?[a ab]]
        SCAN 0 TYPE list COUNT 1000 => [0 ?[l]]
        SCAN 0 TYPE ZSET COUNT 1000 => [0 ?[z]]
        SCAN 0 COUNT 1000 TYPE string MATCH *b => [0 ?[ab]]
        SCAN 0 COUNT 1000 MATCH nothing => [0 []]
        SCAN x => -ERR invalid cursor
        SCAN 0 COUNT 0 => -ERR syntax error
        SCAN 0 COUNT -1 => -ERR syntax error
        SCAN 0 COUNT x => -ERR value is not an integer or out of range
        SCAN 0 MATCH => -ERR syntax error
        SCAN 0 bogus x => -ERR syntax error
        SCAN => -ERR wrong number of arguments for 'scan' command
    "#,
    );
}

#[test]
fn object_tells_about_a_key() {
    replies(
        r#"
        OBJECT ENCODING missing => nil
        OBJECT REFCOUNT missing => nil
        OBJECT IDLETIME missing => nil
        SET a v => OK
        OBJECT REFCOUNT a => :1
        OBJECT IDLETIME a => :0
        OBJECT FREQ a => -ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.
        OBJECT bogus a => -ERR unknown subcommand 'bogus'. Try OBJECT HELP.
        OBJECT ENCODING => -ERR wrong number of arguments for 'object|encoding' command
        OBJECT => -ERR wrong number of arguments for 'object' command
        CONFIG SET maxmemory-policy allkeys-lfu => OK
        SET b v => OK
        OBJECT FREQ b => :0..10
        OBJECT IDLETIME b => -ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.
    "#,
    );
    let server = Server::start();
    let help = server.connect().line("OBJECT HELP");
    assert!(help.elements().iter().any(|line| line.text().starts_with("ENCODING")));
}

#[test]
fn nulls_of_resp3_are_one() {
    replies_resp3(
        r#"
        RANDOMKEY => nil
        OBJECT ENCODING missing => nil
        SCAN 0 COUNT 1000 => [0 []]
        KEYS * => []
        TYPE missing => +none
        COPY {t}a {t}b => :0
    "#,
    );
}
