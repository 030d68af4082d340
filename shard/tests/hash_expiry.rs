//! Hashes whose fields expire, against a plain model, in both forms, and their edge cases.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::databases;
use crate::support::{call, run, shard};
use proptest::prelude::*;
use ruvio_shard::entry::{Encoding, Entry, Header};
use ruvio_shard::hash::{Hash, Lifetime, Limits, Place, next_deadline_ms};
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

const START_MS: i64 = 1_700_000_000_000;

const FIELDS: usize = 12;

/// A field of the model: its value, and when it expires.
#[derive(Clone, Debug, PartialEq)]
struct Field {
    value: String,
    deadline_ms: Option<i64>,
}

/// What is stored of a hash, expired fields that nobody removed yet included.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    fields: BTreeMap<String, Field>,
}

impl Model {
    fn is_live(&self, name: &str, now_ms: i64) -> bool {
        self.fields.get(name).is_some_and(|field| field.deadline_ms.is_none_or(|deadline_ms| deadline_ms > now_ms))
    }

    fn live(&self, now_ms: i64) -> BTreeMap<String, String> {
        let live = self.fields.iter().filter(|(name, _)| self.is_live(name, now_ms));
        live.map(|(name, field)| (name.clone(), field.value.clone())).collect()
    }

    /// What naming fields does: those that have expired go.
    fn name(&mut self, names: &[String], now_ms: i64) {
        for name in names {
            if !self.is_live(name, now_ms) {
                self.fields.remove(name);
            }
        }
    }

    fn remove_expired(&mut self, now_ms: i64) {
        let names: Vec<String> = self.fields.keys().cloned().collect();
        self.name(&names, now_ms);
    }

    fn set(&mut self, name: &str, value: &str, deadline_ms: Option<i64>) {
        self.fields.insert(name.into(), Field { value: value.into(), deadline_ms });
    }
}

#[derive(Clone, Debug)]
enum Time {
    /// Relative, in ms.
    In(i64),
    /// Absolute, relative to the start, in ms.
    At(i64),
}

impl Time {
    fn deadline_ms(&self, now_ms: i64) -> i64 {
        match self {
            Time::In(ms) => now_ms + ms,
            Time::At(ms) => START_MS + ms,
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Pass(i64),
    Set(Vec<(String, String)>),
    SetIfMissing(String, String),
    Delete(Vec<String>),
    Increase(String, i64),
    Transfer(String, String),
    Expire(Time, &'static str, Vec<String>),
    Persist(Vec<String>),
    GetAndDelete(Vec<String>),
    GetAndExpire(Option<Time>, bool, Vec<String>),
    SetAndExpire(&'static str, Option<Time>, bool, Vec<(String, String)>),
    Read(Vec<String>),
    Random(i64),
    Sweep(usize),
    Copy,
    Rename,
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        10 => (0..FIELDS).prop_map(|number| format!("f{number}")),
        2 => (-2i64..3).prop_map(|number| number.to_string()),
        1 => Just("a field that is too long for the packed form".to_owned()),
    ]
}

fn names() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(name(), 1..5)
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![(-300i64..300).prop_map(|number| number.to_string()), (1usize..80).prop_map(|len| "v".repeat(len))]
}

fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec((name(), value()), 1..5)
}

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![4 => (0i64..60).prop_map(Time::In), 1 => (-10i64..400).prop_map(Time::At)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0i64..30).prop_map(Step::Pass),
        4 => pairs().prop_map(Step::Set),
        1 => (name(), value()).prop_map(|(name, value)| Step::SetIfMissing(name, value)),
        2 => names().prop_map(Step::Delete),
        2 => (name(), -9i64..9).prop_map(|(name, by)| Step::Increase(name, by)),
        1 => (name(), name()).prop_map(|(from, to)| Step::Transfer(from, to)),
        6 => (time(), prop::sample::select(vec!["", "NX", "XX", "GT", "lt"]), names())
            .prop_map(|(time, condition, names)| Step::Expire(time, condition, names)),
        2 => names().prop_map(Step::Persist),
        1 => names().prop_map(Step::GetAndDelete),
        2 => (prop::option::of(time()), any::<bool>(), names())
            .prop_map(|(time, persist, names)| Step::GetAndExpire(time, persist, names)),
        3 => (prop::sample::select(vec!["", "FNX", "FXX"]), prop::option::of(time()), any::<bool>(), pairs())
            .prop_map(|(condition, time, keep, pairs)| Step::SetAndExpire(condition, time, keep, pairs)),
        3 => names().prop_map(Step::Read),
        1 => (-9i64..9).prop_map(Step::Random),
        2 => (1usize..9).prop_map(Step::Sweep),
        1 => Just(Step::Copy),
        1 => Just(Step::Rename),
    ]
}

/// A shard with a clock, and a model of the hash `h`.
struct World {
    shard: Shard,
    model: Model,
    now_ms: i64,
}

fn integers(values: impl IntoIterator<Item = i64>) -> String {
    let values: Vec<i64> = values.into_iter().collect();
    values.iter().fold(format!("*{}\r\n", values.len()), |reply, value| reply + &format!(":{value}\r\n"))
}

