//! Hashes against a plain model, in both forms, and their edge cases.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{call, run, shard};
use proptest::prelude::*;
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

type Bytes = Vec<u8>;
type Model = BTreeMap<Bytes, Bytes>;

/// A reply in RESP2.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Simple(String),
    Integer(i64),
    Bulk(Bytes),
    Null,
    Array(Vec<Value>),
}

impl Value {
    fn parse(input: &mut &[u8]) -> Value {
        let end = input.windows(2).position(|pair| pair == b"\r\n").expect("a whole line");
        let line = String::from_utf8(input[1..end].to_vec()).expect("text");
        let mark = input[0];
        *input = &input[end + 2..];
        let number = || line.parse::<i64>().expect("a number");
        match mark {
            b':' => Value::Integer(number()),
            b'$' | b'*' if number() < 0 => Value::Null,
            b'$' => {
                let bytes = input[..number() as usize].to_vec();
                *input = &input[bytes.len() + 2..];
                Value::Bulk(bytes)
            }
            b'*' => Value::Array((0..number()).map(|_| Value::parse(input)).collect()),
            _ => Value::Simple(line),
        }
    }

    fn strings(self) -> Vec<Bytes> {
        let Value::Array(items) = self else { panic!("no array: {self:?}") };
        let bulk = |item| if let Value::Bulk(bytes) = item { bytes } else { panic!("no string: {item:?}") };
        items.into_iter().map(bulk).collect()
    }
}

fn send(shard: &mut Shard, words: &[Bytes]) -> (Value, u64) {
    let (reply, changes) = call(shard, 1_000, Protocol::Resp2, words);
    let mut rest = &reply[..];
    let value = Value::parse(&mut rest);
    assert!(rest.is_empty(), "one reply a command");
    (value, changes)
}

fn words(line: &str) -> Vec<Bytes> {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

fn content(shard: &mut Shard) -> Model {
    let all = send(shard, &words("HGETALL h")).0.strings();
    let pairs: Model = all.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    assert_eq!(pairs.len() * 2, all.len(), "no field twice");
    pairs
}

/// The fields of a whole scan, each with its value.
fn scanned(shard: &mut Shard, options: &str) -> Vec<(Bytes, Bytes)> {
    let (mut cursor, mut found) = (b"0".to_vec(), Vec::new());
    loop {
        let mut call = words(&format!("HSCAN h {}{options}", String::from_utf8_lossy(&cursor)));
        let Value::Array(mut parts) = send(shard, &std::mem::take(&mut call)).0 else { panic!("no array") };
        let page = parts.pop().expect("two parts").strings();
        found.extend(page.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())));
        let Some(Value::Bulk(next)) = parts.pop() else { panic!("no cursor") };
        cursor = next;
        if cursor == b"0" {
            return found;
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<(Bytes, Bytes)>),
    SetIfMissing(Bytes, Bytes),
    Delete(Vec<Bytes>),
    Increase(Bytes, i64),
    Transfer(Bytes, Bytes, i64, i64),
    Read(Vec<Bytes>),
    Random(i64),
    Scan,
}

fn field() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        8 => (0u32..14).prop_map(|number| format!("f{number}").into_bytes()),
        4 => (-3i64..8).prop_map(|number| number.to_string().into_bytes()),
        1 => Just(b"a field that is too long for the packed form".to_vec()),
        1 => Just(Vec::new()),
    ]
}

