//! Replies of commands as Lua values.

use std::ffi::c_int;

use mlua::ffi;

use super::failure::push_error_reply;
use super::shared::{State, push_bytes};
use crate::number;

/// How deep aggregates of a reply may nest. No command nests deeper than a few levels; the stack has room for these.
const DEPTH_MAX: u32 = 1000;

/// Pushes the value of one encoded reply. What is not understood is nil: a host encodes what it replies.
///
/// # Safety
///
/// `state` runs a C function in a protected call, with a free slot; the caller holds nothing that has a destructor, for
/// memory may run out.
#[inline]
pub(super) unsafe fn push(state: State, reply: &[u8]) {
    let mut reader = Reader { rest: reply };
    // SAFETY: by the caller. A reader has no destructor.
    unsafe { reader.push(state, 0) };
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// # Safety
    ///
    /// As [`push`].
    unsafe fn push(&mut self, state: State, depth: u32) {
        let Some((&mark, rest)) = self.rest.split_first() else {
            // SAFETY: one slot.
            return unsafe { ffi::lua_pushnil(state) };
        };
        self.rest = rest;
        let line = self.line();
        // SAFETY: at most one slot is taken here; aggregates see to more.
        unsafe {
            match mark {
                b'$' => match length(line) {
                    Some(len) => push_bytes(state, self.bulk(len)),
                    None => ffi::lua_pushboolean(state, 0),
                },
                b':' => ffi::lua_pushnumber(state, integer(line) as f64),
                b'+' => push_single(state, b"ok", |state| push_bytes(state, line)),
                b'-' => push_error_reply(state, line),
                b'*' | b'>' => match length(line) {
                    Some(len) => self.push_array(state, len, depth),
                    None => ffi::lua_pushboolean(state, 0),
                },
                b'_' => ffi::lua_pushnil(state),
                b'#' => ffi::lua_pushboolean(state, c_int::from(line == b"t")),
                b',' => {
                    let value = number::parse_f64(line).unwrap_or(f64::NAN);
                    push_single(state, b"double", |state| ffi::lua_pushnumber(state, value));
                }
                b'(' => push_single(state, b"big_number", |state| push_bytes(state, line)),
                b'=' => self.push_verbatim(state, length(line).unwrap_or(0)),
                b'%' => self.push_map(state, length(line).unwrap_or(0), depth),
                b'~' => self.push_set(state, length(line).unwrap_or(0), depth),
                b'|' => {
                    // Attributes are not shown to scripts.
                    for _ in 0..length(line).unwrap_or(0).saturating_mul(2) {
                        self.push(state, depth + 1);
                        ffi::lua_settop(state, -2);
                    }
                    self.push(state, depth + 1);
                }
                _ => ffi::lua_pushnil(state),
            }
        }
    }

    /// # Safety
    ///
    /// As [`push`].
    unsafe fn push_array(&mut self, state: State, len: usize, depth: u32) {
        // SAFETY: `enter` made room.
        unsafe {
            if !enter(state, depth) {
                return;
            }
            ffi::lua_createtable(state, self.elements(len), 0);
            for index in 1..=self.elements(len) {
                self.push(state, depth + 1);
                ffi::lua_rawseti_(state, -2, index);
            }
        }
    }

    /// # Safety
    ///
    /// As [`push`].
    unsafe fn push_map(&mut self, state: State, len: usize, depth: u32) {
        // SAFETY: `enter` made room.
        unsafe {
            if !enter(state, depth) {
                return;
            }
            ffi::lua_createtable(state, 0, 1);
            push_bytes(state, b"map");
            let pairs = self.elements(len);
            ffi::lua_createtable(state, 0, pairs);
            for _ in 0..pairs {
                self.push(state, depth + 1);
                self.push(state, depth + 1);
                set_pair(state);
            }
            ffi::lua_rawset(state, -3);
        }
    }

    /// # Safety
    ///
    /// As [`push`].
    unsafe fn push_set(&mut self, state: State, len: usize, depth: u32) {
        // SAFETY: `enter` made room.
        unsafe {
            if !enter(state, depth) {
                return;
            }
            ffi::lua_createtable(state, 0, 1);
            push_bytes(state, b"set");
            let members = self.elements(len);
            ffi::lua_createtable(state, 0, members);
            for _ in 0..members {
                self.push(state, depth + 1);
                ffi::lua_pushboolean(state, 1);
                set_pair(state);
            }
            ffi::lua_rawset(state, -3);
        }
    }

    /// # Safety
    ///
    /// As [`push`].
    unsafe fn push_verbatim(&mut self, state: State, len: usize) {
        let whole = self.bulk(len);
        let (format, text) = whole.split_at_checked(4).unwrap_or((b"txt:", whole));
        // SAFETY: `enter` made room.
        unsafe {
            if !enter(state, 0) {
                return;
            }
            push_single(state, b"verbatim_string", |state| {
                ffi::lua_createtable(state, 0, 2);
                push_bytes(state, b"format");
                push_bytes(state, &format[..3]);
                ffi::lua_rawset(state, -3);
                push_bytes(state, b"string");
                push_bytes(state, text);
                ffi::lua_rawset(state, -3);
            });
        }
    }

    /// The rest of the line, which ends with CR LF.
    #[inline]
    fn line(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| *byte == b'\r').unwrap_or(self.rest.len());
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest.get(2..).unwrap_or_default();
        line
    }

    /// `len` bytes, and the CR LF behind them.
    #[inline]
    fn bulk(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, &[]));
        self.rest = rest.get(2..).unwrap_or_default();
        bytes
    }

    /// How many elements to read: as many as are said, but no more than there is room for in what follows.
    fn elements(&self, len: usize) -> c_int {
        c_int::try_from(len.min(self.rest.len())).unwrap_or(c_int::MAX)
    }
}

/// Makes room for what an aggregate needs; pushes nil instead when there is none.
///
/// # Safety
///
/// `state` has a free slot.
unsafe fn enter(state: State, depth: u32) -> bool {
    // SAFETY: `lua_checkstack` raises no error.
    unsafe {
        let has_room = depth < DEPTH_MAX && ffi::lua_checkstack(state, 8) != 0;
        if !has_room {
            ffi::lua_pushnil(state);
        }
        has_room
    }
}

/// Pushes a table with one field.
///
/// # Safety
///
/// `state` has the three free slots of a C function, and `value` pushes one value.
unsafe fn push_single(state: State, field: &[u8], value: impl FnOnce(State)) {
    // SAFETY: by the caller.
    unsafe {
        ffi::lua_createtable(state, 0, 1);
        push_bytes(state, field);
        value(state);
        ffi::lua_rawset(state, -3);
    }
}

/// Takes a key and a value off and puts them into the table below. A key that no table can have is left out.
///
/// # Safety
///
/// The three are there.
unsafe fn set_pair(state: State) {
    // SAFETY: nil and NaN are what `lua_rawset` raises an error for.
    unsafe {
        if ffi::lua_type(state, -2) == ffi::LUA_TNIL {
            ffi::lua_settop(state, -3);
        } else {
            ffi::lua_rawset(state, -3);
        }
    }
}

/// The integer of a line.
#[inline]
fn integer(line: &[u8]) -> i64 {
    number::parse_i64(line).unwrap_or(0)
}

/// The length of a line; none for a null.
#[inline]
fn length(line: &[u8]) -> Option<usize> {
    // Lengths below ten are by far the most frequent.
    match line {
        [digit @ b'0'..=b'9'] => Some(usize::from(digit - b'0')),
        _ => usize::try_from(number::parse_i64(line)?).ok(),
    }
}
