//! Functions of Lua's base library that are replaced: to keep read-only tables read-only, to let nothing catch the end
//! of a killed script, and to compile text only.
//!
//! This Lua has no read-only tables. What scripts see of a shared table is an empty one whose metatable leads to it: it
//! reads as the table does, and every assignment gets to an error. Functions that work without metatables would see
//! the empty table; so those that read look through it, and those that write refuse it.

use std::ffi::{CStr, c_char, c_int, c_void};

use mlua::ffi;

use super::failure::{raise_bare, raise_placed};
use super::hook::{count_resume, count_work, pulse, raise_killed};
use super::shared::{self, Shared, State, bytes_at, push_bytes};

const READ_ONLY: &CStr = c"Attempt to modify a readonly table";

/// Longest text that is compiled, in bytes: the lexer counts with C integers, and with some of them twice over.
pub(super) const CHUNK_MAX: usize = 64 << 20;

/// `__newindex` of read-only tables.
pub(super) unsafe extern "C-unwind" fn refuse_write(state: State) -> c_int {
    // SAFETY: nothing here has a destructor. This holds for all functions of this module: they call Lua only, and raise
    // errors as the last thing they do.
    unsafe { raise_placed(state, READ_ONLY) }
}

/// `__index` of the globals: what is not there is an error.
pub(super) unsafe extern "C-unwind" fn refuse_read(state: State) -> c_int {
    // SAFETY: as `refuse_write`.
    unsafe {
        ffi::luaL_checkany(state, 2);
        ffi::lua_settop(state, 2);
        if ffi::lua_isstring(state, 2) == 0 {
            raise_placed(state, c"Second argument to luaProtectedTableError must be a string or number");
        }
        ffi::luaL_where(state, 1);
        push_bytes(state, b"Script attempted to access nonexistent global variable '");
        ffi::lua_pushvalue(state, 2);
        push_bytes(state, b"'");
        ffi::lua_concat(state, 4);
        ffi::lua_error(state)
    }
}

/// Puts the table that stands behind the read-only one at `index` on top; false, and nothing on top, for all others.
///
/// # Safety
///
/// `state` has three free slots and runs a C function of the interpreter.
#[inline]
unsafe fn push_behind(state: State, shared: *mut Shared, index: c_int) -> bool {
    // SAFETY: tables without a metatable, that is nearly all, are known to be none.
    unsafe {
        if ffi::lua_getmetatable(state, index) == 0 {
            return false;
        }
        ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, (*shared).protected);
        ffi::lua_pushvalue(state, index);
        ffi::lua_rawget(state, -2);
        // The metatable and the table of tables go.
        ffi::lua_replace(state, -3);
        ffi::lua_settop(state, -2);
        let is_protected = ffi::lua_type(state, -1) == ffi::LUA_TTABLE;
        if !is_protected {
            ffi::lua_settop(state, -2);
        }
        is_protected
    }
}

/// Raises an error if the argument is a read-only table.
///
/// # Safety
///
/// As [`push_behind`].
pub(super) unsafe fn refuse_protected(state: State, index: c_int) {
    // SAFETY: by the caller.
    unsafe {
        if ffi::lua_type(state, index) == ffi::LUA_TTABLE && push_behind(state, shared::of(state), index) {
            raise_bare(state, READ_ONLY);
        }
    }
}

/// Puts the table that stands behind a read-only one in its place.
///
/// # Safety
///
/// As [`push_behind`].
#[inline]
unsafe fn look_behind(state: State, index: c_int) {
    // SAFETY: by the caller.
    unsafe {
        if push_behind(state, shared::of(state), index) {
            ffi::lua_replace(state, index);
        }
    }
}

/// `next(table [, key])`
pub(super) unsafe extern "C-unwind" fn next(state: State) -> c_int {
    // SAFETY: as `refuse_write`.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::lua_settop(state, 2);
        look_behind(state, 1);
        if ffi::lua_next(state, 1) != 0 {
            return 2;
        }
        ffi::lua_pushnil(state);
        1
    }
}

