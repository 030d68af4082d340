//! What a handler works with.

use crate::keys::Keys;
use crate::reply::Reply;

/// A command in progress.
pub struct Context<'a> {
    /// The keyspace, at the time and in the database of the call.
    pub keys: &'a mut Keys,
    /// Where the reply goes.
    pub reply: Reply<'a>,
}
