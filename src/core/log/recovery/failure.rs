//! Why a shard's data cannot be read, and what would have to be given up to read the rest.

use std::path::{Path, PathBuf};

/// Why a shard's data cannot be read. Nothing was changed.
#[derive(Debug)]
pub enum Failure {
    /// Files cannot be read, or are not those of this directory, program or configuration.
    Unreadable(String),
    /// What was on stable storage is not there as it was written.
    Damaged(Damage),
}

/// Where something is not as it was written.
#[derive(Debug)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// Whether the file is not there at all.
    pub is_missing: bool,
    /// What is wrong there.
    pub problem: String,
    /// What is lost where the log ends there instead; `None` where it cannot, because the damage is to a checkpoint.
    pub loss: Option<Loss>,
}

/// What stands behind the place where a log can no longer be read.
#[derive(Debug, Default)]
pub struct Loss {
    /// Whole records of commands.
    pub records: u64,
    /// Bytes, of all files.
    pub bytes: u64,
    /// The bytes of them in the file that is damaged.
    pub cut_bytes: u64,
    /// Later segments, which go altogether.
    pub segments: Vec<PathBuf>,
}

impl Loss {
    /// What it is, for people.
    pub fn describe(&self) -> String {
        let mut text = format!("{} whole records and {} bytes in all", self.records, self.bytes);
        if !self.segments.is_empty() {
            let names: Vec<_> = self.segments.iter().filter_map(|path| path.file_name()).collect();
            let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
            text.push_str(&format!(", with the later segments {}", names.join(", ")));
        }
        text
    }
}

impl Damage {
    /// Where and what, for people.
    pub fn describe(&self) -> String {
        let path = self.path.display();
        match self.is_missing {
            true => format!("{path} is missing: {}", self.problem),
            false => format!("{path} is damaged at offset {}: {}", self.offset, self.problem),
        }
    }
}

impl Failure {
    /// In one line, for whoever has started a server on `directory`.
    pub fn describe(&self, directory: &Path) -> String {
        let damage = match self {
            Failure::Unreadable(problem) => return problem.clone(),
            Failure::Damaged(damage) => damage,
        };
        let place = damage.describe();
        match &damage.loss {
            Some(loss) => format!(
                "{place}; nothing was changed; `ruvio check {} --repair` would end the log there and drop {}",
                directory.display(),
                loss.describe()
            ),
            None => format!("{place}; nothing was changed; a checkpoint cannot be repaired, restore a backup"),
        }
    }
}
