//! TRANSFER, HTRANSFER, TAKE, and the bounds, deadlines and comparisons added to INCR, SET and their families.

use crate::support::{Server, Value, check, replies, replies_resp3, wait_until};
use std::thread;

#[test]
fn transfer_moves_between_two_counters() {
    replies(
        r#"
        SET {t}a 50 => OK
        TRANSFER {t}a {t}b 30 => [:20 :30]
        TRANSFER {t}a {t}b 30 => nil-array
        GET {t}a => 20
        GET {t}b => 30
        TRANSFER {t}a {t}b 20 => [:0 :50]
        GET {t}a => 0
        TRANSFER {t}a {t}b 1 => nil-array
        transfer {t}b {t}a 1 => [:49 :1]
    "#,
    );
    replies_resp3(
        r#"
        SET {t}a 50 => OK
        TRANSFER {t}a {t}b 30 => [:20 :30]
        TRANSFER {t}a {t}b 30 => nil
    "#,
    );
}

#[test]
fn transfer_refuses_without_a_trace() {
    replies(
        r#"
        TRANSFER {t}missing {t}b 1 => nil-array
        SET {t}a 10 => OK
        TRANSFER {t}a {t}b 11 => nil-array
        TRANSFER {t}a {t}b 5 MAX 4 => nil-array
        EXISTS {t}b {t}missing => :0
        SET {t}b 9223372036854775807 EX 100 => OK
        TRANSFER {t}a {t}b 1 => nil-array
        TTL {t}b => :100
        SET {t}n -5 => OK
        TRANSFER {t}n {t}c 1 => nil-array
        GET {t}a => 10
        GET {t}b => 9223372036854775807
        GET {t}n => "-5"
        DBSIZE => :3
    "#,
    );
}

#[test]
fn transfer_keeps_the_cap_and_the_deadlines() {
    replies(
        r#"
        SET {t}a 100 EX 1000 => OK
        SET {t}b 10 EX 500 => OK
        TRANSFER {t}a {t}b 10 MAX 20 => [:90 :20]
        TRANSFER {t}a {t}b 1 MAX 20 => nil-array
        TRANSFER {t}a {t}b 1 max 21 => [:89 :21]
        TTL {t}a => :1000
        TTL {t}b => :500
        TRANSFER {t}a {t}c 1 => [:88 :1]
        TTL {t}c => :-1
        SET {t}low -100 => OK
        TRANSFER {t}a {t}low 50 MAX -50 => [:38 :-50]
        TRANSFER {t}a {t}low 1 MAX -50 => nil-array
        OBJECT ENCODING {t}c => int
    "#,
    );
}

#[test]
fn transfer_checks_its_words() {
    replies(
        r#"
        SET {t}a 50 => OK
        SET {t}s text => OK
        RPUSH {t}l x => :1
        TRANSFER => -ERR wrong number of arguments for 'transfer' command
        TRANSFER {t}a {t}b => -ERR wrong number of arguments for 'transfer' command
        TRANSFER {t}a {t}a 1 => -ERR *
        TRANSFER {t}a {t}b 0 => -ERR *
        TRANSFER {t}a {t}b -1 => -ERR *
        TRANSFER {t}a {t}b x => -ERR value is not an integer or out of range
        TRANSFER {t}a {t}b 1.5 => -ERR value is not an integer or out of range
        TRANSFER {t}a {t}b 9223372036854775808 => -ERR value is not an integer or out of range
        TRANSFER {t}a {t}b 1 MAX => -ERR syntax error
        TRANSFER {t}a {t}b 1 MAX x => -ERR value is not an integer or out of range
        TRANSFER {t}a {t}b 1 CAP 5 => -ERR syntax error
        TRANSFER {t}a {t}b 1 MAX 5 MAX 6 => -ERR syntax error
        TRANSFER {t}s {t}b 1 => -ERR value is not an integer or out of range
        TRANSFER {t}a {t}s 1 => -ERR value is not an integer or out of range
        TRANSFER {t}l {t}b 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        TRANSFER {t}a {t}l 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        TRANSFER a b 1 => -CROSSSLOT Keys in request don't hash to the same slot
        GET {t}a => 50
        EXISTS {t}b => :0
    "#,
    );
}

