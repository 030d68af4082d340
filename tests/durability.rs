//! What is kept when the process ends, on a server with two shards.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::support::stored::{Snapshot, assert_same, content, fill, wait_until_loaded};
use crate::support::{Connection, Options, PortBlock, Server, Value, encode_command, wait_until};

const MODES: [&str; 2] = ["everysec", "always"];

fn server(mode: &str) -> Server {
    Server::with(&Options { arguments: &["--durability", mode], ..Options::default() })
}

/// The files of the shards' logs.
fn segments(server: &Server) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for shard in 0..2 {
        let directory = server.data().join("generation-1").join(format!("shard-{shard}"));
        let entries = fs::read_dir(directory).expect("the shard's folder");
        files.extend(entries.map(|entry| entry.expect("a file").path()));
    }
    files.sort();
    files
}

#[test]
fn everything_is_there_again_after_a_kill_and_after_an_end_in_order() {
    for mode in MODES {
        let mut server = server(mode);
        fill(&server, 200);
        let before = content(&server);
        server.kill_and_restart();
        wait_until_loaded(&server);
        assert_same(&content(&server), &before, &format!("after a kill, {mode}"));
        server.connect().line("SET later 1");
        let before = content(&server);
        server.connect().send(b"SHUTDOWN\r\n");
        assert!(server.wait_for_exit().success());
        server.restart();
        wait_until_loaded(&server);
        assert_same(&content(&server), &before, &format!("after an end in order, {mode}"));
    }
}

/// Fills a server's logs, ends it, and returns what it held.
fn filled(server: &mut Server) -> Vec<String> {
    let mut connection = server.connect();
    (0..50).for_each(|index| drop(connection.line(&format!("SET key:{index} {index}"))));
    let before = content(server);
    connection.send(b"SHUTDOWN\r\n");
    assert!(server.wait_for_exit().success());
    before
}

#[test]
fn a_record_that_was_not_written_to_its_end_is_cut_off_and_reported() {
    let mut server = server("everysec");
    let before = filled(&mut server);
    let segment = segments(&server).into_iter().find(|path| fs::metadata(path).expect("a file").len() > 0);
    let segment = segment.expect("a segment with records");
    let mut file = OpenOptions::new().append(true).open(&segment).expect("the segment");
    file.write_all(&[1, 2, 3, 4, 200, 0, 0, 0, 1, 5, 5]).expect("a torn record");
    server.restart();
    wait_until_loaded(&server);
    assert_same(&content(&server), &before, "after the cut");
    assert!(server.output().contains("the last 11 bytes of"), "{}", server.output());
    server.kill_and_restart();
    wait_until_loaded(&server);
    assert_same(&content(&server), &before, "after the cut");
}

#[test]
fn damage_to_what_was_stored_stops_the_start_and_changes_nothing() {
    let mut server = server("always");
    filled(&mut server);
    let segment = segments(&server).into_iter().find(|path| fs::metadata(path).expect("a file").len() > 0);
    let segment = segment.expect("a segment with records");
    let mut file = OpenOptions::new().read(true).write(true).open(&segment).expect("the segment");
    let mut byte = [0];
    file.seek(SeekFrom::Start(80)).and_then(|_| file.read_exact(&mut byte)).expect("a byte");
    file.seek(SeekFrom::Start(80)).and_then(|_| file.write_all(&[byte[0] ^ 1])).expect("a changed byte");
    drop(file);
    let bytes = fs::read(&segment).expect("the segment");
    let output = Command::new(env!("CARGO_BIN_EXE_ruvio"))
        .args(["--port", &server.port().to_string(), "--shards", "2", "--durability", "always", "--dir"])
        .arg(server.data())
        .args(["--shard-port-base", &server.shard_port(0).to_string()])
        .output()
        .expect("the server's end");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("offset 64") && error.contains("damaged"), "{error}");
    assert_eq!(fs::read(&segment).expect("the segment"), bytes);
}

#[test]
fn two_processes_do_not_use_one_directory() {
    let server = server("everysec");
    let output = Command::new(env!("CARGO_BIN_EXE_ruvio"))
        .args(["--port", "0", "--shards", "2", "--durability", "everysec", "--shard-port-base", "1", "--dir"])
        .arg(server.data())
        .output()
        .expect("the server's end");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("another process uses the data directory") || error.contains("port"), "{error}");
}

