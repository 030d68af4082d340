//! What scripts must not use up: memory, stacks, time.

use super::*;

#[test]
fn memory_is_bounded() {
    let engine = engine();
    for script in [
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do t = {t} end",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
        "local t = {} for i = 1, 1e6 do t[i] = ('x'):rep(100) .. i end return table.concat(t)",
        "return load(function() return 'x = 1 ' end)",
        "return string.rep('x', 2^31 - 1)",
        "return string.rep('x', 6000000) .. string.rep('y', 6000000)",
    ] {
        let message = error_with(&engine, script, &mut FakeHost::default());
        assert!(message.contains("not enough memory") || message.contains("chunk is too long"), "{script}: {message}");
        assert!(engine.used_memory() < 10 << 20, "{script} leaves {} bytes", engine.used_memory());
    }
    assert_eq!(eval_with(&engine, "return #string.rep('x', 1000000)", &mut FakeHost::default()), ":1000000\r\n");
}

#[test]
fn limits_can_be_changed() {
    let engine = engine();
    let script = "return #string.rep('x', 1000000)";
    engine.set_limits(Limits { memory_bytes: 1 << 20 });
    assert!(error_with(&engine, script, &mut FakeHost::default()).contains("not enough memory"));
    engine.set_limits(Limits { memory_bytes: 16 << 20 });
    assert_eq!(eval_with(&engine, script, &mut FakeHost::default()), ":1000000\r\n");
}

#[test]
fn garbage_does_not_count_for_long() {
    // Many times the limit, a little of it in use at a time.
    let script = "local s = ('x'):rep(1000000) for i = 1, 200 do s = ('x'):rep(999990) .. i end return #s";
    assert_eq!(eval(script), ":999993\r\n");
    let script = "local n = 0 for i = 1, 500000 do local t = {i} n = n + #t end return n";
    assert_eq!(eval(script), ":500000\r\n");
}

#[test]
fn recursion_ends_in_an_error() {
    let engine = engine();
    for (script, message) in [
        ("local function f() return 1 + f() end f()", "stack overflow"),
        ("local function f() local ok, e = pcall(f) if not ok then error(e, 0) end end f()", "C stack overflow"),
        ("local function f() return (('a'):gsub('a', f)) end f()", "C stack overflow"),
        ("local function f() table.sort({1, 2}, f) end f()", "C stack overflow"),
        ("local function f() coroutine.wrap(f)() end f()", "C stack overflow"),
        ("local t = setmetatable({}, {__index = function(t, k) return t[k] end}) return t.x", "C stack overflow"),
        ("local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x", "loop in gettable"),
        ("assert(loadstring(('('):rep(100000)))", "chunk has too many syntax levels"),
        ("assert(loadstring('return ' .. ('{'):rep(100000)))", "chunk has too many syntax levels"),
        ("assert(loadstring('return ' .. ('- '):rep(100000) .. '1'))", "chunk has too many syntax levels"),
        ("return ('a'):find(('a*'):rep(100000))", "pattern too complex"),
        ("return ('a'):rep(9):match(('a?'):rep(100000))", "pattern too complex"),
        ("return ('a'):gsub(('(a)'):rep(100000), '')", "pattern too complex"),
        ("for w in ('a'):gmatch(('a-'):rep(100000)) do end", "pattern too complex"),
        ("return ('%99999d'):format(1)", "invalid format (width or precision too long)"),
        ("return ('x'):rep(100000):byte(1, -1)", "string slice too long"),
    ] {
        let reply = eval_with(&engine, script, &mut FakeHost::default());
        assert!(reply.starts_with('-') && reply.contains(message), "{script}: {reply}");
    }
    // These recurse until there is no more room, catch that and return.
    for script in [
        "local function f() return pcall(f) end f() return 1",
        "local function f() return xpcall(f, f) end f() return 1",
        "local function f() return coroutine.resume(coroutine.create(f)) end f() return 1",
        "xpcall(function() error('x') end, function(e) error(e) end) return 1",
    ] {
        assert_eq!(eval_with(&engine, script, &mut FakeHost::default()), ":1\r\n", "{script}");
    }
}

#[test]
fn patterns_of_a_normal_size_are_matched() {
    let pattern = "^(%w+)://([%w.-]+):?(%d*)(/?[^?#]*)%??([^#]*)#?(.*)$";
    let script = format!("return {{('http://a.b:80/c?d#e'):match('{pattern}')}}");
    assert_eq!(eval(&script), "*6\r\n$4\r\nhttp\r\n$3\r\na.b\r\n$2\r\n80\r\n$2\r\n/c\r\n$1\r\nd\r\n$1\r\ne\r\n");
    assert_eq!(eval("return (('x*'):rep(1000)):find(('x*'):rep(1000), 1, true)"), ":1\r\n");
}