fn value() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        (-300i64..300).prop_map(|number| number.to_string().into_bytes()),
        any::<i64>().prop_map(|number| number.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..12),
        (0usize..400).prop_map(|len| vec![b'v'; len]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec((field(), value()), 1..5).prop_map(Step::Set),
        1 => (field(), value()).prop_map(|(field, value)| Step::SetIfMissing(field, value)),
        3 => prop::collection::vec(field(), 1..5).prop_map(Step::Delete),
        2 => (field(), prop_oneof![-50i64..50, any::<i64>()]).prop_map(|(field, by)| Step::Increase(field, by)),
        2 => (field(), field(), 1i64..100, -50i64..400).prop_map(|(from, to, amount, cap)| {
            Step::Transfer(from, to, amount, cap)
        }),
        1 => prop::collection::vec(field(), 1..5).prop_map(Step::Read),
        1 => (-30i64..30).prop_map(Step::Random),
        1 => Just(Step::Scan),
    ]
}

fn integer(value: Option<&Bytes>) -> Option<i64> {
    let Some(value) = value else { return Some(0) };
    let number: i64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == &value[..]).then_some(number)
}

fn command(name: &str, rest: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    [name.into(), b"h".to_vec()].into_iter().chain(rest).collect()
}

fn apply(shard: &mut Shard, model: &mut Model, step: Step) {
    let before = model.clone();
    let is_integer_error = |reply: &Value| *reply == Value::Simple("ERR hash value is not an integer".into());
    let (expected_change, changes) = match step {
        Step::Set(pairs) => {
            let call = command("HSET", pairs.iter().flat_map(|(field, value)| [field.clone(), value.clone()]));
            let (reply, changes) = send(shard, &call);
            model.extend(pairs);
            assert_eq!(reply, Value::Integer((model.len() - before.len()) as i64));
            (true, changes)
        }
        Step::SetIfMissing(field, value) => {
            let (reply, changes) = send(shard, &command("HSETNX", [field.clone(), value.clone()]));
            let is_new = !model.contains_key(&field);
            model.entry(field).or_insert(value);
            assert_eq!(reply, Value::Integer(i64::from(is_new)));
            (is_new, changes)
        }
        Step::Delete(fields) => {
            let (reply, changes) = send(shard, &command("HDEL", fields.clone()));
            model.retain(|field, _| !fields.contains(field));
            assert_eq!(reply, Value::Integer((before.len() - model.len()) as i64));
            shard.keys.begin(0, 1_000, None);
            assert_eq!(shard.keys.contains(b"h"), !model.is_empty());
            (before != *model, changes)
        }
        Step::Increase(field, by) => {
            let (reply, changes) = send(shard, &command("HINCRBY", [field.clone(), by.to_string().into_bytes()]));
            match integer(model.get(&field)).map(|current| current.checked_add(by)) {
                None => assert!(is_integer_error(&reply)),
                Some(None) => assert_eq!(reply, Value::Simple("ERR increment or decrement would overflow".into())),
                Some(Some(sum)) => {
                    assert_eq!(reply, Value::Integer(sum));
                    model.insert(field, sum.to_string().into_bytes());
                }
            }
            (!matches!(reply, Value::Simple(_)), changes)
        }
        Step::Transfer(from, to, amount, cap) => {
            let rest =
                [from.clone(), to.clone(), amount.to_string().into_bytes(), "MAX".into(), cap.to_string().into()];
            let (reply, changes) = send(shard, &command("HTRANSFER", rest));
            if from == to {
                assert_eq!(reply, Value::Simple("ERR source and destination fields are the same".into()));
            } else if !model.contains_key(&from) {
                assert_eq!(reply, Value::Null);
            } else if let (Some(held), Some(received)) = (integer(model.get(&from)), integer(model.get(&to))) {
                match received.checked_add(amount).filter(|after| held >= amount && *after <= cap) {
                    None => assert_eq!(reply, Value::Null),
                    Some(after) => {
                        assert_eq!(reply, Value::Array(vec![Value::Integer(held - amount), Value::Integer(after)]));
                        model.insert(from, (held - amount).to_string().into_bytes());
                        model.insert(to, after.to_string().into_bytes());
                    }
                }
            } else {
                assert!(is_integer_error(&reply));
            }
            (*model != before, changes)
        }
        Step::Read(fields) => {
            let bulk = |value: Option<&Bytes>| value.map_or(Value::Null, |value| Value::Bulk(value.clone()));
            let expected = fields.iter().map(|field| bulk(model.get(field))).collect();
            let (reply, changes) = send(shard, &command("HMGET", fields.clone()));
            assert_eq!(reply, Value::Array(expected));
            for field in fields {
                let found = model.get(&field);
                assert_eq!(send(shard, &command("HGET", [field.clone()])).0, bulk(found));
                assert_eq!(send(shard, &command("HEXISTS", [field.clone()])).0, Value::Integer(found.is_some().into()));
                let len = found.map_or(0, Vec::len) as i64;
                assert_eq!(send(shard, &command("HSTRLEN", [field])).0, Value::Integer(len));
            }
            (false, changes)
        }
        Step::Random(count) => {
            let (reply, changes) = send(shard, &words(&format!("HRANDFIELD h {count} WITHVALUES")));
            let chosen = reply.strings();
            let expected = if count < 0 { count.unsigned_abs() as usize } else { model.len().min(count as usize) };
            assert_eq!(chosen.len(), if model.is_empty() { 0 } else { expected * 2 });
            assert!(chosen.chunks(2).all(|pair| model.get(&pair[0]) == Some(&pair[1])));
            let distinct: BTreeSet<_> = chosen.chunks(2).map(|pair| pair[0].clone()).collect();
            assert!(count < 0 || distinct.len() * 2 == chosen.len());
            match send(shard, &words("HRANDFIELD h")).0 {
                Value::Bulk(field) => assert!(model.contains_key(&field)),
                reply => assert!(reply == Value::Null && model.is_empty()),
            }
            (false, changes)
        }
        Step::Scan => {
            let found = scanned(shard, " COUNT 3");
            assert_eq!(found.len(), model.len());
            assert_eq!(found.into_iter().collect::<Model>(), *model);
            let found: Model = scanned(shard, " MATCH f[0-5] COUNT 2").into_iter().collect();
            let matching = |field: &Bytes| matches!(field[..], [b'f', b'0'..=b'5']);
            assert_eq!(found, model.clone().into_iter().filter(|(field, _)| matching(field)).collect());
            (false, 0)
        }
    };
    assert_eq!(changes > 0, expected_change);
    assert_eq!(content(shard), *model);
    assert_eq!(send(shard, &words("HLEN h")).0, Value::Integer(model.len() as i64));
    let keys: BTreeSet<_> = send(shard, &words("HKEYS h")).0.strings().into_iter().collect();
    assert!(keys.iter().eq(model.keys()));
    let mut values = send(shard, &words("HVALS h")).0.strings();
    let mut expected: Vec<_> = model.values().cloned().collect();
    values.sort();
    expected.sort();
    assert_eq!(values, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn both_forms_are_as_the_model(
        entries in prop_oneof![Just(0usize), Just(6), Just(128)],
        value_max in prop_oneof![Just(12usize), Just(600)],
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let settings = Settings {
            hash_max_listpack_entries: entries,
            hash_max_listpack_value: value_max,
            ..Settings::default()
        };
        let (mut shard, mut model) = (shard(settings, 1), Model::new());
        for step in steps {
            apply(&mut shard, &mut model, step);
        }
    }
}

fn is_packed(shard: &mut Shard, key: &str) -> bool {
    shard.keys.begin(0, 1_000, None);
    shard.keys.peek(key.as_bytes()).expect("the key is there").object().is_none()
}

#[test]
fn a_hash_stays_packed_up_to_the_limits() {
    let shard = &mut shard(Settings { hash_max_listpack_entries: 128, ..Settings::default() }, 1);
    for number in 0..128 {
        run(shard, 1_000, &format!("HSET h f{number} {}", "v".repeat(64)));
    }
    run(shard, 1_000, "HSET h f127 other");
    assert!(is_packed(shard, "h"));
    run(shard, 1_000, "HSETNX h f128 v");
    assert!(!is_packed(shard, "h"));
    run(shard, 1_000, &format!("HSET long f {}", "v".repeat(65)));
    assert!(!is_packed(shard, "long"));
    run(shard, 1_000, "HSET grown f v g w");
    run(shard, 1_000, &format!("HSET grown f {}", "v".repeat(65)));
    assert!(!is_packed(shard, "grown"));
    let pairs = |count: usize| (0..count).map(|number| format!(" f{number} v")).collect::<String>();
    run(shard, 1_000, &format!("HSET many{}", pairs(128)));
    assert!(is_packed(shard, "many"));
    run(shard, 1_000, &format!("HSET more{}", pairs(129)));
    assert!(!is_packed(shard, "more"));
}

#[test]
fn a_large_hash_keeps_and_frees_everything() {
    let shard = &mut shard(Settings::default(), 1);
    let fields = 20_000;
    for number in 0..fields {
        assert_eq!(run(shard, 1_000, &format!("HSET h field:{number} {number}")), b":1\r\n");
    }
    let before: BTreeSet<_> = content(shard).into_keys().collect();
    assert_eq!(before.len(), fields);
    let found = scanned(shard, " COUNT 100");
    assert_eq!(found.len(), fields);
    let few = send(shard, &words("HRANDFIELD h 50")).0.strings();
    assert_eq!(few.iter().collect::<BTreeSet<_>>().len(), 50);
    let most = send(shard, &words("HRANDFIELD h 19000")).0.strings();
    assert_eq!(most.iter().collect::<BTreeSet<_>>().len(), 19_000);
    for number in 0..fields {
        assert_eq!(run(shard, 1_000, &format!("HDEL h field:{number}")), b":1\r\n");
    }
    shard.keys.begin(0, 1_000, None);
    assert!(!shard.keys.contains(b"h"));
}

#[test]
fn a_scan_finds_every_field_that_stays() {
    let shard = &mut shard(Settings::default(), 1);
    for number in 0..3_000 {
        run(shard, 1_000, &format!("HSET h stays:{number} v goes:{number} v"));
    }
    let (mut cursor, mut found, mut turn) = (String::from("0"), BTreeSet::new(), 0);
    loop {
        let Value::Array(parts) = send(shard, &words(&format!("HSCAN h {cursor} COUNT 50 MATCH stays:*"))).0 else {
            panic!("no array")
        };
        found.extend(parts[1].clone().strings().chunks(2).map(|pair| pair[0].clone()));
        let Value::Bulk(next) = &parts[0] else { panic!("no cursor") };
        cursor = String::from_utf8(next.clone()).expect("digits");
        if cursor == "0" {
            break;
        }
        for number in turn * 40..(turn + 1) * 40 {
            run(shard, 1_000, &format!("HDEL h goes:{number}"));
            run(shard, 1_000, &format!("HSET h new:{number} v"));
        }
        turn += 1;
    }
    assert_eq!(found.len(), 3_000);
}

#[test]
fn random_fields_are_chosen_with_equal_chance() {
    for (entries, count) in [(128, 1i32), (128, -1), (128, 5), (0, 1), (0, -1), (0, 5)] {
        let settings = Settings { hash_max_listpack_entries: entries, ..Settings::default() };
        let shard = &mut shard(settings, 1);
        run(shard, 1_000, "HSET h 0 a 1 a 2 a 3 a 4 a 5 a 6 a 7 a");
        let mut times = [0u32; 8];
        for _ in 0..4_000 {
            for field in send(shard, &words(&format!("HRANDFIELD h {count}"))).0.strings() {
                times[usize::from(field[0] - b'0')] += 1;
            }
        }
        let expected = 500 * count.unsigned_abs();
        assert!(times.iter().all(|&times| times.abs_diff(expected) < expected / 4), "{count}: {times:?}");
    }
}

#[test]
fn floats_are_added_as_the_reference_server_adds_them() {
    let shard = &mut shard(Settings::default(), 1);
    assert_eq!(run(shard, 1_000, "HINCRBYFLOAT h f 10.5"), b"$4\r\n10.5\r\n");
    assert_eq!(run(shard, 1_000, "HINCRBYFLOAT h f 0.1"), b"$4\r\n10.6\r\n");
    assert_eq!(run(shard, 1_000, "HINCRBYFLOAT h f -5.6"), b"$1\r\n5\r\n");
    assert_eq!(run(shard, 1_000, "HINCRBYFLOAT h g 1.5e3"), b"$4\r\n1500\r\n");
    assert_eq!(run(shard, 1_000, "HINCRBY h g 1"), b":1501\r\n");
}

#[test]
fn a_deadline_is_set_only_by_the_call_that_makes_the_key() {
    let shard = &mut shard(Settings::default(), 1);
    let deadline = |shard: &mut Shard, key: &str| {
        shard.keys.begin(0, 1_000, None);
        shard.keys.peek(key.as_bytes()).expect("made before").deadline_ms()
    };
    assert_eq!(run(shard, 1_000, "HINCRBY h f 1 EX 10"), b":1\r\n");
    assert_eq!(deadline(shard, "h"), Some(11_000));
    assert_eq!(run(shard, 1_000, "HINCRBY h g 1 PX 5"), b":1\r\n");
    assert_eq!(run(shard, 1_000, "HSET h f 2"), b":0\r\n");
    assert_eq!(deadline(shard, "h"), Some(11_000));
    assert_eq!(run(shard, 1_000, "HINCRBYFLOAT floats f 1 PX 500"), b"$1\r\n1\r\n");
    assert_eq!(deadline(shard, "floats"), Some(1_500));
    assert_eq!(run(shard, 1_000, "HINCRBY plain f 1"), b":1\r\n");
    assert_eq!(run(shard, 1_000, "HINCRBY plain f 1 EX 10"), b":2\r\n");
    assert_eq!(deadline(shard, "plain"), None);
}

#[test]
fn the_reply_shapes_follow_the_protocol() {
    let shard = &mut shard(Settings::default(), 1);
    run(shard, 1_000, "HSET h f v");
    let resp3 = |shard: &mut Shard, line: &str| {
        String::from_utf8(call(shard, 1_000, Protocol::Resp3, &words(line)).0).expect("text")
    };
    assert_eq!(resp3(shard, "HGETALL h"), "%1\r\n$1\r\nf\r\n$1\r\nv\r\n");
    assert_eq!(resp3(shard, "HGETALL missing"), "%0\r\n");
    assert_eq!(resp3(shard, "HKEYS h"), "*1\r\n$1\r\nf\r\n");
    assert_eq!(resp3(shard, "HRANDFIELD h 1 WITHVALUES"), "*1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n");
    assert_eq!(resp3(shard, "HRANDFIELD missing"), "_\r\n");
    assert_eq!(resp3(shard, "HTRANSFER missing a b 1"), "_\r\n");
    assert_eq!(resp3(shard, "HSCAN h 0"), "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n");
    assert_eq!(run(shard, 1_000, "HTRANSFER missing a b 1"), b"*-1\r\n");
    assert_eq!(run(shard, 1_000, "HMGET missing a b"), b"*2\r\n$-1\r\n$-1\r\n");
}

#[test]
fn wrong_calls_are_errors_and_change_nothing() {
    let shard = &mut shard(Settings::default(), 1);
    run(shard, 1_000, "SET s x");
    run(shard, 1_000, "HSET h a 1 text foo big 9223372036854775807 huge 1e4932");
    let before = content(shard);
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    let integer = "ERR value is not an integer or out of range";
    for (line, error) in [
        ("HSET h a", "ERR wrong number of arguments for 'hset' command"),
        ("HSET h a 1 b", "ERR wrong number of arguments for 'hset' command"),
        ("HMSET s a 1 b", "ERR wrong number of arguments for 'hmset' command"),
        ("HSET s a 1", wrong_type),
        ("HGET s a", wrong_type),
        ("HDEL s a", wrong_type),
        ("HSCAN s 0", wrong_type),
        ("HSCAN h x", "ERR invalid cursor"),
        ("HSCAN missing x", "ERR invalid cursor"),
        ("HSCAN h 0 COUNT 0", "ERR syntax error"),
        ("HSCAN h 0 COUNT x", integer),
        ("HSCAN h 0 MATCH", "ERR syntax error"),
        ("HSCAN h 0 TYPE hash", "ERR syntax error"),
        ("HRANDFIELD h 1 foo", "ERR syntax error"),
        ("HRANDFIELD h 1 WITHVALUES x", "ERR syntax error"),
        ("HRANDFIELD h x", integer),
        ("HRANDFIELD missing 9223372036854775807 WITHVALUES", "ERR value is out of range"),
        ("HINCRBY h a x", integer),
        ("HINCRBY s a x", integer),
        ("HINCRBY h big 1", "ERR increment or decrement would overflow"),
        ("HINCRBY h text 1", "ERR hash value is not an integer"),
        ("HINCRBY h a 1 EX", "ERR syntax error"),
        ("HINCRBY h a 1 EX 0", "ERR invalid expire time in 'hincrby' command"),
        ("HINCRBY h a 1 EX 9223372036854775807", "ERR invalid expire time in 'hincrby' command"),
        ("HINCRBYFLOAT h a 1 PX -1", "ERR invalid expire time in 'hincrbyfloat' command"),
        ("HINCRBYFLOAT h text 1", "ERR hash value is not a float"),
        ("HINCRBYFLOAT h a nan", "ERR value is not a valid float"),
        ("HINCRBYFLOAT h a inf", "ERR value is NaN or Infinity"),
        ("HINCRBYFLOAT s a x", "ERR value is not a valid float"),
        ("HINCRBYFLOAT h huge 1e4932", "ERR increment would produce NaN or Infinity"),
        ("HTRANSFER h a a 1", "ERR source and destination fields are the same"),
        ("HTRANSFER h a text 1", "ERR hash value is not an integer"),
        ("HTRANSFER h text a 1", "ERR hash value is not an integer"),
        ("HTRANSFER h a b 0", "ERR value is out of range, must be positive"),
        ("HTRANSFER h a b x", integer),
        ("HTRANSFER h a b 1 CAP 1", "ERR syntax error"),
        ("HTRANSFER s a b 1", wrong_type),
    ] {
        assert_eq!(send(shard, &words(line)), (Value::Simple(error.into()), 0), "{line}");
    }
    assert_eq!(content(shard), before);
}

#[test]
fn the_number_of_repeated_random_fields_is_bounded_by_the_reply() {
    let settings = Settings { proto_max_bulk_len: 1_000, ..Settings::default() };
    let shard = &mut shard(settings, 1);
    run(shard, 1_000, "HSET h f v");
    let (reply, _) = send(shard, &words("HRANDFIELD h -9223372036854775807"));
    assert_eq!(reply, Value::Simple("ERR value is out of range, the reply would exceed proto-max-bulk-len".into()));
}

#[test]
fn a_hash_of_four_fields_fits_a_block_of_88_bytes() {
    let shard = &mut shard(Settings::default(), 1);
    let call: Vec<Bytes> =
        ["HSET", "h:499999", "name", "ada lovelace", "plan", "pro", "seats", "499999", "mail", "u499999@example.com"]
            .map(|word| word.as_bytes().to_vec())
            .to_vec();
    send(shard, &call);
    assert!(shard.keys.peek(b"h:499999").expect("made just now").block_bytes() <= 88);
}
