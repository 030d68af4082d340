//! What scripts must not reach or change. Each advisory about Redis's scripts has a test.

use super::*;

const READ_ONLY: &str = "Attempt to modify a readonly table";

#[test]
fn what_is_global_is_what_redis_has() {
    let script = "local names = {} for name in pairs(_G) do names[#names + 1] = name end table.sort(names) \
        return table.concat(names, ' ')";
    let names = "ARGV KEYS _G _VERSION __redis__err__handler assert bit cjson cmsgpack collectgarbage coroutine error gcinfo \
        getmetatable ipairs load loadstring math next os pairs pcall rawequal rawget rawset redis select server setmetatable \
        string struct table tonumber tostring type unpack xpcall";
    assert_eq!(eval(script), format!("${}\r\n{names}\r\n", names.len()));
    assert_eq!(eval("local r = {} for name in pairs(os) do r[#r + 1] = name end return r"), "*1\r\n$5\r\nclock\r\n");
}

#[test]
fn what_is_dangerous_is_not_there() {
    for name in [
        "debug", "dofile", "ffi", "getfenv", "io", "jit", "loadfile", "module", "newproxy", "package", "print",
        "require", "setfenv",
    ] {
        let message = format!("ERR user_script:1: Script attempted to access nonexistent global variable '{name}'");
        assert_eq!(error_of(&format!("return {name}")), message);
    }
    for name in ["execute", "exit", "getenv", "remove", "rename", "time", "tmpname"] {
        assert_eq!(eval(&format!("return type(os.{name})")), "$3\r\nnil\r\n", "{name}");
    }
}

/// CVE-2022-24735: a script must not put code where a later one, of another user, runs it.
#[test]
fn shared_tables_are_read_only() {
    let placed = format!("ERR user_script:1: {READ_ONLY}");
    let bare = format!("ERR {READ_ONLY}");
    let engine = engine();
    for script in [
        "x = 1",
        "redis = nil",
        "KEYS = {}",
        "_G.x = 1",
        "_G[1] = 1",
        "redis.call = nil",
        "redis.x = 1",
        "string.len = nil",
        "math.random = 1",
        "cjson.encode = nil",
        "cmsgpack.x = 1",
        "struct.x = 1",
        "bit.x = 1",
        "getmetatable('').__index = nil",
        "getmetatable('').__gc = nil",
        "getmetatable(_G).__index = nil",
        "loadstring('string.x = 1', '@user_script')()",
        "coroutine.wrap(function() table.x = 1 end)()",
    ] {
        let message = error_with(&engine, script, &mut FakeHost::default());
        let expected =
            if script.contains("wrap") { placed.replace("1: A", "1: user_script:1: A") } else { placed.clone() };
        assert_eq!(message, expected, "{script}");
    }
    for script in [
        "rawset(_G, 'x', 1)",
        "rawset(redis, 'call', 1)",
        "rawset(getmetatable(''), '__index', 1)",
        "setmetatable(_G, {})",
        "setmetatable(string, nil)",
        "setmetatable(getmetatable(''), {})",
        "table.insert(string, 1)",
        "table.insert(_G, 1, 1)",
    ] {
        assert_eq!(error_with(&engine, script, &mut FakeHost::default()), bare, "{script}");
    }
    // And nothing of that had an effect.
    let script = "return {('abc'):len(), type(redis.call), #string, tostring(rawget(_G, 'x')), type(math.random)}";
    let reply = eval_with(&engine, script, &mut FakeHost::default());
    assert_eq!(reply, "*5\r\n:3\r\n$8\r\nfunction\r\n:0\r\n$3\r\nnil\r\n$8\r\nfunction\r\n");
}

