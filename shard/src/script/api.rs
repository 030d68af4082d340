//! The functions of the `redis` table that are not commands.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mlua::ffi;

use super::failure::{push_coded, push_error, raise};
use super::hook::raise_killed;
use super::shared::{self, Shared, State, bytes_at, push_bytes};
use super::{Digest, Host, LogLevel, Replication};
use crate::reply::Protocol;

/// The version scripts see, which is the one `HELLO` reports.
pub(super) const VERSION: &str = "7.4.0";
/// The same as a number: a byte for each part.
pub(super) const VERSION_NUMBER: u32 = 0x0007_0400;

/// Levels of [`log`] by their numbers.
pub(super) const LOG_LEVELS: [(&str, LogLevel); 4] = [
    ("LOG_DEBUG", LogLevel::Debug),
    ("LOG_VERBOSE", LogLevel::Verbose),
    ("LOG_NOTICE", LogLevel::Notice),
    ("LOG_WARNING", LogLevel::Warning),
];

const REPL_LOG: i32 = 1;
const REPL_REPLICAS: i32 = 2;

/// What [`set_repl`] is called with.
pub(super) const REPLICATION: [(&str, i32); 5] = [
    ("REPL_NONE", 0),
    ("REPL_AOF", REPL_LOG),
    ("REPL_SLAVE", REPL_REPLICAS),
    ("REPL_REPLICA", REPL_REPLICAS),
    ("REPL_ALL", REPL_LOG | REPL_REPLICAS),
];

/// Lets the host of the run do something. A panic of it ends the script, and goes on behind it.
///
/// # Safety
///
/// `state` runs a C function of the interpreter; the caller holds nothing with a destructor. `shared` is borrowed only
/// as far as `action` does.
unsafe fn with_host(state: State, shared: *mut Shared, name: &[u8], action: impl FnOnce(&mut dyn Host)) {
    // SAFETY: the host lives as long as the run.
    unsafe {
        let Some(run) = (*shared).run else {
            push_bytes(state, b"ERR redis.");
            push_bytes(state, name);
            push_bytes(state, b" can only be called inside a script invocation");
            ffi::lua_concat(state, 3);
            let message = bytes_at(state, -1).unwrap_or_default();
            raise(state, message);
        };
        let mut host = run.host;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| action(host.as_mut()))) {
            (*shared).panic = Some(panic);
            (*shared).killed = true;
            raise_killed(state);
        }
    }
}

/// `redis.log(level, message, …)`
pub(super) unsafe extern "C-unwind" fn log(state: State) -> c_int {
    // SAFETY: called by Lua only, with the upvalue of set-up; what is collected lies in `shared`. This holds for all
    // functions of this module.
    unsafe {
        let shared = shared::of(state);
        let count = ffi::lua_gettop(state);
        if count < 2 {
            raise(state, b"ERR redis.log() requires two arguments or more.");
        }
        if ffi::lua_isnumber(state, 1) == 0 {
            raise(state, b"ERR First argument must be a number (log level).");
        }
        let number = ffi::lua_tonumber(state, 1) as i32;
        let Some((_, level)) = usize::try_from(number).ok().and_then(|number| LOG_LEVELS.get(number)) else {
            raise(state, b"ERR Invalid debug level.");
        };
        (*shared).words.clear();
        for index in 2..=count {
            if let Some(part) = bytes_at(state, index) {
                let words = &mut (*shared).words;
                if index > 2 {
                    words.push(b' ');
                }
                words.extend_from_slice(part);
            }
        }
        with_host(state, shared, b"log", |host| host.log(*level, &(*shared).words));
    }
    0
}

/// `redis.setresp(version)`
pub(super) unsafe extern "C-unwind" fn setresp(state: State) -> c_int {
    // SAFETY: as `log`.
    unsafe {
        if ffi::lua_gettop(state) != 1 {
            raise(state, b"ERR redis.setresp() requires one argument.");
        }
        let protocol = match ffi::lua_tonumber(state, 1) as i32 {
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => raise(state, b"ERR RESP version must be 2 or 3."),
        };
        (*shared::of(state)).protocol = protocol;
    }
    0
}

/// `redis.set_repl(where)`
pub(super) unsafe extern "C-unwind" fn set_repl(state: State) -> c_int {
    // SAFETY: as `log`.
    unsafe {
        if ffi::lua_gettop(state) != 1 {
            raise(state, b"ERR redis.set_repl() requires two arguments.");
        }
        let bits = ffi::lua_tonumber(state, 1) as i32;
        if bits & !(REPL_LOG | REPL_REPLICAS) != 0 {
            let message = b"ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
            raise(state, message);
        }
        let replication = Replication { log: bits & REPL_LOG != 0, replicas: bits & REPL_REPLICAS != 0 };
        with_host(state, shared::of(state), b"set_repl", |host| host.set_replication(replication));
    }
    0
}

/// `redis.sha1hex(text)`
pub(super) unsafe extern "C-unwind" fn sha1hex(state: State) -> c_int {
    // SAFETY: as `log`.
    unsafe {
        if ffi::lua_gettop(state) != 1 {
            raise(state, b"ERR wrong number of arguments");
        }
        let text = bytes_at(state, 1).unwrap_or_default();
        push_bytes(state, &Digest::of(text).hex());
    }
    1
}

/// `redis.error_reply(message)`
pub(super) unsafe extern "C-unwind" fn error_reply(state: State) -> c_int {
    // SAFETY: as `log`; the message stays on the stack while it is copied.
    unsafe {
        if !is_one_string(state) {
            return 1;
        }
        let message = bytes_at(state, 1).unwrap_or_default();
        push_coded(state, message.strip_prefix(b"-").unwrap_or(message));
    }
    1
}

/// `redis.status_reply(message)`
pub(super) unsafe extern "C-unwind" fn status_reply(state: State) -> c_int {
    // SAFETY: as `log`.
    unsafe {
        if !is_one_string(state) {
            return 1;
        }
        ffi::lua_createtable(state, 0, 1);
        push_bytes(state, b"ok");
        ffi::lua_pushvalue(state, 1);
        ffi::lua_rawset(state, -3);
    }
    1
}

/// Whether the only argument is a string; otherwise an error table is pushed.
///
/// # Safety
///
/// As [`log`].
unsafe fn is_one_string(state: State) -> bool {
    // SAFETY: by the caller.
    unsafe {
        let is_one = ffi::lua_gettop(state) == 1 && ffi::lua_type(state, 1) == ffi::LUA_TSTRING;
        if !is_one {
            push_error(state, b"ERR wrong number or type of arguments");
        }
        is_one
    }
}

/// `redis.replicate_commands()`: that is how scripts are always replicated.
pub(super) unsafe extern "C-unwind" fn replicate_commands(state: State) -> c_int {
    // SAFETY: as `log`.
    unsafe { ffi::lua_pushboolean(state, 1) };
    1
}

/// `redis.breakpoint()`: without a debugger it stops nothing.
pub(super) unsafe extern "C-unwind" fn breakpoint(state: State) -> c_int {
    // SAFETY: as `log`.
    unsafe { ffi::lua_pushboolean(state, 0) };
    1
}

/// `redis.debug(…)`: without a debugger nobody listens.
pub(super) unsafe extern "C-unwind" fn debug(_state: State) -> c_int {
    0
}
