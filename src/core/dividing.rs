//! Dividing the data among another number of shards: each core takes its part of the old shards, one after the other.
//!
//! An old shard is read whole, as what it was: a command that is logged may have keys that come to lie on different shards
//! now. Then its keys are saved where they belong, and it is freed before the next one is read.

use std::sync::Arc;
use std::time::Instant;

use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::keys::Walk;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

use super::Core;
use super::loading::Loading;
use super::log::recovery::{Failure, Progress, Recovery, settings_for_replay};
use super::mailbox::Message;
use crate::data::Division;

/// Keys, or elements of values, that are freed between two looks at the clock.
const STEP: usize = 256;

/// What a core does with an old shard.
enum Stage {
    Reading(Box<Recovery>),
    Saving(Walk),
    Freeing,
}

/// The work of one core.
pub struct Dividing {
    /// Old shards still to be read, the next one last, and the one in work before them.
    left: Vec<usize>,
    stage: Option<Stage>,
    /// The keys of the old shard in work.
    shard: Option<Shard>,
    total_bytes: u64,
    /// Bytes that were read of earlier ones.
    read_bytes: u64,
}

/// A shard for the keys of an old one.
fn empty_shard(databases: usize, settings: &Settings) -> Shard {
    let meter = MemoryMeter::NONE;
    Shard::new(databases, settings_for_replay(settings), meter, rand::random::<u64>())
}

fn read_old(division: &Division, shard: usize) -> Result<Recovery, Failure> {
    let (directory, header) = division.old_shard(shard);
    Recovery::new(directory, header, division.old_names_first_segments())
}

impl Dividing {
    /// The work of core `number` of `cores`; `None` when there is none.
    pub fn new(number: usize, cores: usize, division: &Division) -> Result<Option<Dividing>, Failure> {
        let mut left: Vec<usize> = (number..division.old_shards()).step_by(cores).collect();
        if left.is_empty() {
            return Ok(None);
        }
        let mut total_bytes = 0;
        for &old in &left {
            total_bytes += read_old(division, old)?.total_bytes;
        }
        left.reverse();
        Ok(Some(Dividing { left, stage: None, shard: None, total_bytes, read_bytes: 0 }))
    }

    /// Bytes to be read, and bytes that were.
    pub fn progress(&self) -> (u64, u64) {
        let reading = if let Some(Stage::Reading(recovery)) = &self.stage { recovery.read_bytes } else { 0 };
        (self.total_bytes, self.read_bytes + reading)
    }
}

impl Core {
    /// Divides for a moment.
    pub(super) fn divide(&mut self, until: Instant) {
        while let Some(Loading::Dividing(_)) = &self.loading
            && Instant::now() < until
        {
            if let Err(failure) = self.divide_some(until) {
                self.fail_loading(&failure);
            }
        }
    }

    /// Takes a step of the work on the old shard at hand.
    fn divide_some(&mut self, until: Instant) -> Result<(), Failure> {
        let process = Arc::clone(&self.process);
        let Some(division) = process.data.as_ref().and_then(|data| data.division()) else { return Ok(()) };
        let Some(Loading::Dividing(work)) = &mut self.loading else { return Ok(()) };
        let Some(&old) = work.left.last() else { return Ok(()) };
        let shard =
            work.shard.get_or_insert_with(|| empty_shard(process.options.databases, &self.configuration.settings));
        match &mut work.stage {
            None => {
                work.stage = Some(Stage::Reading(Box::new(read_old(division, old)?)));
            }
            Some(Stage::Reading(recovery)) => {
                if recovery.advance(shard, until)? == Progress::Done {
                    if let Some(tail) = recovery.tail.as_ref().filter(|tail| tail.bytes > 0) {
                        eprintln!("ruvio: {}", tail.describe("are left out"));
                    }
                    work.read_bytes += recovery.read_bytes;
                    println!(
                        "ruvio: shard {old} of {} has read {} bytes, {} records, and is divided",
                        division.old_shards(),
                        recovery.read_bytes,
                        recovery.records()
                    );
                    work.stage = Some(Stage::Saving(Walk::default()));
                }
            }
            Some(Stage::Saving(walk)) => {
                if !division.save_some(&shard.keys, walk).map_err(Failure::Unreadable)? {
                    for database in 0..shard.keys.databases().len() {
                        shard.keys.flush(database);
                    }
                    work.stage = Some(Stage::Freeing);
                }
            }
            Some(Stage::Freeing) => {
                if shard.keys.reclaim(STEP) {
                    (work.shard, work.stage) = (None, None);
                    work.left.pop();
                    if work.left.is_empty() {
                        self.loading = Some(Loading::AwaitingDivision);
                    }
                    if division.end_one() {
                        self.complete_division();
                    }
                }
            }
        }
        Ok(())
    }

    /// Has the new division put into force, and then every core read its shard.
    fn complete_division(&self) {
        let process = Arc::clone(&self.process);
        let complete = move || {
            process.run_anywhere();
            let Some(data) = &process.data else { return };
            match data.division().map_or(Ok(()), Division::complete) {
                Ok(()) => {
                    println!("ruvio: the data are divided into {} shards", process.cores.len());
                    for core in &process.cores {
                        core.deliver(Message::Task(Box::new(Core::begin_reading)), &process.stopping);
                    }
                }
                Err(problem) => process.fail(problem),
            }
        };
        if let Err(error) = std::thread::Builder::new().name("division".into()).spawn(complete) {
            self.process.fail(format!("cannot start a thread: {error}"));
        }
    }
}
