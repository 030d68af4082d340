//! Commands on their way to the core that owns their keys, and their replies on the way back.
//!
//! All commands of a turn for one core travel in one batch, in the order they came in. The batch itself returns with
//! the replies and is used again, so forwarding allocates nothing once the buffers have grown.

use ruvio_shard::args::{ArgRange, Args};
use ruvio_shard::reply::Protocol;

use super::client::ClientKey;
use super::slow_log::SlowEntry;
use crate::registry::Registered;

/// A batch passes this many bytes only with its last command.
pub const FULL_BYTES: usize = 1 << 20;

/// Buffers larger than this are not kept for the next batch.
const KEPT_BYTES: usize = 256 << 10;

/// One forwarded command.
pub struct Forwarded {
    /// Who waits for the reply, on the core that sends the batch.
    pub client: ClientKey,
    /// The command.
    pub command: &'static Registered,
    /// Its words are the next this many ranges of the batch.
    pub words: u32,
    /// The slot of its keys, where that is known.
    pub slot: Option<u16>,
    /// The database selected.
    pub database: u16,
    /// The protocol of the reply.
    pub protocol: Protocol,
    /// Whether reading leaves access stamps alone.
    pub no_touch: bool,
    /// Whether it reads keys that the client keeps copies of.
    pub is_tracked: bool,
}

/// Commands for one core.
#[derive(Default)]
pub struct Batch {
    /// The core that sends it.
    pub from: u16,
    /// The core that executes it.
    pub executed_by: u16,
    /// The commands' words.
    bytes: Vec<u8>,
    ranges: Vec<ArgRange>,
    /// The commands.
    pub commands: Vec<Forwarded>,
    /// Their replies, joined.
    pub replies: Vec<u8>,
    /// Where each reply ends.
    pub ends: Vec<usize>,
    /// Commands that were slow, by their place in the batch.
    pub slow: Vec<(usize, SlowEntry)>,
    /// Commands that wait, by their place in the batch: their replies come by themselves.
    pub waiting: Vec<usize>,
}

impl Batch {
    /// Adds a command.
    pub fn push(&mut self, command: Forwarded, args: Args<'_>) {
        for word in args.iter() {
            self.ranges.push(ArgRange { start: self.bytes.len() as u32, len: word.len() as u32 });
            self.bytes.extend_from_slice(word);
        }
        self.commands.push(command);
    }

    /// Whether it should be sent before more is added. Keeps offsets within 32 bits: a single command is bounded by
    /// the query buffer.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL_BYTES
    }

    /// Each command with its words.
    pub fn iter(&self) -> impl Iterator<Item = (&Forwarded, Args<'_>)> {
        let mut next = 0;
        self.commands.iter().map(move |command| {
            let start = next;
            next += command.words as usize;
            (command, Args::new(&self.bytes, &self.ranges[start..next]))
        })
    }

    /// Empties it for the next use.
    pub fn reset(&mut self) {
        if self.bytes.capacity() > KEPT_BYTES || self.replies.capacity() > KEPT_BYTES {
            *self = Batch::default();
            return;
        }
        self.bytes.clear();
        self.ranges.clear();
        self.commands.clear();
        self.replies.clear();
        self.ends.clear();
        self.slow.clear();
        self.waiting.clear();
    }
}
