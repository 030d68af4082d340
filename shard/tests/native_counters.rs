//! The native string commands against a plain model, with the clock moved between calls.

use std::collections::BTreeMap;

use crate::support;
use proptest::prelude::*;
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

const KEYS: [&str; 3] = ["{t}a", "{t}b", "{t}c"];
const MISMATCH: &str = "-ERR version mismatch\r\n";
const NOT_AN_INTEGER: &str = "-ERR value is not an integer or out of range\r\n";
const OVERFLOW: &str = "-ERR increment or decrement would overflow\r\n";
const VERSIONED: &str = "-ERR the value has a version, change it with SETV\r\n";
/// The model does not say.
const SKIP: &str = "skip";
const NIL: &str = "$-1\r\n";
const NIL_ARRAY: &str = "*-1\r\n";

#[derive(Clone, Debug, PartialEq)]
struct Value {
    text: String,
    deadline_ms: Option<i64>,
    version: Option<i64>,
}

#[derive(Clone, Debug)]
enum Step {
    Advance(i64),
    Set(usize, String, Option<i64>),
    Incrby { key: usize, delta: i64, cap: Option<i64>, px: Option<i64> },
    Incr { key: usize, up: bool, ex: Option<i64> },
    Take(usize, i64),
    Transfer { source: usize, destination: usize, amount: i64, cap: Option<i64> },
    SetIf { key: usize, value: i64, greater: bool, get: bool, px: Option<i64>, keep: bool },
    SetIfEqual(usize, String, String),
    DelIfEqual(usize, String),
    Setv(usize, String, Option<i64>),
    Append(usize, String),
    Incrbyfloat(usize, i64, Option<i64>),
}

