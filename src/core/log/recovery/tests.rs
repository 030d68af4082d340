//! Promises of recovery: whatever becomes of the files, what is read is the state after some whole records from the first on,
//! with all that was on stable storage; or reading fails, and says what would have to go.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ruvio_shard::args::OwnedArgs;
use ruvio_shard::commands;
use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::log::{Buffer, HEADER_BYTES, Header, SEAL_BYTES, seal};
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::{Call, Shard};
use tempfile::TempDir;

use super::{Failure, Progress, Recovery};
use crate::data;

const HEADER: Header = Header { shard: 0, shards: 1, generation: 1, position: 0 };

/// Records of all segments.
const RECORDS: u64 = 12;

fn shard() -> Shard {
    let meter = MemoryMeter::NONE;
    Shard::new(2, Settings::default(), meter, 1)
}

fn read_all(directory: &Path) -> Result<(u64, Recovery), Failure> {
    read_all_of(directory, true)
}

fn read_all_of(directory: &Path, is_first_named: bool) -> Result<(u64, Recovery), Failure> {
    let mut recovery = Recovery::new(directory.to_owned(), HEADER, is_first_named)?;
    let mut shard = shard();
    while recovery.advance(&mut shard, Instant::now() + Duration::from_secs(60))? == Progress::More {}
    Ok((records_in(&mut shard), recovery))
}

fn reply(shard: &mut Shard, line: &str) -> String {
    let words: OwnedArgs = line.split(' ').collect();
    let command = commands::named(words.as_args().at(0)).expect("a command");
    let call = Call { database: 0, slot: None, now_ms: 0, protocol: Protocol::Resp2, may_wait: false };
    let mut out = Vec::new();
    shard.execute(command, words.as_args(), call, &mut out);
    String::from_utf8(out).expect("text")
}

/// How many records a shard has the effects of; it must have those of all records before, each once.
fn records_in(shard: &mut Shard) -> u64 {
    let list = reply(shard, "LRANGE list 0 -1");
    let elements: Vec<u64> = list.lines().skip(1).filter(|line| !line.starts_with('$')).flat_map(str::parse).collect();
    let count = elements.len() as u64;
    assert_eq!(elements, (0..count).collect::<Vec<_>>());
    let there = (0..RECORDS).filter(|number| reply(shard, &format!("GET key:{number}")) != "$-1\r\n");
    assert_eq!(there.collect::<Vec<_>>(), elements);
    count
}

/// Three segments of four records; each record but the first of all is preceded by a mark that those up to `lag` records
/// before it are on stable storage. Returns the position behind each record, and the files.
fn history(lag: usize) -> (TempDir, Vec<u64>, Vec<PathBuf>) {
    let directory = TempDir::new().expect("a folder");
    let mut buffer = Buffer::new(0);
    let (mut ends, mut files) = (Vec::new(), Vec::new());
    for number in 0..RECORDS {
        if number % 4 == 0 {
            files.push((buffer.end(), Header { position: buffer.end(), ..HEADER }.encode().to_vec()));
        }
        if let Some(&synced) = ends.len().checked_sub(1 + lag).and_then(|index| ends.get(index)) {
            buffer.synced(synced);
        }
        buffer.begin(1_000 + number as i64);
        for line in [format!("SET key:{number} {number}"), format!("RPUSH list {number}")] {
            let words: OwnedArgs = line.split(' ').collect();
            buffer.command(0, words.as_args());
        }
        assert!(buffer.end_record());
        ends.push(buffer.end());
        let content = &mut files.last_mut().expect("a segment").1;
        content.extend(buffer.take(Vec::new()));
    }
    let paths = files.into_iter().map(|(position, content)| {
        let path = data::segment_path(directory.path(), position);
        fs::write(&path, content).expect("a segment");
        path
    });
    let paths = paths.collect();
    (directory, ends, paths)
}

