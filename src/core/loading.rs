//! Reading a shard's data at the start, between looks at the sockets, so that clients are told that it goes on.
//!
//! Data of another number of shards are divided first (`dividing.rs`). No file is changed, and no log is opened, before every
//! shard could be read: what one cannot read stops the start, and leaves all as it was.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use ruvio_shard::log::{Header, Start};

use super::dividing::Dividing;
use super::log::disk::RingDisk;
use super::log::recovery::{Failure, Progress, Recovery, settings_for_replay};
use super::log::{Log, SEGMENT_BYTES, Writer};
use super::{Core, LOG};

/// How long the core reads before it looks at its sockets again.
const SLICE: Duration = Duration::from_millis(5);

/// How far a core is with the data.
pub enum Loading {
    /// It divides shards of the generation before.
    Dividing(Box<Dividing>),
    /// Others do.
    AwaitingDivision,
    /// It reads its shard.
    Reading(Box<Recovery>),
    /// It has read it, and others have not.
    Read(Box<Recovery>),
}

impl Loading {
    /// Whether there is something to do for this core.
    pub fn is_active(&self) -> bool {
        matches!(self, Loading::Dividing(_) | Loading::Reading(_))
    }

    /// Bytes to be read, and bytes that were.
    pub fn progress(&self) -> (u64, u64) {
        match self {
            Loading::Dividing(dividing) => dividing.progress(),
            Loading::AwaitingDivision => (0, 0),
            Loading::Reading(recovery) | Loading::Read(recovery) => (recovery.total_bytes, recovery.read_bytes),
        }
    }
}

impl Core {
    /// Begins to read the data, where data is kept.
    pub(super) fn begin_loading(&mut self) {
        let process = Arc::clone(&self.process);
        let Some(data) = &process.data else { return };
        self.shard.keys.settings = settings_for_replay(&self.shard.keys.settings);
        let Some(division) = data.division() else { return self.begin_reading() };
        match Dividing::new(self.number, self.process.options.shards, division) {
            Ok(Some(dividing)) => self.loading = Some(Loading::Dividing(Box::new(dividing))),
            Ok(None) => self.loading = Some(Loading::AwaitingDivision),
            Err(failure) => self.fail_loading(&failure),
        }
    }

    /// Begins to read the shard.
    pub(super) fn begin_reading(&mut self) {
        let Some(data) = &self.process.data else { return };
        let recovery = Recovery::new(data.shard(self.number), self.log_header(0), data.names_first_segments())
            .and_then(|recovery| recovery.make_stable().map(|()| recovery));
        match recovery {
            Ok(recovery) => self.loading = Some(Loading::Reading(Box::new(recovery))),
            Err(failure) => self.fail_loading(&failure),
        }
    }

    /// Ends the process, because data cannot be read.
    pub(super) fn fail_loading(&mut self, failure: &Failure) {
        self.loading = None;
        self.process.fail(failure.describe(&self.process.options.dir));
    }

    fn log_header(&self, position: u64) -> Header {
        Header {
            shard: self.number as u32,
            shards: self.process.options.shards as u32,
            generation: self.process.data.as_ref().map_or(0, |data| data.generation()),
            position,
        }
    }

    /// Reads for a moment.
    pub(super) fn load(&mut self) {
        let until = Instant::now() + SLICE;
        let recovery = match &mut self.loading {
            Some(Loading::Reading(recovery)) => recovery,
            Some(Loading::Dividing(_)) => return self.divide(until),
            _ => return,
        };
        match recovery.advance(&mut self.shard, until) {
            Ok(Progress::More) => {}
            Ok(Progress::Done) => self.end_reading(),
            Err(failure) => self.fail_loading(&failure),
        }
    }

    /// Takes note that the shard is read; the last one to do so has all of them open their logs.
    fn end_reading(&mut self) {
        if let Some(Loading::Reading(recovery)) = self.loading.take() {
            if recovery.read_bytes > 0 {
                println!(
                    "ruvio: shard {} has read {} bytes, {} records, {} keys",
                    self.number,
                    recovery.read_bytes,
                    recovery.records(),
                    self.shard.keys.databases().iter().map(|database| database.len()).sum::<usize>()
                );
            }
            self.loading = Some(Loading::Read(recovery));
        }
        if self.process.reading.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.broadcast(Core::end_loading);
            self.send_outboxes();
        }
    }

    /// Opens the log, when every shard is read.
    fn end_loading(&mut self) {
        let Some(Loading::Read(recovery)) = self.loading.take() else { return };
        self.now_ms = self.now_ms.max(recovery.time_ms);
        if let Err(problem) = self.open_log(&recovery) {
            self.process.fail(format!("the log of shard {} cannot go on: {problem}", self.number));
            return;
        }
        if self.process.loading.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.remove_leftovers();
        }
    }

    fn open_log(&mut self, recovery: &Recovery) -> Result<(), String> {
        let Some(data) = &self.process.data else { return Ok(()) };
        recovery.settle()?;
        let start = Start {
            header: self.log_header(recovery.position()),
            durability: self.configuration.durability,
            segment_bytes: SEGMENT_BYTES,
        };
        let failed = |error: std::io::Error| error.to_string();
        let disk = RingDisk::new(data.shard(self.number)).map_err(failed)?;
        disk.work_on(&self.process.log_processors(self.number, start.durability));
        let writer = Writer::new(disk, start, self.now_ms).map_err(|error| error.to_string())?;
        let edges = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.epoll, writer.disk.eventfd(), epoll::EventData::new_u64(LOG), edges)
            .map_err(|error| failed(error.into()))?;
        self.log = Some(Log::new(writer, recovery.checkpoints()));
        self.shard.keys.evicted = Some(Vec::new());
        self.shard.keys.settings = self.configuration.settings.clone();
        Ok(())
    }

    /// Removes what is of no use in the data directory, which takes a while when there is much of it.
    fn remove_leftovers(&self) {
        let process = Arc::clone(&self.process);
        let remove = move || {
            process.run_anywhere();
            let Some(data) = &process.data else { return };
            // What fails here, the next start tries again.
            if let Err(error) = data.raise_format() {
                eprintln!("ruvio: cannot write the manifest of the data directory anew: {error}");
            }
            if let Err(error) = data.remove_leftovers() {
                eprintln!("ruvio: cannot remove what is left of an earlier division into shards: {error}");
            }
        };
        if let Err(error) = std::thread::Builder::new().name("generations".into()).spawn(remove) {
            eprintln!("ruvio: cannot start a thread: {error}");
        }
    }
}