fn bulk(value: Option<&str>) -> String {
    value.map_or("$-1\r\n".into(), |value| format!("${}\r\n{value}\r\n", value.len()))
}

fn bulks<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let values: Vec<String> = values.into_iter().map(bulk).collect();
    format!("*{}\r\n{}", values.len(), values.concat())
}

/// The strings of a flat reply.
fn strings(reply: &str) -> Vec<String> {
    let mut lines = reply.split("\r\n");
    let mut strings = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with('$') {
            strings.extend(lines.next().map(str::to_owned));
        }
    }
    strings
}

impl World {
    fn send(&mut self, words: &[&str]) -> String {
        self.send_counted(words).0
    }

    /// The reply, and whether the call changed something.
    fn send_counted(&mut self, words: &[&str]) -> (String, bool) {
        let (reply, changes) = call(&mut self.shard, self.now_ms, Protocol::Resp2, words);
        (String::from_utf8(reply).expect("text"), changes > 0)
    }

    fn live_value(&self, name: &str) -> Option<&str> {
        let field = self.model.fields.get(name).filter(|_| self.model.is_live(name, self.now_ms));
        field.map(|field| &field.value[..])
    }

    fn live_integer(&self, name: &str) -> Result<i64, ()> {
        self.live_value(name).map_or(Ok(0), |value| value.parse().map_err(|_| ()))
    }

    fn apply(&mut self, step: &Step) {
        let now_ms = self.now_ms;
        match step {
            Step::Pass(ms) => self.now_ms += ms,
            Step::Set(pairs) => {
                let mut words = vec!["HSET", "h"];
                words.extend(pairs.iter().flat_map(|(name, value)| [&name[..], value]));
                let mut added = 0;
                for (name, value) in pairs {
                    added += usize::from(!self.model.is_live(name, now_ms));
                    self.model.set(name, value, None);
                }
                assert_eq!(self.send(&words), format!(":{added}\r\n"));
            }
            Step::SetIfMissing(name, value) => {
                let added = !self.model.is_live(name, now_ms);
                if added {
                    self.model.set(name, value, None);
                }
                assert_eq!(self.send(&["HSETNX", "h", name, value]), format!(":{}\r\n", u8::from(added)));
            }
            Step::Delete(names) => {
                let before = self.model.fields.len();
                self.model.fields.retain(|name, _| !names.contains(name));
                let removed = before - self.model.fields.len();
                assert_eq!(self.send(&with_names(&["HDEL", "h"], names)), format!(":{removed}\r\n"));
            }
            Step::Increase(name, by) => {
                let reply = match self.live_integer(name) {
                    Err(()) => "-ERR hash value is not an integer\r\n".into(),
                    Ok(value) => {
                        self.model.name(std::slice::from_ref(name), now_ms);
                        let deadline_ms = self.model.fields.get(name).and_then(|field| field.deadline_ms);
                        self.model.set(name, &(value + by).to_string(), deadline_ms);
                        format!(":{}\r\n", value + by)
                    }
                };
                assert_eq!(self.send(&["HINCRBY", "h", name, &by.to_string()]), reply);
            }
            Step::Transfer(from, to) => self.transfer(from, to),
            Step::Expire(time, condition, names) => self.expire(time, condition, names),
            Step::Persist(names) => {
                self.model.name(names, now_ms);
                let mut answers = Vec::new();
                for name in names {
                    let field = self.model.fields.get_mut(name);
                    answers.push(match field {
                        None => -2,
                        Some(field) => field.deadline_ms.take().map_or(-1, |_| 1),
                    });
                }
                let (reply, changed) = self.send_counted(&with_fields(&["HPERSIST", "h"], names));
                assert_eq!((reply, changed), (integers(answers.clone()), answers.contains(&1)));
            }
            Step::GetAndDelete(names) => {
                let mut values = Vec::new();
                for name in names {
                    values.push(self.live_value(name).map(str::to_owned));
                    self.model.fields.remove(name);
                }
                let (reply, changed) = self.send_counted(&with_fields(&["HGETDEL", "h"], names));
                assert_eq!(reply, bulks(values.iter().map(Option::as_deref)));
                assert_eq!(changed, values.iter().any(Option::is_some));
            }
            Step::GetAndExpire(time, persist, names) => self.get_and_expire(time.as_ref(), *persist, names),
            Step::SetAndExpire(condition, time, keep, pairs) => {
                self.set_and_expire(condition, time.as_ref(), *keep, pairs);
            }
            Step::Read(names) => {
                let values: Vec<_> = names.iter().map(|name| self.live_value(name).map(str::to_owned)).collect();
                self.model.name(names, now_ms);
                let (reply, changed) = self.send_counted(&with_names(&["HMGET", "h"], names));
                assert_eq!((reply, changed), (bulks(values.iter().map(Option::as_deref)), false));
                for (name, value) in names.iter().zip(&values) {
                    assert_eq!(self.send(&["HGET", "h", name]), bulk(value.as_deref()));
                    assert_eq!(self.send(&["HEXISTS", "h", name]), format!(":{}\r\n", u8::from(value.is_some())));
                    let len = value.as_ref().map_or(0, String::len);
                    assert_eq!(self.send(&["HSTRLEN", "h", name]), format!(":{len}\r\n"));
                }
            }
            Step::Random(count) => {
                self.model.remove_expired(now_ms);
                let live = self.model.live(now_ms);
                let chosen = strings(&self.send(&["HRANDFIELD", "h", &count.to_string()]));
                assert!(chosen.iter().all(|name| live.contains_key(name)));
                let wanted = if *count < 0 { count.unsigned_abs() as usize } else { live.len().min(*count as usize) };
                assert_eq!(chosen.len(), if live.is_empty() { 0 } else { wanted });
            }
            Step::Sweep(budget) => {
                while !self.shard.sweep_expired(now_ms, *budget).wrapped {}
                self.model.remove_expired(now_ms);
            }
            Step::Copy => {
                self.send(&["COPY", "h", "other", "REPLACE"]);
                self.send(&["RENAME", "other", "h"]);
            }
            Step::Rename => {
                self.send(&["RENAME", "h", "other"]);
                self.send(&["MOVE", "other", "1"]);
                databases::call(&mut self.shard, 1, now_ms, &[b"RENAME", b"other", b"h"]);
                databases::call(&mut self.shard, 1, now_ms, &[b"MOVE", b"h", b"0"]);
            }
        }
    }

