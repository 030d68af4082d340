//! Bytes of resident memory that a key costs, in a fresh process a workload.

use std::thread;
use std::time::Duration;

use crate::Result;
use crate::keys::load;
use crate::process::resident_bytes;
use crate::server::{Kind, Programs};
use crate::table::{Table, Target, figure};

/// Keys of a workload, always as many: with fewer, what a process takes once would show in the figures.
const KEYS: usize = 500_000;

/// Time that a server gets to come to rest, before and behind the load.
const REST: Duration = Duration::from_secs(1);

struct Workload {
    name: &'static str,
    /// Most bytes a key.
    target: f64,
    /// Whether Redis has the command.
    in_redis: bool,
    /// The command for a key, in which `#` stands for the number of the key and `V` for 64 bytes.
    command: &'static str,
}

const fn workload(name: &'static str, target: f64, command: &'static str) -> Workload {
    Workload { name, target, in_redis: true, command }
}

const fn native(name: &'static str, target: f64, command: &'static str) -> Workload {
    Workload { name, target, in_redis: false, command }
}

const WORKLOADS: [Workload; 11] = [
    workload("string64", 92.0, "SET s:# V"),
    workload("counter", 25.0, "INCR c:#"),
    workload("string64_ttl", 102.0, "SET t:# V EX 100000"),
    workload("hash4", 105.0, "HSET h:# name ada_lovelace plan pro seats # mail u#@example.com"),
    workload("zset4", 75.0, "ZADD z:# 1 a 2 b 3 c 4 d"),
    workload("list4", 60.0, "RPUSH l:# a b c #"),
    workload("set4", 60.0, "SADD m:# a b c #"),
    native("limit_fixed", 50.0, "LIMIT r:# 100 600000000"),
    native("limit_sliding", 50.0, "LIMIT r:# 100 600000000 SLIDING"),
    native("limit_tokens", 50.0, "LIMIT r:# 100 600000000 TOKENS"),
    native("setv64", 102.0, "SETV v:# V"),
];

impl Workload {
    fn words(&self, number: usize) -> Vec<String> {
        let number = number.to_string();
        let value = "x".repeat(64);
        let fill = |word: &str| if word == "V" { value.clone() } else { word.replace('#', &number) };
        self.command.split(' ').map(fill).collect()
    }

    /// Bytes a key in a server of this kind, where it is installed and has the command.
    fn measure(&self, programs: &Programs, kind: Kind) -> Result<Option<f64>> {
        if kind == Kind::Redis && !self.in_redis {
            return Ok(None);
        }
        let Some(server) = programs.start(kind)? else { return Ok(None) };
        let mut connection = server.connect()?;
        connection.call(&["PING"])?;
        thread::sleep(REST);
        let before = resident_bytes(server.process_id())?;
        load(&mut connection, KEYS, |number| self.words(number))?;
        thread::sleep(REST);
        let after = resident_bytes(server.process_id())?;
        Ok(Some((after as f64 - before as f64) / KEYS as f64))
    }
}

/// Measures all workloads.
pub fn measure(programs: &Programs) -> Result<Table> {
    let title = format!("Bytes a key ({KEYS} keys, one shard; target for Ruvio)");
    let mut table = Table::new(title, &["workload", "Redis", "Ruvio", "ratio", "target", "met"]);
    for workload in &WORKLOADS {
        let redis = workload.measure(programs, Kind::Redis)?;
        let ruvio = workload.measure(programs, Kind::Ruvio { shards: 1 })?;
        let ratio = redis.zip(ruvio).map(|(redis, ruvio)| ruvio / redis);
        let (target, met) = Target::AtMost(workload.target).cells(ruvio);
        table.row([workload.name.to_owned(), figure(redis, 1), figure(ruvio, 1), figure(ratio, 2), target, met]);
    }
    Ok(table)
}
