//! Sets against a model, and their edge cases.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{call, run, shard};
use proptest::prelude::*;
use ruvio_shard::entry::{Encoding, Kind};
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

type Words = Vec<Vec<u8>>;
type Model = BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>;

fn words(line: &str) -> Words {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// The bulk strings and integers of a reply, in order; aggregates are flattened.
fn items(reply: &[u8]) -> Vec<Vec<u8>> {
    let mut items = Vec::new();
    let mut rest = reply;
    while !rest.is_empty() {
        let end = rest.windows(2).position(|pair| pair == b"\r\n").expect("a whole line");
        let (mark, line) = (rest[0], rest[1..end].to_vec());
        rest = &rest[end + 2..];
        match mark {
            b'$' if line != b"-1" => {
                let len: usize = String::from_utf8(line).unwrap().parse().unwrap();
                items.push(rest[..len].to_vec());
                assert_eq!(&rest[len..len + 2], b"\r\n");
                rest = &rest[len + 2..];
            }
            b':' => items.push(line),
            b'*' | b'~' | b'$' | b'_' => {}
            _ => panic!("unexpected reply {:?}", String::from_utf8_lossy(reply)),
        }
    }
    items
}

fn ask(shard: &mut Shard, line: &str) -> Vec<String> {
    items(&run(shard, 0, line)).into_iter().map(|item| String::from_utf8(item).unwrap()).collect()
}

fn sorted(mut items: Vec<String>) -> Vec<String> {
    items.sort();
    items
}

fn text(shard: &mut Shard, line: &str) -> String {
    String::from_utf8(run(shard, 0, line)).unwrap()
}

fn form(shard: &mut Shard, key: &str) -> Encoding {
    shard.keys.begin(0, 0, None);
    shard.keys.find(key.as_bytes()).expect("a key").encoding()
}

fn small_settings() -> Settings {
    Settings {
        set_max_intset_entries: 6,
        set_max_listpack_entries: 5,
        set_max_listpack_value: 8,
        ..Settings::default()
    }
}

fn members_of(reply: &[u8]) -> BTreeSet<Vec<u8>> {
    let listed = items(reply);
    let members: BTreeSet<Vec<u8>> = listed.iter().cloned().collect();
    assert_eq!(members.len(), listed.len(), "a member came twice");
    members
}

/// What a command must reply (integers and members; the latter as a set where their order is free).
enum Expected {
    Integer(usize),
    Integers(Vec<usize>),
    Members(BTreeSet<Vec<u8>>),
    /// This many different members of the set.
    Subset(usize, BTreeSet<Vec<u8>>),
    /// This many members of the set, any of them more than once.
    Repeated(usize, BTreeSet<Vec<u8>>),
}

fn combined(model: &Model, name: &str, keys: &[Vec<u8>]) -> BTreeSet<Vec<u8>> {
    let mut sets = keys.iter().map(|key| model.get(key).cloned().unwrap_or_default());
    let first = sets.next().unwrap_or_default();
    sets.fold(first, |result, set| match name {
        "inter" => result.intersection(&set).cloned().collect(),
        "union" => result.union(&set).cloned().collect(),
        _ => result.difference(&set).cloned().collect(),
    })
}

fn store(model: &mut Model, key: &[u8], members: BTreeSet<Vec<u8>>) {
    if members.is_empty() {
        model.remove(key);
    } else {
        model.insert(key.to_vec(), members);
    }
}

fn apply(model: &mut Model, words: &Words) -> Expected {
    let name = String::from_utf8(words[0].clone()).unwrap();
    let key = &words[1];
    let here = model.get(key).cloned().unwrap_or_default();
    match name.as_str() {
        "sadd" => {
            let set = model.entry(key.clone()).or_default();
            Expected::Integer(words[2..].iter().filter(|member| set.insert(member.to_vec())).count())
        }
        "srem" => {
            let mut set = here;
            let removed = words[2..].iter().filter(|member| set.remove(*member)).count();
            store(model, key, set);
            Expected::Integer(removed)
        }
        "smove" => {
            let (mut source, member) = (here, &words[3]);
            if !source.contains(member) {
                return Expected::Integer(0);
            }
            if key != &words[2] {
                source.remove(member);
                store(model, key, source);
                model.entry(words[2].clone()).or_default().insert(member.clone());
            }
            Expected::Integer(1)
        }
        "scard" => Expected::Integer(here.len()),
        "sismember" => Expected::Integer(usize::from(here.contains(&words[2]))),
        "smismember" => {
            Expected::Integers(words[2..].iter().map(|member| usize::from(here.contains(member))).collect())
        }
        "sinter" | "sunion" | "sdiff" => Expected::Members(combined(model, &name[1..], &words[1..])),
        "sinterstore" | "sunionstore" | "sdiffstore" => {
            let result = combined(model, name[1..].trim_end_matches("store"), &words[2..]);
            let len = result.len();
            store(model, key, result);
            Expected::Integer(len)
        }
        "sintercard" => {
            let number: usize = std::str::from_utf8(key).unwrap().parse().unwrap();
            let limit: usize = std::str::from_utf8(words.last().unwrap()).unwrap().parse().unwrap();
            let len = combined(model, "inter", &words[2..2 + number]).len();
            Expected::Integer(if limit == 0 { len } else { len.min(limit) })
        }
        "spop" | "srandmember" => {
            let count: i64 = words.get(2).map_or(1, |word| std::str::from_utf8(word).unwrap().parse().unwrap());
            if count < 0 {
                let count = if here.is_empty() { 0 } else { count.unsigned_abs() as usize };
                Expected::Repeated(count, here)
            } else {
                Expected::Subset(here.len().min(count as usize), here)
            }
        }
        other => panic!("no model of {other}"),
    }
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (-4i64..8).prop_map(|number| number.to_string().into_bytes()),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(-32769), Just(32768), Just(1 << 31), Just(-(1 << 31))]
            .prop_map(|number| number.to_string().into_bytes()),
        2 => "[a-d]{0,2}".prop_map(String::into_bytes),
        1 => prop_oneof![Just("01"), Just("-0"), Just("longer than eight"), Just("+5")]
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => (0usize..400).prop_map(|len| vec![b'x'; len]),
    ]
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    "[a-d]".prop_map(String::into_bytes)
}

