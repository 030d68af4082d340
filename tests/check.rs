//! `ruvio check`: what a data directory holds and what is wrong with it, and how a damaged log is ended.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::stored::wait_until_loaded;
use crate::support::{Options, Server};

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

/// Where the records of commands are in a segment.
fn commands_in(content: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 64;
    while let Some(head) = content.get(at..at + 9) {
        if head[8] == 1 {
            found.push(at);
        }
        at += 8 + u32::from_le_bytes(head[4..8].try_into().expect("four bytes")) as usize;
    }
    found
}

fn end(server: &mut Server) {
    server.connect().send(b"SHUTDOWN\r\n");
    assert!(server.wait_for_exit().success());
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
    let refused = Command::new(env!("CARGO_BIN_EXE_ruvio"))
        .args(["--port", &server.port().to_string(), "--shards", "2", "--durability", "always", "--dir"])
        .arg(server.data())
        .args(["--shard-port-base", &server.shard_port(0).to_string()])
        .output()
        .expect("the server's end");
    let error = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{error}");
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
    assert!(segments[0].exists() && !segments[1].exists() && !segments[2].exists());
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
    let refused = Command::new(env!("CARGO_BIN_EXE_ruvio"))
        .args(["--port", &server.port().to_string(), "--shards", "2", "--durability", "always", "--dir"])
        .arg(server.data())
        .args(["--shard-port-base", &server.shard_port(0).to_string()])
        .output()
        .expect("the server's end");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no manifest.toml"));
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
fn after_an_orderly_end_nothing_that_is_missing_counts_as_torn() {
    let mut server = Server::with(&Options { arguments: &["--durability", "everysec"], ..Options::default() });
    let mut connection = server.connect();
    (0..300).for_each(|index| drop(connection.line(&format!("SET key:{index} {index}"))));
    end(&mut server);
    for segment in segments(&server) {
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