#[test]
fn a_long_script_is_asked_for_again_and_again() {
    let mut host = FakeHost::default();
    eval_with(&engine(), "for i = 1, 1000000 do end", &mut host);
    assert!((100..1000).contains(&host.pulses), "{} pulses", host.pulses);
    let mut host = FakeHost::default();
    eval_with(&engine(), "local x = 1 return x", &mut host);
    assert_eq!(host.pulses, 0);
}

#[test]
fn what_takes_long_without_instructions_is_asked_for_too() {
    for script in [
        "local s = ('x'):rep(1000000) for i = 1, 20 do s:find('y') end",
        "local s = ('x'):rep(1000000) for i = 1, 200 do local t = s .. i end",
        "local t = {} for i = 1, 100000 do t[i] = i end for i = 1, 20 do table.insert(t, 1, i) table.remove(t, 1) end",
        "for i = 1, 2000 do coroutine.wrap(function() end)() end",
        "for i = 1, 10 do pcall(string.rep, 'x', 2^31 - 1) pcall(function() local s = 'x' while true do s = s .. s end end) end",
    ] {
        let mut host = FakeHost::default();
        eval_with(&engine(), script, &mut host);
        assert!(host.pulses >= 10, "{script}: {} pulses", host.pulses);
    }
}

#[test]
fn nothing_catches_a_kill() {
    let engine = engine();
    let forever = "function() while true do end end";
    for script in [
        "while true do end".to_owned(),
        format!("while true do pcall({forever}) end"),
        format!("while true do xpcall({forever}, {forever}) end"),
        format!("while true do xpcall({forever}, function() return 1 end) end"),
        format!("while true do coroutine.resume(coroutine.create({forever})) end"),
        format!("while true do pcall(coroutine.wrap({forever})) end"),
        format!("coroutine.wrap(function() pcall(coroutine.wrap(function() pcall({forever}) end)) {forever}() end)()")
            .replace(&format!("{forever}()"), &format!("({forever})()")),
        format!("while true do load({forever}) end"),
        format!("while true do pcall(string.gsub, 'a', 'a', {forever}) end"),
        format!("while true do pcall(table.sort, {{1, 2, 3}}, {forever}) end"),
        format!(
            "while true do pcall(function() local t = setmetatable({{}}, {{__index = {forever}}}) return t.x end) end"
        ),
        format!("while true do pcall(tostring, setmetatable({{}}, {{__tostring = {forever}}})) end"),
        "while true do coroutine.wrap(function() end)() end".to_owned(),
        "while true do pcall(redis.call) end".to_owned(),
    ] {
        let mut host = FakeHost { kill_at: Some(3), ..FakeHost::default() };
        let (reply, ran) = run_with(&engine, script.as_bytes(), &mut host, Protocol::Resp2);
        let reply = String::from_utf8_lossy(&reply).into_owned();
        assert!(reply.starts_with("-ERR Script killed by user with SCRIPT KILL. script: "), "{script}: {reply}");
        assert!(ran.killed);
        assert_eq!(host.pulses, 3, "{script}: asked again after the kill");
        // The next script is none the wiser.
        assert_eq!(eval_with(&engine, "return 1", &mut FakeHost::default()), ":1\r\n");
    }
}

#[test]
fn memory_does_not_grow_from_run_to_run() {
    let engine = engine();
    let mut host = FakeHost::replying(&[("get", b"*2\r\n$3\r\nabc\r\n$3\r\ndef\r\n")]);
    let script = "local t = {} for i = 1, 10 do t[i] = redis.call('get', KEYS[1], ARGV[1] .. i) end return t";
    for _ in 0..1000 {
        eval_with(&engine, script, &mut host);
        host.called.clear();
    }
    assert!(engine.used_memory() < 2 << 20, "{} bytes", engine.used_memory());
}

#[test]
fn forgotten_scripts_take_no_memory() {
    let engine = engine();
    for number in 0..500 {
        let script = format!("return {{{}}}", vec![format!("'{number}'"); 50].join(","));
        eval_with(&engine, &script, &mut FakeHost::default());
        engine.forget(&Digest::of(script.as_bytes()));
    }
    assert!(engine.used_memory() < 2 << 20, "{} bytes", engine.used_memory());
}
