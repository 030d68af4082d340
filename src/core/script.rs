//! Scripts and functions on a core: finding them, running them, and logging what they do as one record.
//!
//! A script runs on the core that owns its keys, to its end. While it does, its interpreter asks the core from time to
//! time what to do ([`beside`]): the core serves its sockets then and forwards to others, but touches no key.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ruvio_shard::args::{Args, OwnedArgs};
use ruvio_shard::error::CommandError;
use ruvio_shard::number::parse_i64;
use ruvio_shard::reply::{Protocol, Reply};
use ruvio_shard::script::{Digest, Engine, Limits, LogLevel, Ran, ScriptCall, ScriptFlags, header};
use ruvio_shard::shard::{Call, Outcome};

use self::host::{Circumstances, ScriptHost};
use super::Core;
use super::client::ClientKey;
use super::execute::Caller;
use super::mailbox::{Message, Task};
use super::waiting::Place;
use crate::configuration::Hears;
use crate::functions::{LibrarySet, LoadingHost};
use crate::registry::ScriptCommand;
use crate::scripts::Script;

pub mod beside;
mod host;

/// What a core knows of scripts.
#[derive(Default)]
pub struct Scripts {
    /// The interpreter, from the first script on.
    engine: Option<Rc<Engine>>,
    /// The scripts that it has compiled.
    known: HashMap<Digest, Arc<Script>>,
    /// Which state of the process's libraries it has loaded.
    libraries: u64,
    /// The script in progress.
    running: Option<Running>,
}

/// A script in progress.
pub struct Running {
    /// What it is.
    pub kind: ScriptKind,
    /// Who has it run.
    pub caller: Place,
    /// The words that called it, once it has run for so long that others may ask.
    pub words: OwnedArgs,
    /// The core's clock when it began.
    started: u64,
    /// The core's clock when other things were last seen to.
    served: u64,
    /// The client whose input is being served, which is not read from meanwhile.
    serving: Option<ClientKey>,
    /// The database of what it does.
    pub database: usize,
    /// The protocol of the reply to the command of the server that it calls.
    protocol: Protocol,
    /// Whether it has called a command that writes.
    pub has_written: bool,
    /// Whether it is to end.
    is_killed: bool,
    /// Whether it has run for so long that others are refused.
    is_busy: bool,
}

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptKind {
    /// A script.
    Script,
    /// A function of a library.
    Function,
}

/// What is to run: compiled, and with its flags.
enum Found {
    Script(Arc<Script>),
    Function(String, ScriptFlags),
}

impl Scripts {
    /// The script in progress, if there is one.
    pub fn running(&self) -> Option<&Running> {
        self.running.as_ref()
    }
}

impl Core {
    /// The interpreter, made if need be.
    fn engine(&mut self) -> Result<Rc<Engine>, CommandError> {
        if let Some(engine) = &self.scripts.engine {
            return Ok(Rc::clone(engine));
        }
        let engine = Rc::new(Engine::new(self.script_limits())?);
        self.scripts.engine = Some(Rc::clone(&engine));
        Ok(engine)
    }

    /// Compiles a script and makes it known to the process; returns it. `stays` says whether it was loaded on purpose.
    pub fn load_script(&mut self, body: &[u8], stays: bool) -> Result<Arc<Script>, CommandError> {
        let digest = Digest::of(body);
        if let Some(script) = self.known_script(&digest) {
            if stays {
                self.process.scripts.keep(&script);
            }
            return Ok(script);
        }
        self.engine()?.load(digest, body)?;
        let script = self.process.scripts.add(digest, body, stays, self.clock.raw())?;
        self.scripts.known.insert(digest, Arc::clone(&script));
        Ok(script)
    }

    /// A script that this core has compiled, and that is not forgotten since.
    #[inline]
    pub(super) fn known_script(&mut self, digest: &Digest) -> Option<Arc<Script>> {
        let script = self.scripts.known.get(digest)?;
        if script.is_forgotten() {
            self.scripts.known.remove(digest);
            if let Some(engine) = &self.scripts.engine {
                engine.forget(digest);
            }
            return None;
        }
        Some(Arc::clone(script))
    }

    /// A script that the process knows, compiled here.
    fn script(&mut self, digest: &Digest) -> Result<Option<Arc<Script>>, CommandError> {
        if let Some(script) = self.known_script(digest) {
            return Ok(Some(script));
        }
        let Some(script) = self.process.scripts.get(digest) else { return Ok(None) };
        self.engine()?.load(*digest, &script.body)?;
        self.scripts.known.insert(*digest, Arc::clone(&script));
        Ok(Some(script))
    }

