//! LIMIT in its three modes.

use crate::support::{Connection, Server, Value, check, replies, replies_resp3, wait_until};
use std::time::{Duration, Instant};

/// How late the server may notice that a moment has come: its cores may have to wait for a processor.
const LATENESS_MS: i64 = 60;
/// A turn of a core reads the clock once: what it does may be that old.
const CLOCK_AGE_MS: i64 = 5;

fn now_ms(connection: &mut Connection) -> i64 {
    let time = connection.line("TIME");
    let part = |index: usize| time.elements()[index].text().parse::<i64>().expect("a number");
    part(0) * 1_000 + part(1) / 1_000
}

#[test]
fn a_fixed_window_counts_down_and_refuses() {
    replies(
        r#"
        LIMIT k 3 60000 => :2
        LIMIT k 3 60000 => :1
        LIMIT k 3 60000 => :0
        LIMIT k 3 60000 => nil
        LIMIT k 3 60000 => nil
        PTTL k => :50000..60000
        TYPE k => +limit
        LIMIT k 5 60000 => :1
        LIMIT k 2 60000 => nil
        LIMIT k 5 1 => :0
        PTTL k => :50000..60000
        LIMIT c 10 60000 COST 4 => :6
        LIMIT c 10 60000 COST 7 => nil
        LIMIT c 10 60000 COST 6 => :0
        LIMIT c 10 60000 COST 1 => nil
    "#,
    );
    replies_resp3(
        r#"
        LIMIT k 1 60000 => :0
        LIMIT k 1 60000 => nil
        LIMIT k 1 60000 WITHRETRY => [nil :50000..60000]
    "#,
    );
}

#[test]
fn the_other_modes_count_down_too() {
    replies(
        r#"
        LIMIT s 3 60000 SLIDING => :2
        LIMIT s 3 60000 sliding => :1
        LIMIT s 3 60000 SLIDING COST 2 => nil
        LIMIT s 3 60000 SLIDING => :0
        LIMIT s 3 60000 SLIDING => nil
        TYPE s => +limit
        LIMIT t 10 10000000 TOKENS COST 2 WITHRETRY => [:8 :0]
        LIMIT t 10 10000000 TOKENS COST 8 => :0
        LIMIT t 10 10000000 TOKENS => nil
        TYPE t => +limit
        PTTL t => :9900000..10000000
    "#,
    );
}

#[test]
fn cost_zero_only_looks() {
    for mode in ["", " SLIDING", " TOKENS"] {
        let server = Server::start();
        let mut connection = server.connect();
        let mut call = |rest: &str| format!("{:?}", connection.line(&format!("LIMIT k 5 10000000{mode} {rest}")));
        assert_eq!(call("COST 0"), ":5", "{mode}");
        assert_eq!(server.connect().line("EXISTS k"), Value::Integer(0), "{mode}: nothing is written");
        assert_eq!(call("COST 3"), ":2", "{mode}");
        assert_eq!(call("COST 0"), ":2", "{mode}");
        assert_eq!(call("COST 0 WITHRETRY"), "[:2 :0]", "{mode}");
        assert_eq!(call("COST 2"), ":0", "{mode}");
        assert_eq!(call("COST 0"), ":0", "{mode}: looking is never refused");
        assert_eq!(call("COST 0"), ":0", "{mode}");
    }
}

