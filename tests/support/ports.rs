//! Free ports for servers under test, safe for tests that run in parallel in any number of processes.

use std::fs::{self, File};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Ports in one block: the shared port and one a shard, with room to spare.
pub const PORTS_PER_BLOCK: u16 = 20;
/// Below the range Linux hands out to outgoing connections (32768 and up).
const FIRST_PORT: u16 = 12_000;
const BLOCKS: u16 = 900;

static NEXT_BLOCK: AtomicU16 = AtomicU16::new(0);

/// A run of [`PORTS_PER_BLOCK`] ports that nobody else uses while this value lives.
///
/// The claim is a lock on a file, which the kernel gives up when the process ends, however it ends. Programs that know
/// nothing of the lock are found by binding each port once.
pub struct PortBlock {
    first_port: u16,
    _lock: File,
}

impl PortBlock {
    /// Claims a free block.
    pub fn claim() -> PortBlock {
        let directory = std::env::temp_dir().join("ruvio-test-ports");
        fs::create_dir_all(&directory).expect("create the folder of port locks");
        let scatter = (std::process::id() % u32::from(BLOCKS)) as u16;
        for _ in 0..BLOCKS {
            let block = (scatter + NEXT_BLOCK.fetch_add(1, Ordering::Relaxed) % BLOCKS) % BLOCKS;
            let lock = File::create(directory.join(format!("{block}.lock"))).expect("open a port lock");
            if lock.try_lock().is_err() {
                continue;
            }
            let first_port = FIRST_PORT + block * PORTS_PER_BLOCK;
            if (first_port..first_port + PORTS_PER_BLOCK).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
                return PortBlock { first_port, _lock: lock };
            }
        }
        panic!("no free block of {PORTS_PER_BLOCK} ports from {FIRST_PORT} up");
    }

    /// The port at `offset` in the block.
    pub fn port(&self, offset: u16) -> u16 {
        assert!(offset < PORTS_PER_BLOCK, "a block holds {PORTS_PER_BLOCK} ports");
        self.first_port + offset
    }
}