/// `pairs(table)`; the second upvalue is `next`.
pub(super) unsafe extern "C-unwind" fn pairs(state: State) -> c_int {
    // SAFETY: as `refuse_write`.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(2));
        ffi::lua_pushvalue(state, 1);
        ffi::lua_pushnil(state);
    }
    3
}

/// `rawget(table, key)`
pub(super) unsafe extern "C-unwind" fn rawget(state: State) -> c_int {
    // SAFETY: as `refuse_write`.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::luaL_checkany(state, 2);
        ffi::lua_settop(state, 2);
        look_behind(state, 1);
        ffi::lua_rawget(state, 1);
    }
    1
}

/// `rawset(table, key, value)`
pub(super) unsafe extern "C-unwind" fn rawset(state: State) -> c_int {
    // SAFETY: as `refuse_write`.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::luaL_checkany(state, 2);
        ffi::luaL_checkany(state, 3);
        ffi::lua_settop(state, 3);
        refuse_protected(state, 1);
        ffi::lua_rawset(state, 1);
    }
    1
}

/// `setmetatable(table, metatable)`
pub(super) unsafe extern "C-unwind" fn setmetatable(state: State) -> c_int {
    // SAFETY: as `refuse_write`.
    unsafe {
        refuse_protected(state, 1);
        ((*shared::of(state)).stock.setmetatable)(state)
    }
}

/// `getmetatable(value)`. The second upvalue is what strings show, the third the globals, the fourth what those show.
pub(super) unsafe extern "C-unwind" fn getmetatable(state: State) -> c_int {
    // SAFETY: as `refuse_write`.
    unsafe {
        match ffi::lua_type(state, 1) {
            ffi::LUA_TSTRING => {
                ffi::lua_pushvalue(state, ffi::lua_upvalueindex(2));
                1
            }
            ffi::LUA_TTABLE if push_behind(state, shared::of(state), 1) => {
                if ffi::lua_rawequal(state, 1, ffi::lua_upvalueindex(3)) != 0 {
                    ffi::lua_pushvalue(state, ffi::lua_upvalueindex(4));
                } else {
                    ffi::lua_pushnil(state);
                }
                1
            }
            _ => ((*shared::of(state)).stock.getmetatable)(state),
        }
    }
}

/// `pcall(function, …)`: of errors that are tables with a message, scripts get the message, as they did before Redis 7.
pub(super) unsafe extern "C-unwind" fn pcall(state: State) -> c_int {
    // SAFETY: as `refuse_write`.
    unsafe {
        ffi::luaL_checkany(state, 1);
        let count = ffi::lua_gettop(state);
        // Where the first result goes.
        ffi::lua_pushboolean(state, 1);
        ffi::lua_insert(state, 1);
        let status = ffi::lua_pcall(state, count - 1, ffi::LUA_MULTRET, 0);
        if status == ffi::LUA_OK {
            return ffi::lua_gettop(state);
        }
        after_failure(state, status);
        ffi::lua_pushboolean(state, 0);
        ffi::lua_replace(state, 1);
        if ffi::lua_type(state, 2) == ffi::LUA_TTABLE {
            push_bytes(state, b"err");
            ffi::lua_rawget(state, 2);
            if ffi::lua_isstring(state, -1) != 0 {
                ffi::lua_replace(state, 2);
            }
            ffi::lua_settop(state, 2);
        }
        2
    }
}

/// Lets a killed script end, and asks the host after memory ran out: getting there may have taken long, with few
/// instructions.
///
/// # Safety
///
/// `state` runs a C function of the interpreter.
unsafe fn after_failure(state: State, status: c_int) {
    // SAFETY: the stack may be full of what a function was called with; the error has taken its place.
    unsafe {
        let shared = shared::of(state);
        if (*shared).killed {
            raise_killed(state);
        }
        if status == ffi::LUA_ERRMEM {
            pulse(state, shared);
        }
    }
}

