//! Reading a checkpoint from its file.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;

use ruvio_shard::image::{Block, Blocks};
use ruvio_shard::log::{HEADER_BYTES, Header, Refusal};
use ruvio_shard::shard::Shard;

use super::failure::{Damage, Failure};

/// Bytes that are read from the file at once.
const READ_BYTES: usize = 1 << 20;

/// A checkpoint that is read block by block.
pub struct CheckpointFile {
    /// Its file.
    pub path: PathBuf,
    /// Bytes of the file.
    pub bytes: u64,
    file: BufReader<File>,
    blocks: Blocks,
    block: Vec<u8>,
}

impl CheckpointFile {
    /// Opens the checkpoint in `path`, which must have this header.
    pub fn open(path: PathBuf, expected: Header) -> Result<CheckpointFile, Failure> {
        let unreadable = |error| Failure::Unreadable(format!("cannot read {}: {error}", path.display()));
        let file = File::open(&path).map_err(unreadable)?;
        let bytes = file.metadata().map_err(unreadable)?.len();
        let mut file = BufReader::with_capacity(READ_BYTES, file);
        if bytes < HEADER_BYTES as u64 {
            return Err(refused(path, 0, "it is shorter than a header".into()));
        }
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).map_err(unreadable)?;
        let blocks = match Blocks::open(&header) {
            Ok(blocks) => blocks,
            Err(refusal) => return Err(refused(path, 0, refusal)),
        };
        if blocks.header() != expected {
            let found = blocks.header();
            let problem = format!("{} is {found:?}, where {expected:?} belongs", path.display());
            return Err(Failure::Unreadable(problem));
        }
        Ok(CheckpointFile { path, bytes, file, blocks, block: Vec::new() })
    }

    /// Entries that were added so far.
    pub fn entries(&self) -> u64 {
        self.blocks.entries()
    }

    /// Adds the next block to the shard; how many bytes it has, and whether it is the last.
    pub fn read_block(&mut self, shard: &mut Shard) -> Result<(u64, bool), Failure> {
        let offset = self.blocks.offset();
        let (bytes, is_last) = self.read(shard).map_err(|refusal| refused(self.path.clone(), offset, refusal))?;
        if is_last && self.blocks.offset() != self.bytes {
            let refusal = "something follows its last block".into();
            return Err(refused(self.path.clone(), self.blocks.offset(), refusal));
        }
        Ok((bytes, is_last))
    }

    fn read(&mut self, shard: &mut Shard) -> Result<(u64, bool), Refusal> {
        let cut = |_| Refusal::from("it ends in the middle of a block");
        let mut head = [0; Blocks::HEAD_BYTES];
        self.file.read_exact(&mut head).map_err(cut)?;
        let body = Blocks::body_bytes(&head)?;
        if self.blocks.offset() + (head.len() + body) as u64 > self.bytes {
            return Err("it ends in the middle of a block".into());
        }
        self.block.clear();
        self.block.extend_from_slice(&head);
        self.block.resize(head.len() + body, 0);
        self.file.read_exact(&mut self.block[head.len()..]).map_err(cut)?;
        shard.keys.begin(0, i64::MIN, None);
        let is_last = self.blocks.add(&self.block, &mut shard.keys)? == Block::End;
        Ok((self.block.len() as u64, is_last))
    }
}

/// The failure that a refusal is, at an offset in the file of a checkpoint.
fn refused(path: PathBuf, offset: u64, refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Damaged(problem) => Failure::Damaged(Damage { path, offset, is_missing: false, problem, loss: None }),
        Refusal::Version(_) | Refusal::Database(_) => Failure::Unreadable(format!("{}: {refusal}", path.display())),
    }
}
