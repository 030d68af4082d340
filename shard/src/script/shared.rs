//! What the C functions of an interpreter work on: the run that goes on, and buffers that outlive every jump out of
//! such a function.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use mlua::ffi;

use super::functions::Registered;
use super::random::Random;
use super::to_reply::Frame;
use super::{Digest, Host, Limits};
use crate::args::{ArgRange, Args};
use crate::reply::Protocol;

/// A Lua thread: the main one of an interpreter or a coroutine.
pub(super) type State = *mut ffi::lua_State;

/// Whether an interpreter serves `EVAL` or `FCALL`: they differ in what is global, and in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scripts,
    Functions,
}

/// What messages call a script or function.
#[derive(Clone, Copy)]
pub(super) enum Name<'a> {
    Script(Digest),
    Function(&'a [u8]),
}

impl Name<'_> {
    /// Appends it as it is written.
    pub fn write(self, out: &mut Vec<u8>) {
        match self {
            Name::Script(digest) => out.extend_from_slice(&digest.hex()),
            Name::Function(name) => out.extend_from_slice(name),
        }
    }
}

/// The run that goes on. Lifetimes are those of [`super::ScriptCall`] and of the host, and are erased: it is set right
/// before Lua is called and taken back right behind.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub host: NonNull<dyn Host>,
    pub keys: Args<'static>,
    pub arguments: Args<'static>,
    pub name: Name<'static>,
    /// What the reply is encoded in.
    pub protocol: Protocol,
    /// The function, as a reference in the registry.
    pub function: c_int,
}

/// C functions of the standard library that are called from within the ones that replace them. They find the same
/// arguments and, where they use any, the same first upvalue.
#[derive(Clone, Copy)]
pub(super) struct Stock {
    pub resume: ffi::lua_CFunction,
    pub create: ffi::lua_CFunction,
    /// What `coroutine.wrap` returns.
    pub wrapped: ffi::lua_CFunction,
    pub getmetatable: ffi::lua_CFunction,
    pub setmetatable: ffi::lua_CFunction,
    pub collectgarbage: ffi::lua_CFunction,
    pub tonumber: ffi::lua_CFunction,
    pub insert: ffi::lua_CFunction,
    pub remove: ffi::lua_CFunction,
    pub sort: ffi::lua_CFunction,
    pub concat: ffi::lua_CFunction,
    pub find: ffi::lua_CFunction,
    pub matching: ffi::lua_CFunction,
    pub gmatch: ffi::lua_CFunction,
    pub gsub: ffi::lua_CFunction,
    pub rep: ffi::lua_CFunction,
}

/// The engine's part of an interpreter. It is reached through raw pointers only: from a C function's first upvalue, or
/// from the registry in a hook.
pub(super) struct Shared {
    pub kind: Kind,
    pub limits: Limits,
    pub stock: Stock,
    pub random: Random,

    /// The run that goes on, if any.
    pub run: Option<Run>,
    /// What the replies of commands are encoded in, as the script has chosen.
    pub protocol: Protocol,
    /// The run is being ended: nothing may catch that.
    pub killed: bool,
    /// What a host panicked with; it goes on when Lua has been left.
    pub panic: Option<Box<dyn Any + Send>>,
    /// Coroutines resumed since the last pulse that they caused.
    pub resumes: u32,
    /// Bytes and elements that C functions have gone through since the last pulse that they caused.
    pub work: usize,
    /// Instructions between two pulses.
    pub instructions: c_int,
    /// The collector has gone once around.
    pub is_watch_over: bool,
    /// The metatable of what tells so, as a reference in the registry.
    pub watch: c_int,
    /// Memory in use above which garbage is collected at the next pulse.
    pub collect_above: usize,
    /// A script has changed how the collector works.
    pub is_collector_changed: bool,
    /// The collector's pause is that of a small heap.
    pub is_pause_long: bool,

    /// Words of the command that is being executed.
    pub words: Vec<u8>,
    pub ranges: Vec<ArgRange>,
    /// Its reply.
    pub reply: Vec<u8>,
    /// The script's own reply.
    pub out: Vec<u8>,
    /// Aggregates of it that are open.
    pub frames: Vec<Frame>,
    /// The message of the error that ended the run.
    pub failure: Vec<u8>,
    /// Whether that error, or the one replied, has been counted by the command that caused it.
    pub is_error_counted: bool,

    /// Text to compile.
    pub source: *const [u8],
    /// What compiling it gave, as a reference in the registry.
    pub compiled: c_int,
    /// Functions of the library that is being loaded; none outside of loading.
    pub registered: Option<Vec<Registered>>,

    /// Of read-only tables, as a reference in the registry: the table itself by the one that scripts see.
    pub protected: c_int,
}