/// `xpcall(function, handler)`
pub(super) unsafe extern "C-unwind" fn xpcall(state: State) -> c_int {
    // SAFETY: as `refuse_write`.
    unsafe {
        let shared = shared::of(state);
        ffi::luaL_checkany(state, 2);
        ffi::lua_settop(state, 2);
        // function, handler: the handler becomes an upvalue of the function that guards it, which goes below.
        ffi::lua_pushlightuserdata(state, shared.cast());
        ffi::lua_insert(state, 2);
        ffi::lua_pushcclosure(state, handle, 2);
        ffi::lua_insert(state, 1);
        // Where the first result goes: results may leave no room behind them.
        ffi::lua_pushboolean(state, 1);
        ffi::lua_insert(state, 1);
        let status = ffi::lua_pcall(state, 0, ffi::LUA_MULTRET, 2);
        ffi::lua_remove(state, 2);
        if status != ffi::LUA_OK {
            after_failure(state, status);
            ffi::lua_pushboolean(state, 0);
            ffi::lua_replace(state, 1);
        }
        ffi::lua_gettop(state)
    }
}

/// The message handler of [`xpcall`]; its second upvalue is the script's own. That one would run without a hook after a
/// kill, for as long as it likes, so then it does not.
unsafe extern "C-unwind" fn handle(state: State) -> c_int {
    // SAFETY: as `refuse_write`.
    unsafe {
        if !(*shared::of(state)).killed {
            ffi::lua_pushvalue(state, ffi::lua_upvalueindex(2));
            ffi::lua_insert(state, 1);
            ffi::lua_call(state, 1, 1);
        }
    }
    1
}

/// `coroutine.resume(coroutine, …)`
pub(super) unsafe extern "C-unwind" fn resume(state: State) -> c_int {
    // SAFETY: as `refuse_write`.
    unsafe {
        let shared = shared::of(state);
        count_resume(state, shared);
        let coroutine = ffi::lua_tothread(state, 1);
        let results = ((*shared).stock.resume)(state);
        if (*shared).killed {
            raise_killed(state);
        }
        if !coroutine.is_null() && ffi::lua_status(coroutine) == ffi::LUA_ERRMEM {
            pulse(state, shared);
        }
        results
    }
}

/// `coroutine.wrap(function)`
pub(super) unsafe extern "C-unwind" fn wrap(state: State) -> c_int {
    // SAFETY: as `refuse_write`. The standard function finds the coroutine as its first upvalue.
    unsafe {
        let shared = shared::of(state);
        ((*shared).stock.create)(state);
        ffi::lua_pushlightuserdata(state, shared.cast());
        ffi::lua_pushcclosure(state, wrapped, 2);
    }
    1
}

/// What `coroutine.wrap` returns; its upvalues are the coroutine and the engine's part.
unsafe extern "C-unwind" fn wrapped(state: State) -> c_int {
    // SAFETY: as `refuse_write`. What a coroutine fails with is raised by the standard function, so that a kill goes on.
    unsafe {
        let shared: *mut Shared = ffi::lua_touserdata(state, ffi::lua_upvalueindex(2)).cast();
        count_resume(state, shared);
        ((*shared).stock.wrapped)(state)
    }
}

/// `unpack(table [, first [, last]])`
pub(super) unsafe extern "C-unwind" fn unpack(state: State) -> c_int {
    // SAFETY: as `refuse_write`; room is made before anything is pushed.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        let first = optional_int(state, 2, 1);
        let last = if ffi::lua_type(state, 3) <= ffi::LUA_TNIL {
            i64::try_from(ffi::lua_objlen(state, 1)).unwrap_or(i64::MAX)
        } else {
            optional_int(state, 3, 0)
        };
        if first > last {
            return 0;
        }
        let (Ok(count), Ok(start), Ok(end)) =
            (c_int::try_from(last - first + 1), c_int::try_from(first), c_int::try_from(last))
        else {
            raise_placed(state, c"too many results to unpack");
        };
        if ffi::lua_checkstack(state, count) == 0 {
            raise_placed(state, c"too many results to unpack");
        }
        for index in start..=end {
            ffi::lua_rawgeti_(state, 1, index);
        }
        count
    }
}

