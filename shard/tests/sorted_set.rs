//! Sorted sets against a model, and their edge cases.

use std::collections::BTreeMap;

use crate::support::{call, run, shard};
use proptest::prelude::*;
use ruvio_shard::entry::{Encoding, Kind};
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

/// Members in order, with small integral scores.
type Set = Vec<(i64, String)>;
type Model = BTreeMap<String, Set>;

const KEYS: [&str; 3] = ["one", "two", "three"];

fn small_settings() -> Settings {
    Settings { zset_max_listpack_entries: 6, zset_max_listpack_value: 8, ..Settings::default() }
}

fn text(shard: &mut Shard, line: &str) -> String {
    String::from_utf8(run(shard, 0, line)).expect("text")
}

fn text3(shard: &mut Shard, line: &str) -> String {
    let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    String::from_utf8(call(shard, 0, Protocol::Resp3, &words).0).expect("text")
}

fn encoding(shard: &mut Shard, key: &str) -> Encoding {
    shard.keys.begin(0, 0, None);
    shard.keys.peek(key.as_bytes()).expect("a key").encoding()
}

fn bulk(word: &str) -> String {
    format!("${}\r\n{word}\r\n", word.len())
}

fn array(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    format!("*{}\r\n{}", items.len(), items.concat())
}

fn flat(members: &[(i64, String)]) -> String {
    array(members.iter().flat_map(|(score, member)| [bulk(member), bulk(&score.to_string())]))
}

fn integer(value: usize) -> String {
    format!(":{value}\r\n")
}

fn score_of(set: &Set, member: &str) -> Option<i64> {
    set.iter().find(|(_, other)| other == member).map(|(score, _)| *score)
}

fn set_score(set: &mut Set, member: &str, score: i64) {
    set.retain(|(_, other)| other != member);
    set.push((score, member.to_owned()));
    set.sort();
}