    /// Forgets the scripts that the process has forgotten.
    pub(super) fn forget_scripts(&mut self) {
        let Some(engine) = &self.scripts.engine else { return };
        self.scripts.known.retain(|digest, script| {
            let stays = !script.is_forgotten();
            if !stays {
                engine.forget(digest);
            }
            stays
        });
    }

    /// Forgets every script.
    ///
    /// # Errors
    /// That there is no memory for a new interpreter.
    pub fn flush_scripts(&mut self) -> Result<(), CommandError> {
        self.scripts.known.clear();
        match &self.scripts.engine {
            Some(engine) => engine.flush(),
            None => Ok(()),
        }
    }

    /// Has the interpreter know the functions that the process knows.
    fn take_libraries(&mut self) -> Result<(), CommandError> {
        let libraries = self.process.libraries.current();
        if libraries.version == self.scripts.libraries {
            return Ok(());
        }
        let engine = self.engine()?;
        engine.flush_libraries()?;
        for library in libraries.all() {
            engine.load_library(&library.name, &library.code, &mut LoadingHost::default())?;
        }
        self.scripts.libraries = libraries.version;
        Ok(())
    }

    /// Runs `EVAL` and its like.
    pub(super) fn execute_script(
        &mut self,
        command: ScriptCommand,
        args: Args<'_>,
        call: Call,
        caller: Caller,
        out: &mut Vec<u8>,
    ) -> Outcome {
        self.counters.shard_commands += 1;
        let dirty_before = self.shard.keys.stats.dirty;
        let (error, refused) = match self.prepare_script(command, args) {
            Err(Unprepared { error, refused }) => {
                Reply::new(out, call.protocol).error(&error);
                self.count_error(&error);
                (Some(error), refused)
            }
            Ok((engine, prepared)) => (self.run_script(&engine, prepared, args, call, caller, out), false),
        };
        Outcome { changes: self.shard.keys.stats.dirty - dirty_before, error, refused, wait: None, logged: None }
    }

    /// Finds what is to run, and refuses what may not.
    fn prepare_script(&mut self, command: ScriptCommand, args: Args<'_>) -> Result<(Rc<Engine>, Prepared), Unprepared> {
        // What is to be called is looked for first, but for a script, of which only the digest's length is.
        let function = match command {
            ScriptCommand::Call { .. } => {
                self.take_libraries()?;
                let libraries = self.process.libraries.current();
                let (name, flags) = libraries.find(args.at(1)).ok_or(CommandError::new("ERR Function not found"))?;
                Some(Found::Function(name.to_owned(), flags))
            }
            ScriptCommand::EvalDigest { .. } if args.at(1).len() != Digest::HEX_LEN => {
                return Err(CommandError::NO_SCRIPT.into());
            }
            _ => None,
        };
        let keys = parse_i64(args.at(2)).ok_or(match command {
            ScriptCommand::Call { .. } => CommandError::new("ERR Bad number of keys provided"),
            _ => CommandError::NOT_AN_INTEGER,
        })?;
        let most = args.len() - 3;
        let keys = match usize::try_from(keys) {
            Ok(keys) if keys <= most => keys,
            Ok(_) => return Err(CommandError::new("ERR Number of keys can't be greater than number of args").into()),
            Err(_) => return Err(CommandError::new("ERR Number of keys can't be negative").into()),
        };
        let found = match (function, command) {
            (Some(function), _) => function,
            (None, ScriptCommand::Eval { .. }) => Found::Script(self.load_script(args.at(1), false)?),
            (None, _) => {
                let script = match Digest::parse(args.at(1)) {
                    Some(digest) => self.script(&digest)?,
                    None => None,
                };
                Found::Script(script.ok_or(CommandError::NO_SCRIPT)?)
            }
        };
        let (flags, has_flags) = match &found {
            Found::Script(script) => (script.flags, script.has_flags),
            Found::Function(_, flags) => (*flags, true),
        };
        let has_room = self.configuration.settings.maxmemory == 0 || self.shard.make_room();
        let may_write = !flags.contains(ScriptFlags::NO_WRITES);
        if has_flags {
            if flags.contains(ScriptFlags::NO_CLUSTER) && !self.process.options.cross_slot {
                return Err(CommandError::new("ERR Can not run script on cluster, 'no-cluster' flag is set.").into());
            }
            if may_write && command.is_read_only() {
                return Err(
                    CommandError::new("ERR Can not execute a script with write flag using *_ro command.").into()
                );
            }
            if may_write && !flags.contains(ScriptFlags::ALLOW_OOM) && !has_room {
                return Err(Unprepared { error: CommandError::OUT_OF_MEMORY, refused: true });
            }
        }
        if may_write
            && has_flags
            && let Some(error) = self.log_trouble()
        {
            return Err(Unprepared { error, refused: true });
        }
        let prepared = Prepared {
            found,
            keys,
            may_write: may_write && !command.is_read_only(),
            may_take_memory: has_room || flags.contains(ScriptFlags::ALLOW_OOM),
            may_cross_slots: flags.contains(ScriptFlags::ALLOW_CROSS_SLOT_KEYS),
        };
        Ok((self.engine()?, prepared))
    }