/// Checks what is read of files of which `path` was changed at `offset`: nothing is lost but what was not on stable storage
/// when the last record that is still whole was written, and what is lost is taken out so that the rest can be read.
fn check_changed(directory: &Path, ends: &[u64], lag: usize, path: &Path, offset: u64, what: &str) {
    let start = u64::from_str_radix(&path.file_name().expect("a name").to_string_lossy()[4..], 16).expect("a position");
    let position = start + offset.saturating_sub(HEADER_BYTES as u64);
    let before = ends.iter().filter(|end| **end <= position).count() as u64;
    let what = format!("{} {what} at {offset}, marks {lag} behind", path.display());
    match read_all(directory) {
        Ok((records, recovery)) => {
            assert!(records == before, "{what}: {records} records, {before} are before it");
            // Marks stand in front of a record, so the last one that is whole speaks of what is `lag` + 1 before it.
            assert!(
                records + 1 + lag as u64 >= RECORDS,
                "{what}: {records} records are read, and more were on stable storage"
            );
            recovery.settle().expect("the tail is cut off");
        }
        Err(Failure::Damaged(damage)) => {
            let loss = damage.loss.expect("a log can be cut");
            assert!(loss.records <= RECORDS - before, "{what}: {loss:?}");
            for later in &loss.segments {
                fs::remove_file(later).expect("a later segment");
            }
            let end = if damage.offset < HEADER_BYTES as u64 { 0 } else { damage.offset as usize };
            let kept = fs::read(&damage.path).expect("the damaged segment")[..end].to_vec();
            fs::write(&damage.path, kept).expect("the damaged segment");
        }
        Err(Failure::Unreadable(problem)) => panic!("{what}: {problem}"),
    }
    let (records, recovery) = read_all(directory).unwrap_or_else(|failure| panic!("{what}: {failure:?}"));
    assert_eq!(records, before, "{what}");
    assert!(recovery.tail.is_none_or(|tail| tail.bytes == 0), "{what}");
}

/// Puts the segments back as they were, and removes others.
fn restore(files: &[(PathBuf, Vec<u8>)]) {
    let directory = files[0].0.parent().expect("a folder");
    for (_, path) in data::segments(directory).expect("the folder") {
        fs::remove_file(path).expect("a segment");
    }
    files.iter().for_each(|(path, content)| fs::write(path, content).expect("a segment"));
}

#[test]
fn a_log_cut_at_any_byte_of_any_segment_is_read_up_to_a_whole_record_or_refused() {
    for lag in [0, 2, 100] {
        let (directory, ends, paths) = history(lag);
        let files: Vec<_> = paths.iter().map(|path| (path.clone(), fs::read(path).expect("a segment"))).collect();
        assert_eq!(read_all(directory.path()).expect("a whole log").0, RECORDS);
        for (path, content) in &files {
            for cut in 0..content.len() {
                fs::write(path, &content[..cut]).expect("the segment");
                // A log without marks behind may end anywhere.
                let is_last = Some(path) == paths.last();
                let lag = if lag == 100 || is_last { RECORDS as usize } else { lag };
                check_changed(directory.path(), &ends, lag, path, cut as u64, "cut");
                restore(&files);
            }
        }
    }
}

#[test]
fn a_log_with_any_byte_changed_is_read_up_to_a_whole_record_or_refused() {
    for (lag, flip) in [(0, 1), (2, 0xff), (100, 0x10)] {
        let (directory, ends, paths) = history(lag);
        let files: Vec<_> = paths.iter().map(|path| (path.clone(), fs::read(path).expect("a segment"))).collect();
        for (path, content) in &files {
            for at in 0..content.len() {
                let mut changed = content.clone();
                changed[at] ^= flip;
                fs::write(path, &changed).expect("the segment");
                let lag = if lag == 100 { RECORDS as usize } else { lag };
                check_changed(directory.path(), &ends, lag, path, at as u64, "changed");
                restore(&files);
            }
        }
    }
}

#[test]
fn a_segment_that_is_missing_ends_the_log_before_it_or_is_refused() {
    for lag in [0, 100] {
        let (directory, ends, paths) = history(lag);
        fs::remove_file(&paths[1]).expect("a segment");
        match read_all(directory.path()) {
            Ok((records, recovery)) => {
                assert_eq!((lag, records), (100, 4));
                assert_eq!(recovery.tail.expect("a tail").later, [paths[2].clone()]);
            }
            Err(Failure::Damaged(damage)) => {
                assert_eq!((lag, &damage.path), (0, &paths[0]));
                let loss = damage.loss.expect("a log can be cut");
                assert_eq!((loss.cut_bytes, loss.records, loss.segments), (0, 4, vec![paths[2].clone()]));
                assert_eq!(damage.offset, HEADER_BYTES as u64 + ends[3]);
            }
            Err(Failure::Unreadable(problem)) => panic!("{problem}"),
        }
        let (directory, _, paths) = history(lag);
        fs::remove_file(&paths[0]).expect("a segment");
        let found = read_all_of(directory.path(), false);
        assert!(matches!(found, Err(Failure::Damaged(damage)) if damage.path == paths[1] && !damage.is_missing));
        check_missing(directory.path(), &paths[0]);
    }
}

