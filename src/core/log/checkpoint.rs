//! Checkpoints: an image of the shard at one position of its log, after which older segments are of no use.
//!
//! The core makes the image a little at a time, between its other work (see `ruvio_shard::image`); a thread writes it, so
//! that the core waits for no disk. When the disk does not keep up, the core makes less of it. The image gets its name
//! only once it is on stable storage, and only then what it replaces is removed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{SystemTime, UNIX_EPOCH};

use super::SEGMENT_BYTES;
use crate::core::Core;
use crate::core::mailbox::Message;
use crate::data;
use crate::process::Process;

/// Bytes of an image that are handed to its writer at once, at least.
const CHUNK_BYTES: usize = 512 << 10;

/// Chunks that may wait for the writer.
const CHUNKS: usize = 2;

/// Bytes that may wait here besides, for as long as the writer has no room. What is saved before it changes comes on top.
const WAITING_BYTES: usize = 2 << 20;

/// Bytes that the kernel is given at once. It interrupts itself for nobody, so that a long write would have clients wait on the
/// writer's processor.
const WRITE_BYTES: usize = 64 << 10;

/// Bytes after which the kernel is told to store what was written: little is left to do for the sync at the end, and for
/// the log's syncs, which may have to wait for all that is unstored in the file system.
const STORED_EVERY_BYTES: u64 = 4 << 20;

/// Entries saved between two looks at the clock.
const STEP: usize = 64;

/// After one that failed, this long passes until the next is begun by itself, in ms.
const RETRY_MS: i64 = 10_000;

/// What the writer of an image is told.
enum Part {
    /// The next bytes.
    Bytes(Vec<u8>),
    /// That was all.
    End,
}

/// Told when a checkpoint has ended: nothing, or what went wrong.
type Told = Box<dyn FnOnce(&mut Core, &Result<(), String>)>;

/// What a core knows of its checkpoints.
#[derive(Default)]
pub struct Checkpoints {
    /// Whether one is to be begun.
    wanted: bool,
    /// Who is told when the one that is wanted, or under way, has ended.
    told: Vec<Told>,
    /// The one under way.
    current: Option<Checkpoint>,
    /// Whether the image of one that failed is still walked over, so that all entries get the same mark.
    is_clearing: bool,
    /// The position of the log at the last one.
    pub position: u64,
    /// Bytes of the last one.
    pub bytes: u64,
    /// Whether the last one failed.
    pub failed: bool,
    retry_ms: i64,
}

struct Checkpoint {
    position: u64,
    /// Whether the log goes on behind it in new files, because the ones before are given up.
    is_renewal: bool,
    /// `None` once all is handed over.
    writer: Option<SyncSender<Part>>,
    /// What the writer had no room for.
    refused: Option<Part>,
    is_image_done: bool,
}

impl Checkpoints {
    /// After a start that has read a checkpoint of `bytes` bytes at `position`.
    pub fn after(position: u64, bytes: u64) -> Checkpoints {
        Checkpoints { position, bytes, ..Checkpoints::default() }
    }

    /// Whether one is wanted or under way.
    pub fn is_busy(&self) -> bool {
        self.wanted || self.current.is_some()
    }
}

impl Core {
    /// Has a checkpoint made as soon as may be; `told` is called when it has ended.
    pub fn want_checkpoint(&mut self, told: Option<Told>) {
        let Some(log) = &mut self.log else { return };
        log.checkpoints.wanted |= log.checkpoints.current.is_none();
        log.checkpoints.told.extend(told);
    }