    fn transfer(&mut self, from: &str, to: &str) {
        let now_ms = self.now_ms;
        let nil = "*-1\r\n".to_owned();
        let expected = if from == to {
            "-ERR source and destination fields are the same\r\n".into()
        } else if self.model.fields.is_empty() {
            nil
        } else {
            let there = self.model.is_live(from, now_ms);
            self.model.name(&[from.to_owned(), to.to_owned()], now_ms);
            match (there, self.live_integer(from), self.live_integer(to)) {
                (false, _, _) => nil,
                (_, Ok(held), Ok(received)) if held >= 1 => {
                    for (name, value) in [(from, held - 1), (to, received + 1)] {
                        let deadline_ms = self.model.fields.get(name).and_then(|field| field.deadline_ms);
                        self.model.set(name, &value.to_string(), deadline_ms);
                    }
                    integers([held - 1, received + 1])
                }
                (_, Ok(_), Ok(_)) => nil,
                _ => "-ERR hash value is not an integer\r\n".into(),
            }
        };
        assert_eq!(self.send(&["HTRANSFER", "h", from, to, "1"]), expected);
    }

    fn expire(&mut self, time: &Time, condition: &str, names: &[String]) {
        let now_ms = self.now_ms;
        let deadline_ms = time.deadline_ms(now_ms);
        self.model.name(names, now_ms);
        let mut answers = Vec::new();
        for name in names {
            let Some(field) = self.model.fields.get_mut(name) else {
                answers.push(-2);
                continue;
            };
            let allowed = match (condition, field.deadline_ms) {
                ("NX", current_ms) => current_ms.is_none(),
                ("XX", current_ms) => current_ms.is_some(),
                ("GT", current_ms) => current_ms.is_some_and(|current_ms| current_ms < deadline_ms),
                ("lt", current_ms) => current_ms.is_none_or(|current_ms| current_ms > deadline_ms),
                _ => true,
            };
            answers.push(match (allowed, deadline_ms > now_ms) {
                (false, _) => 0,
                (true, true) => {
                    field.deadline_ms = Some(deadline_ms);
                    1
                }
                (true, false) => {
                    self.model.fields.remove(name);
                    2
                }
            });
        }
        let (command, number) = match time {
            Time::In(ms) => ("HPEXPIRE", *ms),
            Time::At(_) => ("HPEXPIREAT", deadline_ms),
        };
        let number = number.to_string();
        let mut words = vec![command, "h", &number];
        words.extend(Some(condition).filter(|condition| !condition.is_empty()));
        let (reply, changed) = self.send_counted(&with_fields(&words, names));
        assert_eq!(changed, answers.iter().any(|answer| *answer > 0));
        assert_eq!(reply, integers(answers));
    }

    fn get_and_expire(&mut self, time: Option<&Time>, persist: bool, names: &[String]) {
        let now_ms = self.now_ms;
        let deadline_ms = time.map(|time| time.deadline_ms(now_ms));
        let (mut values, mut changes) = (Vec::new(), false);
        self.model.name(names, now_ms);
        for name in names {
            values.push(self.live_value(name).map(str::to_owned));
            let Some(field) = self.model.fields.get_mut(name) else { continue };
            match deadline_ms {
                Some(deadline_ms) if deadline_ms <= now_ms => {
                    changes = true;
                    self.model.fields.remove(name);
                }
                Some(deadline_ms) => {
                    changes = true;
                    field.deadline_ms = Some(deadline_ms);
                }
                None if persist => changes |= field.deadline_ms.take().is_some(),
                None => {}
            }
        }
        let number = deadline_ms.unwrap_or_default().to_string();
        let mut words = vec!["HGETEX", "h"];
        match (time, persist) {
            (Some(_), _) => words.extend(["PXAT", &number]),
            (None, true) => words.push("PERSIST"),
            (None, false) => {}
        }
        let (reply, changed) = self.send_counted(&with_fields(&words, names));
        assert_eq!((reply, changed), (bulks(values.iter().map(Option::as_deref)), changes));
    }

