//! A Lua state: compiles and runs.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_char, c_int};
use std::panic::resume_unwind;
use std::ptr::NonNull;

use mlua::{Lua, ffi};

use super::base::{BYTECODE, compile};
use super::digest::DigestHashing;
use super::functions::Registered;
use super::hook;
use super::setup::{self, References};
use super::shared::{self, Kind, Name, Run, Shared, State, bytes_at, push_bytes};
use super::to_reply::{write_error, write_reply};
use super::{Digest, Host, Limits, Ran, ScriptCall};
use crate::args::Args;
use crate::error::CommandError;
use crate::reply::Protocol;

/// How much of a reply's buffer is kept from one run to the next, in bytes.
const KEPT_BYTES: usize = 64 << 10;

/// Upvalues of [`enter`] behind the engine's part.
pub(super) const GLOBALS_UPVALUE: c_int = 2;
pub(super) const KEYS_UPVALUE: c_int = 3;
pub(super) const ARGV_UPVALUE: c_int = 4;

const BUSY: &str = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";

/// A function to run, and what messages call it.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub function: c_int,
    pub name: Name<'a>,
}

pub(super) struct Interpreter {
    /// Dropped before `shared` is freed.
    lua: Option<Lua>,
    shared: NonNull<Shared>,
    /// The main thread.
    state: State,
    /// The thread that compiles, so that it can while the main one runs.
    side: State,
    references: References,
    scripts: RefCell<HashMap<Digest, c_int, DigestHashing>>,
    is_running: Cell<bool>,
}

impl Interpreter {
    /// An interpreter for `EVAL`.
    pub fn for_scripts(limits: Limits) -> Result<Interpreter, CommandError> {
        Interpreter::new(Kind::Scripts, limits)
    }

    /// An interpreter for `FCALL`.
    pub fn for_functions(limits: Limits) -> Result<Interpreter, CommandError> {
        Interpreter::new(Kind::Functions, limits)
    }

    fn new(kind: Kind, limits: Limits) -> Result<Interpreter, CommandError> {
        let ready = setup::interpreter(kind, limits)
            .map_err(|error| CommandError::new(format!("ERR no interpreter for scripts: {error}")))?;
        let interpreter = Interpreter {
            lua: Some(ready.lua),
            shared: ready.shared,
            state: ready.state,
            side: ready.side,
            references: ready.references,
            scripts: RefCell::default(),
            is_running: Cell::new(false),
        };
        interpreter.set_limits(limits);
        Ok(interpreter)
    }

    pub fn set_limits(&self, limits: Limits) {
        // SAFETY: nothing is borrowed from `shared` outside of the functions that run right now.
        unsafe { (*self.shared.as_ptr()).limits = limits };
        if let Some(lua) = &self.lua {
            // It fails for a foreign allocator only, and this state was made with the one that counts.
            let _ = lua.set_memory_limit(limits.memory_bytes);
        }
    }

    pub fn used_memory(&self) -> usize {
        self.lua.as_ref().map_or(0, Lua::used_memory)
    }

    pub fn knows(&self, digest: &Digest) -> bool {
        self.scripts.borrow().contains_key(digest)
    }

    pub fn load(&self, digest: Digest, body: &[u8]) -> Result<(), CommandError> {
        if self.knows(&digest) {
            return Ok(());
        }
        let start = super::header(body)?.body_start;
        let function = self.compile(&body[start..]).map_err(|message| {
            CommandError::new(format!(
                "ERR Error compiling script (new function): {}",
                String::from_utf8_lossy(&message)
            ))
        })?;
        self.scripts.borrow_mut().insert(digest, function);
        Ok(())
    }

    pub fn forget(&self, digest: &Digest) {
        let function = self.scripts.borrow_mut().remove(digest);
        if let Some(function) = function {
            self.release(function);
        }
    }

    /// Gives a reference of the registry back.
    pub fn release(&self, function: c_int) {
        // SAFETY: the references it writes are there already, so no memory is taken and no error raised.
        unsafe { ffi::luaL_unref(self.side, ffi::LUA_REGISTRYINDEX, function) };
    }

