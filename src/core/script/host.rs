//! What scripts reach of the server: `redis.call`.

use std::sync::atomic::Ordering;

use ruvio_shard::args::Args;
use ruvio_shard::command::Flags;
use ruvio_shard::error::CommandError;
use ruvio_shard::reply::{Protocol, Reply};
use ruvio_shard::script::{Host, LogLevel, Pulse};
use ruvio_shard::shard::Call;
use ruvio_shard::slot::key_slot;

use crate::commands::{Flow, Request, Run as ServerRun, runs_in_scripts, selected_database};
use crate::core::Core;
use crate::core::client::ClientKey;
use crate::core::execute::Caller;
use crate::core::slow_log::SlowEntry;
use crate::registry::{Found, Registered, Run, Slots, registry};

/// What a script may do, and for whom.
pub(super) struct Circumstances<'a> {
    /// The call of the script. Its time is the script's, to the end.
    pub(super) call: Call,
    /// Who has it run.
    pub(super) caller: Caller,
    /// The words that called it.
    pub(super) args: Args<'a>,
    pub(super) may_write: bool,
    /// Whether it may call what takes memory.
    pub(super) may_take_memory: bool,
    /// Whether it may use every key of the shard.
    pub(super) may_cross_slots: bool,
}

/// The server, as a script sees it.
pub(super) struct ScriptHost<'a> {
    core: &'a mut Core,
    script: Circumstances<'a>,
    /// The core's clock at the end of the last call.
    now: u64,
}

impl<'a> ScriptHost<'a> {
    pub(super) fn new(core: &'a mut Core, script: Circumstances<'a>) -> ScriptHost<'a> {
        let now = core.clock.raw();
        ScriptHost { core, script, now }
    }
}

impl Host for ScriptHost<'_> {
    fn call(&mut self, args: Args<'_>, protocol: Protocol, reply: &mut Vec<u8>) {
        if let Err(error) = self.try_call(args, protocol, reply) {
            self.core.count_error(&error);
            Reply::new(reply, protocol).error(&error);
        }
    }

    fn log(&mut self, level: LogLevel, message: &[u8]) {
        self.core.log_for_script(level, message);
    }

    fn may_run(&mut self, args: Args<'_>) -> Result<bool, CommandError> {
        match registry().find(args) {
            Found::Unknown(_) => Err(CommandError::new("ERR Invalid command passed to redis.acl_check_cmd()")),
            // There is one user, who may do everything.
            Found::Command(_) | Found::WrongArity(_) => Ok(true),
        }
    }

    fn pulse(&mut self) -> Pulse {
        self.core.pulse(self.script.args)
    }
}

