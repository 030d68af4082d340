//! The whole way of a change to the disk and back, on a disk that fails: a seed is a history, and the same seed the same one.
//!
//! `RUVIO_SEEDS=n` runs n histories of each kind, and `RUVIO_SEED=s` the one with seed s.

mod disk;
mod process;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use ruvio_shard::log::{Durability, HEADER_BYTES};
use ruvio_shard::shard::Shard;

use self::disk::{Name, SimulatedDisk, Weather};
use self::process::{Entry, Fuse, Line, Process, Stopped, execute, new_shard, recover};
use crate::support::databases::call;

const START_MS: i64 = 1_000_000;

/// Histories of each kind, unless told otherwise.
const SEEDS: u64 = 500;

const CALM: Weather = Weather { short: 0, write_error: 0, sync_error: 0, no_space: 0, slow: 0 };

/// Acknowledgements that a cut of the power takes back are made within this time, in ms: two seconds until nothing more is
/// acknowledged, and a tick.
const LOST_MS: i64 = 2100;

/// With a disk on which nothing takes long, they are not older than this, in ms: a second, a tick and two syncs.
const LOST_IN_CALM_MS: i64 = 1150;

fn line(random: &mut SmallRng) -> Line {
    let (key, other, value) = (random.random_range(0..4), random.random_range(0..4), random.random_range(0..30));
    let line = match random.random_range(0..20) {
        0 | 1 => format!("SET s{key} value:{value}"),
        2 => format!("APPEND s{key} {}", "x".repeat(value)),
        3 => format!("INCRBY n{key} {value}"),
        4 => format!("HSET h{key} f{value} v{value}"),
        5 => format!("HDEL h{key} f{value}"),
        6 => format!("SADD t{key} m{value} m{other}"),
        7 => format!("SPOP t{key}"),
        8 => format!("ZADD z{key} {value} m{value}"),
        9 => format!("ZPOPMIN z{key}"),
        10 => format!("RPUSH l{key} e{value} e{other}"),
        11 => format!("LPOP l{key}"),
        12 => format!("DEL s{key} h{key} t{other}"),
        13 => format!("PEXPIRE s{key} {}", value * 50 + 1),
        14 => format!("SET s{key} {value} PX {}", value * 20 + 1),
        15 => format!("RENAME l{key} l{other}"),
        16 => format!("TRANSFER n{key} n{} {value}", (key + 1) % 4),
        17 => format!("SETV v{key} {value}"),
        18 if value == 0 => "FLUSHDB".to_owned(),
        18 => format!("SINTERSTORE t{key} t{other} t1"),
        _ => format!("SETRANGE s{key} {} {}", value * 10, "y".repeat(value + 1)),
    };
    (random.random_range(0..2), line)
}

/// Everything there is, in a form that can be compared.
fn content(shard: &mut Shard, now_ms: i64) -> Vec<String> {
    let mut content = Vec::new();
    for database in 0..2 {
        for kind in ["s", "n", "h", "t", "z", "l", "v"] {
            for key in 0..4 {
                let key = format!("{kind}{key}");
                let line = match kind {
                    "h" => format!("HGETALL {key}"),
                    "t" => format!("SMEMBERS {key}"),
                    "z" => format!("ZRANGE {key} 0 -1 WITHSCORES"),
                    "l" => format!("LRANGE {key} 0 -1"),
                    "v" => format!("GETV {key}"),
                    _ => format!("GET {key}"),
                };
                let mut show = |line: &str| {
                    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                    String::from_utf8(call(shard, database, now_ms, &words).0).expect("text")
                };
                let deadline = show(&format!("PEXPIRETIME {key}"));
                if deadline == ":-2\r\n" {
                    continue;
                }
                let reply = show(&line);
                let mut lines: Vec<&str> = reply.lines().collect();
                if matches!(kind, "h" | "t") {
                    lines.sort_unstable();
                }
                content.push(format!("{database} {key} {lines:?} {deadline}"));
            }
        }
    }
    content
}

/// What a shard holds that has done just this.
fn model(entries: &[Entry], now_ms: i64) -> Vec<String> {
    let mut shard = new_shard();
    for entry in entries {
        for line in &entry.lines {
            execute(&mut shard, entry.time_ms, line);
        }
    }
    content(&mut shard, now_ms)
}

