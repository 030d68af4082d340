//! Libraries of functions: `FUNCTION` and `FCALL`.

use crate::support::{Options, Server, Value, check, encode_command, replies, wait_until};

const LIBRARY: &str = "#!lua name=tools
redis.register_function('add', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)
redis.register_function{function_name='look', callback=function(keys) return redis.call('GET', keys[1]) end,
    flags={'no-writes'}, description='looks'}
";

#[test]
fn a_library_is_known_to_every_shard() {
    let server = Server::start();
    let mut connection = server.connect();
    assert_eq!(connection.call(&["FUNCTION", "LOAD", LIBRARY]).text(), "tools");
    check(
        &mut connection,
        r##"
        FCALL add 1 {a}n 5 => :5
        FCALL add 1 {b}n 7 => :7
        FCALL_RO look 1 {a}n => 5
        FCALL_RO LOOK 1 {a}n => 5
        FCALL_RO look 1 {b}n => 7
        FCALL_RO add 1 {a}n 1 => -ERR Can not execute a script with write flag using *_ro command.
        FCALL nosuch 0 => -ERR Function not found
        FCALL nosuch many => -ERR Function not found
        FCALL add => -ERR wrong number of arguments for 'fcall' command
        FCALL add many => -ERR Bad number of keys provided
        FCALL add -1 => -ERR Number of keys can't be negative
        FCALL add 2 {a}x => -ERR Number of keys can't be greater than number of args
        FUNCTION DELETE nosuch => -ERR Library not found
        FUNCTION NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try FUNCTION HELP.
        FUNCTION KILL => -NOTBUSY No scripts in execution right now.
        FUNCTION FLUSH SYNC NOW => -ERR unknown subcommand or wrong number of arguments for 'flush'. Try FUNCTION HELP.
        FUNCTION FLUSH NOW => -ERR FUNCTION FLUSH only supports SYNC|ASYNC option
        FUNCTION LIST LIBRARYNAME => -ERR library name argument was not given
        FUNCTION LIST NOSUCH => -ERR Unknown argument NOSUCH
        FUNCTION LIST LIBRARYNAME x* => []
        "##,
    );
    let error = connection.call(&["FUNCTION", "LOAD", LIBRARY]);
    assert_eq!(error.error(), "ERR Library 'tools' already exists");
    let other = "#!lua name=other\nredis.register_function('add', function() return 1 end)";
    assert_eq!(connection.call(&["FUNCTION", "LOAD", other]).error(), "ERR Function add already exists");
    assert_eq!(connection.call(&["FUNCTION", "LOAD", "REPLACE", LIBRARY]).text(), "tools");
    let list = connection.call(&["FUNCTION", "LIST", "LIBRARYNAME", "T*", "WITHCODE"]);
    let library = list.elements()[0].elements();
    assert_eq!(library[1].text(), "tools");
    assert_eq!(library[3].text(), "LUA");
    assert_eq!(library[5].elements().len(), 2);
    assert_eq!(library[7].text(), LIBRARY);
    let stats = connection.call(&["FUNCTION", "STATS"]);
    assert!(stats.elements()[1].is_null());
    assert_eq!(stats.elements()[3].elements()[1].elements()[1], Value::Integer(1));
    connection.call(&["FUNCTION", "DELETE", "tools"]);
    assert_eq!(connection.call(&["FCALL", "add", "1", "{a}n", "5"]).error(), "ERR Function not found");
}

#[test]
fn what_is_no_library_is_refused() {
    replies(
        r##"
        FUNCTION LOAD "return 1" => -ERR Missing library metadata
        FUNCTION LOAD "#!lua\nreturn 1" => -ERR Library name was not given
        FUNCTION LOAD "#!lua name=bad-name\nreturn 1" => -ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long
        FUNCTION LOAD "#!lua name=empty\nreturn 1" => -ERR No functions registered
        FUNCTION LOAD "#!perl name=x\nreturn 1" => -ERR Engine 'perl' not found
        FUNCTION LOAD "#!lua name=x\nredis.call('ping')" => -ERR Error registering functions*
        FUNCTION LOAD "#!lua name=x\nwhile true do end" => -ERR Error registering functions*
        FUNCTION LOAD SOMETHING "#!lua name=x\nreturn 1" => -ERR Unknown option given: SOMETHING
        "##,
    );
}

#[test]
fn libraries_travel_as_a_dump() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.call(&["FUNCTION", "LOAD", LIBRARY]);
    let dump = connection.call(&["FUNCTION", "DUMP"]).bytes().to_vec();
    let restore = |connection: &mut crate::support::Connection, policy: &[&str]| {
        let mut words: Vec<&[u8]> = vec![b"FUNCTION", b"RESTORE", &dump];
        words.extend(policy.iter().map(|word| word.as_bytes()));
        connection.call(&words)
    };
    assert_eq!(restore(&mut connection, &[]).error(), "ERR Library tools already exists");
    assert_eq!(restore(&mut connection, &["REPLACE"]), Value::Simple("OK".into()));
    assert_eq!(restore(&mut connection, &["FLUSH"]), Value::Simple("OK".into()));
    connection.call(&["FUNCTION", "FLUSH"]);
    assert_eq!(restore(&mut connection, &["SOMEHOW"]).error().split(' ').next(), Some("ERR"));
    assert_eq!(restore(&mut connection, &[]), Value::Simple("OK".into()));
    assert_eq!(connection.call(&["FCALL", "add", "1", "{b}n", "2"]), Value::Integer(2));
    let mut damaged = dump.clone();
    damaged[3] ^= 1;
    let reply = connection.call(&[&b"FUNCTION"[..], b"RESTORE", &damaged, b"FLUSH"]);
    assert_eq!(reply.error(), "ERR DUMP payload version or checksum are wrong");
    assert_eq!(connection.call(&["FUNCTION", "LIST"]).elements().len(), 1);
    if let Some(redis) = Server::start_redis(&[]) {
        let mut redis = redis.connect();
        redis.call(&[&b"FUNCTION"[..], b"RESTORE", &dump]);
        assert_eq!(redis.call(&["FCALL", "add", "1", "n", "2"]), Value::Integer(2));
        let theirs = redis.call(&["FUNCTION", "DUMP"]).bytes().to_vec();
        let reply = connection.call(&[&b"FUNCTION"[..], b"RESTORE", &theirs, b"FLUSH"]);
        assert_eq!(reply, Value::Simple("OK".into()));
    }
}