fn text(number: i64) -> String {
    number.to_string()
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// The plain model: what each key holds, and what a call does to it in the obvious way.
#[derive(Clone, Debug, Default)]
struct Model {
    now_ms: i64,
    keys: BTreeMap<usize, Value>,
}

impl Model {
    fn expire(&mut self) {
        let now_ms = self.now_ms;
        self.keys.retain(|_, value| value.deadline_ms.is_none_or(|deadline_ms| deadline_ms > now_ms));
    }

    /// The integer of a key to be changed in place; 0 where it is missing.
    fn integer(&self, key: usize) -> Result<i128, &'static str> {
        let Some(value) = self.keys.get(&key) else { return Ok(0) };
        if value.version.is_some() {
            return Err(VERSIONED);
        }
        value.text.parse::<i64>().ok().filter(|n| text(*n) == value.text).map(i128::from).ok_or(NOT_AN_INTEGER)
    }

    fn write(&mut self, key: usize, text: String, deadline_ms: Option<i64>, version: Option<i64>) {
        self.keys.insert(key, Value { text, deadline_ms, version });
    }

    /// Changes the text of a key; a new one gets `deadline_ms`.
    fn edit(&mut self, key: usize, text: String, deadline_ms: Option<i64>) {
        let deadline_ms = self.keys.get(&key).map_or(deadline_ms, |value| value.deadline_ms);
        self.write(key, text, deadline_ms, None);
    }

    fn add(&mut self, key: usize, delta: i64, cap: Option<i64>, deadline_ms: Option<i64>) -> String {
        let value = match self.integer(key) {
            Ok(value) => value + i128::from(delta),
            Err(error) => return error.into(),
        };
        match (i64::try_from(value), cap) {
            (Err(_), None) => OVERFLOW.into(),
            (Err(_), Some(_)) => NIL.into(),
            (Ok(value), Some(cap)) if value > cap => NIL.into(),
            (Ok(value), _) => {
                self.edit(key, text(value), deadline_ms);
                format!(":{value}\r\n")
            }
        }
    }

    fn run(&mut self, step: &Step) -> String {
        self.expire();
        let now_ms = self.now_ms;
        match step {
            Step::Advance(_) => unreachable!("moves the clock only"),
            Step::Set(key, value, px) => {
                self.write(*key, value.clone(), px.map(|px| now_ms + px), None);
                "+OK\r\n".into()
            }
            Step::Incrby { key, delta, cap, px } => self.add(*key, *delta, *cap, px.map(|px| now_ms + px)),
            Step::Incr { key, up, ex } => {
                self.add(*key, if *up { 1 } else { -1 }, None, ex.map(|ex| now_ms + ex * 1000))
            }
            Step::Take(key, amount) => match self.integer(*key) {
                Err(error) => error.into(),
                Ok(held) if held < i128::from(*amount) => NIL.into(),
                Ok(held) => {
                    self.edit(*key, text(held as i64 - amount), None);
                    format!(":{}\r\n", held as i64 - amount)
                }
            },
            Step::Transfer { source, destination, amount, cap } => {
                if source == destination {
                    return "-ERR source and destination objects are the same\r\n".into();
                }
                if !self.keys.contains_key(source) {
                    return NIL_ARRAY.into();
                }
                let (held, has) = match (self.integer(*source), self.integer(*destination)) {
                    (Ok(held), Ok(has)) => (held, has),
                    (Err(error), _) | (_, Err(error)) => return error.into(),
                };
                let (left, received) = (held - i128::from(*amount), has + i128::from(*amount));
                if left < 0 || received > i128::from(cap.unwrap_or(i64::MAX)) {
                    return NIL_ARRAY.into();
                }
                self.edit(*source, left.to_string(), None);
                self.edit(*destination, received.to_string(), None);
                format!("*2\r\n:{left}\r\n:{received}\r\n")
            }
            Step::SetIf { key, value, greater, get, px, keep } => {
                let before = self.keys.get(key).cloned();
                let holds = match &before {
                    None => true,
                    Some(before) => match before.text.parse::<i64>() {
                        Ok(stored) if text(stored) == before.text => {
                            if *greater {
                                *value > stored
                            } else {
                                *value < stored
                            }
                        }
                        _ => return NOT_AN_INTEGER.into(),
                    },
                };
                if holds {
                    let kept = before.as_ref().and_then(|before| before.deadline_ms).filter(|_| *keep);
                    self.write(*key, text(*value), px.map(|px| now_ms + px).or(kept), None);
                }
                match (get, holds) {
                    (true, _) => before.map_or(NIL.into(), |before| bulk(&before.text)),
                    (false, true) => "+OK\r\n".into(),
                    (false, false) => NIL.into(),
                }
            }
            Step::SetIfEqual(key, value, comparison) => {
                if self.keys.get(key).is_some_and(|value| value.text == *comparison) {
                    self.write(*key, value.clone(), None, None);
                    "+OK\r\n".into()
                } else {
                    NIL.into()
                }
            }
            Step::DelIfEqual(key, comparison) => {
                let equal = self.keys.get(key).is_some_and(|value| value.text == *comparison);
                if equal {
                    self.keys.remove(key);
                }
                format!(":{}\r\n", i32::from(equal))
            }
            Step::Setv(key, value, expected) => {
                let before = self.keys.get(key);
                let current = before.and_then(|before| before.version).unwrap_or(0);
                if expected.is_some_and(|expected| expected != current) {
                    return MISMATCH.into();
                }
                self.write(*key, value.clone(), before.and_then(|before| before.deadline_ms), Some(current + 1));
                format!(":{}\r\n", current + 1)
            }
            Step::Append(key, more) => {
                let before = self.keys.get(key).cloned();
                if before.as_ref().is_some_and(|before| before.version.is_some()) {
                    return VERSIONED.into();
                }
                let joined = before.map_or(String::new(), |before| before.text) + more;
                let len = joined.len();
                self.edit(*key, joined, None);
                format!(":{len}\r\n")
            }
            Step::Incrbyfloat(key, delta, px) => match self.integer(*key) {
                // Only such floats as are integers of few digits, for which no rounding matters.
                Ok(value) if value.abs() < 1 << 40 => {
                    let sum = (value + i128::from(*delta)).to_string();
                    self.edit(*key, sum.clone(), px.map(|px| now_ms + px));
                    bulk(&sum)
                }
                Err(VERSIONED) => VERSIONED.into(),
                Err(_) if self.keys[key].text.starts_with(char::is_alphabetic) => {
                    "-ERR value is not a valid float\r\n".into()
                }
                Ok(_) | Err(_) => SKIP.into(),
            },
        }
    }
}

