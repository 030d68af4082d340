//! `math.random` and `math.randomseed`: the same numbers on every machine, as in Redis.

use std::ffi::c_int;

use mlua::ffi;

use super::shared::{self, State};

/// The 48-bit linear congruential generator of POSIX (`lrand48`), in the state it has at first.
pub(super) struct Random(u64);

impl Default for Random {
    fn default() -> Random {
        Random(0x1234_abcd_330e)
    }
}

impl Random {
    const MASK: u64 = (1 << 48) - 1;

    /// `srand48`
    pub fn seed(&mut self, seed: i32) {
        self.0 = (u64::from(seed as u32) << 16) | 0x330e;
    }

    /// `lrand48`: 31 bits.
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & Self::MASK;
        (self.0 >> 17) as u32
    }
}

/// `math.random([[low,] high])`
pub(super) unsafe extern "C-unwind" fn random(state: State) -> c_int {
    const MAX: u32 = i32::MAX as u32;
    // SAFETY: a C function of the interpreter; nothing here has a destructor, and errors are raised last.
    unsafe {
        let shared = shared::of(state);
        let unit = f64::from((*shared).random.next() % MAX) / f64::from(MAX);
        let value = match ffi::lua_gettop(state) {
            0 => unit,
            1 => {
                let high = as_int(ffi::luaL_checkinteger(state, 1));
                if high < 1 {
                    ffi::luaL_argerror(state, 1, c"interval is empty".as_ptr());
                }
                (unit * f64::from(high)).floor() + 1.0
            }
            2 => {
                let low = as_int(ffi::luaL_checkinteger(state, 1));
                let high = as_int(ffi::luaL_checkinteger(state, 2));
                if low > high {
                    ffi::luaL_argerror(state, 2, c"interval is empty".as_ptr());
                }
                (unit * (f64::from(high) - f64::from(low) + 1.0)).floor() + f64::from(low)
            }
            _ => return ffi::luaL_error(state, c"wrong number of arguments".as_ptr()),
        };
        ffi::lua_pushnumber(state, value);
    }
    1
}

/// `math.randomseed(seed)`
pub(super) unsafe extern "C-unwind" fn randomseed(state: State) -> c_int {
    // SAFETY: as above.
    unsafe {
        let seed = as_int(ffi::luaL_checkinteger(state, 1));
        (*shared::of(state)).random.seed(seed);
    }
    0
}

/// Lua's integers as C's `int` takes them.
fn as_int(integer: i64) -> i32 {
    integer as i32
}
