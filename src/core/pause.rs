//! `CLIENT PAUSE`: clients wait instead of having their commands executed, on every core until the same time.
//!
//! A command that is to wait stays where it was read, in the client's input, and the client is served no further. What
//! has expired is not found meanwhile but stays, and nothing is evicted, so that what is paused does not change.

use ruvio_shard::args::Args;
use ruvio_shard::command::Flags;

use super::Core;
use super::client::ClientKey;
use crate::registry::{Found, Registered, Run, Slots};

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paused {
    /// What may write, or what replicas would have to be told of.
    Writes,
    /// Every command.
    All,
}

/// A pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// What waits.
    pub paused: Paused,
    /// Until when, in ms since the epoch.
    pub until_ms: i64,
}

/// Commands without the flag of a write that wait with the writes, because replicas are told of them.
const REPLICATED: [&str; 3] = ["pfcount", "publish", "spublish"];

/// Whether a command waits while writes do.
fn waits_with_writes(command: &Registered) -> bool {
    let runs_script = matches!(command.run, Run::Script(_)) && !command.spec.flags.has(Flags::READ_ONLY);
    runs_script || command.spec.flags.has(Flags::WRITE) || REPLICATED.contains(&command.spec.name)
}

impl Core {
    /// Has this core's clients wait, and sends on what was forwarded for them so far. A pause that holds already is only
    /// made longer and stronger.
    pub fn pause_clients(&mut self, pause: Pause) {
        let earlier = self.pause.unwrap_or(pause);
        self.pause =
            Some(Pause { paused: pause.paused.max(earlier.paused), until_ms: pause.until_ms.max(earlier.until_ms) });
        self.shard.keys.paused = true;
        self.send_outboxes();
        self.end_pause_in_time();
    }

    /// Lets this core's clients go on.
    pub fn unpause_clients(&mut self) {
        self.pause = None;
        self.shard.keys.paused = false;
        for key in std::mem::take(&mut self.postponed) {
            if let Some(client) = self.clients.get_mut(key) {
                client.postponed = false;
                self.want_resume(key);
            }
        }
    }

    /// Lets this core's clients go on if their time has come.
    #[inline]
    pub(super) fn end_pause_in_time(&mut self) {
        if self.pause.is_some_and(|pause| pause.until_ms <= self.now_ms) {
            self.unpause_clients();
        }
    }

    /// Whether a request is to be left where it is because of a pause; its client waits then. What would be refused
    /// anyway, or sent elsewhere, is refused at once.
    #[inline]
    pub(super) fn postpones(&mut self, key: ClientKey, found: &Found, slots: Slots, args: Args<'_>) -> bool {
        if self.scripts.running().is_some() && self.waits_for_script(key, found, slots, args) {
            return true;
        }
        let Some(pause) = self.pause else { return false };
        self.postpones_in(pause, key, found, slots, args)
    }

    /// Whether a command executes a transaction in which something waits with the writes.
    fn executes_writes(&self, key: ClientKey, command: &Registered) -> bool {
        let queue = self.clients.get(key).and_then(|client| client.transaction.as_ref());
        command.spec.name == "exec" && queue.is_some_and(|queue| queue.commands().any(waits_with_writes))
    }

    /// Whether a command runs a script, or a function, that says that it writes nothing.
    fn runs_what_only_reads(&self, command: &Registered, args: Args<'_>) -> bool {
        match command.run {
            Run::Script(script) => self.says_it_only_reads(script, args),
            _ => false,
        }
    }

    #[cold]
    fn postpones_in(&mut self, pause: Pause, key: ClientKey, found: &Found, slots: Slots, args: Args<'_>) -> bool {
        let Found::Command(command) = found else { return false };
        let is_refused = matches!(command.run, Run::Container) || !self.is_let_through(key, command, slots, args);
        if is_refused
            || (pause.paused == Paused::Writes
                && (!waits_with_writes(command) || self.runs_what_only_reads(command, args))
                && !self.executes_writes(key, command))
        {
            return false;
        }
        let Some(client) = self.clients.get_mut(key) else { return false };
        // Monitors are paused as little as replicas.
        if client.monitor || (!client.authenticated && !command.spec.flags.has(Flags::NO_AUTH)) {
            return false;
        }
        client.postponed = true;
        client.last_command = command.spec.name;
        self.postponed.push(key);
        true
    }
}
