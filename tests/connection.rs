//! What a connection carries: protocol, name, database, reply mode; and the commands about connections.

use crate::support::{Connection, Options, Server, Value, check, replies, replies_resp3, wait_until};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

#[test]
fn ping_and_echo_answer() {
    replies(
        r#"
        PING => +PONG
        PING hello => hello
        PING "\x00\r\n" => "\x00\r\n"
        PING a b => -ERR wrong number of arguments for 'ping' command
        ECHO hello => hello
        ECHO => -ERR wrong number of arguments for 'echo' command
        QUIT => OK
    "#,
    );
}

#[test]
fn quit_answers_and_closes() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(b"*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n");
    assert_eq!(format!("{:?}", connection.read_value()), "+OK");
    connection.expect_close();
}

#[test]
fn unknown_commands_are_named_with_their_first_arguments() {
    replies(
        r#"
        NOSUCH => -"ERR unknown command 'NOSUCH', with args beginning with: "
        nosuch a "b c" d => -"ERR unknown command 'nosuch', with args beginning with: 'a' 'b c' 'd' "
        "no\x00such" "a\x00b" "" => -"ERR unknown command 'no', with args beginning with: 'a' '' "
        "" a => -"ERR unknown command '', with args beginning with: 'a' "
        GET => -ERR wrong number of arguments for 'get' command
        get a b c => -ERR wrong number of arguments for 'get' command
        "nosuch\r\nx" "y\nz" => -"ERR unknown command 'nosuch  x', with args beginning with: 'y z' "
        CLIENT => -ERR wrong number of arguments for 'client' command
        CLIENT NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.
        CONFIG NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try CONFIG HELP.
        OBJECT NOSUCH x => -ERR unknown subcommand 'NOSUCH'. Try OBJECT HELP.
        CLIENT SETNAME => -ERR wrong number of arguments for 'client|setname' command
        CLIENT GETNAME x => -ERR wrong number of arguments for 'client|getname' command
    "#,
    );
}

#[test]
fn hello_changes_the_protocol() {
    let server = Server::start();
    let mut connection = server.connect();
    let hello = connection.line("HELLO");
    assert!(matches!(hello, Value::Array(_)), "RESP2 is what a connection starts with");
    assert_eq!(hello.field("server").text(), "redis");
    assert_eq!(hello.field("proto").integer(), 2);
    let hello = connection.line("HELLO 3");
    assert!(matches!(hello, Value::Map(_)));
    assert_eq!(hello.field("proto").integer(), 3);
    assert_eq!(hello.field("role").text(), "master");
    assert_eq!(hello.field("modules").elements().len(), 0);
    assert_eq!(hello.field("id").integer(), connection.line("CLIENT ID").integer());
    let version = hello.field("version").text();
    assert_eq!(version.split('.').filter(|part| part.parse::<u32>().is_ok()).count(), 3, "{version}");
    check(
        &mut connection,
        r#"
        GET missing => nil
        HELLO 4 => -NOPROTO unsupported protocol version
        HELLO 1 => -NOPROTO unsupported protocol version
        HELLO x => -ERR Protocol version is not an integer or out of range
        HELLO 3 bogus => -ERR Syntax error in HELLO option 'bogus'
        HELLO 3 SETNAME => -ERR Syntax error in HELLO option 'SETNAME'
        HELLO 3 AUTH default => -ERR Syntax error in HELLO option 'AUTH'
        HELLO 3 AUTH nobody wrong => -WRONGPASS invalid username-password pair or user is disabled.
        HELLO 3 AUTH default anything SETNAME me => *
        CLIENT GETNAME => me
        HELLO 2 SETNAME "with space" => -ERR Client names cannot contain spaces, newlines or special characters.
        CLIENT GETNAME => me
        HELLO 2 => *
        GET missing => nil
        LPOP missing 1 => nil-array
    "#,
    );
}

#[test]
fn auth_without_a_password_says_so() {
    replies(
        r#"
        AUTH x => -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
        AUTH default x => OK
        AUTH nobody x => -WRONGPASS invalid username-password pair or user is disabled.
        AUTH => -ERR wrong number of arguments for 'auth' command
        AUTH a b c => -ERR syntax error
    "#,
    );
}

#[test]
fn names_are_kept_and_checked() {
    replies(
        r#"
        CLIENT GETNAME => nil
        CLIENT SETNAME worker-1 => OK
        CLIENT GETNAME => worker-1
        CLIENT SETNAME "a b" => -ERR Client names cannot contain spaces, newlines or special characters.
        CLIENT SETNAME "a\nb" => -ERR Client names cannot contain spaces, newlines or special characters.
        CLIENT GETNAME => worker-1
        CLIENT SETNAME "" => OK
        CLIENT GETNAME => nil
        7.2| CLIENT SETINFO lib-name my-library => OK
        7.2| CLIENT SETINFO LIB-VER 1.2.3 => OK
        7.2| CLIENT SETINFO lib-name "a b" => -ERR lib-name cannot contain spaces, newlines or special characters.
        7.2| CLIENT SETINFO bogus x => -ERR Unrecognized option 'bogus'
    "#,
    );
    replies_resp3(
        r#"
        CLIENT GETNAME => nil
    "#,
    );
}

