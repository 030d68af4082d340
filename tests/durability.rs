//! What is kept when the process ends, on a server with two shards.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use crate::support::{Connection, Options, Server, Value, encode_command, wait_until};

const MODES: [&str; 2] = ["everysec", "always"];

fn server(mode: &str) -> Server {
    Server::with(&Options { arguments: &["--durability", mode], ..Options::default() })
}

/// Waits until the data is read.
fn wait_until_loaded(server: &Server) {
    wait_until("the data to be read", || server.info_number("loading") == 0);
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

#[track_caller]
fn assert_same(found: &[String], expected: &[String], when: &str) {
    let [found, expected] = [found, expected].map(|lines| lines.iter().collect::<BTreeSet<_>>());
    let missing: Vec<_> = expected.difference(&found).take(3).collect();
    let unexpected: Vec<_> = found.difference(&expected).take(3).collect();
    assert!(missing.is_empty() && unexpected.is_empty(), "{when}: missing {missing:?}, unexpected {unexpected:?}");
}

/// Everything there is, in a form that can be compared.
fn content(server: &Server) -> Vec<String> {
    let mut connection = server.connect();
    let mut content = Vec::new();
    for database in 0..3 {
        connection.line(&format!("SELECT {database}"));
        let keys = connection.line("KEYS *").sorted();
        for key in keys.elements() {
            let key = key.text();
            let value = match connection.call(&["TYPE", key]) {
                Value::Simple(kind) if kind == "string" => connection.call(&["GET", key]),
                Value::Simple(kind) if kind == "list" => connection.call(&["LRANGE", key, "0", "-1"]),
                Value::Simple(kind) if kind == "set" => connection.call(&["SMEMBERS", key]).sorted(),
                Value::Simple(kind) if kind == "hash" => connection.call(&["HGETALL", key]).sorted_pairs(),
                Value::Simple(kind) if kind == "zset" => connection.call(&["ZRANGE", key, "0", "-1", "WITHSCORES"]),
                kind => kind,
            };
            let deadline = connection.call(&["PEXPIRETIME", key]);
            content.push(format!("{database} {key} {value:?} {deadline:?}"));
        }
    }
    content
}

#[test]
fn everything_is_there_again_after_a_kill_and_after_an_end_in_order() {
    for mode in MODES {
        let mut server = server(mode);
        let mut connection = server.connect();
        for index in 0..200 {
            for line in [
                format!("SET string:{index} value"),
                format!("SET expiring:{index} value EX 1000"),
                format!("INCRBY counter:{} {index}", index % 7),
                format!("RPUSH list:{} {index}", index % 5),
                format!("SADD set:{} {index} a b c", index % 5),
                format!("SPOP set:{}", index % 5),
                format!("HSET hash:{} field:{index} {index}", index % 5),
                format!("ZADD sorted:{} {index} member:{index}", index % 5),
                format!("ZPOPMIN sorted:{}", index % 3),
                format!("DEL string:{}", index / 2),
                format!("LIMIT limit:{index} 5 1000000"),
                format!("SETV versioned:{index} {index}"),
            ] {
                let reply = connection.line(&line);
                assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
            }
        }
        connection.pipeline(["SELECT 1", "SET one 1", "SET gone 1", "SWAPDB 1 2", "SET gone 1", "FLUSHDB", "SELECT 0"]);
        connection.pipeline(["MULTI", "SET {t}a 1", "INCR {t}a", "PING", "DEL {t}a", "SET {t}b 2", "EXEC"]);
        connection.line("RENAME {t}b {t}c");
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

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    for mode in MODES {
        let mut server = server(mode);
        server.connect().pipeline(["SET {a}one 1000000", "SET {a}other 0", "SET {b}one 1000000", "SET {b}other 0"]);
        for round in 0..5 {
            let ended = AtomicBool::new(false);
            let acknowledged: Vec<i64> = std::thread::scope(|scope| {
                let writers: Vec<_> = (0..4)
                    .map(|writer| {
                        let (mut connection, ended) = (server.connect(), &ended);
                        scope.spawn(move || {
                            let tag = ["{a}", "{b}"][writer % 2];
                            let mut acknowledged = 0;
                            while !ended.load(Ordering::Relaxed) {
                                let mut frames = encode_command(&["INCR", &format!("{tag}n:{round}:{writer}")]);
                                frames.extend(encode_command(&[
                                    "TRANSFER",
                                    &format!("{tag}one"),
                                    &format!("{tag}other"),
                                    "1",
                                ]));
                                if connection.try_send(&frames).is_err() {
                                    break;
                                }
                                match connection.try_read_value() {
                                    Ok(Value::Integer(number)) => acknowledged = number,
                                    _ => break,
                                }
                                if connection.try_read_value().is_err() {
                                    break;
                                }
                            }
                            acknowledged
                        })
                    })
                    .collect();
                let mut observer = server.connect();
                wait_until("some writes", || {
                    !observer.call(&["GET", &format!("{{b}}n:{round}:3")]).is_null()
                        && observer.call(&["GET", &format!("{{b}}n:{round}:3")]).text().parse::<i64>().unwrap() > 50
                });
                let killed = Command::new("kill").args(["-9", &server.process_id().to_string()]).status();
                assert!(killed.expect("kill").success());
                ended.store(true, Ordering::Relaxed);
                writers.into_iter().map(|writer| writer.join().expect("a writer")).collect()
            });
            server.kill_and_restart();
            wait_until_loaded(&server);
            let mut connection = server.connect();
            for (writer, acknowledged) in acknowledged.into_iter().enumerate() {
                let tag = ["{a}", "{b}"][writer % 2];
                let there: i64 = connection.call(&["GET", &format!("{tag}n:{round}:{writer}")]).text().parse().unwrap();
                assert!((acknowledged..=acknowledged + 1).contains(&there), "{mode}: {there} of {acknowledged}");
            }
            for tag in ["{a}", "{b}"] {
                let mut sum = 0;
                for account in ["one", "other"] {
                    sum += connection.call(&["GET", &format!("{tag}{account}")]).text().parse::<i64>().unwrap();
                }
                assert_eq!(sum, 1_000_000, "{mode}");
            }
        }
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
fn another_number_of_shards_is_refused() {
    let mut server = server("everysec");
    filled(&mut server);
    let output = Command::new(env!("CARGO_BIN_EXE_ruvio"))
        .args(["--port", &server.port().to_string(), "--shards", "1", "--durability", "everysec", "--dir"])
        .arg(server.data())
        .output()
        .expect("the server's end");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("2 shards"));
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

#[test]
fn a_full_disk_refuses_writes_until_there_is_space_again() {
    for mode in MODES {
        let directory = TempDir::with_prefix("ruvio-test-").expect("a folder for the server");
        let Some(disk) = SmallDisk::mount(directory.path().join("data"), "3m") else {
            eprintln!("not tested: this user may not mount a file system");
            return;
        };
        let ports = PortBlock::claim();
        let mut command = Command::new(env!("CARGO_BIN_EXE_ruvio"));
        command.args(["--port", &ports.port(0).to_string(), "--shard-port-base", &ports.port(1).to_string()]);
        command.args(["--shards", "1", "--durability", mode, "--dir"]).arg(&disk.0);
        let mut server = Server::from_command(command, ports, directory);
        wait_until_loaded(&server);
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
