//! Commands on keys of any type and deadlines, against a plain model with a clock of its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::databases::{call, run};
use proptest::prelude::*;
use ruvio_shard::entry::{Encoding, Entry, EntryRef, Header, Kind};
use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::settings::{EvictionPolicy, Settings};
use ruvio_shard::shard::Shard;

const DATABASES: usize = 3;
const START_MS: i64 = 1_700_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Value {
    kind: &'static str,
    encoding: &'static str,
    bytes: Vec<u8>,
    version: Option<i64>,
    deadline_ms: Option<i64>,
}

type Model = BTreeMap<(usize, Vec<u8>), Value>;

#[derive(Clone, Copy, Debug)]
enum Shape {
    Text,
    Integer,
    Versioned,
    Set,
    Limit,
}

#[derive(Clone, Debug)]
enum Step {
    Put { key: usize, shape: Shape, deadline_ms: Option<i64> },
    Wait { ms: i64 },
    Sweep { budget: usize },
    Run { words: Vec<String> },
    NextDatabase,
}

fn key(index: usize) -> String {
    // Long keys have another header.
    if index == 5 { "k".repeat(300) } else { format!("key:{index}") }
}

fn a_key() -> impl Strategy<Value = String> {
    (0..6usize).prop_map(key)
}

fn a_time() -> impl Strategy<Value = i64> {
    prop_oneof![
        8 => -50..200i64,
        4 => START_MS - 50..START_MS + 2000,
        4 => (START_MS / 1000 - 1)..(START_MS / 1000 + 3),
        1 => prop::sample::select(vec![i64::MAX, i64::MIN, i64::MAX / 1000, i64::MAX / 1000 + 1, i64::MIN / 1000 - 1]),
    ]
}

fn words(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| part.to_string()).collect()
}

fn a_call() -> impl Strategy<Value = Vec<String>> {
    let one = prop::sample::select(vec![
        "type",
        "ttl",
        "pttl",
        "expiretime",
        "pexpiretime",
        "persist",
        "object encoding",
        "object refcount",
    ]);
    let many = prop::sample::select(vec!["del", "unlink", "exists", "touch"]);
    let expiring = prop::sample::select(vec!["expire", "pexpire", "expireat", "pexpireat"]);
    let condition = prop::collection::vec(prop::sample::select(vec!["NX", "xx", "GT", "lt"]), 0..3);
    prop_oneof![
        3 => (one, a_key()).prop_map(|(name, key)| name.split(' ').map(str::to_string).chain([key]).collect()),
        2 => (many, prop::collection::vec(a_key(), 1..4))
            .prop_map(|(name, keys)| [name.to_string()].into_iter().chain(keys).collect()),
        4 => (expiring, a_key(), a_time(), condition).prop_map(|(name, key, time, conditions)| {
            let mut all = vec![name.to_string(), key, time.to_string()];
            all.extend(conditions.into_iter().map(str::to_string));
            all
        }),
        2 => (prop::sample::select(vec!["rename", "renamenx"]), a_key(), a_key())
            .prop_map(|(name, from, to)| words(&[name, &from, &to])),
        1 => (a_key(), -1..4i64).prop_map(|(key, database)| words(&["move", &key, &database.to_string()])),
        2 => (a_key(), a_key(), prop::option::of(-1..4i64), any::<bool>()).prop_map(|(from, to, database, replace)| {
            let mut all = words(&["copy", &from, &to]);
            if let Some(database) = database {
                all.extend(["DB".to_string(), database.to_string()]);
            }
            if replace {
                all.push("replace".to_string());
            }
            all
        }),
    ]
}

fn a_step() -> impl Strategy<Value = Step> {
    let shape = prop::sample::select(vec![Shape::Text, Shape::Integer, Shape::Versioned, Shape::Set, Shape::Limit]);
    prop_oneof![
        4 => (0..6usize, shape, prop::option::of(1..300i64))
            .prop_map(|(key, shape, deadline_ms)| Step::Put { key, shape, deadline_ms }),
        2 => (0..150i64).prop_map(|ms| Step::Wait { ms }),
        1 => (1..40usize).prop_map(|budget| Step::Sweep { budget }),
        12 => a_call().prop_map(|words| Step::Run { words }),
        1 => Just(Step::NextDatabase),
    ]
}

