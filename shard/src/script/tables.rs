//! Functions of the table library that are guarded: they go through whole tables without running an instruction.

use std::ffi::c_int;

use mlua::ffi;

use super::base::refuse_protected;
use super::hook::count_work;
use super::shared::{self, State};

/// `table.insert(table, [position,] value)`
pub(super) unsafe extern "C-unwind" fn insert(state: State) -> c_int {
    // SAFETY: called by Lua only, with the upvalue of set-up; nothing here has a destructor. This holds for all
    // functions of this module.
    unsafe {
        refuse_protected(state, 1);
        // Without a position nothing is moved.
        if ffi::lua_gettop(state) > 2 {
            count_elements(state, 1);
        }
        ((*shared::of(state)).stock.insert)(state)
    }
}

/// `table.remove(table [, position])`
pub(super) unsafe extern "C-unwind" fn remove(state: State) -> c_int {
    // SAFETY: as `insert`.
    unsafe {
        if ffi::lua_gettop(state) > 1 {
            count_elements(state, 1);
        }
        ((*shared::of(state)).stock.remove)(state)
    }
}

/// `table.sort(table [, comparison])`
pub(super) unsafe extern "C-unwind" fn sort(state: State) -> c_int {
    /// Comparisons for each element of a large table.
    const COMPARISONS: usize = 16;
    // SAFETY: as `insert`.
    unsafe {
        count_elements(state, COMPARISONS);
        ((*shared::of(state)).stock.sort)(state)
    }
}

/// `table.concat(table [, separator [, first [, last]]])`
pub(super) unsafe extern "C-unwind" fn concat(state: State) -> c_int {
    // SAFETY: as `insert`.
    unsafe {
        count_elements(state, 1);
        ((*shared::of(state)).stock.concat)(state)
    }
}

/// Counts the elements of the table that is the first argument.
///
/// # Safety
///
/// As [`insert`].
unsafe fn count_elements(state: State, weight: usize) {
    // SAFETY: only the length of a table is read.
    unsafe {
        if ffi::lua_type(state, 1) == ffi::LUA_TTABLE {
            let amount = ffi::lua_objlen(state, 1).saturating_mul(weight);
            count_work(state, shared::of(state), amount);
        }
    }
}