#[test]
fn limit_checks_its_words() {
    replies(
        r#"
        LIMIT => -ERR wrong number of arguments for 'limit' command
        LIMIT k 3 => -ERR wrong number of arguments for 'limit' command
        LIMIT k 0 1000 => -ERR *
        LIMIT k -1 1000 => -ERR *
        LIMIT k x 1000 => -ERR value is not an integer or out of range
        LIMIT k 3 0 => -ERR *
        LIMIT k 3 -5 => -ERR *
        LIMIT k 3 x => -ERR value is not an integer or out of range
        LIMIT k 3 1.5 => -ERR value is not an integer or out of range
        LIMIT k 3 1000 COST 4 => -ERR *
        LIMIT k 3 1000 COST -1 => -ERR *
        LIMIT k 3 1000 COST x => -ERR value is not an integer or out of range
        LIMIT k 3 1000 COST => -ERR syntax error
        LIMIT k 3 1000 bogus => -ERR syntax error
        LIMIT k 3 1000 SLIDING TOKENS => -ERR syntax error
        LIMIT k 9223372036854775808 1000 => -ERR value is not an integer or out of range
        EXISTS k => :0
        LIMIT k 9223372036854775807 60000 => :9223372036854775806
        LIMIT j 1 9223372036854775807 => -ERR invalid expire time in 'limit' command
        LIMIT j2 9223372036854775807 9223372036854775807 TOKENS => -ERR invalid expire time in 'limit' command
        LIMIT j3 9223372036854775807 9223372036854775807 SLIDING => -ERR invalid expire time in 'limit' command
        PING => +PONG
    "#,
    );
}

#[test]
fn a_limit_keeps_its_mode_and_its_type() {
    replies(
        r#"
        LIMIT f 3 60000 => :2
        LIMIT s 3 60000 SLIDING => :2
        LIMIT t 3 60000 TOKENS => :2
        LIMIT f 3 60000 SLIDING => -*
        LIMIT f 3 60000 TOKENS => -*
        LIMIT s 3 60000 => -*
        LIMIT s 3 60000 TOKENS => -*
        LIMIT t 3 60000 => -*
        LIMIT t 3 60000 SLIDING => -*
        LIMIT f 3 60000 => :1
        SET string v => OK
        LIMIT string 3 60000 => -WRONGTYPE Operation against a key holding the wrong kind of value
        GET f => -WRONGTYPE Operation against a key holding the wrong kind of value
        INCR f => -WRONGTYPE Operation against a key holding the wrong kind of value
        LPUSH f x => -WRONGTYPE Operation against a key holding the wrong kind of value
        HGET f x => -WRONGTYPE Operation against a key holding the wrong kind of value
        EXPIRE f 5 => -ERR *
        PEXPIRE f 5 => -ERR *
        EXPIREAT f 9999999999 => -ERR *
        PERSIST f => -ERR *
        PTTL f => :50000..60000
        SCAN 0 COUNT 1000 TYPE limit => [0 ?[f s t]]
        SET f plain => OK
        GET f => plain
        DEL s t => -CROSSSLOT Keys in request don't hash to the same slot
        DEL s => :1
        LIMIT s 3 60000 => :2
    "#,
    );
}

/// Uses `mode` up, then calls until it is accepted again, and checks that moment against the wait the server named.
fn check_retry(mode: &str, max: i64, window_ms: i64, cost: i64) {
    let server = Server::start();
    let mut connection = server.connect();
    let line = format!("LIMIT k {max} {window_ms} {mode} COST {cost} WITHRETRY");
    for round in 0..10 {
        let (before_ms, retry_after_ms, after_ms) = loop {
            let before_ms = now_ms(&mut connection);
            let reply = connection.line(&line);
            let [remaining, retry] = reply.elements() else { panic!("two parts: {reply:?}") };
            if remaining.is_null() {
                break (before_ms, retry.integer(), now_ms(&mut connection));
            }
            assert!(remaining.integer() >= 0);
            assert_eq!(retry.integer(), 0, "an accepted call has no wait");
        };
        assert!((1..=2 * window_ms).contains(&retry_after_ms), "{mode}: a wait of {retry_after_ms} ms");
        loop {
            let call_ms = now_ms(&mut connection);
            let accepted = !connection.line(&line).elements()[0].is_null();
            let done_ms = now_ms(&mut connection);
            if accepted {
                let earliest_ms = before_ms + retry_after_ms - CLOCK_AGE_MS;
                assert!(done_ms >= earliest_ms, "{mode}, round {round}: {} ms early", earliest_ms - done_ms);
                break;
            }
            let latest_ms = after_ms + retry_after_ms + LATENESS_MS;
            assert!(call_ms <= latest_ms, "{mode}, round {round}: still refused {} ms late", call_ms - latest_ms);
        }
    }
}

