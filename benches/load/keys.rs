//! Loading keys, on one connection, in batches.

use crate::Result;
use crate::connection::{Batch, Connection};

/// Commands sent at once where nothing else is said.
const BATCH: usize = 1000;

/// Sends the command that `words` makes of each number below `count`.
pub fn load<W: AsRef<[u8]>>(connection: &mut Connection, count: usize, words: impl Fn(usize) -> Vec<W>) -> Result<()> {
    let mut batch = Batch::default();
    for start in (0..count).step_by(BATCH) {
        batch.clear();
        for number in start..count.min(start + BATCH) {
            batch.push(&words(number));
        }
        connection.send(&batch)?;
    }
    Ok(())
}