/// What a seed has come to, so that a test can see that its histories are of the kind it means.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    entries: u64,
    refused: u64,
    lost: u64,
    checkpoints: u64,
    renewals: u64,
    delayed: u64,
    power_cuts: u64,
    /// Segments that were taken away.
    missing: u64,
    /// Bytes that were changed.
    damaged: u64,
}

struct History {
    seed: u64,
    random: SmallRng,
    disk: SimulatedDisk,
    terms: (Durability, u64),
    now_ms: i64,
    entries: Vec<Entry>,
    weather: Weather,
    tally: Tally,
}

impl History {
    fn new(seed: u64, durability: Durability, is_calm: bool) -> History {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut chance = |most: u32| if is_calm || random.random_bool(0.4) { 0 } else { random.random_range(0..most) };
        let weather = Weather {
            short: chance(200),
            write_error: chance(60),
            sync_error: chance(100),
            no_space: chance(200),
            slow: chance(200),
        };
        let segment_bytes = random.random_range(700..6000);
        let disk = SimulatedDisk::new(seed);
        History {
            seed,
            random,
            disk,
            terms: (durability, segment_bytes),
            now_ms: START_MS,
            entries: Vec::new(),
            weather,
            tally: Tally::default(),
        }
    }

    /// Starts the process, though it may die on the way.
    fn start(&mut self) -> Process {
        self.disk.set_weather(CALM);
        self.disk.set_now(self.now_ms);
        for attempt in 0.. {
            let dies = attempt < 3 && self.random.random_bool(0.2);
            let mut fuse = Fuse(dies.then(|| self.random.random_range(0..14)));
            match recover(&self.disk, &mut fuse) {
                Ok(found) => {
                    let mut process = Process::new(found, &self.disk, self.terms, self.now_ms);
                    let position = process.writer.buffer.end();
                    self.entries.retain(|entry| entry.end <= position);
                    let found = content(&mut process.shard, self.now_ms);
                    let seed = self.seed;
                    assert_eq!(found, model(&self.entries, self.now_ms), "seed {seed}: the state after a start");
                    self.disk.set_weather(self.weather);
                    return process;
                }
                Err(Stopped::Died) if self.random.random_bool(0.5) => self.cut_power(),
                Err(Stopped::Died) => self.disk.lose_process(),
                Err(Stopped::Refused(problem)) => panic!("seed {}: {problem}, though nothing is missing", self.seed),
            }
        }
        unreachable!("the process starts at last")
    }

    fn cut_power(&mut self) {
        self.disk.cut_power();
        self.tally.power_cuts += 1;
    }

    fn acknowledge(&mut self, process: &Process) {
        let acknowledged = process.writer.acknowledged();
        for entry in self.entries.iter_mut().rev().take_while(|entry| entry.acknowledged_ms.is_none()) {
            if entry.end <= acknowledged {
                entry.acknowledged_ms = Some(self.now_ms);
            }
        }
    }

    fn turn(&mut self, process: &mut Process) {
        self.disk.set_now(self.now_ms);
        process.writer.advance(self.now_ms);
        self.acknowledge(process);
        for _ in 0..self.random.random_range(0..3) {
            let count = if self.random.random_bool(0.2) { 3 } else { 1 };
            let lines: Vec<Line> = (0..count).map(|_| line(&mut self.random)).collect();
            match process.run(self.now_ms, &lines) {
                Ok(entry) => self.entries.extend(entry),
                Err(error) => {
                    assert!(error.starts_with("MISCONF Errors writing to the AOF file: "), "{error}");
                    self.tally.refused += 1;
                }
            }
        }
        process.checkpoint_wanted |= self.random.random_bool(0.01);
        process.end_turn(self.now_ms, &mut self.random);
        self.acknowledge(process);
    }

    /// Lets time pass without commands.
    fn idle(&mut self, process: &mut Process, pause_ms: i64) {
        let until_ms = self.now_ms + pause_ms;
        while self.now_ms < until_ms {
            self.now_ms = (self.now_ms + 30).min(until_ms);
            self.disk.set_now(self.now_ms);
            process.writer.advance(self.now_ms);
            process.end_turn(self.now_ms, &mut self.random);
            self.acknowledge(process);
        }
    }

