//! Scripts: `EVAL`, `EVALSHA` and `SCRIPT`, on a server with two shards, where a client's keys are as often on another core
//! as on its own.

use crate::support::{Connection, Options, Server, Value, check, replies, replies_resp3, wait_until};

/// A hash tag on each shard of two.
const TAGS: [&str; 2] = ["{a}", "{b}"];

/// The scripts that users of Redis learn with.
const FIXED_WINDOW: &str = "\
local current = redis.call('INCR', KEYS[1])
if current == 1 then
  redis.call('EXPIRE', KEYS[1], ARGV[2])   -- first hit starts the window
end
if current > tonumber(ARGV[1]) then
  return {0, current, redis.call('TTL', KEYS[1])}   -- rejected
end
return {1, current, redis.call('TTL', KEYS[1])}     -- allowed
";

const TOKEN_BUCKET: &str = include_str!("support/token_bucket.lua");

const COMPARE_AND_SET: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2])
  return 1
end
return 0
";

const CART_QUANTITY: &str = "\
local left = redis.call('HINCRBY', KEYS[1], ARGV[1], -tonumber(ARGV[2]))
if left <= 0 then
  redis.call('HDEL', KEYS[1], ARGV[1])
  return 0
end
return left
";

fn integers(value: &Value) -> Vec<i64> {
    value.elements().iter().map(Value::integer).collect()
}

#[test]
fn the_scripts_that_everybody_learns_with_run() {
    let server = Server::start();
    let mut connection = server.connect();
    for tag in TAGS {
        let key = |name: &str| format!("{tag}{name}");
        for hit in 1..=4 {
            let reply = connection.call(&["EVAL", FIXED_WINDOW, "1", &key("window"), "3", "60"]);
            let allowed = i64::from(hit <= 3);
            assert_eq!(integers(&reply)[..2], [allowed, hit]);
            assert!((59..=60).contains(&integers(&reply)[2]));
        }
        let mut bucket = |now: &str| {
            integers(&connection.call(&["EVAL", TOKEN_BUCKET, "1", &key("bucket"), "2", "1", now, "60000"]))
        };
        assert_eq!(bucket("1000"), [1, 1]);
        assert_eq!(bucket("1000"), [1, 0]);
        assert_eq!(bucket("1500"), [0, 0]);
        assert_eq!(bucket("2100"), [1, 0]);
        connection.call(&["SET", &key("value"), "old"]);
        let mut swap =
            |old: &str, new: &str| connection.call(&["EVAL", COMPARE_AND_SET, "1", &key("value"), old, new]).integer();
        assert_eq!((swap("wrong", "x"), swap("old", "new"), swap("old", "x")), (0, 1, 0));
        connection.call(&["HSET", &key("cart"), "apple", "5"]);
        let mut take =
            |number: &str| connection.call(&["EVAL", CART_QUANTITY, "1", &key("cart"), "apple", number]).integer();
        assert_eq!((take("2"), take("3")), (3, 0));
        assert_eq!(connection.call(&["EXISTS", &key("cart")]), Value::Integer(0));
    }
}

#[test]
fn a_script_loaded_on_one_connection_is_known_everywhere() {
    let server = Server::start();
    let digest = server.connect().call(&["SCRIPT", "LOAD", "return redis.call('INCR', KEYS[1])"]).text().to_owned();
    assert_eq!(digest.len(), 40);
    for port in 0..2 {
        for (tag, shard) in [("{a}", 0), ("{b}", 1)] {
            let mut connection = if port == 0 { server.connect() } else { server.connect_to_shard(shard) };
            let mut reply = connection.call(&["EVALSHA", &digest, "1", &format!("{tag}n")]);
            if port == 1 && matches!(&reply, Value::Error(text) if text.starts_with("MOVED")) {
                reply = server.connect_to_shard(1 - shard).call(&["EVALSHA", &digest, "1", &format!("{tag}n")]);
            }
            assert_eq!(reply.integer(), port + 1);
        }
    }
    let mut connection = server.connect();
    assert_eq!(connection.call(&["SCRIPT", "EXISTS", &digest, &"0".repeat(40)]).elements().len(), 2);
    assert_eq!(integers(&connection.call(&["SCRIPT", "EXISTS", &digest.to_uppercase(), "x"])), [1, 0]);
    assert_eq!(connection.call(&["SCRIPT", "SHOW", &digest]).text(), "return redis.call('INCR', KEYS[1])");
    connection.call(&["SCRIPT", "FLUSH"]);
    for tag in TAGS {
        let reply = connection.call(&["EVALSHA", &digest, "1", &format!("{tag}n")]);
        assert_eq!(reply.error(), "NOSCRIPT No matching script. Please use EVAL.");
    }
    assert_eq!(integers(&connection.call(&["SCRIPT", "EXISTS", &digest])), [0]);
}

