//! The data directory: who uses it, how it is divided into shards, and where their files are.
//!
//! ```text
//! lock                        held by the process that uses the directory
//! manifest.toml               the format, the generation in force, and its number of shards
//! functions.rdb               the libraries of functions, as FUNCTION DUMP gives them
//! generation-G/shard-K/       the files of shard K: log-POSITION and checkpoint-POSITION
//! importing/                  what an import is making (`incoming.rs`)
//! removed-N/                  what `ruvio check --repair` took out
//! ```
//!
//! A division into another number of shards is a new generation (`division.rs`): it comes into force with the manifest,
//! which is replaced as a whole, and the files of other generations are of no use then.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::memory::MAX_CORES;

mod division;
mod incoming;
mod new_checkpoint;

pub use division::Division;
pub use incoming::Incoming;

/// The format of the directory.
const FORMAT: u32 = 2;

/// The earliest one that can be read: a shard may be without the segment that its log goes on in.
const EARLIEST_FORMAT: u32 = 1;

const MANIFEST: &str = "manifest.toml";
const LIBRARIES: &str = "functions.rdb";

/// A manifest in the making.
const NEXT_MANIFEST: &str = "manifest.new";

const LOCK: &str = "lock";

/// What is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// The number of the division into shards.
    pub generation: u64,
    /// How many shards it has.
    pub shards: usize,
}

impl Manifest {
    /// Whether every shard has the segment that its log goes on in behind its newest checkpoint, or begins with.
    pub fn names_first_segments(&self) -> bool {
        self.format > EARLIEST_FORMAT
    }
}

/// A data directory that this process uses.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    /// What is in force, once the data are divided so.
    manifest: Manifest,
    division: Option<Division>,
    _lock: File,
}

impl DataDirectory {
    /// Takes the directory `path` for `shards` shards; makes it where it is not there. An error is one line.
    pub fn open(path: &Path, shards: usize) -> Result<DataDirectory, String> {
        let shown = path.display();
        fs::create_dir_all(path)
            .map_err(|error| format!("cannot make the data directory {shown}: {error}; choose another --dir"))?;
        let lock = lock(path)?;
        let wanted = Manifest { format: FORMAT, generation: 1, shards };
        let Some(found) = read_manifest(path)? else {
            begin(path, &wanted)?;
            return Ok(DataDirectory { path: path.to_owned(), manifest: wanted, division: None, _lock: lock });
        };
        check_shards(path, &found)?;
        if found.shards == shards {
            return Ok(DataDirectory { path: path.to_owned(), manifest: found, division: None, _lock: lock });
        }
        let generation =
            found.generation.checked_add(1).ok_or_else(|| format!("no generation is left for the data in {shown}"))?;
        let manifest = Manifest { generation, ..wanted };
        let division = Division::begin(path.to_owned(), found, manifest)
            .map_err(|error| format!("cannot make generation {generation} in {shown}: {error}"))?;
        Ok(DataDirectory { path: path.to_owned(), manifest, division: Some(division), _lock: lock })
    }

    /// The division into shards that is in force, or will be at the end of [`DataDirectory::division`].
    pub fn generation(&self) -> u64 {
        self.manifest.generation
    }

    /// Where a shard's files are.
    pub fn shard(&self, shard: usize) -> PathBuf {
        shard_path(&self.path, self.manifest.generation, shard)
    }

    /// As [`Manifest::names_first_segments`].
    pub fn names_first_segments(&self) -> bool {
        self.manifest.names_first_segments()
    }

    /// Has the manifest say that the directory is of the present format, once every shard has opened its log.
    pub fn raise_format(&self) -> io::Result<()> {
        if self.manifest.format == FORMAT {
            return Ok(());
        }
        write_manifest(&self.path, &Manifest { format: FORMAT, ..self.manifest })
    }

    /// The division that the data have to go through first, where they are of another number of shards.
    pub fn division(&self) -> Option<&Division> {
        self.division.as_ref()
    }

    /// Removes what is of no use: generations that are not in force, an import and a manifest that were not made to their
    /// end.
    pub fn remove_leftovers(&self) -> io::Result<()> {
        match fs::remove_file(self.path.join(NEXT_MANIFEST)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        incoming::remove_leftover(&self.path)?;
        for (generation, path) in generations(&self.path)? {
            if generation != self.manifest.generation {
                fs::remove_dir_all(path)?;
            }
        }
        Ok(())
    }
}

impl DataDirectory {
    /// The libraries of functions as they were written, if they were.
    ///
    /// # Errors
    /// That they cannot be read, in one line.
    pub fn read_libraries(&self) -> Result<Option<Vec<u8>>, String> {
        let path = self.path.join(LIBRARIES);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        }
    }

    /// Puts the libraries of functions on stable storage, in place of those before.
    pub fn write_libraries(&self, bytes: &[u8]) -> io::Result<()> {
        replace_file(&self.path, LIBRARIES, bytes)
    }

    /// Where the libraries of functions are.
    pub fn libraries_path(&self) -> PathBuf {
        self.path.join(LIBRARIES)
    }
}

/// Locks a directory's file for this process alone; an error is one line.
fn lock_for_this_process(lock: &File, path: &Path) -> Result<(), String> {
    let shown = path.display();
    rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => {
            format!("another process uses the data directory {shown}; stop it or choose another directory")
        }
        error => format!("cannot lock the data directory {shown}: {error}"),
    })
}

