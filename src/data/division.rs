//! Dividing the data into another number of shards, at the start.
//!
//! What the old shards hold is read as any shard's data are, and written into checkpoints of a new generation, each key where
//! its slot belongs. They come into force with the manifest, once all of them are on stable storage; the old generation is
//! removed when the new one has been read. So a process that dies on the way leaves the old generation as it was and a new
//! one that is of no use, or the new one in force and an old one that is of no use; the next start removes what is of no use.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ruvio_shard::image::Image;
use ruvio_shard::keys::{Keys, Walk};
use ruvio_shard::log::Header;

use super::{Manifest, checkpoint_path, generation_path, shard_path, sync_directory, write_manifest};
use crate::process::owner;

/// Bytes of an image that are written at once, at least.
const CHUNK_BYTES: usize = 128 << 10;

/// How far the manifest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The old generation is in force.
    Begun,
    /// The new one is.
    InForce,
    /// The new one was given up.
    Abandoned,
}

/// The checkpoint of a new shard in the making.
#[derive(Debug)]
struct NewCheckpoint {
    path: PathBuf,
    image: Image,
    file: File,
}

/// A division of the data of all old shards among the new ones. Several cores work on it.
#[derive(Debug)]
pub struct Division {
    directory: PathBuf,
    old: Manifest,
    new: Manifest,
    checkpoints: Vec<Mutex<NewCheckpoint>>,
    /// Old shards whose keys are not all saved yet.
    left: AtomicUsize,
    state: Mutex<State>,
}

impl Division {
    /// Makes the files of the new generation in `directory`, empty; what was left there by an earlier attempt goes.
    pub(super) fn begin(directory: PathBuf, old: Manifest, new: Manifest) -> io::Result<Division> {
        match fs::remove_dir_all(generation_path(&directory, new.generation)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut checkpoints = Vec::new();
        for shard in 0..new.shards {
            let folder = shard_path(&directory, new.generation, shard);
            fs::create_dir_all(&folder)?;
            let path = checkpoint_path(&folder, 0);
            let header = header(new, shard);
            let file = File::create(&path)?;
            checkpoints.push(Mutex::new(NewCheckpoint { path, image: Image::new(&header), file }));
        }
        let (left, state) = (AtomicUsize::new(old.shards), Mutex::new(State::Begun));
        Ok(Division { directory, old, new, checkpoints, left, state })
    }

    /// Into how many shards the data were divided so far.
    pub fn old_shards(&self) -> usize {
        self.old.shards
    }

    /// Where the files of an old shard are, and what they say of themselves.
    pub fn old_shard(&self, shard: usize) -> (PathBuf, Header) {
        (shard_path(&self.directory, self.old.generation, shard), header(self.old, shard))
    }

    /// Saves some more of an old shard's keys; false when all are.
    pub fn save_some(&self, keys: &Keys, walk: &mut Walk) -> Result<bool, String> {
        let Some(slot) = keys.next_slot_of(walk) else { return Ok(false) };
        let mut checkpoint = lock(&self.checkpoints[owner(slot, self.new.shards)]);
        keys.save_some(walk, &mut checkpoint.image);
        checkpoint.write(CHUNK_BYTES).map(|()| true).map_err(|error| checkpoint.failed(&error))
    }

    /// Takes note that all keys of an old shard are saved; true when that was the last one.
    pub fn end_one(&self) -> bool {
        self.left.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Puts the new generation on stable storage and into force.
    pub fn complete(&self) -> Result<(), String> {
        for checkpoint in &self.checkpoints {
            let mut checkpoint = lock(checkpoint);
            checkpoint.image.end();
            checkpoint.write(0).and_then(|()| checkpoint.file.sync_all()).map_err(|error| checkpoint.failed(&error))?;
        }
        let mut state = lock(&self.state);
        if *state == State::Abandoned {
            return Err("the division was given up".to_owned());
        }
        let in_force = || -> io::Result<()> {
            for shard in 0..self.new.shards {
                sync_directory(&shard_path(&self.directory, self.new.generation, shard))?;
            }
            sync_directory(&generation_path(&self.directory, self.new.generation))?;
            sync_directory(&self.directory)?;
            write_manifest(&self.directory, &self.new)
        };
        in_force().map_err(|error| {
            format!("cannot put generation {} in {} into force: {error}", self.new.generation, self.directory.display())
        })?;
        *state = State::InForce;
        Ok(())
    }

    /// Gives the new generation up unless it is in force, and removes it.
    pub fn abandon(&self) {
        let mut state = lock(&self.state);
        if *state == State::Begun {
            *state = State::Abandoned;
            // The next start removes what is left of it otherwise.
            let _ = fs::remove_dir_all(generation_path(&self.directory, self.new.generation));
        }
    }
}

impl NewCheckpoint {
    /// Writes what is saved, once there are more than `least` bytes of it.
    fn write(&mut self, least: usize) -> io::Result<()> {
        if self.image.waiting_bytes() <= least { Ok(()) } else { self.file.write_all(&self.image.take().1) }
    }

    fn failed(&self, error: &io::Error) -> String {
        format!("cannot write {}: {error}", self.path.display())
    }
}

/// What the files of a shard say of themselves whose log begins.
fn header(manifest: Manifest, shard: usize) -> Header {
    Header { shard: shard as u32, shards: manifest.shards as u32, generation: manifest.generation, position: 0 }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