#[test]
fn replies_and_errors_are_those_of_redis() {
    replies(
        r##"
        EVAL "return 1" 0 => :1
        EVAL "return 3.99" 0 => :3
        EVAL "return 'x'" 0 => x
        EVAL "return {1,2,nil,4}" 0 => [:1 :2]
        EVAL "return false" 0 => nil
        EVAL "return true" 0 => :1
        EVAL "return redis.status_reply('FINE')" 0 => +FINE
        EVAL "return redis.error_reply('MY own')" 0 => -MY own
        EVAL "return {ok='yes'}" 0 => +yes
        EVAL "return {KEYS[1],KEYS[2],ARGV[1]}" 2 {a}1 {a}2 x => ["{a}1" "{a}2" x]
        EVAL "return 1" => -ERR wrong number of arguments for 'eval' command
        EVAL "return 1" x => -ERR value is not an integer or out of range
        EVAL "return 1" -1 => -ERR Number of keys can't be negative
        EVAL "return 1" 1 => -ERR Number of keys can't be greater than number of args
        EVAL "return 1" 2 {a}1 {b}1 => -CROSSSLOT Keys in request don't hash to the same slot
        EVAL "return" 0 => nil
        EVAL "retur n" 0 => -ERR Error compiling script*
        EVAL "return redis.call('nosuch')" 0 => -ERR Unknown Redis command called from script*
        EVAL "return redis.call('get')" 0 => -ERR Wrong number of args calling Redis command from script*
        EVAL "return redis.call('multi')" 0 => -ERR This Redis command is not allowed from script*
        EVAL "return redis.call('eval', 'return 1', 0)" 0 => -ERR This Redis command is not allowed from script*
        EVAL "return redis.call('config', 'get', 'port')" 0 => -ERR This Redis command is not allowed from script*
        EVAL "return redis.pcall('nosuch').err" 0 => "ERR Unknown Redis command called from script"
        LPUSH {a}list x => :1
        EVAL "return redis.call('get', KEYS[1])" 1 {a}list => -WRONGTYPE Operation against a key*
        EVAL "return redis.call('blpop', KEYS[1], 0)" 1 {a}none => nil
        EVAL "return redis.call('blmpop', 0, 1, KEYS[1], 'left')" 1 {a}none => nil
        EVAL "return redis.call('select', 1)" 0 => +OK
        SET {a}k here => OK
        EVAL "redis.call('select', 1); redis.call('set', KEYS[1], 'there'); return redis.call('get', KEYS[1])" 1 {a}k => there
        GET {a}k => here
        EVAL_RO "return redis.call('get', KEYS[1])" 1 {a}k => here
        EVAL_RO "return redis.call('set', KEYS[1], 'x')" 1 {a}k => -ERR Write commands are not allowed from read-only scripts.*
        EVAL_RO "return redis.call('publish', 'c', 'x')" 0 => -ERR Write commands are not allowed from read-only scripts.*
        EVALSHA 0123456789012345678901234567890123456789 0 => -NOSCRIPT No matching script. Please use EVAL.
        EVALSHA short 0 => -NOSCRIPT No matching script. Please use EVAL.
        EVALSHA short many => -NOSCRIPT No matching script. Please use EVAL.
        EVALSHA 0123456789012345678901234567890123456789 many => -ERR value is not an integer or out of range
        SCRIPT NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try SCRIPT HELP.
        SCRIPT FLUSH NOW => -ERR SCRIPT FLUSH only support SYNC|ASYNC option
        SCRIPT KILL => -NOTBUSY No scripts in execution right now.
        SCRIPT DEBUG MAYBE => -ERR Use SCRIPT DEBUG YES/SYNC/NO
        SCRIPT DEBUG NO => OK
        "##,
    );
    replies_resp3(
        r##"
        HSET {a}h f v => :1
        EVAL "redis.setresp(3); return redis.call('hgetall', KEYS[1])" 1 {a}h => %[f v]
        EVAL "redis.setresp(2); return redis.call('hgetall', KEYS[1])" 1 {a}h => [f v]
        EVAL "return {map={a=1}}" 0 => %[a :1]
        EVAL "return {set={a=true}}" 0 => ~[a]
        EVAL "return {double=1.5}" 0 => ,1.5
        EVAL "redis.setresp(3); return true" 0 => #t
        EVAL "redis.setresp(3); return false" 0 => #f
        EVAL "return nil" 0 => nil
        "##,
    );
}