#[test]
fn htransfer_moves_between_two_fields() {
    replies(
        r#"
        HSET h available 50 other text => :2
        HTRANSFER h available held 30 => [:20 :30]
        HTRANSFER h available held 21 => nil-array
        HTRANSFER h available held 20 MAX 49 => nil-array
        HTRANSFER h available held 20 MAX 50 => [:0 :50]
        HGET h available => 0
        HTRANSFER h nofield held 1 => nil-array
        HTRANSFER missing a b 1 => nil-array
        EXISTS missing => :0
        HEXISTS h nofield => :0
        HSET h full 9223372036854775807 => :1
        HTRANSFER h held full 1 => nil-array
        EXPIRE h 100 => :1
        HTRANSFER h held available 50 => [:0 :50]
        TTL h => :100
        HTRANSFER h held held 1 => -ERR *
        HTRANSFER h available held 0 => -ERR *
        HTRANSFER h available held -3 => -ERR *
        HTRANSFER h available held x => -ERR value is not an integer or out of range
        HTRANSFER h other held 1 => -ERR hash value is not an integer
        HTRANSFER h available other 1 => -ERR hash value is not an integer
        HTRANSFER h available held 1 MAX => -ERR syntax error
        HTRANSFER h available held 1 bogus 2 => -ERR syntax error
        HTRANSFER h available held => -ERR wrong number of arguments for 'htransfer' command
        SET s v => OK
        HTRANSFER s a b 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        HMGET h available held => [50 0]
    "#,
    );
    replies_resp3(
        r#"
        HSET h a 5 => :1
        HTRANSFER h a b 5 => [:0 :5]
        HTRANSFER h a b 5 => nil
    "#,
    );
}

#[test]
fn take_never_goes_below_zero() {
    replies(
        r#"
        SET stock 500 EX 100 => OK
        TAKE stock 2 => :498
        TAKE stock 1000 => nil
        GET stock => 498
        TAKE stock 498 => :0
        TAKE stock 1 => nil
        GET stock => 0
        TTL stock => :100
        TAKE missing 1 => nil
        EXISTS missing => :0
        SET negative -5 => OK
        TAKE negative 1 => nil
        TAKE stock 0 => -ERR *
        TAKE stock -1 => -ERR *
        TAKE stock x => -ERR value is not an integer or out of range
        TAKE stock => -ERR wrong number of arguments for 'take' command
        TAKE stock 1 2 => -ERR wrong number of arguments for 'take' command
        SET s text => OK
        TAKE s 1 => -ERR value is not an integer or out of range
        RPUSH l x => :1
        TAKE l 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        SET m 9223372036854775807 => OK
        TAKE m 9223372036854775807 => :0
    "#,
    );
    replies_resp3(
        r#"
        TAKE missing 1 => nil
    "#,
    );
}

#[test]
fn incrby_max_refuses_to_pass_the_cap() {
    replies(
        r#"
        INCRBY seats 119 MAX 120 => :119
        INCRBY seats 1 MAX 120 => :120
        INCRBY seats 1 MAX 120 => nil
        GET seats => 120
        INCRBY seats -20 MAX 120 => :100
        INCRBY seats -1 MAX 50 => nil
        INCRBY missing 5 MAX 4 => nil
        EXISTS missing => :0
        SET edge 9223372036854775807 => OK
        INCRBY edge 1 MAX 9223372036854775807 => nil
        INCRBY edge 1 => -ERR increment or decrement would overflow
        SET low -9223372036854775808 => OK
        INCRBY low -1 => -ERR increment or decrement would overflow
        INCRBY a 1 MAX 10 EX 100 => :1
        TTL a => :100
        INCRBY b 1 PX 100000 MAX 10 => :1
        PTTL b => :90000..100000
        INCRBY c 11 MAX 10 EX 100 => nil
        EXISTS c => :0
        INCRBY seats 1 MAX => -ERR syntax error
        INCRBY seats 1 MAX x => -ERR value is not an integer or out of range
        INCRBY seats 1 MAX 5 MAX 6 => -ERR syntax error
        INCRBY seats 1 bogus 5 => -ERR wrong number of arguments for 'incrby' command
        INCRBY seats 1 bogus => -ERR wrong number of arguments for 'incrby' command
        GET seats => 100
    "#,
    );
    replies_resp3(
        r#"
        INCRBY a 5 MAX 4 => nil
    "#,
    );
}