impl ScriptHost<'_> {
    fn try_call(&mut self, args: Args<'_>, protocol: Protocol, reply: &mut Vec<u8>) -> Result<(), CommandError> {
        let command = match registry().find(args) {
            Found::Command(command) => command,
            Found::WrongArity(command) => {
                self.core.command_stats[command.index].rejected += 1;
                return Err(CommandError::new("ERR Wrong number of args calling Redis command from script"));
            }
            Found::Unknown(_) if is_closed_to_scripts(args) => return Err(NOT_ALLOWED),
            Found::Unknown(_) => return Err(CommandError::new("ERR Unknown Redis command called from script")),
        };
        let slot = self.check(command, args).inspect_err(|_| {
            self.core.command_stats[command.index].rejected += 1;
        })?;
        if self.core.process.monitors.load(Ordering::Relaxed) > 0 {
            let database = self.script.call.database;
            self.core.feed_monitors_of_script(database, command, args);
        }
        match command.run {
            Run::Shard(_) => {
                let call = Call { slot, protocol, ..self.script.call };
                let start = self.now;
                let executed = self.core.execute_on_shard(command, args, call, self.script.caller, start, reply);
                self.core.counters.nested_ns += self.core.clock.delta_as_nanos(start, executed.end);
                self.now = executed.end;
                self.log_slow(executed.slow);
            }
            Run::Server(handler) => self.run_on_server(command, handler, args, protocol, reply)?,
            Run::Script(_) | Run::Container => return Err(NOT_ALLOWED),
        }
        self.core.observe_script(self.script.caller.place);
        if self.script.caller.is_tracked && command.spec.flags.has(Flags::READ_ONLY) {
            self.core.note_reads(self.script.caller.place, command, args);
        }
        Ok(())
    }

    /// Refuses a command that the script may not call; returns the slot of its keys.
    fn check(&mut self, command: &Registered, args: Args<'_>) -> Result<Option<u16>, CommandError> {
        let flags = command.spec.flags;
        if flags.has(Flags::NO_SCRIPT) {
            return Err(NOT_ALLOWED);
        }
        if let Run::Server(_) = command.run {
            self.check_on_server(command)?;
        }
        let running = self.core.scripts.running.as_mut();
        let has_written = running.as_ref().is_some_and(|running| running.has_written);
        if flags.has(Flags::DENY_OOM) && !self.script.may_take_memory && !has_written {
            return Err(CommandError::OUT_OF_MEMORY);
        }
        if !self.script.may_write && (flags.has(Flags::WRITE) || is_replicated(command)) {
            return Err(CommandError::new("ERR Write commands are not allowed from read-only scripts."));
        }
        let slot = self.place(command, args)?;
        if flags.has(Flags::WRITE)
            && let Some(running) = &mut self.core.scripts.running
        {
            running.has_written = true;
        }
        Ok(slot)
    }

    /// Refuses a command of the server that a script cannot call.
    fn check_on_server(&self, command: &Registered) -> Result<(), CommandError> {
        if !runs_in_scripts(command.spec.name) {
            return Err(NOT_ALLOWED);
        }
        if command.spec.name == "swapdb" && self.core.process.options.shards > 1 {
            return Err(CommandError::new(
                "ERR SWAPDB is not allowed from script: it is for every shard, and a script runs on one",
            ));
        }
        Ok(())
    }

    /// The slot of a command's keys, where they are in one and it matters; refuses keys that are not the script's.
    fn place(&mut self, command: &Registered, args: Args<'_>) -> Result<Option<u16>, CommandError> {
        let slots = command.slots(args);
        let own = |slot: u16| self.core.process.owner(slot) == self.core.number;
        match slots {
            Slots::None | Slots::Invalid => Ok(None),
            Slots::One(slot) if !own(slot) => Err(elsewhere(command, args, own)),
            Slots::One(slot) if self.script.may_cross_slots => Ok(Some(slot)),
            Slots::One(slot) => {
                if *self.script.call.slot.get_or_insert(slot) == slot {
                    Ok(Some(slot))
                } else {
                    let script_slot = self.script.call.slot;
                    Err(not_the_scripts(command, args, |slot| Some(slot) == script_slot))
                }
            }
            Slots::Several if self.script.may_cross_slots && !command.spec.is_native() => {
                let mut all_own = true;
                command.spec.visit_keys(args, |index| all_own &= own(key_slot(args.at(index))));
                if all_own { Ok(None) } else { Err(elsewhere(command, args, own)) }
            }
            Slots::Several if command.spec.is_native() => Err(CommandError::CROSS_SLOT),
            Slots::Several => {
                let first = first_slot(command, args);
                let script_slot = self.script.call.slot.or(first);
                Err(not_the_scripts(command, args, |slot| Some(slot) == script_slot))
            }
        }
    }

    /// Runs a command of the server, which speaks for this shard alone.
    fn run_on_server(
        &mut self,
        command: &'static Registered,
        handler: ServerRun,
        args: Args<'_>,
        protocol: Protocol,
        reply: &mut Vec<u8>,
    ) -> Result<(), CommandError> {
        if command.spec.name == "select" {
            let selected = selected_database(args, self.core.process.options.databases);
            self.note_server_call(command, args, selected.is_err());
            let database = selected?;
            self.script.call.database = database;
            if let Some(running) = &mut self.core.scripts.running {
                running.database = database;
            }
            Reply::new(reply, protocol).ok();
            return Ok(());
        }
        if let Some(running) = &mut self.core.scripts.running {
            running.protocol = protocol;
        }
        let before = reply.len();
        let mut request = Request { core: self.core, client: ClientKey::SCRIPT, args, out: reply, protocol };
        let result = handler(&mut request);
        self.note_server_call(command, args, result.is_err());
        match result {
            Ok(Flow::Done) => Ok(()),
            Ok(Flow::Wait) => {
                let gathered = std::mem::take(&mut self.core.gathered_for_script);
                reply.extend_from_slice(&gathered);
                Ok(())
            }
            Ok(Flow::Close | Flow::Execute) => Err(NOT_ALLOWED),
            Err(error) => {
                reply.truncate(before);
                Err(error)
            }
        }
    }

    fn note_server_call(&mut self, command: &'static Registered, args: Args<'_>, failed: bool) {
        let end = self.core.clock.raw();
        let slow = self.core.note_call(command, args, self.now, end, failed);
        self.core.counters.nested_ns += self.core.clock.delta_as_nanos(self.now, end);
        self.now = end;
        self.log_slow(slow);
    }

    /// Keeps an entry for the slow log, if there is one; it gets the address of the script's client.
    fn log_slow(&mut self, entry: Option<SlowEntry>) {
        let entries = &mut self.core.slow_in_script;
        entries.extend(entry);
        if entries.len() > self.core.configuration.slow_log_max_len {
            // Later ones would drive it out.
            entries.pop_front();
        }
    }
}

