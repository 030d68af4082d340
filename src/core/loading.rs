//! Reading a shard's data at the start, between looks at the sockets, so that clients are told that it goes on.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use ruvio_shard::log::{Header, Start};

use super::log::checkpoint::Checkpoints;
use super::log::disk::RingDisk;
use super::log::recovery::{Progress, Recovery};
use super::log::{Log, SEGMENT_BYTES, Writer};
use super::{Core, LOG};

/// How long the core reads before it looks at its sockets again.
const SLICE: Duration = Duration::from_millis(5);

impl Core {
    /// Begins to read the shard's data, where data is kept.
    pub(super) fn begin_loading(&mut self) {
        let Some(data) = &self.process.data else { return };
        match Recovery::new(data.shard(self.number), self.log_header(0)) {
            Ok(recovery) => {
                self.loading = Some(Box::new(recovery));
                // What may be evicted was evicted then, and is in the log.
                self.shard.keys.settings.maxmemory = 0;
            }
            Err(problem) => self.process.fail(problem),
        }
    }

    fn log_header(&self, position: u64) -> Header {
        Header {
            shard: self.number as u32,
            shards: self.process.options.shards as u32,
            generation: self.process.data.as_ref().map_or(0, |data| data.generation()),
            position,
        }
    }

    /// Reads for a moment; opens the log when all is read.
    pub(super) fn load(&mut self) {
        let Some(recovery) = &mut self.loading else { return };
        match recovery.advance(&mut self.shard, Instant::now() + SLICE) {
            Ok(Progress::More) => {}
            Ok(Progress::Done { position, time_ms, checkpoints }) => {
                let recovery = self.loading.take();
                self.now_ms = self.now_ms.max(time_ms);
                if let Err(error) = self.open_log(position, checkpoints) {
                    self.process.fail(format!("cannot open the log of shard {}: {error}", self.number));
                    return;
                }
                if let Some(recovery) = recovery.filter(|recovery| recovery.read_bytes > 0) {
                    println!(
                        "ruvio: shard {} has read {} bytes, {} records, {} keys",
                        self.number,
                        recovery.read_bytes,
                        recovery.records,
                        self.shard.keys.databases().iter().map(|database| database.len()).sum::<usize>()
                    );
                }
            }
            Err(problem) => {
                self.loading = None;
                self.process.fail(problem);
            }
        }
    }

    fn open_log(&mut self, position: u64, checkpoints: Checkpoints) -> std::io::Result<()> {
        let Some(data) = &self.process.data else { return Ok(()) };
        let start = Start {
            header: self.log_header(position),
            durability: self.configuration.durability,
            segment_bytes: SEGMENT_BYTES,
        };
        let writer = Writer::new(RingDisk::new(data.shard(self.number))?, start, self.now_ms)?;
        let edges = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.epoll, writer.disk.eventfd(), epoll::EventData::new_u64(LOG), edges)?;
        self.log = Some(Log::new(writer, checkpoints));
        self.shard.keys.evicted = Some(Vec::new());
        self.shard.keys.settings = self.configuration.settings.clone();
        self.process.loading.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
}
