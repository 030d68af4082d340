//! Random commands on lists and on vectors, whose replies and contents must agree.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{call, elements, shard};
use crate::reply::{Protocol, Reply};

type Model = BTreeMap<String, Vec<Vec<u8>>>;

/// Words of a command.
type Words = Vec<Vec<u8>>;

/// Elements that are often equal, of all packed forms, and a few that no node has room for.
fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (0..6i64).prop_map(|value| value.to_string().into_bytes()),
        3 => prop_oneof![Just(-1i64), Just(70_000), Just(i64::MIN)].prop_map(|value| value.to_string().into_bytes()),
        4 => "[ab]{0,3}".prop_map(String::into_bytes),
        2 => (b'x'..b'z', 60..1500usize).prop_map(|(byte, len)| vec![byte; len]),
        1 => (b'x'..b'z', 4000..9000usize).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(b"{l}1".to_vec()), Just(b"{l}1".to_vec()), Just(b"{l}2".to_vec())]
}

fn index() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => -12..12i64,
        4 => -80..80i64,
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX)],
    ]
    .prop_map(|value| value.to_string().into_bytes())
}

fn end() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(b"LEFT".to_vec()), Just(b"right".to_vec())]
}

fn words(name: &str, rest: &[&[u8]]) -> Words {
    std::iter::once(name.as_bytes()).chain(rest.iter().copied()).map(<[u8]>::to_vec).collect()
}

fn number(value: usize) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn command() -> impl Strategy<Value = Words> {
    let push = prop_oneof![Just("LPUSH"), Just("RPUSH"), Just("LPUSHX"), Just("RPUSHX")];
    let pushed = prop::collection::vec(element(), 1..12);
    let pop = prop_oneof![Just("LPOP"), Just("RPOP")];
    let rank = prop_oneof![-3..0i64, 1..4i64].prop_map(|rank| rank.to_string().into_bytes());
    prop_oneof![
        8 => (push, key(), pushed).prop_map(|(name, key, pushed)| {
            let mut command = words(name, &[&key]);
            command.extend(pushed);
            command
        }),
        3 => (pop.clone(), key()).prop_map(|(name, key)| words(name, &[&key])),
        2 => (pop, key(), 0..30usize).prop_map(|(name, key, count)| words(name, &[&key, &number(count)])),
        2 => (key(), index()).prop_map(|(key, index)| words("LINDEX", &[&key, &index])),
        3 => (key(), index(), element())
            .prop_map(|(key, index, element)| words("LSET", &[&key, &index, &element])),
        4 => (key(), any::<bool>(), element(), element()).prop_map(|(key, before, pivot, element)| {
            words("LINSERT", &[&key, if before { b"BEFORE" } else { b"after" }, &pivot, &element])
        }),
        3 => (key(), -3..4i64, element())
            .prop_map(|(key, count, element)| words("LREM", &[&key, count.to_string().as_bytes(), &element])),
        1 => (key(), index(), index()).prop_map(|(key, start, stop)| words("LTRIM", &[&key, &start, &stop])),
        2 => (key(), index(), index()).prop_map(|(key, start, stop)| words("LRANGE", &[&key, &start, &stop])),
        1 => key().prop_map(|key| words("LLEN", &[&key])),
        2 => (key(), element(), rank, prop::option::of(0..4usize), 0..9usize).prop_map(
            |(key, element, rank, count, most)| {
                let mut command = words("LPOS", &[&key, &element, b"RANK", &rank, b"MAXLEN", &number(most)]);
                if let Some(count) = count {
                    command.extend([b"COUNT".to_vec(), number(count)]);
                }
                command
            }
        ),
        2 => (key(), key(), end(), end())
            .prop_map(|(source, destination, from, to)| words("LMOVE", &[&source, &destination, &from, &to])),
        1 => (key(), key()).prop_map(|(source, destination)| words("RPOPLPUSH", &[&source, &destination])),
        1 => (key(), key(), end(), 1..20usize).prop_map(|(first, second, end, count)| {
            words("LMPOP", &[b"2", &first, &second, &end, b"COUNT", &number(count)])
        }),
    ]
}

