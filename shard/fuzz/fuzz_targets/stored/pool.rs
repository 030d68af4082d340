//! Empty shards that are used by one run after the other: to make the tables of all slots takes longer than most runs.

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use ruvio_shard::shard::Shard;

thread_local! {
    // Not dropped at the end of the process: the slab that they give their blocks back to may be gone then.
    static EMPTY: RefCell<ManuallyDrop<Vec<Shard>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// One that an earlier run left.
pub fn take() -> Option<Shard> {
    EMPTY.with_borrow_mut(|shards| shards.pop())
}

/// Keeps one, without keys, for the next run.
pub fn keep(shard: Shard) {
    EMPTY.with_borrow_mut(|shards| shards.push(shard));
}