    fn set_and_expire(&mut self, condition: &str, time: Option<&Time>, keep: bool, pairs: &[(String, String)]) {
        let now_ms = self.now_ms;
        let deadline_ms = time.map(|time| time.deadline_ms(now_ms));
        let names: Vec<String> = pairs.iter().map(|(name, _)| name.clone()).collect();
        let live = names.iter().filter(|name| self.model.is_live(name, now_ms)).count();
        let holds = match condition {
            "FNX" => live == 0,
            "FXX" => live == names.len(),
            _ => true,
        };
        if holds || !condition.is_empty() {
            self.model.name(&names, now_ms);
        }
        for (name, value) in pairs.iter().filter(|_| holds) {
            match deadline_ms {
                Some(deadline_ms) if deadline_ms <= now_ms => {
                    self.model.fields.remove(name);
                }
                Some(deadline_ms) => self.model.set(name, value, Some(deadline_ms)),
                None => {
                    let kept_ms = self.model.fields.get(name).and_then(|field| field.deadline_ms);
                    self.model.set(name, value, kept_ms.filter(|_| keep));
                }
            }
        }
        let (count, number) = (pairs.len().to_string(), deadline_ms.unwrap_or_default().to_string());
        let mut words = vec!["HSETEX", "h"];
        words.extend(Some(condition).filter(|condition| !condition.is_empty()));
        match (time, keep) {
            (Some(_), _) => words.extend(["PXAT", &number]),
            (None, true) => words.push("KEEPTTL"),
            (None, false) => {}
        }
        words.extend(["FIELDS", &count]);
        words.extend(pairs.iter().flat_map(|(name, value)| [&name[..], value]));
        let (reply, changed) = self.send_counted(&words);
        assert_eq!((reply, changed), (format!(":{}\r\n", u8::from(holds)), holds));
    }

    /// Compares everything that can be seen of the hash with the model.
    fn check(&mut self) {
        let now_ms = self.now_ms;
        assert_eq!(self.send(&["HLEN", "h"]), format!(":{}\r\n", self.model.fields.len()));
        assert_eq!(self.send(&["EXISTS", "h"]), format!(":{}\r\n", u8::from(!self.model.fields.is_empty())));
        let live = self.model.live(now_ms);
        let all = self.send(&["HGETALL", "h"]);
        assert!(all.starts_with(&format!("*{}\r\n", live.len() * 2)));
        let as_pairs = |reply: &str| -> Vec<(String, String)> {
            strings(reply).chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
        };
        assert_eq!(as_pairs(&all).into_iter().collect::<BTreeMap<_, _>>(), live);
        let keys: BTreeSet<String> = strings(&self.send(&["HKEYS", "h"])).into_iter().collect();
        assert!(keys.iter().eq(live.keys()));
        assert_eq!(strings(&self.send(&["HVALS", "h"])).len(), live.len());
        let scanned = self.send(&["HSCAN", "h", "0", "COUNT", "1000"]);
        let mut scanned = strings(&scanned);
        assert_eq!(scanned.remove(0), "0");
        assert_eq!(scanned.len(), live.len() * 2);
        let names: Vec<String> = self.model.fields.keys().cloned().chain(["missing".to_owned()]).collect();
        let deadline = |name: &String, of: &dyn Fn(i64) -> i64| match self.model.fields.get(name) {
            Some(field) if self.model.is_live(name, now_ms) => field.deadline_ms.map_or(-1, of),
            _ => -2,
        };
        let replies = [
            ("HPEXPIRETIME", integers(names.iter().map(|name| deadline(name, &|ms| ms)))),
            ("HEXPIRETIME", integers(names.iter().map(|name| deadline(name, &|ms| (ms + 999) / 1000)))),
            ("HPTTL", integers(names.iter().map(|name| deadline(name, &|ms| ms - now_ms)))),
            ("HTTL", integers(names.iter().map(|name| deadline(name, &|ms| (ms - now_ms + 999) / 1000)))),
        ];
        for (command, reply) in replies {
            assert_eq!(self.send(&with_fields(&[command, "h"], &names)), reply, "{command}");
        }
        let earliest_ms = self.model.fields.values().filter_map(|field| field.deadline_ms).min();
        self.shard.keys.begin(0, now_ms, None);
        assert_eq!(self.shard.keys.peek(b"h").and_then(next_deadline_ms), earliest_ms);
        let listed = self.shard.keys.databases()[0].with_field_deadlines();
        assert_eq!(listed, usize::from(earliest_ms.is_some()));
    }
}

fn with_names<'a>(words: &[&'a str], names: &'a [String]) -> Vec<&'a str> {
    words.iter().copied().chain(names.iter().map(|name| &name[..])).collect()
}