#[derive(Clone, Debug)]
enum Step {
    Add { key: usize, options: Vec<&'static str>, pairs: Vec<(i64, String)> },
    Increment { key: usize, by: i64, member: String },
    Remove { key: usize, members: Vec<String> },
    RemoveByScore { key: usize, min: i64, max: i64 },
    RemoveByRank { key: usize, start: i64, stop: i64 },
    Pop { key: usize, highest: bool, count: usize },
    PopDue { key: usize, max: i64, min: i64, count: usize },
    MoveDue { key: usize, max: i64, count: usize },
    RangeStore { to: usize, from: usize, start: i64, stop: i64 },
    Combine { to: usize, name: &'static str, keys: Vec<usize>, weights: Vec<i64>, aggregate: &'static str },
    ByScore { key: usize, min: i64, max: i64, descending: bool, offset: usize, count: i64 },
    ByRank { key: usize, start: i64, stop: i64, descending: bool },
}

fn member() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (0..12_u8).prop_map(|number| format!("m{number}")),
        3 => (-3..9_i8).prop_map(|number| number.to_string()),
        1 => Just("a-member-past-the-limit".to_owned()),
        1 => Just(String::new()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS.len();
    let score = || -4..5_i64;
    let pairs = || prop::collection::vec((score(), member()), 1..5);
    let options = prop::sample::subsequence(vec!["XX", "GT", "CH"], 0..3)
        .prop_union(prop::sample::subsequence(vec!["NX", "CH"], 0..3))
        .or(prop::sample::subsequence(vec!["LT", "XX"], 0..3));
    prop_oneof![
        8 => (key(), pairs()).prop_map(|(key, pairs)| Step::Add { key, options: Vec::new(), pairs }),
        4 => (key(), options, pairs()).prop_map(|(key, options, pairs)| Step::Add { key, options, pairs }),
        3 => (key(), score(), member()).prop_map(|(key, by, member)| Step::Increment { key, by, member }),
        3 => (key(), prop::collection::vec(member(), 1..4)).prop_map(|(key, members)| Step::Remove { key, members }),
        1 => (key(), score(), score()).prop_map(|(key, min, max)| Step::RemoveByScore { key, min, max }),
        1 => (key(), -9..9_i64, -9..9_i64).prop_map(|(key, start, stop)| Step::RemoveByRank { key, start, stop }),
        2 => (key(), any::<bool>(), 0..4_usize).prop_map(|(key, highest, count)| Step::Pop { key, highest, count }),
        2 => (key(), score(), score(), 1..4_usize)
            .prop_map(|(key, max, min, count)| Step::PopDue { key, max, min, count }),
        1 => (key(), score(), 1..4_usize).prop_map(|(key, max, count)| Step::MoveDue { key, max, count }),
        1 => (key(), key(), -9..9_i64, -9..9_i64)
            .prop_map(|(to, from, start, stop)| Step::RangeStore { to, from, start, stop }),
        2 => (
            key(),
            prop::sample::select(vec!["ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"]),
            prop::collection::vec(key(), 1..4),
            prop::collection::vec(1..4_i64, 3),
            prop::sample::select(vec!["SUM", "MIN", "MAX"]),
        )
            .prop_map(|(to, name, keys, weights, aggregate)| Step::Combine { to, name, keys, weights, aggregate }),
        2 => (key(), score(), score(), any::<bool>(), 0..4_usize, -1..4_i64).prop_map(
            |(key, min, max, descending, offset, count)| Step::ByScore { key, min, max, descending, offset, count }
        ),
        2 => (key(), -9..9_i64, -9..9_i64, any::<bool>())
            .prop_map(|(key, start, stop, descending)| Step::ByRank { key, start, stop, descending }),
    ]
}

fn ranks(len: usize, start: i64, stop: i64) -> std::ops::Range<usize> {
    let resolve = |rank: i64| if rank < 0 { rank + len as i64 } else { rank };
    let (start, stop) = (resolve(start).max(0) as usize, (resolve(stop) + 1).clamp(0, len as i64) as usize);
    start.min(stop)..stop
}

fn combine(model: &Model, name: &str, keys: &[usize], weights: &[i64], aggregate: &str) -> Set {
    let sets: Vec<Set> = keys.iter().map(|key| model.get(KEYS[*key]).cloned().unwrap_or_default()).collect();
    let mut result: BTreeMap<String, i64> = BTreeMap::new();
    for (set, weight) in sets.iter().zip(weights) {
        for (score, member) in set {
            let score = if name == "ZDIFFSTORE" { *score } else { score * weight };
            let present = sets.iter().filter(|set| score_of(set, member).is_some()).count();
            let wanted = match name {
                "ZUNIONSTORE" => true,
                "ZINTERSTORE" => present == sets.len(),
                _ => score_of(&sets[0], member).is_some() && present == 1,
            };
            if wanted {
                let merged = match (result.get(member), aggregate) {
                    (None, _) => score,
                    (Some(other), "SUM") => other + score,
                    (Some(other), "MIN") => score.min(*other),
                    (Some(other), _) => score.max(*other),
                };
                result.insert(member.clone(), merged);
            }
        }
    }
    let mut set: Set = result.into_iter().map(|(member, score)| (score, member)).collect();
    set.sort();
    set
}

/// Applies a step to the model; the words of its command and the reply to expect.
fn apply(model: &mut Model, list: &mut Vec<String>, step: &Step) -> (String, String) {
    let mut set = |key: &usize| model.remove(KEYS[*key]).unwrap_or_default();
    let (key, after, line, reply) = match step {
        Step::Add { key, options, pairs } => {
            let mut set = set(key);
            let (mut added, mut changed) = (0, 0);
            let has = |option| options.contains(&option);
            for (score, member) in pairs {
                match score_of(&set, member) {
                    None if has("XX") => continue,
                    None => added += 1,
                    Some(now) if has("NX") || has("GT") && *score <= now || has("LT") && *score >= now => continue,
                    Some(now) => changed += usize::from(now != *score),
                }
                set_score(&mut set, member, *score);
            }
            let pairs: String = pairs.iter().map(|(score, member)| format!(" {score} {member}")).collect();
            let options: String = options.iter().map(|option| format!(" {option}")).collect();
            let reply = integer(if has("CH") { added + changed } else { added });
            (*key, set, format!("ZADD {}{options}{pairs}", KEYS[*key]), reply)
        }
        Step::Increment { key, by, member } => {
            let mut set = set(key);
            let score = score_of(&set, member).unwrap_or(0) + by;
            set_score(&mut set, member, score);
            (*key, set, format!("ZINCRBY {} {by} {member}", KEYS[*key]), bulk(&score.to_string()))
        }
        Step::Remove { key, members } => {
            let mut set = set(key);
            let before = set.len();
            set.retain(|(_, member)| !members.contains(member));
            let removed = integer(before - set.len());
            (*key, set, format!("ZREM {} {}", KEYS[*key], members.join(" ")), removed)
        }
        Step::RemoveByScore { key, min, max } => {
            let mut set = set(key);
            let before = set.len();
            set.retain(|(score, _)| score <= min || score > max);
            let removed = integer(before - set.len());
            (*key, set, format!("ZREMRANGEBYSCORE {} ({min} {max}", KEYS[*key]), removed)
        }
        Step::RemoveByRank { key, start, stop } => {
            let mut set = set(key);
            let removed = set.drain(ranks(set.len(), *start, *stop)).count();
            (*key, set, format!("ZREMRANGEBYRANK {} {start} {stop}", KEYS[*key]), integer(removed))
        }
        Step::Pop { key, highest, count } => {
            let mut set = set(key);
            let popped: Set = if *highest {
                let kept = set.len().saturating_sub(*count);
                set.drain(kept..).rev().collect()
            } else {
                set.drain(..set.len().min(*count)).collect()
            };
            let name = if *highest { "ZPOPMAX" } else { "ZPOPMIN" };
            (*key, set, format!("{name} {} {count}", KEYS[*key]), flat(&popped))
        }
        Step::PopDue { key, max, min, count } => {
            let mut set = set(key);
            let due: Set = set.iter().filter(|(score, _)| score >= min && score < max).take(*count).cloned().collect();
            set.retain(|pair| !due.contains(pair));
            let line = format!("ZPOPBYSCORE {} ({max} COUNT {count} MIN {min} WITHSCORES", KEYS[*key]);
            (*key, set, line, flat(&due))
        }
        Step::MoveDue { key, max, count } => {
            let mut set = set(key);
            let due: Set = set.iter().filter(|(score, _)| score <= max).take(*count).cloned().collect();
            set.retain(|pair| !due.contains(pair));
            list.extend(due.iter().map(|(_, member)| member.clone()));
            (*key, set, format!("ZMOVEDUE {} list {max} COUNT {count}", KEYS[*key]), integer(due.len()))
        }
        Step::RangeStore { to, from, start, stop } => {
            let source = model.get(KEYS[*from]).cloned().unwrap_or_default();
            let stored = source[ranks(source.len(), *start, *stop)].to_vec();
            let reply = integer(stored.len());
            (*to, stored, format!("ZRANGESTORE {} {} {start} {stop}", KEYS[*to], KEYS[*from]), reply)
        }
        Step::Combine { to, name, keys, weights, aggregate } => {
            let stored = combine(model, name, keys, weights, aggregate);
            let names: String = keys.iter().map(|key| format!(" {}", KEYS[*key])).collect();
            let weights: String = weights[..keys.len()].iter().map(|weight| format!(" {weight}")).collect();
            let options = format!(" WEIGHTS{weights} AGGREGATE {aggregate}");
            let options = if *name == "ZDIFFSTORE" { "" } else { &options };
            let reply = integer(stored.len());
            (*to, stored, format!("{name} {} {}{names}{options}", KEYS[*to], keys.len()), reply)
        }
        Step::ByScore { key, min, max, descending, offset, count } => {
            let set = set(key);
            let mut within: Set = set.iter().filter(|(score, _)| score >= min && score < max).cloned().collect();
            if *descending {
                within.reverse();
            }
            let taken = if *count < 0 { usize::MAX } else { *count as usize };
            let within: Set = within.into_iter().skip(*offset).take(taken).collect();
            let limit = format!("WITHSCORES LIMIT {offset} {count}");
            let line = match descending {
                true => format!("ZREVRANGEBYSCORE {} ({max} {min} {limit}", KEYS[*key]),
                false => format!("ZRANGEBYSCORE {} {min} ({max} {limit}", KEYS[*key]),
            };
            (*key, set, line, flat(&within))
        }
        Step::ByRank { key, start, stop, descending } => {
            let set = set(key);
            let mut ordered = set.clone();
            if *descending {
                ordered.reverse();
            }
            let within = ordered[ranks(ordered.len(), *start, *stop)].to_vec();
            let rev = if *descending { " REV" } else { "" };
            (*key, set, format!("ZRANGE {} {start} {stop}{rev} WITHSCORES", KEYS[*key]), flat(&within))
        }
    };
    if after.is_empty() {
        model.remove(KEYS[key]);
    } else {
        model.insert(KEYS[key].to_owned(), after);
    }
    (line, reply)
}

/// Every way to read a key's content must agree with the model.
fn check(shard: &mut Shard, model: &Model, list: &[String]) {
    for key in KEYS {
        let set = model.get(key).cloned().unwrap_or_default();
        assert_eq!(text(shard, &format!("ZRANGE {key} 0 -1 WITHSCORES")), flat(&set), "{key}");
        assert_eq!(text(shard, &format!("ZCARD {key}")), integer(set.len()));
        for (rank, (score, member)) in set.iter().enumerate() {
            assert_eq!(text(shard, &format!("ZSCORE {key} {member}")), bulk(&score.to_string()));
            assert_eq!(text(shard, &format!("ZRANK {key} {member}")), integer(rank));
            assert_eq!(text(shard, &format!("ZREVRANK {key} {member}")), integer(set.len() - 1 - rank));
        }
        shard.keys.begin(0, 0, None);
        assert_eq!(
            shard.keys.peek(key.as_bytes()).map(|entry| entry.kind()),
            (!set.is_empty()).then_some(Kind::SortedSet)
        );
    }
    assert_eq!(text(shard, "LRANGE list 0 -1"), array(list.iter().map(|member| bulk(member))));
}

fn has_repeats(pairs: &[(i64, String)]) -> bool {
    pairs.iter().enumerate().any(|(place, (_, member))| pairs[..place].iter().any(|(_, earlier)| earlier == member))
}

proptest! {
    #[test]
    fn commands_do_what_a_sorted_vec_does(steps in prop::collection::vec(step(), 1..80)) {
        let mut shard = shard(small_settings(), 1);
        let (mut model, mut list) = (Model::new(), Vec::new());
        for step in steps {
            let before = model.clone();
            let (line, expected) = apply(&mut model, &mut list, &step);
            let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            let (reply, changes) = call(&mut shard, 0, Protocol::Resp2, &words);
            prop_assert_eq!(String::from_utf8_lossy(&reply), expected, "{}", line);
            let stores = matches!(step, Step::RangeStore { .. } | Step::Combine { .. });
            // A member named twice may change and change back: told, though nothing differs afterwards.
            let repeats = matches!(&step, Step::Add { pairs, .. } if has_repeats(pairs));
            if repeats {
                prop_assert!(changes > 0 || model == before, "{}", line);
            } else if !stores {
                prop_assert_eq!(changes > 0, model != before, "{}", line);
            }
            check(&mut shard, &model, &list);
        }
    }
}

/// Both forms: a packed set, and one that a long member has made large.
fn both_forms(mut test: impl FnMut(&mut Shard)) {
    test(&mut shard(Settings::default(), 1));
    test(&mut shard(Settings { zset_max_listpack_entries: 0, ..Settings::default() }, 1));
}

#[test]
fn the_form_changes_when_a_limit_is_passed_and_never_back() {
    let mut shard = shard(small_settings(), 1);
    run(&mut shard, 0, "ZADD key 1 a 2 b 3 c 4 d 5 e 6 f");
    assert_eq!(encoding(&mut shard, "key"), Encoding::PackedSortedSet);
    run(&mut shard, 0, "ZADD key 7 g");
    assert_eq!(encoding(&mut shard, "key"), Encoding::Object);
    run(&mut shard, 0, "ZREM key g f e");
    assert_eq!(encoding(&mut shard, "key"), Encoding::Object);
    run(&mut shard, 0, "ZADD long 1 eightlet");
    assert_eq!(encoding(&mut shard, "long"), Encoding::PackedSortedSet);
    run(&mut shard, 0, "ZADD long 1 nineletts");
    assert_eq!(encoding(&mut shard, "long"), Encoding::Object);
    run(&mut shard, 0, "ZRANGESTORE stored key 0 -1");
    assert_eq!(encoding(&mut shard, "stored"), Encoding::PackedSortedSet);
    run(&mut shard, 0, "ZUNIONSTORE stored 2 key long");
    assert_eq!(encoding(&mut shard, "stored"), Encoding::Object);
}

#[test]
fn a_packed_score_is_an_integer_or_its_shortest_text() {
    let mut shard = shard(Settings::default(), 1);
    run(&mut shard, 0, "ZADD key 1 a 2.5 b 1000 c -0 d");
    shard.keys.begin(0, 0, None);
    let payload = shard.keys.peek(b"key").expect("a key").payload();
    let expected = b"\x81d\x02\x00\x01\x81a\x02\x01\x01\x81b\x02\x832.5\x04\x81c\x02\xc3\xe8\x02";
    assert_eq!(payload, expected);
    assert_eq!(text(&mut shard, "ZSCORE key d"), bulk("0"));
}

#[test]
fn members_of_one_score_are_ordered_by_their_bytes() {
    both_forms(|shard| {
        run(shard, 0, "ZADD key 0 b 0 10 0 a 0 9 0 ba 0 -1");
        let all = ["-1", "10", "9", "a", "b", "ba"];
        assert_eq!(text(shard, "ZRANGE key - + BYLEX"), array(all.map(bulk)));
        assert_eq!(text(shard, "ZRANGEBYLEX key (10 [b"), array(["9", "a", "b"].map(bulk)));
        assert_eq!(text(shard, "ZREVRANGEBYLEX key + (a LIMIT 1 5"), array(["b"].map(bulk)));
        assert_eq!(text(shard, "ZLEXCOUNT key [a +"), ":3\r\n");
        assert_eq!(text(shard, "ZLEXCOUNT key + -"), ":0\r\n");
        assert_eq!(text(shard, "ZREMRANGEBYLEX key - (a"), ":3\r\n");
        assert_eq!(text(shard, "ZRANGE key 0 -1"), array(["a", "b", "ba"].map(bulk)));
        assert_eq!(text(shard, "ZLEXCOUNT key a +"), "-ERR min or max not valid string range item\r\n");
    });
}

#[test]
fn infinities_never_make_a_score_that_is_no_number() {
    both_forms(|shard| {
        run(shard, 0, "ZADD key inf a -inf b");
        let nan = "-ERR resulting score is not a number (NaN)\r\n";
        assert_eq!(text(shard, "ZINCRBY key -inf a"), nan);
        assert_eq!(text(shard, "ZADD key INCR inf b"), nan);
        assert_eq!(text(shard, "ZADD key nan c"), "-ERR value is not a valid float\r\n");
        assert_eq!(text(shard, "ZRANGE key 0 -1 WITHSCORES"), array(["b", "-inf", "a", "inf"].map(bulk)));
        run(shard, 0, "ZADD other -inf a inf b");
        let zeros = array(["a", "0", "b", "0"].map(bulk));
        assert_eq!(text(shard, "ZUNION 2 key other WITHSCORES"), zeros);
        assert_eq!(text(shard, "ZINTER 2 key other WITHSCORES"), zeros);
        assert_eq!(text(shard, "ZUNION 1 key WEIGHTS 0 WITHSCORES"), zeros);
    });
}

#[test]
fn resp3_has_doubles_and_pairs() {
    both_forms(|shard| {
        run(shard, 0, "ZADD key 1 a 2.5 b");
        let pairs = "*2\r\n*2\r\n$1\r\na\r\n,1\r\n*2\r\n$1\r\nb\r\n,2.5\r\n";
        assert_eq!(text3(shard, "ZRANGE key 0 -1 WITHSCORES"), pairs);
        assert_eq!(text3(shard, "ZUNION 1 key WITHSCORES"), pairs);
        assert_eq!(text3(shard, "ZSCORE key b"), ",2.5\r\n");
        assert_eq!(text3(shard, "ZSCORE key c"), "_\r\n");
        assert_eq!(text3(shard, "ZMSCORE key a c"), "*2\r\n,1\r\n_\r\n");
        assert_eq!(text3(shard, "ZADD key XX INCR 1 c"), "_\r\n");
        assert_eq!(text3(shard, "ZRANK key b WITHSCORE"), "*2\r\n:1\r\n,2.5\r\n");
        assert_eq!(text(shard, "ZRANK key c WITHSCORE"), "*-1\r\n");
        assert_eq!(text3(shard, "ZSCAN key 0 MATCH b"), "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nb\r\n$3\r\n2.5\r\n");
        assert_eq!(text3(shard, "ZPOPMIN key"), "*2\r\n$1\r\na\r\n,1\r\n");
        assert_eq!(text3(shard, "ZMPOP 2 none key MAX"), "*2\r\n$3\r\nkey\r\n*1\r\n*2\r\n$1\r\nb\r\n,2.5\r\n");
        assert_eq!(text3(shard, "ZMPOP 2 none key MAX"), "_\r\n");
        run(shard, 0, "ZADD key 1 a 2.5 b");
        assert_eq!(text3(shard, "ZPOPBYSCORE key 9 WITHSCORES"), pairs);
    });
}

#[test]
fn a_scan_of_a_large_set_returns_every_member_once() {
    let mut shard = shard(Settings::default(), 1);
    for number in 0..3000 {
        run(&mut shard, 0, &format!("ZADD key {number} m{number}"));
    }
    let mut seen = BTreeMap::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply = text(&mut shard, &format!("ZSCAN key {cursor} COUNT 50"));
        let lines: Vec<&str> = reply.split("\r\n").collect();
        cursor = lines[2].to_owned();
        let words: Vec<&str> = lines[4..].iter().skip(1).step_by(2).copied().collect();
        for pair in words.chunks_exact(2) {
            *seen.entry(pair[0].to_owned()).or_insert(0) += 1;
            assert_eq!(pair[0], format!("m{}", pair[1]));
        }
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 3000);
    assert!(seen.values().all(|times| *times == 1));
}

