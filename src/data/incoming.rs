//! Data that come from elsewhere: a first generation in the making.
//!
//! Its files are written in a folder of their own, `importing`, which no server looks at. It becomes the first generation once
//! all of them are on stable storage, and comes into force with the manifest. What a process that died has left of one is
//! removed by the next.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ruvio_shard::entry::EntryRef;
use ruvio_shard::slot::key_slot;

use super::new_checkpoint::{NewCheckpoint, remove_if_there};
use super::{
    FORMAT, LIBRARIES, LOCK, Manifest, generation_path, generation_with_files, lock, read_manifest, replace_file,
    sync_directory, write_manifest,
};
use crate::process::owner;

const FOLDER: &str = "importing";

/// What one entry may have at most, in bytes, so that it can be read back.
const ENTRY_BYTES_MAX: usize = (1 << 31) - (1 << 20);

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
        if read_manifest(path)?.is_some() || generation_with_files(path).map_err(failed)?.is_some() {
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
        for shard in 0..self.manifest.shards {
            let folder = self.shard_folder(shard);
            self.checkpoints.push(NewCheckpoint::create(&folder, self.manifest, shard)?);
        }
        Ok(())
    }

    fn folder(&self) -> PathBuf {
        self.directory.join(FOLDER)
    }

    fn shard_folder(&self, shard: usize) -> PathBuf {
        self.folder().join(format!("shard-{shard}"))
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
        checkpoint.write()
    }

    /// Puts everything on stable storage and into force, with libraries of functions as they are kept in their file. An error
    /// is one line.
    pub fn complete(mut self, libraries: Option<&[u8]>) -> Result<(), String> {
        self.checkpoints.iter_mut().try_for_each(NewCheckpoint::complete)?;
        let generation = generation_path(&self.directory, self.manifest.generation);
        let put_into_force = || -> io::Result<()> {
            for shard in 0..self.manifest.shards {
                sync_directory(&self.shard_folder(shard))?;
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

/// Removes what is left of an import into a directory.
pub(super) fn remove_leftover(directory: &Path) -> io::Result<()> {
    remove_if_there(&directory.join(FOLDER))
}
