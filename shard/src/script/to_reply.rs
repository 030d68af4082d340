//! What a script returns as a reply.
//!
//! Tables are walked with a stack of this module's own: how deep they nest is bounded by Lua's stack, which has room
//! for more levels than that of a core has for calls.

use std::ffi::c_int;

use mlua::ffi;

use super::failure::raise;
use super::hook::count_work;
use super::shared::{Shared, State, bytes_at, push_bytes};
use crate::error::CommandError;
use crate::number::IntBuffer;
use crate::reply::{Protocol, Reply};

/// An aggregate that is open. Its table is on Lua's stack, and for a map or set the key it has got to.
pub(super) struct Frame {
    kind: FrameKind,
    /// Where its header is in the reply: a mark, one digit, CR LF.
    at: usize,
    /// Replies, pairs of them for a map.
    count: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    Array,
    Map,
    /// The same, while a key is being written.
    MapKey,
    Set,
}

/// What writing a value counts as, in bytes gone through.
const VALUE_WORK: usize = 16;

/// First upvalue with the name of a field, in the function that calls [`write_reply`]; the others follow in the order
/// of [`FIELDS`].
pub(super) const FIELD_UPVALUE: c_int = 5;

/// The fields by which a table is no array.
pub(super) const FIELDS: [&str; 9] =
    ["err", "ok", "double", "big_number", "verbatim_string", "map", "set", "format", "string"];

const ERR: c_int = 0;
const OK: c_int = 1;
const DOUBLE: c_int = 2;
const BIG_NUMBER: c_int = 3;
const VERBATIM: c_int = 4;
const MAP: c_int = 5;
const SET: c_int = 6;
const FORMAT: c_int = 7;
const STRING: c_int = 8;

/// Appends the value on top of the stack to `shared.out` as one reply in `protocol`, and takes it off.
///
/// # Safety
///
/// `state` runs a protected C function with the upvalues of [`FIELDS`]; the caller holds nothing with a destructor.
pub(super) unsafe fn write_reply(state: State, shared: *mut Shared, protocol: Protocol) {
    // SAFETY: values are read raw, so no code of a script runs. `frames` and `out` are reached only from here meanwhile.
    unsafe {
        (*shared).frames.clear();
        loop {
            write_value(state, shared, protocol);
            while !next_value(state, shared, protocol) {
                if (*shared).frames.is_empty() {
                    return;
                }
            }
        }
    }
}

/// Writes the value on top and takes it off, or opens the aggregate that it is.
///
/// # Safety
///
/// As [`write_reply`].
#[inline]
unsafe fn write_value(state: State, shared: *mut Shared, protocol: Protocol) {
    // SAFETY: at most four slots are taken, for which room is made first.
    unsafe {
        if ffi::lua_checkstack(state, 4) == 0 {
            Reply::new(&mut (*shared).out, protocol).error(&CommandError::new("ERR reached lua stack limit"));
            ffi::lua_settop(state, -2);
            return;
        }
        count_work(state, shared, VALUE_WORK);
        if (*shared).out.len() > (*shared).limits.memory_bytes {
            raise(state, b"ERR the reply of the script takes more memory than a script may have");
        }
        let mut reply = Reply::new(&mut (*shared).out, protocol);
        match ffi::lua_type(state, -1) {
            ffi::LUA_TSTRING => reply.bulk(bytes_at(state, -1).unwrap_or_default()),
            ffi::LUA_TNUMBER => reply.integer(truncated(ffi::lua_tonumber(state, -1))),
            ffi::LUA_TBOOLEAN => {
                let value = ffi::lua_toboolean(state, -1) != 0;
                match ((*shared).protocol, value) {
                    (Protocol::Resp3, _) => reply.boolean(value),
                    (Protocol::Resp2, true) => reply.integer(1),
                    (Protocol::Resp2, false) => reply.null(),
                }
            }
            ffi::LUA_TTABLE => return write_table(state, shared, protocol),
            _ => reply.null(),
        }
        ffi::lua_settop(state, -2);
    }
}

