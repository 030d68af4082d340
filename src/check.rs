//! `ruvio check`: reads a data directory as a server would at its start, and says what it holds and what is wrong with it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::log::Header;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

use crate::core::log::recovery::{Failure, Progress, Recovery, settings_for_replay};
use crate::data::{self, Manifest};
use crate::options::MAX_DATABASES;

mod repair;
mod report;

/// How long a shard is read at once. Nobody waits for anything else meanwhile.
const SLICE: Duration = Duration::from_secs(3600);

/// What a directory is found to be, and the exit code that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// A server starts with it, and has everything that was on stable storage.
    Whole = 0,
    /// Something is not as it was written.
    Damaged = 1,
    /// It cannot be read.
    Unreadable = 2,
}

/// What was found of a shard.
pub struct Found {
    /// Which one.
    shard: usize,
    /// What could be read, if reading could begin.
    read: Option<Recovery>,
    /// Keys that were there at the end.
    keys: usize,
    /// Why not all could be read.
    failure: Option<Failure>,
}

impl Found {
    fn verdict(&self) -> Verdict {
        match &self.failure {
            None => Verdict::Whole,
            Some(Failure::Damaged(_)) => Verdict::Damaged,
            Some(Failure::Unreadable(_)) => Verdict::Unreadable,
        }
    }
}

/// Checks the directory `path`, and repairs it where that was asked for. Prints what it finds and does.
pub fn run(path: &Path, repair: bool) -> Verdict {
    ruvio_shard::seed_hashes(rand::random::<u64>());
    match check(path, repair) {
        Ok(verdict) => verdict,
        Err(problem) => {
            eprintln!("ruvio: {problem}");
            Verdict::Unreadable
        }
    }
}

fn check(path: &Path, repair: bool) -> Result<Verdict, String> {
    let (_lock, manifest) = open(path, repair)?;
    say(&report::heading(path, &manifest));
    let found = read_all(path, &manifest)?;
    say(&report::end(path, verdict_of(&found), repair));
    if !repair || verdict_of(&found) == Verdict::Whole {
        return Ok(verdict_of(&found));
    }
    let mut removed = repair::Removed::new(path);
    for shard in &found {
        if let Some(Failure::Damaged(damage)) = &shard.failure
            && let Some(loss) = &damage.loss
        {
            let directory = data::shard_path(path, manifest.generation, shard.shard);
            removed
                .take(shard.shard, &directory, damage, loss)
                .map_err(|error| format!("cannot repair {}: {error}", directory.display()))?;
        }
    }
    say("after the repair:\n");
    let found = read_all(path, &manifest)?;
    say(&report::end(path, verdict_of(&found), true));
    Ok(verdict_of(&found))
}

/// Prints, for whoever still reads: a repair goes on without.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Takes the directory for this process, and changes nothing in it but for a repair.
fn open(path: &Path, repair: bool) -> Result<(Option<File>, Manifest), String> {
    if !path.is_dir() {
        return Err(format!("{} is no directory", path.display()));
    }
    let Some(manifest) = data::read_manifest(path)? else {
        return Err(format!("{} is no data directory: it has no manifest.toml", path.display()));
    };
    let lock = if repair { Some(data::lock(path)?) } else { data::lock_as_it_is(path)? };
    // Once more: now nobody else changes it.
    Ok((lock, data::read_manifest(path)?.unwrap_or(manifest)))
}

fn read_all(path: &Path, manifest: &Manifest) -> Result<Vec<Found>, String> {
    data::check_shards(path, manifest)?;
    let mut found = Vec::new();
    for shard in 0..manifest.shards {
        let read = read_shard(path, manifest, shard);
        say(&report::shard(&read));
        found.push(read);
    }
    Ok(found)
}

/// Reads a shard as a server does, and forgets its keys.
fn read_shard(path: &Path, manifest: &Manifest, number: usize) -> Found {
    let header =
        Header { shard: number as u32, shards: manifest.shards as u32, generation: manifest.generation, position: 0 };
    let directory = data::shard_path(path, manifest.generation, number);
    let mut recovery = match Recovery::new(directory, header, manifest.names_first_segments()) {
        Ok(recovery) => recovery,
        Err(failure) => return Found { shard: number, read: None, keys: 0, failure: Some(failure) },
    };
    let meter = MemoryMeter::NONE;
    let mut shard = Shard::new(MAX_DATABASES, settings_for_replay(&Settings::default()), meter, 0);
    let failure = loop {
        match recovery.advance(&mut shard, Instant::now() + SLICE) {
            Ok(Progress::More) => {}
            Ok(Progress::Done) => break None,
            Err(failure) => break Some(failure),
        }
    };
    let keys = shard.keys.databases().iter().map(|database| database.len()).sum();
    Found { shard: number, read: Some(recovery), keys, failure }
}

fn verdict_of(found: &[Found]) -> Verdict {
    found.iter().map(Found::verdict).max().unwrap_or(Verdict::Unreadable)
}

/// The folders of generations that are not in force.
fn leftovers(path: &Path, manifest: &Manifest) -> BTreeSet<PathBuf> {
    let generations = data::generations(path).unwrap_or_default();
    generations.into_iter().filter(|(generation, _)| *generation != manifest.generation).map(|(_, path)| path).collect()
}
