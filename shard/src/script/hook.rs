//! What happens every so many instructions: the host is asked whether the script may go on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mlua::ffi;

use super::shared::{self, Shared, State};
use super::{HOOK_INSTRUCTIONS, Pulse};

/// Coroutines that may be resumed without a pulse. Each counts instructions of its own, so a script that keeps resuming
/// new ones would never get to [`HOOK_INSTRUCTIONS`].
const RESUMES_MAX: u32 = 64;

/// Has `on_count` called on a thread. Coroutines take it over from the thread that creates them.
///
/// # Safety
///
/// `state` belongs to an interpreter that was set up.
pub(super) unsafe fn install(state: State) {
    // SAFETY: setting a hook allocates nothing.
    unsafe { ffi::lua_sethook(state, Some(on_count), ffi::LUA_MASKCOUNT, HOOK_INSTRUCTIONS) };
}

unsafe extern "C-unwind" fn on_count(state: State, _activation: *mut ffi::lua_Debug) {
    // SAFETY: Lua leaves room for 20 values in a hook, and code runs only in protected calls.
    unsafe { pulse(state, shared::of_interpreter(state)) };
}

/// Counts a resumed coroutine.
///
/// # Safety
///
/// As [`pulse`].
pub(super) unsafe fn count_resume(state: State, shared: *mut Shared) {
    // SAFETY: nothing is borrowed while the host is asked.
    unsafe {
        (*shared).resumes += 1;
        if (*shared).resumes >= RESUMES_MAX {
            (*shared).resumes = 0;
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
