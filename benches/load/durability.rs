//! What it costs to keep what is written, and how long it takes to read it back.

use std::time::Duration;

use crate::cpu_per_operation::{CLIENTS, cpu_us, load, thousands_a_second};
use crate::keys;
use crate::redis_benchmark::{Load, Test, VALUE_BYTES};
use crate::rounds::{Rounds, Sample};
use crate::server::{Kind, Programs, Server};
use crate::table::{Table, Target, figure};
use crate::{Effort, Result};

/// Keys that are written.
const KEYS: usize = 1_000_000;

/// Keys that are read back at a start.
const RECOVERED_KEYS: usize = 5_000_000;

/// What is read off a sample.
type Figure = fn(&Sample) -> f64;

fn ruvio(programs: &Programs, shards: u16, durability: &'static str) -> Result<Server> {
    let kind = match durability {
        "memory" => Kind::Ruvio { shards },
        durability => Kind::RuvioLogging { shards, durability },
    };
    programs.start(kind)?.ok_or_else(|| "there is no ruvio".into())
}

/// CPU time of a SET with a log that is synced every second, beside none and beside Redis's.
pub fn cost(programs: &Programs, effort: Effort) -> Result<Table> {
    let load = load(Test::Named("set"), effort.requests(1_000_000), 16, effort.keys(KEYS));
    let (memory, everysec) = (ruvio(programs, 1, "memory")?, ruvio(programs, 1, "everysec")?);
    let redis = programs.start(Kind::RedisAppending { fsync: "everysec" })?;
    let servers: Vec<_> = [&memory, &everysec].into_iter().chain(&redis).map(|server| (server, load)).collect();
    let rounds = Rounds::run(&servers, effort)?;
    let figures = [0, 1, 2].map(|server| rounds.median(server, cpu_us));
    let mut table = Table::new(
        "Server CPU of a SET, pipeline 16, one shard, log synced every second (µs)",
        &["beside", "beside µs", "everysec µs", "ratio", "target", "met"],
    );
    for (beside, server, most) in [("memory", 0, 1.35), ("Redis, appendfsync everysec", 2, 0.45)] {
        let ratio = figures[server].zip(figures[1]).map(|(beside, own)| own / beside);
        let (target, met) = Target::AtMost(most).cells(ratio);
        let cells = [figure(figures[server], 3), figure(figures[1], 3), figure(ratio, 2)];
        let [beside_us, own_us, ratio] = cells;
        table.row([beside.to_owned(), beside_us, own_us, ratio, target, met]);
    }
    Ok(table)
}

/// Writes a second where each is on stable storage before its reply.
pub fn always(programs: &Programs, effort: Effort) -> Result<Table> {
    let mut table = Table::new(
        "SET, pipeline 1, every write on stable storage before its reply",
        &["case", "Redis k/s", "Ruvio k/s", "ratio", "target", "met", "Redis p99 ms", "Ruvio p99 ms"],
    );
    for (name, clients, shards) in [("50 clients, one shard", CLIENTS, 1), ("500 clients, two shards", 500, 2)] {
        let requests = effort.requests(60_000);
        let load = Load { clients, ..load(Test::Named("set"), requests, 1, effort.keys(KEYS)) };
        let own = ruvio(programs, shards, "always")?;
        let redis = programs.start(Kind::RedisAppending { fsync: "always" })?;
        let servers: Vec<_> = redis.iter().chain([&own]).map(|server| (server, load)).collect();
        let rounds = Rounds::run(&servers, effort)?;
        let (redis, own) = if redis.is_some() { (0, 1) } else { (1, 0) };
        let ratio = rounds.ratio(thousands_a_second);
        let (target, met) = Target::AtLeast(1.5).cells(ratio);
        table.row([
            name.to_owned(),
            figure(rounds.median(redis, thousands_a_second), 1),
            figure(rounds.median(own, thousands_a_second), 1),
            figure(ratio, 2),
            target,
            met,
            figure(rounds.median(redis, |sample| sample.speed.p99_ms), 2),
            figure(rounds.median(own, |sample| sample.speed.p99_ms), 2),
        ]);
    }
    Ok(table)
}

/// The latency of a call that is refused, with and without a log: there is nothing to wait for.
pub fn refused(programs: &Programs, effort: Effort) -> Result<Table> {
    let load = Load {
        clients: 1,
        ..load(Test::Command(&["TAKE", "nothing:__rand_int__", "1"]), effort.requests(40_000), 1, effort.keys(KEYS))
    };
    let (memory, always) = (ruvio(programs, 1, "memory")?, ruvio(programs, 1, "always")?);
    let rounds = Rounds::run(&[(&memory, load), (&always, load)], effort)?;
    let mut table =
        Table::new("A TAKE that is refused, one connection (ms)", &["", "memory", "always", "ratio", "target", "met"]);
    let (p50, p99): (Figure, Figure) = (|sample| sample.speed.median_ms, |sample| sample.speed.p99_ms);
    for (name, which) in [("p50", p50), ("p99", p99)] {
        let ratio = rounds.ratio(which);
        // The clock of the load counts in steps of a tenth of such a latency.
        let (target, met) = Target::AtMost(1.25).cells(ratio);
        let (memory, always) = (rounds.median(0, which), rounds.median(1, which));
        table.row([name.to_owned(), figure(memory, 3), figure(always, 3), figure(ratio, 2), target, met]);
    }
    Ok(table)
}

/// How long a start takes that reads everything: from a checkpoint, and from the log alone.
pub fn recovery(programs: &Programs, effort: Effort) -> Result<Table> {
    let keys = effort.keys(RECOVERED_KEYS);
    let mut table = Table::new(
        format!("From the start until the server answers, {keys} strings of {VALUE_BYTES} bytes, one shard (s)"),
        &["from", "Redis", "Ruvio", "ratio", "target", "met"],
    );
    let fill = |server: &Server| {
        let value = "x".repeat(VALUE_BYTES);
        let words = |number| vec!["SET".to_owned(), format!("key:{number:012}"), value.clone()];
        keys::load(&mut server.connect()?, keys, words)
    };
    let restart = |mut server: Server, saved: bool| -> Result<Duration> {
        if !saved {
            server.connect()?.call(&["CONFIG", "SET", "auto-aof-rewrite-percentage", "0"])?;
        }
        fill(&server)?;
        if saved {
            server.connect()?.call(&["SAVE"])?;
        } else {
            // What is in the kernel's hands is not lost with the process; what is not yet written is not measured.
            std::thread::sleep(Duration::from_secs(2));
        }
        server.restart()
    };
    for (from, redis, saved) in [
        ("checkpoint, RDB", Kind::Redis, true),
        ("log, append-only file", Kind::RedisAppending { fsync: "everysec" }, false),
    ] {
        let redis = programs.start(redis)?.map(|server| restart(server, saved)).transpose()?;
        let own = restart(ruvio(programs, 1, "everysec")?, saved)?;
        let ratio = redis.map(|redis| own.as_secs_f64() / redis.as_secs_f64());
        let (target, met) = Target::AtMost(0.5).cells(ratio);
        let redis = redis.map(|redis| redis.as_secs_f64());
        let cells = [figure(redis, 2), figure(Some(own.as_secs_f64()), 2), figure(ratio, 2), target, met];
        let [redis, own, ratio, target, met] = cells;
        table.row([from.to_owned(), redis, own, ratio, target, met]);
    }
    Ok(table)
}
