//! Data that come from elsewhere: a first generation in the making.
//!
//! Its files are written in a folder of their own, `importing`, which no server looks at. It becomes the first generation once
//! all of them are on stable storage, and comes into force with the manifest. What a process that died has left of one is
//! removed by the next.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ruvio_shard::entry::EntryRef;
use ruvio_shard::image::Image;
use ruvio_shard::log::Header;
use ruvio_shard::slot::key_slot;

use super::{
    FORMAT, LIBRARIES, LOCK, Manifest, checkpoint_path, generation_path, generations, lock, read_manifest,
    replace_file, sync_directory, write_manifest,
};
use crate::process::owner;

const FOLDER: &str = "importing";

/// Bytes of an image that are written at once, at least.
const CHUNK_BYTES: usize = 128 << 10;

/// What one entry may have at most, in bytes, so that it can be read back.
const ENTRY_BYTES_MAX: usize = (1 << 31) - (1 << 20);

/// The checkpoint of a shard in the making.
#[derive(Debug)]
struct NewCheckpoint {
    path: PathBuf,
    image: Image,
    file: File,
}

/// A first generation in the making. When this value goes before it is complete, nothing is left of it.
#[derive(Debug)]
pub struct Incoming {
    directory: PathBuf,
    manifest: Manifest,
    checkpoints: Vec<NewCheckpoint>,
    /// Whether the directory was made for it, and goes with it.
    is_directory_new: bool,
    is_in_force: bool,
    _lock: File,
}

impl Incoming {
    /// Begins in the directory `path`, which must hold no data yet, for `shards` shards. An error is one line.
    pub fn begin(path: &Path, shards: usize) -> Result<Incoming, String> {
        let shown = path.display();
        let is_directory_new = !path.exists();
        fs::create_dir_all(path)
            .map_err(|error| format!("cannot make the data directory {shown}: {error}; choose another --dir"))?;
        let lock = lock(path)?;
        let failed = |error: io::Error| format!("cannot write in the data directory {shown}: {error}");
        if read_manifest(path)?.is_some() || holds_generations(path).map_err(failed)? {
            return Err(format!("{shown} holds data already; choose another --dir"));
        }
        let manifest = Manifest { format: FORMAT, generation: 1, shards };
        let mut incoming = Incoming {
            directory: path.to_owned(),
            manifest,
            checkpoints: Vec::new(),
            is_directory_new,
            is_in_force: false,
            _lock: lock,
        };
        incoming.make_files().map_err(failed)?;
        Ok(incoming)
    }

    fn make_files(&mut self) -> io::Result<()> {
        remove_leftover(&self.directory)?;
        let Manifest { generation, shards, .. } = self.manifest;
        for shard in 0..shards {
            let folder = self.folder().join(format!("shard-{shard}"));
            fs::create_dir_all(&folder)?;
            let path = checkpoint_path(&folder, 0);
            let header = Header { shard: shard as u32, shards: shards as u32, generation, position: 0 };
            let file = File::create(&path)?;
            self.checkpoints.push(NewCheckpoint { path, image: Image::new(&header), file });
        }
        Ok(())
    }

    fn folder(&self) -> PathBuf {
        self.directory.join(FOLDER)
    }

    /// Adds an entry of database `database` to the shard that owns its slot. An error is one line.
    pub fn add(&mut self, database: usize, entry: EntryRef<'_>) -> Result<(), String> {
        let checkpoint = &mut self.checkpoints[owner(key_slot(entry.key()), self.manifest.shards)];
        let before = checkpoint.image.waiting_bytes();
        checkpoint.image.save(database, entry);
        if checkpoint.image.waiting_bytes() - before > ENTRY_BYTES_MAX {
            let key = entry.key().escape_ascii();
            return Err(format!("key '{key}' of database {database} has more than {ENTRY_BYTES_MAX} bytes"));
        }
        checkpoint.write(CHUNK_BYTES)
    }

    /// Puts everything on stable storage and into force, with libraries of functions as they are kept in their file. An error
    /// is one line.
    pub fn complete(mut self, libraries: Option<&[u8]>) -> Result<(), String> {
        for checkpoint in &mut self.checkpoints {
            checkpoint.image.end();
            checkpoint.write(0)?;
            checkpoint.file.sync_all().map_err(|error| checkpoint.failed(&error))?;
        }
        let generation = generation_path(&self.directory, self.manifest.generation);
        let put_into_force = || -> io::Result<()> {
            for shard in 0..self.manifest.shards {
                sync_directory(&self.folder().join(format!("shard-{shard}")))?;
            }
            sync_directory(&self.folder())?;
            remove_if_there(&generation)?;
            fs::rename(self.folder(), &generation)?;
            sync_directory(&self.directory)?;
            if let Some(libraries) = libraries {
                replace_file(&self.directory, LIBRARIES, libraries)?;
            }
            write_manifest(&self.directory, &self.manifest)
        };
        if let Err(error) = put_into_force() {
            // What is left of it is of no use without a manifest, and in the way of the next attempt.
            let _ = remove_if_there(&generation);
            let _ = fs::remove_file(self.directory.join(LIBRARIES));
            return Err(format!("cannot write in the data directory {}: {error}", self.directory.display()));
        }
        self.is_in_force = true;
        Ok(())
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if self.is_in_force {
            return;
        }
        // The next attempt removes what is left of it otherwise.
        let _ = remove_leftover(&self.directory);
        if self.is_directory_new {
            let _ = fs::remove_file(self.directory.join(LOCK));
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

impl NewCheckpoint {
    /// Writes what is saved, once there are more than `least` bytes of it.
    fn write(&mut self, least: usize) -> Result<(), String> {
        if self.image.waiting_bytes() <= least {
            return Ok(());
        }
        self.file.write_all(&self.image.take().1).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> String {
        format!("cannot write {}: {error}", self.path.display())
    }
}

/// Removes what is left of an import into a directory.
pub(super) fn remove_leftover(directory: &Path) -> io::Result<()> {
    remove_if_there(&directory.join(FOLDER))
}

fn remove_if_there(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether a directory has files of any generation.
fn holds_generations(path: &Path) -> io::Result<bool> {
    for (_, generation) in generations(path)? {
        for shard in fs::read_dir(generation)? {
            if fs::read_dir(shard?.path())?.next().is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
