//! The set commands, option by option.

use crate::support::{Connection, Server, Value, replies, replies_resp3, wait_until};
use std::collections::BTreeSet;

#[test]
fn members_are_added_tested_and_removed() {
    replies(
        r#"
        SADD s a b c => :3
        SADD s a d => :1
        SCARD s => :4
        SCARD missing => :0
        SISMEMBER s a => :1
        SISMEMBER s zz => :0
        SISMEMBER missing a => :0
        SMISMEMBER s a zz b => [:1 :0 :1]
        SMISMEMBER missing a b => [:0 :0]
        SMEMBERS s => ?[d c b a]
        SMEMBERS missing => ?[]
        SREM s a zz => :1
        SREM missing a => :0
        SREM s b c d => :3
        EXISTS s => :0
        SADD s => -ERR wrong number of arguments for 'sadd' command
        SREM s => -ERR wrong number of arguments for 'srem' command
        SISMEMBER s => -ERR wrong number of arguments for 'sismember' command
        SMISMEMBER s => -ERR wrong number of arguments for 'smismember' command
    "#,
    );
    replies_resp3(
        r#"
        SADD s a b c => :3
        SMEMBERS s => ~[c b a]
        SMEMBERS missing => ~[]
        SISMEMBER s a => :1
        SMISMEMBER s a zz => [:1 :0]
        SPOP missing => nil
        SPOP missing 3 => ~[]
        SRANDMEMBER s 0 => []
        SPOP s 3 => ~[a b c]
        SINTER s s => ~[]
    "#,
    );
}

#[test]
fn smove_moves_one_member() {
    replies(
        r#"
        SADD {t}a x y => :2
        SADD {t}b z => :1
        SMOVE {t}a {t}b x => :1
        SMOVE {t}a {t}b nothere => :0
        SMOVE {t}missing {t}b x => :0
        SMEMBERS {t}a => ?[y]
        SMEMBERS {t}b => ?[x z]
        SMOVE {t}a {t}c y => :1
        EXISTS {t}a => :0
        SMEMBERS {t}c => ?[y]
        SMOVE {t}c {t}c y => :1
        SADD {t}b y => :1
        SMOVE {t}c {t}b y => :1
        EXISTS {t}c => :0
        SET {t}s v => OK
        SMOVE {t}b {t}s x => -WRONGTYPE Operation against a key holding the wrong kind of value
        SMOVE {t}s {t}b x => -WRONGTYPE Operation against a key holding the wrong kind of value
        SMOVE {t}missing {t}s x => :0
        SCARD {t}b => :3
    "#,
    );
}

#[test]
fn sets_are_combined() {
    replies(
        r#"
        SADD {t}a 1 2 3 4 => :4
        SADD {t}b 3 4 5 => :3
        SADD {t}c 4 9 => :2
        SINTER {t}a {t}b => ?[3 4]
        SINTER {t}a {t}b {t}c => ?[4]
        SINTER {t}a {t}missing => ?[]
        SUNION {t}a {t}b => ?[1 2 3 4 5]
        SUNION {t}missing => ?[]
        SDIFF {t}a {t}b => ?[1 2]
        SDIFF {t}a {t}b {t}c {t}missing => ?[1 2]
        SDIFF {t}missing {t}a => ?[]
        SINTERSTORE {t}d {t}a {t}b => :2
        SMEMBERS {t}d => ?[3 4]
        SUNIONSTORE {t}d {t}a {t}b {t}c => :6
        SCARD {t}d => :6
        SDIFFSTORE {t}d {t}a {t}b => :2
        SMEMBERS {t}d => ?[1 2]
        SINTERSTORE {t}d {t}a {t}missing => :0
        EXISTS {t}d => :0
        SUNIONSTORE {t}a {t}a {t}b => :5
        SMEMBERS {t}a => ?[1 2 3 4 5]
        SET {t}s v EX 100 => OK
        SUNIONSTORE {t}s {t}b => :3
        TTL {t}s => :-1
        TYPE {t}s => +set
        SET {t}s v => OK
        SINTER {t}a {t}s => -WRONGTYPE Operation against a key holding the wrong kind of value
        SINTER {t}missing {t}s => -WRONGTYPE Operation against a key holding the wrong kind of value
        SUNION {t}a {t}s => -WRONGTYPE Operation against a key holding the wrong kind of value
        SDIFF {t}a {t}s => -WRONGTYPE Operation against a key holding the wrong kind of value
        SUNIONSTORE {t}d {t}s => -WRONGTYPE Operation against a key holding the wrong kind of value
        SINTER => -ERR wrong number of arguments for 'sinter' command
        SUNIONSTORE {t}d => -ERR wrong number of arguments for 'sunionstore' command
    "#,
    );
}

#[test]
fn sintercard_counts_up_to_a_limit() {
    replies(
        r#"
        SADD {t}a 1 2 3 4 => :4
        SADD {t}b 2 3 4 5 => :4
        SINTERCARD 2 {t}a {t}b => :3
        SINTERCARD 2 {t}a {t}b LIMIT 2 => :2
        SINTERCARD 2 {t}a {t}b LIMIT 0 => :3
        SINTERCARD 1 {t}a => :4
        SINTERCARD 2 {t}a {t}missing => :0
        SINTERCARD 0 {t}a => -ERR numkeys should be greater than 0
        SINTERCARD -1 {t}a => -ERR numkeys should be greater than 0
        SINTERCARD x {t}a => -ERR numkeys should be greater than 0
        SINTERCARD 3 {t}a {t}b => -ERR Number of keys can't be greater than number of args
        SINTERCARD 1 {t}a LIMIT -1 => -ERR LIMIT can't be negative
        SINTERCARD 1 {t}a LIMIT x => -ERR LIMIT can't be negative
        SINTERCARD 1 {t}a LIMIT => -ERR syntax error
        SINTERCARD 1 {t}a bogus 1 => -ERR syntax error
        SINTERCARD 1 => -ERR wrong number of arguments for 'sintercard' command
    "#,
    );
}

