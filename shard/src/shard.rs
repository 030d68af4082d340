//! A shard: executes commands on its keys.

use std::time::Duration;

use crate::args::{Args, OwnedArgs};
use crate::command::{Command, Flags};
use crate::context::Context;
use crate::error::CommandError;
use crate::eviction::MemoryMeter;
use crate::keys::Keys;
use crate::reply::{Protocol, Reply};
use crate::settings::Settings;
use crate::wait::Wait;

/// Circumstances of a call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The database selected.
    pub database: usize,
    /// The slot that every key of the command belongs to, where that is known.
    pub slot: Option<u16>,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    /// The protocol of the reply.
    pub protocol: Protocol,
    /// Whether a command that finds nothing may wait.
    pub may_wait: bool,
}

/// What came of a call.
#[derive(Debug)]
pub struct Outcome {
    /// Changes made; 0 for a call that left no trace.
    pub changes: u64,
    /// The error that was replied, if one was.
    pub error: Option<CommandError>,
    /// Whether the command was refused, so that it did not run.
    pub refused: bool,
    /// What it waits for, if it replied nothing because it waits.
    pub wait: Option<Wait>,
    /// What the log is to hold instead of the command, where its own words do not say what it did.
    pub logged: Option<OwnedArgs>,
}

/// The keys of one core and all that happens to them.
pub struct Shard {
    /// The keyspace.
    pub keys: Keys,
    pub(crate) meter: MemoryMeter,
    pub(crate) expiry: crate::expiry::Sweep,
    /// Whether it is measured how long evictions take.
    pub times_evictions: bool,
    pub(crate) longest_eviction: Duration,
}

impl Shard {
    /// An empty shard with `databases` databases. `seed` makes everything random repeatable.
    pub fn new(databases: usize, settings: Settings, meter: MemoryMeter, seed: u64) -> Shard {
        Shard {
            keys: Keys::new(databases, settings, seed),
            meter,
            expiry: crate::expiry::Sweep::default(),
            times_evictions: false,
            longest_eviction: Duration::ZERO,
        }
    }

    /// Executes a command whose arity and slots were checked; its reply is written behind what `out` holds.
    #[inline]
    pub fn execute(&mut self, command: &Command, args: Args<'_>, call: Call, out: &mut Vec<u8>) -> Outcome {
        debug_assert!(command.spec.accepts(args.len()));
        self.keys.begin(call.database, call.now_ms, call.slot);
        let start = out.len();
        let before = self.keys.stats.dirty;
        let needs_room = command.spec.flags.has(Flags::DENY_OOM) && !self.keys.in_script;
        let room = if self.keys.settings.maxmemory > 0 && needs_room {
            let room = self.make_room();
            self.keys.begin(call.database, call.now_ms, call.slot);
            room
        } else {
            true
        };
        if self.keys.paused && command.spec.flags.has(Flags::WRITE) {
            self.keys.remove_expired_though_paused();
        }
        let (mut wait, mut logged) = (None, None);
        let refused = !room;
        let result = if room {
            let (reply, may_wait) = (Reply::new(out, call.protocol), call.may_wait);
            let mut context = Context { keys: &mut self.keys, reply, may_wait, wait: None, logged: None };
            let result = (command.run)(&mut context, args);
            (wait, logged) = (context.wait, context.logged);
            result
        } else {
            Err(CommandError::OUT_OF_MEMORY)
        };
        let error = result.err();
        if let Some(error) = &error {
            out.truncate(start);
            Reply::new(out, call.protocol).error(error);
        }
        Outcome { changes: self.keys.stats.dirty - before, error, refused, wait, logged }
    }
}
