//! `redis.call` and `redis.pcall`.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mlua::ffi;

use super::failure::{push_error, push_error_reply};
use super::hook::raise_killed;
use super::shared::{self, Shared, State};
use super::to_lua;
use crate::args::{ArgRange, Args};
use crate::number;

/// How much of the buffers for words and replies is kept from one command to the next, in bytes.
const KEPT_BYTES: usize = 64 << 10;

/// `redis.call`: an error reply is raised.
pub(super) unsafe extern "C-unwind" fn call(state: State) -> c_int {
    // SAFETY: called by Lua only, with the upvalue of set-up.
    unsafe { execute(state, true) }
}

/// `redis.pcall`: an error reply is returned.
pub(super) unsafe extern "C-unwind" fn pcall(state: State) -> c_int {
    // SAFETY: as `call`.
    unsafe { execute(state, false) }
}

/// # Safety
///
/// Called by the functions above, as the last thing they do.
#[inline(always)]
unsafe fn execute(state: State, raises: bool) -> c_int {
    // SAFETY: all that is collected lies in `shared`; this frame has no value with a destructor when it is left by a
    // jump. The host is the one of the run that goes on. Arguments are taken off before the reply is pushed, so there is
    // room for it.
    unsafe {
        let shared = shared::of(state);
        if let Err(error) = collect_words(state, shared) {
            ffi::lua_settop(state, 0);
            push_error(state, error);
            return if raises { ffi::lua_error(state) } else { 1 };
        }
        ffi::lua_settop(state, 0);
        let Some(run) = (*shared).run else {
            push_error(state, b"ERR redis.call/pcall can only be called inside a script invocation");
            ffi::lua_error(state);
        };
        let mut host = run.host;
        (*shared).reply.clear();
        let executed = catch_unwind(AssertUnwindSafe(|| {
            let words = Args::new(&(*shared).words, &(*shared).ranges);
            host.as_mut().call(words, (*shared).protocol, &mut (*shared).reply);
        }));
        if let Err(panic) = executed {
            (*shared).panic = Some(panic);
            (*shared).killed = true;
            raise_killed(state);
        }
        let reply: &[u8] = &(*shared).reply;
        if let [b'-', message @ ..] = reply {
            push_error_reply(state, message.strip_suffix(b"\r\n").unwrap_or(message));
            return if raises { ffi::lua_error(state) } else { 1 };
        }
        to_lua::push(state, reply);
        trim(shared);
        1
    }
}

/// `redis.acl_check_cmd`
pub(super) unsafe extern "C-unwind" fn acl_check_cmd(state: State) -> c_int {
    // SAFETY: as `execute`; the host's error is dropped before one is raised.
    unsafe {
        let shared = shared::of(state);
        let collected = collect_words(state, shared);
        ffi::lua_settop(state, 0);
        if let Err(error) = collected {
            push_error(state, error);
            ffi::lua_error(state);
        }
        let Some(run) = (*shared).run else {
            push_error(state, b"ERR redis.acl_check_cmd can only be called inside a script invocation");
            ffi::lua_error(state);
        };
        let mut host = run.host;
        let asked = catch_unwind(AssertUnwindSafe(|| {
            host.as_mut().may_run(Args::new(&(*shared).words, &(*shared).ranges)).ok()
        }));
        let may_run = match asked {
            Ok(may_run) => may_run,
            Err(panic) => {
                (*shared).panic = Some(panic);
                (*shared).killed = true;
                raise_killed(state);
            }
        };
        match may_run {
            Some(may_run) => ffi::lua_pushboolean(state, c_int::from(may_run)),
            None => {
                push_error(state, b"ERR Invalid command passed to redis.acl_check_cmd()");
                ffi::lua_error(state);
            }
        }
        1
    }
}

/// Copies the arguments of the running function to the words of a command.
///
/// # Safety
///
/// `state` runs a C function of the interpreter that `shared` belongs to.
#[inline(always)]
unsafe fn collect_words(state: State, shared: *mut Shared) -> Result<(), &'static [u8]> {
    // SAFETY: nothing in here raises an error: strings are read as they are, numbers are not converted in place.
    unsafe {
        let words = &mut (*shared).words;
        let ranges = &mut (*shared).ranges;
        words.clear();
        ranges.clear();
        let count = ffi::lua_gettop(state);
        if count == 0 {
            return Err(b"ERR Please specify at least one argument for this redis lib call");
        }
        for index in 1..=count {
            let start = words.len();
            match ffi::lua_type(state, index) {
                ffi::LUA_TSTRING => {
                    let word = shared::bytes_at(state, index).unwrap_or_default();
                    words.extend_from_slice(word);
                }
                ffi::LUA_TNUMBER => write_number(ffi::lua_tonumber(state, index), words),
                _ => return Err(b"ERR Lua redis lib command arguments must be strings or integers"),
            }
            let (Ok(start), Ok(len)) = (u32::try_from(start), u32::try_from(words.len() - start)) else {
                return Err(b"ERR the arguments of a command are longer than 4 GiB");
            };
            ranges.push(ArgRange { start, len });
        }
    }
    Ok(())
}

/// Numbers as arguments: whole ones in full, others in the shortest digits that read back the same.
#[inline]
fn write_number(value: f64, out: &mut Vec<u8>) {
    // Small whole numbers are by far the most frequent. So written, a negative zero has no sign.
    const EXACT: f64 = (1u64 << 53) as f64;
    let whole = value as i64;
    if whole as f64 == value && value.abs() <= EXACT {
        number::write_i64(whole, out);
    } else {
        number::write_f64(value, out);
    }
}

/// Gives memory back that one large command took.
///
/// # Safety
///
/// `shared` is live and not borrowed.
#[inline(always)]
unsafe fn trim(shared: *mut Shared) {
    // SAFETY: by the caller.
    unsafe {
        if (*shared).words.capacity() > KEPT_BYTES {
            (*shared).words = Vec::new();
        }
        if (*shared).reply.capacity() > KEPT_BYTES {
            (*shared).reply = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::write_number;

    #[test]
    fn numbers_are_written_as_redis_writes_them() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (-1.0, "-1"),
            (3.5, "3.5"),
            (0.1, "0.1"),
            (1e15, "1000000000000000"),
            (1e18, "1000000000000000000"),
            (9007199254740993.0, "9007199254740992"),
            (1e300, "1e+300"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            let mut out = Vec::new();
            write_number(value, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }
}
