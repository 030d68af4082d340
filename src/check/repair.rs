//! Ending a damaged log where it can still be read. What stood behind is kept aside, in a folder of the data directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ruvio_shard::log::HEADER_BYTES;

use super::say;
use crate::core::log::recovery::{Damage, Loss};
use crate::data::{create_if_missing, sync_directory};

/// Where what is taken out of a directory goes.
pub struct Removed {
    directory: PathBuf,
    /// The folder, once it was needed.
    folder: Option<PathBuf>,
}

impl Removed {
    /// For what is taken out of `directory`.
    pub fn new(directory: &Path) -> Removed {
        Removed { directory: directory.to_owned(), folder: None }
    }

    /// Takes out what the damage to the log of shard `number` makes unusable: `loss`, and no more.
    ///
    /// What is cut off is on stable storage elsewhere first. Later segments go from the last one on, so that a repair that is
    /// interrupted leaves a log that ends earlier.
    pub fn take(&mut self, number: usize, directory: &Path, damage: &Damage, loss: &Loss) -> io::Result<()> {
        let folder = self.folder_of(number)?;
        let name = damage.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Without a whole header nothing of the file is of use.
        let is_cut = damage.offset >= HEADER_BYTES as u64;
        if is_cut && loss.cut_bytes > 0 {
            let mut damaged = File::open(&damage.path)?;
            damaged.seek(SeekFrom::Start(damage.offset))?;
            let kept = folder.join(format!("{name}.from-{}", damage.offset));
            let mut file = File::create(&kept)?;
            io::copy(&mut damaged.take(loss.cut_bytes), &mut file)?;
            file.sync_all()?;
            let (bytes, offset) = (loss.cut_bytes, damage.offset);
            say(&format!("kept {bytes} bytes from offset {offset} of {name} on in {}\n", kept.display()));
        }
        sync_directory(&folder)?;
        let first = (!is_cut && !damage.is_missing).then_some(&damage.path);
        for segment in loss.segments.iter().rev().chain(first) {
            let kept = folder.join(segment.file_name().unwrap_or_default());
            fs::rename(segment, &kept)?;
            say(&format!("moved {} to {}\n", segment.display(), kept.display()));
        }
        if !is_cut {
            // What is before it may say that it is there.
            create_if_missing(&damage.path)?;
            say(&format!("made {} anew, empty\n", damage.path.display()));
        }
        sync_directory(&folder)?;
        sync_directory(directory)?;
        if is_cut {
            let file = OpenOptions::new().write(true).open(&damage.path)?;
            file.set_len(damage.offset)?;
            file.sync_all()?;
            say(&format!("cut {} at offset {}\n", damage.path.display(), damage.offset));
        }
        Ok(())
    }

    /// The folder for what was shard `number`'s.
    fn folder_of(&mut self, number: usize) -> io::Result<PathBuf> {
        let folder = match &self.folder {
            Some(folder) => folder,
            None => {
                let mut attempt = 1_u32;
                let made = loop {
                    let folder = self.directory.join(format!("removed-{attempt}"));
                    match fs::create_dir(&folder) {
                        Ok(()) => break folder,
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
                        Err(error) => return Err(error),
                    }
                };
                sync_directory(&self.directory)?;
                self.folder.insert(made)
            }
        };
        let of_shard = folder.join(format!("shard-{number}"));
        fs::create_dir(&of_shard)?;
        sync_directory(folder)?;
        Ok(of_shard)
    }
}
