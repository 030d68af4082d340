//! The script engine of one core: Lua 5.1 as Redis's scripts and functions know it.
//!
//! It knows no socket and no keyspace. What a script does is done by a [`Host`], which executes its commands, and it is
//! the host's [`pulse`](Host::pulse) that lets a core go on serving while a script runs. Scripts and functions have an
//! interpreter each, as in Redis.
//!
//! - [`header`](mod@header) and [`digest`]: what is known of a script before it runs;
//! - `interpreter`: a Lua state, how it is set up, compiles and runs; `shared`: what its C functions work on;
//! - `call`, `to_lua`, `to_reply`: commands and replies, there and back; `failure`: errors;
//! - `api`, `base`, `tables`, `text`, `random`, `hook`: what replaces or guards functions of the standard library;
//! - `functions`: libraries of functions; `libraries`: those that every script finds.
//!
//! What runs for every call uses Lua's C interface directly. A Lua error leaves such a function by `longjmp`, without
//! running destructors. So those functions hold nothing that has one: what they collect lies in buffers of `shared`,
//! and raising the error is the last thing they do.

use std::cell::RefCell;
use std::rc::Rc;

use crate::args::Args;
use crate::error::CommandError;
use crate::reply::Protocol;

mod api;
mod base;
mod call;
pub mod digest;
mod failure;
mod functions;
pub mod header;
mod hook;
mod interpreter;
pub(crate) mod libraries;
mod random;
mod setup;
mod shared;
mod tables;
mod text;
mod to_lua;
mod to_reply;

pub use digest::Digest;
pub use functions::FunctionInfo;
pub use header::{Header, ScriptFlags, header, library_header};

use functions::Functions;
use interpreter::Interpreter;

/// Instructions of the interpreter between two pulses of a host: 50 to 100 µs of Lua.
pub const HOOK_INSTRUCTIONS: i32 = 10_000;

/// What a script works with: the server.
pub trait Host {
    /// Executes a command for a script: `args` are all its words. Exactly one reply, encoded in `protocol`, is appended
    /// to `reply`; a refusal is an error reply like any other.
    fn call(&mut self, args: Args<'_>, protocol: Protocol, reply: &mut Vec<u8>);

    /// Writes a message of `redis.log` to the log.
    fn log(&mut self, level: LogLevel, message: &[u8]);

    /// Whether the script's user may run a command; an error when there is no such command.
    fn may_run(&mut self, args: Args<'_>) -> Result<bool, CommandError>;

    /// `redis.set_repl`: where effects go from here on. A host whose log always holds all effects has nothing to do.
    fn set_replication(&mut self, _replication: Replication) {}

    /// Called every [`HOOK_INSTRUCTIONS`] instructions, and more often where single ones take long; with nothing of the
    /// engine borrowed.
    fn pulse(&mut self) -> Pulse;
}

/// Whether a script goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// It does.
    GoOn,
    /// It ends here, in a way that its own `pcall` cannot stop.
    Kill,
}

/// The levels of `redis.log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// `redis.LOG_DEBUG`
    Debug,
    /// `redis.LOG_VERBOSE`
    Verbose,
    /// `redis.LOG_NOTICE`
    Notice,
    /// `redis.LOG_WARNING`
    Warning,
}

/// Where the effects of a script go, as `redis.set_repl` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replication {
    /// To the log (`redis.REPL_AOF`).
    pub log: bool,
    /// To replicas (`redis.REPL_REPLICA`).
    pub replicas: bool,
}

/// What scripts may use up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most memory an interpreter may hold, in bytes; garbage that was not collected yet counts too.
    pub memory_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory_bytes: 1 << 30 }
    }
}

/// What a script or function is called with.
#[derive(Clone, Copy)]
pub struct ScriptCall<'a> {
    /// `KEYS`
    pub keys: Args<'a>,
    /// `ARGV`
    pub arguments: Args<'a>,
    /// What the reply is encoded in.
    pub protocol: Protocol,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The error that was replied.
    pub error: Option<CommandError>,
    /// Whether that error came from a command, which has been counted where it was executed.
    pub is_error_counted: bool,
    /// Whether [`Pulse::Kill`] ended the run.
    pub killed: bool,
}