fn words(step: &Step) -> Vec<String> {
    let option = |name: &str, value: &Option<i64>| match value {
        Some(value) => vec![name.to_string(), text(*value)],
        None => Vec::new(),
    };
    let key = |key: &usize| KEYS[*key].to_string();
    let (mut words, options) = match step {
        Step::Advance(_) => unreachable!("moves the clock only"),
        Step::Set(k, value, px) => (vec!["SET".into(), key(k), value.clone()], option("PX", px)),
        Step::Incrby { key: k, delta, cap, px } => {
            (vec!["INCRBY".into(), key(k), text(*delta)], [option("MAX", cap), option("PX", px)].concat())
        }
        Step::Incr { key: k, up, ex } => (vec![if *up { "INCR" } else { "DECR" }.into(), key(k)], option("EX", ex)),
        Step::Take(k, amount) => (vec!["TAKE".into(), key(k), text(*amount)], Vec::new()),
        Step::Transfer { source, destination, amount, cap } => {
            (vec!["TRANSFER".into(), key(source), key(destination), text(*amount)], option("MAX", cap))
        }
        Step::SetIf { key: k, value, greater, get, px, keep } => {
            let mut options = vec![if *greater { "IFGT" } else { "iflt" }.to_string()];
            options.extend(get.then(|| "GET".to_string()));
            options.extend(option("PX", px));
            options.extend((*keep && px.is_none()).then(|| "KEEPTTL".to_string()));
            (vec!["SET".into(), key(k), text(*value)], options)
        }
        Step::SetIfEqual(k, value, comparison) => {
            (vec!["SET".into(), key(k), value.clone()], vec!["IFEQ".into(), comparison.clone()])
        }
        Step::DelIfEqual(k, comparison) => (vec!["DELIFEQ".into(), key(k), comparison.clone()], Vec::new()),
        Step::Setv(k, value, version) => {
            (vec!["SETV".into(), key(k), value.clone()], version.iter().map(|version| text(*version)).collect())
        }
        Step::Append(k, more) => (vec!["APPEND".into(), key(k), more.clone()], Vec::new()),
        Step::Incrbyfloat(k, delta, px) => (vec!["INCRBYFLOAT".into(), key(k), text(*delta)], option("PX", px)),
    };
    words.extend(options);
    words
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        8 => -20i64..40,
        1 => -70_000i64..70_000,
        1 => prop::sample::select(vec![i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1]),
    ]
}

fn stored() -> impl Strategy<Value = String> {
    prop_oneof![5 => number().prop_map(text), 1 => Just("word".to_string()), 1 => "[a-z]{50,90}"]
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS.len();
    let time = || prop::option::of(1i64..5000);
    let cap = || prop::option::of(number());
    prop_oneof![
        (1i64..3000).prop_map(Step::Advance),
        (key(), stored(), time()).prop_map(|(key, value, px)| Step::Set(key, value, px)),
        (key(), number(), cap(), time()).prop_map(|(key, delta, cap, px)| Step::Incrby { key, delta, cap, px }),
        (key(), any::<bool>(), prop::option::of(1i64..5)).prop_map(|(key, up, ex)| Step::Incr { key, up, ex }),
        (key(), 1i64..30).prop_map(|(key, amount)| Step::Take(key, amount)),
        (key(), key(), 1i64..30, cap()).prop_map(|(source, destination, amount, cap)| Step::Transfer {
            source,
            destination,
            amount,
            cap
        }),
        (key(), number(), any::<bool>(), any::<bool>(), time(), any::<bool>())
            .prop_map(|(key, value, greater, get, px, keep)| Step::SetIf { key, value, greater, get, px, keep }),
        (key(), stored(), (-3i64..9).prop_map(text)).prop_map(|(key, value, old)| Step::SetIfEqual(key, value, old)),
        (key(), (-3i64..9).prop_map(text)).prop_map(|(key, comparison)| Step::DelIfEqual(key, comparison)),
        (key(), stored(), prop::option::of(0i64..4)).prop_map(|(key, value, version)| Step::Setv(key, value, version)),
        (key(), "[0-9]{0,3}").prop_map(|(key, more)| Step::Append(key, more)),
        (key(), -20i64..40, time()).prop_map(|(key, delta, px)| Step::Incrbyfloat(key, delta, px)),
    ]
}

