//! How long a GET takes while a checkpoint is made under a steady load of SETs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::{Batch, Connection};
use crate::keys;
use crate::redis_benchmark::VALUE_BYTES;
use crate::server::{Kind, Programs, Server};
use crate::table::{Table, Target, figure};
use crate::{Effort, Result};

const KEYS: usize = 5_000_000;

/// SETs that are sent each millisecond.
const SETS_A_MS: usize = 50;

/// How long is measured before the checkpoint.
const BEFORE: Duration = Duration::from_secs(8);

/// One set of round trips of GETs.
struct Latencies(Vec<Duration>);

impl Latencies {
    /// The length that this part of a thousand is above, in ms.
    fn above_ms(&mut self, in_a_thousand: usize) -> f64 {
        self.0.sort_unstable();
        let above = self.0.len() * in_a_thousand / 1000;
        self.0.get(self.0.len().saturating_sub(above + 1)).map_or(0.0, |length| length.as_secs_f64() * 1000.0)
    }
}

fn send_sets(server: &Server, keys: usize, stop: &AtomicBool) -> Result<()> {
    let mut connection = server.connect()?;
    let value = "y".repeat(VALUE_BYTES);
    let mut batch = Batch::default();
    let (mut number, mut next) = (0_usize, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        batch.clear();
        for _ in 0..SETS_A_MS {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            batch.push(&["SET", &format!("key:{:012}", (number >> 20) % keys), &value]);
        }
        connection.send(&batch)?;
        next += Duration::from_millis(1);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

fn probe(connection: &mut Connection, keys: usize, mut go_on: impl FnMut() -> bool) -> Result<Latencies> {
    let mut latencies = Latencies(Vec::new());
    let mut batch = Batch::default();
    let mut number = 7_usize;
    while go_on() {
        batch.clear();
        number = (number * 1_103_515_245 + 12_345) % keys;
        batch.push(&["GET", &format!("key:{number:012}")]);
        let begin = Instant::now();
        connection.send(&batch)?;
        latencies.0.push(begin.elapsed());
        thread::sleep(Duration::from_micros(200));
    }
    Ok(latencies)
}

/// Measures before a checkpoint and during it.
pub fn measure(programs: &Programs, effort: Effort) -> Result<Table> {
    let keys = effort.keys(KEYS);
    let kind = Kind::RuvioLogging { shards: 1, durability: "everysec" };
    let server = programs.start(kind)?.ok_or("there is no ruvio")?;
    let mut connection = server.connect()?;
    let value = "x".repeat(VALUE_BYTES);
    keys::load(&mut connection, keys, |number| vec!["SET".to_owned(), format!("key:{number:012}"), value.clone()])?;
    // One checkpoint behind the load, and none by itself.
    connection.call(&["SAVE"])?;
    connection.call(&["CONFIG", "SET", "auto-aof-rewrite-percentage", "0"])?;
    let stop = AtomicBool::new(false);
    let (mut before, mut during, took) = thread::scope(|scope| -> Result<_> {
        let sets = scope.spawn(|| send_sets(&server, keys, &stop));
        let measured = || -> Result<_> {
            let end = Instant::now() + BEFORE;
            let before = probe(&mut connection, keys, || Instant::now() < end)?;
            let done = AtomicBool::new(false);
            let (begin, saving) = (Instant::now(), server.connect()?);
            let (during, took) = thread::scope(|scope| -> Result<_> {
                let save = scope.spawn(|| {
                    let mut saving = saving;
                    let result = saving.call(&["SAVE"]);
                    done.store(true, Ordering::Relaxed);
                    result.map(|()| begin.elapsed())
                });
                let during = probe(&mut connection, keys, || !done.load(Ordering::Relaxed))?;
                Ok((during, save.join().map_err(|_| "the saving thread has panicked")??))
            })?;
            Ok((before, during, took))
        }();
        stop.store(true, Ordering::Relaxed);
        sets.join().map_err(|_| "the writing thread has panicked")??;
        measured
    })?;
    let title = format!(
        "Latency of GET during a checkpoint of {keys} keys ({:.1} s) under {}k SET/s (ms)",
        took.as_secs_f64(),
        SETS_A_MS
    );
    let mut table = Table::new(title, &["", "without", "during", "ratio", "target", "met"]);
    for (name, in_a_thousand, target) in [
        ("p50", 500, Target::None),
        ("p99", 10, Target::None),
        ("p99.9", 1, Target::AtMost(3.0)),
        ("longest", 0, Target::None),
    ] {
        let (without, with) = (before.above_ms(in_a_thousand), during.above_ms(in_a_thousand));
        let ratio = with / without;
        let (target, met) = target.cells(Some(ratio));
        let cells = [figure(Some(without), 3), figure(Some(with), 3), figure(Some(ratio), 2)];
        let [without, with, ratio] = cells;
        table.row([name.to_owned(), without, with, ratio, target, met]);
    }
    Ok(table)
}
