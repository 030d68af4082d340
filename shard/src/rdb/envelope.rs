//! What `DUMP` gives for a value: type byte, value, version of the format (2 bytes) and checksum (8 bytes).

use crc::{CRC_64_REDIS, Crc, Digest, Table};

use super::LoadError;
use super::load::load;
use super::reader::Reader;
use super::save::{save_value, value_type, version_of};
use crate::entry::{Entry, EntryRef, Header};
use crate::settings::Settings;

/// The version of the format that is written, but for what came later: Redis 7.0's.
pub const VERSION_WRITTEN: u16 = 10;
/// The latest version of the format that is read: Redis 7.4's.
pub const VERSION_READ: u16 = 12;

static CHECKSUM: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// The checksum of bytes that come part by part, as an RDB file ends with it.
#[derive(Clone)]
pub struct Checksum(Digest<'static, u64, Table<16>>);

impl Default for Checksum {
    /// That of no bytes.
    fn default() -> Checksum {
        Checksum(CHECKSUM.digest())
    }
}

impl Checksum {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of the bytes that were added.
    pub fn value(&self) -> u64 {
        self.0.clone().finalize()
    }
}

/// An entry's value as `DUMP` gives it.
pub fn dump(entry: EntryRef<'_>) -> Vec<u8> {
    let value_type = value_type(entry);
    let mut out = vec![value_type];
    save_value(entry, &mut out);
    seal(out, version_of(value_type))
}

/// What is no value, with the version of the format and the checksum that [`open`] wants.
pub fn close(content: Vec<u8>) -> Vec<u8> {
    seal(content, VERSION_WRITTEN)
}

fn seal(mut content: Vec<u8>, version: u16) -> Vec<u8> {
    content.extend_from_slice(&version.to_le_bytes());
    let checksum = CHECKSUM.checksum(&content);
    content.extend_from_slice(&checksum.to_le_bytes());
    content
}

/// Type byte and value of what `DUMP` gave, where its version is one that is read and its checksum is right.
pub fn open(payload: &[u8]) -> Option<&[u8]> {
    let (checked, checksum) = payload.split_last_chunk::<8>()?;
    let (content, version) = checked.split_last_chunk::<2>()?;
    let is_right =
        u16::from_le_bytes(*version) <= VERSION_READ && u64::from_le_bytes(*checksum) == CHECKSUM.checksum(checked);
    is_right.then_some(content)
}

/// The entry of what [`open`] returned, see [`load`].
///
/// # Errors
/// Those of [`load`]; [`LoadError::Damaged`] too where bytes are left over.
pub fn restore(content: &[u8], header: Header<'_>, settings: &Settings) -> Result<Entry, LoadError> {
    let mut reader = Reader::new(content);
    let value_type = reader.byte()?;
    let entry = load(&mut reader, value_type, header, settings)?;
    if reader.rest().is_empty() { Ok(entry) } else { Err(LoadError::Damaged) }
}
