//! Single promises.

use super::{call, elements, is_packed, large_bytes, run, shard};
use crate::error::CommandError;
use crate::list::push_back_all;
use crate::reply::Protocol;

const NOT_AN_INTEGER: &str = "-ERR value is not an integer or out of range\r\n";
const SYNTAX: &str = "-ERR syntax error\r\n";

#[test]
fn errors_are_those_of_redis() {
    let mut shard = shard(-2);
    run(&mut shard, "RPUSH l a b c");
    let cases = [
        ("LSET missing x v", "-ERR no such key\r\n"),
        ("LSET l x v", NOT_AN_INTEGER),
        ("LSET l 3 v", "-ERR index out of range\r\n"),
        ("LINDEX missing x", "$-1\r\n"),
        ("LINDEX l x", NOT_AN_INTEGER),
        ("LRANGE missing x 1", NOT_AN_INTEGER),
        ("LTRIM missing 0 x", NOT_AN_INTEGER),
        ("LREM missing x a", NOT_AN_INTEGER),
        (
            "LREM l -9223372036854775808 a",
            "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807\r\n",
        ),
        ("LINSERT l beside a b", SYNTAX),
        ("LMOVE l l left up", SYNTAX),
        ("LPOP l -1", "-ERR value is out of range, must be positive\r\n"),
        ("RPOP missing x", "-ERR value is out of range, must be positive\r\n"),
        ("LPOP l 1 1", "-ERR wrong number of arguments for 'lpop' command\r\n"),
        ("RPOP l 1 1", "-ERR wrong number of arguments for 'rpop' command\r\n"),
        ("LMPOP 0 l left", "-ERR numkeys should be greater than 0\r\n"),
        ("LMPOP x l left", "-ERR numkeys should be greater than 0\r\n"),
        ("LMPOP 9223372036854775807 l left", SYNTAX),
        ("LMPOP 2 l left", SYNTAX),
        ("LMPOP 1 l up", SYNTAX),
        ("LMPOP 1 l left count", SYNTAX),
        ("LMPOP 1 l left count 0", "-ERR count should be greater than 0\r\n"),
        ("LMPOP 1 l left count x count 1", "-ERR count should be greater than 0\r\n"),
        ("LMPOP 1 l left count 1 count 1", SYNTAX),
        ("LPOS l a RANK", SYNTAX),
        ("LPOS l a FIRST 1", SYNTAX),
        ("LPOS l a RANK x", NOT_AN_INTEGER),
        (
            "LPOS l a RANK 0",
            "-ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to \
             start from the end of the list\r\n",
        ),
        ("LPOS l a COUNT -1", "-ERR COUNT can't be negative\r\n"),
        ("LPOS l a MAXLEN x", "-ERR MAXLEN can't be negative\r\n"),
    ];
    for (line, reply) in cases {
        let words: Vec<&str> = line.split(' ').collect();
        let (replied, changes) = call(&mut shard, Protocol::Resp2, &words);
        assert_eq!((String::from_utf8_lossy(&replied).as_ref(), changes), (reply, 0), "{line}");
    }
    assert_eq!(elements(&mut shard, b"l"), [b"a", b"b", b"c"]);
}

#[test]
fn another_type_is_refused_before_anything_changes() {
    use crate::entry::{Entry, Header};
    let mut shard = shard(-2);
    run(&mut shard, "RPUSH {k}l a");
    shard.keys.begin(0, 1, None);
    shard.keys.add(Entry::with_integer(Header { key: b"{k}s", ..Header::default() }, 1));
    for line in [
        "LINDEX {k}s 0",
        "LINSERT {k}s before a b",
        "LLEN {k}s",
        "LMOVE {k}s {k}l left left",
        "LMOVE {k}l {k}s left left",
        "LMPOP 2 {k}s {k}l left",
        "LPOP {k}s",
        "LPOS {k}s a",
        "LPUSH {k}s a",
        "LPUSHX {k}s a",
        "LRANGE {k}s 0 -1",
        "LREM {k}s 0 a",
        "LSET {k}s 0 a",
        "LTRIM {k}s 0 0",
        "RPOP {k}s 1",
        "RPOPLPUSH {k}l {k}s",
        "RPUSH {k}s a",
        "RPUSHX {k}s a",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let (replied, changes) = call(&mut shard, Protocol::Resp2, &words);
        assert!(replied.starts_with(b"-WRONGTYPE "), "{line}");
        assert_eq!(changes, 0, "{line}");
    }
    assert_eq!(elements(&mut shard, b"{k}l"), [b"a"]);
    let refused = push_back_all(&mut shard.keys, b"{k}s", [b"x".as_slice()].into_iter());
    assert_eq!(refused, Err(CommandError::WRONG_TYPE));
}

#[test]
fn many_elements_are_pushed_at_once() {
    let mut shard = shard(-2);
    let numbers: Vec<String> = (0..5000).map(|number| number.to_string()).collect();
    shard.keys.begin(0, 1, None);
    let first = numbers[..3].iter().map(|number| number.as_bytes());
    assert_eq!(push_back_all(&mut shard.keys, b"l", first), Ok(3));
    let rest = numbers[3..].iter().map(|number| number.as_bytes());
    assert_eq!(push_back_all(&mut shard.keys, b"l", rest), Ok(5000));
    assert_eq!(push_back_all(&mut shard.keys, b"none", std::iter::empty()), Ok(0));
    assert!(!shard.keys.contains(b"none"));
    let expected: Vec<Vec<u8>> = numbers.into_iter().map(String::into_bytes).collect();
    assert_eq!(elements(&mut shard, b"l"), expected);
}

