//! What the kernel knows of this process and its machine.

use std::fs;

/// Parts of a second in which the kernel counts processor time (`USER_HZ`, the same on every Linux that Ruvio runs on).
const TICKS_A_SECOND: f64 = 100.0;

/// Bytes of the process that are in memory.
pub fn resident_bytes() -> u64 {
    kilobytes("/proc/self/status", "VmRSS:")
}

/// Bytes of memory the machine has.
pub fn total_memory_bytes() -> u64 {
    kilobytes("/proc/meminfo", "MemTotal:")
}

/// A field that is given in kB, in bytes; 0 where it cannot be read.
fn kilobytes(path: &str, field: &str) -> u64 {
    let Ok(text) = fs::read_to_string(path) else { return 0 };
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let number: Option<u64> = line.and_then(|rest| rest.split_whitespace().next()).and_then(|word| word.parse().ok());
    number.unwrap_or(0) * 1024
}

/// Seconds of processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// The process's, in its own code.
    pub user_s: f64,
    /// The process's, in the kernel.
    pub system_s: f64,
    /// Its ended children's, in their own code.
    pub children_user_s: f64,
    /// Its ended children's, in the kernel.
    pub children_system_s: f64,
}

/// The processor time used so far.
pub fn cpu_time() -> CpuTime {
    fs::read_to_string("/proc/self/stat").ok().and_then(|text| parse_cpu_time(&text)).unwrap_or_default()
}

/// Reads `/proc/self/stat`: the times are the 14th to 17th field, and the second one, in parentheses, may hold spaces.
fn parse_cpu_time(text: &str) -> Option<CpuTime> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut times =
        rest.split_whitespace().skip(11).map(|word| word.parse::<f64>().map(|ticks| ticks / TICKS_A_SECOND));
    let mut next = || times.next()?.ok();
    Some(CpuTime { user_s: next()?, system_s: next()?, children_user_s: next()?, children_system_s: next()? })
}

/// The kernel's name and release, and the processor's architecture.
pub fn kernel() -> String {
    let read = |path| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let (name, release) = (read("/proc/sys/kernel/ostype"), read("/proc/sys/kernel/osrelease"));
    format!("{name} {release} {}", std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_times_are_found_behind_any_program_name() {
        let text = "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 150 25 300 1 20 0 1";
        let expected = CpuTime { user_s: 1.5, system_s: 0.25, children_user_s: 3.0, children_system_s: 0.01 };
        assert_eq!(parse_cpu_time(text), Some(expected));
        assert_eq!(parse_cpu_time("7 (a) R"), None);
    }

    #[test]
    fn the_process_is_in_the_machines_memory() {
        assert!(resident_bytes() > 0 && resident_bytes() < total_memory_bytes());
    }
}