#[test]
fn no_library_is_added_when_memory_is_at_its_limit() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.call(&["FUNCTION", "LOAD", LIBRARY]);
    let dump = connection.call(&["FUNCTION", "DUMP"]).bytes().to_vec();
    connection.call(&["CONFIG", "SET", "maxmemory", "1"]);
    let full = "OOM command not allowed when used memory > 'maxmemory'.";
    assert_eq!(connection.call(&["FUNCTION", "LOAD", "REPLACE", LIBRARY]).error(), full);
    assert_eq!(connection.call(&["FUNCTION", "DELETE", "tools"]), Value::Simple("OK".into()));
    assert_eq!(connection.call(&[&b"FUNCTION"[..], b"RESTORE", &dump]).error(), full);
    assert_eq!(connection.call(&["FUNCTION", "LIST"]).elements().len(), 0);
    connection.call(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(connection.call(&[&b"FUNCTION"[..], b"RESTORE", &dump]), Value::Simple("OK".into()));
}

#[test]
fn calls_of_a_pipeline_find_the_libraries_that_were_there_when_they_were_sent() {
    let server = Server::start();
    let mut connection = server.connect();
    let load = encode_command(&["FUNCTION", "LOAD", "REPLACE", LIBRARY]);
    for round in 0..20 {
        for end in [&["FUNCTION", "FLUSH"][..], &["FUNCTION", "DELETE", "tools"]] {
            // One of the two is on another core than the connection.
            let calls = ["{a}n", "{b}n"].map(|key| encode_command(&["FCALL", "look", "1", key]));
            let pipeline = [&load, &calls[0], &calls[1], &encode_command(end), &calls[0], &calls[1]];
            connection.send(&pipeline.map(Vec::as_slice).concat());
            let replies: Vec<Value> = (0..pipeline.len()).map(|_| connection.read_value()).collect();
            let missing = Value::Error("ERR Function not found".to_owned());
            let wanted = [
                Value::Bulk(b"tools".to_vec()),
                Value::Null,
                Value::Null,
                Value::Simple("OK".to_owned()),
                missing.clone(),
                missing,
            ];
            assert_eq!(replies, wanted, "round {round}");
        }
    }
}

#[test]
fn libraries_survive_a_restart() {
    let mut server =
        Server::with(&Options { shards: 2, arguments: &["--durability", "everysec"], ..Options::default() });
    let mut connection = server.connect();
    connection.call(&["FUNCTION", "LOAD", LIBRARY]);
    connection.call(&["FCALL", "add", "1", "{a}n", "5"]);
    server.kill_and_restart();
    let mut connection = server.connect();
    wait_until("the data is read", || !matches!(connection.call(&["DBSIZE"]), Value::Error(_)));
    assert_eq!(connection.call(&["FCALL", "add", "1", "{a}n", "5"]), Value::Integer(10));
    connection.call(&["FUNCTION", "FLUSH"]);
    server.kill_and_restart();
    let mut connection = server.connect();
    wait_until("the data is read", || !matches!(connection.call(&["DBSIZE"]), Value::Error(_)));
    assert_eq!(connection.call(&["FUNCTION", "LIST"]).elements().len(), 0);
}

#[test]
fn a_function_that_runs_is_shown_and_killed() {
    let server = Server::start();
    let mut connection = server.connect();
    let endless = "#!lua name=endless\nredis.register_function('forever', function() while true do end end)";
    connection.call(&["FUNCTION", "LOAD", endless]);
    connection.call(&["CONFIG", "SET", "busy-reply-threshold", "20"]);
    let mut running = server.connect();
    running.send(&encode_command(&["FCALL", "forever", "1", "{a}k", "x"]));
    wait_until("it is shown", || {
        let stats = connection.call(&["FUNCTION", "STATS"]);
        let running = &stats.elements()[1];
        !running.is_null() && running.elements()[1].text() == "forever"
    });
    wait_until(
        "its shard is busy",
        || matches!(connection.call(&["GET", "{a}k"]), Value::Error(text) if text.contains("FUNCTION KILL")),
    );
    assert!(connection.call(&["SCRIPT", "KILL"]).error().contains("FUNCTION KILL"));
    assert_eq!(connection.call(&["FUNCTION", "KILL"]), Value::Simple("OK".into()));
    assert!(matches!(running.read_value(), Value::Error(_)));
}
