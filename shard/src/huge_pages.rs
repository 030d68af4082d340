//! Has the kernel put huge pages behind a shard's memory, without the shard waiting for it.
//!
//! Finding and clearing a huge page may take milliseconds, and the kernel's own background work (`khugepaged`) takes minutes
//! for a gigabyte. So a thread of its own asks for them: behind memory that is full of small pages already (a collapse,
//! which copies it, most of the time while it stays in use), or behind memory that is going to be used next.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

/// Wishes that may wait.
const WAITING: usize = 1024;

/// Asks for huge pages behind `bytes` at `address`.
struct Wish {
    address: usize,
    bytes: usize,
    /// Set once the memory, which nobody uses yet, is there; nothing for memory in use, which is collapsed.
    ready: Option<Arc<AtomicBool>>,
}

static WISHES: OnceLock<SyncSender<Wish>> = OnceLock::new();

/// Starts the thread, once for the process. Without it huge pages are left to the kernel's own time.
pub fn start() -> io::Result<()> {
    let (sender, receiver) = sync_channel::<Wish>(WAITING);
    if WISHES.set(sender).is_err() {
        return Ok(());
    }
    let grant_all = move || {
        for Wish { address, bytes, ready } in receiver {
            advise(address, bytes, if ready.is_some() { libc::MADV_POPULATE_WRITE } else { libc::MADV_COLLAPSE });
            if let Some(ready) = ready {
                ready.store(true, Ordering::Release);
            }
        }
    };
    std::thread::Builder::new().name("huge-pages".to_owned()).spawn(grant_all)?;
    Ok(())
}

/// Puts huge pages behind `bytes` at `memory`, which is in use, as soon as may be.
pub(crate) fn collapse(memory: NonNull<u8>, bytes: usize) {
    let address = memory.addr().get();
    // Also allows the kernel to do it later, where it cannot now.
    advise(address, bytes, libc::MADV_HUGEPAGE);
    if let Some(wishes) = WISHES.get() {
        // Where too many wait, later will do.
        let _ = wishes.try_send(Wish { address, bytes, ready: None });
    }
}

/// Memory that is made ready.
pub(crate) struct Prepared {
    memory: NonNull<u8>,
    ready: Option<Arc<AtomicBool>>,
}

/// Makes `bytes` at `memory` ready, which was mapped just now and is used by nobody.
pub(crate) fn prepare(memory: NonNull<u8>, bytes: usize) -> Prepared {
    let address = memory.addr().get();
    advise(address, bytes, libc::MADV_HUGEPAGE);
    let ready = Arc::new(AtomicBool::new(false));
    let wish = Wish { address, bytes, ready: Some(Arc::clone(&ready)) };
    let sent = WISHES.get().is_some_and(|wishes| wishes.try_send(wish).is_ok());
    Prepared { memory, ready: sent.then_some(ready) }
}

impl Prepared {
    /// Whether the thread is done with it, or never was asked.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.as_ref().is_none_or(|ready| ready.load(Ordering::Acquire))
    }

    /// The memory, for whoever has waited until [`Prepared::is_ready`].
    pub(crate) fn take(self) -> NonNull<u8> {
        self.memory
    }
}

fn advise(address: usize, bytes: usize, advice: libc::c_int) {
    // SAFETY: none of the three kinds of advice changes the content of memory, whoever it belongs to by now; on what is not
    // mapped any more, and where there are no huge pages, the call fails, and small pages do.
    unsafe { libc::madvise(address as *mut libc::c_void, bytes, advice) };
}
