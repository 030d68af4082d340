//! Libraries as `FUNCTION DUMP` gives them: an RDB function record each, then the version of the format and a checksum.

use ruvio_shard::error::CommandError;
use ruvio_shard::rdb::{self, Reader};
use ruvio_shard::script::Limits;

use super::{Library, LibrarySet};

/// The record of a library in Redis's RDB format.
const FUNCTION: u8 = 245;

/// All libraries.
pub fn write(libraries: &LibrarySet) -> Vec<u8> {
    let mut content = Vec::new();
    for library in libraries.all() {
        content.push(FUNCTION);
        rdb::save_string(&library.code, &mut content);
    }
    rdb::close(content)
}

/// The libraries of a payload; each is run once.
pub fn read(payload: &[u8], limits: Limits) -> Result<Vec<Library>, CommandError> {
    let damaged = || CommandError::new("ERR DUMP payload version or checksum are wrong");
    let mut reader = Reader::new(rdb::open(payload).ok_or_else(damaged)?);
    let mut libraries = Vec::new();
    while !reader.rest().is_empty() {
        if reader.byte().ok() != Some(FUNCTION) {
            return Err(CommandError::new("ERR given type is not a function"));
        }
        let code = reader.blob().map_err(|_| CommandError::new("ERR failed loading functions data"))?;
        libraries.push(Library::new(&code, limits)?);
    }
    Ok(libraries)
}
