//! `SORT` and `SORT_RO`, against a plain model.

use proptest::prelude::*;
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;
use ruvio_shard::slot::key_slot;

use crate::support::{call, run, shard};

fn any_slot() -> Shard {
    shard(Settings { cross_slot: true, ..Settings::default() }, 1)
}

fn bulks(values: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", values.len());
    for value in values {
        out.push_str(&format!("${}\r\n{value}\r\n", value.len()));
    }
    out.into_bytes()
}

fn error(text: &str) -> Vec<u8> {
    format!("-{text}\r\n").into_bytes()
}

proptest! {
    #[test]
    fn elements_come_in_order_and_within_the_limit(
        elements in proptest::collection::vec(-30_i64..30, 1..40),
        command in prop_oneof![Just("RPUSH"), Just("SADD"), Just("ZADD")],
        weights in proptest::collection::vec(proptest::option::of(-3_i64..3), 61),
        alpha: bool,
        descending: bool,
        by: bool,
        limit in proptest::option::of((-2_i64..20, -2_i64..20)),
    ) {
        let mut shard = any_slot();
        let mut elements = elements;
        if command != "RPUSH" {
            elements.sort();
            elements.dedup();
        }
        for element in &elements {
            let score = if command == "ZADD" { " 1" } else { "" };
            run(&mut shard, 1, &format!("{command} k{score} {element}"));
        }
        let weight_of = |element: i64| weights[(element + 30) as usize];
        for element in -30..30 {
            if let Some(weight) = weight_of(element) {
                run(&mut shard, 1, &format!("SET w:{element} {weight}"));
                run(&mut shard, 1, &format!("HSET h:{element} f {weight}"));
            }
        }
        let mut wanted: Vec<String> = elements.iter().map(i64::to_string).collect();
        let number = |text: &String| text.parse::<i64>().unwrap_or_default();
        match (by, alpha) {
            (true, false) => wanted.sort_by_key(|text| (weight_of(number(text)).unwrap_or(0), text.clone())),
            (true, true) => {
                // Elements of the same weight have no order in Redis; here they keep the one they had.
                wanted = wanted_in_stored_order(&mut shard);
                let weight = |text: &String| weight_of(number(text)).map(|weight| weight.to_string());
                wanted.sort_by(|one, other| {
                    let order = weight(one).cmp(&weight(other));
                    if descending { order.reverse() } else { order }
                });
            }
            (false, false) => wanted.sort_by_key(number),
            (false, true) => wanted.sort(),
        }
        if descending && !(by && alpha) {
            wanted.reverse();
        }
        if let Some((offset, count)) = limit {
            let start = usize::try_from(offset).unwrap_or(0).min(wanted.len());
            let count = usize::try_from(count).unwrap_or(wanted.len());
            wanted = wanted.into_iter().skip(start).take(count).collect();
        }
        let option = |given: bool, text: &str| if given { text.to_owned() } else { String::new() };
        let limit = limit.map_or(String::new(), |(offset, count)| format!(" LIMIT {offset} {count}"));
        let both = option(alpha, " ALPHA") + &option(descending, " DESC") + &limit;
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        for pattern in [" BY w:*", " BY h:*->f"] {
            let options = option(by, pattern) + &both;
            prop_assert_eq!(run(&mut shard, 1, &format!("SORT_RO k{options}")), bulks(&wanted), "{}", options);
        }
        let options = option(by, " BY w:*") + &both;
        prop_assert_eq!(run(&mut shard, 1, &format!("SORT k{options} STORE d")), format!(":{}\r\n", wanted.len()).into_bytes());
        prop_assert_eq!(run(&mut shard, 1, "LRANGE d 0 -1"), bulks(&wanted));
    }
}

fn wanted_in_stored_order(shard: &mut Shard) -> Vec<String> {
    let reply = run(shard, 1, "SORT_RO k BY nosort");
    let text = String::from_utf8(reply).expect("text");
    text.split("\r\n").skip(2).step_by(2).map(str::to_owned).collect()
}

#[test]
fn values_of_other_keys_are_returned() {
    let mut shard = any_slot();
    for line in ["RPUSH l 2 1 3", "SET v:1 one", "SET v:3 30", "HSET o:2 name two", "SET x:1-> arrow"] {
        run(&mut shard, 1, line);
    }
    assert_eq!(
        run(&mut shard, 1, "SORT l GET # GET v:* GET o:*->name GET constant"),
        b"*12\r\n$1\r\n1\r\n$3\r\none\r\n$-1\r\n$-1\r\n$1\r\n2\r\n$-1\r\n$3\r\ntwo\r\n$-1\r\n$1\r\n3\r\n$2\r\n30\r\n$-1\r\n$-1\r\n"
    );
    assert_eq!(run(&mut shard, 1, "SORT l LIMIT 0 1 GET x:*->"), bulks(&["arrow"]));
    // A missing value is stored as nothing; a value of another type counts as missing.
    run(&mut shard, 1, "RPUSH v:2 element");
    assert_eq!(run(&mut shard, 1, "SORT l GET v:* STORE d"), b":3\r\n");
    assert_eq!(run(&mut shard, 1, "LRANGE d 0 -1"), bulks(&["one", "", "30"]));
}

