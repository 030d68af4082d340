//! What happens every so many instructions: the host is asked whether the script may go on.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mlua::ffi;

use super::shared::{self, Shared, State};
use super::{HOOK_INSTRUCTIONS, Pulse};

/// Instructions before the first pulse of a run. It finds out whether instructions of this script are costly.
const FIRST_INSTRUCTIONS: c_int = 100;

/// Heap, in bytes, above which single instructions may work on so much that a pulse comes after fewer of them.
const LARGE_HEAP: usize = 4 << 20;

/// Coroutines that may be resumed without a pulse. Each counts instructions of its own, so a script that keeps resuming
/// new ones would never get to [`HOOK_INSTRUCTIONS`].
const RESUMES_MAX: u32 = 64;

/// Bytes or elements that C functions may go through without a pulse.
const WORK_MAX: usize = 1 << 18;

/// Has `on_count` called on a thread, `instructions` from now and then again and again. Coroutines take it over from
/// the thread that creates them.
///
/// # Safety
///
/// `state` belongs to an interpreter that was set up.
unsafe fn arm(state: State, instructions: c_int) {
    // SAFETY: setting a hook allocates nothing.
    unsafe { ffi::lua_sethook(state, Some(on_count), ffi::LUA_MASKCOUNT, instructions) };
}

/// Begins to count for a run.
///
/// # Safety
///
/// `state` is the main thread of an interpreter that was set up.
pub(super) unsafe fn begin(state: State, shared: *mut Shared) {
    // SAFETY: by the caller.
    unsafe {
        (*shared).resumes = 0;
        (*shared).work = 0;
        (*shared).collect_above = 0;
        (*shared).instructions = FIRST_INSTRUCTIONS;
        arm(state, FIRST_INSTRUCTIONS);
    }
}

unsafe extern "C-unwind" fn on_count(state: State, _activation: *mut ffi::lua_Debug) {
    // SAFETY: Lua leaves room for 20 values in a hook, and code runs only in protected calls.
    unsafe {
        let shared = shared::of_interpreter(state);
        if (*shared).run.is_none() {
            return;
        }
        let used = shared::used_memory(state);
        let instructions = match used {
            LARGE_HEAP.. => HOOK_INSTRUCTIONS / 10,
            _ => ((*shared).instructions * 10).min(HOOK_INSTRUCTIONS),
        };
        (*shared).instructions = instructions;
        arm(state, instructions);
        watch(state, shared);
        pulse(state, shared);
    }
}

/// Has the next instruction followed by a pulse when the collector has gone once around: it does so after as much
/// memory as was in use has been taken, however few instructions that took. What it then finds is a userdata that
/// nothing holds.
///
/// # Safety
///
/// `state` runs in a protected call, with two free slots.
#[inline]
pub(super) unsafe fn watch(state: State, shared: *mut Shared) {
    // SAFETY: an error, for want of memory, leaves nothing half done.
    unsafe {
        if !(*shared).is_watch_over {
            return;
        }
        ffi::lua_newuserdata(state, 0);
        ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, (*shared).watch);
        ffi::lua_setmetatable(state, -2);
        ffi::lua_settop(state, -2);
        (*shared).is_watch_over = false;
    }
}

/// The finalizer of what [`watch`] leaves to the collector.
pub(super) unsafe extern "C-unwind" fn on_collected(state: State) -> c_int {
    // SAFETY: called by the collector, on the thread that is running.
    unsafe {
        (*shared::of(state)).is_watch_over = true;
        arm(state, 1);
    }
    0
}

/// Counts a resumed coroutine.
///
/// # Safety
///
/// As [`pulse`].
pub(super) unsafe fn count_resume(state: State, shared: *mut Shared) {
    // SAFETY: by the caller.
    unsafe {
        (*shared).resumes += 1;
        if (*shared).resumes >= RESUMES_MAX {
            (*shared).resumes = 0;
            pulse(state, shared);
        }
    }
}

/// Counts bytes or elements that a C function is about to go through.
///
/// # Safety
///
/// As [`pulse`].
#[inline]
pub(super) unsafe fn count_work(state: State, shared: *mut Shared, amount: usize) {
    // SAFETY: by the caller.
    unsafe {
        (*shared).work = (*shared).work.saturating_add(amount);
        if (*shared).work > WORK_MAX {
            (*shared).work = 0;
            pulse(state, shared);
        }
    }
}

/// Asks the host; raises an error if the script ends here.
///
/// # Safety
///
/// `state` runs in a protected call, and the caller holds nothing that has a destructor.
pub(super) unsafe fn pulse(state: State, shared: *mut Shared) {
    // SAFETY: `run` is copied out, so that nothing of `shared` is borrowed while the host does whatever it likes. The
    // host lives as long as the run.
    unsafe {
        let Some(run) = (*shared).run else { return };
        if !(*shared).killed {
            shared::adjust_pause(state, shared);
            relieve(state, shared);
            let mut host = run.host;
            match catch_unwind(AssertUnwindSafe(|| host.as_mut().pulse())) {
                Ok(Pulse::GoOn) => return,
                Ok(Pulse::Kill) => {}
                Err(panic) => (*shared).panic = Some(panic),
            }
            (*shared).killed = true;
        }
        raise_killed(state);
    }
}

/// Raises the error that ends a killed script. What it is does not matter: nothing can catch it.
///
/// # Safety
///
/// As [`pulse`], with a free slot.
pub(super) unsafe fn raise_killed(state: State) -> ! {
    // SAFETY: the last thing this function does.
    unsafe {
        ffi::lua_pushboolean(state, 0);
        ffi::lua_error(state)
    }
}

/// Collects garbage early when memory gets scarce: this Lua does not do so when an allocation fails.
///
/// # Safety
///
/// `state` runs in a protected call.
unsafe fn relieve(state: State, shared: *mut Shared) {
    // SAFETY: no borrow is held while the collector runs.
    unsafe {
        let limit = (*shared).limits.memory_bytes;
        let threshold = (limit / 4 * 3).max((*shared).collect_above);
        if shared::used_memory(state) > threshold {
            ffi::lua_gc(state, ffi::LUA_GCCOLLECT, 0);
            // What stays is in use. The next collection is worth its time only when something has been added.
            (*shared).collect_above = shared::used_memory(state).saturating_add(limit / 16);
        }
    }
}