impl Shared {
    pub fn new(kind: Kind, limits: Limits, stock: Stock, protected: c_int) -> Shared {
        Shared {
            kind,
            limits,
            stock,
            random: Random::default(),
            run: None,
            protocol: Protocol::Resp2,
            killed: false,
            panic: None,
            resumes: 0,
            work: 0,
            instructions: 0,
            is_watch_over: true,
            watch: ffi::LUA_NOREF,
            collect_above: 0,
            is_collector_changed: false,
            is_pause_long: false,
            words: Vec::new(),
            ranges: Vec::new(),
            reply: Vec::new(),
            out: Vec::new(),
            frames: Vec::new(),
            failure: Vec::new(),
            is_error_counted: false,
            source: &[],
            compiled: ffi::LUA_NOREF,
            registered: None,
            protected,
        }
    }
}

/// Where the registry holds the pointer to [`Shared`]: the address is the key.
static REGISTRY_KEY: u8 = 0;

/// The engine's part, in a C function made by [`super::setup`].
///
/// # Safety
///
/// `state` runs a closure whose first upvalue is the pointer.
#[inline(always)]
pub(super) unsafe fn of(state: State) -> *mut Shared {
    // SAFETY: reading an upvalue of the running function; set-up put the pointer there.
    unsafe { ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast() }
}

/// The engine's part, anywhere.
///
/// # Safety
///
/// `state` belongs to an interpreter that was set up, with a free slot on its stack.
pub(super) unsafe fn of_interpreter(state: State) -> *mut Shared {
    // SAFETY: one slot is taken and given back.
    unsafe {
        ffi::lua_pushlightuserdata(state, registry_key());
        ffi::lua_rawget(state, ffi::LUA_REGISTRYINDEX);
        let shared = ffi::lua_touserdata(state, -1);
        ffi::lua_settop(state, -2);
        shared.cast()
    }
}

/// The key of [`of_interpreter`].
pub(super) fn registry_key() -> *mut c_void {
    std::ptr::from_ref(&REGISTRY_KEY).cast_mut().cast()
}

/// Heaps smaller than this, in bytes, may grow to many times their size before they are collected. Most are so small
/// that collecting them is mostly marking what the interpreter itself consists of.
const SMALL_HEAP: usize = 1 << 20;

/// How far a heap grows, in percent of what was in use, before the next collection begins.
const PAUSE_SMALL: c_int = 1000;
const PAUSE: c_int = 200;
/// How much of a collection is done at a time, in percent of a KiB. It is done when memory is taken, however much that
/// is; in small steps the collector would stay behind a script that takes little often and much at a time. Nobody waits
/// for the end of a step, for a script is not interrupted.
const STEP: c_int = 4000;

/// Sets the collector's pause to what suits the heap.
///
/// # Safety
///
/// As [`used_memory`]; `shared` belongs to that interpreter and is not borrowed.
#[inline]
pub(super) unsafe fn adjust_pause(state: State, shared: *mut Shared) {
    // SAFETY: only numbers are set.
    unsafe {
        let is_small = used_memory(state) < SMALL_HEAP;
        if is_small != (*shared).is_pause_long {
            (*shared).is_pause_long = is_small;
            ffi::lua_gc(state, ffi::LUA_GCSETPAUSE, if is_small { PAUSE_SMALL } else { PAUSE });
        }
    }
}

/// Sets how the collector works: at first, and after a script changed it.
///
/// # Safety
///
/// As [`adjust_pause`].
pub(super) unsafe fn restore_collector(state: State, shared: *mut Shared) {
    // SAFETY: by the caller.
    unsafe {
        (*shared).is_collector_changed = false;
        (*shared).is_pause_long = false;
        ffi::lua_gc(state, ffi::LUA_GCRESTART, 0);
        ffi::lua_gc(state, ffi::LUA_GCSETPAUSE, PAUSE);
        ffi::lua_gc(state, ffi::LUA_GCSETSTEPMUL, STEP);
    }
}

/// Bytes that the interpreter counts as its own.
///
/// # Safety
///
/// `state` is a live state.
pub(super) unsafe fn used_memory(state: State) -> usize {
    // SAFETY: both calls only read counters.
    let (kibibytes, bytes) =
        unsafe { (ffi::lua_gc(state, ffi::LUA_GCCOUNT, 0), ffi::lua_gc(state, ffi::LUA_GCCOUNTB, 0)) };
    ((kibibytes.max(0) as usize) << 10) + bytes.max(0) as usize
}

/// Pushes a string.
///
/// # Safety
///
/// `state` has a free slot and is protected: memory may run out.
#[inline(always)]
pub(super) unsafe fn push_bytes(state: State, bytes: &[u8]) {
    // SAFETY: Lua copies the bytes.
    unsafe { ffi::lua_pushlstring_(state, bytes.as_ptr().cast(), bytes.len()) }
}

/// The bytes of the string at `index`; of a number too, which becomes a string in its slot. None for other types.
///
/// # Safety
///
/// The bytes live as long as that string: as long as it stays on the stack. A key that `lua_next` is to go on from must
/// not be given.
#[inline(always)]
pub(super) unsafe fn bytes_at<'a>(state: State, index: c_int) -> Option<&'a [u8]> {
    let mut len = 0;
    // SAFETY: Lua gives `len` bytes of a string that does not move.
    unsafe {
        let start = ffi::lua_tolstring(state, index, &mut len);
        (!start.is_null()).then(|| std::slice::from_raw_parts(start.cast(), len))
    }
}
