//! What a request costs: the server's CPU time for it, and how fast requests are answered.

use crate::keys;
use crate::redis_benchmark::{Load, Test, VALUE_BYTES};
use crate::rounds::{Rounds, Sample};
use crate::server::{Kind, Programs, Server};
use crate::table::{Table, Target, figure};
use crate::{Effort, Result};

/// Keys that the string commands choose from. All of them are there before anything is measured.
const KEYS: usize = 1_000_000;

pub(crate) const CLIENTS: usize = 50;

/// Hash slots of a cluster.
const SLOTS: usize = 16_384;

/// Keys that a cluster-aware `redis-benchmark` chooses from in each slot. Their names hold a tag of its own choice, so
/// only it can set them.
const KEYS_A_SLOT: usize = 16;

/// SETs of keys chosen at random, four for each key: all but one key in fifty are set then.
const CLUSTER_FILL_REQUESTS: usize = 4 * SLOTS * KEYS_A_SLOT;

pub(crate) const CPU_COLUMNS: [&str; 9] =
    ["case", "pipeline", "Redis µs", "Ruvio µs", "ratio", "target", "met", "Redis k/s", "Ruvio k/s"];

pub(crate) fn cpu_us(sample: &Sample) -> f64 {
    sample.cpu_us
}

pub(crate) fn thousands_a_second(sample: &Sample) -> f64 {
    sample.speed.requests_a_second / 1000.0
}

/// Redis, where it is installed, and Ruvio with this many shards.
pub(crate) struct Pair {
    redis: Option<Server>,
    ruvio: Server,
}

impl Pair {
    pub(crate) fn start(programs: &Programs, shards: u16) -> Result<Pair> {
        Ok(Pair { redis: programs.start(Kind::Redis)?, ruvio: start_ruvio(programs, shards)? })
    }

    /// Redis first. With Ruvio alone there are no ratios.
    pub(crate) fn servers(&self) -> Vec<&Server> {
        self.redis.iter().chain([&self.ruvio]).collect()
    }

    fn set_keys(&self, count: usize) -> Result<()> {
        self.servers().into_iter().try_for_each(|server| set_keys(server, count))
    }

    pub(crate) fn flush(&self) -> Result<()> {
        self.servers().into_iter().try_for_each(|server| server.connect()?.call(&["FLUSHALL"]))
    }

    /// Measures the same load on both.
    fn run(&self, load: Load, effort: Effort) -> Result<Rounds> {
        let servers: Vec<_> = self.servers().into_iter().map(|server| (server, load)).collect();
        Rounds::run(&servers, effort)
    }

    /// The figure of Redis and of Ruvio.
    fn medians(&self, rounds: &Rounds, figure: fn(&Sample) -> f64) -> (Option<f64>, Option<f64>) {
        match self.redis {
            Some(_) => (rounds.median(0, figure), rounds.median(1, figure)),
            None => (None, rounds.median(0, figure)),
        }
    }

    /// Measures a load and adds a row of [`CPU_COLUMNS`].
    pub(crate) fn measure_cpu(
        &self,
        table: &mut Table,
        name: &str,
        load: Load,
        target: Target,
        effort: Effort,
    ) -> Result<()> {
        let rounds = self.run(load, effort)?;
        let (redis, ruvio) = self.medians(&rounds, cpu_us);
        let (redis_speed, ruvio_speed) = self.medians(&rounds, thousands_a_second);
        let ratio = rounds.ratio(cpu_us);
        let (target, met) = target.cells(ratio);
        table.row([
            name.to_owned(),
            load.pipeline.to_string(),
            figure(redis, 3),
            figure(ruvio, 3),
            figure(ratio, 2),
            target,
            met,
            figure(redis_speed, 0),
            figure(ruvio_speed, 0),
        ]);
        Ok(())
    }
}

/// Sets the keys that `redis-benchmark` chooses from.
fn set_keys(server: &Server, count: usize) -> Result<()> {
    let value = "x".repeat(VALUE_BYTES);
    let words = |number| vec!["SET".to_owned(), format!("key:{number:012}"), value.clone()];
    keys::load(&mut server.connect()?, count, words)
}

fn start_ruvio(programs: &Programs, shards: u16) -> Result<Server> {
    let server = programs.start(Kind::Ruvio { shards })?;
    server.ok_or_else(|| "Ruvio is not installed".into())
}

pub(crate) fn load(test: Test, requests: usize, pipeline: usize, keys: usize) -> Load {
    Load { test, requests, pipeline, clients: CLIENTS, keys, cluster: false }
}

/// GET, SET and INCR at three pipeline depths, one shard.
pub fn strings(programs: &Programs, effort: Effort) -> Result<Table> {
    let keys = effort.keys(KEYS);
    let pair = Pair::start(programs, 1)?;
    pair.set_keys(keys)?;
    let title = format!("Server CPU an operation, one shard, {CLIENTS} clients, {keys} keys of {VALUE_BYTES} bytes");
    let mut table = Table::new(title, &CPU_COLUMNS);
    for (pipeline, requests, target) in [(1, 150_000, 0.95), (16, 1_000_000, 0.40), (64, 1_000_000, 0.35)] {
        for (name, test) in [("GET", "get"), ("SET", "set"), ("INCR", "incr")] {
            let load = load(Test::Named(test), effort.requests(requests), pipeline, keys);
            pair.measure_cpu(&mut table, name, load, Target::AtMost(target), effort)?;
        }
    }
    Ok(table)
}

