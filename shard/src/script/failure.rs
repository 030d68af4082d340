//! Errors: as tables that scripts see, and as the message of a run that failed.

use std::ffi::{CStr, c_int};
use std::io::Write;
use std::mem::MaybeUninit;

use mlua::ffi;

use super::shared::{self, Kind, Shared, State, bytes_at, push_bytes};

/// Pushes `{err = message}`. The message begins with its code.
///
/// # Safety
///
/// `state` has three free slots and is protected.
pub(super) unsafe fn push_error(state: State, message: &[u8]) {
    // SAFETY: by the caller.
    unsafe {
        ffi::lua_createtable(state, 0, 2);
        push_bytes(state, b"err");
        push_bytes(state, message);
        ffi::lua_rawset(state, -3);
    }
}

/// Pushes the table of an error reply; `message` is what stands between its mark and the end of its line. A message of
/// one word gets a code, as in Redis.
///
/// # Safety
///
/// `state` has four free slots and is protected.
pub(super) unsafe fn push_error_reply(state: State, message: &[u8]) {
    // SAFETY: by the caller.
    unsafe {
        push_coded(state, message);
        push_bytes(state, b"ignore_error_stats_update");
        ffi::lua_pushboolean(state, 1);
        ffi::lua_rawset(state, -3);
    }
}

/// Pushes `{err = message}`, with a code in front of a message that has none.
///
/// # Safety
///
/// `state` has four free slots and is protected.
pub(super) unsafe fn push_coded(state: State, message: &[u8]) {
    // SAFETY: by the caller.
    unsafe {
        if message.contains(&b' ') {
            return push_error(state, trimmed(message));
        }
        ffi::lua_createtable(state, 0, 2);
        push_bytes(state, b"err");
        push_bytes(state, b"ERR ");
        push_bytes(state, trimmed(message));
        ffi::lua_concat(state, 2);
        ffi::lua_rawset(state, -3);
    }
}

fn trimmed(message: &[u8]) -> &[u8] {
    let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let start = message.iter().position(|byte| !is_break(byte)).unwrap_or(message.len());
    let end = message.iter().rposition(|byte| !is_break(byte)).map_or(start, |last| last + 1);
    &message[start..end]
}

/// Raises `{err = message}`.
///
/// # Safety
///
/// As [`push_error`]; the caller holds nothing that has a destructor.
pub(super) unsafe fn raise(state: State, message: &[u8]) -> ! {
    // SAFETY: by the caller.
    unsafe {
        push_error(state, message);
        ffi::lua_error(state)
    }
}

/// Raises a message with the place in the script in front, as the standard library does.
///
/// # Safety
///
/// As [`raise`]; `message` holds no `%`.
pub(super) unsafe fn raise_placed(state: State, message: &CStr) -> ! {
    // SAFETY: by the caller.
    unsafe {
        ffi::luaL_where(state, 1);
        ffi::lua_pushstring_(state, message.as_ptr());
        ffi::lua_concat(state, 2);
        ffi::lua_error(state)
    }
}

/// Raises a bare message, as Lua's core does when a C function asked for what is wrong.
///
/// # Safety
///
/// As [`raise`].
pub(super) unsafe fn raise_bare(state: State, message: &CStr) -> ! {
    // SAFETY: by the caller.
    unsafe {
        ffi::lua_pushstring_(state, message.as_ptr());
        ffi::lua_error(state)
    }
}

/// The message handler of a run: notes message and place of the error while the stack is still there.
pub(super) unsafe extern "C-unwind" fn note(state: State) -> c_int {
    // SAFETY: Lua calls it with the error as its only argument. What is written lies in `shared`. `luaL_tolstring` may
    // call the script's `__tostring`, so it comes before anything is borrowed.
    unsafe {
        let shared = shared::of(state);
        let is_table = ffi::lua_type(state, 1) == ffi::LUA_TTABLE;
        if !is_table && !(*shared).killed {
            ffi::luaL_tolstring(state, 1, std::ptr::null_mut());
        }
        begin(state, shared, is_table);
        place(state, shared);
    }
    0
}

/// Writes the message itself.
///
/// # Safety
///
/// The error is at 1; its text is on top unless it is a table.
unsafe fn begin(state: State, shared: *mut Shared, is_table: bool) {
    // SAFETY: only raw access, which raises no error: the names of fields are the only memory taken, before the borrow.
    unsafe {
        (*shared).is_error_counted = false;
        if (*shared).killed {
            let message: &[u8] = match (*shared).kind {
                Kind::Scripts => b"ERR Script killed by user with SCRIPT KILL.",
                Kind::Functions => b"ERR Script killed by user with FUNCTION KILL.",
            };
            set(shared, &[message]);
            return;
        }
        if is_table {
            extract(state, 1, shared);
            return;
        }
        let text = bytes_at(state, -1).unwrap_or_default();
        set(shared, &[b"ERR ", text]);
    }
}