#[test]
fn undeclared_keys_of_the_scripts_slot_are_fine_and_others_are_named() {
    let server = Server::start();
    let mut connection = server.connect();
    check(
        &mut connection,
        r##"
        EVAL "redis.call('set', '{a}other', 'x'); return redis.call('get', '{a}other')" 1 {a}k => x
        EVAL "return redis.call('mset', '{a}1', 'x', '{a}2', 'y')" 1 {a}k => +OK
        EVAL "return redis.call('get', '{b}stray')" 1 {a}k => -ERR Script attempted to access * 
        EVAL "return redis.call('mset', '{a}1', 'x', '{b}stray', 'y')" 1 {a}k => -ERR Script attempted to access *
        "##
        .replace("access * ", "access *")
        .as_str(),
    );
    let reply = connection.call(&["EVAL", "return redis.call('get', '{b}stray')", "1", "{a}k"]);
    assert!(reply.error().contains("{b}stray"), "{reply:?}");
    // Both are keys of one shard, but not of one slot.
    let slots = |connection: &mut Connection, key: &str| connection.call(&["CLUSTER", "KEYSLOT", key]).integer();
    let first = slots(&mut connection, "{a}");
    let neighbour = (0..10_000)
        .map(|number| format!("{{n{number}}}"))
        .find(|key| {
            let slot = slots(&mut connection, key);
            slot != first && (slot < 8192) == (first < 8192)
        })
        .expect("a key of another slot of the same shard");
    let script = format!("return redis.call('set', '{neighbour}', 'x')");
    let reply = connection.call(&["EVAL", &script, "1", "{a}k"]);
    assert!(reply.error().contains("do not hash to the same slot") && reply.error().contains(&neighbour), "{reply:?}");
    let flagged = format!("#!lua flags=allow-cross-slot-keys\n{script}");
    assert_eq!(connection.call(&["EVAL", &flagged, "1", "{a}k"]), Value::Simple("OK".into()));
}

#[test]
fn with_cross_slot_allowed_a_script_builds_its_keys_from_data() {
    let server = Server::with(&Options { shards: 1, arguments: &["--cross-slot", "allow"], ..Options::default() });
    check(
        &mut server.connect(),
        r##"
        SET pointer target:7 => OK
        SET target:7 found => OK
        EVAL "return redis.call('get', redis.call('get', KEYS[1]))" 1 pointer => found
        EVAL "redis.call('mset', 'x', 1, 'y', 2); return redis.call('mget', 'x', 'y')" 0 => [1 2]
        EVAL "return redis.call('dbsize')" 0 => :4
        EVAL "return #redis.call('keys', '*')" 0 => :4
        EVAL "return #redis.call('scan', 0)[2]" 0 => :4
        EVAL "return redis.call('flushall')" 0 => +OK
        DBSIZE => :0
        EVAL "#!lua flags=no-cluster\nreturn 1" 0 => :1
        "##,
    );
}