/// Everything that can be seen of the keys, in the model's terms.
fn contents(shard: &mut Shard, now_ms: i64) -> BTreeMap<usize, Value> {
    let mut contents = BTreeMap::new();
    shard.keys.begin(0, now_ms, None);
    for (number, key) in KEYS.iter().enumerate() {
        if let Some(entry) = shard.keys.peek(key.as_bytes()) {
            let text = entry.integer().map_or_else(|| String::from_utf8(entry.payload().to_vec()).unwrap(), text);
            contents.insert(number, Value { text, deadline_ms: entry.deadline_ms(), version: entry.version() });
        }
    }
    contents
}

proptest! {
    #[test]
    fn native_commands_do_what_the_model_does(steps in prop::collection::vec(step(), 1..60)) {
        let mut shard = support::shard(Settings::default(), 1);
        let mut model = Model { now_ms: 1_000_000, keys: BTreeMap::new() };
        for step in &steps {
            if let Step::Advance(milliseconds) = step {
                model.now_ms += milliseconds;
                continue;
            }
            model.expire();
            // What has expired is removed now, so that all changes counted below are the call's own.
            prop_assert_eq!(&contents(&mut shard, model.now_ms), &model.keys);
            let before = model.clone();
            let expected = model.run(step);
            if expected == SKIP {
                continue;
            }
            let (reply, changes) = support::call(&mut shard, model.now_ms, Protocol::Resp2, &words(step));
            let reply = String::from_utf8(reply).unwrap();
            prop_assert_eq!(&reply, &expected, "{:?} on {:?}", words(step), before.keys);
            prop_assert_eq!(&contents(&mut shard, model.now_ms), &model.keys, "after {:?}", words(step));
            let refused = reply.starts_with('-')
                || reply == NIL_ARRAY
                || (reply == NIL && !words(step).iter().any(|word| word == "GET"))
                || (matches!(step, Step::DelIfEqual(..)) && reply == ":0\r\n");
            if refused {
                prop_assert_eq!(changes, 0, "a refusal leaves no trace: {:?}", words(step));
                prop_assert_eq!(&before.keys, &model.keys);
            }
            if before.keys != model.keys {
                prop_assert!(changes > 0, "a change is told: {:?}", words(step));
            }
        }
    }
}

#[test]
fn words_that_do_not_fit_are_refused() {
    let mut shard = support::shard(Settings::default(), 1);
    let expire = |command: &str| format!("-ERR invalid expire time in '{command}' command\r\n");
    let syntax = || "-ERR syntax error\r\n".to_string();
    let wrong_arity = |command: &str| format!("-ERR wrong number of arguments for '{command}' command\r\n");
    let positive = || "-ERR value is out of range, must be positive\r\n".to_string();
    for (line, expected) in [
        ("INCR k EX 0", expire("incr")),
        ("DECR k PX -1", expire("decr")),
        ("INCRBY k 1 EX 9223372036854775807", expire("incrby")),
        ("DECRBY k 1 PX 9223372036854775807", expire("decrby")),
        ("INCRBYFLOAT k 1 EX 0", expire("incrbyfloat")),
        ("SET k 1 IFGT EX 0", expire("set")),
        ("INCR k EX one", NOT_AN_INTEGER.into()),
        ("INCR k EX", syntax()),
        ("INCR k EXAT 99999999999", wrong_arity("incr")),
        ("INCR k EX 1 PX 1", syntax()),
        ("INCR k MAX 5", wrong_arity("incr")),
        ("INCRBY k 1 MAX", syntax()),
        ("INCRBY k 1 MAX 1 MAX 2", syntax()),
        ("INCRBY k 1 EX 1 PX 1", syntax()),
        ("INCRBY k 1 MAX x", NOT_AN_INTEGER.into()),
        ("TAKE k 0", positive()),
        ("TAKE k -1", positive()),
        ("TAKE k 1.5", NOT_AN_INTEGER.into()),
        ("TRANSFER k k 1", "-ERR source and destination objects are the same\r\n".into()),
        ("TRANSFER k j 0", positive()),
        ("TRANSFER k j 1 MIN 2", syntax()),
        ("TRANSFER k j 1 MAX", syntax()),
        ("SET k word IFGT", NOT_AN_INTEGER.into()),
        ("SET k 1 IFGT IFLT", syntax()),
        ("SET k 1 IFGT NX", syntax()),
        ("SET k 1 XX IFLT", syntax()),
        ("SET k 1 IFGT IFEQ 1", syntax()),
        ("SET k 1 IFEQ", syntax()),
        ("SET k 1 IFEQ 1 NX", syntax()),
        ("SET k 1 PERSIST", syntax()),
        ("SETV k v -1", MISMATCH.into()),
        ("SETV k v one", NOT_AN_INTEGER.into()),
        ("SETV k v 0 0", "-ERR wrong number of arguments for 'setv' command\r\n".into()),
        ("GETV", "-ERR wrong number of arguments for 'getv' command\r\n".into()),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let (reply, changes) = support::call(&mut shard, 1000, Protocol::Resp2, &words);
        assert_eq!(String::from_utf8(reply).unwrap(), expected, "{line}");
        assert_eq!(changes, 0, "{line}");
        assert!(contents_of(&mut shard, "k").is_none(), "{line} creates no key");
    }
}

