//! The data directory: who uses it, how it is divided into shards, and where their files are.
//!
//! ```text
//! lock                        held by the process that uses the directory
//! manifest.toml               the format, the generation in force, and its number of shards
//! generation-G/shard-K/       the files of shard K: log-POSITION and checkpoint-POSITION
//! importing/                  what an import is making (`incoming.rs`)
//! ```
//!
//! A division into another number of shards is a new generation: it comes into force with the manifest, which is
//! replaced as a whole, and the files of other generations are of no use then.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

mod incoming;

pub use incoming::Incoming;

/// The format of the directory.
const FORMAT: u32 = 1;

const MANIFEST: &str = "manifest.toml";

/// What is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    generation: u64,
    shards: usize,
}

/// A data directory that this process uses.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    manifest: Manifest,
    _lock: File,
}

impl DataDirectory {
    /// Takes the directory `path` for `shards` shards; makes it where it is not there. An error is one line.
    pub fn open(path: &Path, shards: usize) -> Result<DataDirectory, String> {
        let shown = path.display();
        fs::create_dir_all(path)
            .map_err(|error| format!("cannot make the data directory {shown}: {error}; choose another --dir"))?;
        let lock = File::create(path.join("lock"))
            .map_err(|error| format!("cannot write in the data directory {shown}: {error}; choose another --dir"))?;
        lock_for_this_process(&lock, path)?;
        let manifest = match read_manifest(path)? {
            Some(manifest) => manifest,
            None => {
                let manifest = Manifest { format: FORMAT, generation: 1, shards };
                write_manifest(path, &manifest)
                    .map_err(|error| format!("cannot write {}: {error}", path.join(MANIFEST).display()))?;
                manifest
            }
        };
        if manifest.shards != shards {
            return Err(format!(
                "the data in {shown} is divided into {} shards; start with --shards {0}",
                manifest.shards
            ));
        }
        let directory = DataDirectory { path: path.to_owned(), manifest, _lock: lock };
        for shard in 0..shards {
            let shard = directory.shard(shard);
            fs::create_dir_all(&shard).map_err(|error| format!("cannot make {}: {error}", shard.display()))?;
        }
        sync_directory(path).map_err(|error| format!("cannot sync {shown}: {error}"))?;
        Ok(directory)
    }

    /// The division in force.
    pub fn generation(&self) -> u64 {
        self.manifest.generation
    }

    /// Where a shard's files are.
    pub fn shard(&self, shard: usize) -> PathBuf {
        self.path.join(format!("generation-{}", self.manifest.generation)).join(format!("shard-{shard}"))
    }
}

/// Locks a directory's file for this process alone; an error is one line.
fn lock_for_this_process(lock: &File, path: &Path) -> Result<(), String> {
    let shown = path.display();
    rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => {
            format!("another process uses the data directory {shown}; stop it or choose another --dir")
        }
        error => format!("cannot lock the data directory {shown}: {error}"),
    })
}

fn read_manifest(path: &Path) -> Result<Option<Manifest>, String> {
    let file = path.join(MANIFEST);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read {}: {error}", file.display())),
    };
    let manifest: Manifest = toml::from_str(&text)
        .map_err(|error| format!("{} is damaged: {}; restore it from a backup", file.display(), error.message()))?;
    if manifest.format != FORMAT {
        return Err(format!("{} has format {}; this program reads format {FORMAT}", file.display(), manifest.format));
    }
    Ok(Some(manifest))
}

fn write_manifest(path: &Path, manifest: &Manifest) -> io::Result<()> {
    let text = toml::to_string(manifest).map_err(io::Error::other)?;
    let new = path.join("manifest.new");
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path.join(MANIFEST))?;
    sync_directory(path)
}

/// Puts on stable storage which files a directory holds.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The segments of a shard's log in its directory: their positions and files, in order.
pub fn segments(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    files(directory, "log-")
}

/// The checkpoints of a shard in its directory: their positions and files, in order.
pub fn checkpoints(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    files(directory, "checkpoint-")
}

fn files(directory: &Path, prefix: &str) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let position = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_prefix(prefix))
            .and_then(|digits| u64::from_str_radix(digits, 16).ok());
        if let Some(position) = position {
            files.push((position, path));
        }
    }
    files.sort();
    Ok(files)
}

/// The file of the checkpoint at `position`.
pub fn checkpoint_path(directory: &Path, position: u64) -> PathBuf {
    directory.join(format!("checkpoint-{position:016x}"))
}

/// The file of the segment that starts at `position`.
pub fn segment_path(directory: &Path, position: u64) -> PathBuf {
    directory.join(format!("log-{position:016x}"))
}
