//! What the kernel knows of a server process.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::Result;

/// CPU time that the process has used, user and system, all threads; in steps of the kernel's clock tick (10 ms).
pub fn cpu_time(process_id: u32) -> Result<Duration> {
    let path = format!("/proc/{process_id}/stat");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    // The second field is the program's name in parentheses and may hold anything; the third is field 0 here.
    let fields: Option<Vec<&str>> = text.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect());
    let ticks = |index: usize| fields.as_ref()?.get(index)?.parse::<u64>().ok();
    let (Some(user), Some(system)) = (ticks(11), ticks(12)) else { return Err(format!("{path} has no CPU times")) };
    let ticks_a_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_secs_f64((user + system) as f64 / ticks_a_second as f64))
}

/// Resident memory of the process, in bytes.
pub fn resident_bytes(process_id: u32) -> Result<u64> {
    let path = format!("/proc/{process_id}/status");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let kib = text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().split(' ').next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| format!("{path} has no VmRSS"))
}

/// Time that threads were ready to run and waited for a processor, where the kernel keeps account of it.
pub struct WaitForProcessor {
    threads: Vec<File>,
}

impl WaitForProcessor {
    /// Of the calling thread and of all threads that the process has now.
    pub fn of_this_thread_and(process_id: u32) -> WaitForProcessor {
        let tasks = fs::read_dir(format!("/proc/{process_id}/task"));
        let paths = tasks.into_iter().flatten().flatten().map(|task| task.path().join("schedstat"));
        let own = std::iter::once("/proc/thread-self/schedstat".into());
        WaitForProcessor { threads: own.chain(paths).filter_map(|path| File::open(path).ok()).collect() }
    }

    /// The sum since they started.
    pub fn total(&self) -> Duration {
        let waited = |file: &File| {
            let mut text = [0; 80];
            let len = file.read_at(&mut text, 0).ok()?;
            std::str::from_utf8(&text[..len]).ok()?.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        Duration::from_nanos(self.threads.iter().filter_map(waited).sum())
    }
}