fn contents_of(shard: &mut Shard, key: &str) -> Option<Vec<u8>> {
    shard.keys.begin(0, 1000, None);
    shard.keys.peek(key.as_bytes()).map(|entry| entry.payload().to_vec())
}

#[test]
fn a_versioned_value_reads_as_a_string_and_is_replaced_by_a_plain_one() {
    let mut shard = support::shard(Settings::default(), 1);
    let mut run = |line: &str| String::from_utf8(support::run(&mut shard, 1000, line)).unwrap();
    assert_eq!(run("GETV k"), NIL_ARRAY);
    assert_eq!(run("SETV k v1"), ":1\r\n");
    assert_eq!(run("SETV k v2 1"), ":2\r\n");
    assert_eq!(run("SETV k v3 1"), MISMATCH);
    assert_eq!(run("SETV k v3 0"), MISMATCH);
    assert_eq!(run("GETV k"), "*2\r\n$2\r\nv2\r\n:2\r\n");
    assert_eq!(run("GET k"), bulk("v2"));
    assert_eq!(run("STRLEN k"), ":2\r\n");
    assert_eq!(run("GETRANGE k 1 1"), bulk("2"));
    assert_eq!(run("GETEX k EX 100"), bulk("v2"));
    assert_eq!(run("GETV k"), "*2\r\n$2\r\nv2\r\n:2\r\n");
    for line in ["INCR k", "INCRBYFLOAT k 1", "APPEND k x", "SETRANGE k 0 x", "TAKE k 1", "TRANSFER k j 1"] {
        assert_eq!(run(line), VERSIONED, "{line}");
    }
    assert_eq!(run("SET j 5"), "+OK\r\n");
    assert_eq!(run("TRANSFER j k 1"), VERSIONED);
    assert_eq!(run("GET j"), bulk("5"));
    for (line, reply) in [
        ("SET k plain", "+OK\r\n"),
        ("SET k plain KEEPTTL", "+OK\r\n"),
        ("GETSET k plain", "$1\r\n7\r\n"),
        ("SET k 8 IFGT", "+OK\r\n"),
        ("SET k plain IFEQ 7", "+OK\r\n"),
        ("SETEX k 10 plain", "+OK\r\n"),
        ("MSET k plain", "+OK\r\n"),
    ] {
        run("GETDEL k");
        assert_eq!(run("SETV k 7"), ":1\r\n");
        assert_eq!(run(line), reply, "{line}");
        assert!(run("GETV k").ends_with(":0\r\n"), "{line} leaves a plain value");
        assert!(run("SETV k 1 1").starts_with("-ERR version"), "{line} forgets the version");
    }
}

#[test]
fn nil_is_one_kind_in_resp3() {
    let mut shard = support::shard(Settings::default(), 1);
    for words in
        [&["TAKE", "k", "1"][..], &["TRANSFER", "k", "j", "1"], &["GETV", "k"], &["INCRBY", "k", "2", "MAX", "1"]]
    {
        assert_eq!(support::call(&mut shard, 1000, Protocol::Resp3, words), (b"_\r\n".to_vec(), 0));
    }
}
