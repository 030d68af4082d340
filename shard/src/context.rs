//! What a handler works with.

use crate::args::OwnedArgs;
use crate::error::{CommandError, CommandResult};
use crate::keys::Keys;
use crate::reply::Reply;
use crate::wait::Wait;

/// Fewest bytes of an element in a reply.
const ELEMENT_BYTES_MIN: usize = 6;

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

/// How long the reply may get of a command that repeats what it finds as often as its client says: any client may ask for
/// more than there is memory.
#[derive(Clone, Copy, Debug)]
pub struct ReplyLimit {
    bytes: usize,
    /// Whether the client is disconnected for a longer one.
    disconnects: bool,
}

impl ReplyLimit {
    /// Refuses a reply of so many elements, whatever they are.
    ///
    /// # Errors
    /// That it is too long.
    pub fn check_elements(self, count: usize) -> CommandResult {
        self.check(count.saturating_mul(ELEMENT_BYTES_MIN))
    }

    /// Refuses a reply of so many bytes.
    ///
    /// # Errors
    /// That it is too long.
    #[inline]
    pub fn check(self, bytes: usize) -> CommandResult {
        if bytes <= self.bytes { Ok(()) } else { Err(self.error()) }
    }

    #[cold]
    fn error(self) -> CommandError {
        if self.disconnects {
            return CommandError::REPLY_OVER_LIMIT;
        }
        CommandError::new("ERR value is out of range, the reply would exceed proto-max-bulk-len")
    }
}

impl Context<'_> {
    /// The limit for a reply that may repeat what the key holds.
    pub fn reply_limit(&self) -> ReplyLimit {
        let settings = &self.keys.settings;
        // What a script is replied, it need not reply to its client.
        let disconnects = settings.most_reply_bytes < settings.proto_max_bulk_len && !self.keys.in_script;
        let bytes = if disconnects { settings.most_reply_bytes } else { settings.proto_max_bulk_len };
        ReplyLimit { bytes, disconnects }
    }

    /// Has the command wait; false when it may not, and has to reply now.
    pub fn wait_for(&mut self, wait: Wait) -> bool {
        if self.may_wait {
            self.wait = Some(wait);
        }
        self.may_wait
    }
}