/// The collection commands, one shard.
pub fn collections(programs: &Programs, effort: Effort) -> Result<Table> {
    const LIST: &str = "list:of:100";
    let keys = effort.keys(KEYS);
    let pair = Pair::start(programs, 1)?;
    let title = format!("Server CPU an operation, one shard, {CLIENTS} clients, collections");
    let mut table = Table::new(title, &CPU_COLUMNS);
    for (name, test, requests) in [
        ("HSET", "hset", 1_000_000),
        ("LPUSH", "lpush", 1_000_000),
        ("SADD", "sadd", 1_000_000),
        ("ZADD", "zadd", 1_000_000),
        ("LRANGE_100 and its LPUSH", "lrange_100", 200_000),
    ] {
        pair.flush()?;
        let load = load(Test::Named(test), effort.requests(requests), 16, keys);
        pair.measure_cpu(&mut table, name, load, Target::AtMost(0.60), effort)?;
    }
    pair.flush()?;
    let value = "x".repeat(VALUE_BYTES);
    for server in pair.servers() {
        keys::load(&mut server.connect()?, 100, |_| vec!["RPUSH", LIST, &value])?;
    }
    let load = load(Test::Command(&["LRANGE", LIST, "0", "99"]), effort.requests(200_000), 16, keys);
    pair.measure_cpu(&mut table, "LRANGE of 100, alone", load, Target::None, effort)?;
    Ok(table)
}

/// GET on two shards: half of it forwarded, and none.
pub fn two_shards(programs: &Programs, effort: Effort) -> Result<Table> {
    let keys = effort.keys(KEYS);
    let title = format!("Server CPU an operation, two shards, {CLIENTS} clients, GET, pipeline 16");
    let columns = ["client", "beside", "beside µs", "two shards µs", "ratio", "target", "met", "beside k/s", "k/s"];
    let mut table = Table::new(title, &columns);
    let mut add = |client: &str, beside: &str, figures: [Option<f64>; 5], target: Target| {
        let [cpu_beside, cpu, ratio, speed_beside, speed] = figures;
        let (target, met) = target.cells(ratio);
        let cells = [
            client.to_owned(),
            beside.to_owned(),
            figure(cpu_beside, 3),
            figure(cpu, 3),
            figure(ratio, 2),
            target,
            met,
            figure(speed_beside, 0),
            figure(speed, 0),
        ];
        table.row(cells);
    };

    let requests = effort.requests(1_000_000);
    let pair = Pair::start(programs, 2)?;
    pair.set_keys(keys)?;
    let rounds = pair.run(load(Test::Named("get"), requests, 16, keys), effort)?;
    let (cpu_redis, cpu) = pair.medians(&rounds, cpu_us);
    let (speed_redis, speed) = pair.medians(&rounds, thousands_a_second);
    let figures = [cpu_redis, cpu, rounds.ratio(cpu_us), speed_redis, speed];
    add("plain, half forwarded", "Redis", figures, Target::AtMost(0.60));
    drop(pair);

    // `redis-benchmark --cluster` refuses a cluster of one node, so one shard has a plain client and as many keys.
    let (one, two) = (start_ruvio(programs, 1)?, start_ruvio(programs, 2)?);
    let cluster = |test, requests| Load { cluster: true, ..load(Test::Named(test), requests, 16, KEYS_A_SLOT) };
    cluster("set", CLUSTER_FILL_REQUESTS).run(two.port())?;
    let keys = SLOTS * KEYS_A_SLOT;
    set_keys(&one, keys)?;
    let plain = load(Test::Named("get"), requests, 16, keys);
    let rounds = Rounds::run(&[(&one, plain), (&two, cluster("get", requests))], effort)?;
    let medians = |figure: fn(&Sample) -> f64| (rounds.median(0, figure), rounds.median(1, figure));
    let ((cpu_one, cpu), (speed_one, speed)) = (medians(cpu_us), medians(thousands_a_second));
    let figures = [cpu_one, cpu, rounds.ratio(cpu_us), speed_one, speed];
    add("--cluster", "one shard, plain", figures, Target::AtMost(1.15));
    Ok(table)
}

/// One connection that sends a request when the last one is answered.
pub fn one_connection(programs: &Programs, effort: Effort) -> Result<Table> {
    let keys = effort.keys(KEYS);
    let pair = Pair::start(programs, 1)?;
    pair.set_keys(keys)?;
    let columns = [
        "case",
        "Redis k/s",
        "Ruvio k/s",
        "ratio",
        "target",
        "met",
        "Redis p50 ms",
        "Ruvio p50 ms",
        "Redis p99 ms",
        "Ruvio p99 ms",
    ];
    let mut table = Table::new("One connection, one request at a time, one shard", &columns);
    for (name, test) in [("GET", "get"), ("SET", "set"), ("INCR", "incr")] {
        let load = Load { clients: 1, ..load(Test::Named(test), effort.requests(100_000), 1, keys) };
        let rounds = pair.run(load, effort)?;
        let (redis, ruvio) = pair.medians(&rounds, thousands_a_second);
        let (redis_p50, ruvio_p50) = pair.medians(&rounds, |sample| sample.speed.median_ms);
        let (redis_p99, ruvio_p99) = pair.medians(&rounds, |sample| sample.speed.p99_ms);
        let ratio = rounds.ratio(thousands_a_second);
        let (target, met) = Target::AtLeast(1.5).cells(ratio);
        table.row([
            name.to_owned(),
            figure(redis, 1),
            figure(ruvio, 1),
            figure(ratio, 2),
            target,
            met,
            figure(redis_p50, 3),
            figure(ruvio_p50, 3),
            figure(redis_p99, 3),
            figure(ruvio_p99, 3),
        ]);
    }
    Ok(table)
}
