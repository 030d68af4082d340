//! What a core counts.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// Samples of the rates that `INFO` shows: one a tick, over 1.6 s.
const SAMPLES: usize = 16;

/// A core's counters since its start (or `CONFIG RESETSTAT`).
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Connections accepted.
    pub connections: u64,
    /// Connections refused because there were too many.
    pub rejected_connections: u64,
    /// Commands executed for this core's clients.
    pub commands: u64,
    /// Commands this core's clients sent that other cores executed.
    pub forwarded: u64,
    /// Commands executed on this core's shard, for clients of any core.
    pub shard_commands: u64,
    /// `MOVED` replies.
    pub moved: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Read and write system calls on sockets.
    pub reads: u64,
    /// The same for writing.
    pub writes: u64,
    /// Clients disconnected because of an output buffer limit.
    pub output_limit_disconnections: u64,
    /// The same because of the query buffer limit.
    pub query_limit_disconnections: u64,
    /// Errors replied, by their code.
    pub errors: BTreeMap<String, u64>,
    /// Errors replied.
    pub error_replies: u64,
    /// Times active expiry stopped because its time was up.
    pub expire_time_cap_reached: u64,
    /// Turns taken.
    pub turns: u64,
    /// Nanoseconds without a turn: asleep, or on the look-out for a client's next request.
    pub idle_ns: u64,
    /// Nanoseconds of commands that scripts called, which are in their scripts' own.
    pub nested_ns: u64,
    /// The core's clock when counting began.
    pub since: u64,
    /// Rates over the last ticks.
    pub rates: Rates,
}

/// Codes of errors counted apart; what comes after that many different ones is counted together.
const MAX_ERROR_CODES: usize = 128;

impl Counters {
    /// Counts an error reply by its code.
    pub fn count_error(&mut self, code: &str) {
        if let Some(count) = self.errors.get_mut(code) {
            *count += 1;
        } else {
            let code = if self.errors.len() < MAX_ERROR_CODES { code } else { "OTHER" };
            *self.errors.entry(code.to_owned()).or_default() += 1;
        }
    }
}

impl Counters {
    /// Adds another core's counts; rates, and what only a core's own clock tells, are left alone.
    pub fn merge(&mut self, other: &Counters) {
        self.connections += other.connections;
        self.rejected_connections += other.rejected_connections;
        self.commands += other.commands;
        self.forwarded += other.forwarded;
        self.shard_commands += other.shard_commands;
        self.moved += other.moved;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.reads += other.reads;
        self.writes += other.writes;
        self.output_limit_disconnections += other.output_limit_disconnections;
        self.query_limit_disconnections += other.query_limit_disconnections;
        self.error_replies += other.error_replies;
        self.expire_time_cap_reached += other.expire_time_cap_reached;
        self.turns += other.turns;
        for (code, count) in &other.errors {
            *self.errors.entry(code.clone()).or_default() += count;
        }
    }
}

/// Counter values at the last ticks.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    samples: [Sample; SAMPLES],
    next: usize,
}

/// Counters at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// When, in ms since the epoch.
    pub time_ms: i64,
    /// Commands executed.
    pub commands: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Turns taken.
    pub turns: u64,
    /// Nanoseconds spent in them.
    pub busy_ns: u64,
}

impl Rates {
    /// Turns a second, and the nanoseconds a second spent in them.
    pub fn turns_per_second(&self) -> (f64, f64) {
        let (turns, busy_ns, _) = self.since_earliest(|sample| (sample.turns, sample.busy_ns, 0)).unwrap_or_default();
        (turns, busy_ns)
    }

    /// Adds the sample of a tick.
    pub fn push(&mut self, sample: Sample) {
        self.samples[self.next] = sample;
        self.next = (self.next + 1) % SAMPLES;
    }

    /// Commands, bytes in and bytes out a second.
    pub fn per_second(&self) -> (f64, f64, f64) {
        self.since_earliest(|sample| (sample.commands, sample.bytes_in, sample.bytes_out)).unwrap_or_default()
    }

    /// How fast counters have risen since the earliest sample, a second.
    fn since_earliest(&self, counters: impl Fn(&Sample) -> (u64, u64, u64)) -> Option<(f64, f64, f64)> {
        let latest = &self.samples[(self.next + SAMPLES - 1) % SAMPLES];
        let earliest = &self.samples[self.next];
        let elapsed_s = (latest.time_ms - earliest.time_ms) as f64 / 1000.0;
        if earliest.time_ms == 0 || elapsed_s <= 0.0 {
            return None;
        }
        let rate = |late: u64, early: u64| late.saturating_sub(early) as f64 / elapsed_s;
        let (late, early) = (counters(latest), counters(earliest));
        Some((rate(late.0, early.0), rate(late.1, early.1), rate(late.2, early.2)))
    }
}

/// What a core counts about one command.
#[derive(Clone, Debug, Default)]
pub struct CommandStats {
    /// Times executed.
    pub calls: u64,
    /// Nanoseconds spent on it.
    pub total_ns: u64,
    /// Times refused before it ran.
    pub rejected: u64,
    /// Times it ran and replied an error.
    pub failed: u64,
    /// How long each call took, in ns.
    pub latencies: Option<Box<Histogram<u64>>>,
}

impl CommandStats {
    /// Notes a call.
    #[inline]
    pub fn record(&mut self, duration_ns: u64, failed: bool, latencies: bool) {
        self.calls += 1;
        self.total_ns += duration_ns;
        self.failed += u64::from(failed);
        if latencies {
            self.latencies.get_or_insert_with(new_histogram).saturating_record(duration_ns.max(1));
        }
    }

    /// Notes that a call which is counted was refused after all.
    #[cold]
    pub fn take_back(&mut self) {
        self.calls = self.calls.saturating_sub(1);
        self.rejected += 1;
    }

    /// Adds another core's counts.
    pub fn merge(&mut self, other: &CommandStats) {
        self.calls += other.calls;
        self.total_ns += other.total_ns;
        self.rejected += other.rejected;
        self.failed += other.failed;
        if let Some(latencies) = &other.latencies {
            let merged = self.latencies.get_or_insert_with(new_histogram);
            // Both have the same bounds, so every value fits.
            let _ = merged.add(latencies.as_ref());
        }
    }
}

/// 1 ns to 1 s with two digits, as Redis keeps it.
#[cold]
fn new_histogram() -> Box<Histogram<u64>> {
    Box::new(Histogram::new_with_bounds(1, 1_000_000_000, 2).expect("constant bounds"))
}