#[test]
fn flags_are_kept() {
    replies(
        r##"
        EVAL "#!lua flags=no-writes\nreturn redis.call('set', KEYS[1], 1)" 1 {a}k => -ERR Write commands are not allowed from read-only scripts.*
        EVAL_RO "#!lua\nreturn 1" 0 => -ERR Can not execute a script with write flag using *_ro command.
        EVAL_RO "#!lua flags=no-writes\nreturn 1" 0 => :1
        EVAL "#!lua flags=no-cluster\nreturn 1" 0 => -ERR Can not run script on cluster, 'no-cluster' flag is set.
        EVAL "#!lua flags=wrong\nreturn 1" 0 => -ERR Unexpected flag in script shebang: wrong
        EVAL "#!perl\nreturn 1" 0 => -ERR Unexpected engine in script shebang: #!perl
        "##,
    );
}

#[test]
fn scripts_in_transactions_and_their_changes_are_seen() {
    let server = Server::start();
    let mut connection = server.connect();
    for tag in TAGS {
        let script = r##"
            DEL {t}k {t}n => *
            MULTI => OK
            EVAL "return redis.call('incr', KEYS[1])" 1 {t}n => +QUEUED
            EVAL "return redis.call('incr', KEYS[1])" 1 {t}n => +QUEUED
            EXEC => [:1 :2]
            WATCH {t}n => OK
            EVAL "return redis.call('incr', KEYS[1])" 1 {t}n => :3
            MULTI => OK
            GET {t}n => +QUEUED
            EXEC => nil-array
        "##;
        check(&mut connection, &script.replace("{t}", tag));
        let mut waiting = server.connect();
        waiting.send(&crate::support::encode_command(&["BLPOP", &format!("{tag}jobs"), "0"]));
        wait_until("the client waits", || server.info_number("blocked_clients") == 1);
        connection.call(&[
            "EVAL",
            "redis.call('rpush', KEYS[1], 'a', 'b'); return redis.call('llen', KEYS[1])",
            "1",
            &format!("{tag}jobs"),
        ]);
        assert_eq!(waiting.read_value().elements()[1].text(), "a");
    }
}

#[test]
fn what_runs_scripts_is_seen_from_outside() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.call(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    let mut monitor = server.connect();
    monitor.call(&["MONITOR"]);
    connection.call(&["EVAL", "return redis.call('set', KEYS[1], ARGV[1])", "1", "{a}seen", "x"]);
    let mut lines = Vec::new();
    while lines.len() < 2 {
        let line = monitor.read_value().text().to_owned();
        lines.push(line);
    }
    assert!(lines.iter().any(|line| line.contains(" lua] \"set\" \"{a}seen\" \"x\"")), "{lines:?}");
    let slow = connection.call(&["SLOWLOG", "GET", "10"]);
    let names: Vec<String> =
        slow.elements().iter().map(|entry| entry.elements()[3].elements()[0].text().to_owned()).collect();
    assert_eq!(names[..2], ["EVAL", "set"], "the latest comes first, and what the script calls ends before it");
    assert_eq!(server.info_number("number_of_cached_scripts"), 1);
    assert!(server.info_number("used_memory_vm_eval") > 0);
    check(
        &mut connection,
        r##"
        COMMAND GETKEYS EVAL "return 1" 2 {a}x {a}y z => ["{a}x" "{a}y"]
        COMMAND GETKEYS EVAL "return 1" 0 => []
        "##,
    );
    for number in 0..600 {
        connection.call(&["EVAL", &format!("return {number}"), "0"]);
    }
    assert_eq!(server.info_number("number_of_cached_scripts"), 500);
    assert!(server.info_number("evicted_scripts") >= 101);
}

#[test]
fn memory_and_depth_of_scripts_end_in_an_error() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.call(&["CONFIG", "SET", "script-memory-limit", "16mb"]);
    for script in [
        "local s = 'x'; while true do s = s .. s end",
        "local t = {}; while true do t[#t + 1] = string.rep('x', 1000) .. #t end",
        "local function f() return 1 + f() end; return f()",
        "return string.rep('x', 1e9)",
        "local s = string.rep('(', 100000); return loadstring('return ' .. s)()",
        "return string.find(string.rep('a', 200000), string.rep('(a', 30) .. string.rep(')', 30))()",
    ] {
        let reply = connection.call(&["EVAL", script, "0"]);
        assert!(matches!(reply, Value::Error(_)), "{script}: {reply:?}");
    }
    assert_eq!(connection.call(&["EVAL", "return 'still here'", "0"]).text(), "still here");
}