fn entry(key: &[u8], shape: Shape, deadline_ms: Option<i64>, serial: usize) -> (Entry, Value) {
    let version = matches!(shape, Shape::Versioned).then_some(serial as i64);
    let header = Header { key, deadline_ms, version, access: 0 };
    let text = format!("value {serial}").into_bytes();
    let (entry, kind, encoding, bytes) = match shape {
        Shape::Text | Shape::Versioned => (Entry::new(header, Encoding::Bytes, &[&text]), "string", "embstr", text),
        Shape::Integer => {
            let entry = Entry::with_integer(header, serial as i64 * 1000);
            let bytes = entry.view().payload().to_vec();
            (entry, "string", "int", bytes)
        }
        Shape::Set => (Entry::new(header, Encoding::IntegerSet, &[&text]), "set", "intset", text),
        Shape::Limit => {
            let bytes = vec![serial as u8; ruvio_shard::limit::FIXED_BYTES];
            (Entry::new(header, Encoding::FixedLimit, &[&bytes]), "limit", "limit", bytes)
        }
    };
    (entry, Value { kind, encoding, bytes, version, deadline_ms })
}

fn number(value: i64) -> String {
    format!(":{value}\r\n")
}

const NOT_AN_INDEX: &str = "-ERR DB index is out of range\r\n";
const SAME: &str = "-ERR source and destination objects are the same\r\n";
const LIMIT: &str = "-ERR the deadline of a limit key is set by LIMIT only\r\n";

fn remaining(model: &Model, place: &(usize, Vec<u8>), convert: impl Fn(i64) -> i64) -> String {
    number(match model.get(place) {
        None => -2,
        Some(value) => value.deadline_ms.map_or(-1, convert),
    })
}

/// Applies a call to the model: its reply.
fn expected(model: &mut Model, database: usize, now_ms: i64, words: &[String]) -> String {
    let place = |index: usize| (database, words[index].clone().into_bytes());
    let name = words[0].as_str();
    let seconds = |ms: i64| ((i128::from(ms) + 500) / 1000) as i64;
    match name {
        "type" => format!("+{}\r\n", model.get(&place(1)).map_or("none", |value| value.kind)),
        "object" => match model.get(&place(2)) {
            None => "$-1\r\n".to_string(),
            Some(_) if words[1] == "refcount" => number(1),
            Some(value) => format!("${}\r\n{}\r\n", value.encoding.len(), value.encoding),
        },
        "ttl" => remaining(model, &place(1), |at| seconds(at - now_ms)),
        "pttl" => remaining(model, &place(1), |at| at - now_ms),
        "expiretime" => remaining(model, &place(1), seconds),
        "pexpiretime" => remaining(model, &place(1), |at| at),
        "persist" => match model.get_mut(&place(1)) {
            Some(value) if value.kind == "limit" => LIMIT.to_string(),
            found => number(found.and_then(|value| value.deadline_ms.take()).is_some().into()),
        },
        "exists" | "touch" => {
            number((1..words.len()).filter(|&index| model.contains_key(&place(index))).count() as i64)
        }
        "del" | "unlink" => {
            number((1..words.len()).filter(|&index| model.remove(&place(index)).is_some()).count() as i64)
        }
        "rename" | "renamenx" => {
            if !model.contains_key(&place(1)) {
                return "-ERR no such key\r\n".to_string();
            }
            if name == "renamenx" && model.contains_key(&place(2)) {
                return number(0);
            }
            let value = model.remove(&place(1)).expect("checked");
            model.insert(place(2), value);
            if name == "rename" { "+OK\r\n".to_string() } else { number(1) }
        }
        "move" => {
            let Some(target) = words[2].parse().ok().filter(|&target: &usize| target < DATABASES) else {
                return NOT_AN_INDEX.to_string();
            };
            if target == database {
                return SAME.to_string();
            }
            let destination = (target, place(1).1);
            if model.contains_key(&destination) {
                return number(0);
            }
            let Some(value) = model.remove(&place(1)) else { return number(0) };
            model.insert(destination, value);
            number(1)
        }
        "copy" => {
            let mut target = database;
            if let Some(at) = words.iter().position(|word| word == "DB") {
                match words[at + 1].parse().ok().filter(|&target: &usize| target < DATABASES) {
                    Some(number) => target = number,
                    None => return NOT_AN_INDEX.to_string(),
                }
            }
            let destination = (target, place(2).1);
            if destination == place(1) {
                return SAME.to_string();
            }
            let replace = words.iter().any(|word| word == "replace");
            match model.get(&place(1)).cloned() {
                Some(value) if replace || !model.contains_key(&destination) => {
                    model.insert(destination, value);
                    number(1)
                }
                _ => number(0),
            }
        }
        _ => expected_expire(model, place(1), now_ms, words),
    }
}

