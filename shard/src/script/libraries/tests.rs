mod properties;

use mlua::{Lua, StdLib};

/// An interpreter with the libraries, as scripts find them.
fn interpreter() -> Lua {
    let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
    let lua = Lua::new_with(libraries, mlua::LuaOptions::default()).unwrap();
    super::install(&lua).unwrap();
    lua
}

/// What Redis 7.0.15 answers for each expression: results, or the error, as `prelude.lua` writes them.
#[test]
fn expressions_give_what_redis_gives() {
    let lua = interpreter();
    let prelude = include_str!("tests/prelude.lua").trim_end();
    let mut differences = Vec::new();
    let cases: Vec<_> = include_str!("tests/recorded.txt").split("\n\n").collect();
    for case in &cases {
        let (expression, expected) = case.trim_end().split_once("\n=> ").unwrap();
        let script = format!("{prelude}\nlocal function run() return {expression} end return shown(pcall(run))");
        let given: mlua::LuaString = lua.load(script).set_name("@user_script").call(()).unwrap();
        let given = given.to_str().unwrap();
        if *given != *expected {
            differences.push(format!("{expression}\n  Redis: {expected}\n  here:  {}", &*given));
        }
    }
    assert!(cases.len() > 400);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn errors_are_strings_for_scripts_and_for_the_engine() {
    let lua = interpreter();
    let kind: String = lua.load("return type(select(2, pcall(cjson.decode, 'x')))").eval().unwrap();
    assert_eq!(kind, "string");
    let error = lua.load("local a\nreturn cjson.decode('x')").set_name("@user_script").exec().unwrap_err();
    let text = "user_script:2: Expected value but found invalid token at character 1";
    assert!(matches!(&error, mlua::Error::RuntimeError(message) if message.starts_with(text)), "{error:?}");
}

#[test]
fn errors_in_coroutines_name_the_line_in_them() {
    let lua = interpreter();
    let script = "local step = coroutine.wrap(function()\nreturn pcall(function() return struct.size('s') end) end)\nreturn step()";
    let (ended, message): (bool, String) = lua.load(script).set_name("@user_script").eval().unwrap();
    assert!(!ended);
    assert_eq!(message, "user_script:2: bad argument #1 to 'size' (option 's' has no fixed size)");
}

/// Strings under way count against the limit, so that a small script cannot make a large one of them.
#[test]
fn the_memory_limit_holds_for_what_is_being_built() {
    const LIMIT_BYTES: usize = 24 << 20;
    let scripts = [
        "local s, t = string.rep('x', 1000000), {} for i = 1, 1000 do t[i] = s end return #cjson.encode(t)",
        "local s, t = string.rep('x', 1000000), {} for i = 1, 1000 do t[i] = s end return #cmsgpack.pack(t)",
        "local s = string.rep('\\1', 2000000) return #cjson.encode({s, s, s})",
        "local s = string.rep('x', 1000000) return #struct.pack(string.rep('s', 200), unpack((function() local t = {} for i = 1, 200 do t[i] = s end return t end)()))",
        "local j = cjson.new() j.encode_sparse_array(false, 0) return #j.encode({[2147483647] = 1})",
        "return cmsgpack.unpack('\\221\\255\\255\\255\\255' .. string.rep('\\144', 1000000))",
        "return cjson.decode('[' .. string.rep('[],', 1000000))",
    ];
    for script in scripts {
        let lua = interpreter();
        lua.set_memory_limit(LIMIT_BYTES).unwrap();
        let error = lua.load(script).eval::<mlua::Value>().unwrap_err();
        let is_memory_error = match &error {
            mlua::Error::MemoryError(_) => true,
            mlua::Error::RuntimeError(message) => message.starts_with("not enough memory"),
            _ => false,
        };
        assert!(is_memory_error, "{script}: {error:?}");
        let limit = lua.set_memory_limit(0).unwrap();
        assert_eq!(limit, LIMIT_BYTES, "the limit is as it was");
    }
}

#[test]
fn nesting_and_results_end_in_an_error_when_the_stack_does() {
    let cases = [
        ("return cmsgpack.unpack(string.rep('\\145', 1000000))", "stack overflow"),
        ("return cmsgpack.unpack(string.rep('\\129\\1', 1000000))", "stack overflow"),
        ("return cmsgpack.unpack(string.rep('\\1', 1000000))", "stack overflow (too many return values at once"),
        ("return cmsgpack.unpack(string.rep('\\161a', 1000000))", "stack overflow (too many return values at once"),
        ("return struct.unpack(string.rep('b', 10000), string.rep('x', 10000))", "stack overflow (too many results)"),
        ("return struct.unpack(string.rep('c1', 10000), string.rep('x', 10000))", "stack overflow (too many results)"),
        (
            "cjson.decode_max_depth(2147483647) return cjson.decode(string.rep('[', 1000000))",
            "Found too many nested data",
        ),
        (
            "cjson.decode_max_depth(2147483647) return cjson.decode(string.rep('{\"a\":', 1000000))",
            "Found too many nested",
        ),
        ("cjson.encode_max_depth(2147483647) local t = {} t[1] = t return cjson.encode(t)", "excessive nesting"),
        ("cjson.encode_max_depth(2147483647) local t = {} t.a = t return cjson.encode(t)", "excessive nesting"),
    ];
    for (script, expected) in cases {
        let lua = interpreter();
        let script = format!("return pcall(function() {script} end)");
        let (succeeded, message): (bool, mlua::Value) = lua.load(script.as_str()).eval().unwrap();
        let message = message.to_string().unwrap();
        assert!(!succeeded && message.contains(expected), "{script}: {message}");
        // The interpreter is as good as before.
        let again: String = lua.load("return cjson.encode({cmsgpack.unpack(cmsgpack.pack({1}))})").eval().unwrap();
        assert_eq!(again, "[[1]]");
    }
}

#[test]
fn thousands_of_results_and_levels_are_fine() {
    let lua = interpreter();
    let counts: (i64, i64, i64) = lua
        .load(
            "cjson.decode_max_depth(10000) cjson.encode_max_depth(10000)
            local deep = string.rep('[', 3000) .. string.rep(']', 3000)
            return select('#', cmsgpack.unpack(string.rep('\\161a', 7000))),
                select('#', struct.unpack(string.rep('c1', 7000), string.rep('x', 7000))),
                #string.gsub(cjson.encode(cjson.decode(deep)), '[{}]', '')",
        )
        .eval()
        .unwrap();
    assert_eq!(counts, (7000, 7001, 5998));
}
