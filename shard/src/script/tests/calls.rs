//! What scripts are given, what they call and what becomes of replies.

use super::*;

#[test]
fn keys_and_arguments_are_tables() {
    assert_eq!(eval("return {KEYS[2], ARGV[3], #KEYS, #ARGV}"), "*4\r\n$2\r\nk2\r\n$2\r\na3\r\n:2\r\n:3\r\n");
}

#[test]
fn every_run_gets_tables_of_its_own() {
    let engine = engine();
    let script = "KEYS[1] = KEYS[1] .. 'x' KEYS[9] = 'y' return {KEYS[1], KEYS[9]}";
    for _ in 0..2 {
        assert_eq!(eval_with(&engine, script, &mut FakeHost::default()), "*2\r\n$3\r\nk1x\r\n$1\r\ny\r\n");
    }
}

#[test]
fn words_of_commands_are_strings_and_numbers() {
    let mut host = FakeHost::replying(&[("set", b"+OK\r\n")]);
    let reply = eval_with(&engine(), "return redis.call('set', 1, 1.5, -0.0, 2^40, 'a\\0b', '')", &mut host);
    assert_eq!(reply, "+OK\r\n");
    assert_eq!(host.only_call(), [&b"set"[..], b"1", b"1.5", b"0", b"1099511627776", b"a\0b", b""]);
}

#[test]
fn wrong_words_are_refused_before_the_command() {
    let wrong = "ERR Lua redis lib command arguments must be strings or integers";
    for word in ["{}", "true", "nil", "function() end"] {
        assert_eq!(error_of(&format!("redis.call('set', {word}, 'x')")), wrong);
    }
    assert_eq!(error_of("redis.call()"), "ERR Please specify at least one argument for this redis lib call");
    assert_eq!(eval("return redis.pcall({})"), format!("-{wrong}\r\n"));
}

#[test]
fn replies_become_values_in_resp2() {
    let mut host = FakeHost::replying(&[
        ("nil", b"$-1\r\n"),
        ("array", b"*3\r\n:1\r\n$-1\r\n*1\r\n$2\r\n\r\n\r\n"),
        ("status", b"+FINE\r\n"),
        ("nested", b"*1\r\n*-1\r\n"),
    ]);
    let engine = engine();
    assert_eq!(eval_with(&engine, "return tostring(redis.call('nil'))", &mut host), "$5\r\nfalse\r\n");
    let script = "local t = redis.call('array') return {t[1] + 1, tostring(t[2]), #t[3][1]}";
    assert_eq!(eval_with(&engine, script, &mut host), "*3\r\n:2\r\n$5\r\nfalse\r\n:2\r\n");
    assert_eq!(eval_with(&engine, "return redis.call('status').ok", &mut host), "$4\r\nFINE\r\n");
    assert_eq!(eval_with(&engine, "return tostring(redis.call('nested')[1])", &mut host), "$5\r\nfalse\r\n");
}

#[test]
fn replies_become_values_in_resp3() {
    let mut host = FakeHost::replying(&[
        ("map", b"%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*1\r\n:2\r\n"),
        ("set", b"~2\r\n$1\r\na\r\n:2\r\n"),
        ("double", b",-1.5e3\r\n"),
        ("big", b"(123456789012345678901234567890\r\n"),
        ("text", b"=7\r\nmkd:a b\r\n"),
        ("null", b"_\r\n"),
        ("true", b"#t\r\n"),
        ("attribute", b"|1\r\n+ttl\r\n:5\r\n:7\r\n"),
    ]);
    let engine = engine();
    for (expression, value) in [
        ("redis.call('map').map.b[1]", ":2\r\n"),
        ("redis.call('set').set[2]", ":1\r\n"),
        ("redis.call('double').double", ":-1500\r\n"),
        ("redis.call('big').big_number", "$30\r\n123456789012345678901234567890\r\n"),
        ("redis.call('text').verbatim_string.format", "$3\r\nmkd\r\n"),
        ("redis.call('text').verbatim_string.string", "$3\r\na b\r\n"),
        ("type(redis.call('null'))", "$3\r\nnil\r\n"),
        ("tostring(redis.call('true'))", "$4\r\ntrue\r\n"),
        ("redis.call('attribute')", ":7\r\n"),
    ] {
        let reply = eval_with(&engine, &format!("redis.setresp(3) return {expression}"), &mut host);
        assert_eq!(reply, value, "{expression}");
    }
    assert!(host.protocols.iter().all(|protocol| *protocol == Protocol::Resp3));
}

#[test]
fn the_protocol_of_replies_is_chosen_for_one_run() {
    let engine = engine();
    let mut host = FakeHost::replying(&[("get", b"$-1\r\n")]);
    eval_with(&engine, "redis.setresp(3) redis.call('get')", &mut host);
    eval_with(&engine, "redis.call('get')", &mut host);
    assert_eq!(host.protocols, [Protocol::Resp3, Protocol::Resp2]);
}