    /// Compiles a text, on the thread that is there for that; the message on an error.
    fn compile(&self, text: &[u8]) -> Result<c_int, Vec<u8>> {
        let spaced;
        let text = match text.first() {
            // With a space in front it is no bytecode, and fails to compile as the text it should be.
            Some(&BYTECODE) => {
                spaced = [b" ", text].concat();
                &spaced[..]
            }
            _ => text,
        };
        let shared = self.shared.as_ptr();
        // SAFETY: the side thread has nothing on its stack and runs nothing else: what is compiled is not run. `source`
        // is read only during this call. An error leaves its message on the stack.
        unsafe {
            (*shared).source = text;
            ffi::lua_rawgeti_(self.side, ffi::LUA_REGISTRYINDEX, self.references.compile);
            let status = ffi::lua_pcall(self.side, 0, 0, 0);
            (*shared).source = &[];
            if status == ffi::LUA_OK {
                return Ok((*shared).compiled);
            }
            let message = bytes_at(self.side, -1).unwrap_or_default().to_vec();
            ffi::lua_settop(self.side, 0);
            Err(message)
        }
    }

    pub fn run_script(&self, digest: &Digest, call: &ScriptCall<'_>, host: &mut dyn Host, reply: &mut Vec<u8>) -> Ran {
        let function = self.scripts.borrow().get(digest).copied();
        match function {
            Some(function) => self.run(Target { function, name: Name::Script(*digest) }, call, host, reply),
            None => {
                let error = CommandError::new("NOSCRIPT No matching script. Please use EVAL.");
                Ran::refused(error, call.protocol, reply)
            }
        }
    }

    /// Calls a function and appends its reply.
    pub fn run(&self, target: Target<'_>, call: &ScriptCall<'_>, host: &mut dyn Host, reply: &mut Vec<u8>) -> Ran {
        if self.is_running.replace(true) {
            return Ran::refused(CommandError::new(BUSY), call.protocol, reply);
        }
        let shared = self.shared.as_ptr();
        // SAFETY: the main thread is idle, with an empty stack: `is_running` sees to it. What is borrowed for the run
        // lives until this function returns, and `run` is taken back before.
        let (status, killed) = unsafe {
            self.begin(target, call, host);
            ffi::lua_rawgeti_(self.state, ffi::LUA_REGISTRYINDEX, self.references.note);
            ffi::lua_rawgeti_(self.state, ffi::LUA_REGISTRYINDEX, self.references.enter);
            let status = ffi::lua_pcall(self.state, 0, 0, -2);
            if status != ffi::LUA_OK {
                self.finish_failure(status, target.name);
            }
            ffi::lua_settop(self.state, 0);
            (status, self.end())
        };
        // SAFETY: the run has ended, so nobody else reaches the buffers.
        let ran = unsafe {
            if status != ffi::LUA_OK {
                (*shared).out.clear();
                write_error(&mut (*shared).out, &(*shared).failure);
            }
            let out = &mut (*shared).out;
            reply.extend_from_slice(out);
            let error = match out.split_first() {
                Some((b'-', line)) => {
                    let text = String::from_utf8_lossy(line.strip_suffix(b"\r\n").unwrap_or(line));
                    Some(CommandError::new(text.into_owned()))
                }
                _ => None,
            };
            if out.capacity() > KEPT_BYTES {
                *out = Vec::new();
            }
            Ran { is_error_counted: error.is_some() && (*shared).is_error_counted, error, killed }
        };
        self.is_running.set(false);
        ran
    }