fn parse(word: &[u8]) -> i64 {
    std::str::from_utf8(word).expect("a number").parse().expect("a number")
}

fn at(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(len as i64)? } else { index };
    usize::try_from(index).ok().filter(|&index| index < len)
}

fn within(start: i64, stop: i64, len: usize) -> std::ops::Range<usize> {
    let kept: Vec<usize> = (0..len)
        .filter(|&index| {
            let (front, back) = (index as i64, index as i64 - len as i64);
            let after_start = if start >= 0 { front >= start } else { back >= start };
            let before_stop = if stop >= 0 { front <= stop } else { back <= stop };
            after_start && before_stop
        })
        .collect();
    match (kept.first(), kept.last()) {
        (Some(first), Some(last)) => *first..*last + 1,
        _ => 0..0,
    }
}

fn is_left(end: &[u8]) -> bool {
    end.eq_ignore_ascii_case(b"left")
}

fn pop(list: &mut Vec<Vec<u8>>, left: bool) -> Vec<u8> {
    if left { list.remove(0) } else { list.pop().expect("an element") }
}

fn push(list: &mut Vec<Vec<u8>>, left: bool, element: Vec<u8>) {
    list.insert(if left { 0 } else { list.len() }, element);
}

fn reply_popped(list: &mut Vec<Vec<u8>>, left: bool, count: usize, reply: &mut Reply<'_>) {
    let count = count.min(list.len());
    reply.array(count);
    for _ in 0..count {
        reply.bulk(&pop(list, left));
    }
}

