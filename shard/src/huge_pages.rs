//! Has the kernel put huge pages behind a shard's memory, and take memory back, without the shard waiting for it.
//!
//! Finding and clearing a huge page may take milliseconds, and the kernel's own background work (`khugepaged`) takes minutes
//! for a gigabyte. So a thread of its own asks for them: behind memory that is full of small pages already (a collapse,
//! which copies it, most of the time while it stays in use), or behind memory that is going to be used next. It also gives
//! back what is used no more: of a large collection's elements the last few empty nearly all of their chunks at once, and
//! each takes the kernel a tenth of a millisecond or more.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Wishes that may wait.
const WAITING: usize = 1024;

/// How long the thread rests after it has given memory back.
const UNMAP_PAUSE: Duration = Duration::from_micros(300);

/// What is to be done about `bytes` at `address`.
struct Wish {
    address: usize,
    bytes: usize,
    deed: Deed,
}

enum Deed {
    /// Huge pages behind memory in use.
    Collapse,
    /// Huge pages behind memory that nobody uses yet; set once they are there.
    Prepare(Arc<AtomicBool>),
    /// The end of a mapping that nobody uses any more.
    Unmap,
}

static WISHES: OnceLock<SyncSender<Wish>> = OnceLock::new();

/// Starts the thread, once for the process. Without it huge pages are left to the kernel's own time.
pub fn start() -> io::Result<()> {
    let (sender, receiver) = sync_channel::<Wish>(WAITING);
    if WISHES.set(sender).is_err() {
        return Ok(());
    }
    let grant_all = move || {
        for Wish { address, bytes, deed } in receiver {
            match deed {
                Deed::Collapse => advise(address, bytes, libc::MADV_COLLAPSE),
                Deed::Prepare(ready) => {
                    advise(address, bytes, libc::MADV_POPULATE_WRITE);
                    ready.store(true, Ordering::Release);
                }
                Deed::Unmap => {
                    // SAFETY: whoever sent it mapped the memory, and has left it to this thread: see `unmap_later`.
                    unsafe { libc::munmap(address as *mut libc::c_void, bytes) };
                    // Many come at once, and nobody waits for them: others get the processor between two.
                    std::thread::sleep(UNMAP_PAUSE);
                }
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
        let _ = wishes.try_send(Wish { address, bytes, deed: Deed::Collapse });
    }
}

/// Ends a mapping as soon as may be; false where nobody will, so that it is still the caller's.
///
/// # Safety
/// The memory is a mapping of the caller's, and nothing uses it any more.
pub(crate) unsafe fn unmap_later(memory: NonNull<u8>, bytes: usize) -> bool {
    let wish = Wish { address: memory.addr().get(), bytes, deed: Deed::Unmap };
    WISHES.get().is_some_and(|wishes| wishes.try_send(wish).is_ok())
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
    let wish = Wish { address, bytes, deed: Deed::Prepare(Arc::clone(&ready)) };
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
