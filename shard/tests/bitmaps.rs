//! Bitmaps against a plain row of bits.

use proptest::prelude::*;
use ruvio_shard::entry::Encoding;
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;

use crate::support;

const NOW_MS: i64 = 1_700_000_000_000;

#[derive(Clone, Debug)]
enum Step {
    Setbit(u64, bool),
    Getbit(u64),
    Bitcount(i64, i64, &'static str),
    Bitpos(bool, i64, Option<i64>),
    Append(Vec<u8>),
    Number(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let offsets = || prop_oneof![4 => 0u64..300, 1 => 0u64..20_000];
    let index = || prop_oneof![-40i64..40, -400i64..400];
    prop_oneof![
        4 => (offsets(), any::<bool>()).prop_map(|(offset, bit)| Step::Setbit(offset, bit)),
        2 => offsets().prop_map(Step::Getbit),
        2 => (index(), index(), prop_oneof![Just("BYTE"), Just("BIT")])
            .prop_map(|(start, end, unit)| Step::Bitcount(start, end, unit)),
        2 => (any::<bool>(), index(), prop::option::of(index()))
            .prop_map(|(bit, start, end)| Step::Bitpos(bit, start, end)),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Step::Append),
        1 => any::<i64>().prop_map(Step::Number),
    ]
}

fn bit(bytes: &[u8], offset: u64) -> bool {
    bytes.get(offset as usize / 8).is_some_and(|byte| byte >> (7 - offset % 8) & 1 == 1)
}

/// The units of a part, one by one, with both ends included.
fn part(units: i64, start: i64, end: i64) -> impl Iterator<Item = i64> + Clone {
    let place = move |index: i64| if index < 0 { (units + index).max(0) } else { index };
    (0..units).filter(move |unit| (place(start)..=place(end)).contains(unit))
}

proptest! {
    #[test]
    fn bitmaps_are_rows_of_bits(steps in prop::collection::vec(step(), 1..40)) {
        let mut shard = support::shard(Settings::default(), 1);
        let mut model: Vec<u8> = Vec::new();
        let mut exists = false;
        for step in steps {
            let mut run = |line: String| support::run(&mut shard, NOW_MS, &line);
            match &step {
                Step::Setbit(offset, value) => {
                    let reply = run(format!("SETBIT k {offset} {}", u8::from(*value)));
                    prop_assert_eq!(reply, format!(":{}\r\n", u8::from(bit(&model, *offset))).into_bytes());
                    model.resize(model.len().max(*offset as usize / 8 + 1), 0);
                    let mask = 0x80 >> (offset % 8);
                    let byte = &mut model[*offset as usize / 8];
                    *byte = if *value { *byte | mask } else { *byte & !mask };
                    exists = true;
                }
                Step::Getbit(offset) => {
                    let reply = run(format!("GETBIT k {offset}"));
                    prop_assert_eq!(reply, format!(":{}\r\n", u8::from(bit(&model, *offset))).into_bytes());
                }
                Step::Bitcount(start, end, unit) => {
                    let width = if *unit == "BIT" { 1 } else { 8 };
                    let units = model.len() as i64 * 8 / width;
                    let crossed = *start < 0 && *end < 0 && start > end;
                    let bits = part(units, *start, *end).flat_map(|unit| unit * width..(unit + 1) * width);
                    let set = bits.filter(|offset| !crossed && bit(&model, *offset as u64)).count();
                    let reply = run(format!("BITCOUNT k {start} {end} {unit}"));
                    prop_assert_eq!(reply, format!(":{set}\r\n").into_bytes());
                }
                Step::Bitpos(value, start, end) => {
                    let bytes = part(model.len() as i64, *start, end.unwrap_or(i64::MAX));
                    let found = bytes.clone().flat_map(|byte| byte * 8..byte * 8 + 8)
                        .find(|offset| bit(&model, *offset as u64) == *value);
                    let expected = match found {
                        Some(offset) => offset,
                        None if !exists => if *value { -1 } else { 0 },
                        None if !value && end.is_none() && bytes.count() > 0 => model.len() as i64 * 8,
                        None => -1,
                    };
                    let end = end.map_or(String::new(), |end| format!(" {end}"));
                    let reply = run(format!("BITPOS k {} {start}{end}", u8::from(*value)));
                    prop_assert_eq!(reply, format!(":{expected}\r\n").into_bytes());
                }
                Step::Append(bytes) => {
                    support::call(&mut shard, NOW_MS, Protocol::Resp2, &[&b"APPEND"[..], b"k", bytes]);
                    model.extend_from_slice(bytes);
                    exists = true;
                }
                Step::Number(number) => {
                    run(format!("SET k {number}"));
                    model = number.to_string().into_bytes();
                    exists = true;
                }
            }
            let reply = support::run(&mut shard, NOW_MS, "GET k");
            if exists {
                let expected = [format!("${}\r\n", model.len()).as_bytes(), &model, b"\r\n"].concat();
                prop_assert_eq!(reply, expected);
            }
        }
    }
}

/// The number of changes of a command.
fn changes(shard: &mut ruvio_shard::shard::Shard, line: &str) -> u64 {
    let words: Vec<&str> = line.split(' ').collect();
    support::call(shard, NOW_MS, Protocol::Resp2, &words).1
}

#[test]
fn only_what_changes_a_string_is_a_change() {
    let mut shard = support::shard(Settings::default(), 1);
    assert_eq!(changes(&mut shard, "SETBIT k 10 0"), 1);
    assert_eq!(changes(&mut shard, "SETBIT k 10 0"), 0);
    assert_eq!(changes(&mut shard, "SETBIT k 10 1"), 1);
    assert_eq!(changes(&mut shard, "SETBIT k 10 1"), 0);
    assert_eq!(changes(&mut shard, "SETBIT k 20 0"), 1, "the string grew");
    assert_eq!(changes(&mut shard, "BITFIELD k GET u8 0"), 0);
    assert_eq!(changes(&mut shard, "BITFIELD k SET u8 0 0"), 0);
    assert_eq!(changes(&mut shard, "BITFIELD k SET u8 0 9 INCRBY u8 0 1"), 1);
    assert_eq!(changes(&mut shard, "BITFIELD k OVERFLOW FAIL SET u8 0 300"), 0);
    assert_eq!(changes(&mut shard, "BITFIELD k OVERFLOW FAIL SET u8 100 300"), 1, "the string grew");
    assert_eq!(changes(&mut shard, "BITFIELD new OVERFLOW FAIL SET u8 0 300"), 1, "the key is there");
    assert_eq!(changes(&mut shard, "BITOP AND missing nothing none"), 0);
    assert_eq!(changes(&mut shard, "BITOP NOT new missing"), 1, "the key is gone");
}

#[test]
fn bits_are_set_where_the_string_is() {
    let mut shard = support::shard(Settings::default(), 1);
    support::run(&mut shard, NOW_MS, &format!("SET k {}", "x".repeat(5000)));
    let address = |shard: &mut ruvio_shard::shard::Shard| {
        let entry = shard.keys.peek(b"k").expect("the key");
        (entry.payload().as_ptr(), entry.encoding())
    };
    let (before, encoding) = address(&mut shard);
    assert_eq!(encoding, Encoding::Bytes);
    assert_eq!(support::run(&mut shard, NOW_MS, "SETBIT k 0 1"), b":0\r\n");
    assert_eq!(address(&mut shard), (before, Encoding::EditedBytes));
}

#[test]
fn a_versioned_value_is_not_changed_in_place() {
    let mut shard = support::shard(Settings::default(), 1);
    support::run(&mut shard, NOW_MS, "SETV k abc");
    for line in ["SETBIT k 1 1", "BITFIELD k SET u8 0 1"] {
        let reply = support::run(&mut shard, NOW_MS, line);
        assert_eq!(reply, b"-ERR the value has a version, change it with SETV\r\n", "{line}");
    }
    assert_eq!(support::run(&mut shard, NOW_MS, "BITOP NOT d k"), b":3\r\n");
}
