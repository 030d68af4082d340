//! Entries against a plain struct: whatever is changed, everything else stays.

use proptest::prelude::*;
use ruvio_shard::entry::{Encoding, Entry, Header, Kind};
use ruvio_shard::object::Object;
use ruvio_shard::set::LargeSet;
use ruvio_shard::slab;

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Bytes(Encoding, Vec<u8>),
    Integer(i64),
    Set(Vec<Vec<u8>>),
}

#[derive(Clone, Debug)]
struct Model {
    key: Vec<u8>,
    deadline_ms: Option<i64>,
    version: Option<i64>,
    access: u32,
    value: Value,
}

#[derive(Clone, Debug)]
enum Step {
    Splice { at: prop::sample::Index, removed: usize, inserted: Vec<u8> },
    Append(Vec<u8>),
    SetPayload(Encoding, Vec<Vec<u8>>),
    SetInteger(i64),
    Overwrite(u8),
    Encoding(Encoding),
    Deadline(Option<i64>),
    Version(Option<i64>),
    Access(u32),
    Rename(Vec<u8>),
    SetObject(Vec<Vec<u8>>),
    InsertInObject(Vec<u8>),
    TakeObject,
}

/// Lengths around those at which an entry's form changes.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![6 => 0usize..40, 3 => 230usize..280, 2 => 900usize..1300, 1 => 4000usize..5000, 1 => 60_000usize..70_000];
    (len, any::<u8>()).prop_map(|(len, first)| (0..len).map(|index| first.wrapping_add(index as u8)).collect())
}

fn encoding() -> impl Strategy<Value = Encoding> {
    prop::sample::select(vec![Encoding::Bytes, Encoding::EditedBytes, Encoding::PackedSet, Encoding::IntegerSet])
}

fn integer() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i8>().prop_map(i64::from),
        any::<i16>().prop_map(i64::from),
        any::<i32>().prop_map(i64::from),
        any::<i64>()
    ]
}

fn members() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(bytes(), 0..4)
}

fn model() -> impl Strategy<Value = Model> {
    let value = prop_oneof![
        (encoding(), bytes()).prop_map(|(encoding, bytes)| Value::Bytes(encoding, bytes)),
        integer().prop_map(Value::Integer),
        members().prop_map(Value::Set),
    ];
    (bytes(), any::<Option<i64>>(), any::<Option<i64>>(), 0u32..1 << 24, value)
        .prop_map(|(key, deadline_ms, version, access, value)| Model { key, deadline_ms, version, access, value })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<prop::sample::Index>(), 0usize..300, bytes())
            .prop_map(|(at, removed, inserted)| Step::Splice { at, removed, inserted }),
        2 => bytes().prop_map(Step::Append),
        2 => (encoding(), prop::collection::vec(bytes(), 0..4)).prop_map(|(encoding, parts)| Step::SetPayload(encoding, parts)),
        2 => integer().prop_map(Step::SetInteger),
        1 => any::<u8>().prop_map(Step::Overwrite),
        1 => encoding().prop_map(Step::Encoding),
        2 => any::<Option<i64>>().prop_map(Step::Deadline),
        2 => any::<Option<i64>>().prop_map(Step::Version),
        1 => (0u32..1 << 24).prop_map(Step::Access),
        2 => bytes().prop_map(Step::Rename),
        2 => members().prop_map(Step::SetObject),
        1 => bytes().prop_map(Step::InsertInObject),
        1 => Just(Step::TakeObject),
    ]
}

fn object(members: &[Vec<u8>]) -> Box<Object> {
    let mut set = LargeSet::new();
    for member in members {
        set.insert(member);
    }
    Box::new(Object::Set(set))
}

fn make(model: &Model) -> Entry {
    let header =
        Header { key: &model.key, deadline_ms: model.deadline_ms, version: model.version, access: model.access };
    match &model.value {
        Value::Bytes(encoding, bytes) => {
            let (front, back) = bytes.split_at(bytes.len() / 2);
            Entry::new(header, *encoding, &[front, back])
        }
        Value::Integer(value) => Entry::with_integer(header, *value),
        Value::Set(members) => Entry::with_object(header, object(members)),
    }
}

