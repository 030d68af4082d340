//! Data of another number of shards than the server has now: divided anew at the start, whatever happens meanwhile.

use std::fs;
use std::time::Duration;

use crate::support::stored::{Snapshot, assert_same, content, fill, wait_until_loaded};
use crate::support::{Connection, Options, Server, Value, encode_command, wait_until};

const DURABLE: [&str; 2] = ["--durability", "everysec"];

fn server(shards: u16, arguments: &[&str]) -> Server {
    let arguments = [&DURABLE, arguments].concat();
    Server::with(&Options { shards, arguments: &arguments, ..Options::default() })
}

/// Kills the server and starts it with another number of shards.
fn divide(server: &mut Server, shards: u16, arguments: &[&str]) {
    server.start_later_with(shards, &[&DURABLE, arguments].concat());
    server.kill_and_restart();
    wait_until_loaded(server);
}

/// The names in the data directory.
fn names(server: &Server) -> Vec<String> {
    let entries = fs::read_dir(server.data()).expect("the data directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn wait_for_generation(server: &Server, generation: usize) {
    let expected = [format!("generation-{generation}"), "lock".to_owned(), "manifest.toml".to_owned()];
    wait_until("files of other generations to go", || names(server) == expected);
}

#[test]
fn everything_is_there_whatever_the_number_of_shards() {
    let mut server = server(2, &[]);
    fill(&server, 60);
    server.connect().line("SAVE");
    fill(&server, 80);
    let before = content(&server);
    for (generation, shards) in [(2, 3), (3, 1), (4, 5), (5, 2)] {
        divide(&mut server, shards, &[]);
        assert_same(&content(&server), &before, &format!("{shards} shards"));
        wait_for_generation(&server, generation);
        let folders = fs::read_dir(server.data().join(format!("generation-{generation}"))).expect("the generation");
        assert_eq!(folders.count(), usize::from(shards));
        server.connect().line(&format!("SET later:{generation} 1"));
        server.connect().line(&format!("DEL later:{generation}"));
        server.kill_and_restart();
        wait_until_loaded(&server);
        assert_same(&content(&server), &before, &format!("{shards} shards, started again"));
    }
}

#[test]
fn records_with_keys_of_several_slots_are_divided_by_what_they_did() {
    let allow = ["--cross-slot", "allow"];
    let mut server = server(1, &allow);
    let mut connection = server.connect();
    for index in 0..40 {
        for line in [
            format!("MSET a:{index} 1 b:{index} 2 c:{index} 3"),
            format!("RENAME a:{index} d:{index}"),
            format!("SADD s:{index} x y {index}"),
            format!("SADD t:{index} y {index} z"),
            format!("SINTERSTORE u:{index} s:{index} t:{index}"),
            format!("SMOVE s:{index} t:{index} x"),
            format!("RPUSH l:{index} 1 2 3"),
            format!("LMOVE l:{index} m:{index} LEFT RIGHT"),
            format!("COPY m:{index} n:{index}"),
            format!("DEL b:{index} c:{index}"),
        ] {
            let reply = connection.line(&line);
            assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
        }
        let lines = ["MULTI".to_owned(), format!("INCR p:{index}"), format!("INCR q:{index}"), "EXEC".to_owned()];
        connection.pipeline(lines.iter().map(String::as_str));
    }
    connection.pipeline(["SELECT 1", "MSET x 1 y 2 z 3", "SWAPDB 1 2", "MSET x 4 y 5", "FLUSHDB", "SET v 6"]);
    let before = content(&server);
    assert!(before.len() > 300);
    for shards in [4, 3, 1] {
        divide(&mut server, shards, &allow);
        assert_same(&content(&server), &before, &format!("{shards} shards"));
    }
}

#[test]
fn deadlines_and_versions_are_kept() {
    let mut server = server(2, &[]);
    let mut connection = server.connect();
    for index in 0..20 {
        connection.line(&format!("SET expiring:{index} value PXAT 99999999999{index:02}"));
        connection.line(&format!("HSET hash:{index} field value"));
        connection.line(&format!("HPEXPIREAT hash:{index} 99999999999{index:02} FIELDS 1 field"));
        (0..=index).for_each(|round| drop(connection.line(&format!("SETV versioned:{index} {round}"))));
        connection.line(&format!("SET short:{index} value PX 1"));
    }
    divide(&mut server, 3, &[]);
    let mut connection = server.connect();
    for index in 0..20 {
        let deadline_ms = format!("99999999999{index:02}").parse().expect("a number");
        assert_eq!(connection.line(&format!("PEXPIRETIME expiring:{index}")), Value::Integer(deadline_ms));
        let reply = connection.line(&format!("HPEXPIRETIME hash:{index} FIELDS 1 field"));
        assert_eq!(reply.elements(), [Value::Integer(deadline_ms)]);
        assert_eq!(connection.line(&format!("GETV versioned:{index}")).elements()[1], Value::Integer(index + 1));
        assert!(connection.line(&format!("GET short:{index}")).is_null());
    }
}

#[test]
fn a_torn_tail_is_left_out_and_damage_leaves_the_old_division_as_it_was() {
    // Every write is synced, and every write tells how far the log was, so that the first records are known to be stored.
    let mut server = Server::with(&Options { arguments: &["--durability", "always"], ..Options::default() });
    fill(&server, 20);
    let before = content(&server);
    server.connect().send(b"SHUTDOWN\r\n");
    assert!(server.wait_for_exit().success());
    let whole = Snapshot::of(&server.data());
    let is_log = |path: &str| path.contains("shard-1/log-");
    let torn = whole.with_changed(is_log, |name, content| (name.to_owned(), [content, &[9; 20]].concat()));
    torn.put(&server.data());
    server.start_later_with(3, &DURABLE);
    server.restart();
    wait_until_loaded(&server);
    assert_same(&content(&server), &before, "three shards");
    server.kill();

    let damaged = whole.with_changed(is_log, |name, content| {
        let mut content = content.to_vec();
        content[70] ^= 1;
        (name.to_owned(), content)
    });
    damaged.put(&server.data());
    server.restart_without_waiting();
    let status = server.wait_for_exit();
    let synced = server.output().contains("is damaged at offset 64");
    assert!(!status.success() && synced, "{}", server.output());
    assert_eq!(Snapshot::of(&server.data()), damaged);
}

/// The states that a division into three shards goes through on the disk, from two shards to its end.
fn states(server: &mut Server) -> Vec<(&'static str, Snapshot)> {
    let old = Snapshot::of(&server.data());
    server.start_later_with(3, &DURABLE);
    server.restart();
    wait_until_loaded(server);
    wait_for_generation(server, 2);
    server.kill();
    let new = Snapshot::of(&server.data());
    let is_new = |path: &str| path.starts_with("generation-2");
    let cut = |share: usize| {
        move |name: &str, content: &[u8]| (name.to_owned(), content[..content.len() * share / 10].to_vec())
    };
    let is_manifest = |path: &str| path == "manifest.toml";
    let both = old.with(&new, is_new);
    let next_manifest = |share: usize| {
        let manifest = new.without(|path| path != "manifest.toml").with_changed(is_manifest, |_, content| {
            ("manifest.new".to_owned(), content[..content.len() * share / 10].to_vec())
        });
        both.with(&manifest, |_| true)
    };
    let in_force = both.with(&new, is_manifest);
    vec![
        ("nothing is done", old.clone()),
        ("the folder is made", old.with(&new, |path| path == "generation-2")),
        ("a shard's folder is made", old.with(&new, |path| path == "generation-2" || path == "generation-2/shard-0")),
        ("the files are made", old.with(&new.with_changed(is_new, cut(0)), is_new)),
        ("the files are half written", old.with(&new.with_changed(is_new, cut(5)), is_new)),
        ("the files are written but for their ends", old.with(&new.with_changed(is_new, cut(9)), is_new)),
        ("all files are written", both.clone()),
        ("the next manifest is empty", next_manifest(0)),
        ("the next manifest is half written", next_manifest(5)),
        ("the next manifest is written", next_manifest(10)),
        ("the next manifest is in force", in_force.clone()),
        ("a file of the old division is removed", in_force.without(|path| path.starts_with("generation-1/shard-0/"))),
        ("a shard of the old division is removed", in_force.without(|path| path.starts_with("generation-1/shard-1"))),
        ("the shards of the old division are removed", in_force.without(|path| path.starts_with("generation-1/"))),
        ("all is done", new),
    ]
}

#[test]
fn a_division_that_ends_at_any_step_is_taken_up_or_given_up_at_the_next_start() {
    let mut server = server(2, &[]);
    fill(&server, 30);
    server.connect().line("SAVE");
    fill(&server, 40);
    let before = content(&server);
    server.kill();
    for (step, state) in states(&mut server) {
        // The division goes on, or goes back, or into another number again.
        for shards in [3, 2, 4] {
            state.put(&server.data());
            server.start_later_with(shards, &DURABLE);
            server.restart();
            wait_until_loaded(&server);
            assert_same(&content(&server), &before, &format!("{step}, then {shards} shards"));
            wait_until("one generation to be left", || names(&server).len() == 3);
            server.kill_and_restart();
            wait_until_loaded(&server);
            assert_same(&content(&server), &before, &format!("{step}, then {shards} shards, again"));
            server.kill();
        }
    }
}

#[test]
fn a_division_killed_at_any_time_loses_nothing() {
    const KEYS: usize = 30_000;
    let mut server = server(2, &[]);
    let mut connection = server.connect();
    let value = "v".repeat(200);
    for part in 0..2 {
        let indexes = part * KEYS / 2..(part + 1) * KEYS / 2;
        indexes.clone().for_each(|index| connection.send(&encode_command(&["SET", &format!("key:{index}"), &value])));
        indexes.for_each(|_| drop(connection.read_value()));
        if part == 0 {
            connection.line("SAVE");
        }
    }
    let seed = std::process::id() as u64;
    let mut chance = seed;
    for round in 0..20 {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let shards = 1 + (chance >> 40) % 5;
        server.kill();
        server.start_later_with(shards as u16, &DURABLE);
        server.restart_without_waiting();
        if round % 4 < 3 {
            // Time is what is random here.
            std::thread::sleep(Duration::from_micros((chance >> 20) % 400_000));
            continue;
        }
        wait_until("an answer", || Connection::open(server.port()).is_ok());
        wait_until_loaded(&server);
        let mut connection = server.connect();
        assert_eq!(connection.line("DBSIZE"), Value::Integer(KEYS as i64), "round {round}, seed {seed}");
        let indexes = (round..KEYS).step_by(7);
        indexes.clone().for_each(|index| connection.send(&encode_command(&["GET", &format!("key:{index}")])));
        indexes.for_each(|index| assert_eq!(connection.read_value().text(), value, "key:{index}, seed {seed}"));
    }
}

#[test]
fn clients_are_told_that_data_are_read_meanwhile_and_the_process_can_be_ended() {
    const KEYS: usize = 200_000;
    let mut server = server(2, &[]);
    let mut connection = server.connect();
    for part in 0..KEYS / 10_000 {
        let indexes = part * 10_000..(part + 1) * 10_000;
        indexes
            .clone()
            .for_each(|index| connection.send(&encode_command(&["RPUSH", &format!("key:{index}"), "a", "1"])));
        indexes.for_each(|_| drop(connection.read_value()));
    }
    server.kill();
    let old = Snapshot::of(&server.data());
    server.start_later_with(3, &DURABLE);
    server.restart_without_waiting();
    wait_until("an answer", || Connection::open(server.port()).is_ok());
    let mut connection = server.connect();
    assert!(connection.line("GET key:1").error().starts_with("LOADING"));
    let info = connection.line("INFO persistence");
    let field = |name: &str| info.text().lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    assert_eq!(field("loading:").as_deref(), Some("1"));
    assert!(field("loading_total_bytes:").is_some());
    connection.send(b"SHUTDOWN NOSAVE\r\n");
    assert!(server.wait_for_exit().success());
    assert_eq!(Snapshot::of(&server.data()), old);
    server.restart();
    wait_until("the division", || server.output().contains("the data are divided into 3 shards"));
    wait_until_loaded(&server);
    assert_eq!(server.connect().line("DBSIZE"), Value::Integer(KEYS as i64));
}