#[test]
fn spop_and_srandmember_pick_at_random() {
    replies(
        r#"
        SPOP missing => nil
        SPOP missing 2 => []
        SRANDMEMBER missing => nil
        SRANDMEMBER missing 2 => []
        SRANDMEMBER missing -2 => []
        SADD s a => :1
        SRANDMEMBER s => a
        SRANDMEMBER s 5 => [a]
        SRANDMEMBER s -3 => [a a a]
        SRANDMEMBER s 0 => []
        SRANDMEMBER s x => -ERR value is not an integer or out of range
        SRANDMEMBER s -9223372036854775808 => -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        SRANDMEMBER s 1 2 => -ERR syntax error
        SPOP s 0 => []
        SPOP s -1 => -ERR value is out of range, must be positive
        SPOP s x => -ERR value is out of range, must be positive
        SPOP s 1 2 => -ERR syntax error
        SPOP s => a
        EXISTS s => :0
        SADD s a b => :2
        SPOP s 5 => ?[a b]
        EXISTS s => :0
        SET str v => OK
        SPOP str => -WRONGTYPE Operation against a key holding the wrong kind of value
        SRANDMEMBER str => -WRONGTYPE Operation against a key holding the wrong kind of value
        SRANDMEMBER str 2 => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#,
    );
    let server = Server::start();
    let mut connection = server.connect();
    let mut command = vec!["SADD".to_owned(), "s".to_owned()];
    command.extend((0..1_000).map(|index| format!("member:{index}")));
    connection.call(&command);
    let picked: BTreeSet<Value> = connection.line("SRANDMEMBER s 900").elements().iter().cloned().collect();
    assert_eq!(picked.len(), 900, "a positive count gives distinct members");
    assert_eq!(connection.line("SRANDMEMBER s -2000").elements().len(), 2_000);
    let popped: BTreeSet<Value> = connection.line("SPOP s 950").elements().iter().cloned().collect();
    assert_eq!(popped.len(), 950);
    let left = connection.line("SMEMBERS s");
    assert_eq!(left.elements().len(), 50);
    assert!(left.elements().iter().all(|member| !popped.contains(member)));
}

#[test]
fn set_commands_refuse_other_types() {
    replies(
        r#"
        SET s v => OK
        SADD s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        SREM s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        SCARD s => -WRONGTYPE Operation against a key holding the wrong kind of value
        SISMEMBER s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        SMISMEMBER s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        SMEMBERS s => -WRONGTYPE Operation against a key holding the wrong kind of value
        SINTERCARD 1 s => -WRONGTYPE Operation against a key holding the wrong kind of value
        SSCAN s 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
    "#,
    );
}

#[test]
fn set_encodings_change_at_the_configured_limits() {
    // Redis 7.0 knows no packed encoding for sets of strings.
    replies(
        r#"
        SADD s 1 2 3 => :3
        OBJECT ENCODING s => intset
        SADD s a => :1
        7.2| OBJECT ENCODING s => listpack
        CONFIG SET set-max-intset-entries 2 => OK
        7.2| CONFIG SET set-max-listpack-entries 2 => OK
        SADD t 1 2 => :2
        OBJECT ENCODING t => intset
        SADD t 3 => :1
        OBJECT ENCODING t => hashtable
        7.2| SADD u a b => :2
        7.2| OBJECT ENCODING u => listpack
        7.2| SADD u c => :1
        7.2| OBJECT ENCODING u => hashtable
        7.2| CONFIG SET set-max-listpack-value 3 => OK
        7.2| SADD v long => :1
        7.2| OBJECT ENCODING v => hashtable
    "#,
    );
}

#[test]
fn sscan_gives_every_member() {
    replies(
        r#"
        SADD s 1 2 3 => :3
        SSCAN s 0 => [0 ?[1 2 3]]
        SSCAN s 0 MATCH 2 => [0 ?[2]]
        SSCAN missing 0 => [0 ?[]]
        SSCAN s x => -ERR invalid cursor
        SSCAN s 0 COUNT 0 => -ERR syntax error
        SSCAN s 0 bogus => -ERR syntax error
    "#,
    );
    let server = Server::start();
    let mut connection = server.connect();
    let members: BTreeSet<String> = (0..2_000).map(|index| format!("member:{index}")).collect();
    for member in &members {
        connection.call(&["SADD", "s", member]);
    }
    let mut found = BTreeSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply = connection.call(&["SSCAN", "s", &cursor, "MATCH", "member:*"]);
        found.extend(reply.elements()[1].elements().iter().map(|member| member.text().to_owned()));
        cursor = reply.elements()[0].text().to_owned();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(found, members);
}

#[test]
fn the_memory_of_a_large_set_goes_back_to_the_system() {
    let server = Server::start();
    let mut connection = server.connect();
    let resident = |connection: &mut Connection| {
        let info = connection.line("INFO memory").text().to_owned();
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory_rss:")).expect("the field");
        line.trim().parse::<u64>().expect("a number")
    };
    let before = resident(&mut connection);
    for start in (0..600_000).step_by(1000) {
        let members = (start..start + 1000).map(|number| format!("member:{number:09}"));
        let words: Vec<String> = ["SADD".to_owned(), "large".to_owned()].into_iter().chain(members).collect();
        connection.call(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let full = resident(&mut connection);
    assert!(full > before + (12 << 20), "{before} and {full}");
    connection.line("UNLINK large");
    wait_until("most of it is given back", || resident(&mut connection) < before + (full - before) / 4);
}