#[test]
fn zscan_shows_seventeen_digits_of_a_large_set() {
    let mut shard = shard(Settings { zset_max_listpack_entries: 0, ..Settings::default() }, 1);
    for (score, shown) in [
        ("0.1", "0.10000000000000001"),
        ("-3.25", "-3.25"),
        ("100", "100"),
        ("1e17", "1e+17"),
        ("12345678901234567890", "1.2345678901234567e+19"),
        ("0.0001", "0.0001"),
        ("0.00001", "1.0000000000000001e-05"),
        ("1e300", "1.0000000000000001e+300"),
        ("inf", "inf"),
        ("-0", "-0"),
    ] {
        run(&mut shard, 0, "ZREMRANGEBYRANK key 0 -1");
        run(&mut shard, 0, &format!("ZADD key {score} m"));
        assert_eq!(text(&mut shard, "ZSCAN key 0"), array([bulk("0"), array([bulk("m"), bulk(shown)])]));
    }
}

#[test]
fn random_members_are_members_and_every_one_can_come() {
    both_forms(|shard| {
        run(shard, 0, "ZADD key 1 a 2 b 3 c 4 d");
        let mut seen = BTreeMap::new();
        for _ in 0..200 {
            *seen.entry(text(shard, "ZRANDMEMBER key")).or_insert(0) += 1;
            let two = text(shard, "ZRANDMEMBER key 2");
            let lines: Vec<&str> = two.split("\r\n").collect();
            assert!(two.starts_with("*2\r\n") && lines[2] != lines[4], "{two}");
            assert!(text(shard, "ZRANDMEMBER key -7").starts_with("*7\r\n"));
        }
        assert_eq!(seen.keys().cloned().collect::<Vec<_>>(), ["a", "b", "c", "d"].map(bulk));
        assert_eq!(text(shard, "ZRANDMEMBER none"), "$-1\r\n");
        assert_eq!(text(shard, "ZRANDMEMBER none 3"), "*0\r\n");
    });
}