    /// Whether a checkpoint is wanted or under way here.
    pub fn makes_checkpoint(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.checkpoints.is_busy())
    }

    /// Begins the checkpoint that is wanted, if the log is where one can begin: between two writes, or given up. Where nobody
    /// knows when that will be, for a write waits for space, it has failed.
    #[inline]
    pub(super) fn begin_checkpoint(&mut self) {
        let now_ms = self.now_ms;
        let Some(log) = &self.log else { return };
        let is_renewal = log.writer.trouble().is_some() && log.writer.wants_renewal(now_ms);
        let is_between = log.checkpoints.wanted && log.writer.buffer.is_empty() && !log.writer.is_broken();
        if (is_renewal || is_between) && log.checkpoints.current.is_none() && !log.checkpoints.is_clearing {
            self.begin_checkpoint_now(is_renewal);
        } else if let Some(trouble) = log.writer.trouble()
            && trouble.awaits_space()
            && log.checkpoints.wanted
        {
            self.refuse_checkpoint(trouble.describe());
        }
    }

    /// Fails the checkpoint that is wanted, before it has begun.
    fn refuse_checkpoint(&mut self, problem: String) {
        if let Some(log) = &mut self.log {
            log.checkpoints.wanted = false;
        }
        self.report_checkpoint(Err(problem));
    }

    fn begin_checkpoint_now(&mut self, is_renewal: bool) {
        let now_ms = self.now_ms;
        let Some(log) = &mut self.log else { return };
        let position = if is_renewal {
            match log.writer.begin_renewal(now_ms) {
                Ok(position) => position,
                Err(error) if log.checkpoints.wanted => {
                    return self.refuse_checkpoint(format!("the log cannot be renewed: {error}"));
                }
                Err(_) => return,
            }
        } else {
            let position = log.writer.buffer.end();
            if let Err(error) = log.writer.rotate_at(position) {
                return self.refuse_checkpoint(format!("no room for the log behind it: {error}"));
            }
            position
        };
        let began = self.shard.keys.begin_image(&log.writer.header(position));
        debug_assert!(began, "an image ends with its checkpoint");
        log.checkpoints.wanted = false;
        let (sender, receiver) = sync_channel(CHUNKS);
        let directory = log.writer.disk.path().to_owned();
        let (number, process) = (self.number, Arc::clone(&self.process));
        let write = move || {
            let result = write_image(&directory, position, &receiver, number, &process);
            let ended = move |core: &mut Core| core.end_checkpoint(result);
            process.cores[number].deliver(Message::Task(Box::new(ended)), &process.stopping);
        };
        let spawned = std::thread::Builder::new().name(format!("checkpoint-{number}")).spawn(write);
        log.checkpoints.current =
            Some(Checkpoint { position, is_renewal, writer: Some(sender), refused: None, is_image_done: false });
        if let Err(error) = spawned {
            self.end_checkpoint(Err(format!("cannot start a thread: {error}")));
        }
    }

    /// Whether there is something to do for a checkpoint now.
    #[inline]
    pub(in crate::core) fn has_checkpoint_work(&self) -> bool {
        self.log.as_ref().is_some_and(|log| match &log.checkpoints.current {
            Some(checkpoint) => {
                checkpoint.refused.is_none() && (checkpoint.writer.is_some() || !checkpoint.is_image_done)
            }
            None => log.checkpoints.is_clearing,
        })
    }

    /// Saves a little more, and hands it over; true while there is more to do now.
    pub(in crate::core) fn advance_checkpoint(&mut self) -> bool {
        let Some(log) = &mut self.log else { return false };
        let keys = &mut self.shard.keys;
        let Some(checkpoint) = &mut log.checkpoints.current else {
            if log.checkpoints.is_clearing && keys.advance_image(STEP) {
                keys.end_image();
                log.checkpoints.is_clearing = false;
                self.begin_checkpoint();
            }
            return self.has_checkpoint_work();
        };
        if !checkpoint.is_image_done && keys.image().is_some_and(|image| image.waiting_bytes() < WAITING_BYTES) {
            checkpoint.is_image_done = keys.advance_image(STEP);
        }
        let (waiting_bytes, is_abandoned) =
            keys.image().map_or((0, true), |image| (image.waiting_bytes(), image.is_abandoned()));
        if is_abandoned {
            // Whoever writes it sees that the end is missing.
            checkpoint.writer = None;
        } else if waiting_bytes >= CHUNK_BYTES || checkpoint.is_image_done {
            self.hand_over();
        }
        self.finish_image();
        self.has_checkpoint_work()
    }

    /// Hands what is saved to the writer, as far as it has room.
    fn hand_over(&mut self) {
        let Some(checkpoint) = self.log.as_mut().and_then(|log| log.checkpoints.current.as_mut()) else { return };
        loop {
            let Some(writer) = &checkpoint.writer else { return };
            let part = match checkpoint.refused.take() {
                Some(part) => part,
                None => match self.shard.keys.image().map(|image| image.take().1).filter(|bytes| !bytes.is_empty()) {
                    Some(bytes) => Part::Bytes(bytes),
                    None if checkpoint.is_image_done => Part::End,
                    None => return,
                },
            };
            let is_end = matches!(part, Part::End);
            match writer.try_send(part) {
                Ok(()) if is_end => checkpoint.writer = None,
                Ok(()) => {}
                Err(TrySendError::Full(part)) => {
                    checkpoint.refused = Some(part);
                    return;
                }
                // It has failed, and says so.
                Err(TrySendError::Disconnected(_)) => {
                    checkpoint.writer = None;
                    self.shard.keys.abandon_image();
                    return;
                }
            }
        }
    }

    /// Lets go of the image when all of it is made and handed over.
    fn finish_image(&mut self) {
        let Some(checkpoint) = self.log.as_ref().and_then(|log| log.checkpoints.current.as_ref()) else { return };
        if checkpoint.is_image_done && checkpoint.writer.is_none() {
            self.shard.keys.end_image();
        }
    }

    /// Goes on when the writer has room again.
    fn continue_checkpoint(&mut self) {
        if let Some(checkpoint) = self.log.as_mut().and_then(|log| log.checkpoints.current.as_mut())
            && checkpoint.refused.is_some()
        {
            self.hand_over();
            self.finish_image();
        }
    }

    /// Takes note that the writer has ended.
    fn end_checkpoint(&mut self, result: Result<u64, String>) {
        let now_ms = self.now_ms;
        let Some(log) = &mut self.log else { return };
        let Some(checkpoint) = log.checkpoints.current.take() else { return };
        if checkpoint.is_image_done {
            self.shard.keys.end_image();
        } else {
            // All entries have to get the same mark before another one can begin.
            self.shard.keys.abandon_image();
            log.checkpoints.is_clearing = true;
        }
        if checkpoint.is_renewal {
            log.writer.end_renewal(result.is_ok(), now_ms);
        }
        self.report_checkpoint(result.map(|bytes| (checkpoint.position, bytes)));
        // A renewed log has replies to send.
        self.advance_log();
    }

    /// Notes how a checkpoint has ended: its position and its bytes, or why it failed.
    fn report_checkpoint(&mut self, result: Result<(u64, u64), String>) {
        let now_ms = self.now_ms;
        let Some(log) = &mut self.log else { return };
        log.checkpoints.failed = result.is_err();
        let result = match result {
            Ok((position, bytes)) => {
                log.checkpoints.position = position;
                log.checkpoints.bytes = bytes;
                let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
                self.process.last_save_s.store(now_s, Ordering::Relaxed);
                Ok(())
            }
            Err(problem) => {
                log.checkpoints.retry_ms = now_ms + RETRY_MS;
                eprintln!("ruvio: the checkpoint of shard {} failed: {problem}", self.number);
                Err(problem)
            }
        };
        for told in std::mem::take(&mut log.checkpoints.told) {
            told(self, &result);
        }
    }

    /// Wants a checkpoint when the log has grown enough since the last one.
    pub(super) fn want_checkpoint_in_time(&mut self) {
        let (now_ms, configuration) = (self.now_ms, Arc::clone(&self.configuration));
        let Some(log) = &mut self.log else { return };
        let grown = log.writer.buffer.end() - log.checkpoints.position;
        let allowed = u128::from(log.checkpoints.bytes) * u128::from(configuration.log_growth_percentage) / 100;
        // Within the disk space that is reserved for a segment anyway, a small shard is not saved all the time.
        let min_bytes = configuration.log_growth_min_bytes;
        let is_due = configuration.log_growth_percentage > 0
            && grown > min_bytes
            && u128::from(grown) > allowed + u128::from(min_bytes.min(SEGMENT_BYTES));
        if is_due && !log.checkpoints.is_busy() && now_ms >= log.checkpoints.retry_ms {
            log.checkpoints.wanted = true;
        }
    }
}