    /// Runs what was prepared; returns the error that was replied, if one was.
    fn run_script(
        &mut self,
        engine: &Engine,
        prepared: Prepared,
        args: Args<'_>,
        call: Call,
        caller: Caller,
        out: &mut Vec<u8>,
    ) -> Option<CommandError> {
        let started = self.clock.raw();
        let kind = match &prepared.found {
            Found::Script(script) => {
                script.note_use(started);
                ScriptKind::Script
            }
            Found::Function(..) => ScriptKind::Function,
        };
        self.scripts.running = Some(Running {
            kind,
            caller: caller.place,
            words: OwnedArgs::new(),
            started,
            served: started,
            serving: self.serving,
            database: call.database,
            protocol: call.protocol,
            has_written: false,
            is_killed: false,
            is_busy: false,
        });
        let opened = self.open_log_group();
        let may_cross_slots = prepared.may_cross_slots || self.lets_cross_slots(caller.place);
        let circumstances = Circumstances {
            call: Call { may_wait: false, ..call },
            caller,
            args,
            may_write: prepared.may_write,
            may_take_memory: prepared.may_take_memory,
            may_cross_slots,
        };
        let script_call = ScriptCall {
            keys: args.range(3..3 + prepared.keys),
            arguments: args.from(3 + prepared.keys),
            protocol: call.protocol,
        };
        self.shard.keys.in_script = true;
        let mut host = ScriptHost::new(self, circumstances);
        let Ran { error, is_error_counted, .. } = match &prepared.found {
            Found::Script(script) => engine.run(&script.digest, &script_call, &mut host, out),
            Found::Function(name, _) => engine.run_function(name.as_bytes(), &script_call, &mut host, out),
        };
        self.shard.keys.in_script = false;
        let is_abandoned = self.process.abandons_scripts.load(Ordering::Relaxed);
        if opened {
            self.close_log_group(is_abandoned);
        }
        self.end_script();
        if call.may_wait {
            self.serve_ready();
        }
        if let Some(error) = error.as_ref().filter(|_| !is_error_counted) {
            self.count_error(error);
        }
        error
    }

    /// Bytes that the interpreters of scripts and of functions hold.
    pub fn interpreter_bytes(&self) -> (usize, usize) {
        let engine = self.scripts.engine.as_ref();
        engine.map_or((0, 0), |engine| (engine.used_memory(), engine.used_functions_memory()))
    }

    /// Whether what a command would run says that it writes nothing.
    pub(super) fn says_it_only_reads(&self, command: ScriptCommand, args: Args<'_>) -> bool {
        let flags = match command {
            ScriptCommand::Eval { .. } => header(args.at(1)).ok().map(|header| header.flags),
            ScriptCommand::EvalDigest { .. } => Digest::parse(args.at(1))
                .and_then(|digest| self.process.scripts.get(&digest))
                .map(|script| script.flags),
            ScriptCommand::Call { .. } => self.process.libraries.current().find(args.at(1)).map(|(_, flags)| flags),
        };
        flags.is_some_and(|flags| flags.contains(ScriptFlags::NO_WRITES))
    }

    /// The script in progress, if there is one.
    #[inline]
    pub fn running_script(&self) -> Option<&Running> {
        self.scripts.running()
    }