#[test]
fn what_a_pipeline_runs_on_one_core_is_known_to_what_follows_on_another() {
    let server = Server::start();
    let mut connection = server.connect();
    for round in 0..20 {
        let script = format!("return {round}");
        let digest = connection.call(&["SCRIPT", "LOAD", &script]).text().to_owned();
        connection.line("SCRIPT FLUSH");
        // Either of the two is on another core than the connection.
        let keys = if round % 2 == 0 { ["{a}k", "{b}k"] } else { ["{b}k", "{a}k"] };
        let replies = connection.pipeline([
            format!("EVAL \"{script}\" 1 {}", keys[0]).as_str(),
            format!("EVALSHA {digest} 1 {}", keys[1]).as_str(),
            format!("SCRIPT EXISTS {digest}").as_str(),
            format!("EVALSHA {digest} 1 {}", keys[0]).as_str(),
            "SCRIPT FLUSH",
            format!("EVALSHA {digest} 1 {}", keys[1]).as_str(),
            format!("SCRIPT LOAD \"{script}\"").as_str(),
            format!("EVALSHA {digest} 1 {}", keys[0]).as_str(),
        ]);
        assert_eq!(
            format!("{replies:?}"),
            format!(
                "[:{round}, :{round}, [:1], :{round}, +OK, -NOSCRIPT No matching script. Please use EVAL., \"{digest}\", :{round}]"
            )
        );
    }
}

#[test]
fn the_libraries_of_scripts_are_there() {
    replies(
        r##"
        EVAL "return cjson.encode({1, 2, {a='x'}})" 0 => "[1,2,{\"a\":\"x\"}]"
        EVAL "return cjson.decode('{\"a\":[1,2,3]}').a[3]" 0 => :3
        EVAL "return cmsgpack.unpack(cmsgpack.pack(ARGV))[2]" 0 one two => two
        EVAL "return {struct.unpack('>I2', struct.pack('>I2', 513))}" 0 => [:513 :3]
        EVAL "return bit.tohex(bit.bxor(0xff, 0x0f))" 0 => 000000f0
        EVAL "cjson.encode = nil" 0 => -ERR user_script:1: Attempt to modify a readonly table*
        EVAL "return #cmsgpack.pack(redis.call('mget', unpack(KEYS)))" 2 {a}1 {a}2 => :3
        "##,
    );
}

#[test]
fn what_breaks_elsewhere_works() {
    replies(
        r##"
        HSET {a}h f v => :1
        EVAL "return {redis.call('hgetall', KEYS[1]), {redis.call('hgetall', KEYS[1])}}" 1 {a}h => [[f v] [[f v]]]
        EVAL "local e = redis.pcall('lpush', KEYS[1], 'x'); return e" 1 {a}h => -WRONGTYPE Operation against a key holding the wrong kind of value
        EVAL "local ok, e = pcall(redis.call, 'lpush', KEYS[1], 'x'); return {ok, tostring(e)}" 1 {a}h => [nil "WRONGTYPE Operation against a key holding the wrong kind of value"]
        EVAL "redis.replicate_commands(); return redis.call('set', KEYS[1], redis.call('time')[1])" 1 {a}t => +OK
        EVAL "redis.call('set', KEYS[1], math.random()); return redis.call('exists', KEYS[1])" 1 {a}r => :1
        EVAL "local packed = cmsgpack.pack(unpack(ARGV)); return {cmsgpack.unpack(packed)}" 0 a b c => [a b c]
        EVAL "return redis.call('take', KEYS[1], 5)" 1 {a}none => nil
        EVAL "return redis.call('limit', KEYS[1], 10, 60000)" 1 {a}limit => :9
        EVAL "redis.call('set', KEYS[1], 10); return redis.call('transfer', KEYS[1], KEYS[2], 4)" 2 {a}x {a}y => [:6 :4]
        EVAL "return redis.call('setv', KEYS[1], 'x')" 1 {a}v => :1
        "##,
    );
}