/// Writes an image to its end, gives it its name, and removes what it replaces. Returns its length in bytes.
fn write_image(
    directory: &Path,
    position: u64,
    parts: &Receiver<Part>,
    number: usize,
    process: &Arc<Process>,
) -> Result<u64, String> {
    process.run_anywhere();
    Process::give_way();
    let path = directory.join("checkpoint.new");
    let written = write_parts(&path, parts, number, process).and_then(|bytes| {
        // A checkpoint is of use only with the segment behind it, which had its name before.
        data::sync_directory(directory)?;
        fs::rename(&path, data::checkpoint_path(directory, position))?;
        data::sync_directory(directory)?;
        Ok(bytes)
    });
    match written {
        Ok(bytes) => {
            remove_older(directory, position).map_err(|error| format!("cannot remove older files: {error}"))?;
            Ok(bytes)
        }
        Err(error) => {
            // What is left of it is removed at the next start otherwise.
            let _ = fs::remove_file(&path);
            Err(format!("{}: {error}", path.display()))
        }
    }
}

fn write_parts(path: &PathBuf, parts: &Receiver<Part>, number: usize, process: &Arc<Process>) -> io::Result<u64> {
    let mut file = File::create(path)?;
    let (mut bytes, mut begun) = (0, 0);
    loop {
        match parts.recv() {
            Ok(Part::Bytes(part)) => {
                for piece in part.chunks(WRITE_BYTES) {
                    file.write_all(piece)?;
                    bytes += piece.len() as u64;
                    if bytes - begun >= STORED_EVERY_BYTES {
                        begin_storing(&file, begun, bytes)?;
                        begun = bytes;
                    }
                }
                let room = |core: &mut Core| core.continue_checkpoint();
                process.cores[number].deliver(Message::Task(Box::new(room)), &process.stopping);
            }
            Ok(Part::End) => break,
            Err(_) => return Err(io::Error::other("it was given up, because databases were flushed or exchanged")),
        }
    }
    file.sync_all()?;
    Ok(bytes)
}

/// Has the kernel begin to store bytes `from` to `to` of a file, once those are stored that it was told of before. The file is
/// only safe when it is synced.
fn begin_storing(file: &File, from: u64, to: u64) -> io::Result<()> {
    store_range(file, 0, from, libc::SYNC_FILE_RANGE_WAIT_BEFORE)?;
    store_range(file, from, to - from, libc::SYNC_FILE_RANGE_WRITE)
}

/// `sync_file_range(2)`; where there is no such thing, nothing. An error in storing is told once, so not by a later sync.
fn store_range(file: &File, offset: u64, len: u64, flags: libc::c_uint) -> io::Result<()> {
    let in_file = |bytes: u64| libc::off64_t::try_from(bytes).map_err(io::Error::other);
    // SAFETY: the call takes numbers alone, and the descriptor is open as long as `file` is borrowed.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), in_file(offset)?, in_file(len)?, flags) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EIO | libc::ENOSPC | libc::EDQUOT) => Err(error),
        _ => Ok(()),
    }
}

/// Removes segments and checkpoints from before `position`.
pub(super) fn remove_older(directory: &Path, position: u64) -> io::Result<()> {
    for (start, path) in data::segments(directory)?.into_iter().chain(data::checkpoints(directory)?) {
        if start < position {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