/// Read-only tables are seen through another one; whatever walks them must never hand the one behind it out.
#[test]
fn the_tables_behind_are_never_handed_out() {
    let engine = engine();
    for expression in [
        "select(2, pairs(redis))",
        "select(2, pairs(_G))",
        "_G",
        "_G._G",
        "getmetatable('').__index",
        "getmetatable('')",
        "getmetatable(_G)",
        "rawget(_G, 'redis')",
        "rawget(_G, '_G')",
        "select(2, next(redis, nil)) and redis",
    ] {
        let script = format!("local t = {expression} t.x = 1");
        let message = error_with(&engine, &script, &mut FakeHost::default());
        assert!(message.ends_with(READ_ONLY), "{expression}: {message}");
    }
    let script = "for _, t in pairs(_G) do if type(t) == 'table' and t ~= KEYS and t ~= ARGV then \
        local ok = pcall(rawset, t, 'x', 1) if ok then return 'written' end \
        if getmetatable(t) and t ~= _G then return 'metatable' end end end return 'fine'";
    assert_eq!(eval_with(&engine, script, &mut FakeHost::default()), "$4\r\nfine\r\n");
    // Nor does a metamethod of the globals get to see it.
    let script = "local seen getmetatable(_G).__index({}, 'x')";
    assert!(error_with(&engine, script, &mut FakeHost::default()).contains("nonexistent global variable 'x'"));
}

#[test]
fn read_only_tables_read_as_what_they_are() {
    for (expression, reply) in [
        ("type(next(redis))", "$6\r\nstring\r\n"),
        ("rawget(redis, 'call') == redis.call", ":1\r\n"),
        ("redis == server", ":1\r\n"),
        ("_G == _G._G", ":1\r\n"),
        ("_G.redis == redis", ":1\r\n"),
        ("getmetatable('').__index == string", ":1\r\n"),
        ("type(getmetatable(_G).__index)", "$8\r\nfunction\r\n"),
        ("type(getmetatable(redis))", "$3\r\nnil\r\n"),
        ("type(redis.nothing)", "$3\r\nnil\r\n"),
        ("('%d'):format(5)", "$1\r\n5\r\n"),
    ] {
        assert_eq!(eval(&format!("return {expression}")), reply, "{expression}");
    }
}

/// CVE-2024-46981: code that the collector calls, in whatever moment.
#[test]
fn there_are_no_finalizers() {
    assert!(error_of("newproxy(true)").contains("nonexistent global variable 'newproxy'"));
    let script = "local ran = false for i = 1, 10 do setmetatable({}, {__gc = function() ran = true end}) end \
        collectgarbage() collectgarbage() return tostring(ran)";
    assert_eq!(eval(script), "$5\r\nfalse\r\n");
}

/// CVE-2025-49844: the parser's name of a chunk was collected while it was still in use.
#[test]
fn names_of_chunks_outlive_the_collector() {
    let script = "collectgarbage('setpause', 0) collectgarbage('setstepmul', 100000) \
        for i = 1, 500 do \
          loadstring('return {' .. ('\"' .. i .. 'x\",'):rep(50) .. '}', ('n'):rep(i) .. '\\0tail') \
          loadstring(('local a = 1 '):rep(i % 9) .. ('}'):rep(i)) \
          load(function() collectgarbage() return nil end, '=' .. ('q'):rep(i)) \
        end \
        return select(2, loadstring('x =', '=name'))";
    assert_eq!(eval(script), "$36\r\nname:1: unexpected symbol near '<eof>'\r\n".replace("$36", "$38"));
}

/// CVE-2025-46817: a range whose length does not fit a C integer.
#[test]
fn unpack_checks_its_range() {
    for arguments in ["{}, 0, 2^31 - 1", "{}, -2^31, 2^31 - 1", "{}, 1, 8001", "{}, -2^31, 0", "{}, 2^31 - 1, 2^31"] {
        let script = format!("return {{pcall(unpack, {arguments})}}");
        let reply = eval(&script);
        let refused = "*2\r\n$-1\r\n$26\r\ntoo many results to unpack\r\n";
        assert!(reply == refused || reply == "*1\r\n:1\r\n", "{arguments}: {reply}");
    }
    assert_eq!(eval("return select('#', unpack({}, 1, 7000))"), ":7000\r\n");
    assert_eq!(eval("return {unpack({1, 2, 3}, 2, 3)}"), "*2\r\n:2\r\n:3\r\n");
    assert_eq!(eval("return select('#', unpack({1, 2}, 3, 2))"), ":0\r\n");
}

