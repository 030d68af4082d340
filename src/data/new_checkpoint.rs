//! The checkpoint of a shard of a generation that is not in force yet.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ruvio_shard::image::Image;
use ruvio_shard::log::Header;

use super::{Manifest, checkpoint_path, create_if_missing, segment_path};

/// Bytes of an image that are written at once, at least.
const CHUNK_BYTES: usize = 128 << 10;

/// A checkpoint in the making.
#[derive(Debug)]
pub(super) struct NewCheckpoint {
    path: PathBuf,
    pub(super) image: Image,
    file: File,
}

impl NewCheckpoint {
    /// Makes the folder of shard `shard` and in it the file, and the segment that the log begins with.
    pub(super) fn create(folder: &Path, manifest: Manifest, shard: usize) -> io::Result<NewCheckpoint> {
        fs::create_dir_all(folder)?;
        create_if_missing(&segment_path(folder, 0))?;
        let path = checkpoint_path(folder, 0);
        let file = File::create(&path)?;
        Ok(NewCheckpoint { path, image: Image::new(&header(manifest, shard)), file })
    }

    /// Writes what is saved, once that is enough. An error is one line.
    pub(super) fn write(&mut self) -> Result<(), String> {
        self.write_beyond(CHUNK_BYTES)
    }

    /// Ends the image and puts it on stable storage. An error is one line.
    pub(super) fn complete(&mut self) -> Result<(), String> {
        self.image.end();
        self.write_beyond(0)?;
        self.file.sync_all().map_err(|error| self.failed(&error))
    }

    /// Writes what is saved, once there are more than `least` bytes of it.
    fn write_beyond(&mut self, least: usize) -> Result<(), String> {
        if self.image.waiting_bytes() <= least {
            return Ok(());
        }
        self.file.write_all(&self.image.take().1).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> String {
        format!("cannot write {}: {error}", self.path.display())
    }
}

/// What the files of a shard say of themselves whose log begins.
pub(super) fn header(manifest: Manifest, shard: usize) -> Header {
    Header { shard: shard as u32, shards: manifest.shards as u32, generation: manifest.generation, position: 0 }
}

/// Removes a folder with all that is in it, if it is there.
pub(super) fn remove_if_there(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
