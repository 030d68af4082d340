//! The commands of a client between `MULTI` and `EXEC`, and where their keys are.

use ruvio_shard::args::{ArgRange, Args};
use ruvio_shard::command::Flags;

use super::is_whole_process;
use crate::registry::{Registered, Run};

/// Room of a queue that is kept for the next transaction: for words in bytes, and for how many.
const KEPT_BYTES: usize = 16 << 10;
const KEPT_WORDS: usize = 1 << 10;

/// A command of a transaction.
pub(super) struct Queued {
    pub(super) command: &'static Registered,
    /// Its words are the next this many ranges.
    pub(super) words: usize,
    pub(super) slot: Option<u16>,
}

/// The commands of a client between `MULTI` and `EXEC`.
#[derive(Default)]
pub struct Queue {
    pub(super) commands: Vec<Queued>,
    pub(super) bytes: Vec<u8>,
    pub(super) ranges: Vec<ArgRange>,
    /// Where all keys so far are.
    pub(super) place: Option<KeyPlace>,
    /// Whether a command was refused, so that `EXEC` will be.
    pub(super) failed: bool,
    /// Whether one of them is none that a shard executes by itself.
    pub(super) needs_core: bool,
    /// Whether one of them needs memory.
    pub(super) needs_memory: bool,
}

impl Queue {
    /// How many commands are queued.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// The commands, in order.
    pub(in crate::core) fn commands(&self) -> impl Iterator<Item = &'static Registered> {
        self.commands.iter().map(|queued| queued.command)
    }

    /// The core that owns the keys of its commands, if they have any.
    pub(in crate::core) fn owner(&self) -> Option<usize> {
        self.place.map(|place| place.owner)
    }

    /// Whether it has a command that works on every core.
    pub(in crate::core) fn is_whole_process(&self) -> bool {
        self.commands().any(is_whole_process)
    }

    /// Bytes of their words.
    pub fn bytes(&self) -> usize {
        self.bytes.len() + self.ranges.len() * size_of::<ArgRange>()
    }

    /// Adds a command whose keys are at `place`.
    pub(super) fn push(&mut self, command: &'static Registered, place: Option<KeyPlace>, args: Args<'_>) {
        self.place = self.place.or(place);
        for word in args.iter() {
            self.ranges.push(ArgRange { start: self.bytes.len() as u32, len: word.len() as u32 });
            self.bytes.extend_from_slice(word);
        }
        self.needs_core |= !matches!(command.run, Run::Shard(_));
        self.needs_memory |= command.spec.flags.has(Flags::DENY_OOM);
        self.commands.push(Queued { command, words: args.len(), slot: place.and_then(|place| place.slot) });
    }

    /// Has `EXEC` refuse.
    pub(in crate::core) fn fail(&mut self) {
        self.failed = true;
    }

    /// Empties it for the next transaction; false where it has more room than should be kept.
    pub(super) fn reset(&mut self) -> bool {
        self.commands.clear();
        self.bytes.clear();
        self.ranges.clear();
        self.place = None;
        self.failed = false;
        self.needs_core = false;
        self.needs_memory = false;
        self.bytes.capacity() <= KEPT_BYTES && self.ranges.capacity() <= KEPT_WORDS
    }
}

/// Where the keys of a command, of a transaction or of a watch are: in one slot, or at least on one core.
#[derive(Clone, Copy, Debug)]
pub struct KeyPlace {
    /// Their slot; `None` where they are in several of a core's, which `--cross-slot allow` permits.
    pub(super) slot: Option<u16>,
    /// The core that owns them.
    pub owner: usize,
}

impl KeyPlace {
    /// Whether keys there may be used together with keys at `other`.
    pub(super) fn goes_with(self, other: KeyPlace, may_cross_slots: bool) -> bool {
        self.owner == other.owner && (may_cross_slots || self.slot == other.slot)
    }
}