/// The fields of one line of `CLIENT LIST`.
fn field<'l>(line: &'l str, name: &str) -> &'l str {
    let found = line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name}= in {line}"))
}

#[test]
fn client_info_and_list_describe_connections() {
    let server = Server::start();
    let mut first = server.connect();
    // Each core takes connections in by itself: the first is taken in before the second comes.
    first.line("CLIENT SETNAME first");
    let mut second = server.connect();
    second.line("CLIENT SETNAME second");
    second.line("SELECT 7");
    let id = second.line("CLIENT ID").integer();
    assert!(id > first.line("CLIENT ID").integer(), "later connections have higher numbers");
    let info = second.line("CLIENT INFO");
    let info = info.text().trim_end();
    assert_eq!(field(info, "id"), id.to_string());
    assert_eq!(field(info, "name"), "second");
    assert_eq!(field(info, "db"), "7");
    assert_eq!(field(info, "cmd"), "client|info");
    assert_eq!(field(info, "laddr"), format!("127.0.0.1:{}", server.port()));
    for name in ["addr", "fd", "age", "idle", "flags", "sub", "psub", "multi", "qbuf", "obl", "omem", "user", "resp"] {
        field(info, name);
    }
    let list = first.line("CLIENT LIST");
    let own = list.text().lines().find(|line| field(line, "name") == "first").expect("the own line");
    assert_eq!(field(own, "oll"), "0", "nothing else is owed");
    let names: Vec<&str> = list.text().lines().map(|line| field(line, "name")).collect();
    assert!(names.contains(&"first") && names.contains(&"second"), "{names:?}");
    let one = first.line(&format!("CLIENT LIST ID {id}"));
    assert_eq!(one.text().lines().count(), 1);
    assert_eq!(field(one.text(), "name"), "second");
    check(
        &mut first,
        r#"
        CLIENT LIST TYPE bogus => -ERR Unknown client type 'bogus'
        CLIENT LIST ID x => -ERR Invalid client ID
        CLIENT LIST ID 0 -5 => ""
        CLIENT LIST bogus => -ERR syntax error
        CLIENT LIST TYPE pubsub => ""
    "#,
    );
}

#[test]
fn connections_are_chosen_by_all_that_is_asked_for() {
    let server = Server::start();
    let mut operator = server.connect();
    let mut others: Vec<Connection> = Vec::new();
    for _ in 0..3 {
        // Each core takes connections in by itself: an answer tells that the connection is there.
        others.push(server.connect());
        others.last_mut().expect("one").line("PING");
    }
    let mut at_shard = server.connect_to_shard(1);
    let ids: Vec<i64> = others.iter_mut().map(|other| other.line("CLIENT ID").integer()).collect();
    // Several by their numbers, in the order asked for; numbers that nobody has are passed over.
    let asked = [ids[2], 1_000_000, ids[0], ids[2]].map(|id| id.to_string());
    let listed = operator.call(&[&["CLIENT", "LIST", "ID"].map(String::from)[..], &asked].concat());
    let listed: Vec<&str> = listed.text().lines().map(|line| field(line, "id")).collect();
    assert_eq!(listed, [&asked[0], &asked[2], &asked[3]]);

    let address = others[0].line("CLIENT INFO");
    let address = field(address.text(), "addr").to_owned();
    // Everything has to fit.
    for none in [
        format!("CLIENT KILL ADDR {address} ID {}", ids[1]),
        format!("CLIENT KILL ADDR {address} TYPE pubsub"),
        format!("CLIENT KILL ADDR {address} LADDR 127.0.0.1:1"),
        format!("CLIENT KILL ADDR {address} MAXAGE 100000"),
        format!("CLIENT KILL LADDR {address}"),
    ] {
        assert_eq!(operator.line(&none), Value::Integer(0), "{none}");
    }
    let fitting = format!("CLIENT KILL USER default TYPE normal ADDR {address} ID {} SKIPME no", ids[0]);
    assert_eq!(operator.line(&fitting), Value::Integer(1));
    others[0].expect_close();
    let local = format!("127.0.0.1:{}", server.shard_port(1));
    assert_eq!(operator.line(&format!("CLIENT KILL LADDR {local}")), Value::Integer(1));
    at_shard.expect_close();
    // The caller itself goes only where it is not passed over, and has its reply first.
    let own = operator.line("CLIENT ID").integer();
    assert_eq!(operator.line(&format!("CLIENT KILL ID {own}")), Value::Integer(0));
    assert_eq!(operator.line("CLIENT KILL USER default SKIPME no"), Value::Integer(3));
    operator.expect_close();
    others[1].expect_close();
    others[2].expect_close();
}

