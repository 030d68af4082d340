//! Bodies as the input has them, in records or blocks with the right length and checksum, so that what reads bodies is
//! reached.

use ruvio_shard::log::Header;

/// The header of the file.
pub const HEADER: Header = Header { shard: 0, shards: 1, generation: 1, position: 1000 };

/// Cuts `input` into bodies, each behind its length in two bytes, and adds them to `file` with heads in front; the first of
/// them stands at `position` of what the checksums count.
pub fn sealed(mut input: &[u8], mut position: u64, file: &mut Vec<u8>) {
    while let Some((length, rest)) = input.split_first_chunk::<2>() {
        let (body, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
        input = rest;
        if body.is_empty() {
            continue;
        }
        let mut record = (body.len() as u32).to_le_bytes().to_vec();
        record.extend_from_slice(body);
        let sum = crc32c::crc32c_append(crc32c::crc32c(&position.to_le_bytes()), &record);
        file.extend_from_slice(&sum.to_le_bytes());
        file.extend_from_slice(&record);
        position += 4 + record.len() as u64;
    }
}
