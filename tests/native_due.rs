//! ZPOPBYSCORE and ZMOVEDUE.

use crate::support::{Server, Value, replies, replies_resp3};
use std::collections::BTreeSet;
use std::thread;

#[test]
fn zpopbyscore_removes_what_is_due_lowest_first() {
    replies(
        r#"
        ZADD z 100 job:9 200 job:10 300 job:11 100 job:1 => :4
        ZPOPBYSCORE z 150 => [job:1 job:9]
        ZPOPBYSCORE z 150 => []
        ZRANGE z 0 -1 => [job:10 job:11]
        ZPOPBYSCORE z +inf COUNT 1 => [job:10]
        ZPOPBYSCORE z 300 WITHSCORES => [job:11 300]
        EXISTS z => :0
        ZPOPBYSCORE missing 5 => []
        ZADD z 1 a 2 b 3 c 4 d 5 e => :5
        ZPOPBYSCORE z (3 MIN (1 => [b]
        ZPOPBYSCORE z 4 MIN 4 WITHSCORES COUNT 5 => [d 4]
        ZPOPBYSCORE z inf MIN 100 => []
        ZPOPBYSCORE z 1 MIN 5 => []
        ZPOPBYSCORE z 5 count 2 min -inf withscores => [a 1 c 3]
        EXPIRE z 100 => :1
        ZADD z 6.5 f => :1
        ZPOPBYSCORE z 5 => [e]
        TTL z => :100
        ZPOPBYSCORE z 7 WITHSCORES => [f 6.5]
    "#,
    );
    replies_resp3(
        r#"
        ZADD z 1 a 2.5 b 3 c => :3
        ZPOPBYSCORE z 2.5 COUNT 5 WITHSCORES => [[a ,1] [b ,2.5]]
        ZPOPBYSCORE z 2.5 WITHSCORES => []
        ZPOPBYSCORE z 3 => [c]
        ZPOPBYSCORE missing 3 => []
    "#,
    );
}

#[test]
fn zpopbyscore_checks_its_words() {
    replies(
        r#"
        ZADD z 1 a => :1
        ZPOPBYSCORE z => -ERR wrong number of arguments for 'zpopbyscore' command
        ZPOPBYSCORE z x => -ERR min or max is not a float
        ZPOPBYSCORE z (x => -ERR min or max is not a float
        ZPOPBYSCORE z nan => -ERR min or max is not a float
        ZPOPBYSCORE z 5 MIN x => -ERR min or max is not a float
        ZPOPBYSCORE z 5 MIN => -ERR syntax error
        ZPOPBYSCORE z 5 COUNT => -ERR syntax error
        ZPOPBYSCORE z 5 COUNT 0 => -ERR *
        ZPOPBYSCORE z 5 COUNT -1 => -ERR *
        ZPOPBYSCORE z 5 COUNT 10001 => -ERR *
        ZPOPBYSCORE z 5 COUNT x => -ERR *
        ZPOPBYSCORE z 5 bogus => -ERR syntax error
        ZPOPBYSCORE z 0 COUNT 10000 => []
        SET s v => OK
        ZPOPBYSCORE s 5 => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZCARD z => :1
    "#,
    );
}

#[test]
fn zmovedue_appends_to_a_list() {
    replies(
        r#"
        ZADD {j}due 100 job:9 200 job:10 300 job:11 50 job:5 => :4
        RPUSH {j}ready waiting => :1
        EXPIRE {j}ready 1000 => :1
        ZMOVEDUE {j}due {j}ready 150 => :2
        LRANGE {j}ready 0 -1 => [waiting job:5 job:9]
        TTL {j}ready => :1000
        ZMOVEDUE {j}due {j}ready 150 => :0
        ZMOVEDUE {j}due {j}ready +inf COUNT 1 => :1
        ZMOVEDUE {j}due {j}ready (300 => :0
        ZMOVEDUE {j}due {j}ready 300 MIN (100 COUNT 100 => :1
        LRANGE {j}ready 0 -1 => [waiting job:5 job:9 job:10 job:11]
        EXISTS {j}due => :0
        ZMOVEDUE {j}due {j}other 300 => :0
        ZADD {j}due 1000 later => :1
        ZMOVEDUE {j}due {j}other 300 => :0
        EXISTS {j}other => :0
        ZMOVEDUE {j}due {j}other 1000 => :1
        TTL {j}other => :-1
        TYPE {j}other => +list
    "#,
    );
}

#[test]
fn zmovedue_checks_its_words() {
    replies(
        r#"
        ZADD {j}due 1 a 2 b => :2
        SET {j}string v => OK
        ZMOVEDUE {j}due {j}string 5 => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZMOVEDUE {j}string {j}ready 5 => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZMOVEDUE {j}due {j}due 5 => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZMOVEDUE due ready 5 => -CROSSSLOT Keys in request don't hash to the same slot
        ZMOVEDUE {j}due {j}ready => -ERR wrong number of arguments for 'zmovedue' command
        ZMOVEDUE {j}due {j}ready x => -ERR min or max is not a float
        ZMOVEDUE {j}due {j}ready 5 COUNT 0 => -ERR *
        ZMOVEDUE {j}due {j}ready 5 COUNT 10001 => -ERR *
        ZMOVEDUE {j}due {j}ready 5 MIN => -ERR syntax error
        ZMOVEDUE {j}due {j}ready 5 WITHSCORES => -ERR syntax error
        ZMOVEDUE {j}due {j}ready 5 bogus 1 => -ERR syntax error
        ZCARD {j}due => :2
        EXISTS {j}ready => :0
    "#,
    );
}

#[test]
fn ten_thousand_are_taken_at_most() {
    let server = Server::start();
    let mut connection = server.connect();
    for chunk in 0..12 {
        let mut command = vec!["ZADD".to_owned(), "{j}due".to_owned()];
        for index in 0..1_000 {
            let number = chunk * 1_000 + index;
            command.extend([number.to_string(), format!("job:{number:05}")]);
        }
        connection.call(&command);
    }
    connection.line("COPY {j}due {j}copy");
    let popped = connection.line("ZPOPBYSCORE {j}due +inf");
    assert_eq!(popped.elements().len(), 10_000);
    assert!(popped.elements().is_sorted());
    assert_eq!(connection.line("ZCARD {j}due"), Value::Integer(2_000));
    assert_eq!(connection.line("ZMOVEDUE {j}copy {j}ready +inf"), Value::Integer(10_000));
    assert_eq!(connection.line("LLEN {j}ready"), Value::Integer(10_000));
    assert_eq!(connection.line("LINDEX {j}ready -1").text(), "job:09999");
    assert_eq!(connection.line("ZMOVEDUE {j}copy {j}ready +inf"), Value::Integer(2_000));
    assert_eq!(connection.line("EXISTS {j}copy"), Value::Integer(0));
}

#[test]
fn each_job_goes_to_one_of_many_workers() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut command = vec!["ZADD".to_owned(), "due".to_owned()];
    command.extend((0..2_000).flat_map(|number| [(number % 100).to_string(), format!("job:{number}")]));
    connection.call(&command);
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let mut connection = server.connect();
            thread::spawn(move || {
                let mut taken = Vec::new();
                loop {
                    let reply = connection.line("ZPOPBYSCORE due 1000 COUNT 7");
                    if reply.elements().is_empty() {
                        return taken;
                    }
                    taken.extend(reply.elements().iter().map(|job| job.text().to_owned()));
                }
            })
        })
        .collect();
    let taken: Vec<String> = workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect();
    assert_eq!(taken.len(), 2_000);
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>().len(), 2_000);
}
