//! Dividing the data into another number of shards, at the start.
//!
//! What the old shards hold is read as any shard's data are, and written into checkpoints of a new generation, each key where
//! its slot belongs. They come into force with the manifest, once all of them are on stable storage; the old generation is
//! removed when the new one has been read. So a process that dies on the way leaves the old generation as it was and a new
//! one that is of no use, or the new one in force and an old one that is of no use; the next start removes what is of no use.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ruvio_shard::keys::{Keys, Walk};
use ruvio_shard::log::Header;

use super::new_checkpoint::{NewCheckpoint, header, remove_if_there};
use super::{Manifest, generation_path, shard_path, sync_directory, write_manifest};
use crate::process::owner;

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
        remove_if_there(&generation_path(&directory, new.generation))?;
        let mut checkpoints = Vec::new();
        for shard in 0..new.shards {
            let folder = shard_path(&directory, new.generation, shard);
            checkpoints.push(Mutex::new(NewCheckpoint::create(&folder, new, shard)?));
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

    /// As [`Manifest::names_first_segments`], of the old shards.
    pub fn old_names_first_segments(&self) -> bool {
        self.old.names_first_segments()
    }

    /// Saves some more of an old shard's keys; false when all are.
    pub fn save_some(&self, keys: &Keys, walk: &mut Walk) -> Result<bool, String> {
        let Some(slot) = keys.next_slot_of(walk) else { return Ok(false) };
        let mut checkpoint = lock(&self.checkpoints[owner(slot, self.new.shards)]);
        keys.save_some(walk, &mut checkpoint.image);
        checkpoint.write().map(|()| true)
    }

    /// Takes note that all keys of an old shard are saved; true when that was the last one.
    pub fn end_one(&self) -> bool {
        self.left.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Puts the new generation on stable storage and into force.
    pub fn complete(&self) -> Result<(), String> {
        for checkpoint in &self.checkpoints {
            lock(checkpoint).complete()?;
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