fn expected_expire(model: &mut Model, place: (usize, Vec<u8>), now_ms: i64, words: &[String]) -> String {
    let has = |option: &str| words[3..].iter().any(|word| word.eq_ignore_ascii_case(option));
    if has("nx") && (has("xx") || has("gt") || has("lt")) {
        return "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n".to_string();
    }
    if has("gt") && has("lt") {
        return "-ERR GT and LT options at the same time are not compatible\r\n".to_string();
    }
    let name = words[0].as_str();
    let time: i128 = words[2].parse().expect("a number");
    let unit = if name.starts_with('p') { 1 } else { 1000 };
    let base = if name.ends_with("at") { 0 } else { i128::from(now_ms) };
    // The unit is applied first and must not overflow by itself.
    let scaled = i64::try_from(time * unit).map(i128::from);
    let Ok(deadline_ms) = scaled.and_then(|scaled| i64::try_from(scaled + base)) else {
        return format!("-ERR invalid expire time in '{name}' command\r\n");
    };
    let Some(value) = model.get_mut(&place) else { return number(0) };
    if value.kind == "limit" {
        return LIMIT.to_string();
    }
    // Without a deadline a key expires later than any other.
    let current = value.deadline_ms.map_or(i128::MAX, i128::from);
    let new = i128::from(deadline_ms);
    let refused = (has("nx") && value.deadline_ms.is_some())
        || (has("xx") && value.deadline_ms.is_none())
        || (has("gt") && new <= current)
        || (has("lt") && new >= current);
    if refused {
        return number(0);
    }
    if deadline_ms <= now_ms {
        model.remove(&place);
    } else {
        value.deadline_ms = Some(deadline_ms);
    }
    number(1)
}

fn value_of(entry: EntryRef<'_>) -> Value {
    Value {
        kind: entry.kind().name(),
        encoding: ruvio_shard::commands::object::encoding_name(entry),
        bytes: entry.payload().to_vec(),
        version: entry.version(),
        deadline_ms: entry.deadline_ms(),
    }
}

/// Everything that a shard holds, expired keys included.
fn content(shard: &Shard) -> Model {
    let mut content = Model::new();
    for (number, database) in shard.keys.databases().iter().enumerate() {
        let mut from = 0;
        while let Some(slot) = database.next_slot(from, false) {
            for entry in database.table(slot).expect("a used slot").iter() {
                content.insert((number, entry.key().to_vec()), value_of(entry));
            }
            from = usize::from(slot) + 1;
        }
        let here = content.range((number, Vec::new())..(number + 1, Vec::new()));
        let (keys, with_deadline) = here
            .fold((0, 0), |(keys, marked), (_, value)| (keys + 1, marked + usize::from(value.deadline_ms.is_some())));
        assert_eq!((database.len(), database.with_deadline()), (keys, with_deadline), "the counts are right");
    }
    content
}

fn live(model: &Model, now_ms: i64) -> Model {
    let is_live = |value: &Value| value.deadline_ms.is_none_or(|deadline_ms| deadline_ms > now_ms);
    model.iter().filter(|(_, value)| is_live(value)).map(|(place, value)| (place.clone(), value.clone())).collect()
}

fn new_shard(settings: Settings) -> Shard {
    Shard::new(DATABASES, settings, MemoryMeter::NONE, 1)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_and_time_act_as_in_the_model(steps in prop::collection::vec(a_step(), 1..80)) {
        let mut shard = new_shard(Settings::default());
        let mut model = Model::new();
        let mut now_ms = START_MS;
        let mut database = 0;
        for (serial, step) in steps.iter().enumerate() {
            match step {
                Step::Put { key: index, shape, deadline_ms } => {
                    let name = key(*index).into_bytes();
                    let (entry, value) = entry(&name, *shape, deadline_ms.map(|ms| now_ms + ms), serial);
                    shard.keys.begin(database, now_ms, None);
                    shard.keys.put(entry);
                    model.insert((database, name), value);
                }
                Step::Wait { ms } => {
                    now_ms += ms;
                    model = live(&model, now_ms);
                }
                Step::Sweep { budget } => {
                    shard.sweep_expired(now_ms, *budget);
                }
                Step::Run { words } => {
                    let before = model.clone();
                    let wanted = expected(&mut model, database, now_ms, words);
                    let all: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
                    let (reply, outcome) = call(&mut shard, database, now_ms, &all);
                    prop_assert_eq!(String::from_utf8_lossy(&reply), wanted, "{:?}", words);
                    // A renewed deadline may be the old one: accepted, and nothing to see.
                    prop_assert!(before == model || outcome.changes > 0, "{:?} changes something", words);
                    let refused = reply.starts_with(b"-") || reply == b":0\r\n" || reply == b"$-1\r\n";
                    prop_assert!(!refused || outcome.changes == 0, "{:?} leaves no trace", words);
                }
                Step::NextDatabase => database = (database + 1) % DATABASES,
            }
            prop_assert_eq!(live(&content(&shard), now_ms), model.clone());
        }
        // Whole sweeps leave nothing that has expired.
        while !shard.sweep_expired(now_ms, 7).wrapped {}
        while !shard.sweep_expired(now_ms, 7).wrapped {}
        prop_assert_eq!(content(&shard), model);
    }
}