#[test]
fn a_waiting_client_is_given_what_is_stored() {
    for mode in MODES {
        let mut server = server(mode);
        for tag in ["{a}", "{b}"] {
            let mut waiting: Connection = server.connect();
            waiting.send(&encode_command(&["BLPOP", &format!("{tag}q"), "0"]));
            wait_until("the client to wait", || server.info_number("blocked_clients") == 1);
            server.connect().line(&format!("RPUSH {tag}q first second"));
            assert_eq!(waiting.read_value().elements()[1].text(), "first");
        }
        server.kill_and_restart();
        wait_until_loaded(&server);
        for tag in ["{a}", "{b}"] {
            assert_eq!(server.connect().line(&format!("LPOP {tag}q")).text(), "second", "{mode}");
        }
    }
}

#[test]
fn a_checkpoint_is_made_while_commands_go_on_and_replaces_the_log_before_it() {
    for mode in MODES {
        let mut server = server(mode);
        let mut connection = server.connect();
        for index in 0..20_000 {
            connection.send(&encode_command(&["SET", &format!("key:{index}"), &format!("value:{index}")]));
        }
        (0..20_000).for_each(|_| drop(connection.read_value()));
        connection.pipeline([
            "RPUSH list 1 2 3",
            "HSET hash a 1 b 2",
            "SADD set a 1",
            "ZADD zset 1 a",
            "SET x 1 EX 1000",
        ]);
        let writer = {
            let mut connection = server.connect();
            std::thread::spawn(move || {
                for index in 0..4_000 {
                    connection.call(&["SET", &format!("key:{}", index * 7 % 20_000), "changed"]);
                    connection.call(&["INCR", &format!("counter:{}", index % 100)]);
                    connection.call(&["DEL", &format!("key:{}", index * 3 % 20_000)]);
                }
            })
        };
        for _ in 0..3 {
            assert_eq!(connection.line("SAVE"), Value::Simple("OK".to_owned()));
        }
        writer.join().expect("the writer");
        let before = content(&server);
        server.kill_and_restart();
        wait_until_loaded(&server);
        assert_same(&content(&server), &before, &format!("after a kill, {mode}"));
        assert_eq!(server.connect().line("SAVE"), Value::Simple("OK".to_owned()));
        let names: Vec<String> =
            segments(&server).iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(names.iter().filter(|name| name.starts_with("checkpoint-")).count(), 2, "{names:?}");
        assert!(!names.iter().any(|name| name == "log-0000000000000000"), "{names:?}");
        server.kill_and_restart();
        wait_until_loaded(&server);
        assert_same(&content(&server), &before, &format!("from checkpoints, {mode}"));
        let connection = &mut server.connect();
        assert_eq!(connection.line("BGSAVE"), Value::Simple("Background saving started".to_owned()));
        wait_until("the checkpoint", || server.info_number("rdb_bgsave_in_progress") == 0);
        connection.pipeline(["FLUSHALL", "SET only 1"]);
        connection.line("SAVE");
        server.kill_and_restart();
        wait_until_loaded(&server);
        assert_eq!(server.connect().line("KEYS *").elements().len(), 1);
    }
}

const FIRST_STEP: &str = "the file is made";

/// The states that a checkpoint goes through on the disk, from a log alone to its end, with records that came meanwhile.
fn states(before: &Snapshot, after: &Snapshot) -> Vec<(&'static str, Snapshot)> {
    let is_checkpoint = |path: &str| path.contains("/checkpoint-");
    let is_log = |path: &str| path.contains("/log-");
    let unfinished = |share: usize| {
        let checkpoints = after.without(|path| !is_checkpoint(path));
        checkpoints.with_changed(is_checkpoint, |_, content| {
            ("checkpoint.new".to_owned(), content[..content.len() * share / 10].to_vec())
        })
    };
    let rotated = before.with(after, is_log);
    let named = rotated.with(after, is_checkpoint);
    let first_shard = |path: &str| path.contains("/shard-0/");
    vec![
        (FIRST_STEP, before.with(&unfinished(0), |_| true)),
        ("the log goes on in a new segment", rotated.clone()),
        ("the file is made, and the log goes on in a new segment", rotated.with(&unfinished(0), |_| true)),
        ("the file is half written", rotated.with(&unfinished(5), |_| true)),
        ("the file is written but for its end", rotated.with(&unfinished(9), |_| true)),
        ("the file is written", rotated.with(&unfinished(10), |_| true)),
        ("one shard's is in force", rotated.with(after, |path| is_checkpoint(path) && first_shard(path))),
        ("both are in force", named.clone()),
        (
            "one shard's earlier segments are removed",
            named.without(|path| first_shard(path) && before.paths().iter().any(|old| old == path) && is_log(path)),
        ),
        ("all is done", after.clone()),
    ]
}