/// # Safety
///
/// As [`write_value`], with a table on top.
unsafe fn write_table(state: State, shared: *mut Shared, protocol: Protocol) {
    // SAFETY: each field is read raw and stays on the stack while it is copied.
    unsafe {
        let table = ffi::lua_gettop(state);
        let mut reply = Reply::new(&mut (*shared).out, protocol);
        if field(state, table, ERR) == ffi::LUA_TSTRING {
            let message = bytes_at(state, -1).unwrap_or_default();
            write_line(&mut (*shared).out, b'-', message);
            if (*shared).frames.is_empty() {
                push_bytes(state, b"ignore_error_stats_update");
                ffi::lua_rawget(state, table);
                (*shared).is_error_counted = ffi::lua_toboolean(state, -1) != 0;
            }
            return ffi::lua_settop(state, table - 1);
        }
        if field(state, table, OK) == ffi::LUA_TSTRING {
            write_line(&mut (*shared).out, b'+', bytes_at(state, -1).unwrap_or_default());
            return ffi::lua_settop(state, table - 1);
        }
        if field(state, table, DOUBLE) == ffi::LUA_TNUMBER {
            reply.double(ffi::lua_tonumber(state, -1));
            return ffi::lua_settop(state, table - 1);
        }
        if field(state, table, BIG_NUMBER) == ffi::LUA_TSTRING {
            write_big_number(&mut (*shared).out, protocol, bytes_at(state, -1).unwrap_or_default());
            return ffi::lua_settop(state, table - 1);
        }
        if field(state, table, VERBATIM) == ffi::LUA_TTABLE {
            let inner = ffi::lua_gettop(state);
            if field(state, inner, FORMAT) == ffi::LUA_TSTRING {
                // One slot more than was asked for: the type of the field is what decides.
                let format = bytes_at(state, -1).unwrap_or_default();
                if field_above(state, inner, STRING) == ffi::LUA_TSTRING {
                    write_verbatim(&mut (*shared).out, protocol, format, bytes_at(state, -1).unwrap_or_default());
                    return ffi::lua_settop(state, table - 1);
                }
            }
            ffi::lua_settop(state, table + 1);
        }
        for (index, kind) in [(MAP, FrameKind::Map), (SET, FrameKind::Set)] {
            if field(state, table, index) == ffi::LUA_TTABLE {
                ffi::lua_replace(state, table);
                ffi::lua_settop(state, table);
                ffi::lua_pushnil(state);
                return open(shared, protocol, kind);
            }
        }
        ffi::lua_settop(state, table);
        open(shared, protocol, FrameKind::Array);
    }
}

/// Reads a field of the table at `table` into the slot above it, and gives its type.
///
/// # Safety
///
/// `table` is the index of a table, with a free slot above the top.
#[inline]
unsafe fn field(state: State, table: c_int, index: c_int) -> c_int {
    // SAFETY: by the caller.
    unsafe {
        ffi::lua_settop(state, table);
        field_above(state, table, index)
    }
}

/// The same, into the slot above the top.
///
/// # Safety
///
/// As [`field`].
#[inline]
unsafe fn field_above(state: State, table: c_int, index: c_int) -> c_int {
    // SAFETY: by the caller.
    unsafe {
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(FIELD_UPVALUE + index));
        ffi::lua_rawget(state, table)
    }
}

/// Puts the next value of the innermost aggregate on top. False when there was none: then it is closed and off.
///
/// # Safety
///
/// As [`write_reply`].
#[inline]
unsafe fn next_value(state: State, shared: *mut Shared, protocol: Protocol) -> bool {
    // SAFETY: room for four values was made when the aggregate was opened. Keys are copied before they are written, for
    // `lua_next` has to find them as they were.
    unsafe {
        let Some(frame) = (*shared).frames.last_mut() else { return false };
        let has_value = match frame.kind {
            FrameKind::Array => {
                let index = c_int::try_from(frame.count + 1).unwrap_or(c_int::MAX);
                ffi::lua_rawgeti_(state, -1, index);
                let has_value = ffi::lua_type(state, -1) != ffi::LUA_TNIL;
                if has_value {
                    frame.count += 1;
                } else {
                    ffi::lua_settop(state, -2);
                }
                has_value
            }
            FrameKind::Map => {
                let has_value = ffi::lua_next(state, -2) != 0;
                if has_value {
                    frame.kind = FrameKind::MapKey;
                    frame.count += 1;
                    ffi::lua_pushvalue(state, -2);
                }
                has_value
            }
            FrameKind::MapKey => {
                // The value is on top since its key was asked for.
                frame.kind = FrameKind::Map;
                true
            }
            FrameKind::Set => {
                let has_value = ffi::lua_next(state, -2) != 0;
                if has_value {
                    frame.count += 1;
                    ffi::lua_settop(state, -2);
                    ffi::lua_pushvalue(state, -1);
                }
                has_value
            }
        };
        if !has_value {
            ffi::lua_settop(state, -2);
            close(shared, protocol);
        }
        has_value
    }
}