    /// Runs the code of a library; the functions it registered and whether it succeeded.
    pub fn load_library(&self, code: &[u8], host: &mut dyn Host) -> (Vec<Registered>, Result<(), CommandError>) {
        if self.is_running.replace(true) {
            return (Vec::new(), Err(CommandError::new(BUSY)));
        }
        let spaced;
        let code = match code.first() {
            Some(&BYTECODE) => {
                spaced = [b" ", code].concat();
                &spaced[..]
            }
            _ => code,
        };
        let none = ScriptCall { keys: Args::new(&[], &[]), arguments: Args::new(&[], &[]), protocol: Protocol::Resp2 };
        let shared = self.shared.as_ptr();
        // SAFETY: as in `run`; `source` is read only during the call.
        let (registered, message) = unsafe {
            self.begin(Target { function: ffi::LUA_NOREF, name: Name::Function(b"") }, &none, host);
            (*shared).source = code;
            (*shared).registered = Some(Vec::new());
            self.show(self.references.loading);
            ffi::lua_rawgeti_(self.state, ffi::LUA_REGISTRYINDEX, self.references.load_library);
            if ffi::lua_pcall(self.state, 0, 0, 0) != ffi::LUA_OK {
                let failure = &mut (*shared).failure;
                failure.clear();
                failure.extend_from_slice(b"ERR Error registering functions: ");
                failure.extend_from_slice(bytes_at(self.state, -1).unwrap_or(b"execution failure"));
            }
            ffi::lua_settop(self.state, 0);
            self.show(self.references.globals);
            (*shared).source = &[];
            self.end();
            ((*shared).registered.take().unwrap_or_default(), std::mem::take(&mut (*shared).failure))
        };
        self.is_running.set(false);
        let loaded = if message.is_empty() {
            Ok(())
        } else {
            Err(CommandError::new(String::from_utf8_lossy(&message).into_owned()))
        };
        (registered, loaded)
    }

    /// Changes what the globals lead to.
    ///
    /// # Safety
    ///
    /// The main thread is idle, with an empty stack.
    unsafe fn show(&self, table: c_int) {
        // SAFETY: the field is there already and its name belongs to Lua for good, so no memory is taken.
        unsafe {
            ffi::lua_rawgeti_(self.state, ffi::LUA_REGISTRYINDEX, self.references.globals_metatable);
            ffi::lua_pushstring_(self.state, c"__index".as_ptr());
            ffi::lua_rawgeti_(self.state, ffi::LUA_REGISTRYINDEX, table);
            ffi::lua_rawset(self.state, -3);
            ffi::lua_settop(self.state, 0);
        }
    }

