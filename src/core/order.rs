//! Commands that start only when all that their client has sent before is answered.
//!
//! What a client pipelines to the keys of several cores is executed at once on each, which no reply shows: each key has its
//! core. Scripts, functions and settings are the whole process's: to change them while an earlier command of the same
//! client is on its way to another core would change what that command finds.

use ruvio_shard::args::Args;
use ruvio_shard::script::Digest;

use super::Core;
use super::client::ClientKey;
use crate::registry::{Found, Registered, Run, ScriptCommand};

/// Commands about what all cores share.
const ABOUT_ALL: [&str; 8] = [
    "config|set",
    "function|delete",
    "function|flush",
    "function|load",
    "function|restore",
    "script|exists",
    "script|flush",
    "script|load",
];

impl Core {
    /// Whether a request is to be left where it is until its client has the replies to the earlier ones.
    #[inline]
    pub(super) fn awaits_replies(&mut self, key: ClientKey, found: &Found, args: Args<'_>) -> bool {
        let Found::Command(command) = found else { return false };
        match command.run {
            Run::Server(_) => {}
            Run::Script(ScriptCommand::EvalDigest { .. }) => {}
            _ => return false,
        }
        let owes = self.clients.get(key).is_some_and(|client| !client.pieces.is_empty());
        owes && self.awaits_what_is_owed(key, command, args)
    }

    #[cold]
    fn awaits_what_is_owed(&mut self, key: ClientKey, command: &Registered, args: Args<'_>) -> bool {
        let awaits = match command.run {
            // An earlier `EVAL` on another core may be what makes the script known.
            Run::Script(_) => Digest::parse(args.at(1)).is_some_and(|digest| {
                self.known_script(&digest).is_none() && self.process.scripts.get(&digest).is_none()
            }),
            _ => ABOUT_ALL.contains(&command.spec.name),
        };
        if awaits && let Some(client) = self.clients.get_mut(key) {
            client.paused = true;
            client.awaits_replies = true;
        }
        awaits
    }
}