fn put_text(shard: &mut Shard, now_ms: i64, key: &str, value: &[u8]) {
    shard.keys.begin(0, now_ms, None);
    let header = Header { key: key.as_bytes(), access: shard.keys.new_access(), ..Header::default() };
    shard.keys.put(Entry::new(header, Encoding::Bytes, &[value]));
}

fn text(reply: Vec<u8>) -> String {
    String::from_utf8(reply).expect("replies here are text")
}

#[test]
fn strings_up_to_44_bytes_are_embstr() {
    let mut shard = new_shard(Settings::default());
    put_text(&mut shard, START_MS, "a", &[b'x'; 44]);
    put_text(&mut shard, START_MS, "b", &[b'x'; 45]);
    assert_eq!(text(run(&mut shard, START_MS, "OBJECT ENCODING a")), "$6\r\nembstr\r\n");
    assert_eq!(text(run(&mut shard, START_MS, "OBJECT ENCODING b")), "$3\r\nraw\r\n");
}

#[test]
fn only_uses_of_the_value_end_idleness() {
    let mut shard = new_shard(Settings::default());
    put_text(&mut shard, START_MS, "a", b"x");
    let later = START_MS + 10_000;
    for line in ["TYPE a", "TTL a", "EXISTS a", "OBJECT ENCODING a", "MEMORY USAGE a"] {
        run(&mut shard, later, line);
        assert_eq!(text(run(&mut shard, later, "OBJECT IDLETIME a")), ":10\r\n", "{line}");
    }
    shard.keys.no_touch = true;
    run(&mut shard, later, "GET a");
    run(&mut shard, later, "PERSIST a");
    assert_eq!(text(run(&mut shard, later, "OBJECT IDLETIME a")), ":10\r\n");
    assert_eq!(text(run(&mut shard, later, "TOUCH a missing")), ":1\r\n");
    assert_eq!(text(run(&mut shard, later, "OBJECT IDLETIME a")), ":0\r\n");
    assert!(text(run(&mut shard, later, "OBJECT FREQ a")).starts_with("-ERR An LFU maxmemory policy is not selected"));
}

#[test]
fn frequency_starts_at_five_and_decays() {
    let settings = Settings { maxmemory_policy: EvictionPolicy::AllKeysLfu, ..Settings::default() };
    let mut shard = new_shard(settings);
    put_text(&mut shard, START_MS, "a", b"x");
    assert_eq!(text(run(&mut shard, START_MS, "OBJECT FREQ a")), ":5\r\n");
    assert_eq!(text(run(&mut shard, START_MS + 120_000, "OBJECT FREQ a")), ":3\r\n");
    assert!(
        text(run(&mut shard, START_MS, "OBJECT IDLETIME a")).starts_with("-ERR An LFU maxmemory policy is selected")
    );
    assert_eq!(text(run(&mut shard, START_MS, "OBJECT IDLETIME missing")), "$-1\r\n");
}

#[test]
fn memory_usage_is_what_the_block_takes() {
    let mut shard = new_shard(Settings::default());
    put_text(&mut shard, START_MS, "a", &[b'x'; 1000]);
    // 5 bytes of header, the key, 5 bytes of length, the value: rounded up to 8; and the word in the table.
    assert_eq!(text(run(&mut shard, START_MS, "MEMORY USAGE a")), ":1024\r\n");
    assert_eq!(text(run(&mut shard, START_MS, "MEMORY USAGE a SAMPLES 0")), ":1024\r\n");
    assert_eq!(text(run(&mut shard, START_MS, "MEMORY USAGE missing")), "$-1\r\n");
    for line in ["MEMORY USAGE a SAMPLES", "MEMORY USAGE a SAMPLES -1", "MEMORY USAGE a BAD 1"] {
        assert_eq!(text(run(&mut shard, START_MS, line)), "-ERR syntax error\r\n", "{line}");
    }
    let not_a_number = "-ERR value is not an integer or out of range\r\n";
    assert_eq!(text(run(&mut shard, START_MS, "MEMORY USAGE a SAMPLES x")), not_a_number);
}