impl Ran {
    /// Replies an error and nothing else.
    fn refused(error: CommandError, protocol: Protocol, reply: &mut Vec<u8>) -> Ran {
        crate::reply::Reply::new(reply, protocol).error(&error);
        Ran { error: Some(error), ..Ran::default() }
    }
}

/// The engine. All methods take it shared and may be called from within a host: what is loaded or forgotten while a
/// script runs is so for the next run.
pub struct Engine {
    limits: std::cell::Cell<Limits>,
    scripts: RefCell<Rc<Interpreter>>,
    functions: RefCell<Rc<Functions>>,
}

impl Engine {
    /// An engine that knows no script yet.
    pub fn new(limits: Limits) -> Result<Engine, CommandError> {
        Ok(Engine {
            limits: std::cell::Cell::new(limits),
            scripts: RefCell::new(Rc::new(Interpreter::for_scripts(limits)?)),
            functions: RefCell::new(Rc::new(Functions::new(limits)?)),
        })
    }

    /// Changes the limits, from the next allocation on.
    pub fn set_limits(&self, limits: Limits) {
        self.limits.set(limits);
        self.scripts().set_limits(limits);
        self.functions().set_limits(limits);
    }

    /// Bytes the interpreter of scripts holds (`used_memory_vm_eval`).
    pub fn used_memory(&self) -> usize {
        self.scripts().used_memory()
    }

    /// Bytes the interpreter of functions holds (`used_memory_vm_functions`).
    pub fn used_functions_memory(&self) -> usize {
        self.functions().used_memory()
    }

    /// Compiles a script, with or without a header. One that is known already costs nothing.
    pub fn load(&self, digest: Digest, body: &[u8]) -> Result<(), CommandError> {
        self.scripts().load(digest, body)
    }

    /// Whether a script is loaded.
    pub fn knows(&self, digest: &Digest) -> bool {
        self.scripts().knows(digest)
    }

    /// Forgets a script.
    pub fn forget(&self, digest: &Digest) {
        self.scripts().forget(digest);
    }

    /// Forgets all scripts, and everything else their interpreter holds. Functions stay.
    pub fn flush(&self) -> Result<(), CommandError> {
        let fresh = Rc::new(Interpreter::for_scripts(self.limits.get())?);
        // The old one is dropped when the script that may still run in it has ended.
        self.scripts.replace(fresh);
        Ok(())
    }

    /// Runs a loaded script. Appends exactly one reply.
    pub fn run(&self, digest: &Digest, call: &ScriptCall<'_>, host: &mut dyn Host, reply: &mut Vec<u8>) -> Ran {
        self.scripts().run_script(digest, call, host, reply)
    }

    /// Runs the code of a library once and keeps the functions it registers, in the place of a library of that name.
    /// Nothing changes on an error. A host that answers a pulse with [`Pulse::Kill`] ends it as Redis's time-out does;
    /// only its log and its pulse are used.
    pub fn load_library(
        &self,
        name: &str,
        code: &[u8],
        host: &mut dyn Host,
    ) -> Result<Vec<FunctionInfo>, CommandError> {
        self.functions().load_library(name, code, host)
    }

    /// Deletes a library with its functions; whether there was one.
    pub fn delete_library(&self, name: &str) -> bool {
        self.functions().delete_library(name)
    }

    /// Deletes all libraries, and everything else their interpreter holds.
    pub fn flush_libraries(&self) -> Result<(), CommandError> {
        let fresh = Rc::new(Functions::new(self.limits.get())?);
        self.functions.replace(fresh);
        Ok(())
    }

    /// Calls a function. Appends exactly one reply.
    pub fn run_function(&self, name: &[u8], call: &ScriptCall<'_>, host: &mut dyn Host, reply: &mut Vec<u8>) -> Ran {
        self.functions().run_function(name, call, host, reply)
    }

    // A count is held, not a borrow: a host may call the engine while a script runs.
    fn scripts(&self) -> Rc<Interpreter> {
        Rc::clone(&self.scripts.borrow())
    }

    fn functions(&self) -> Rc<Functions> {
        Rc::clone(&self.functions.borrow())
    }
}

#[cfg(test)]
mod tests;