    /// Ends the process, with the power or alone; what it had acknowledged has to be there again as far as was promised.
    fn crash(&mut self, process: Process) -> Process {
        let seed = self.seed;
        let is_power = self.random.random_bool(0.6);
        let is_calm =
            self.weather.slow + self.weather.sync_error + self.weather.write_error + self.weather.no_space == 0;
        let synced = process.writer.synced();
        self.tally.checkpoints += process.checkpoints;
        self.tally.renewals += process.renewals;
        self.tally.delayed += process.writer.delayed_syncs();
        // A failed sync takes from a process that dies before it has dealt with it what a cut of the power would take.
        let has_lost = self.disk.has_lost();
        let power_cuts = self.tally.power_cuts;
        drop(process);
        if is_power {
            self.cut_power();
        } else {
            self.disk.lose_process();
        }
        self.check_missing(synced);
        let before = self.entries.clone();
        let process = self.start();
        let lost = &before[self.entries.len()..];
        let may_lose = has_lost || self.tally.power_cuts > power_cuts;
        self.tally.lost += lost.len() as u64;
        let acknowledged: Vec<i64> = lost.iter().filter_map(|entry| entry.acknowledged_ms).collect();
        assert!(lost.iter().all(|entry| entry.end > synced), "seed {seed}: lost {lost:?}, synced to {synced}");
        match self.terms.0 {
            Durability::Always => assert!(acknowledged.is_empty(), "seed {seed}: lost {lost:?}"),
            _ if !may_lose => assert!(acknowledged.is_empty(), "seed {seed}: lost {lost:?} with the process"),
            _ => {
                let (first, last) = (acknowledged.first().copied(), acknowledged.last().copied());
                let span_ms = last.unwrap_or_default() - first.unwrap_or_default();
                assert!(span_ms <= LOST_MS, "seed {seed}: lost what was acknowledged in {span_ms} ms: {lost:?}");
                let age_ms = first.map_or(0, |first| self.now_ms - first);
                assert!(!is_calm || age_ms <= LOST_IN_CALM_MS, "seed {seed}: lost after {age_ms} ms: {lost:?}");
            }
        }
        process
    }

    /// The position of the newest checkpoint.
    fn newest_checkpoint(&self) -> u64 {
        let position = |name| if let Name::Checkpoint(position) = name { Some(position) } else { None };
        self.disk.names().into_iter().rev().find_map(position).unwrap_or(0)
    }

    /// A start without a segment that held what was on stable storage, up to `synced`, is refused.
    fn check_missing(&mut self, synced: u64) {
        let names = self.disk.names();
        let checkpoint = self.newest_checkpoint();
        for name in names {
            let Name::Segment(start) = name else { continue };
            if start >= synced || start < checkpoint {
                continue;
            }
            let disk = self.disk.copy();
            disk.remove(name);
            self.tally.missing += 1;
            let missing = format!("the segment at {start} is missing");
            match recover(&disk, &mut Fuse(None)) {
                Err(Stopped::Refused(problem)) if problem == missing => {}
                other => panic!("seed {}: {missing}, and {:?}", self.seed, other.map(|(_, position)| position)),
            }
        }
    }

    /// A start with a changed byte in one of the last records is refused.
    fn check_damaged(&mut self) {
        let checkpoint = self.newest_checkpoint();
        let ends: Vec<u64> = self.entries.iter().rev().map(|entry| entry.end).take(3).collect();
        for end in ends.into_iter().filter(|end| *end > checkpoint) {
            // Every record is longer.
            let position = end - self.random.random_range(1..=20);
            let segment = self.disk.names().into_iter().rev().find_map(|name| match name {
                Name::Segment(start) if start <= position => Some(start),
                _ => None,
            });
            let start = segment.expect("the segment of the record");
            let disk = self.disk.copy();
            disk.damage(Name::Segment(start), HEADER_BYTES + (position - start) as usize);
            self.tally.damaged += 1;
            let found = recover(&disk, &mut Fuse(None));
            assert!(
                matches!(found, Err(Stopped::Refused(_))),
                "seed {}: damage at {position} of {end} is taken for a torn tail",
                self.seed
            );
        }
    }