/// # Safety
///
/// `shared` is live and not borrowed.
unsafe fn open(shared: *mut Shared, protocol: Protocol, kind: FrameKind) {
    // SAFETY: by the caller.
    unsafe {
        let mark = match (kind, protocol) {
            (FrameKind::Map | FrameKind::MapKey, Protocol::Resp3) => b'%',
            (FrameKind::Set, Protocol::Resp3) => b'~',
            _ => b'*',
        };
        let out = &mut (*shared).out;
        (*shared).frames.push(Frame { kind, at: out.len(), count: 0 });
        out.extend_from_slice(&[mark, b'0', b'\r', b'\n']);
    }
}

/// # Safety
///
/// As [`open`].
unsafe fn close(shared: *mut Shared, protocol: Protocol) {
    // SAFETY: by the caller.
    unsafe {
        let Some(frame) = (*shared).frames.pop() else { return };
        let is_flat_map = protocol == Protocol::Resp2 && frame.kind == FrameKind::Map;
        let len = i64::from(frame.count) * if is_flat_map { 2 } else { 1 };
        let out = &mut (*shared).out;
        let digit = frame.at + 1;
        match u8::try_from(len) {
            Ok(len @ 0..=9) => out[digit] = b'0' + len,
            _ => {
                out.splice(digit..=digit, IntBuffer::new().format(len).iter().copied());
            }
        }
    }
}

/// Numbers as integers: cut off, and the least one for what is out of range, as C does on common machines.
#[inline]
fn truncated(value: f64) -> i64 {
    const RANGE: std::ops::Range<f64> = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;
    if RANGE.contains(&value) { value as i64 } else { i64::MIN }
}

/// A line of free text; breaks in it become spaces, those at the end of an error go.
fn write_line(out: &mut Vec<u8>, mark: u8, text: &[u8]) {
    let mut end = text.len();
    while mark == b'-' && end > 0 && matches!(text[end - 1], b'\r' | b'\n') {
        end -= 1;
    }
    out.push(mark);
    out.extend(text[..end].iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
    out.extend_from_slice(b"\r\n");
}

fn write_big_number(out: &mut Vec<u8>, protocol: Protocol, digits: &[u8]) {
    match protocol {
        Protocol::Resp3 => write_line(out, b'(', digits),
        Protocol::Resp2 => {
            let start = out.len();
            Reply::new(out, protocol).bulk(digits);
            let text = start + (out.len() - start - 2 - digits.len());
            for byte in &mut out[text..text + digits.len()] {
                if matches!(*byte, b'\r' | b'\n') {
                    *byte = b' ';
                }
            }
        }
    }
}

fn write_verbatim(out: &mut Vec<u8>, protocol: Protocol, format: &[u8], text: &[u8]) {
    match protocol {
        Protocol::Resp3 => {
            out.push(b'=');
            out.extend_from_slice(IntBuffer::new().format(text.len() as i64 + 4));
            out.extend_from_slice(b"\r\n");
            out.extend((0..3).map(|index| format.get(index).copied().unwrap_or(b' ')));
            out.push(b':');
            out.extend_from_slice(text);
            out.extend_from_slice(b"\r\n");
        }
        Protocol::Resp2 => Reply::new(out, protocol).bulk(text),
    }
}

/// Appends the error `message` as a reply.
pub(super) fn write_error(out: &mut Vec<u8>, message: &[u8]) {
    write_line(out, b'-', message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_cut_off() {
        for (value, integer) in [
            (1.9, 1),
            (-1.9, -1),
            (-0.0, 0),
            (1e20, i64::MIN),
            (f64::NAN, i64::MIN),
            (f64::INFINITY, i64::MIN),
            (9_223_372_036_854_774_784.0, 9_223_372_036_854_774_784),
        ] {
            assert_eq!(truncated(value), integer, "{value}");
        }
    }

    #[test]
    fn a_big_number_keeps_to_its_line() {
        let mut out = Vec::new();
        write_big_number(&mut out, Protocol::Resp2, b"12\r\n3");
        write_big_number(&mut out, Protocol::Resp3, b"12\r\n3");
        assert_eq!(out, b"$5\r\n12  3\r\n(12  3\r\n");
    }

    #[test]
    fn a_format_has_three_bytes() {
        let mut out = Vec::new();
        write_verbatim(&mut out, Protocol::Resp3, b"t", b"ab");
        write_verbatim(&mut out, Protocol::Resp3, b"long", b"");
        assert_eq!(out, b"=6\r\nt  :ab\r\n=4\r\nlon:\r\n");
    }
}