/// Locks a directory for this process alone; an error is one line.
pub fn lock(path: &Path) -> Result<File, String> {
    let shown = path.display();
    let lock = File::create(path.join(LOCK))
        .map_err(|error| format!("cannot write in the data directory {shown}: {error}; choose another directory"))?;
    lock_for_this_process(&lock, path).map(|()| lock)
}

/// Locks a directory without changing anything in it; `None` where no process has used it yet.
pub fn lock_as_it_is(path: &Path) -> Result<Option<File>, String> {
    match File::open(path.join(LOCK)) {
        Ok(lock) => lock_for_this_process(&lock, path).map(|()| Some(lock)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot open {}: {error}", path.join(LOCK).display())),
    }
}

/// Makes the folders of the first generation, and puts it into force.
fn begin(path: &Path, manifest: &Manifest) -> Result<(), String> {
    let shown = path.display();
    let failed = |error: io::Error| format!("cannot write in the data directory {shown}: {error}");
    if let Some(generation) = generation_with_files(path).map_err(failed)? {
        return Err(format!(
            "{shown} has data of generation {generation}, but no {MANIFEST} that says how they are divided; restore it from \
             a backup"
        ));
    }
    let make = || -> io::Result<()> {
        for shard in 0..manifest.shards {
            let folder = shard_path(path, manifest.generation, shard);
            fs::create_dir_all(&folder)?;
            create_if_missing(&segment_path(&folder, 0))?;
            sync_directory(&folder)?;
        }
        sync_directory(&generation_path(path, manifest.generation))?;
        write_manifest(path, manifest)
    };
    make().map_err(failed)
}

/// Whether the folders of all shards are there.
pub fn check_shards(path: &Path, manifest: &Manifest) -> Result<(), String> {
    let mut folders = (0..manifest.shards).map(|shard| shard_path(path, manifest.generation, shard));
    match folders.find(|folder| !folder.is_dir()) {
        None => Ok(()),
        Some(missing) => Err(format!("{} is missing; restore it from a backup", missing.display())),
    }
}

/// Where the files of a generation are.
fn generation_path(path: &Path, generation: u64) -> PathBuf {
    path.join(format!("generation-{generation}"))
}

/// Where the files of a shard of a generation are.
pub fn shard_path(path: &Path, generation: u64, shard: usize) -> PathBuf {
    generation_path(path, generation).join(format!("shard-{shard}"))
}

/// The first generation that a shard has files of with something in them.
fn generation_with_files(path: &Path) -> io::Result<Option<u64>> {
    for (generation, folder) in generations(path)? {
        for shard in fs::read_dir(folder)? {
            for file in fs::read_dir(shard?.path())? {
                if file?.metadata()?.len() > 0 {
                    return Ok(Some(generation));
                }
            }
        }
    }
    Ok(None)
}

/// The generations that there are files of: their numbers and folders, in order.
pub fn generations(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    numbered(path, "generation-", 10)
}

/// What is in force in a directory; `None` where nothing is yet. An error is one line.
pub fn read_manifest(path: &Path) -> Result<Option<Manifest>, String> {
    let file = path.join(MANIFEST);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read {}: {error}", file.display())),
    };
    let manifest: Manifest = toml::from_str(&text)
        .map_err(|error| format!("{} is damaged: {}; restore it from a backup", file.display(), error.message()))?;
    if !(EARLIEST_FORMAT..=FORMAT).contains(&manifest.format) {
        let (shown, format) = (file.display(), manifest.format);
        return Err(format!("{shown} has format {format}; this program reads formats {EARLIEST_FORMAT} to {FORMAT}"));
    }
    if manifest.shards == 0 || manifest.shards > MAX_CORES {
        let shards = manifest.shards;
        return Err(format!("{} is damaged: it names {shards} shards; restore it from a backup", file.display()));
    }
    Ok(Some(manifest))
}

fn write_manifest(path: &Path, manifest: &Manifest) -> io::Result<()> {
    let text = toml::to_string(manifest).map_err(io::Error::other)?;
    replace_file(path, MANIFEST, text.as_bytes())
}

/// Replaces a file of a directory as a whole; afterwards it is on stable storage.
fn replace_file(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = directory.join(name);
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, &path)?;
    sync_directory(directory)
}

/// Makes an empty file, unless there is one of that name.
pub fn create_if_missing(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path).map(drop)
}

/// Puts on stable storage which files a directory holds.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The segments of a shard's log in its directory: their positions and files, in order.
pub fn segments(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    numbered(directory, "log-", 16)
}

/// The checkpoints of a shard in its directory: their positions and files, in order.
pub fn checkpoints(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    numbered(directory, "checkpoint-", 16)
}

/// The entries of a directory whose names are `prefix` and a number: the numbers and paths, in order.
fn numbered(directory: &Path, prefix: &str, base: u32) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let number = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_prefix(prefix))
            .and_then(|digits| u64::from_str_radix(digits, base).ok());
        if let Some(number) = number {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

/// The file of the checkpoint at `position`.
pub fn checkpoint_path(directory: &Path, position: u64) -> PathBuf {
    directory.join(format!("checkpoint-{position:016x}"))
}

/// The file of the segment that starts at `position`.
pub fn segment_path(directory: &Path, position: u64) -> PathBuf {
    directory.join(format!("log-{position:016x}"))
}