    fn run(mut self) -> Tally {
        let mut process = self.start();
        for _ in 0..self.random.random_range(20..120) {
            let pause_ms = match self.random.random_range(0..30) {
                0 => self.random.random_range(100..1500),
                _ => self.random.random_range(0..30),
            };
            self.idle(&mut process, pause_ms);
            self.turn(&mut process);
            if self.random.random_bool(0.01) {
                process = self.crash(process);
            }
        }
        // The disk gets well again, and so does the log, with the same process.
        self.weather = CALM;
        self.disk.set_weather(CALM);
        self.idle(&mut process, 30_000);
        let seed = self.seed;
        assert_eq!(process.writer.trouble(), None, "seed {seed}: the disk is well");
        assert!(self.entries.iter().all(|entry| entry.acknowledged_ms.is_some()), "seed {seed}: {:?}", self.entries);
        let now_ms = self.now_ms;
        assert_eq!(content(&mut process.shard, now_ms), model(&self.entries, now_ms), "seed {seed}: the state");
        // What is damaged now was on stable storage, and nothing more is written to say so.
        let end = process.writer.buffer.end();
        self.idle(&mut process, 5_000);
        assert_eq!(process.writer.buffer.end(), end, "seed {seed}: a log that is idle grows");
        self.check_damaged();
        let count = self.entries.len();
        self.crash(process);
        assert_eq!(self.entries.len(), count, "seed {seed}: all was stored long ago");
        self.tally.entries = count as u64;
        self.tally
    }
}

/// Runs the histories of a kind; what they came to together.
fn run_all(durability: Durability, is_calm: bool) -> Tally {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let seeds = match number("RUVIO_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("RUVIO_SEEDS").unwrap_or(SEEDS),
    };
    let mut all = Tally::default();
    for seed in seeds {
        let ran = std::panic::catch_unwind(|| History::new(seed, durability, is_calm).run());
        let Ok(tally) = ran else { panic!("the history of seed {seed} failed: run it alone with RUVIO_SEED={seed}") };
        all.entries += tally.entries;
        all.refused += tally.refused;
        all.lost += tally.lost;
        all.checkpoints += tally.checkpoints;
        all.renewals += tally.renewals;
        all.delayed += tally.delayed;
        all.power_cuts += tally.power_cuts;
        all.missing += tally.missing;
        all.damaged += tally.damaged;
    }
    all
}

/// Whether the usual histories were run, of which there are enough for everything to happen.
fn is_usual_run() -> bool {
    std::env::var_os("RUVIO_SEED").is_none() && std::env::var_os("RUVIO_SEEDS").is_none()
}

#[test]
fn with_always_nothing_acknowledged_is_lost_whatever_the_disk_does() {
    let tally = run_all(Durability::Always, false);
    let happened = [tally.refused, tally.lost, tally.checkpoints, tally.renewals, tally.power_cuts];
    assert!(!is_usual_run() || tally.missing > 10 && tally.damaged > 10, "{tally:?}");
    assert!(!is_usual_run() || happened.iter().all(|count| *count > 10), "{tally:?}");
}

#[test]
fn with_everysec_two_seconds_are_lost_at_most_whatever_the_disk_does() {
    let tally = run_all(Durability::EverySecond, false);
    let happened = [tally.refused, tally.lost, tally.checkpoints, tally.renewals, tally.delayed, tally.power_cuts];
    assert!(!is_usual_run() || happened.iter().all(|count| *count > 10), "{tally:?}");
}

#[test]
fn with_a_disk_that_works_everysec_loses_a_second_and_nothing_is_refused() {
    let tally = run_all(Durability::EverySecond, true);
    assert_eq!((tally.refused, tally.renewals), (0, 0), "{tally:?}");
    assert!(!is_usual_run() || tally.lost > 10 && tally.checkpoints > 10, "{tally:?}");
}

#[test]
fn with_a_disk_that_works_always_loses_nothing_and_refuses_nothing() {
    let tally = run_all(Durability::Always, true);
    assert_eq!((tally.refused, tally.renewals), (0, 0), "{tally:?}");
}

#[test]
fn a_seed_is_a_history() {
    for seed in 0..20 {
        let run = || History::new(seed, Durability::EverySecond, false).run();
        assert_eq!(run(), run(), "seed {seed}");
    }
}
