//! The longest pause of a server while it is filled: the longest time that a client which sends a few commands at a
//! time, and nothing meanwhile, waits for their replies.

use std::time::{Duration, Instant};

use crate::connection::Batch;
use crate::process::WaitForProcessor;
use crate::server::{Kind, Programs};
use crate::table::{Table, Target, figure};
use crate::{Effort, Result};

const KEYS: usize = 5_000_000;

/// Commands sent at once: few, so that a round trip is short beside a pause.
const BATCH: usize = 16;

/// Round trips up to this many are counted by their length in steps of 1 µs.
const COUNTED_US: usize = 100_000;

/// The longest pause there may be, in ms.
const TARGET_MS: f64 = 5.0;

/// Round trips of a load.
struct RoundTrips {
    longest: Duration,
    /// How long the client's thread and the server's threads waited for a processor during the longest.
    waited_for_processor: Duration,
    /// The longest once what each waited for a processor is taken off: what the server itself is to blame for.
    longest_without_waiting: Duration,
    counts: Vec<u32>,
}

impl RoundTrips {
    fn add(&mut self, length: Duration, waited: Duration) {
        if length > self.longest {
            self.longest = length;
            self.waited_for_processor = waited;
        }
        self.longest_without_waiting = self.longest_without_waiting.max(length.saturating_sub(waited));
        self.counts[(length.as_micros() as usize).min(COUNTED_US)] += 1;
    }

    /// The length that one round trip in a thousand is above.
    fn p999(&self) -> Duration {
        let mut above = self.counts.iter().map(|&count| u64::from(count)).sum::<u64>() / 1000;
        for (micros, &count) in self.counts.iter().enumerate().rev() {
            match above.checked_sub(u64::from(count)) {
                Some(rest) => above = rest,
                None => return Duration::from_micros(micros as u64),
            }
        }
        Duration::ZERO
    }
}

fn load(programs: &Programs, kind: Kind, keys: usize) -> Result<Option<RoundTrips>> {
    let Some(server) = programs.start(kind)? else { return Ok(None) };
    let mut connection = server.connect()?;
    let value = [b'x'; 64];
    let waits = WaitForProcessor::of_this_thread_and(server.process_id());
    let mut round_trips = RoundTrips {
        longest: Duration::ZERO,
        waited_for_processor: Duration::ZERO,
        longest_without_waiting: Duration::ZERO,
        counts: vec![0; COUNTED_US + 1],
    };
    let mut batch = Batch::default();
    let mut waited = waits.total();
    for start in (0..keys).step_by(BATCH) {
        batch.clear();
        for number in start..keys.min(start + BATCH) {
            batch.push(&[b"SET", format!("k:{number}").as_bytes(), &value]);
        }
        let begin = Instant::now();
        connection.send(&batch)?;
        let length = begin.elapsed();
        let before = std::mem::replace(&mut waited, waits.total());
        round_trips.add(length, waited.saturating_sub(before));
    }
    Ok(Some(round_trips))
}

/// Fills Redis, where installed, and Ruvio.
pub fn measure(programs: &Programs, effort: Effort) -> Result<Table> {
    let keys = effort.keys(KEYS);
    let redis = load(programs, Kind::Redis, keys)?;
    let ruvio = load(programs, Kind::Ruvio { shards: 1 }, keys)?;
    let title = format!("Round trips while {keys} keys of 64 bytes are set, {BATCH} at a time, into one shard (ms)");
    let mut table = Table::new(title, &["", "Redis", "Ruvio", "ratio", "target", "met"]);
    let mut add = |name: &str, length: fn(&RoundTrips) -> Duration, target: Target| {
        let ms = |trips: &RoundTrips| length(trips).as_secs_f64() * 1000.0;
        let (redis, ruvio) = (redis.as_ref().map(ms), ruvio.as_ref().map(ms));
        let ratio = redis.zip(ruvio).map(|(redis, ruvio)| ruvio / redis).filter(|ratio| ratio.is_finite());
        let (target, met) = target.cells(ruvio);
        table.row([name.to_owned(), figure(redis, 2), figure(ruvio, 2), figure(ratio, 2), target, met]);
    };
    add("longest", |trips| trips.longest, Target::AtMost(TARGET_MS));
    add("waiting for a processor in it", |trips| trips.waited_for_processor, Target::None);
    add("longest without such waiting", |trips| trips.longest_without_waiting, Target::None);
    add("99.9 % within", RoundTrips::p999, Target::None);
    Ok(table)
}
