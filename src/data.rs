//! The data directory: who uses it, how it is divided into shards, and where their files are.
//!
//! ```text
//! lock                        held by the process that uses the directory
//! manifest.toml               the format, the generation in force, and its number of shards
//! functions.rdb               the libraries of functions, as FUNCTION DUMP gives them
//! generation-G/shard-K/       the files of shard K: log-POSITION and checkpoint-POSITION
//! ```
//!
//! A division into another number of shards is a new generation: it comes into force with the manifest, which is
//! replaced as a whole, and the files of other generations are of no use then.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

/// The format of the directory.
const FORMAT: u32 = 1;

const MANIFEST: &str = "manifest.toml";
const LIBRARIES: &str = "functions.rdb";

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
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => {
                format!("another process uses the data directory {shown}; stop it or choose another --dir")
            }
            error => format!("cannot lock the data directory {shown}: {error}"),
        })?;
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