fn command() -> impl Strategy<Value = Words> {
    let named = |names: &'static [&'static str]| prop::sample::select(names);
    let with = |name: &str, rest: Vec<Vec<u8>>| [vec![name.as_bytes().to_vec()], rest].concat();
    prop_oneof![
        5 => (key(), prop::collection::vec(member(), 1..9))
            .prop_map(move |(key, members)| with("sadd", [vec![key], members].concat())),
        2 => (named(&["srem", "smismember"]), key(), prop::collection::vec(member(), 1..5))
            .prop_map(move |(name, key, members)| with(name, [vec![key], members].concat())),
        1 => (key(), key(), member()).prop_map(move |(from, to, member)| with("smove", vec![from, to, member])),
        1 => (key(), member()).prop_map(move |(key, member)| with("sismember", vec![key, member])),
        1 => key().prop_map(move |key| with("scard", vec![key])),
        3 => (named(&["sinter", "sunion", "sdiff"]), prop::collection::vec(key(), 1..6))
            .prop_map(move |(name, keys)| with(name, keys)),
        3 => (named(&["sinterstore", "sunionstore", "sdiffstore"]), prop::collection::vec(key(), 2..6))
            .prop_map(move |(name, keys)| with(name, keys)),
        1 => (prop::collection::vec(key(), 1..4), 0usize..4).prop_map(move |(keys, limit)| {
            let number = keys.len().to_string().into_bytes();
            let limit = vec![b"LIMIT".to_vec(), limit.to_string().into_bytes()];
            with("sintercard", [vec![number], keys, limit].concat())
        }),
        2 => (named(&["spop", "srandmember"]), key(), prop::option::of(0i32..12))
            .prop_map(move |(name, key, count)| {
                let count = count.map(|count: i32| count.to_string().into_bytes());
                with(name, [vec![key], count.into_iter().collect()].concat())
            }),
        1 => (key(), -20i32..0).prop_map(move |(key, count)| with("srandmember", vec![key, count.to_string().into_bytes()])),
    ]
}

