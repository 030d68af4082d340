//! `ruvio import`: makes a data directory of an RDB file that Redis wrote.
//!
//! The file is read once, from its beginning to its end, one value at a time; each key goes into the checkpoint of the shard
//! that owns its slot. The directory is in force only once all of the file was read and its checksum was right.

mod dump;
mod progress;
mod source;
mod values;

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ruvio_shard::access;
use ruvio_shard::entry::Header;
use ruvio_shard::rdb::{self, LoadError, Reader};
use ruvio_shard::script::Limits;
use ruvio_shard::settings::Settings;
use signal_hook::consts::{SIGINT, SIGTERM};

use self::dump::{Dump, Key, Record};
use self::progress::Progress;
use self::source::Problem;
use crate::data::Incoming;
use crate::functions::{Library, LibrarySet, payload};

/// What is to be imported, and where to.
#[derive(Debug)]
pub struct Import {
    /// The RDB file.
    pub file: PathBuf,
    /// The data directory to make.
    pub directory: PathBuf,
    /// For how many shards.
    pub shards: usize,
}

/// What came of an import.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    keys: u64,
    /// Keys whose time was over already. Redis does not load them either.
    expired: u64,
    /// Keys and other records that have no place here.
    skipped: u64,
    /// Bytes that were read.
    bytes: u64,
    /// The largest number of a database that holds keys.
    last_database: usize,
}

/// Imports. What has no place here is named on standard output, a line each, and the last line sums up. An error is one line;
/// nothing is left of the import then.
pub fn run(import: &Import) -> Result<(), String> {
    let shown = import.file.display();
    let started = Instant::now();
    let cannot_read = |error: std::io::Error| format!("cannot read {shown}: {error}");
    let file = File::open(&import.file).map_err(cannot_read)?;
    let metadata = file.metadata().map_err(cannot_read)?;
    if !metadata.is_file() {
        return Err(format!("{shown} is no file"));
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .map_err(|error| format!("cannot take signals: {error}"))?;
    }
    let of_file = |problem: Problem| format!("{shown}: {problem}");
    let mut dump = Dump::open(file, metadata.len()).map_err(of_file)?;
    let mut incoming = Incoming::begin(&import.directory, import.shards)?;
    let mut importer = Importer::new(now_ms());
    let progress = Progress::new(metadata.len());
    loop {
        if interrupted.load(Ordering::Relaxed) {
            return Err("interrupted; nothing was imported".to_owned());
        }
        progress.at(dump.offset());
        match importer.step(&mut dump, &mut incoming) {
            Ok(Step::More) => {}
            Ok(Step::Skipped(what)) => progress.line(&format!("not imported: {what}")),
            Ok(Step::End) => break,
            Err(Failure::File(problem)) => return Err(of_file(problem)),
            Err(Failure::Target(problem)) => return Err(problem),
        }
    }
    let libraries = (importer.libraries.len() > 0).then(|| payload::write(&importer.libraries));
    incoming.complete(libraries.as_deref())?;
    drop(progress);
    importer.counts.bytes = dump.offset();
    progress::say(&summary(import, &importer.counts, started.elapsed()));
    Ok(())
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as i64)
}

/// What went wrong: with the file that is read, or with the directory that is made.
#[derive(Debug)]
enum Failure {
    File(Problem),
    Target(String),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure::File(problem)
    }
}

/// What a record came to.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    More,
    /// It has no place here; what it is.
    Skipped(String),
    End,
}

struct Importer {
    now_ms: i64,
    settings: Settings,
    libraries: LibrarySet,
    counts: Counts,
}

impl Importer {
    fn new(now_ms: i64) -> Importer {
        Importer { now_ms, settings: Settings::default(), libraries: LibrarySet::default(), counts: Counts::default() }
    }

    /// Takes one record of the file.
    fn step(&mut self, dump: &mut Dump<impl Read>, incoming: &mut Incoming) -> Result<Step, Failure> {
        match dump.next()? {
            Record::Key(key) => self.key(&key, dump, incoming),
            Record::Library(code) => Ok(self.library(&code)),
            Record::Foreign(what) => {
                self.counts.skipped += 1;
                Ok(Step::Skipped(what))
            }
            Record::End => Ok(Step::End),
        }
    }

    /// Takes a library of functions, if it can be loaded here.
    fn library(&mut self, code: &[u8]) -> Step {
        let added = Library::new(code, Limits::default()).and_then(|library| self.libraries.add(library, false));
        match added {
            Ok(()) => Step::More,
            Err(error) => {
                self.counts.skipped += 1;
                let line = code.split(|&byte| byte == b'\n').next().unwrap_or_default().escape_ascii();
                Step::Skipped(format!("function library '{line}': {error}"))
            }
        }
    }

    fn key(&mut self, key: &Key, dump: &Dump<impl Read>, incoming: &mut Incoming) -> Result<Step, Failure> {
        let shown = || format!("key '{}' of database {}", key.name.escape_ascii(), key.database);
        if let Some(what) = &key.foreign {
            self.counts.skipped += 1;
            return Ok(Step::Skipped(format!("{}: {what}", shown())));
        }
        if key.deadline_ms.is_some_and(|deadline_ms| deadline_ms <= self.now_ms) {
            self.counts.expired += 1;
            return Ok(Step::More);
        }
        let header = Header {
            key: &key.name,
            deadline_ms: key.deadline_ms,
            version: None,
            access: access::imported(key.idle_s, key.frequency, self.now_ms, &self.settings),
        };
        let mut reader = Reader::new(dump.value());
        let loaded = rdb::load(&mut reader, key.value_type, header, &self.settings);
        let loaded =
            loaded.and_then(|entry| if reader.rest().is_empty() { Ok(entry) } else { Err(LoadError::Damaged) });
        match loaded {
            Ok(entry) => incoming.add(key.database, entry.view()).map_err(Failure::Target)?,
            Err(LoadError::Damaged) => {
                let text = format!("the value of {} is damaged", shown());
                return Err(Problem::at(key.offset, text).into());
            }
            Err(error) => {
                self.counts.skipped += 1;
                return Ok(Step::Skipped(format!("{}: {error}", shown())));
            }
        }
        self.counts.keys += 1;
        self.counts.last_database = self.counts.last_database.max(key.database);
        Ok(Step::More)
    }
}

fn summary(import: &Import, counts: &Counts, took: Duration) -> String {
    let Counts { keys, expired, skipped, bytes, last_database } = counts;
    let (directory, shards, seconds) = (import.directory.display(), import.shards, took.as_secs_f64());
    let mut line = format!(
        "imported {keys} keys for {shards} shards into {directory}: {bytes} bytes read in {seconds:.1} seconds, {skipped} \
         skipped, {expired} expired"
    );
    // As many as a server has where nothing else is said.
    if *last_database >= crate::options::DEFAULT_DATABASES {
        line.push_str(&format!("; start the server with --databases {}", last_database + 1));
    }
    line
}