#[test]
fn client_kill_closes_the_chosen_connection() {
    let server = Server::start();
    let mut killer = server.connect();
    let mut victim = server.connect();
    let mut bystander = server.connect();
    let id = victim.line("CLIENT ID").integer();
    assert_eq!(killer.line(&format!("CLIENT KILL ID {id}")), Value::Integer(1));
    victim.expect_close();
    assert_eq!(killer.line(&format!("CLIENT KILL ID {id}")), Value::Integer(0));
    let mut victim = server.connect();
    let info = victim.line("CLIENT INFO");
    let address = field(info.text(), "addr");
    assert_eq!(format!("{:?}", killer.line(&format!("CLIENT KILL {address}"))), "+OK");
    victim.expect_close();
    check(
        &mut killer,
        r#"
        CLIENT KILL 1.2.3.4:5 => -ERR No such client
        CLIENT KILL ID x => -ERR client-id should be greater than 0
        CLIENT KILL bogus x => -ERR syntax error
        CLIENT KILL TYPE bogus => -ERR Unknown client type 'bogus'
        CLIENT KILL USER nobody => -ERR No such user 'nobody'
        CLIENT KILL => -ERR wrong number of arguments for 'client|kill' command
    "#,
    );
    assert_eq!(format!("{:?}", bystander.line("PING")), "+PONG");
    assert_eq!(killer.line("CLIENT KILL TYPE normal SKIPME yes"), Value::Integer(1));
    bystander.expect_close();
    assert_eq!(format!("{:?}", killer.line("PING")), "+PONG");
}

#[test]
fn reset_returns_a_connection_to_its_start() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.line("HELLO 3 SETNAME me");
    connection.line("SELECT 5");
    connection.line("CLIENT REPLY ON");
    assert_eq!(format!("{:?}", connection.line("RESET")), "+RESET");
    check(
        &mut connection,
        r#"
        CLIENT GETNAME => nil
        LPOP missing 1 => nil-array
        SET a 1 => OK
        SELECT 0 => OK
        GET a => 1
    "#,
    );
}

#[test]
fn client_no_evict_and_no_touch_take_their_words() {
    replies(
        r#"
        CLIENT NO-EVICT on => OK
        CLIENT NO-EVICT off => OK
        CLIENT NO-EVICT bogus => -ERR syntax error
        7.2| CLIENT NO-TOUCH on => OK
        7.2| CLIENT NO-TOUCH off => OK
        7.2| CLIENT NO-TOUCH bogus => -ERR syntax error
    "#,
    );
}

#[test]
fn more_connections_than_maxclients_are_told_so() {
    let server = Server::start();
    let mut first = server.connect();
    first.line("CONFIG SET maxclients 10");
    let mut others: Vec<Connection> = (0..9).map(|_| server.connect()).collect();
    for other in &mut others {
        other.line("PING");
    }
    let mut refused = server.connect();
    assert_eq!(refused.read_value().error(), "ERR max number of clients reached");
    refused.expect_close();
    assert!(server_counts_rejected(&mut first) >= 1);
    drop(others);
    wait_until("a place is free again", || {
        let mut connection = server.connect();
        connection.try_send(b"PING\r\n").is_ok()
            && connection.try_read_value().is_ok_and(|value| value == Value::Simple("PONG".to_owned()))
    });
}

fn server_counts_rejected(connection: &mut Connection) -> i64 {
    let info = connection.line("INFO stats");
    let value = info.text().lines().find_map(|line| line.strip_prefix("rejected_connections:"));
    value.expect("a count of rejected connections").trim().parse().expect("a number")
}

#[test]
fn a_client_that_never_pauses_keeps_nobody_else_waiting() {
    let server = Server::with(&Options { shards: 1, ..Options::default() });
    let (is_over, count) = (AtomicBool::new(false), AtomicI64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut connection = server.connect();
            while !is_over.load(Ordering::Relaxed) {
                let next = count.load(Ordering::Relaxed) + 1;
                assert_eq!(connection.line("INCR counter"), Value::Integer(next));
                count.store(next, Ordering::Relaxed);
            }
            // The end of the one that was alone is seen too.
            connection.finish_sending();
            connection.expect_close();
        });
        for round in 1..=20 {
            // Enough for it to be taken for the only one.
            wait_until("many requests on end", || count.load(Ordering::Relaxed) > round * 200);
            let mut connection = server.connect();
            assert_eq!(connection.line("SET other 1"), Value::Simple("OK".to_owned()));
            assert!(connection.line("CLIENT LIST").text().lines().count() >= 2);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    wait_until("the clients to be gone", || server.info_number("connected_clients") == 1);
    assert_eq!(server.connect().line("GET counter").text(), count.load(Ordering::Relaxed).to_string());
}
