//! Load from `redis-benchmark`, pinned to the last processor so that it leaves the first ones to the server.

use std::process::Command;

use crate::Result;

/// What it sends.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    /// One of its own tests (`-t`).
    Named(&'static str),
    /// A command of ours, in which `__rand_int__` is replaced.
    Command(&'static [&'static str]),
}

/// A run of it.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// What is sent.
    pub test: Test,
    /// Requests in all.
    pub requests: usize,
    /// Requests sent at once by a client.
    pub pipeline: usize,
    /// Connections.
    pub clients: usize,
    /// Different keys, fields or members.
    pub keys: usize,
    /// Whether it talks to the shards directly.
    pub cluster: bool,
}

/// Bytes of a value.
pub const VALUE_BYTES: usize = 64;

/// What came of a run.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// Requests a second.
    pub requests_a_second: f64,
    /// Median latency, in ms.
    pub median_ms: f64,
    /// The latency that one request in a hundred is above, in ms.
    pub p99_ms: f64,
}

impl Load {
    /// Runs it against the server on `port`.
    pub fn run(&self, port: u16) -> Result<Speed> {
        let mut command = self.command(port);
        let output = command.output().map_err(|error| format!("taskset: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        match parse(&text) {
            Some(speed) if output.status.success() => Ok(speed),
            _ => Err(format!("{command:?} failed: {text}{}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn command(&self, port: u16) -> Command {
        let last_processor = std::thread::available_parallelism().map_or(0, |count| count.get() - 1);
        let mut command = Command::new("taskset");
        command.args(["-c", &last_processor.to_string(), "redis-benchmark", "--csv", "-h", "127.0.0.1"]);
        for (flag, number) in [
            ("-p", usize::from(port)),
            ("-n", self.requests),
            ("-c", self.clients),
            ("-P", self.pipeline),
            ("-d", VALUE_BYTES),
            ("-r", self.keys),
        ] {
            command.arg(flag).arg(number.to_string());
        }
        if self.cluster {
            command.arg("--cluster");
        }
        match self.test {
            Test::Named(name) => command.args(["-t", name]),
            Test::Command(words) => command.args(words),
        };
        command
    }
}

/// Reads the last line: name, requests a second, and latencies (average, minimum, p50, p95, p99, maximum).
fn parse(csv: &str) -> Option<Speed> {
    // Names may hold commas, so the figures are counted from the end.
    let cells: Vec<&str> = csv.lines().rfind(|line| line.starts_with('"'))?.rsplit(',').collect();
    let number = |from_end: usize| cells.get(from_end)?.trim().trim_matches('"').parse::<f64>().ok();
    Some(Speed { requests_a_second: number(6)?, median_ms: number(3)?, p99_ms: number(1)? })
}