#[test]
fn truncated_replies_of_a_host_do_no_harm() {
    let engine = engine();
    for reply in [&b"*99999999\r\n:1\r\n"[..], b"$50\r\nabc", b"%9\r\n", b"*1\r\n", b"", b"?\r\n", b"=1\r\nx\r\n", b"$"]
    {
        for version in [2, 3] {
            let mut host = FakeHost::replying(&[("get", reply)]);
            let script = format!("redis.setresp({version}) return type(redis.call('get'))");
            assert!(eval_with(&engine, &script, &mut host).starts_with('$'), "{reply:?}");
        }
    }
}

#[test]
fn values_become_replies() {
    for (value, reply) in [
        ("1.9", ":1\r\n"),
        ("'a\\0b'", "$3\r\na\0b\r\n"),
        ("nil", "$-1\r\n"),
        ("false", "$-1\r\n"),
        ("true", ":1\r\n"),
        ("print_nothing", "$-1\r\n"),
        ("{1, 2, nil, 4}", "*2\r\n:1\r\n:2\r\n"),
        ("{1, {2, {}}, 'x', a = 1}", "*3\r\n:1\r\n*2\r\n:2\r\n*0\r\n$1\r\nx\r\n"),
        ("{1,2,3,4,5,6,7,8,9,10}", "*10\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n:10\r\n"),
        ("{ok = 'a\\r\\nb'}", "+a  b\r\n"),
        ("{err = 'MY err\\r\\n'}", "-MY err\r\n"),
        ("{{err = 'MY err'}, 1}", "*2\r\n-MY err\r\n:1\r\n"),
        ("{err = 1, ok = 1}", "*0\r\n"),
        ("{double = 3.5}", "$3\r\n3.5\r\n"),
        ("{map = {a = {1}}}", "*2\r\n$1\r\na\r\n*1\r\n:1\r\n"),
        ("{set = {a = true}}", "*1\r\n$1\r\na\r\n"),
        ("{big_number = '12'}", "$2\r\n12\r\n"),
        ("{verbatim_string = {format = 'txt', string = 'ab'}}", "$2\r\nab\r\n"),
        ("{verbatim_string = {format = 'txt'}}", "*0\r\n"),
    ] {
        let script = format!("local print_nothing = function() end return {value}");
        assert_eq!(eval(&script), reply, "{value}");
    }
}

#[test]
fn values_become_replies_in_resp3() {
    let engine = engine();
    for (value, reply) in [
        ("nil", "_\r\n"),
        ("false", "_\r\n"),
        ("true", ":1\r\n"),
        ("redis.setresp(3) or false", "#f\r\n"),
        ("{redis.setresp(3) or true}", "*1\r\n#t\r\n"),
        ("{double = 3.5}", ",3.5\r\n"),
        ("{double = 1/0}", ",inf\r\n"),
        ("{map = {a = {1}}}", "%1\r\n$1\r\na\r\n*1\r\n:1\r\n"),
        ("{set = {a = true}}", "~1\r\n$1\r\na\r\n"),
        ("{big_number = '12\\r\\n'}", "(12  \r\n"),
        ("{verbatim_string = {format = 'txtx', string = 'ab'}}", "=6\r\ntxt:ab\r\n"),
    ] {
        let script = format!("return {value}");
        let (got, _) = run_with(&engine, script.as_bytes(), &mut FakeHost::default(), Protocol::Resp3);
        assert_eq!(String::from_utf8_lossy(&got), reply, "{value}");
    }
}

#[test]
fn a_reply_that_contains_itself_ends_with_an_error() {
    let reply = eval("local t = {} t[1] = t return t");
    assert!(reply.starts_with("*1\r\n*1\r\n") && reply.ends_with("-ERR reached lua stack limit\r\n"));
    let script = "local t = {} t.map = {[t] = t} return t";
    let limits = Limits { memory_bytes: 1 << 20 };
    let engine = Engine::new(limits).expect("an interpreter");
    let reply = eval_with(&engine, script, &mut FakeHost::default());
    assert!(reply.starts_with("-ERR the reply of the script takes more memory"), "{reply}");
}

#[test]
fn errors_of_commands_end_the_script_or_are_returned() {
    let engine = engine();
    let wrong = "WRONGTYPE Operation against a key";
    let line: &[u8] = b"-WRONGTYPE Operation against a key\r\n";
    let mut host = FakeHost::replying(&[("get", line)]);
    assert_eq!(error_with(&engine, "redis.call('get') return 1", &mut host), wrong);
    let (reply, ran) = run_with(&engine, b"return redis.pcall('get')", &mut host, Protocol::Resp2);
    assert_eq!((&reply[..], ran.is_error_counted), (line, true));
    let script = "local e = redis.pcall('get') return {e.err, tostring(e.ignore_error_stats_update)}";
    assert_eq!(eval_with(&engine, script, &mut host), format!("*2\r\n$33\r\n{wrong}\r\n$4\r\ntrue\r\n"));
    // An error table that is passed on is the same error.
    assert_eq!(error_with(&engine, "error(redis.pcall('get'))", &mut host), wrong);
}