#[test]
fn bad_words_are_refused_with_redis_errors() {
    let mut shard = new_shard(Settings::default());
    put_text(&mut shard, START_MS, "a", b"x");
    for (line, error) in [
        ("EXPIRE a x", "ERR value is not an integer or out of range"),
        ("EXPIRE a x bAd", "ERR Unsupported option bAd"),
        ("COPY a b DB", "ERR syntax error"),
        ("COPY a b DB x", "ERR value is not an integer or out of range"),
        ("COPY a b DB 4294967296", "ERR value is out of range, value must between -2147483648 and 2147483647"),
        ("COPY a b WHAT", "ERR syntax error"),
        ("MOVE a x", "ERR value is not an integer or out of range"),
        ("MOVE a 9223372036854775808", "ERR value is not an integer or out of range"),
    ] {
        assert_eq!(text(run(&mut shard, START_MS, line)), format!("-{error}\r\n"), "{line}");
    }
}

#[test]
fn an_expired_key_met_by_a_call_is_no_change_of_that_call() {
    let mut shard = new_shard(Settings::default());
    put_text(&mut shard, START_MS, "a", b"x");
    run(&mut shard, START_MS, "PEXPIRE a 10");
    let (reply, outcome) = call(&mut shard, 0, START_MS + 10, &[b"GET", b"a"]);
    assert_eq!((reply.as_slice(), outcome.changes), (&b"$-1\r\n"[..], 0));
    assert_eq!((shard.keys.stats.expired, shard.keys.len(0)), (1, 0));
}

#[test]
fn the_sweep_costs_by_deadlines_and_not_by_keys() {
    let mut shard = new_shard(Settings::default());
    for index in 0..20_000 {
        put_text(&mut shard, START_MS, &format!("plain:{index}"), b"x");
    }
    for index in 0..20 {
        put_text(&mut shard, START_MS, &format!("due:{index}"), b"x");
        run(&mut shard, START_MS, &format!("PEXPIRE due:{index} 10"));
    }
    let swept = shard.sweep_expired(START_MS + 10, 1000);
    assert!(swept.wrapped, "one call of this budget passes over all of the keyspace");
    assert_eq!((swept.expired, shard.keys.len(0)), (20, 20_000));
    assert!(swept.examined < 200, "looked at {}", swept.examined);
}

#[test]
fn a_type_of_each_kind_is_named() {
    for kind in [Kind::String, Kind::List, Kind::Set, Kind::SortedSet, Kind::Hash, Kind::Limit] {
        assert_eq!(
            ruvio_shard::scan::KindFilter::named(kind.name().to_uppercase().as_bytes()),
            ruvio_shard::scan::KindFilter::Only(kind)
        );
    }
    assert_eq!(ruvio_shard::scan::KindFilter::named(b"what"), ruvio_shard::scan::KindFilter::Nothing);
}

#[test]
fn deadlines_are_counted_in_a_large_table() {
    let mut shard = new_shard(Settings::default());
    let mut with_deadline = BTreeSet::new();
    for index in 0..3000 {
        put_text(&mut shard, START_MS, &format!("{{tag}}{index}"), b"x");
    }
    let mut choice = 1u64;
    for step in 0..12_000 {
        choice = choice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = format!("{{tag}}{}", (choice >> 33) % 3000);
        match choice >> 60 {
            0..6 => {
                if run(&mut shard, START_MS, &format!("EXPIRE {key} 100")) == b":1\r\n" {
                    with_deadline.insert(key);
                }
            }
            6..12 => {
                let persisted = run(&mut shard, START_MS, &format!("PERSIST {key}")) == b":1\r\n";
                assert_eq!(persisted, with_deadline.remove(&key));
            }
            12..15 => {
                run(&mut shard, START_MS, &format!("UNLINK {key}"));
                with_deadline.remove(&key);
            }
            _ => {
                put_text(&mut shard, START_MS, &key, b"y");
                with_deadline.remove(&key);
            }
        }
        let database = &shard.keys.databases()[0];
        assert_eq!(database.with_deadline(), with_deadline.len(), "after step {step}");
    }
    let table = shard.keys.table(ruvio_shard::slot::key_slot(b"{tag}")).expect("a used slot");
    assert!(table.len() > 600, "the table has several segments");
    assert_eq!(table.marked(), with_deadline.len());
    while !shard.sweep_expired(START_MS + 100_000, 100).wrapped {}
    assert_eq!(shard.keys.stats.expired as usize, with_deadline.len());
    assert_eq!(shard.keys.databases()[0].with_deadline(), 0);
}
