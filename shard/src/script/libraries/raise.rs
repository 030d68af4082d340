//! Errors as Lua values: the one place where a function of a library leaves Rust by Lua's own way of raising errors.
//!
//! A Rust function that returns an error raises a userdata through `mlua`, but what `pcall` hands to a script must be a
//! string. A wrapper in Lua would raise strings, but it would be lost from the stack when a script ends in
//! `return cjson.decode(…)`, and with it the line that errors begin with.

use std::ffi::c_int;

use mlua::{Function, Lua, ffi};

/// A function that calls `inner` and takes its last result off: true returns the others, false raises the first as an
/// error, whatever value it is.
pub(crate) fn raising(lua: &Lua, inner: Function) -> mlua::Result<Function> {
    // SAFETY: `exec_raw` pushes `inner` as the only value of a fresh protected frame; `lua_pushcclosure` replaces this
    // one value by the closure, which is the only result. An error in it is caught by that frame, and the closure given
    // here holds nothing that would need to be dropped.
    unsafe { lua.exec_raw(inner, |state| ffi::lua_pushcclosure(state, call_or_raise, 1)) }
}

/// The C function behind [`raising`]; its upvalue is the function to call.
///
/// # Safety
///
/// Only Lua calls it, with the upvalue that [`raising`] gives it.
unsafe extern "C-unwind" fn call_or_raise(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: `state` is the running state. Lua leaves room for at least 20 values above the arguments, of which one is
    // taken. `lua_call` leaves its results alone on the stack, one at least, for `inner` always returns the flag.
    // Errors, those of `inner` included, leave this frame by a jump over it: it has no value that needs to be dropped.
    unsafe {
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
        ffi::lua_insert(state, 1);
        ffi::lua_call(state, ffi::lua_gettop(state) - 1, ffi::LUA_MULTRET);
        let succeeded = ffi::lua_toboolean(state, -1) != 0;
        if !succeeded {
            ffi::lua_settop(state, 1);
            ffi::lua_error(state);
        }
        ffi::lua_settop(state, -2);
        ffi::lua_gettop(state)
    }
}