/// What the command does to vectors, and what it should reply.
fn expect(model: &mut Model, words: &Words, reply: &mut Reply<'_>) {
    let name = std::str::from_utf8(&words[0]).expect("a name");
    let key_at = if name == "LMPOP" { 2 } else { 1 };
    let key = String::from_utf8(words[key_at].clone()).expect("a key");
    let there = model.contains_key(&key);
    let list = model.entry(key.clone()).or_default();
    match name {
        "LPUSHX" | "RPUSHX" if !there => reply.count(0),
        "LPUSH" | "RPUSH" | "LPUSHX" | "RPUSHX" => {
            words[2..].iter().for_each(|element| push(list, name.starts_with('L'), element.clone()));
            reply.count(list.len());
        }
        "LPOP" | "RPOP" => match (words.get(2), there) {
            (None, true) => reply.bulk(&pop(list, name == "LPOP")),
            (None, false) => reply.null(),
            (Some(_), false) => reply.null_array(),
            (Some(count), true) => reply_popped(list, name == "LPOP", parse(count) as usize, reply),
        },
        "LINDEX" => match at(parse(&words[2]), list.len()) {
            Some(index) => reply.bulk(&list[index]),
            None => reply.null(),
        },
        "LLEN" => reply.count(list.len()),
        "LSET" => match at(parse(&words[2]), list.len()) {
            Some(index) => {
                list[index] = words[3].clone();
                reply.ok();
            }
            None if there => reply.error(&crate::error::CommandError::INDEX_OUT_OF_RANGE),
            None => reply.error(&crate::error::CommandError::NO_SUCH_KEY),
        },
        "LINSERT" => match list.iter().position(|element| *element == words[3]) {
            Some(index) => {
                list.insert(if words[2] == b"BEFORE" { index } else { index + 1 }, words[4].clone());
                reply.count(list.len());
            }
            None => reply.integer(if there { -1 } else { 0 }),
        },
        "LREM" => {
            let count = parse(&words[2]);
            let most = if count == 0 { usize::MAX } else { count.unsigned_abs() as usize };
            let mut doomed: Vec<usize> = (0..list.len()).filter(|&index| list[index] == words[3]).collect();
            if count < 0 {
                doomed.reverse();
            }
            doomed.truncate(most);
            doomed.sort_unstable();
            doomed.iter().rev().for_each(|&index| drop(list.remove(index)));
            reply.count(doomed.len());
        }
        "LTRIM" => {
            *list = list[within(parse(&words[2]), parse(&words[3]), list.len())].to_vec();
            reply.ok();
        }
        "LRANGE" => {
            let range = within(parse(&words[2]), parse(&words[3]), list.len());
            reply.array(range.len());
            list[range].iter().for_each(|element| reply.bulk(element));
        }
        "LPOS" => {
            let (rank, most) = (parse(&words[4]), parse(&words[6]) as usize);
            let mut order: Vec<usize> = (0..list.len()).collect();
            if rank < 0 {
                order.reverse();
            }
            order.truncate(if most == 0 { usize::MAX } else { most });
            order.retain(|&index| list[index] == words[2]);
            let found = order.into_iter().skip(rank.unsigned_abs() as usize - 1);
            match words.get(8) {
                None => match found.into_iter().next() {
                    Some(index) => reply.count(index),
                    None => reply.null(),
                },
                Some(count) => {
                    let count = parse(count) as usize;
                    let found: Vec<usize> = found.take(if count == 0 { usize::MAX } else { count }).collect();
                    reply.array(found.len());
                    found.into_iter().for_each(|index| reply.count(index));
                }
            }
        }
        "LMOVE" | "RPOPLPUSH" if !there => reply.null(),
        "LMOVE" | "RPOPLPUSH" => {
            let from = name == "LMOVE" && is_left(&words[3]);
            let to = name == "RPOPLPUSH" || is_left(&words[4]);
            let element = pop(list, from);
            reply.bulk(&element);
            let destination = String::from_utf8(words[2].clone()).expect("a key");
            push(model.entry(destination).or_default(), to, element);
        }
        "LMPOP" => {
            let second = String::from_utf8(words[3].clone()).expect("a key");
            let key = if there { key } else { second };
            match model.get_mut(&key).filter(|list| !list.is_empty()) {
                Some(list) => {
                    reply.array(2);
                    reply.bulk(key.as_bytes());
                    reply_popped(list, is_left(&words[4]), parse(&words[6]) as usize, reply);
                }
                None => reply.null_array(),
            }
        }
        _ => unreachable!("a command that is not generated"),
    }
    model.retain(|_, list| !list.is_empty());
}

/// Commands that tell of a change even where the list is as it was before.
const ALWAYS_CHANGE: [&str; 3] = ["LSET", "LMOVE", "RPOPLPUSH"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn lists_are_vectors(
        size in prop_oneof![0..8i64, Just(40), Just(-1), Just(-1), Just(-2)],
        resp3: bool,
        commands in prop::collection::vec(command(), 1..80),
    ) {
        let protocol = if resp3 { Protocol::Resp3 } else { Protocol::Resp2 };
        let mut shard = shard(size);
        let mut model = Model::new();
        for words in &commands {
            let before = model.clone();
            let mut expected = Vec::new();
            expect(&mut model, words, &mut Reply::new(&mut expected, protocol));
            let (replied, changes) = call(&mut shard, protocol, words);
            prop_assert_eq!(String::from_utf8_lossy(&replied), String::from_utf8_lossy(&expected), "{:?}", words);
            let name = String::from_utf8_lossy(&words[0]);
            if !ALWAYS_CHANGE.contains(&name.as_ref()) {
                prop_assert_eq!(changes > 0, before != model, "{:?}", words);
            }
            for key in ["{l}1", "{l}2"] {
                let expected = model.get(key).cloned().unwrap_or_default();
                prop_assert_eq!(elements(&mut shard, key.as_bytes()), expected, "after {:?}", words);
                prop_assert_eq!(shard.keys.contains(key.as_bytes()), model.contains_key(key));
            }
        }
    }
}
