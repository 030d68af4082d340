//! `ruvio check`: what a data directory holds and what is wrong with it, and how a damaged log is ended.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::stored::wait_until_loaded;
use crate::support::{Options, Server, wait_until};

fn server() -> Server {
    Server::with(&Options { arguments: &["--durability", "always"], ..Options::default() })
}

fn check(directory: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ruvio"));
    let Output { status, stdout, stderr } =
        command.arg("check").arg(directory).args(arguments).output().expect("the check's end");
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    (status.code().expect("an exit code"), text)
}

/// Every file below a folder.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(files(&path));
        } else {
            let content = fs::read(&path).expect("a file");
            found.insert(path, content);
        }
    }
    found
}

/// The segments with records, in order.
fn segments(server: &Server) -> Vec<PathBuf> {
    let files = files(&server.data());
    let is_segment = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-"));
    files.into_iter().filter(|(path, content)| is_segment(path) && content.len() > 64).map(|(path, _)| path).collect()
}

fn flip(path: &Path, at: usize) {
    let mut content = fs::read(path).expect("a file");
    content[at] ^= 1;
    fs::write(path, content).expect("the file");
}

/// Where the records are in a segment, and of which kind they are.
fn records_in(content: &[u8]) -> Vec<(usize, u8)> {
    let mut found = Vec::new();
    let mut at = 64;
    while let Some(head) = content.get(at..at + 9) {
        found.push((at, head[8]));
        at += 8 + u32::from_le_bytes(head[4..8].try_into().expect("four bytes")) as usize;
    }
    found
}

/// Where the records of commands are in a segment.
fn commands_in(content: &[u8]) -> Vec<usize> {
    records_in(content).into_iter().filter(|(_, kind)| *kind == 1).map(|(at, _)| at).collect()
}

fn end(server: &mut Server) {
    server.connect().send(b"SHUTDOWN\r\n");
    assert!(server.wait_for_exit().success());
}

/// What a server says that cannot start with the data.
fn refused_start(server: &Server) -> String {
    let Output { status, stderr, .. } = Command::new(env!("CARGO_BIN_EXE_ruvio"))
        .args(["--port", &server.port().to_string(), "--shards", "2", "--durability", "always", "--dir"])
        .arg(server.data())
        .args(["--shard-port-base", &server.shard_port(0).to_string()])
        .output()
        .expect("the server's end");
    let error = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(1), "{error}");
    error
}

/// Ends a server with 100 keys, of which both shards have some, after a checkpoint of the first 50 of them.
fn filled() -> Server {
    let mut server = server();
    let mut connection = server.connect();
    (0..50).for_each(|index| drop(connection.line(&format!("SET key:{index} {index}"))));
    connection.line("SAVE");
    (50..100).for_each(|index| drop(connection.line(&format!("SET key:{index} {index}"))));
    end(&mut server);
    server
}