    /// For how long it has run, in ms.
    pub fn script_duration_ms(&self) -> u64 {
        let elapsed = |running: &Running| self.clock.delta_as_nanos(running.started, self.clock.raw()) / 1_000_000;
        self.scripts.running().map_or(0, elapsed)
    }

    /// What scripts are bounded by.
    pub fn script_limits(&self) -> Limits {
        self.configuration.script_limits()
    }

    /// Has the interpreter keep to limits that have changed.
    pub(super) fn take_script_limits(&mut self) {
        let limits = self.script_limits();
        if let Some(engine) = &self.scripts.engine {
            engine.set_limits(limits);
        }
    }

    /// Gives the script in progress the reply to a command of the server.
    pub(super) fn reply_to_script(&mut self, write: impl FnOnce(&mut Core, &mut Reply<'_>)) {
        let protocol = self.scripts.running().map_or(Protocol::Resp2, |running| running.protocol);
        let mut encoded = Vec::new();
        write(self, &mut Reply::new(&mut encoded, protocol));
        self.gathered_for_script = encoded;
    }

    /// Writes what a script has to say to standard error, if the operator wants to hear it.
    fn log_for_script(&self, level: LogLevel, message: &[u8]) {
        let level = match level {
            LogLevel::Debug => Hears::Debug,
            LogLevel::Verbose => Hears::Verbose,
            LogLevel::Notice => Hears::Notice,
            LogLevel::Warning => Hears::Warning,
        };
        if level >= self.configuration.log_level {
            eprintln!("ruvio: a script says ({}): {}", level.name(), message.escape_ascii());
        }
    }

    /// Changes the libraries by a thread, and then replies to the client.
    pub fn change_libraries_aside(
        &mut self,
        client: ClientKey,
        change: impl FnOnce(&mut LibrarySet) -> Result<(), CommandError> + Send + 'static,
        reply: impl FnOnce(&mut Reply<'_>) + Send + 'static,
    ) -> Result<(), CommandError> {
        let Some(promise) = self.promise(client) else { return Ok(()) };
        let process = Arc::clone(&self.process);
        let (home, spare) = (self.number, promise.clone());
        let run = move || {
            let result = process.change_libraries(change);
            let settle: Task = Box::new(move |core: &mut Core| match result {
                Ok(()) => promise.keep(core, reply),
                Err(error) => promise.fail(core, &error),
            });
            process.cores[home].deliver(Message::Task(settle), &process.stopping);
        };
        if let Err(error) = std::thread::Builder::new().name("libraries".into()).spawn(run) {
            spare.fail(self, &CommandError::new(format!("ERR cannot start a thread: {error}")));
        }
        Ok(())
    }

    /// Whether the client at `place` may use keys in several slots. Only clients of the shared port have commands
    /// forwarded.
    fn lets_cross_slots(&self, place: Place) -> bool {
        if place.core == self.number {
            self.may_cross_slots(place.client)
        } else {
            self.configuration.settings.cross_slot
        }
    }

    /// Ends the script in progress, and lets those go on who waited for it.
    fn end_script(&mut self) {
        if let Some(running) = self.scripts.running.take() {
            if running.is_busy {
                self.process.busy.clear(self.number);
            }
            self.resume_held_back();
        }
    }

    /// Has a script in progress that has written nothing end; see [`Kill`].
    pub fn kill_script(&mut self, kind: ScriptKind) -> Kill {
        match &mut self.scripts.running {
            None => Kill::NotRunning,
            Some(running) if running.kind != kind => Kill::Other(running.kind),
            Some(running) if running.has_written => Kill::HasWritten,
            Some(running) => {
                running.is_killed = true;
                Kill::Killed
            }
        }
    }
}

/// What became of an attempt to kill a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// None runs.
    NotRunning,
    /// It will end.
    Killed,
    /// It has written, and goes on.
    HasWritten,
    /// What runs is of this kind.
    Other(ScriptKind),
}

/// Why nothing is to run.
struct Unprepared {
    error: CommandError,
    /// Whether the state of the server is the reason, which Redis looks at before it executes anything.
    refused: bool,
}

impl From<CommandError> for Unprepared {
    fn from(error: CommandError) -> Unprepared {
        Unprepared { error, refused: false }
    }
}

/// What is to run, and what it may do.
struct Prepared {
    found: Found,
    /// How many of the words behind the number are keys.
    keys: usize,
    may_write: bool,
    may_take_memory: bool,
    may_cross_slots: bool,
}