/// CVE-2025-46818: metatables of basic types are shared by the scripts of all users.
#[test]
fn metatables_of_basic_types_are_closed() {
    for value in ["''", "1", "true", "nil", "function() end", "coroutine.create(function() end)"] {
        let script =
            format!("local m = getmetatable({value}) if m then m.__index = function() return 1 end end return 1");
        let reply = eval(&script);
        assert!(reply == ":1\r\n" || reply.contains(READ_ONLY), "{value}: {reply}");
    }
    assert!(error_of("setmetatable('', {})").contains("table expected, got string"));
}

/// CVE-2025-46819: the length of a long bracket did not fit a C integer.
#[test]
fn long_brackets_are_bounded() {
    let script = "local level = ('='):rep(300000) \
        local f = loadstring('return #[' .. level .. '[abc]' .. level .. ']') \
        local g, message = loadstring('return [' .. level .. 'x') \
        return {f(), type(g), type(message)}";
    assert_eq!(eval(script), "*3\r\n:3\r\n$3\r\nnil\r\n$6\r\nstring\r\n");
    // A text in which levels could count beyond an integer is not looked at.
    let limits = Limits { memory_bytes: 1 << 30 };
    let engine = Engine::new(limits).expect("an interpreter");
    let script = "return select(2, loadstring('[' .. ('='):rep(70000000)))";
    assert_eq!(eval_with(&engine, script, &mut FakeHost::default()), "$17\r\nchunk is too long\r\n");
}

#[test]
fn bytecode_is_not_loaded() {
    let dumped = "local code = string.dump(function() return 1 end) ";
    for load in [
        "loadstring(code)",
        "loadstring(code, 'name')",
        "load((function() local n = 0 return function() n = n + 1 return n == 1 and code or nil end end)())",
        "load((function() local n = 0 return function() n = n + 1 return code:sub(n, n) end end)())",
    ] {
        let script = format!("{dumped} local f, message = {load} return {{type(f), message}}");
        let reply = eval(&script);
        assert!(reply.starts_with("*2\r\n$3\r\nnil\r\n$"), "{load}: {reply}");
        assert!(reply.contains("unexpected symbol near '<\\27>'") || reply.contains("near"), "{load}: {reply}");
    }
    let engine = engine();
    let (reply, _) = run_with(&engine, b"\x1bLuaQ\0\x01\x04", &mut FakeHost::default(), Protocol::Resp2);
    assert!(String::from_utf8_lossy(&reply).starts_with("-ERR Error compiling script (new function): user_script:1: "));
}

#[test]
fn pieces_are_loaded_as_one_text() {
    for (script, reply) in [
        ("local n = 0 return load(function() n = n + 1 return ({'ret', 'urn ', '5'})[n] end)()", ":5\r\n"),
        ("return type(load(function() return '' end))", "$8\r\nfunction\r\n"),
        (
            "return select(2, load(function() return {} end))",
            "$51\r\nuser_script:1: reader function must return a string\r\n",
        ),
        ("return select(2, load(function() error('x', 0) end))", "$1\r\nx\r\n"),
        ("return select(2, load(function() return nil end, 'a'))", "$-1\r\n"),
    ] {
        assert_eq!(eval(script), reply, "{script}");
    }
}

#[test]
fn what_a_script_does_to_the_collector_ends_with_it() {
    let engine = engine();
    let mut host = FakeHost::default();
    eval_with(&engine, "collectgarbage('stop') collectgarbage('setpause', 100000)", &mut host);
    let garbage = "for i = 1, 200000 do local t = {i} end return collectgarbage('count') < 20000";
    assert_eq!(eval_with(&engine, garbage, &mut host), ":1\r\n");
}