fn check(entry: &Entry, model: &Model) {
    let view = entry.view();
    assert_eq!(view.key(), model.key);
    assert_eq!(view.deadline_ms(), model.deadline_ms);
    assert_eq!(view.version(), model.version);
    assert_eq!(view.access(), model.access);
    match &model.value {
        Value::Bytes(encoding, bytes) => {
            assert_eq!(view.encoding(), *encoding);
            assert_eq!(view.payload(), bytes);
            assert_eq!(view.integer(), None);
            assert!(view.object().is_none());
        }
        Value::Integer(value) => {
            assert_eq!(view.integer(), Some(*value));
            assert_eq!(view.kind(), Kind::String);
        }
        Value::Set(members) => {
            let Some(Object::Set(set)) = view.object() else { panic!("a set") };
            assert_eq!(view.kind(), Kind::Set);
            assert!(members.iter().all(|member| set.contains(member)));
            let mut distinct = members.clone();
            distinct.sort();
            distinct.dedup();
            assert_eq!(set.len(), distinct.len());
        }
    }
}

/// Applies a step to both, where it is one that the entry's form allows.
fn apply(mut entry: Entry, model: &mut Model, step: Step) -> Entry {
    match (step, &mut model.value) {
        (Step::Splice { at, removed, inserted }, Value::Bytes(_, bytes)) => {
            let start = at.index(bytes.len() + 1);
            let end = (start + removed).min(bytes.len());
            entry.splice(start..end, &inserted);
            bytes.splice(start..end, inserted);
        }
        (Step::Append(more), Value::Bytes(_, bytes)) => {
            entry.splice(bytes.len()..bytes.len(), &more);
            bytes.extend(more);
        }
        (Step::Overwrite(byte), Value::Bytes(_, bytes)) => {
            entry.payload_mut().fill(byte);
            bytes.fill(byte);
        }
        (Step::Encoding(encoding), Value::Bytes(old, _)) => {
            entry.set_encoding(encoding);
            *old = encoding;
        }
        (Step::SetPayload(encoding, parts), value) => {
            let borrowed: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            entry.set_payload(encoding, &borrowed);
            *value = Value::Bytes(encoding, parts.concat());
        }
        (Step::SetInteger(integer), value) => {
            entry.set_integer(integer);
            *value = Value::Integer(integer);
        }
        (Step::Deadline(deadline_ms), _) => {
            entry.set_deadline(deadline_ms);
            model.deadline_ms = deadline_ms;
        }
        (Step::Version(version), _) => {
            entry.set_version(version);
            model.version = version;
        }
        (Step::Access(access), _) => {
            entry.set_access(access);
            model.access = access;
        }
        (Step::Rename(key), _) => {
            entry = entry.rename(&key);
            model.key = key;
        }
        (Step::SetObject(members), value) => {
            entry.set_object(object(&members));
            *value = Value::Set(members);
        }
        (Step::InsertInObject(member), Value::Set(members)) => {
            let Some(Object::Set(set)) = entry.object_mut() else { panic!("a set") };
            set.insert(&member);
            members.push(member);
        }
        (Step::TakeObject, Value::Set(members)) => {
            let Some(taken) = entry.take_object() else { panic!("an object") };
            let Object::Set(set) = *taken else { panic!("a set") };
            assert!(members.iter().all(|member| set.contains(member)));
            model.value = Value::Bytes(Encoding::Bytes, Vec::new());
        }
        (Step::TakeObject | Step::InsertInObject(_), _) => {
            assert!(entry.take_object().is_none());
            assert!(entry.object_mut().is_none());
        }
        _ => {}
    }
    entry
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn entries_do_what_a_struct_does(model in model(), steps in prop::collection::vec(step(), 0..30)) {
        let before = slab::usage().used_bytes;
        let mut model = model;
        let mut entry = make(&model);
        check(&entry, &model);
        for step in steps {
            entry = apply(entry, &mut model, step);
            check(&entry, &model);
        }
        drop(entry);
        prop_assert_eq!(slab::usage().used_bytes, before);
    }
}

/// The block is large because of its key: the value's length still takes one byte.
#[test]
fn a_short_value_under_a_long_key_grows() {
    let key = vec![b'k'; 2000];
    let mut entry = Entry::new(Header { key: &key, ..Header::default() }, Encoding::Bytes, &[b"short"]);
    entry.splice(5..5, &[b'x'; 200]);
    assert_eq!(entry.view().payload(), [&b"short"[..], &[b'x'; 200]].concat());
    assert_eq!(entry.view().key(), key);
}