#[test]
fn sets_are_inputs_with_scores_of_one() {
    both_forms(|shard| {
        run(shard, 0, "ZADD key 5 a 6 7");
        run(shard, 0, "SADD set a b 7");
        assert_eq!(text(shard, "ZUNION 2 key set WITHSCORES"), array(["b", "1", "a", "6", "7", "7"].map(bulk)));
        assert_eq!(text(shard, "ZINTERCARD 2 key set"), ":2\r\n");
        assert_eq!(text(shard, "ZINTERCARD 2 key set LIMIT 1"), ":1\r\n");
        assert_eq!(text(shard, "ZDIFF 2 set key WITHSCORES"), array(["b", "1"].map(bulk)));
        run(shard, 0, "RPUSH list x");
        assert!(text(shard, "ZUNION 2 key list").starts_with("-WRONGTYPE "));
        assert_eq!(text(shard, "ZDIFFSTORE list 2 key set"), ":0\r\n");
        assert!(!shard.keys.contains(b"list"));
    });
}

#[test]
fn an_increment_gives_a_deadline_only_to_the_key_it_creates() {
    let mut shard = shard(Settings::default(), 1);
    let deadline = |shard: &mut Shard| shard.keys.peek(b"key").and_then(|entry| entry.deadline_ms());
    assert_eq!(run(&mut shard, 1000, "ZINCRBY key 2 a EX 10"), b"$1\r\n2\r\n");
    assert_eq!(deadline(&mut shard), Some(11_000));
    run(&mut shard, 2000, "ZINCRBY key 2 b PX 90000");
    run(&mut shard, 2000, "ZADD key 2 c");
    assert_eq!(deadline(&mut shard), Some(11_000));
    assert_eq!(run(&mut shard, 11_000, "ZINCRBY key 1 a"), b"$1\r\n1\r\n");
    assert_eq!(deadline(&mut shard), None);
    for line in ["ZINCRBY key 1 a EX 0", "ZINCRBY key 1 a PX -1", "ZINCRBY key 1 a EX 9223372036854775807"] {
        assert_eq!(text(&mut shard, line), "-ERR invalid expire time in 'zincrby' command\r\n");
    }
    assert_eq!(text(&mut shard, "ZINCRBY key 1 a EX"), "-ERR syntax error\r\n");
    assert_eq!(
        text(&mut shard, "ZINCRBY key 1 a KEEPTTL 1"),
        "-ERR wrong number of arguments for 'zincrby' command\r\n"
    );
}