#[test]
fn an_error_names_script_and_line() {
    let script = "\n\nerror('boom')";
    let digest = Digest::of(script.as_bytes());
    assert_eq!(eval(script), format!("-ERR user_script:3: boom script: {digest}, on @user_script:3.\r\n"));
    // Lines are counted with the header.
    let script = "#!lua flags=no-writes\nreturn nope";
    let digest = Digest::of(script.as_bytes());
    let message = "user_script:2: Script attempted to access nonexistent global variable 'nope'";
    assert_eq!(eval(script), format!("-ERR {message} script: {digest}, on @user_script:2.\r\n"));
}

#[test]
fn errors_are_worded_as_in_redis() {
    for (script, message) in [
        ("error({err = 'MY code'})", "MY code"),
        ("error({err = 12})", "12"),
        ("error({})", "ERR unknown error"),
        ("error(nil)", "ERR nil"),
        ("error('a', 0)", "ERR a"),
        ("error(setmetatable({}, {__index = function() error('x') end}))", "ERR unknown error"),
        ("local x = nil + 1", "ERR user_script:1: attempt to perform arithmetic on a nil value"),
        ("return nope", "ERR user_script:1: Script attempted to access nonexistent global variable 'nope'"),
        ("local function f() return f() + 1 end f()", "ERR user_script:1: stack overflow"),
        ("x y", "ERR Error compiling script (new function): user_script:1: '=' expected near 'y'"),
        ("redis.log(1)", "ERR redis.log() requires two arguments or more."),
        ("redis.log('x', 'y')", "ERR First argument must be a number (log level)."),
        ("redis.log(4, 'y')", "ERR Invalid debug level."),
        ("redis.setresp()", "ERR redis.setresp() requires one argument."),
        ("redis.setresp(4)", "ERR RESP version must be 2 or 3."),
        ("redis.set_repl()", "ERR redis.set_repl() requires two arguments."),
        ("redis.set_repl(9)", "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE."),
        ("redis.sha1hex()", "ERR wrong number of arguments"),
        ("redis.acl_check_cmd('nope')", "ERR Invalid command passed to redis.acl_check_cmd()"),
    ] {
        assert_eq!(error_of(script), message, "{script}");
    }
}

#[test]
fn error_and_status_replies_are_tables() {
    for (expression, reply) in [
        ("redis.error_reply('foo')", "-ERR foo\r\n"),
        ("redis.error_reply('-FOO bar')", "-FOO bar\r\n"),
        ("redis.error_reply('FOO bar')", "-FOO bar\r\n"),
        ("redis.error_reply('')", "-ERR \r\n"),
        ("redis.error_reply(12)", "-ERR wrong number or type of arguments\r\n"),
        ("redis.status_reply('FOO')", "+FOO\r\n"),
        ("redis.status_reply()", "-ERR wrong number or type of arguments\r\n"),
        ("redis.sha1hex('')", "$40\r\nda39a3ee5e6b4b0d3255bfef95601890afd80709\r\n"),
        ("redis.sha1hex({})", "$40\r\nda39a3ee5e6b4b0d3255bfef95601890afd80709\r\n"),
        ("redis.replicate_commands()", ":1\r\n"),
        ("redis.breakpoint()", "$-1\r\n"),
        ("redis.acl_check_cmd('get', 'k')", ":1\r\n"),
        ("redis.acl_check_cmd('forbidden')", "$-1\r\n"),
        ("redis.REDIS_VERSION", "$5\r\n7.4.0\r\n"),
        ("redis.REDIS_VERSION_NUM", ":459776\r\n"),
        ("tostring(redis.register_function)", "$3\r\nnil\r\n"),
    ] {
        assert_eq!(eval(&format!("return {expression}")), reply, "{expression}");
    }
}

#[test]
fn caught_errors_are_their_messages() {
    let mut host = FakeHost::default();
    let engine = engine();
    let script = "local ok, e = pcall(redis.call, 'x') return {tostring(ok), e}";
    assert_eq!(eval_with(&engine, script, &mut host), "*2\r\n$5\r\nfalse\r\n$19\r\nERR unknown command\r\n");
    let script = "return {pcall(function(...) return 1, ... end, 2, nil, 3)}";
    assert_eq!(eval_with(&engine, script, &mut host), "*3\r\n:1\r\n:1\r\n:2\r\n");
    let script = "return {xpcall(function() error('a', 0) end, function(e) return e .. '!' end)}";
    assert_eq!(eval_with(&engine, script, &mut host), "*2\r\n$-1\r\n$2\r\na!\r\n");
}

