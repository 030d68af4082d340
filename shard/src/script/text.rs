//! Functions of the string library that are guarded: those that would recurse, or take time, without bound.

use std::ffi::{CStr, c_int};

use mlua::ffi;

use super::failure::{raise_bare, raise_placed};
use super::hook::count_work;
use super::shared::{self, Shared, State, bytes_at, push_bytes, used_memory};

/// Most items of a pattern that repeat or capture. The matcher calls itself for each of them.
const ITEMS_MAX: usize = 500;

/// Strings that `string.rep` makes longer than this, in bytes, are not left to the standard function, which copies them
/// piece by piece.
const SHORT: usize = 512;

/// `string.find(text, pattern [, start [, plain]])`
pub(super) unsafe extern "C-unwind" fn find(state: State) -> c_int {
    // SAFETY: called by Lua only, with the upvalue of set-up; nothing here has a destructor. This holds for all
    // functions of this module.
    unsafe {
        let shared = shared::of(state);
        if ffi::lua_toboolean(state, 4) == 0 {
            check_pattern(state);
        }
        count_text(state, shared);
        ((*shared).stock.find)(state)
    }
}

/// `string.match(text, pattern [, start])`
pub(super) unsafe extern "C-unwind" fn matching(state: State) -> c_int {
    // SAFETY: as `find`.
    unsafe { guarded(state, |shared| (*shared).stock.matching) }
}

/// `string.gmatch(text, pattern)`
pub(super) unsafe extern "C-unwind" fn gmatch(state: State) -> c_int {
    // SAFETY: as `find`.
    unsafe { guarded(state, |shared| (*shared).stock.gmatch) }
}

/// `string.gsub(text, pattern, replacement [, count])`
pub(super) unsafe extern "C-unwind" fn gsub(state: State) -> c_int {
    // SAFETY: as `find`.
    unsafe { guarded(state, |shared| (*shared).stock.gsub) }
}

/// # Safety
///
/// As [`find`].
unsafe fn guarded(state: State, stock: impl FnOnce(*mut Shared) -> ffi::lua_CFunction) -> c_int {
    // SAFETY: by the caller.
    unsafe {
        let shared = shared::of(state);
        check_pattern(state);
        count_text(state, shared);
        stock(shared)(state)
    }
}

/// Counts the text that is about to be searched.
///
/// # Safety
///
/// As [`find`].
unsafe fn count_text(state: State, shared: *mut Shared) {
    // SAFETY: only the length of a string is read.
    unsafe {
        if ffi::lua_type(state, 1) == ffi::LUA_TSTRING {
            count_work(state, shared, ffi::lua_objlen(state, 1));
        }
    }
}

/// # Safety
///
/// As [`find`].
unsafe fn check_pattern(state: State) {
    // SAFETY: a pattern that is a number has no items.
    unsafe {
        let is_text = ffi::lua_type(state, 2) == ffi::LUA_TSTRING;
        if is_text && bytes_at(state, 2).is_some_and(is_too_complex) {
            raise_placed(state, c"pattern too complex");
        }
    }
}

/// Whether matching a pattern may nest too deep.
fn is_too_complex(pattern: &[u8]) -> bool {
    if pattern.len() <= ITEMS_MAX {
        return false;
    }
    let mut items = 0;
    let mut at = 0;
    while let Some(&byte) = pattern.get(at) {
        at += match byte {
            b'%' if pattern.get(at + 1) == Some(&b'b') => 4,
            b'%' => 2,
            b'[' => set_len(&pattern[at..]),
            _ => 1,
        };
        let is_capture = matches!(byte, b'(' | b')');
        let repeats = !is_capture && matches!(pattern.get(at), Some(b'*' | b'+' | b'-' | b'?'));
        at += usize::from(repeats);
        items += usize::from(is_capture || repeats);
    }
    items > ITEMS_MAX
}

/// Length of the set that a pattern begins with; of all of it when the set is not closed.
fn set_len(pattern: &[u8]) -> usize {
    let mut at = 1 + usize::from(pattern.get(1) == Some(&b'^'));
    // A bracket right at the beginning is a member.
    loop {
        match pattern.get(at) {
            None => return pattern.len(),
            Some(b'%') => at += 2,
            Some(_) => at += 1,
        }
        if pattern.get(at) == Some(&b']') {
            return at + 1;
        }
    }
}

/// `string.rep(text, count)`
pub(super) unsafe extern "C-unwind" fn rep(state: State) -> c_int {
    const NO_MEMORY: &CStr = c"not enough memory";
    // SAFETY: as `find`. The scratch memory belongs to Lua, is as long as what is written to it, and stays on the stack
    // until it was copied.
    unsafe {
        let shared = shared::of(state);
        let mut len = 0;
        let text = ffi::luaL_checklstring(state, 1, &mut len).cast::<u8>();
        let count = ffi::luaL_checkinteger(state, 2) as i32;
        let count = usize::try_from(count).unwrap_or(0);
        if len == 0 || count == 0 {
            push_bytes(state, b"");
            return 1;
        }
        let Some(total) = len.checked_mul(count) else { raise_bare(state, NO_MEMORY) };
        if total <= SHORT {
            return ((*shared).stock.rep)(state);
        }
        let free = (*shared).limits.memory_bytes.saturating_sub(used_memory(state));
        if total > free {
            raise_bare(state, NO_MEMORY);
        }
        let scratch = ffi::lua_newuserdata(state, total).cast::<u8>();
        text.copy_to_nonoverlapping(scratch, len);
        let mut filled = len;
        while filled < total {
            let more = filled.min(total - filled);
            scratch.copy_to_nonoverlapping(scratch.add(filled), more);
            filled += more;
        }
        ffi::lua_pushlstring_(state, scratch.cast(), total);
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_items_that_nest_are_counted() {
        let simple = [
            "a".repeat(10_000),
            "%-".repeat(10_000),
            "[a*+-?]".repeat(2_000),
            "[]*]".repeat(2_000),
            "[^]*%]*]".repeat(2_000),
            "%b()".repeat(2_000),
            "%(".repeat(2_000),
            "a*".repeat(ITEMS_MAX),
        ];
        for pattern in simple {
            assert!(!is_too_complex(pattern.as_bytes()), "{}…", &pattern[..8]);
        }
        let many = ITEMS_MAX + 1;
        let complex = ["a*", "a+", "a-", "a?", ".-", "%a*", "[a]*", "[]]-", "(", "()", "[a*]*"];
        for item in complex {
            assert!(is_too_complex(item.repeat(many).as_bytes()), "{item}");
        }
        assert!(!is_too_complex(format!("[{}", "a".repeat(600)).as_bytes()));
    }
}
