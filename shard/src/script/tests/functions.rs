//! Libraries of functions.

use super::*;

fn load(engine: &Engine, name: &str, code: &str) -> Result<Vec<FunctionInfo>, String> {
    engine
        .load_library(name, format!("#!lua name={name}\n{code}").as_bytes(), &mut FakeHost::default())
        .map_err(|error| error.text().to_owned())
}

fn call(engine: &Engine, name: &str, host: &mut FakeHost) -> String {
    let keys: OwnedArgs = ["k1", "k2"].into_iter().collect();
    let arguments: OwnedArgs = ["a1"].into_iter().collect();
    let call = ScriptCall { keys: keys.as_args(), arguments: arguments.as_args(), protocol: Protocol::Resp2 };
    let mut reply = Vec::new();
    let ran = engine.run_function(name.as_bytes(), &call, host, &mut reply);
    assert_eq!(ran.error.is_some(), reply.starts_with(b"-"));
    String::from_utf8(reply).expect("text")
}

#[test]
fn a_library_registers_functions_and_keeps_its_locals() {
    let engine = engine();
    let code = "local count = 0 \
        redis.register_function('counted', function(keys, args) count = count + 1 return {count, #keys, keys[2], args[1]} end) \
        redis.register_function{function_name = 'described', callback = function() return redis.call('get') end, \
          description = 'what it does', flags = {'NO-writes', 'allow-stale'}}";
    let functions = load(&engine, "mylib", code).expect("loads");
    assert_eq!(functions[0], FunctionInfo { name: "counted".into(), description: None, flags: ScriptFlags::default() });
    assert_eq!(functions[1].description.as_deref(), Some("what it does"));
    assert_eq!(functions[1].flags.names().collect::<Vec<_>>(), ["no-writes", "allow-stale"]);
    let mut host = FakeHost::replying(&[("get", b":5\r\n")]);
    assert_eq!(call(&engine, "counted", &mut host), "*4\r\n:1\r\n:2\r\n$2\r\nk2\r\n$2\r\na1\r\n");
    assert!(call(&engine, "counted", &mut host).starts_with("*4\r\n:2\r\n"));
    assert_eq!(call(&engine, "described", &mut host), ":5\r\n");
    assert_eq!(call(&engine, "Counted", &mut host), "-ERR Function not found\r\n");
}

#[test]
fn errors_while_loading_are_worded_as_in_redis() {
    let engine = engine();
    let registering = "ERR Error registering functions: ERR ";
    let f = "local f = function() end ";
    for (code, message) in [
        ("redis.register_function()", "wrong number of arguments to redis.register_function"),
        ("redis.register_function('a', f, 1)", "wrong number of arguments to redis.register_function"),
        (
            "redis.register_function('f')",
            "calling redis.register_function with a single argument is only applicable to Lua table (representing named \
             arguments).",
        ),
        ("redis.register_function(f, f)", "first argument to redis.register_function must be a string"),
        ("redis.register_function('f', 'f')", "second argument to redis.register_function must be a function"),
        (
            "redis.register_function('a-b', f)",
            "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long",
        ),
        ("redis.register_function('f', f) redis.register_function('f', f)", "Function already exists in the library"),
        ("redis.register_function{}", "redis.register_function must get a function name argument"),
        ("redis.register_function{function_name = 'x'}", "redis.register_function must get a callback argument"),
        (
            "redis.register_function{function_name = f}",
            "function_name argument given to redis.register_function must be a string",
        ),
        (
            "redis.register_function{description = f}",
            "description argument given to redis.register_function must be a string",
        ),
        (
            "redis.register_function{callback = 'f'}",
            "callback argument given to redis.register_function must be a function",
        ),
        (
            "redis.register_function{flags = 1}",
            "flags argument to redis.register_function must be a table representing function flags",
        ),
        ("redis.register_function{flags = {'a'}}", "unknown flag given"),
        ("redis.register_function{flags = {{}}}", "unknown flag given"),
        ("redis.register_function{nope = 1}", "unknown argument given to redis.register_function"),
        ("redis.register_function{1}", "unknown argument given to redis.register_function"),
        ("redis.register_function{[{}] = 1}", "named argument key given to redis.register_function is not a string"),
        ("error('mine')", "user_function:2: Script attempted to access nonexistent global variable 'error'"),
        ("f.x = 1", "user_function:2: attempt to index local 'f' (a function value)"),
        ("x = 1", "user_function:2: Attempt to modify a readonly table"),
        ("redis.x = 1", "user_function:2: Attempt to modify a readonly table"),
        ("redis.call('get')", "user_function:2: Script attempted to access nonexistent global variable 'call'"),
        ("redis.setresp(3)", "user_function:2: Script attempted to access nonexistent global variable 'setresp'"),
        ("tostring(1)", "user_function:2: Script attempted to access nonexistent global variable 'tostring'"),
        ("local g = _G", "user_function:2: Script attempted to access nonexistent global variable '_G'"),
    ] {
        assert_eq!(load(&engine, "lib", &format!("{f}{code}")), Err(format!("{registering}{message}")), "{code}");
    }
    assert_eq!(load(&engine, "lib", "return 1"), Err("ERR No functions registered".into()));
    assert_eq!(
        load(&engine, "lib", "x y"),
        Err("ERR Error compiling function: user_function:2: '=' expected near 'y'".into())
    );
}