#[test]
fn messages_are_logged_and_replication_is_told() {
    let mut host = FakeHost::default();
    eval_with(&engine(), "redis.log(redis.LOG_WARNING, 'a', 1, {}, 'b') redis.set_repl(redis.REPL_AOF)", &mut host);
    assert_eq!(host.logged, [(LogLevel::Warning, b"a 1 b".to_vec())]);
    assert_eq!(host.replications, [Replication { log: true, replicas: false }]);
}

#[test]
fn random_numbers_are_those_of_redis() {
    let script = "local r = {} for i = 1, 3 do r[i] = tostring(math.random()) end return table.concat(r, ' ')";
    let expected = "0.17082803611217 0.74990198051087 0.09637165539729";
    let with_seed = "math.randomseed(0) local r = {} for i = 1, 3 do r[i] = tostring(math.random()) end \
        return table.concat(r, ' ')";
    assert_eq!(eval(with_seed), format!("${}\r\n{expected}\r\n", expected.len()));
    // Without a seed the numbers go on from one script to the next.
    let engine = engine();
    let mut host = FakeHost::default();
    assert_ne!(eval_with(&engine, script, &mut host), eval_with(&engine, script, &mut host));
    assert_eq!(error_of("return math.random(0)"), "ERR user_script:1: bad argument #1 to 'random' (interval is empty)");
}

#[test]
fn scripts_are_known_until_they_are_forgotten() {
    let engine = engine();
    let digest = Digest::of(b"return 1");
    assert!(!engine.knows(&digest));
    engine.load(digest, b"return 1").expect("compiles");
    assert!(engine.knows(&digest));
    engine.forget(&digest);
    assert!(!engine.knows(&digest));
    engine.load(digest, b"return 1").expect("compiles");
    engine.flush().expect("an interpreter");
    assert!(!engine.knows(&digest));
    let none = OwnedArgs::new();
    let call = ScriptCall { keys: none.as_args(), arguments: none.as_args(), protocol: Protocol::Resp2 };
    let mut reply = b"+before\r\n".to_vec();
    let ran = engine.run(&digest, &call, &mut FakeHost::default(), &mut reply);
    assert_eq!(reply, b"+before\r\n-NOSCRIPT No matching script. Please use EVAL.\r\n");
    assert_eq!(ran.error.expect("an error").code(), "NOSCRIPT");
}

#[test]
fn a_panic_of_the_host_goes_on_behind_the_script() {
    let engine = engine();
    let mut host = FakeHost { panics: true, ..FakeHost::default() };
    let script = "pcall(redis.call, 'x') return 1";
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| eval_with(&engine, script, &mut host)));
    assert!(outcome.is_err());
    assert_eq!(eval_with(&engine, "return 1", &mut FakeHost::default()), ":1\r\n");
}

/// Calls the engine from within a command, as a server may that goes on while a script runs.
struct Nested<'a> {
    engine: &'a Engine,
    replies: Vec<Vec<u8>>,
}

impl Host for Nested<'_> {
    fn call(&mut self, _: Args<'_>, _: Protocol, reply: &mut Vec<u8>) {
        let script = b"return 2";
        let digest = Digest::of(script);
        assert!(self.engine.used_memory() > 0);
        self.engine.load(digest, script).expect("compiles");
        assert!(self.engine.load(Digest::of(b"x y"), b"x y").is_err());
        let (nested_reply, _) = run_with(self.engine, script, &mut FakeHost::default(), Protocol::Resp2);
        self.replies.push(nested_reply);
        self.engine.forget(&digest);
        self.engine.flush().expect("an interpreter");
        reply.extend_from_slice(b":5\r\n");
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn may_run(&mut self, _: Args<'_>) -> Result<bool, CommandError> {
        Ok(true)
    }

    fn pulse(&mut self) -> Pulse {
        Pulse::GoOn
    }
}

#[test]
fn a_host_may_call_the_engine() {
    let engine = engine();
    let mut host = Nested { engine: &engine, replies: Vec::new() };
    let script = b"return redis.call('x') + 1";
    let digest = Digest::of(script);
    engine.load(digest, script).expect("compiles");
    let none = OwnedArgs::new();
    let call = ScriptCall { keys: none.as_args(), arguments: none.as_args(), protocol: Protocol::Resp2 };
    let mut reply = Vec::new();
    engine.run(&digest, &call, &mut host, &mut reply);
    assert_eq!(reply, b":6\r\n");
    let busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";
    assert_eq!(host.replies, [busy.as_bytes()]);
    assert!(!engine.knows(&digest), "the interpreter was replaced");
}