#[test]
fn a_deadline_is_set_by_the_call_that_creates_the_key() {
    replies(
        r#"
        INCR a EX 1000 => :1
        INCR a EX 5 => :2
        INCR a PX 5 => :3
        TTL a => :1000
        DECR b EX 1000 => :-1
        DECR b EX 5 => :-2
        TTL b => :1000
        DECRBY c 5 PX 100000 => :-5
        PTTL c => :90000..100000
        INCRBY d 5 EX 1000 => :5
        TTL d => :1000
        INCRBYFLOAT e 1.5 EX 1000 => 1.5
        INCRBYFLOAT e 1.5 EX 5 => 3
        TTL e => :1000
        HINCRBY f x 1 EX 1000 => :1
        HINCRBY f y 1 EX 5 => :1
        TTL f => :1000
        HINCRBYFLOAT g x 0.5 PX 100000 => 0.5
        PTTL g => :90000..100000
        ZINCRBY h 1 x EX 1000 => 1
        ZINCRBY h 1 y EX 5 => 1
        TTL h => :1000
        SET i 1 => OK
        INCR i EX 100 => :2
        TTL i => :-1
    "#,
    );
}

#[test]
fn deadlines_of_counters_are_checked() {
    replies(
        r#"
        INCR a EX 0 => -ERR invalid expire time in 'incr' command
        INCR a EX -1 => -ERR invalid expire time in 'incr' command
        INCR a PX 0 => -ERR invalid expire time in 'incr' command
        INCR a EX 9223372036854775807 => -ERR invalid expire time in 'incr' command
        INCR a PX 9223372036854775807 => -ERR invalid expire time in 'incr' command
        INCR a EX x => -ERR value is not an integer or out of range
        INCR a EX => -ERR syntax error
        INCR a EX 5 PX 5 => -ERR syntax error
        INCR a MAX 5 => -ERR wrong number of arguments for 'incr' command
        INCR a bogus => -ERR wrong number of arguments for 'incr' command
        DECR a EX 0 => -ERR invalid expire time in 'decr' command
        INCRBY a 1 EX 0 => -ERR invalid expire time in 'incrby' command
        DECRBY a 1 EX 0 => -ERR invalid expire time in 'decrby' command
        DECRBY a 1 MAX 5 => -ERR wrong number of arguments for 'decrby' command
        INCRBYFLOAT a 1 EX 0 => -ERR invalid expire time in 'incrbyfloat' command
        HINCRBY a f 1 EX 0 => -ERR invalid expire time in 'hincrby' command
        HINCRBYFLOAT a f 1 EX 0 => -ERR invalid expire time in 'hincrbyfloat' command
        ZINCRBY a 1 m EX 0 => -ERR invalid expire time in 'zincrby' command
        EXISTS a => :0
        SET a 1 => OK
        INCR a EX 0 => -ERR invalid expire time in 'incr' command
        GET a => 1
    "#,
    );
}

#[test]
fn set_with_ifgt_and_iflt_writes_only_what_wins() {
    replies(
        r#"
        SET a 10 IFGT => OK
        SET a 9 IFGT => nil
        SET a 10 IFGT => nil
        SET a 11 IFGT => OK
        GET a => 11
        SET b 10 IFLT => OK
        SET b 11 IFLT => nil
        SET b 10 IFLT => nil
        SET b -10 iflt => OK
        GET b => "-10"
        SET b 9223372036854775807 IFGT => OK
        SET b -9223372036854775808 IFLT => OK
        SET a 12 IFGT GET => 11
        SET a 5 IFGT GET => 12
        GET a => 12
        SET new 1 IFGT GET => nil
        GET new => 1
        SET a x IFGT => -ERR value is not an integer or out of range
        SET a 1.5 IFGT => -ERR value is not an integer or out of range
        SET missing x IFGT => -ERR value is not an integer or out of range
        EXISTS missing => :0
        SET s text => OK
        SET s 5 IFGT => -ERR *
        SET s 5 IFLT => -ERR *
        GET s => text
        RPUSH l x => :1
        SET l 5 IFGT => -WRONGTYPE Operation against a key holding the wrong kind of value
        SET a 99 IFGT NX => -ERR syntax error
        SET a 99 XX IFGT => -ERR syntax error
        SET a 99 IFGT IFLT => -ERR syntax error
        SET a 99 IFGT IFEQ 12 => -ERR syntax error
        GET a => 12
    "#,
    );
    replies_resp3(
        r#"
        SET a 10 IFGT => OK
        SET a 10 IFGT => nil
    "#,
    );
}