/// An argument that is a C integer.
///
/// # Safety
///
/// `state` runs a C function.
unsafe fn optional_int(state: State, index: c_int, default: i64) -> i64 {
    // SAFETY: raises an error for other types.
    unsafe { i64::from(ffi::luaL_optinteger(state, index, default) as i32) }
}

/// `tonumber(value [, base])`: whole numbers are read here, for they are most of what scripts read; all else as ever.
pub(super) unsafe extern "C-unwind" fn tonumber(state: State) -> c_int {
    // SAFETY: as `refuse_write`. Only a string is read, which stays on the stack.
    unsafe {
        let is_plain = ffi::lua_gettop(state) == 1 && ffi::lua_type(state, 1) == ffi::LUA_TSTRING;
        if is_plain && let Some(value) = bytes_at(state, 1).and_then(whole_number) {
            ffi::lua_pushnumber(state, value);
            return 1;
        }
        ((*shared::of(state)).stock.tonumber)(state)
    }
}

/// The number that up to fifteen digits, with or without a sign, stand for: that many a Lua number holds exactly.
fn whole_number(text: &[u8]) -> Option<f64> {
    const DIGITS_MAX: usize = 15;
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    let mut value = 0u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u64::from(digit - b'0');
    }
    let value = value as f64;
    Some(if is_negative { -value } else { value })
}

/// `collectgarbage([option [, argument]])`. What a script changes is put back when it ends.
pub(super) unsafe extern "C-unwind" fn collectgarbage(state: State) -> c_int {
    // SAFETY: as `refuse_write`.
    unsafe {
        let shared = shared::of(state);
        (*shared).is_collector_changed |= bytes_at(state, 1).is_some_and(|option| option != b"count");
        ((*shared).stock.collectgarbage)(state)
    }
}

/// `loadstring(text [, name])`
pub(super) unsafe extern "C-unwind" fn loadstring(state: State) -> c_int {
    // SAFETY: as `refuse_write`. `compile` gets a text and a name that stay on the stack.
    unsafe {
        let mut len = 0;
        let text = ffi::luaL_checklstring(state, 1, &mut len);
        let name = ffi::luaL_optlstring(state, 2, text, std::ptr::null_mut());
        // The compiler keeps a name that nothing else may hold, while it collects garbage. The same string on the stack,
        // up to its first zero as the compiler sees it, keeps it alive.
        ffi::lua_pushstring_(state, name);
        let name = ffi::lua_tolstring(state, -1, std::ptr::null_mut());
        if !(1..).contains(&len) || *text.cast::<u8>() != BYTECODE {
            return loaded(state, compile(state, text, len, name));
        }
        // With a space in front it is no bytecode, and fails to compile as the text it should be.
        push_bytes(state, b" ");
        ffi::lua_pushvalue(state, 1);
        ffi::lua_concat(state, 2);
        let text = ffi::lua_tolstring(state, -1, &mut len);
        loaded(state, compile(state, text, len, name))
    }
}

/// The byte that compiled code begins with.
pub(super) const BYTECODE: u8 = 0x1b;

/// Compiles a text and pushes the function or what is wrong.
///
/// # Safety
///
/// `state` runs in a protected call. Text and name stay where they are, and the name is a string of Lua that something
/// holds. The text is no bytecode.
pub(super) unsafe fn compile(state: State, text: *const c_char, len: usize, name: *const c_char) -> c_int {
    // SAFETY: by the caller.
    unsafe {
        if len > CHUNK_MAX {
            push_bytes(state, b"chunk is too long");
            return ffi::LUA_ERRSYNTAX;
        }
        count_work(state, shared::of(state), len);
        ffi::luaL_loadbuffer(state, text, len, name)
    }
}

