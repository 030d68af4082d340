//! What holds for any input: round trips give back what went in, and no bytes can do harm.

use mlua::{Lua, Value};
use proptest::prelude::*;

use super::interpreter;

/// A value that survives both JSON and MessagePack: no empty tables, and keys that are no integers.
#[derive(Clone, Debug)]
enum Tree {
    Number(f64),
    Text(Vec<u8>),
    Boolean(bool),
    Array(Vec<Tree>),
    Object(Vec<(Vec<u8>, Tree)>),
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        (-1_000_000_000i64..1_000_000_000).prop_map(|integer| Tree::Number(integer as f64)),
        // What 14 digits hold exactly.
        (-1_000_000i64..1_000_000).prop_map(|integer| Tree::Number(integer as f64 / 1024.0)),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Tree::Text),
        any::<bool>().prop_map(Tree::Boolean),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        let pair = (prop::collection::vec(any::<u8>(), 0..12), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 1..8).prop_map(Tree::Array),
            prop::collection::vec(pair, 1..8).prop_map(Tree::Object),
        ]
    })
}

fn build(lua: &Lua, tree: &Tree) -> Value {
    match tree {
        Tree::Number(number) => Value::Number(*number),
        Tree::Text(bytes) => Value::String(lua.create_string(bytes).unwrap()),
        Tree::Boolean(boolean) => Value::Boolean(*boolean),
        Tree::Array(items) => {
            let items = items.iter().map(|item| build(lua, item));
            Value::Table(lua.create_sequence_from(items).unwrap())
        }
        Tree::Object(pairs) => {
            let table = lua.create_table().unwrap();
            for (key, value) in pairs {
                table.raw_set(lua.create_string(key).unwrap(), build(lua, value)).unwrap();
            }
            Value::Table(table)
        }
    }
}

const SAME: &str = "local function same(a, b) if type(a) ~= 'table' or type(b) ~= 'table' then return a == b end
    for key, value in pairs(a) do if not same(value, b[key]) then return false end end
    for key in pairs(b) do if a[key] == nil then return false end end return true end ";

proptest! {
    #[test]
    fn json_gives_back_what_was_encoded(tree in tree()) {
        let lua = interpreter();
        let script = format!("{SAME} local value = ... return same(value, cjson.decode(cjson.encode(value)))");
        let function = lua.load(script).into_function().unwrap();
        prop_assert!(function.call::<bool>(build(&lua, &tree)).unwrap());
    }

    #[test]
    fn messagepack_gives_back_what_was_packed(tree in tree(), other in tree()) {
        let lua = interpreter();
        let script = format!(
            "{SAME} local a, b = ... local packed = cmsgpack.pack(a, b)
            local c, d = cmsgpack.unpack(packed) if not (same(a, c) and same(b, d)) then return false end
            local next, first = cmsgpack.unpack_one(packed) local last, second = cmsgpack.unpack_one(packed, next)
            return same(a, first) and same(b, second) and last == -1"
        );
        let function = lua.load(script).into_function().unwrap();
        prop_assert!(function.call::<bool>((build(&lua, &tree), build(&lua, &other))).unwrap());
    }

    #[test]
    fn numbers_survive_messagepack(bits in any::<u64>()) {
        let lua = interpreter();
        let number = f64::from_bits(bits);
        let function = lua.load("return cmsgpack.unpack(cmsgpack.pack(...))").into_function().unwrap();
        let back: f64 = function.call(number).unwrap();
        prop_assert!(back == number || (back.is_nan() && number.is_nan()));
    }

    #[test]
    fn structures_give_back_what_was_packed(
        endian in prop::sample::select(vec!["<", ">"]), alignment in 0u32..5,
        byte in any::<i8>(), short in any::<u16>(), odd in -(1i64 << 39)..(1 << 39), float in any::<f32>(),
        double in any::<f64>(), text in "[a-z]{0,20}", raw in prop::collection::vec(any::<u8>(), 0..30),
    ) {
        prop_assume!(!float.is_nan() && !double.is_nan());
        let lua = interpreter();
        let format = format!("{endian}!{}bHi5xfdsi1c0", 1 << alignment);
        let script = "local format, b, h, i, f, d, s, raw = ...
            local packed = struct.pack(format, b, h, i, f, d, s, #raw, raw)
            local B, H, I, F, D, S, RAW, next = struct.unpack(format, packed)
            return b == B and h == H and i == I and f == F and d == D and s == S and raw == RAW and next == #packed + 1";
        let function = lua.load(script).into_function().unwrap();
        let raw = lua.create_string(raw).unwrap();
        let same: bool = function.call((format, byte, short, odd, float, double, text, raw)).unwrap();
        prop_assert!(same);
    }

    /// Whatever comes out is a value or an error string; nothing panics or runs away.
    #[test]
    fn no_bytes_do_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..200), json in r#"[\[\]{}",:0-9a-fnulrtxINF+\-.\\u ]{0,60}"#,
        format in r"[<>!bBhHlLTiIcsfdx 0-9]{0,20}", position in -20i64..220,
    ) {
        let lua = interpreter();
        let script = "local bytes, json, format, position = ...
            for _, call in ipairs({
                {cjson.decode, bytes}, {cjson.decode, json}, {cmsgpack.unpack, bytes},
                {cmsgpack.unpack_one, bytes, position}, {cmsgpack.unpack_limit, bytes, position, position},
                {struct.unpack, format, bytes, position}, {struct.size, format}, {struct.size, bytes},
                {struct.unpack, bytes, bytes}, {struct.pack, format, position, bytes, 1, 2, 3, 4, 5, 6, 7, 8},
                {cjson.encode, {bytes, [bytes] = position}}, {cmsgpack.pack, bytes, {[position] = bytes}},
            }) do
                -- In a table, for Lua's own pcall has no room behind hundreds of results.
                local done, result = pcall(function() return {call[1](unpack(call, 2))} end)
                if not done and type(result) ~= 'string' then return tostring(result) end
            end return 'harmless'";
        let function = lua.load(script).into_function().unwrap();
        let bytes = lua.create_string(bytes).unwrap();
        let outcome: String = function.call((bytes, json, format, position)).unwrap();
        prop_assert_eq!(outcome, "harmless");
    }

    /// `%.14g` of what has at most 14 digits reads as the same number.
    #[test]
    fn encoded_numbers_read_as_themselves(digits in -99_999_999_999_999i64..=99_999_999_999_999, exponent in -250i32..250) {
        let lua = interpreter();
        let number: f64 = format!("{digits}e{exponent}").parse().unwrap();
        let function = lua.load("return cjson.decode(cjson.encode(...))").into_function().unwrap();
        prop_assert_eq!(function.call::<f64>(number).unwrap(), number);
    }
}
