//! Compiling: `load`, `loadstring` and what the engine itself compiles. Only text is compiled: bytecode can do anything.

use std::ffi::{c_char, c_int, c_void};

use mlua::ffi;

use super::hook::{count_work, raise_killed};
use super::shared::{self, State, bytes_at, push_bytes};

/// Longest text that is compiled, in bytes: the lexer counts with C integers, and with some of them twice over.
const CHUNK_MAX: usize = 64 << 20;

/// `loadstring(text [, name])`
pub(super) unsafe extern "C-unwind" fn loadstring(state: State) -> c_int {
    // SAFETY: called by Lua only; nothing here has a destructor. `compile` gets a text and a name that stay on the stack.
    unsafe {
        let mut len = 0;
        let text = ffi::luaL_checklstring(state, 1, &mut len);
        count_work(state, shared::of(state), len);
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
    // SAFETY: as `loadstring`; the name is held as there.
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
        count_work(state, shared::of(state), total);
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