#[test]
fn a_checkpoint_that_ends_at_any_step_leaves_everything_there() {
    let mut server = server("everysec");
    fill(&server, 60);
    let at_first = content(&server);
    server.kill();
    let before = Snapshot::of(&server.data());
    server.restart();
    wait_until_loaded(&server);
    assert_eq!(server.connect().line("SAVE"), Value::Simple("OK".to_owned()));
    fill(&server, 20);
    let at_the_end = content(&server);
    server.kill();
    let after = Snapshot::of(&server.data());
    for (step, state) in states(&before, &after) {
        state.put(&server.data());
        server.restart();
        wait_until_loaded(&server);
        let found = content(&server);
        // Only of the first state are the records of later missing.
        assert_same(&found, if step == FIRST_STEP { &at_first } else { &at_the_end }, step);
        server.kill_and_restart();
        wait_until_loaded(&server);
        assert_same(&content(&server), &found, &format!("{step}, again"));
        assert!(!Snapshot::of(&server.data()).paths().iter().any(|path| path.ends_with(".new")), "{step}");
        server.kill();
    }
}

/// A file system of its own, of few bytes.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None where that is not allowed.
    fn mount(path: PathBuf, size: &str) -> Option<SmallDisk> {
        fs::create_dir_all(&path).expect("a folder");
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&path).output().ok()?;
        mounted.status.success().then_some(SmallDisk(path))
    }

    fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        let resized = Command::new("mount").args(["-o", &options]).arg(&self.0).status();
        assert!(resized.expect("mount").success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A server of one shard with its data on a disk of this size; `None` where this user may not mount one.
fn server_on_small_disk(size: &str, mode: &str) -> Option<(SmallDisk, Server)> {
    let directory = TempDir::with_prefix("ruvio-test-").expect("a folder for the server");
    let Some(disk) = SmallDisk::mount(directory.path().join("data"), size) else {
        eprintln!("not tested: this user may not mount a file system");
        return None;
    };
    let ports = PortBlock::claim();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ruvio"));
    command.args(["--port", &ports.port(0).to_string(), "--shard-port-base", &ports.port(1).to_string()]);
    command.args(["--shards", "1", "--durability", mode, "--dir"]).arg(&disk.0);
    let server = Server::from_command(command, ports, directory);
    wait_until_loaded(&server);
    Some((disk, server))
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_space_again() {
    for mode in MODES {
        let Some((disk, mut server)) = server_on_small_disk("3m", mode) else { return };
        let mut connection = server.connect();
        let value = "v".repeat(20_000);
        let mut stored = 0;
        let error = loop {
            match connection.call(&["SET", &format!("key:{stored}"), &value]) {
                Value::Simple(_) => stored += 1,
                reply => break reply.error().to_owned(),
            }
            assert!(stored < 1000, "the disk is not full");
        };
        assert_eq!(error, "MISCONF Errors writing to the AOF file: No space left on device");
        assert!(stored > 20, "{stored}");
        assert!(connection.line("FLUSHALL").error().starts_with("MISCONF "), "{mode}");
        assert!(connection.line("INCR key:0").error().starts_with("MISCONF "), "{mode}");
        assert_eq!(connection.line("DBSIZE"), Value::Integer(stored));
        assert_eq!(connection.line("GET key:0").text(), value);
        assert!(connection.call(&["GET", &format!("key:{stored}")]).is_null());
        let information = connection.line("INFO persistence");
        assert!(information.text().contains("aof_last_write_status:err"), "{}", information.text());
        assert!(information.text().contains("log_trouble:no room for the log"), "{}", information.text());
        disk.resize("64m");
        wait_until("the log to have space", || {
            server.connect().line("INFO persistence").text().contains("aof_last_write_status:ok")
        });
        assert_eq!(connection.line("SET later 1"), Value::Simple("OK".to_owned()));
        let before = content(&server);
        server.kill_and_restart();
        wait_until_loaded(&server);
        assert_same(&content(&server), &before, &format!("after a full disk, {mode}"));
    }
}

#[test]
fn while_a_write_waits_for_space_a_save_is_answered() {
    let Some((disk, mut server)) = server_on_small_disk("8m", "everysec") else { return };
    let mut connection = server.connect();
    assert_eq!(connection.line("SET first 1"), Value::Simple("OK".to_owned()));
    // What was reserved for the log is given to another file, as on a file system that reserves nothing.
    let log = disk.0.join("generation-1/shard-0/log-0000000000000000");
    let log = OpenOptions::new().write(true).open(log).expect("the log");
    log.set_len(log.metadata().expect("the log").len()).expect("the reserve to go");
    let filler = disk.0.join("filler");
    let mut file = fs::File::create(&filler).expect("a file");
    while file.write_all(&[1; 4096]).is_ok() {}
    drop(file);
    // The first record fails to be written while the script runs, and that of the script waits behind it.
    let script = "redis.call('SET', KEYS[1], 1) for i = 1, 20000000 do end return 'done'";
    let mut writer = server.connect();
    let set = encode_command(&["SET", "second", &"v".repeat(8000)]);
    writer.send(&[set, encode_command(&["EVAL", script, "1", "third"])].concat());
    let information = |server: &Server| server.connect().line("INFO persistence").text().to_owned();
    wait_until("the write to fail", || information(&server).contains("log_trouble:writing the log failed"));
    for _ in 0..2 {
        let error = connection.line("SAVE").error().to_owned();
        assert!(error.starts_with("ERR ") && error.contains("No space left on device"), "{error}");
        assert!(information(&server).contains("rdb_last_bgsave_status:err"));
        assert_eq!(connection.line("BGSAVE"), Value::Simple("Background saving started".to_owned()));
        wait_until("the end of it", || server.info_number("rdb_bgsave_in_progress") == 0);
        assert!(information(&server).contains("aof_last_bgrewrite_status:err"));
    }
    fs::remove_file(filler).expect("the file");
    assert_eq!(writer.read_value(), Value::Simple("OK".to_owned()));
    assert_eq!(writer.read_value().text(), "done");
    assert_eq!(connection.line("SAVE"), Value::Simple("OK".to_owned()));
    assert!(information(&server).contains("rdb_last_bgsave_status:ok"));
    server.kill_and_restart();
    wait_until_loaded(&server);
    assert_eq!(server.connect().line("DBSIZE"), Value::Integer(3));
}

#[test]
fn without_durability_nothing_can_be_saved() {
    let server = Server::start();
    let mut connection = server.connect();
    for line in ["SAVE", "BGSAVE", "BGREWRITEAOF"] {
        assert!(connection.line(line).error().contains("durability 'memory'"));
    }
    assert!(connection.line("LASTSAVE").integer() > 1_700_000_000);
}

#[test]
fn when_writes_are_answered_can_be_changed_while_it_runs() {
    let mut server = server("everysec");
    let mut connection = server.connect();
    assert_eq!(connection.line("CONFIG GET appendonly").elements()[1].text(), "yes");
    assert_eq!(connection.line("CONFIG GET appendfsync").elements()[1].text(), "everysec");
    assert_eq!(connection.line("CONFIG SET appendfsync always"), Value::Simple("OK".to_owned()));
    assert_eq!(connection.line("CONFIG GET appendfsync").elements()[1].text(), "always");
    assert!(connection.line("CONFIG SET appendfsync no").error().contains("everysec, always"));
    for tag in ["{a}", "{b}"] {
        connection.line(&format!("SET {tag} 1"));
    }
    server.kill_and_restart();
    wait_until_loaded(&server);
    assert_eq!(server.connect().line("DBSIZE"), Value::Integer(2));
}

#[test]
fn what_is_logged_takes_no_memory_for_long_and_evicts_no_key() {
    let arguments = ["--durability", "everysec", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let server = Server::with(&Options { shards: 1, arguments: &arguments, ..Options::default() });
    let mut connection = server.connect();
    (0..100).for_each(|index| drop(connection.line(&format!("SET key:{index} value"))));
    let large = "x".repeat(20 << 20);
    for _ in 0..3 {
        assert_eq!(connection.call(&["SET", "large", &large]), Value::Simple("OK".to_owned()));
        assert_eq!(connection.line("DBSIZE"), Value::Integer(101));
        assert_eq!(connection.line("DEL large"), Value::Integer(1));
        wait_until("the memory to be given back", || server.info_number("used_memory") < 10 << 20);
    }
    assert_eq!(server.info_number("evicted_keys"), 0);
    assert_eq!(connection.line("SET after 1"), Value::Simple("OK".to_owned()));
}