#[test]
fn a_destination_is_replaced_or_removed() {
    let mut shard = any_slot();
    run(&mut shard, 1, "SET d text");
    run(&mut shard, 1, "PEXPIRE d 1000");
    run(&mut shard, 1, "SADD s b a c");
    // A set that is not sorted is stored in the order of its members all the same.
    assert_eq!(run(&mut shard, 1, "SORT s BY nosort STORE d"), b":3\r\n");
    assert_eq!(run(&mut shard, 1, "LRANGE d 0 -1"), bulks(&["a", "b", "c"]));
    assert_eq!(run(&mut shard, 1, "PTTL d"), b":-1\r\n");
    assert_eq!(run(&mut shard, 1, "SORT missing STORE d"), b":0\r\n");
    assert_eq!(run(&mut shard, 1, "EXISTS d"), b":0\r\n");
    assert_eq!(call(&mut shard, 1, Protocol::Resp2, &["SORT", "missing", "STORE", "d"]), (b":0\r\n".to_vec(), 0));
}

#[test]
fn sorted_sets_keep_their_order_unsorted() {
    let mut shard = any_slot();
    run(&mut shard, 1, "ZADD z 1 a 5 b 2 c 10 d 3 e");
    for (options, wanted) in [
        ("", &["a", "c", "e", "b", "d"][..]),
        (" DESC", &["d", "b", "e", "c", "a"]),
        (" LIMIT 0 2", &["a", "c"]),
        (" DESC LIMIT 1 2", &["b", "e"]),
        (" LIMIT 5 10", &[]),
        (" LIMIT -10 100", &["a", "c", "e", "b", "d"]),
    ] {
        assert_eq!(run(&mut shard, 1, &format!("SORT z BY nosort{options}")), bulks(wanted), "{options}");
    }
}

#[test]
fn weights_are_read_as_strtod_reads_them() {
    let mut shard = any_slot();
    let words: [&[u8]; 8] = [b"RPUSH", b"l", b"0x10", b" 3", b"", b"1\0junk", b"-inf", b"1e1"];
    call(&mut shard, 1, Protocol::Resp2, &words);
    let wanted = b"*6\r\n$4\r\n-inf\r\n$0\r\n\r\n$6\r\n1\0junk\r\n$2\r\n 3\r\n$3\r\n1e1\r\n$4\r\n0x10\r\n";
    assert_eq!(run(&mut shard, 1, "SORT l"), wanted);
    for wrong in ["x", "nan", "1x", "1e999"] {
        run(&mut shard, 1, &format!("RPUSH wrong 1 {wrong}"));
        assert_eq!(run(&mut shard, 1, "SORT wrong"), error("ERR One or more scores can't be converted into double"));
        run(&mut shard, 1, "DEL wrong");
    }
}

#[test]
fn errors_are_those_of_redis() {
    let mut shard = any_slot();
    run(&mut shard, 1, "SET text x");
    for (line, text) in [
        ("SORT text", "WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SORT k WHAT", "ERR syntax error"),
        ("SORT k LIMIT 1", "ERR syntax error"),
        ("SORT k LIMIT x 1", "ERR value is not an integer or out of range"),
        ("SORT k STORE", "ERR syntax error"),
        ("SORT_RO k STORE d", "ERR syntax error"),
    ] {
        assert_eq!(run(&mut shard, 1, line), error(text), "{line}");
    }
}

#[test]
fn patterns_stay_in_the_slot_unless_that_is_allowed() {
    let mut shard = shard(Settings::default(), 1);
    let denied = |option: &str| {
        error(&format!(
            "ERR {option} option of SORT denied in Cluster mode when keys formed by the pattern may be in different slots."
        ))
    };
    for line in ["RPUSH {t}l 1 2 3", "MSET {t}w1 20 {t}w2 30 {t}w3 0"] {
        run(&mut shard, 1, line);
    }
    assert_eq!(run(&mut shard, 1, "SORT {t}l BY w*"), denied("BY"));
    assert_eq!(run(&mut shard, 1, "SORT {t}l GET w*"), denied("GET"));
    assert_eq!(run(&mut shard, 1, "SORT {t}l BY {t}w* GET # GET {t}w*"), bulks(&["3", "0", "1", "20", "2", "30"]));
    assert_eq!(run(&mut shard, 1, "SORT {t}l BY nosort"), bulks(&["1", "2", "3"]));
}

#[test]
fn a_key_of_another_shard_is_not_taken_for_a_missing_one() {
    let mut shard = any_slot();
    run(&mut shard, 1, "RPUSH l 1");
    let slot = key_slot(b"w1");
    shard.keys.owned_slots = slot + 1..=16_383;
    let cross_slot = error("CROSSSLOT Keys in request don't hash to the same slot");
    assert_eq!(run(&mut shard, 1, "SORT l BY w*"), cross_slot);
    assert_eq!(run(&mut shard, 1, "SORT l GET w*"), cross_slot);
    shard.keys.owned_slots = 0..=slot;
    assert_eq!(run(&mut shard, 1, "SORT l BY w*"), bulks(&["1"]));
}