/// The results of a function that compiles: the function, or nil and what is wrong.
///
/// # Safety
///
/// One of the two is on top.
unsafe fn loaded(state: State, status: c_int) -> c_int {
    // SAFETY: by the caller.
    unsafe {
        if status == ffi::LUA_OK {
            return 1;
        }
        ffi::lua_pushnil(state);
        ffi::lua_insert(state, -2);
    }
    2
}

/// `load(function [, name])`. The pieces are fetched before they are compiled: no code of a script runs meanwhile.
pub(super) unsafe extern "C-unwind" fn load(state: State) -> c_int {
    const NAME: c_int = 3;
    const PIECES: c_int = 4;
    // SAFETY: as `refuse_write`; the name is held as in `loadstring`.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TFUNCTION);
        let name = ffi::luaL_optlstring(state, 2, c"=(load)".as_ptr(), std::ptr::null_mut());
        ffi::lua_settop(state, 2);
        ffi::lua_pushstring_(state, name);
        ffi::lua_createtable(state, 0, 0);
        let mut count = 0;
        let mut total = 0usize;
        loop {
            ffi::lua_settop(state, PIECES);
            ffi::lua_pushvalue(state, 1);
            if ffi::lua_pcall(state, 0, 1, 0) != ffi::LUA_OK {
                if (*shared::of(state)).killed {
                    raise_killed(state);
                }
                return loaded(state, ffi::LUA_ERRRUN);
            }
            if ffi::lua_type(state, -1) == ffi::LUA_TNIL {
                break;
            }
            let Some(piece) = bytes_at(state, -1) else {
                ffi::luaL_where(state, 1);
                push_bytes(state, b"reader function must return a string");
                ffi::lua_concat(state, 2);
                return loaded(state, ffi::LUA_ERRRUN);
            };
            let Some(first) = piece.first() else { break };
            if count == 0 && *first == BYTECODE {
                push_bytes(state, b" ");
                count += 1;
                ffi::lua_rawseti_(state, PIECES, count);
            }
            total = total.saturating_add(piece.len());
            if total > CHUNK_MAX || count == c_int::MAX {
                push_bytes(state, b"chunk is too long");
                return loaded(state, ffi::LUA_ERRSYNTAX);
            }
            count += 1;
            ffi::lua_rawseti_(state, PIECES, count);
        }
        ffi::lua_settop(state, PIECES);
        let mut index: c_int = 0;
        let name = ffi::lua_tolstring(state, NAME, std::ptr::null_mut());
        let status = ffi::lua_load(state, next_piece, (&raw mut index).cast(), name);
        loaded(state, status)
    }
}

/// Reads the pieces of [`load`], from the table that is at 4 in the function it runs in.
unsafe extern "C-unwind" fn next_piece(state: State, index: *mut c_void, len: *mut usize) -> *const c_char {
    // SAFETY: `index` is the counter of `load`. The piece is held by the table, so it may leave the stack.
    unsafe {
        let index: *mut c_int = index.cast();
        *index += 1;
        ffi::lua_rawgeti_(state, 4, *index);
        let piece = ffi::lua_tolstring(state, -1, len);
        ffi::lua_settop(state, -2);
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::whole_number;

    #[test]
    fn only_plain_whole_numbers_are_read() {
        for (text, value) in [("0", 0.0), ("-7", -7.0), ("007", 7.0), ("999999999999999", 999_999_999_999_999.0)] {
            assert_eq!(whole_number(text.as_bytes()), Some(value));
        }
        assert!(whole_number(b"-0").is_some_and(f64::is_sign_negative));
        for text in ["", "-", "+1", " 1", "1 ", "1.0", "0x10", "1e3", "--1", "1234567890123456"] {
            assert_eq!(whole_number(text.as_bytes()), None, "{text}");
        }
    }
}
