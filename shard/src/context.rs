//! What a handler works with.

use crate::args::OwnedArgs;
use crate::keys::Keys;
use crate::reply::Reply;
use crate::wait::Wait;

/// A command in progress.
pub struct Context<'a> {
    /// The keyspace, at the time and in the database of the call.
    pub keys: &'a mut Keys,
    /// Where the reply goes.
    pub reply: Reply<'a>,
    /// Whether a command may wait: not in a transaction, nor in a script.
    pub may_wait: bool,
    /// Set by a command that waits; it has replied nothing then.
    pub wait: Option<Wait>,
    /// Set by a command whose effect is a matter of chance: the command that has the same effect whenever it is executed.
    pub logged: Option<OwnedArgs>,
}

impl Context<'_> {
    /// Has the command wait; false when it may not, and has to reply now.
    pub fn wait_for(&mut self, wait: Wait) -> bool {
        if self.may_wait {
            self.wait = Some(wait);
        }
        self.may_wait
    }
}