fn with_fields<'a>(words: &[&'a str], names: &'a [String]) -> Vec<&'a str> {
    const COUNTS: [&str; 20] =
        ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19"];
    let mut words = words.to_vec();
    words.extend(["FIELDS", COUNTS[names.len()]]);
    with_names(&words, names)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn both_forms_are_as_the_model(
        entries in prop_oneof![Just(0usize), Just(6), Just(128)],
        value_max in prop_oneof![Just(24usize), Just(600)],
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let settings = Settings {
            hash_max_listpack_entries: entries,
            hash_max_listpack_value: value_max,
            ..Settings::default()
        };
        let mut world = World { shard: shard(settings, 1), model: Model::default(), now_ms: START_MS };
        for step in steps {
            world.apply(&step);
            world.check();
        }
    }
}

fn encoding(shard: &mut Shard, now_ms: i64) -> String {
    let (reply, _) = databases::call(shard, 0, now_ms, &[b"OBJECT", b"ENCODING", b"h"]);
    strings(&String::from_utf8(reply).expect("text")).concat()
}

#[test]
fn the_form_follows_the_deadlines_and_the_limits() {
    let shard = &mut shard(Settings { hash_max_listpack_entries: 4, ..Settings::default() }, 1);
    run(shard, 1, "HSET h a 1 b 2");
    assert_eq!(encoding(shard, 1), "listpack");
    run(shard, 1, "HPEXPIRE h 100 FIELDS 1 missing");
    assert_eq!(encoding(shard, 1), "listpack");
    run(shard, 1, "HPEXPIRE h 100 FIELDS 1 a");
    assert_eq!(encoding(shard, 1), "listpackex");
    run(shard, 1, "HPERSIST h FIELDS 1 a");
    assert_eq!(encoding(shard, 1), "listpackex");
    run(shard, 1, "HSETEX h PX 50 FIELDS 2 c 3 d 4");
    assert_eq!(encoding(shard, 1), "listpackex");
    run(shard, 1, "HSET h e 5");
    assert_eq!(encoding(shard, 1), "hashtable");
    assert_eq!(run(shard, 1, "HPEXPIRETIME h FIELDS 3 a c d"), b"*3\r\n:-1\r\n:51\r\n:51\r\n");
    run(shard, 1, &format!("HSETEX long EX 1 FIELDS 1 f {}", "v".repeat(65)));
    assert_eq!(run(shard, 1, "HPTTL long FIELDS 1 f"), b"*1\r\n:1000\r\n");
}

#[test]
fn a_hash_without_deadlines_takes_no_more_memory_than_before() {
    let shard = &mut shard(Settings::default(), 1);
    run(shard, 1, "HSET h name ada plan pro");
    let entry = shard.keys.peek(b"h").expect("made just now");
    assert_eq!((entry.encoding(), entry.payload().len()), (Encoding::PackedHash, 6 + 5 + 6 + 5));
    let setter = |shard: &mut Shard, key: &str| {
        for number in 0..2_000 {
            run(shard, 1, &format!("HSET {key} field:{number} value:{number}"));
        }
    };
    setter(shard, "plain");
    setter(shard, "timed");
    for number in 0..2_000 {
        run(shard, 1, &format!("HPEXPIRE timed 100 FIELDS 1 field:{number}"));
        run(shard, 1, &format!("HPERSIST timed FIELDS 1 field:{number}"));
    }
    let plain = run(shard, 1, "HLEN plain");
    assert_eq!(run(shard, 1, "HLEN timed"), plain);
    let bytes = |shard: &mut Shard, key: &[u8]| shard.keys.peek(key).expect("made before").memory_bytes();
    assert_eq!(bytes(shard, b"timed"), bytes(shard, b"plain"), "what deadlines took is given back");
}