#[test]
fn scripts_see_of_the_cluster_and_of_subscribers_what_their_client_sees() {
    let server = Server::start();
    let mut subscriber = server.connect();
    subscriber.call(&["SUBSCRIBE", "news"]);
    subscriber.call(&["PSUBSCRIBE", "n*"]);
    subscriber.call(&["SSUBSCRIBE", "{a}shard"]);
    for mut connection in [server.connect(), server.connect_to_shard(0), server.connect_to_shard(1)] {
        for command in [
            "CLUSTER INFO",
            "CLUSTER SLOTS",
            "CLUSTER SHARDS",
            "CLUSTER LINKS",
            "CLUSTER MYID",
            "CLUSTER MYSHARDID",
            "CLUSTER KEYSLOT x",
            "PUBSUB CHANNELS",
            "PUBSUB NUMPAT",
            "PUBSUB NUMSUB news none",
            "PUBSUB SHARDCHANNELS",
            "PUBSUB SHARDNUMSUB {a}shard",
        ] {
            let words: Vec<&str> = command.split(' ').collect();
            let direct = connection.call(&words);
            assert!(!matches!(direct, Value::Error(_)), "{command}: {direct:?}");
            let called = connection.call(&[&["EVAL", "return redis.call(unpack(ARGV))", "0"][..], &words].concat());
            assert_eq!(called, direct, "{command}");
        }
        // Nodes tell when they were heard of last, too.
        let direct = connection.call(&["CLUSTER", "NODES"]).text().lines().count();
        let called = connection.call(&["EVAL", "return redis.call('cluster', 'nodes')", "0"]);
        assert_eq!(called.text().lines().filter(|line| line.contains("myself")).count(), 1);
        assert_eq!(called.text().lines().count(), direct);
    }
    let mut connection = server.connect();
    let router = connection.call(&["CLUSTER", "MYID"]);
    for tag in TAGS {
        let key = format!("{tag}k");
        connection.call(&["SET", &key, "x"]);
        // One of the two is forwarded.
        assert_eq!(connection.call(&["EVAL", "return redis.call('cluster', 'myid')", "1", &key]), router);
        assert_eq!(connection.call(&["EVAL", "return #redis.call('cluster', 'slots')", "1", &key]), Value::Integer(2));
        assert_eq!(connection.call(&["EVAL", "return redis.call('memory', 'purge')", "1", &key]).text(), "OK");
        let shards = "local n = 0; for _, v in ipairs(redis.call('memory', 'stats')) do \
            if type(v) == 'string' and v:find('^shard') then n = n + 1 end end; return n";
        assert_eq!(connection.call(&["EVAL", shards, "1", &key]), Value::Integer(1));
        let used = "return redis.call('memory', 'usage', KEYS[1])";
        assert_eq!(connection.call(&["EVAL", used, "1", &key]), connection.call(&["MEMORY", "USAGE", &key]));
        let slot = connection.call(&["CLUSTER", "KEYSLOT", &key]).integer().to_string();
        let count = "return redis.call('cluster', 'countkeysinslot', ARGV[1])";
        assert_eq!(connection.call(&["EVAL", count, "1", &key, &slot]), Value::Integer(1));
        let names = "return redis.call('cluster', 'getkeysinslot', ARGV[1], 10)[1]";
        assert_eq!(connection.call(&["EVAL", names, "1", &key, &slot]).text(), key);
        let other = if tag == TAGS[0] { TAGS[1] } else { TAGS[0] };
        let elsewhere = connection.call(&["EVAL", count, "1", &format!("{other}k"), &slot]);
        assert!(elsewhere.error().starts_with("ERR Script attempted to access slot"), "{elsewhere:?}");
    }
}

#[test]
fn what_redis_keeps_from_scripts_is_kept_from_them() {
    replies(
        r##"
        EVAL "return redis.call('cluster', 'reset')" 0 => -ERR This Redis command is not allowed from script*
        EVAL "return redis.call('acl', 'whoami')" 0 => -ERR This Redis command is not allowed from script*
        EVAL "return redis.call('debug', 'sleep', 0)" 0 => -ERR This Redis command is not allowed from script*
        EVAL "return redis.call('replicaof', 'no', 'one')" 0 => -ERR This Redis command is not allowed from script*
        EVAL "return redis.call('cluster', 'nosuch')" 0 => -ERR Unknown Redis command called from script*
        EVAL "return redis.call('swapdb', 0, 1)" 0 => -ERR SWAPDB is not allowed from script: it is for every shard*
        "##,
    );
}