#[test]
fn retry_after_is_the_wait_until_the_same_call_passes() {
    check_retry("", 3, 60, 1);
    check_retry("", 10, 50, 7);
    check_retry("SLIDING", 5, 70, 1);
    check_retry("SLIDING", 10, 50, 6);
    check_retry("TOKENS", 10, 100, 1);
    check_retry("TOKENS", 7, 90, 5);
}

#[test]
fn the_key_goes_when_it_has_nothing_more_to_say() {
    let server = Server::start();
    let mut connection = server.connect();
    check(
        &mut connection,
        r#"
        LIMIT f 3 500 => :2
        LIMIT t 3 900 TOKENS => :2
        LIMIT s 3 500 SLIDING => :2
        PTTL f => :0..500
        PTTL t => :0..300
        PTTL s => :0..1000
    "#,
    );
    wait_until("the limits expire", || server.connect().line("DBSIZE") == Value::Integer(0));
    check(&mut connection, "LIMIT f 3 60000 TOKENS => :2");
}

#[test]
fn tokens_refill_continuously() {
    let server = Server::start();
    let mut connection = server.connect();
    let (max, window_ms) = (1_000, 1_000);
    let emptied_after_ms = now_ms(&mut connection);
    assert_eq!(connection.line(&format!("LIMIT k {max} {window_ms} TOKENS COST {max}")), Value::Integer(0));
    let emptied_before_ms = now_ms(&mut connection);
    let mut looks = 0;
    loop {
        let call_ms = now_ms(&mut connection);
        let left = connection.line(&format!("LIMIT k {max} {window_ms} TOKENS COST 0")).integer();
        let done_ms = now_ms(&mut connection);
        let least = ((call_ms - emptied_before_ms - CLOCK_AGE_MS) * max / window_ms).clamp(0, max);
        let most = ((done_ms - emptied_after_ms + CLOCK_AGE_MS) * max / window_ms).clamp(0, max);
        assert!((least..=most).contains(&left), "{left} tokens, not {least} to {most}");
        looks += 1;
        if left == max {
            break;
        }
    }
    assert!(looks > 10);
}

/// Calls as fast as it can for `duration` and gives the number of accepted calls.
fn accepted_in(connection: &mut Connection, line: &str, duration: Duration) -> i64 {
    let begin = Instant::now();
    let mut accepted = 0;
    while begin.elapsed() < duration {
        let replies = connection.pipeline([line; 20]);
        accepted += replies.iter().filter(|reply| !reply.is_null()).count() as i64;
    }
    accepted
}

#[test]
fn no_mode_lets_more_through_than_its_allowance() {
    let server = Server::start();
    let mut connection = server.connect();
    let duration = Duration::from_millis(1_500);
    for (mode, bursts) in [("", 2), ("SLIDING", 2), ("TOKENS", 1)] {
        let begin = Instant::now();
        let line = format!("LIMIT key:{mode} 30 100 {mode}");
        let accepted = accepted_in(&mut connection, &line, duration);
        let windows = begin.elapsed().as_millis() as i64 / 100;
        assert!(accepted <= 30 * (windows + bursts), "{mode}: {accepted} in {windows} windows of 30");
        assert!(accepted >= 30 * windows / 3, "{mode}: only {accepted} in {windows} windows of 30");
    }
}

#[test]
fn a_limit_survives_rename_and_copy() {
    replies(
        r#"
        LIMIT {t}a 3 60000 => :2
        RENAME {t}a {t}b => OK
        LIMIT {t}b 3 60000 => :1
        COPY {t}b {t}c => :1
        LIMIT {t}c 3 60000 => :0
        LIMIT {t}b 3 60000 => :0
        PTTL {t}c => :50000..60000
        TYPE {t}c => +limit
    "#,
    );
}