fn check(commands: Vec<Words>, settings: Settings, seed: u64) {
    let mut shard = shard(settings, seed);
    let mut model = Model::new();
    for words in &commands {
        let before = model.clone();
        let expected = apply(&mut model, words);
        let protocol = if words.len() % 2 == 0 { Protocol::Resp2 } else { Protocol::Resp3 };
        let (reply, changes) = call(&mut shard, 0, protocol, words);
        let listed = items(&reply);
        match expected {
            Expected::Integer(number) => assert_eq!(listed, [number.to_string().into_bytes()]),
            Expected::Integers(numbers) => {
                let numbers: Vec<Vec<u8>> = numbers.iter().map(|number| number.to_string().into_bytes()).collect();
                assert_eq!(listed, numbers);
            }
            Expected::Members(members) => assert_eq!(members_of(&reply), members),
            Expected::Subset(count, set) => {
                let chosen = members_of(&reply);
                assert_eq!(chosen.len(), count);
                assert!(chosen.is_subset(&set));
                if words[0] == b"spop" {
                    store(&mut model, &words[1], set.difference(&chosen).cloned().collect());
                }
            }
            Expected::Repeated(count, set) => {
                assert_eq!(listed.len(), count);
                assert!(listed.iter().all(|member| set.contains(member)));
            }
        }
        // A stored result counts as a change even where it is what was there.
        let stored = words[0].ends_with(b"store") && model.contains_key(&words[1]);
        assert_eq!(changes > 0, before != model || stored, "{words:?}");
        assert_eq!(shard.keys.databases()[0].len(), model.len());
        for (key, members) in &model {
            let smembers = vec![b"smembers".to_vec(), key.clone()];
            assert_eq!(&members_of(&call(&mut shard, 0, Protocol::Resp3, &smembers).0), members);
            let scan = vec![b"sscan".to_vec(), key.clone(), b"0".to_vec(), b"COUNT".to_vec(), b"1000".to_vec()];
            let scanned = items(&call(&mut shard, 0, Protocol::Resp2, &scan).0);
            assert_eq!(&scanned[1..].iter().cloned().collect::<BTreeSet<_>>(), members);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn sets_do_what_the_model_does(
        commands in prop::collection::vec(command(), 1..60),
        integers in 0usize..10,
        packed in 0usize..10,
        value in 0usize..12,
        seed: u64,
    ) {
        let settings = Settings {
            set_max_intset_entries: integers,
            set_max_listpack_entries: packed,
            set_max_listpack_value: value,
            ..Settings::default()
        };
        check(commands, settings, seed);
    }

    #[test]
    fn sets_of_the_usual_limits_do_what_the_model_does(
        commands in prop::collection::vec(command(), 1..60),
        seed: u64,
    ) {
        check(commands, Settings::default(), seed);
    }
}

#[test]
fn forms_change_where_the_limits_say() {
    let mut shard = shard(small_settings(), 1);
    run(&mut shard, 0, "sadd numbers 1 2 3 4 5 6");
    assert_eq!(form(&mut shard, "numbers"), Encoding::IntegerSet);
    run(&mut shard, 0, "sadd numbers 7");
    assert_eq!(form(&mut shard, "numbers"), Encoding::Object);
    run(&mut shard, 0, "srem numbers 2 3 4 5 6 7");
    assert_eq!(form(&mut shard, "numbers"), Encoding::Object);

    run(&mut shard, 0, "sadd mixed 1 2 3 4");
    run(&mut shard, 0, "sadd mixed word");
    assert_eq!(form(&mut shard, "mixed"), Encoding::PackedSet);
    run(&mut shard, 0, "sadd mixed more");
    assert_eq!(form(&mut shard, "mixed"), Encoding::Object);

    // Five integers leave no room for a packed sixth member.
    run(&mut shard, 0, "sadd full 1 2 3 4 5");
    run(&mut shard, 0, "sadd full word");
    assert_eq!(form(&mut shard, "full"), Encoding::Object);

    run(&mut shard, 0, "sadd short 12345678");
    run(&mut shard, 0, "sadd short 12345678 word");
    assert_eq!(form(&mut shard, "short"), Encoding::PackedSet);
    run(&mut shard, 0, "sadd wide 123456789");
    run(&mut shard, 0, "sadd wide word");
    assert_eq!(form(&mut shard, "wide"), Encoding::Object);
    run(&mut shard, 0, "sadd short ninebytes");
    assert_eq!(form(&mut shard, "short"), Encoding::Object);

    // The number of words decides, whether or not they are members already.
    run(&mut shard, 0, "sadd many a a a a a a");
    assert_eq!(form(&mut shard, "many"), Encoding::Object);
}

#[test]
fn stored_results_take_the_smallest_form() {
    let mut shard = shard(small_settings(), 1);
    run(&mut shard, 0, "sadd a 1 2 3 x y z zz");
    run(&mut shard, 0, "sadd b 1 2 3 w");
    assert_eq!(form(&mut shard, "a"), Encoding::Object);
    assert_eq!(text(&mut shard, "sinterstore to a b"), ":3\r\n");
    assert_eq!(form(&mut shard, "to"), Encoding::IntegerSet);
    assert_eq!(text(&mut shard, "sdiffstore to a b"), ":4\r\n");
    assert_eq!(form(&mut shard, "to"), Encoding::PackedSet);
    assert_eq!(text(&mut shard, "sunionstore to a b"), ":8\r\n");
    assert_eq!(form(&mut shard, "to"), Encoding::Object);
    assert_eq!(text(&mut shard, "sinterstore to a none"), ":0\r\n");
    assert_eq!(text(&mut shard, "scard to"), ":0\r\n");
}

#[test]
fn a_set_made_anew_by_spop_is_small_again() {
    let mut shard = shard(small_settings(), 1);
    for number in 0..100 {
        run(&mut shard, 0, &format!("sadd numbers {number}"));
    }
    assert_eq!(ask(&mut shard, "spop numbers 97").len(), 97);
    assert_eq!(form(&mut shard, "numbers"), Encoding::PackedSet);
    assert_eq!(text(&mut shard, "scard numbers"), ":3\r\n");
}

#[test]
fn results_replace_whatever_was_there() {
    let mut shard = shard(small_settings(), 1);
    run(&mut shard, 0, "sadd a 1 2");
    shard.keys.begin(0, 0, None);
    shard.keys.find_mut(b"a").unwrap().set_deadline(Some(50));
    run(&mut shard, 0, "sadd a 3");
    assert_eq!(shard.keys.find(b"a").unwrap().deadline_ms(), Some(50));
    run(&mut shard, 0, "sunionstore a a");
    assert_eq!(shard.keys.find(b"a").unwrap().deadline_ms(), None);
    assert_eq!(sorted(ask(&mut shard, "smembers a")), ["1", "2", "3"]);
}

#[test]
fn expired_sets_are_empty() {
    let mut shard = shard(small_settings(), 1);
    run(&mut shard, 0, "sadd a 1 2");
    run(&mut shard, 0, "sadd b 1 2 3");
    shard.keys.find_mut(b"a").unwrap().set_deadline(Some(50));
    assert_eq!(items(&run(&mut shard, 50, "sinter b a")).len(), 0);
    assert_eq!(items(&run(&mut shard, 50, "sdiff b a")).len(), 3);
    assert!(!shard.keys.contains(b"a"));
}

#[test]
fn errors_have_the_words_of_redis() {
    let mut shard = shard(small_settings(), 1);
    run(&mut shard, 0, "sadd s a b c");
    for (line, error) in [
        ("spop s abc", "ERR value is out of range, must be positive"),
        ("spop s -1", "ERR value is out of range, must be positive"),
        ("spop none -1", "ERR value is out of range, must be positive"),
        ("spop s 1 2", "ERR syntax error"),
        ("srandmember s abc", "ERR value is not an integer or out of range"),
        (
            "srandmember s -9223372036854775808",
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ),
        ("srandmember s 1 2", "ERR syntax error"),
        ("sintercard abc s", "ERR numkeys should be greater than 0"),
        ("sintercard 0 s", "ERR numkeys should be greater than 0"),
        ("sintercard 3 s", "ERR Number of keys can't be greater than number of args"),
        ("sintercard 1 s LIMIT", "ERR syntax error"),
        ("sintercard 1 s LIMIT -1", "ERR LIMIT can't be negative"),
        ("sintercard 1 s LIMIT abc", "ERR LIMIT can't be negative"),
        ("sintercard 1 s other 1", "ERR syntax error"),
        ("sscan s abc", "ERR invalid cursor"),
        ("sscan s - ", "ERR invalid cursor"),
        ("sscan s 99999999999999999999999", "ERR invalid cursor"),
        ("sscan s 0 COUNT 0", "ERR syntax error"),
        ("sscan s 0 COUNT abc", "ERR value is not an integer or out of range"),
        ("sscan s 0 MATCH", "ERR syntax error"),
        ("sscan s 0 other 1", "ERR syntax error"),
    ] {
        assert_eq!(text(&mut shard, line), format!("-{error}\r\n"), "{line}");
    }
    assert_eq!(text(&mut shard, "sscan none 0 other"), "*2\r\n$1\r\n0\r\n*0\r\n");
    assert_eq!(text(&mut shard, "spop none"), "$-1\r\n");
    assert_eq!(text(&mut shard, "srandmember none -5"), "*0\r\n");
}

#[test]
fn another_type_is_refused_before_anything_changes() {
    let mut shard = shard(small_settings(), 1);
    run(&mut shard, 0, "sadd s a b");
    shard.keys.begin(0, 0, None);
    let header = ruvio_shard::entry::Header { key: b"string", ..Default::default() };
    shard.keys.add(ruvio_shard::entry::Entry::new(header, Encoding::Bytes, &[b"value"]));
    for line in [
        "sadd string a",
        "srem string a",
        "smove s string a",
        "smove string s a",
        "scard string",
        "sismember string a",
        "smismember string a",
        "smembers string",
        "spop string",
        "spop string 2",
        "srandmember string",
        "srandmember string 2",
        "sscan string 0",
        "sinter none string",
        "sunion s string",
        "sdiff s string",
        "sinterstore to s string",
        "sintercard 2 none string",
    ] {
        let before = shard.keys.stats.dirty;
        assert!(text(&mut shard, line).starts_with("-WRONGTYPE"), "{line}");
        assert_eq!(shard.keys.stats.dirty, before, "{line}");
    }
    assert_eq!(text(&mut shard, "smove none string a"), ":0\r\n");
    assert_eq!(text(&mut shard, "sunionstore string s"), ":2\r\n");
    assert_eq!(shard.keys.find(b"string").unwrap().kind(), Kind::Set);
}

#[test]
fn a_count_that_asks_for_too_much_is_refused() {
    let mut shard = shard(Settings { proto_max_bulk_len: 1000, ..Settings::default() }, 1);
    run(&mut shard, 0, "sadd s a");
    assert!(text(&mut shard, "srandmember s -9223372036854775807").starts_with("-ERR value is out of range"));
    assert_eq!(ask(&mut shard, "srandmember s -100").len(), 100);
    assert!(text(&mut shard, "srandmember s -150").starts_with("-ERR value is out of range"));
}

#[test]
fn a_scan_of_a_large_set_meets_every_member_that_stays() {
    let mut shard = shard(Settings::default(), 1);
    for number in 0..5000 {
        run(&mut shard, 0, &format!("sadd s member:{number}"));
    }
    let mut met = BTreeSet::new();
    let mut cursor = "0".to_owned();
    let mut step = 0;
    loop {
        let reply = ask(&mut shard, &format!("sscan s {cursor} COUNT 7"));
        cursor.clone_from(&reply[0]);
        assert!(reply.len() < 30, "the count bounds a step");
        met.extend(reply[1..].iter().cloned());
        // Every odd member goes, new ones come, and the table splits meanwhile.
        let odd = step * 2 + 1;
        run(&mut shard, 0, &format!("srem s member:{odd}"));
        run(&mut shard, 0, &format!("sadd s new:{step} new:{step}:1 new:{step}:2 new:{step}:3"));
        step += 1;
        if cursor == "0" {
            break;
        }
    }
    for number in (0..5000).step_by(2) {
        assert!(met.contains(&format!("member:{number}")), "member:{number}");
    }
    assert_eq!(ask(&mut shard, "sscan s 0 MATCH none* COUNT 100000"), ["0"]);
    assert_eq!(ask(&mut shard, "sscan s 0 MATCH member:4998 COUNT 100000"), ["0", "member:4998"]);
}

/// Draws from sets of every form; the chi-square statistic of the counts must be one that chance gives.
#[test]
fn every_member_has_the_same_chance() {
    const MEMBERS: usize = 100;
    const DRAWS: usize = 100_000;
    for prefix in ["", "packed", "a member that is longer than a packed set takes: so that the table is used "] {
        let mut shard = shard(Settings::default(), 7);
        for number in 0..MEMBERS {
            let words = vec![b"sadd".to_vec(), b"s".to_vec(), format!("{prefix}{number}").into_bytes()];
            call(&mut shard, 0, Protocol::Resp2, &words);
        }
        for (line, each) in
            [("srandmember s", 1), ("srandmember s -10", 10), ("srandmember s 10", 10), ("srandmember s 60", 60)]
        {
            let mut counts: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
            for _ in 0..DRAWS / each {
                for member in items(&call(&mut shard, 0, Protocol::Resp2, &words(line)).0) {
                    *counts.entry(member).or_default() += 1;
                }
            }
            assert_eq!(counts.len(), MEMBERS);
            let expected = (DRAWS / each * each) as f64 / MEMBERS as f64;
            let chi_square: f64 = counts.values().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
            // 99 degrees of freedom: one draw in a million exceeds 175.
            assert!(chi_square < 175.0, "{line} of {prefix:?}: {chi_square}");
        }
    }
}