#[test]
fn the_form_follows_the_limit_and_half_of_it() {
    // A listpack of 4096 bytes: 7 of its own and 40 elements of 100 bytes take 4127, with 39 it is 4024.
    let mut bytes = shard(-1);
    let element = "e".repeat(100);
    for _ in 0..39 {
        run(&mut bytes, &format!("LPUSH l {element}"));
    }
    assert!(is_packed(&mut bytes, "l"));
    run(&mut bytes, &format!("LPUSH l {element}"));
    assert!(!is_packed(&mut bytes, "l"));
    run(&mut bytes, "LPOP l 20");
    assert!(!is_packed(&mut bytes, "l"), "20 elements are 2067 bytes, more than half");
    run(&mut bytes, "LPOP l");
    assert!(is_packed(&mut bytes, "l"));

    let mut count = shard(4);
    run(&mut count, "RPUSH l 1 2 3 4");
    assert!(is_packed(&mut count, "l"));
    run(&mut count, "RPUSH l 5");
    assert!(!is_packed(&mut count, "l"));
    run(&mut count, "LTRIM l 0 2");
    assert!(!is_packed(&mut count, "l"));
    run(&mut count, "LREM l 1 2");
    assert!(is_packed(&mut count, "l"));
    assert_eq!(elements(&mut count, b"l"), [b"1", b"3"]);
}

#[test]
fn more_empty_elements_than_a_count_holds_are_no_packed_list() {
    let mut shard = shard(-5);
    let mut words = vec!["RPUSH", "l"];
    words.resize(2 + 70_000, "");
    assert_eq!(call(&mut shard, Protocol::Resp2, &words).0, b":70000\r\n");
    assert!(!is_packed(&mut shard, "l"));
    assert_eq!(elements(&mut shard, b"l").len(), 70_000);
}

#[test]
fn large_lists_are_dense_whatever_end_they_grow_at() {
    for command in ["LPUSH", "RPUSH"] {
        let mut shard = shard(-2);
        for number in 0..50_000 {
            run(&mut shard, &format!("{command} l element:{number}"));
        }
        let packed: usize = (0..50_000).map(|number: u32| format!("element:{number}").len() + 2).sum();
        assert!(large_bytes(&mut shard, "l") < packed * 21 / 20, "{command}");
        assert_eq!(elements(&mut shard, b"l").len(), 50_000);
    }
}

#[test]
fn large_lists_stay_dense_under_changes_in_the_middle() {
    let mut shard = shard(-1);
    for number in 0..2000 {
        run(&mut shard, &format!("RPUSH l element:{number}"));
    }
    for number in (0..2000).step_by(7) {
        run(&mut shard, &format!("LINSERT l before element:{number} inserted:{number}"));
        run(&mut shard, &format!("LSET l {number} {}", "s".repeat(number % 300)));
    }
    for number in 0..1700 {
        run(&mut shard, &format!("LREM l 1 element:{number}"));
    }
    let elements = elements(&mut shard, b"l");
    let packed: usize = elements.iter().map(|element| crate::packed::encoded_len(element)).sum();
    // Two neighbours are more than one node together, the ends apart.
    assert!(large_bytes(&mut shard, "l") <= 2 * packed + 4 * 4096);
}

#[test]
fn a_queue_keeps_no_room_for_what_has_gone() {
    let mut shard = shard(-2);
    for number in 0..20_000 {
        run(&mut shard, &format!("RPUSH l element:{number}"));
        if number >= 1000 {
            assert_eq!(run(&mut shard, "LINDEX l 0"), run(&mut shard, "LPOP l"));
        }
    }
    assert_eq!(run(&mut shard, "LLEN l"), ":1000\r\n");
    assert!(large_bytes(&mut shard, "l") < 4 * 16 * 1024);
}

#[test]
fn a_list_gone_with_its_last_element_is_no_key() {
    for removal in ["LPOP l", "RPOP l", "LREM l 0 a", "LTRIM l 1 0", "LMPOP 1 l LEFT", "LPOP l 5"] {
        let mut shard = shard(-2);
        run(&mut shard, "RPUSH l a");
        run(&mut shard, removal);
        assert!(!shard.keys.contains(b"l"), "{removal}");
    }
}

#[test]
fn moving_within_one_list_rotates_it() {
    let mut shard = shard(2);
    run(&mut shard, "RPUSH l 1 2 3 4 5");
    assert_eq!(run(&mut shard, "RPOPLPUSH l l"), "$1\r\n5\r\n");
    assert_eq!(elements(&mut shard, b"l"), [b"5", b"1", b"2", b"3", b"4"]);
    assert_eq!(run(&mut shard, "LMOVE l l left left"), "$1\r\n5\r\n");
    assert_eq!(run(&mut shard, "LMOVE l l left right"), "$1\r\n5\r\n");
    assert_eq!(elements(&mut shard, b"l"), [b"1", b"2", b"3", b"4", b"5"]);
}

#[test]
fn a_deadline_stays_when_a_list_changes() {
    let mut shard = shard(2);
    run(&mut shard, "RPUSH l 1 2");
    shard.keys.begin(0, 1, None);
    shard.keys.find_mut(b"l").expect("the list").set_deadline(Some(99));
    run(&mut shard, "RPUSH l 3 4 5");
    run(&mut shard, "LTRIM l 0 0");
    assert_eq!(shard.keys.peek(b"l").expect("the list").deadline_ms(), Some(99));
}

#[test]
fn a_large_list_is_freed_piecemeal() {
    let mut shard = shard(1);
    for number in 0..1000 {
        run(&mut shard, &format!("RPUSH l {number}"));
    }
    run(&mut shard, "LTRIM l 1 0");
    assert!(!shard.keys.contains(b"l"));
    assert!(!shard.keys.reclaim(100));
    while !shard.keys.reclaim(100) {}
    assert!(!shard.keys.has_remains());
}