#[test]
fn set_with_a_comparison_moves_the_deadline_only_when_it_writes() {
    replies(
        r#"
        SET a 10 IFGT EX 1000 => OK
        TTL a => :1000
        SET a 9 IFGT EX 5 => nil
        TTL a => :1000
        SET a 9 IFGT => nil
        TTL a => :1000
        SET a 11 IFGT KEEPTTL => OK
        TTL a => :1000
        SET a 12 IFGT => OK
        TTL a => :-1
        SET a 1 IFLT PX 100000 => OK
        PTTL a => :90000..100000
        SET a 0 IFLT EXAT 9999999999 => OK
        EXPIRETIME a => :9999999999
        SET a -1 IFLT PXAT 9999999999999 => OK
        PEXPIRETIME a => :9999999999999
        SET a -2 IFLT EX 0 => -ERR invalid expire time in 'set' command
        SET a -2 IFLT EX 5 KEEPTTL => -ERR syntax error
        GET a => "-1"
    "#,
    );
}

#[test]
fn set_ifeq_and_delifeq_compare_text() {
    replies(
        r#"
        SET a new IFEQ old => nil
        EXISTS a => :0
        SET a old => OK
        SET a new IFEQ other => nil
        SET a new IFEQ old => OK
        GET a => new
        SET a newer IFEQ new GET => new
        GET a => newer
        SET a x IFEQ y GET => newer
        GET a => newer
        SET a timed IFEQ newer EX 1000 => OK
        TTL a => :1000
        SET a plain IFEQ timed => OK
        TTL a => :-1
        SET a x IFEQ => -ERR syntax error
        SET a x IFEQ plain NX => -ERR syntax error
        SET a x XX IFEQ plain => -ERR syntax error
        DELIFEQ a other => :0
        DELIFEQ a plain => :1
        EXISTS a => :0
        DELIFEQ a plain => :0
        DELIFEQ a => -ERR wrong number of arguments for 'delifeq' command
        SET n 12 => OK
        DELIFEQ n 12 => :1
        RPUSH l x => :1
        DELIFEQ l x => -WRONGTYPE Operation against a key holding the wrong kind of value
        SET l x IFEQ x => -WRONGTYPE Operation against a key holding the wrong kind of value
        LLEN l => :1
    "#,
    );
}

#[test]
fn an_expired_counter_is_a_missing_one() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("SET {t}a 100 PX 1");
    connection.line("SET {t}b 100 PX 1");
    wait_until("the deadline passes", || server.connect().line("EXISTS {t}a {t}b") == Value::Integer(0));
    check(
        &mut connection,
        r#"
        TAKE {t}a 1 => nil
        TRANSFER {t}a {t}b 1 => nil-array
        SET {t}b 1 IFGT => OK
        INCR {t}a EX 1000 => :1
        TTL {t}a => :1000
    "#,
    );
}

#[test]
fn nothing_is_made_or_lost_by_concurrent_transfers() {
    let server = Server::start();
    let mut connection = server.connect();
    for account in 0..5 {
        connection.line(&format!("SET {{bank}}{account} 1000"));
    }
    let workers: Vec<_> = (0..4_u64)
        .map(|worker| {
            let mut connection = server.connect();
            thread::spawn(move || {
                for step in 0..2_000_u64 {
                    let (from, to) = ((worker + step * 7) % 5, (worker + step * 3 + 1) % 5);
                    if from != to {
                        let amount = step * 31 % 400 + 1;
                        connection.line(&format!("TRANSFER {{bank}}{from} {{bank}}{to} {amount} MAX 2500"));
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("a worker");
    }
    let balances: Vec<i64> = (0..5)
        .map(|account| connection.line(&format!("GET {{bank}}{account}")).text().parse().expect("a balance"))
        .collect();
    assert_eq!(balances.iter().sum::<i64>(), 5_000, "{balances:?}");
    assert!(balances.iter().all(|balance| (0..=2_500).contains(balance)), "{balances:?}");
}
