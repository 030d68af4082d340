//! The machine that figures are from.

use std::fs;

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Processor, cores, memory and kernel in one line.
pub fn line() -> String {
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
        .map_or_else(|| "unknown memory".to_owned(), |kib| format!("{:.0} GiB", kib as f64 / 1048576.0));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("machine: {processor}, {cores} cores, {memory}, Linux {}", kernel.trim())
}