#[test]
fn due_members_are_popped_and_moved_lowest_first() {
    both_forms(|shard| {
        run(shard, 0, "ZADD due 1 b 1 a 2 c 3 d 9 z");
        assert_eq!(text(shard, "ZPOPBYSCORE due 0"), "*0\r\n");
        assert_eq!(text(shard, "ZPOPBYSCORE none 0"), "*0\r\n");
        assert_eq!(text(shard, "ZMOVEDUE due ready (1"), ":0\r\n");
        assert!(!shard.keys.contains(b"ready"));
        assert_eq!(text(shard, "ZPOPBYSCORE due 3 COUNT 1"), array(["a"].map(bulk)));
        run(shard, 0, "RPUSH ready first");
        assert_eq!(text(shard, "ZMOVEDUE due ready 3 MIN (1"), ":2\r\n");
        assert_eq!(text(shard, "LRANGE ready 0 -1"), array(["first", "c", "d"].map(bulk)));
        run(shard, 0, "SET text x");
        assert!(text(shard, "ZMOVEDUE due text 3").starts_with("-WRONGTYPE "));
        assert!(text(shard, "ZMOVEDUE due due +inf").starts_with("-WRONGTYPE "));
        assert_eq!(text(shard, "ZCARD due"), ":2\r\n");
        assert_eq!(text(shard, "ZPOPBYSCORE due +inf WITHSCORES"), array(["b", "1", "z", "9"].map(bulk)));
        assert!(!shard.keys.contains(b"due"));
        let range = "-ERR value is out of range, value must between 1 and 10000\r\n";
        assert_eq!(text(shard, "ZPOPBYSCORE due 1 COUNT 0"), range);
        assert_eq!(text(shard, "ZMOVEDUE due ready 1 COUNT 10001"), range);
        assert_eq!(text(shard, "ZMOVEDUE due ready 1 COUNT x"), "-ERR value is not an integer or out of range\r\n");
        assert_eq!(text(shard, "ZMOVEDUE due ready x"), "-ERR min or max is not a float\r\n");
        assert_eq!(text(shard, "ZMOVEDUE due ready 1 WITHSCORES"), "-ERR syntax error\r\n");
        assert_eq!(text(shard, "ZPOPBYSCORE due 1 MIN"), "-ERR syntax error\r\n");
    });
}