const NOT_ALLOWED: CommandError = CommandError::NOT_FROM_SCRIPTS;

/// Commands of Redis that do not exist here, and that Redis keeps from scripts.
const CLOSED_IN_REDIS: [&str; 10] =
    ["acl", "cluster|reset", "debug", "failover", "module", "psync", "replconf", "replicaof", "slaveof", "sync"];

/// Whether Redis would not let scripts call a command that is unknown here. Scripts see the same refusal.
#[cold]
fn is_closed_to_scripts(args: Args<'_>) -> bool {
    CLOSED_IN_REDIS.iter().any(|name| name.split('|').enumerate().all(|(index, word)| args.is(index, word)))
}

/// Whether a command counts as a write though it is none: replicas are told of it.
fn is_replicated(command: &Registered) -> bool {
    matches!(command.spec.name, "publish" | "spublish" | "pfcount")
}

/// The slot of a command's first key.
fn first_slot(command: &Registered, args: Args<'_>) -> Option<u16> {
    let mut first = None;
    command.spec.visit_keys(args, |index| {
        first.get_or_insert(key_slot(args.at(index)));
    });
    first
}

/// The first key whose slot is not as it should be, for an error.
fn stray_key(command: &Registered, args: Args<'_>, fits: impl Fn(u16) -> bool) -> String {
    let mut stray = None;
    command.spec.visit_keys(args, |index| {
        let key = args.at(index);
        if stray.is_none() && !fits(key_slot(key)) {
            stray = Some(String::from_utf8_lossy(&key[..key.len().min(128)]).into_owned());
        }
    });
    stray.unwrap_or_default()
}

#[cold]
fn elsewhere(command: &Registered, args: Args<'_>, own: impl Fn(u16) -> bool) -> CommandError {
    let key = stray_key(command, args, own);
    CommandError::new(format!("ERR Script attempted to access a non local key in a cluster node: '{key}'"))
}

#[cold]
fn not_the_scripts(command: &Registered, args: Args<'_>, fits: impl Fn(u16) -> bool) -> CommandError {
    let key = stray_key(command, args, fits);
    CommandError::new(format!("ERR Script attempted to access keys that do not hash to the same slot: '{key}'"))
}