/// Writes the message of the error value at `index` to `failure`: that of a table's field, or of a text.
///
/// # Safety
///
/// `state` has two free slots and is protected.
pub(super) unsafe fn extract(state: State, index: c_int, shared: *mut Shared) {
    // SAFETY: raw access only; what is borrowed from Lua stays on the stack meanwhile.
    unsafe {
        if ffi::lua_type(state, index) != ffi::LUA_TTABLE {
            match bytes_at(state, index) {
                Some(text) => set(shared, &[b"ERR ", text]),
                None => set(shared, &[b"ERR unknown error"]),
            }
            return;
        }
        ffi::lua_pushvalue(state, index);
        push_bytes(state, b"ignore_error_stats_update");
        ffi::lua_rawget(state, -2);
        (*shared).is_error_counted = ffi::lua_toboolean(state, -1) != 0;
        ffi::lua_settop(state, -2);
        push_bytes(state, b"err");
        ffi::lua_rawget(state, -2);
        match bytes_at(state, -1) {
            Some(text) => set(shared, &[text]),
            None => set(shared, &[b"ERR unknown error"]),
        }
        ffi::lua_settop(state, -3);
    }
}

/// # Safety
///
/// `shared` is live and not borrowed.
unsafe fn set(shared: *mut Shared, parts: &[&[u8]]) {
    // SAFETY: by the caller.
    unsafe {
        let failure = &mut (*shared).failure;
        failure.clear();
        for part in parts {
            failure.extend_from_slice(part);
        }
    }
}

/// Adds which script it was, and the line.
///
/// # Safety
///
/// `state` runs the message handler.
unsafe fn place(state: State, shared: *mut Shared) {
    // SAFETY: Lua fills in the record, whose source lives as long as the function it is of.
    unsafe {
        let Some(run) = (*shared).run else { return };
        let Some(activation) = blamed(state) else { return };
        let source = CStr::from_ptr(activation.source).to_bytes();
        let failure = &mut (*shared).failure;
        failure.extend_from_slice(b" script: ");
        run.name.write(failure);
        failure.extend_from_slice(b", on ");
        failure.extend_from_slice(source);
        // Writing to memory does not fail.
        let _ = write!(failure, ":{}.", activation.currentline);
    }
}

/// What an error is said to be of: the function that raised it, or its caller when that is a C function.
///
/// # Safety
///
/// `state` runs a message handler.
unsafe fn blamed(state: State) -> Option<ffi::lua_Debug> {
    // SAFETY: what a function is called is text of Lua's own.
    unsafe {
        let raised = activation(state, 1)?;
        if CStr::from_ptr(raised.what) == c"C" { activation(state, 2).or(Some(raised)) } else { Some(raised) }
    }
}

/// # Safety
///
/// `state` is running.
unsafe fn activation(state: State, level: c_int) -> Option<ffi::lua_Debug> {
    let mut record = MaybeUninit::<ffi::lua_Debug>::zeroed();
    // SAFETY: zeros are a valid record, and Lua fills in what is asked for. No function is pushed.
    unsafe {
        if ffi::lua_getstack(state, level, record.as_mut_ptr()) == 0 {
            return None;
        }
        ffi::lua_getinfo(state, c"Sl".as_ptr(), record.as_mut_ptr());
        Some(record.assume_init())
    }
}

/// `__redis__err__handler`: an error as the table that Redis makes of it.
pub(super) unsafe extern "C-unwind" fn error_handler(state: State) -> c_int {
    // SAFETY: a C function of the interpreter; nothing here has a destructor.
    unsafe {
        ffi::lua_settop(state, 1);
        if ffi::lua_type(state, 1) != ffi::LUA_TTABLE {
            ffi::lua_createtable(state, 0, 3);
            push_bytes(state, b"err");
            push_bytes(state, b"ERR ");
            ffi::luaL_tolstring(state, 1, std::ptr::null_mut());
            ffi::lua_concat(state, 2);
            ffi::lua_rawset(state, 2);
        }
        if let Some(activation) = blamed(state) {
            let line = activation.currentline;
            push_bytes(state, b"source");
            ffi::lua_pushstring_(state, activation.source);
            ffi::lua_settable(state, -3);
            push_bytes(state, b"line");
            ffi::lua_pushnumber(state, f64::from(line));
            ffi::lua_settable(state, -3);
        }
    }
    1
}