#[test]
fn a_call_that_removes_due_members_takes_no_more_than_ten_thousand() {
    let mut shard = shard(Settings::default(), 1);
    for number in 0..10_001 {
        run(&mut shard, 0, &format!("ZADD due 1 m{number}"));
    }
    assert_eq!(text(&mut shard, "ZMOVEDUE due ready 1"), ":10000\r\n");
    assert_eq!(text(&mut shard, "ZCARD due"), ":1\r\n");
    assert_eq!(text(&mut shard, "LLEN ready"), ":10000\r\n");
}

#[test]
fn a_large_set_gives_its_memory_back() {
    let mut shard = shard(Settings::default(), 1);
    let before = ruvio_shard::slab::usage().used_bytes;
    for number in 0..2000 {
        run(&mut shard, 0, &format!("ZADD {{k}}1 {number} m{number}"));
    }
    run(&mut shard, 0, "ZREMRANGEBYRANK {k}1 100 1899");
    run(&mut shard, 0, "ZREMRANGEBYRANK {k}1 0 -1");
    assert!(!shard.keys.contains(b"{k}1"));
    let mut turns = 0;
    while !shard.keys.reclaim(50) {
        turns += 1;
    }
    assert!(turns <= 200, "{turns} turns for 200 members");
    assert_eq!(ruvio_shard::slab::usage().used_bytes, before);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let mut shard = shard(Settings::default(), 1);
    for (line, error) in [
        ("ZADD k NX XX 1 a", "XX and NX options at the same time are not compatible"),
        ("ZADD k GT LT 1 a", "GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD k NX GT 1 a", "GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD k INCR 1 a 2 b", "INCR option supports a single increment-element pair"),
        ("ZADD k XX 1 a 2", "syntax error"),
        ("ZADD k 1 a x b", "value is not a valid float"),
        ("ZRANGE k 0 1 LIMIT 0 1", "syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"),
        ("ZRANGE k - + BYLEX WITHSCORES", "syntax error, WITHSCORES not supported in combination with BYLEX"),
        ("ZRANGE k 0 1 BYLEX BYSCORE", "syntax error"),
        ("ZRANGESTORE d k 0 1 WITHSCORES", "syntax error"),
        ("ZUNION 0 k", "at least 1 input key is needed for 'zunion' command"),
        ("ZUNION 2 k", "syntax error"),
        ("ZUNION 1 k WEIGHTS x", "weight value is not a float"),
        ("ZDIFF 1 k WEIGHTS 1", "syntax error"),
        ("ZINTERCARD 1 k LIMIT -1", "LIMIT can't be negative"),
        ("ZMPOP 0 k MIN", "numkeys should be greater than 0"),
        ("ZMPOP 1 k MIN COUNT 0", "count should be greater than 0"),
        ("ZMPOP 9223372036854775807 k MIN", "syntax error"),
        ("ZPOPMIN k -1", "value is out of range, must be positive"),
        ("ZSCAN k x", "invalid cursor"),
        ("ZCOUNT k 1 x", "min or max is not a float"),
        ("ZRANK k a WITHSCORES", "syntax error"),
    ] {
        assert_eq!(text(&mut shard, line), format!("-ERR {error}\r\n"), "{line}");
    }
    assert!(!shard.keys.contains(b"k"));
}