    /// Prepares the engine's part for a run.
    ///
    /// # Safety
    ///
    /// No run goes on. What is given outlives the run that begins, which [`Interpreter::end`] ends.
    unsafe fn begin(&self, target: Target<'_>, call: &ScriptCall<'_>, host: &mut dyn Host) {
        let shared = self.shared.as_ptr();
        // SAFETY: only lifetimes are changed, as the caller vouches for.
        unsafe {
            let host: *mut (dyn Host + '_) = host;
            (*shared).run = Some(Run {
                host: NonNull::new_unchecked(std::mem::transmute::<*mut (dyn Host + '_), *mut (dyn Host + 'static)>(
                    host,
                )),
                keys: std::mem::transmute::<Args<'_>, Args<'static>>(call.keys),
                arguments: std::mem::transmute::<Args<'_>, Args<'static>>(call.arguments),
                name: std::mem::transmute::<Name<'_>, Name<'static>>(target.name),
                protocol: call.protocol,
                function: target.function,
            });
            (*shared).protocol = Protocol::Resp2;
            (*shared).killed = false;
            hook::begin(self.state, shared);
            (*shared).is_error_counted = false;
            (*shared).out.clear();
            (*shared).failure.clear();
        }
    }

    /// Ends a run; whether it was killed. A panic of the host goes on from here.
    ///
    /// # Safety
    ///
    /// The main thread is idle, with an empty stack.
    unsafe fn end(&self) -> bool {
        let shared = self.shared.as_ptr();
        // SAFETY: by the caller; the collector runs in a protected call.
        unsafe {
            (*shared).run = None;
            if (*shared).is_collector_changed {
                shared::restore_collector(self.state, shared);
            }
            shared::adjust_pause(self.state, shared);
            // What a run leaves behind is garbage for the most part, and must not be what the next one fails for.
            if (*shared).killed || shared::used_memory(self.state) > (*shared).limits.memory_bytes / 2 {
                ffi::lua_rawgeti_(self.state, ffi::LUA_REGISTRYINDEX, self.references.collect);
                // The collector may fail for want of memory, and goes on next time.
                ffi::lua_pcall(self.state, 0, 0, 0);
                ffi::lua_settop(self.state, 0);
            }
            if let Some(panic) = (*shared).panic.take() {
                self.is_running.set(false);
                resume_unwind(panic);
            }
            (*shared).killed
        }
    }

    /// Makes a message of an error that never got to the message handler.
    ///
    /// # Safety
    ///
    /// The error is on top of the main thread's stack.
    unsafe fn finish_failure(&self, status: c_int, name: Name<'_>) {
        let shared = self.shared.as_ptr();
        // SAFETY: by the caller; what Lua reports so is a string.
        unsafe {
            if status == ffi::LUA_ERRRUN && !(*shared).failure.is_empty() {
                return;
            }
            let text = match ffi::lua_type(self.state, -1) {
                ffi::LUA_TSTRING => bytes_at(self.state, -1).unwrap_or_default(),
                _ => b"execution failure",
            };
            let failure = &mut (*shared).failure;
            failure.clear();
            failure.extend_from_slice(b"ERR Error running script ");
            name.write(failure);
            failure.extend_from_slice(b", ");
            failure.extend_from_slice(&text[..text.len().min(100)]);
        }
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        // Closing the state may still call functions that read `shared`.
        self.lua = None;
        // SAFETY: it came from a box, and nothing that knows it is left.
        drop(unsafe { Box::from_raw(self.shared.as_ptr()) });
    }
}

/// The function each run calls: gives the script its arguments, runs it and writes its reply.
pub(super) unsafe extern "C-unwind" fn enter(state: State) -> c_int {
    // SAFETY: called by `run` only, protected. Nothing here has a destructor.
    unsafe {
        let shared = shared::of(state);
        let Some(run) = (*shared).run else { return 0 };
        hook::watch(state, shared);
        match (*shared).kind {
            Kind::Scripts => {
                ffi::lua_pushvalue(state, ffi::lua_upvalueindex(KEYS_UPVALUE));
                push_words(state, run.keys);
                ffi::lua_rawset(state, ffi::lua_upvalueindex(GLOBALS_UPVALUE));
                ffi::lua_pushvalue(state, ffi::lua_upvalueindex(ARGV_UPVALUE));
                push_words(state, run.arguments);
                ffi::lua_rawset(state, ffi::lua_upvalueindex(GLOBALS_UPVALUE));
                ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, run.function);
                ffi::lua_call(state, 0, 1);
            }
            Kind::Functions => {
                ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, run.function);
                push_words(state, run.keys);
                push_words(state, run.arguments);
                ffi::lua_call(state, 2, 1);
            }
        }
        write_reply(state, shared, run.protocol);
    }
    0
}

/// Pushes a table of words.
///
/// # Safety
///
/// `state` has three free slots and is protected.
unsafe fn push_words(state: State, words: Args<'_>) {
    // SAFETY: by the caller.
    unsafe {
        ffi::lua_createtable(state, c_int::try_from(words.len()).unwrap_or(0), 0);
        for (index, word) in (1..).zip(words.iter()) {
            push_bytes(state, word);
            ffi::lua_rawseti_(state, -2, index);
        }
    }
}

/// Compiles the text in `shared.source`; its second upvalue is the name of the text.
pub(super) unsafe extern "C-unwind" fn compile_script(state: State) -> c_int {
    // SAFETY: called by `Interpreter::compile` only, while `source` lives.
    unsafe {
        let shared = shared::of(state);
        let source: &[u8] = &*(*shared).source;
        let name = ffi::lua_tolstring(state, ffi::lua_upvalueindex(2), std::ptr::null_mut());
        let start: *const c_char = source.as_ptr().cast();
        if compile(state, start, source.len(), name) != ffi::LUA_OK {
            ffi::lua_error(state);
        }
        (*shared).compiled = ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX);
    }
    0
}

/// A whole collection.
pub(super) unsafe extern "C-unwind" fn collect(state: State) -> c_int {
    // SAFETY: a protected call.
    unsafe { ffi::lua_gc(state, ffi::LUA_GCCOLLECT, 0) };
    0
}