/// What the sweep does is bounded by its budget, and it comes to the end.
#[test]
fn the_sweep_removes_fields_piece_by_piece() {
    for entries in [0, 1_000] {
        let shard = &mut shard(Settings { hash_max_listpack_entries: entries, ..Settings::default() }, 1);
        for key in 0..20 {
            for number in 0..50 {
                run(shard, 1, &format!("HSETEX h{key} PX {} FIELDS 1 f{number} v", 100 + number));
            }
            run(shard, 1, &format!("HSET h{key} stays v"));
        }
        assert_eq!(shard.keys.databases()[0].with_field_deadlines(), 20);
        assert_eq!(shard.sweep_expired(99, 1_000).expired, 0);
        let mut removed = 0;
        loop {
            let swept = shard.sweep_expired(125, 16);
            assert!(swept.expired <= 16);
            removed += swept.expired;
            if swept.wrapped {
                break;
            }
        }
        assert_eq!(removed, 20 * 25);
        assert_eq!(run(shard, 125, "HLEN h7"), b":26\r\n");
        while !shard.sweep_expired(10_000, 16).wrapped {}
        assert_eq!(run(shard, 10_000, "HLEN h7"), b":1\r\n");
        assert_eq!(shard.keys.databases()[0].with_field_deadlines(), 0);
        assert_eq!(shard.keys.stats.expired_fields, 20 * 50);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A sweep that stops half-way leaves the same fields in either form.
    #[test]
    fn both_forms_expire_in_one_order(
        calls in prop::collection::vec((0usize..3, 0..FIELDS, 1i64..40), 1..60),
        sweeps in prop::collection::vec((0i64..50, 1usize..12), 1..8),
    ) {
        let mut shards = [0, 128].map(|entries| {
            shard(Settings { hash_max_listpack_entries: entries, ..Settings::default() }, 1)
        });
        let mut seen = shards.each_mut().map(|shard| {
            for (key, field, ms) in &calls {
                run(shard, 0, &format!("HSETEX h{key} PX {ms} FIELDS 1 f{field} v"));
            }
            let mut seen = Vec::new();
            for (now_ms, budget) in &sweeps {
                shard.sweep_expired(*now_ms, *budget);
                for key in 0..3 {
                    shard.keys.begin(0, *now_ms, None);
                    let key = format!("h{key}");
                    let Some(entry) = shard.keys.peek(key.as_bytes()) else { continue };
                    let mut fields = BTreeSet::new();
                    Hash::of(entry, *now_ms).for_each_stored(|field, _, deadline_ms| {
                        let mut name = Vec::new();
                        field.write_to(&mut name);
                        fields.insert((name, deadline_ms));
                    });
                    seen.push((key, fields));
                }
            }
            seen
        });
        let [large, packed] = seen.each_mut().map(std::mem::take);
        prop_assert_eq!(large, packed);
    }
}

#[test]
fn the_key_goes_with_the_last_field() {
    for entries in [0, 128] {
        let settings = Settings { hash_max_listpack_entries: entries, ..Settings::default() };
        let shard = &mut shard(settings, 1);
        for (end, reply) in [
            ("HGET h f", "$-1\r\n"),
            ("HMGET h g f", "*2\r\n$-1\r\n$-1\r\n"),
            ("HEXISTS h f", ":0\r\n"),
            ("HSTRLEN h f", ":0\r\n"),
            ("HRANDFIELD h", "$-1\r\n"),
            ("HRANDFIELD h 3 WITHVALUES", "*0\r\n"),
            ("HEXPIRE h 5 FIELDS 1 f", "*1\r\n:-2\r\n"),
            ("HPERSIST h FIELDS 1 f", "*1\r\n:-2\r\n"),
            ("HGETDEL h FIELDS 1 f", "*1\r\n$-1\r\n"),
            ("HGETEX h EX 5 FIELDS 1 f", "*1\r\n$-1\r\n"),
            ("HSETEX h FXX FIELDS 1 f v", ":0\r\n"),
            ("HTRANSFER h f g 1", "*-1\r\n"),
            ("HDEL h f", ":1\r\n"),
        ] {
            run(shard, 1, "HSETEX h PX 9 FIELDS 1 f 1");
            assert_eq!(run(shard, 10, "EXISTS h"), b":1\r\n");
            assert_eq!(run(shard, 10, "HLEN h"), b":1\r\n");
            assert_eq!(run(shard, 10, "HGETALL h"), b"*0\r\n");
            assert_eq!(run(shard, 10, "HTTL h FIELDS 1 f"), b"*1\r\n:-2\r\n");
            assert_eq!(String::from_utf8_lossy(&run(shard, 10, end)), reply, "{end}");
            assert_eq!(run(shard, 10, "EXISTS h"), b":0\r\n", "{end}");
            assert_eq!(shard.keys.databases()[0].with_field_deadlines(), 0);
        }
        for past in ["HPEXPIREAT h 1 FIELDS 1 f", "HGETEX h PX 0 FIELDS 1 f", "HSETEX h EXAT 0 FIELDS 1 f v"] {
            run(shard, 1, "HSETEX h PX 9 FIELDS 1 f 1");
            run(shard, 2, past);
            assert_eq!(run(shard, 2, "EXISTS h"), b":0\r\n", "{past}");
        }
        assert_eq!(run(shard, 2, "HSETEX h EXAT 0 FIELDS 1 f v"), b":1\r\n");
        assert_eq!(run(shard, 2, "EXISTS h"), b":0\r\n");
    }
}

#[test]
fn the_deadline_of_a_key_and_those_of_its_fields_stand_side_by_side() {
    let shard = &mut shard(Settings::default(), 1);
    run(shard, 1, "HSETEX h PX 100 FIELDS 1 f v");
    run(shard, 1, "HSET h g v");
    run(shard, 1, "PEXPIRE h 1000");
    assert_eq!(run(shard, 150, "HGET h f"), b"$-1\r\n");
    assert_eq!(run(shard, 150, "PTTL h"), b":851\r\n");
    run(shard, 150, "HPEXPIRE h 5000 FIELDS 1 g");
    let database = |shard: &Shard| {
        let database = &shard.keys.databases()[0];
        (database.with_deadline(), database.with_field_deadlines())
    };
    assert_eq!(database(shard), (1, 1));
    assert_eq!(run(shard, 1_001, "HGET h g"), b"$-1\r\n");
    assert_eq!(database(shard), (0, 0));
    run(shard, 2_000, "HSETEX h PX 10 FIELDS 1 f v");
    run(shard, 2_000, "PEXPIRE h 5");
    while !shard.sweep_expired(3_000, 100).wrapped {}
    assert_eq!((shard.keys.len(0), database(shard)), (0, (0, 0)));
}

#[test]
fn what_expires_is_no_change_of_the_command_that_notices() {
    let shard = &mut shard(Settings::default(), 1);
    run(shard, 1, "HSETEX h PX 9 FIELDS 2 f 1 g 1");
    for line in ["HGET h f", "HLEN h", "HMGET h f g", "HTTL h FIELDS 1 f"] {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(call(shard, 10, Protocol::Resp2, &words).1, 0, "{line}");
    }
    assert_eq!(shard.keys.stats.expired_fields, 2);
}

#[test]
fn flushing_and_exchanging_databases_take_the_deadlines_along() {
    let shard = &mut shard(Settings::default(), 1);
    for number in 0..300 {
        run(shard, 1, &format!("HSETEX h{number} PX 10 FIELDS 1 f v"));
    }
    shard.keys.swap_databases(0, 1);
    let listed = |shard: &Shard| [0, 1].map(|number| shard.keys.databases()[number].with_field_deadlines());
    assert_eq!(listed(shard), [0, 300]);
    assert_eq!(shard.keys.flush(1), 300);
    assert_eq!(listed(shard), [0, 0]);
    while !shard.keys.reclaim(7) {}
    assert!(shard.sweep_expired(1_000, 100).wrapped);
}

#[test]
fn large_hashes_with_deadlines_are_freed_piecemeal() {
    let shard = &mut shard(Settings::default(), 1);
    for number in 0..5_000 {
        run(shard, 1, &format!("HSETEX h PX {} FIELDS 1 field:{number} {number}", 10 + number % 7));
    }
    assert_eq!(run(shard, 1, "DEL h"), b":1\r\n");
    assert!(shard.keys.has_remains());
    assert!(!shard.keys.reclaim(100));
    while !shard.keys.reclaim(1_000) {}
    run(shard, 1, "HSETEX h PX 1 FIELDS 1 f v");
    while !shard.sweep_expired(5, 100).wrapped {}
    assert_eq!(shard.keys.len(0), 0);
}

#[test]
fn a_hash_is_made_again_from_what_is_stored() {
    for entries in [0, 128] {
        let settings = Settings { hash_max_listpack_entries: entries, ..Settings::default() };
        let limits = Limits::of(&settings);
        let shard = &mut shard(settings, 1);
        run(shard, 1, "HSET h a 1 b two c 3");
        run(shard, 1, "HPEXPIRE h 5 FIELDS 1 a");
        run(shard, 1, "HPEXPIREAT h 281474976710 FIELDS 1 b");
        shard.keys.begin(0, 100, None);
        let mut stored = Vec::new();
        Hash::of(shard.keys.peek(b"h").expect("made before"), 100).for_each_stored(|field, value, deadline_ms| {
            let (mut name, mut text) = (Vec::new(), Vec::new());
            field.write_to(&mut name);
            value.write_to(&mut text);
            stored.push((name, text, deadline_ms));
        });
        assert_eq!(stored.len(), 3);
        let mut copy = Entry::new(Header { key: b"copy", ..Header::default() }, Encoding::PackedHash, &[]);
        for (field, value, deadline_ms) in stored {
            let lifetime = deadline_ms.map_or(Lifetime::Unlimited, Lifetime::Until);
            Place::find(&copy, &field).put(&mut copy, &field, &value, limits, lifetime);
        }
        shard.keys.add(copy);
        assert_eq!(shard.keys.databases()[0].with_field_deadlines(), 2);
        assert_eq!(run(shard, 2, "HPEXPIRETIME copy FIELDS 3 a b c"), b"*3\r\n:6\r\n:281474976710\r\n:-1\r\n");
        assert_eq!(run(shard, 2, "HMGET copy a b c"), b"*3\r\n$1\r\n1\r\n$3\r\ntwo\r\n$1\r\n3\r\n");
    }
}

#[test]
fn a_scan_passes_over_expired_fields() {
    let shard = &mut shard(Settings::default(), 1);
    for number in 0..1_000 {
        run(shard, 1, &format!("HSETEX h PX {} FIELDS 1 field:{number} v", if number == 500 { 1_000 } else { 1 }));
    }
    let (mut cursor, mut found, mut empty) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let reply = run(shard, 10, &format!("HSCAN h {cursor}"));
        let mut page = strings(std::str::from_utf8(&reply).expect("text"));
        cursor = page.remove(0);
        empty += usize::from(page.is_empty());
        found.extend(page);
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(found, ["field:500", "v"]);
    assert!(empty > 10);
    assert_eq!(run(shard, 10, "HLEN h"), b":1000\r\n");
    assert_eq!(run(shard, 10, "HRANDFIELD h 5"), b"*1\r\n$9\r\nfield:500\r\n");
    assert_eq!(run(shard, 10, "HLEN h"), b":1\r\n");
}

#[test]
fn wrong_calls_are_errors_and_change_nothing() {
    let shard = &mut shard(Settings::default(), 1);
    run(shard, 1, "SET s x");
    run(shard, 1, "HSET h f v");
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    let integer = "ERR value is not an integer or out of range";
    let negative = "ERR invalid expire time, must be >= 0";
    let no_fields = "ERR Mandatory argument FIELDS is missing or not at the right position";
    let mismatch = "ERR The `numfields` parameter must match the number of arguments";
    let not_positive = "ERR Number of fields must be a positive integer";
    let count = "ERR Parameter `numFields` should be greater than 0";
    let one_condition = "ERR Only one of FXX or FNX arguments can be specified";
    let one_time = "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
    let arity = "ERR wrong number of arguments for 'hsetex' command";
    for (line, error) in [
        ("HEXPIRE s x FIELDS 1 f", wrong_type),
        ("HPEXPIREAT s 1 NX FIELDS 3 f", wrong_type),
        ("HTTL s FIELDS 0 f", wrong_type),
        ("HEXPIRETIME s FIELDS 1 f", wrong_type),
        ("HPERSIST s FIELDS 1 f", wrong_type),
        ("HGETDEL s FIELDS 1 f", wrong_type),
        ("HGETEX s EX x FIELDS 1 f", wrong_type),
        ("HSETEX s FIELDS 1 f v", wrong_type),
        ("HEXPIRE h x FIELDS 1 f", integer),
        ("HEXPIRE h -1 FIELDS 1 f", negative),
        ("HPEXPIRE h -9223372036854775808 FIELDS 1 f", negative),
        ("HEXPIRE h 281474976710 FIELDS 1 f", "ERR invalid expire time in 'hexpire' command"),
        ("HEXPIREAT h 9223372036854775807 FIELDS 1 f", "ERR invalid expire time in 'hexpireat' command"),
        ("HPEXPIRE h 70368744177663 FIELDS 1 f", "ERR invalid expire time in 'hpexpire' command"),
        ("HPEXPIREAT h 70368744177664 FIELDS 1 f", "ERR invalid expire time in 'hpexpireat' command"),
        ("HEXPIRE h 1 FIELD 1 f", no_fields),
        ("HEXPIRE h 1 NX XX FIELDS 1 f", no_fields),
        ("HEXPIRE h 1 FIELDS 0 f", count),
        ("HEXPIRE h 1 FIELDS x f", count),
        ("HEXPIRE h 1 FIELDS 2 f", mismatch),
        ("HEXPIRE h 1 NX FIELDS 1", mismatch),
        ("HTTL h FIELDS 1 f g", mismatch),
        ("HTTL h FIELDS 0 f", not_positive),
        ("HPTTL h f 1 f", no_fields),
        ("HPERSIST h FIELDS 2 f", mismatch),
        ("HPERSIST h FIELDS -1 f", not_positive),
        ("HGETDEL h FIELDS 9223372036854775808 f", not_positive),
        ("HGETDEL h XFIELDSX 1 f", no_fields),
        ("HGETEX h XFIELDX 1 f", no_fields),
        ("HGETEX h PXAT 1 1", no_fields),
        ("HGETEX h PERSIST 1 FIELDS 1 f", no_fields),
        ("HGETEX h FIELDS 2 f", mismatch),
        ("HGETEX h EX 10 FIELDS", not_positive),
        ("HGETEX h EX bla FIELDS 1 f", integer),
        ("HGETEX h PX -1 FIELDS 1 f", negative),
        ("HGETEX h EXAT 70368744177764 FIELDS 1 f", "ERR invalid expire time in 'hgetex' command"),
        ("HSETEX h FIELDS 2 a b c", arity),
        ("HSETEX h FIELDS 1 a b c", arity),
        ("HSETEX h FXX EX 9 FIELDS", arity),
        ("HSETEX h FIELDS 0 a b", "ERR invalid number of fields"),
        ("HSETEX h FIELDS x a b", "ERR invalid number of fields"),
        ("HSETEX h FIELDS 4294967297 a b", "ERR invalid number of fields"),
        ("HSETEX h NX FIELDS 1 a b", "ERR unknown argument: NX"),
        ("HSETEX h FNX FXX FIELDS 1 a b", one_condition),
        ("HSETEX h FXX FXX FIELDS 1 a b", one_condition),
        ("HSETEX h EX 1 PX 1 FIELDS 1 a b", one_time),
        ("HSETEX h KEEPTTL KEEPTTL FIELDS 1 a b", one_time),
        ("HSETEX h PXAT 1 KEEPTTL FIELDS 1 a b", one_time),
        ("HSETEX h EX FIELDS 1 a b", integer),
        ("HSETEX h FXX KEEPTTL FNX EX", one_condition),
        ("HSETEX h PX 70368744177664 FIELDS 1 a b", "ERR invalid expire time in 'hsetex' command"),
        ("HSETEX h FNX a b EX", "ERR unknown argument: a"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let (reply, changes) = call(shard, 1, Protocol::Resp2, &words);
        assert_eq!((String::from_utf8_lossy(&reply), changes), (format!("-{error}\r\n").into(), 0), "{line}");
    }
    assert_eq!(run(shard, 1, "HGETALL h"), b"*2\r\n$1\r\nf\r\n$1\r\nv\r\n");
    assert_eq!(run(shard, 1, "HPEXPIRE h 70368744177662 FIELDS 1 f"), b"*1\r\n:1\r\n");
}