/// Checks that reading misses the segment `path`, and how it says so.
fn check_missing(directory: &Path, path: &Path) {
    let Err(failure @ Failure::Damaged(_)) = read_all(directory) else { panic!("{} is not missed", path.display()) };
    let text = failure.describe(directory);
    assert!(text.starts_with(&format!("{} is missing: ", path.display())), "{text}");
}

/// As [`history`], without marks and with the first two segments sealed.
fn sealed_history() -> (TempDir, Vec<(PathBuf, Vec<u8>)>) {
    let (directory, ends, paths) = history(100);
    let mut files: Vec<_> = paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("a segment"))).collect();
    for (file, end) in files.iter_mut().zip([ends[3], ends[7]]) {
        file.1.extend(seal(end));
    }
    restore(&files);
    (directory, files)
}

#[test]
fn a_segment_that_a_seal_names_is_missed_though_nothing_is_behind_it() {
    let (directory, files) = sealed_history();
    assert_eq!(read_all(directory.path()).expect("a whole log").0, RECORDS);
    for (path, _) in &files {
        fs::remove_file(path).expect("a segment");
        check_missing(directory.path(), path);
        restore(&files);
    }
    // It may be empty: it has a name before anything is written to it.
    fs::write(&files[2].0, []).expect("the segment");
    let (records, recovery) = read_all(directory.path()).expect("a log without its last segment");
    assert_eq!((records, recovery.tail.expect("a tail").bytes), (8, 0));
}

#[test]
fn what_a_seal_is_behind_was_stored_and_a_seal_that_is_torn_ends_nothing() {
    let (directory, files) = sealed_history();
    for (path, content) in &files[..2] {
        let end = content.len() - SEAL_BYTES;
        for at in HEADER_BYTES..content.len() {
            let mut changed = content.clone();
            changed[at] ^= 0x40;
            fs::write(path, changed).expect("the segment");
            match read_all(directory.path()) {
                Ok((records, _)) => assert!(at >= end && records == RECORDS, "byte {at}, {records} records"),
                Err(Failure::Damaged(damage)) => assert!(at < end && &damage.path == path, "byte {at}: {damage:?}"),
                Err(Failure::Unreadable(problem)) => panic!("{problem}"),
            }
        }
        for cut in end..content.len() {
            fs::write(path, &content[..cut]).expect("the segment");
            assert_eq!(read_all(directory.path()).expect("a log with a torn seal").0, RECORDS);
        }
        let mut longer = content.clone();
        longer.push(0);
        fs::write(path, longer).expect("the segment");
        assert!(matches!(read_all(directory.path()), Err(Failure::Damaged(damage)) if &damage.path == path));
        restore(&files);
    }
}

#[test]
fn a_log_that_is_made_ready_to_go_on_misses_every_segment() {
    // As it is, with a torn tail, and with one seal that is torn.
    for (cut, torn_seal) in [(0, 0), (3, 0), (0, 5)] {
        let (directory, ends, paths) = history(100);
        let last = fs::read(&paths[2]).expect("a segment");
        fs::write(&paths[2], &last[..last.len() - cut]).expect("the segment");
        let mut first = fs::read(&paths[0]).expect("a segment");
        first.extend(&seal(ends[3])[..torn_seal]);
        fs::write(&paths[0], first).expect("the segment");
        let (records, recovery) = read_all(directory.path()).expect("a log");
        recovery.settle().expect("the log goes on");
        let made = data::segments(directory.path()).expect("the folder");
        assert_eq!(made.len(), 4);
        assert_eq!(made[3].0, recovery.position());
        for (_, path) in made {
            let content = fs::read(&path).expect("a segment");
            fs::remove_file(&path).expect("a segment");
            check_missing(directory.path(), &path);
            fs::write(&path, content).expect("the segment");
        }
        assert_eq!(read_all(directory.path()).expect("a whole log").0, records);
    }
}

#[test]
fn files_of_something_else_are_neither_read_nor_called_damaged() {
    for header in [
        Header { shard: 1, ..HEADER },
        Header { shards: 2, ..HEADER },
        Header { generation: 2, ..HEADER },
        Header { position: 64, ..HEADER },
    ] {
        let (directory, _, paths) = history(0);
        let mut content = fs::read(&paths[0]).expect("a segment");
        content[..HEADER_BYTES].copy_from_slice(&header.encode());
        fs::write(&paths[0], content).expect("the segment");
        assert!(matches!(read_all(directory.path()), Err(Failure::Unreadable(_))), "{header:?}");
    }
}
