//! Messages between cores: bounded queues, and waking a core that sleeps.
//!
//! Every core has one inbox that all others push to. What one core sends another arrives in order. A sender whose
//! message finds the inbox full keeps it, and takes no new input from its clients until the inbox has room again; so
//! what is in flight is bounded by the inboxes and by one turn's worth of messages a core.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use rustix::event::EventfdFlags;

use super::Core;
use super::forward::Batch;

/// Messages an inbox holds.
const CAPACITY: usize = 4096;

/// How long a thread that is no core waits for room in a full inbox before it looks again.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// What one core tells another.
pub enum Message {
    /// Commands to execute.
    Forward(Box<Batch>),
    /// The same batch with its replies.
    Replies(Box<Batch>),
    /// Something rarer, which is done even while a script runs.
    Task(Task),
    /// Something with keys.
    Work(Work),
}

/// Work with another core's keys, which waits while a script runs there.
pub struct Work {
    /// The work.
    pub run: Task,
    /// What is done in its place when the script has run for too long; without it the work waits on.
    pub refuse: Option<Task>,
}

/// Something that another core is to do.
pub type Task = Box<dyn FnOnce(&mut Core) + Send>;

/// A core's inbox.
pub struct Mailbox {
    queue: ArrayQueue<Message>,
    /// Set while the core sleeps, or is about to.
    asleep: AtomicBool,
    eventfd: OwnedFd,
}

impl Mailbox {
    /// An empty inbox.
    pub fn new() -> std::io::Result<Mailbox> {
        Ok(Mailbox {
            queue: ArrayQueue::new(CAPACITY),
            asleep: AtomicBool::new(false),
            eventfd: rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
        })
    }

    /// Becomes readable when the core must wake.
    pub fn eventfd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    /// Adds a message without waking the core; returns the message when there is no room.
    pub fn push(&self, message: Message) -> Result<(), Message> {
        self.queue.push(message)
    }

    /// Adds a message and wakes the core, waiting for room where there is none: for threads that are no core. The message
    /// is dropped once `stopping` is set.
    pub fn deliver(&self, mut message: Message, stopping: &AtomicBool) {
        while let Err(refused) = self.push(message) {
            if stopping.load(Ordering::Relaxed) {
                return;
            }
            message = refused;
            std::thread::sleep(FULL_PAUSE);
        }
        self.wake();
    }

    /// The earliest message.
    pub fn pop(&self) -> Option<Message> {
        self.queue.pop()
    }

    /// Wakes the core if it sleeps. To be called after messages were pushed.
    pub fn wake(&self) {
        // Pairs with the fence in `sleep`: either the sleeper sees the message, or this sees that it sleeps.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            // The counter cannot overflow: the flag is set again only after the counter was read.
            let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
        }
    }

    /// Announces that the core is about to sleep; false when a message came meanwhile.
    pub fn sleep(&self) -> bool {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.queue.is_empty() {
            return true;
        }
        self.asleep.store(false, Ordering::Relaxed);
        false
    }

    /// Notes that the core is awake.
    pub fn woke(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Clears the signal that woke the core.
    pub fn clear_signal(&self) {
        let _ = rustix::io::read(&self.eventfd, &mut [0u8; 8]);
    }

    /// Wakes the core whether it sleeps or not.
    pub fn wake_always(&self) {
        let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