#[test]
fn on_a_single_shard_a_script_exchanges_databases() {
    let mut server = Server::with(&Options {
        shards: 1,
        arguments: &["--cross-slot", "allow", "--durability", "always"],
        ..Options::default()
    });
    let mut waiting = server.connect();
    waiting.send(&crate::support::encode_command(&["BLPOP", "jobs", "0"]));
    wait_until("the client waits", || server.info_number("blocked_clients") == 1);
    let mut connection = server.connect();
    check(
        &mut connection,
        r##"
        SET x zero => OK
        SELECT 1 => OK
        RPUSH jobs a b => :2
        SELECT 0 => OK
        EVAL "redis.call('swapdb', 0, 1); redis.call('set', 'y', 'after'); return {redis.call('get', 'x'), redis.call('llen', 'jobs')}" 0 => [nil :2]
        "##,
    );
    // What waits for a key gets it when the script has ended.
    assert_eq!(waiting.read_value().elements()[1].text(), "a");
    let state = "
        GET y => after
        LRANGE jobs 0 -1 => [b]
        SELECT 1 => OK
        GET x => zero
        SELECT 0 => OK
    ";
    check(&mut connection, state);
    server.kill_and_restart();
    let mut connection = server.connect();
    wait_until("the data is read", || !matches!(connection.call(&["DBSIZE"]), Value::Error(_)));
    check(&mut connection, state);
}

#[test]
fn calls_of_scripts_are_counted() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.call(&["CONFIG", "RESETSTAT"]);
    connection.call(&["EVAL", "redis.call('select', 1); redis.pcall('select', 99); redis.pcall('multi')", "0"]);
    let counts = connection.call(&["INFO", "commandstats"]);
    let line = |name: &str| counts.text().lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    let select = line("cmdstat_select:");
    assert!(select.contains("calls=2,") && select.contains("rejected_calls=0,failed_calls=1"), "{select}");
    let multi = line("cmdstat_multi:");
    assert!(multi.contains("calls=0,") && multi.contains("rejected_calls=1,failed_calls=0"), "{multi}");
}

#[test]
fn a_script_that_runs_again_and_again_takes_no_more_memory() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut in_use = || {
        connection.call(&["EVAL", "collectgarbage(); return math.ceil(collectgarbage('count'))", "1", "{a}n"]).integer()
    };
    in_use();
    let before = in_use();
    let mut other = server.connect();
    for _ in 0..20 {
        other.pipeline(vec!["EVAL \"return redis.call('incr', KEYS[1])\" 1 {a}n"; 500]);
    }
    let after = in_use();
    assert!(after <= before + 4, "{before} KiB before, {after} after");
}

#[test]
fn of_what_was_evaluated_the_scripts_used_last_stay() {
    let server = Server::start();
    let mut connection = server.connect();
    let digests: Vec<String> = ["return 1", "return 2", "return 3", "return 500", "return 1000"]
        .iter()
        .map(|body| connection.call(&["EVAL", "return redis.sha1hex(ARGV[1])", "0", body]).text().to_owned())
        .collect();
    connection.pipeline(["SCRIPT FLUSH", "CONFIG RESETSTAT", "SCRIPT LOAD \"return 'loaded'\""]);
    let lines: Vec<String> = (1..=500).map(|number| format!("EVAL \"return {number}\" 0")).collect();
    connection.pipeline(lines.iter().map(String::as_str));
    connection.pipeline(["EVAL \"return 1\" 0", &format!("EVALSHA {} 0", digests[1]), "EVAL \"return 1000\" 0"]);
    let mut exists = vec!["SCRIPT", "EXISTS"];
    exists.extend(digests.iter().map(String::as_str));
    assert_eq!(integers(&connection.call(&exists)), [1, 1, 0, 1, 1]);
    // What was loaded is none of the 500.
    assert_eq!(server.info_number("number_of_cached_scripts"), 501);
    assert_eq!(server.info_number("evicted_scripts"), 1);
    connection.call(&["CONFIG", "RESETSTAT"]);
    assert_eq!(server.info_number("evicted_scripts"), 0);
}