#[test]
fn nothing_stays_of_what_failed() {
    let engine = engine();
    let good = "redis.register_function('f', function() return 1 end)";
    load(&engine, "one", good).expect("loads");
    let used = engine.used_functions_memory();
    for code in [
        "redis.register_function('g', function() return 2 end) error('x')",
        "redis.register_function('g', function() return 2 end) redis.register_function('f', function() end)",
        "x y",
    ] {
        for _ in 0..300 {
            load(&engine, "two", code).expect_err("fails");
        }
        assert_eq!(call(&engine, "g", &mut FakeHost::default()), "-ERR Function not found\r\n");
        assert_eq!(call(&engine, "f", &mut FakeHost::default()), ":1\r\n");
    }
    assert!(engine.used_functions_memory() < used + (2 << 20));
    let other = "redis.register_function('f', function() return 3 end)";
    assert_eq!(load(&engine, "two", other), Err("ERR Function f already exists".into()));
    // A library may replace itself, and an attempt that fails leaves the old one.
    load(&engine, "one", &format!("{good} error('x')")).expect_err("fails");
    assert_eq!(call(&engine, "f", &mut FakeHost::default()), ":1\r\n");
    load(&engine, "one", "redis.register_function('h', function() return 4 end)").expect("loads");
    assert_eq!(call(&engine, "f", &mut FakeHost::default()), "-ERR Function not found\r\n");
    assert_eq!(call(&engine, "h", &mut FakeHost::default()), ":4\r\n");
    assert!(engine.delete_library("one"));
    assert!(!engine.delete_library("one"));
    assert_eq!(call(&engine, "h", &mut FakeHost::default()), "-ERR Function not found\r\n");
    load(&engine, "two", other).expect("loads");
    engine.flush_libraries().expect("an interpreter");
    assert_eq!(call(&engine, "f", &mut FakeHost::default()), "-ERR Function not found\r\n");
}

#[test]
fn functions_find_what_scripts_find_but_for_a_few_things() {
    let engine = engine();
    let code = "local function add(name, f) redis.register_function(name, f) end \
        add('keys', function() return KEYS end) \
        add('register', function() redis.register_function('x', function() end) end) \
        add('write', function() x = 1 end) \
        add('tables', function() local n = 0 for _ in pairs(_G) do n = n + 1 end return {n > 20, type(string.format)} end) \
        add('redis', function() return {type(redis.call), type(redis.breakpoint), type(server.sha1hex)} end) \
        add('raise', function() error({err = 'MY err'}) end) \
        add('poison', function() rawset(string, 'format', nil) end)";
    load(&engine, "lib", code).expect("loads");
    let mut host = FakeHost::default();
    let place = |name: &str| format!("script: {name}, on @user_function:2.\r\n");
    let missing = "Script attempted to access nonexistent global variable 'KEYS'";
    assert_eq!(call(&engine, "keys", &mut host), format!("-ERR user_function:2: {missing} {}", place("keys")));
    assert_eq!(
        call(&engine, "register", &mut host),
        format!("-ERR user_function:2: attempt to call field 'register_function' (a nil value) {}", place("register"))
    );
    assert_eq!(
        call(&engine, "write", &mut host),
        format!("-ERR user_function:2: Attempt to modify a readonly table {}", place("write"))
    );
    assert_eq!(call(&engine, "raise", &mut host), format!("-MY err {}", place("raise")));
    assert_eq!(call(&engine, "tables", &mut host), "*2\r\n:1\r\n$8\r\nfunction\r\n");
    assert_eq!(call(&engine, "redis", &mut host), "*3\r\n$8\r\nfunction\r\n$3\r\nnil\r\n$8\r\nfunction\r\n");
    assert!(call(&engine, "poison", &mut host).starts_with("-ERR Attempt to modify a readonly table"));
}

#[test]
fn loading_and_running_can_be_ended() {
    let engine = engine();
    let mut host = FakeHost { kill_at: Some(2), ..FakeHost::default() };
    let error = engine.load_library("lib", b"#!lua name=lib\nwhile true do end", &mut host).expect_err("ends");
    assert_eq!(error.text(), "ERR Error registering functions: ERR FUNCTION LOAD timeout");
    load(&engine, "lib", "redis.register_function('f', function() while true do end end)").expect("loads");
    let mut host = FakeHost { kill_at: Some(2), ..FakeHost::default() };
    let reply = call(&engine, "f", &mut host);
    assert_eq!(reply, "-ERR Script killed by user with FUNCTION KILL. script: f, on @user_function:2.\r\n");
}

#[test]
fn libraries_may_log_while_they_are_loaded() {
    let engine = engine();
    let mut host = FakeHost::default();
    let code = b"#!lua name=lib\nredis.log(redis.LOG_NOTICE, redis.REDIS_VERSION) redis.register_function('f', function() end)";
    engine.load_library("lib", code, &mut host).expect("loads");
    assert_eq!(host.logged, [(LogLevel::Notice, b"7.4.0".to_vec())]);
}

#[test]
fn scripts_and_functions_do_not_share_an_interpreter() {
    let engine = engine();
    load(&engine, "lib", "redis.register_function('f', function() return 1 end)").expect("loads");
    engine.flush().expect("an interpreter");
    assert_eq!(call(&engine, "f", &mut FakeHost::default()), ":1\r\n");
    eval_with(&engine, "return 1", &mut FakeHost::default());
    engine.flush_libraries().expect("an interpreter");
    assert!(engine.knows(&Digest::of(b"return 1")));
}