#[test]
fn a_whole_directory_is_described_and_not_touched() {
    let server = filled();
    let before = files(&server.data());
    let (code, text) = check(&server.data(), &[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("generation 1, 2 shards"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("checkpoint-") && line.contains("whole")).count(), 2, "{text}");
    let number_before = |word: &str| -> u64 {
        let numbers =
            text.lines().filter_map(|line| line.split(word).next().filter(|before| before.len() < line.len()));
        numbers.filter_map(|before| before.rsplit([' ', ',']).next()?.parse::<u64>().ok()).sum()
    };
    assert_eq!(number_before(" records"), 50, "{text}");
    // Of both shards and of both checkpoints.
    assert_eq!(number_before(" keys"), 150, "{text}");
    assert!(text.ends_with("whole: a server can start with it\n"), "{text}");
    assert_eq!(files(&server.data()), before);
    let (code, text) = check(&server.data(), &["--repair"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(files(&server.data()), before);
}

#[test]
fn a_directory_in_use_is_left_alone() {
    let server = server();
    server.connect().line("SET key value");
    for arguments in [&[][..], &["--repair"]] {
        let (code, text) = check(&server.data(), arguments);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("another process uses the data directory") && text.lines().count() == 1, "{text}");
    }
}

#[test]
fn a_torn_tail_is_whole_and_is_told_of() {
    let server = filled();
    let segment = segments(&server).pop().expect("a segment");
    let len = fs::metadata(&segment).expect("a segment").len();
    OpenOptions::new()
        .append(true)
        .open(&segment)
        .and_then(|mut file| file.write_all(&[7; 11]))
        .expect("a torn record");
    let before = files(&server.data());
    let (code, text) = check(&server.data(), &[]);
    assert_eq!(code, 0, "{text}");
    let named = segment.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(text.contains(&format!("from offset {len} of {named} on, the last 11 bytes")), "{text}");
    assert_eq!(files(&server.data()), before);
}

#[test]
fn damage_is_reported_and_a_repair_drops_what_was_reported_and_keeps_it_aside() {
    let mut server = filled();
    let segment = segments(&server).pop().expect("a segment");
    let content = fs::read(&segment).expect("a segment");
    let offset = commands_in(&content)[1];
    flip(&segment, offset + 9);
    let damaged = fs::read(&segment).expect("a segment");
    let before = files(&server.data());
    let (code, text) = check(&server.data(), &[]);
    assert_eq!(code, 1, "{text}");
    let place = format!("{} is damaged at offset {offset}: ", segment.display());
    assert!(text.contains(&place), "{text}");
    let drops = format!("and {} bytes in all", damaged.len() - offset);
    let line = text.lines().find(|line| line.contains("--repair ends the log there, and drops")).expect("a line");
    assert!(line.contains(&drops), "{text}");
    assert_eq!(files(&server.data()), before);

    // The server says the same, and changes nothing either.
    let error = refused_start(&server);
    let command = format!("`ruvio check {} --repair`", server.data().display());
    assert!(error.contains(&place) && error.contains(&drops) && error.contains(&command), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert_eq!(files(&server.data()), before);

    let (code, text) = check(&server.data(), &["--repair"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(fs::read(&segment).expect("the segment"), damaged[..offset]);
    let kept: Vec<_> = files(&server.data().join("removed-1")).into_values().filter(|file| !file.is_empty()).collect();
    assert_eq!(kept, [damaged[offset..].to_vec()]);
    let dropped = line.split("drops ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a number");
    // The record that was hit is none of the whole ones that are dropped with it.
    let dropped: i64 = dropped.parse::<i64>().expect("a number") + 1;
    server.restart();
    wait_until_loaded(&server);
    assert_eq!(server.connect().line("DBSIZE").integer(), 100 - dropped);
}

#[test]
fn a_repair_moves_later_segments_and_segments_without_a_header() {
    let mut server = server();
    let mut connection = server.connect();
    // Restarts begin a new segment each.
    for round in 0..3 {
        (0..20).for_each(|index| drop(connection.line(&format!("SET {{a}}key:{round}:{index} value"))));
        server.kill_and_restart();
        wait_until_loaded(&server);
        connection = server.connect();
    }
    end(&mut server);
    let segments = segments(&server);
    assert_eq!(segments.len(), 3, "{segments:?}");
    let contents: Vec<_> = segments.iter().map(|path| fs::read(path).expect("a segment")).collect();
    flip(&segments[1], 10);
    let (code, text) = check(&server.data(), &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains(&format!("{} is damaged at offset 0: ", segments[1].display())), "{text}");
    let (code, text) = check(&server.data(), &["--repair"]);
    assert_eq!(code, 0, "{text}");
    // The first says that the second is there.
    assert_eq!(fs::metadata(&segments[1]).expect("the segment").len(), 0);
    assert!(segments[0].exists() && !segments[2].exists());
    let removed = files(&server.data().join("removed-1"));
    let kept: Vec<_> = removed.into_values().filter(|content| content.len() > 64).collect();
    assert_eq!(kept.len(), 2);
    assert!(kept[0][11..] == contents[1][11..] && kept[1] == contents[2]);
    server.restart();
    wait_until_loaded(&server);
    assert_eq!(server.connect().line("DBSIZE").integer(), 20);
}

#[test]
fn a_damaged_checkpoint_is_reported_and_cannot_be_repaired() {
    let server = filled();
    let mut checkpoints =
        files(&server.data()).into_keys().filter(|path| path.to_string_lossy().contains("/checkpoint-"));
    let checkpoint = checkpoints.next_back().expect("a checkpoint");
    let len = fs::metadata(&checkpoint).expect("a checkpoint").len() as usize;
    for at in [20, 70, len - 1] {
        flip(&checkpoint, at);
        let before = files(&server.data());
        for arguments in [&[][..], &["--repair"]] {
            let (code, text) = check(&server.data(), arguments);
            assert_eq!(code, 1, "{text}");
            assert!(text.contains(&format!("{} is damaged at offset ", checkpoint.display())), "{text}");
            assert!(text.contains("a checkpoint cannot be repaired"), "{text}");
        }
        assert_eq!(files(&server.data()), before);
        flip(&checkpoint, at);
    }
    assert_eq!(check(&server.data(), &[]).0, 0);
}

#[test]
fn what_is_no_data_directory_cannot_be_read() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let (code, text) = check(folder.path(), &[]);
    assert_eq!(code, 2);
    assert!(text.contains("is no data directory"), "{text}");
    assert_eq!(files(folder.path()).len(), 0);
    let (code, text) = check(&folder.path().join("nothing"), &["--repair"]);
    assert_eq!(code, 2);
    assert!(text.contains("is no directory"), "{text}");
    let server = filled();
    fs::remove_dir_all(server.data().join("generation-1/shard-1")).expect("a shard's folder");
    let (code, text) = check(&server.data(), &[]);
    assert_eq!(code, 2);
    assert!(text.contains("shard-1 is missing"), "{text}");
    fs::remove_file(server.data().join("manifest.toml")).expect("the manifest");
    assert!(refused_start(&server).contains("no manifest.toml"));
    // What was there is there.
    assert!(segments(&server).len() == 1);
}

#[test]
fn flags_of_the_server_are_not_for_a_check() {
    let output = Command::new(env!("CARGO_BIN_EXE_ruvio"))
        .args(["--shard-port-base", "7000", "check", "/tmp"])
        .env("RUVIO_PORT", "7001")
        .output()
        .expect("the end");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("--shard-port-base") && error.lines().count() == 1, "{error}");
    let (code, text) = check(Path::new("/tmp"), &["--nosuch"]);
    assert!(code != 0 && text.contains("--nosuch"), "{text}");
}

#[test]
fn a_last_segment_that_is_missing_stops_the_start_and_a_repair_ends_the_log_before_it() {
    // The segment that a log begins with, one behind another, and one behind a checkpoint.
    for rounds in 0..3 {
        let mut server = server();
        let mut expected = 0;
        for round in 0..rounds {
            (0..10).for_each(|index| drop(server.connect().line(&format!("SET {{a}}{round}:{index} value"))));
            expected += 10;
            if round == 1 {
                server.connect().line("SAVE");
            }
            server.kill_and_restart();
            wait_until_loaded(&server);
        }
        (0..10).for_each(|index| drop(server.connect().line(&format!("SET {{a}}last:{index} value"))));
        server.kill();
        let last = segments(&server).pop().expect("a segment");
        let content = fs::read(&last).expect("the segment");
        assert_eq!(check(&server.data(), &[]).0, 0);
        fs::remove_file(&last).expect("the segment");
        let before = files(&server.data());
        let (code, text) = check(&server.data(), &[]);
        assert_eq!(code, 1, "{text}");
        let missing = format!("{} is missing: ", last.display());
        assert!(text.contains(&missing), "{text}");
        let error = refused_start(&server);
        assert!(error.contains(&missing) && error.lines().count() == 1, "{error}");
        assert_eq!(files(&server.data()), before);
        // It is found again, or it is given up.
        fs::write(&last, content).expect("the segment");
        assert_eq!(check(&server.data(), &[]).0, 0);
        fs::remove_file(&last).expect("the segment");
        let (code, text) = check(&server.data(), &["--repair"]);
        assert_eq!(code, 0, "{text}");
        server.restart();
        wait_until_loaded(&server);
        assert_eq!(server.connect().line("DBSIZE").integer(), expected, "round {rounds}");
    }
}

#[test]
fn a_directory_of_the_earlier_format_is_read_and_gets_the_present_one() {
    let mut server = server();
    (0..50).for_each(|index| drop(server.connect().line(&format!("SET key:{index} {index}"))));
    server.kill();
    // Of that format, a log had no seals, and an empty shard had no files. A first segment has no seal in either.
    let manifest = server.data().join("manifest.toml");
    let text = fs::read_to_string(&manifest).expect("the manifest");
    assert!(text.contains("format = 2"), "{text}");
    let earlier = text.replace("format = 2", "format = 1");
    fs::write(&manifest, &earlier).expect("the manifest");
    assert_eq!(check(&server.data(), &[]).0, 0);
    assert_eq!(fs::read_to_string(&manifest).expect("the manifest"), earlier);
    server.restart();
    wait_until_loaded(&server);
    assert_eq!(server.connect().line("DBSIZE").integer(), 50);
    wait_until("the manifest", || fs::read_to_string(&manifest).is_ok_and(|now| now == text));
    server.connect().line("SET later 1");
    server.kill();
    let first = segments(&server).remove(0);
    let last = records_in(&fs::read(&first).expect("a segment")).pop().expect("a record");
    assert_eq!(last.1, 3, "it is sealed");
    // An empty one, too.
    let empty = Server::with(&Options { arguments: &["--durability", "always"], ..Options::default() });
    let manifest = empty.data().join("manifest.toml");
    let mut empty = empty;
    empty.kill();
    fs::write(&manifest, earlier).expect("the manifest");
    for (path, _) in files(&empty.data()).into_iter().filter(|(path, _)| path.to_string_lossy().contains("/log-")) {
        fs::remove_file(path).expect("an empty segment");
    }
    empty.restart();
    wait_until_loaded(&empty);
    fs::write(&manifest, text.replace("format = 2", "format = 3")).expect("the manifest");
    empty.kill();
    assert!(refused_start(&empty).contains("has format 3; this program reads formats 1 to 2"));
}

/// Ends a server with `everysec` in order or, once a second has passed since its last write, with a kill.
fn end_everysec(server: &mut Server, is_killed: bool) {
    if !is_killed {
        return end(server);
    }
    wait_until("the logs to say that all is stored", || {
        let ends_with_mark = |segment: PathBuf| {
            let records = records_in(&fs::read(segment).expect("a segment"));
            records.last().is_some_and(|(_, kind)| *kind == 2)
        };
        segments(server).into_iter().all(ends_with_mark)
    });
    server.kill();
}

#[test]
fn after_an_orderly_end_or_an_idle_second_nothing_that_is_missing_counts_as_torn() {
    for is_killed in [false, true] {
        let mut server = Server::with(&Options { arguments: &["--durability", "everysec"], ..Options::default() });
        let mut connection = server.connect();
        (0..300).for_each(|index| drop(connection.line(&format!("SET key:{index} {index}"))));
        end_everysec(&mut server, is_killed);
        assert_eq!(segments(&server).len(), 2);
        check_damage_everywhere(&server);
    }
}

/// Checks that damage to any of the records is noticed.
fn check_damage_everywhere(server: &Server) {
    for segment in segments(server) {
        let content = fs::read(&segment).expect("a segment");
        let commands = commands_in(&content);
        for offset in [commands[1], commands[commands.len() - 1]] {
            flip(&segment, offset + 9);
            let (code, text) = check(&server.data(), &[]);
            assert_eq!(code, 1, "{text}");
            assert!(text.contains(&format!("{} is damaged at offset {offset}: ", segment.display())), "{text}");
            flip(&segment, offset + 9);
        }
    }
    assert_eq!(check(&server.data(), &[]).0, 0);
}
