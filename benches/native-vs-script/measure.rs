//! Running the cases.

use std::thread;
use std::time::Duration;

use ruvio_shard::script::Digest;

use crate::cases::{CASES, Case, words};
use crate::process::resident_bytes;
use crate::redis_benchmark::{Load, Test};
use crate::rounds::Rounds;
use crate::server::{Kind, Programs, Server};
use crate::{Effort, Result, keys};

/// Different keys of a case.
pub const KEYS: usize = 100_000;
/// Requests of a run.
pub const REQUESTS: usize = 300_000;
/// Requests sent at once by a client.
pub const PIPELINE: usize = 16;
/// Connections.
pub const CLIENTS: usize = 50;

/// Keys whose state is measured.
pub const STATE_KEYS: usize = 200_000;

/// Time that a server gets to come to rest, before and behind the load.
const REST: Duration = Duration::from_millis(500);

/// What was measured of a command or script on a server.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Server CPU time a request, in µs.
    pub cpu_us: f64,
    /// Requests a second.
    pub requests_a_second: f64,
    /// Median latency, in ms.
    pub median_ms: f64,
    /// The latency that one request in a hundred is above, in ms.
    pub p99_ms: f64,
    /// Resident bytes a key, where that is measured.
    pub bytes_a_key: Option<f64>,
}

/// The figures of a case; those of Redis only where it is installed.
pub struct Outcome {
    /// Its name.
    pub name: &'static str,
    /// The native command.
    pub native: Figures,
    /// The script on Ruvio.
    pub script: Figures,
    /// The script on Redis.
    pub redis: Option<Figures>,
}

fn leaked(words: Vec<String>) -> &'static [&'static str] {
    let words: Vec<&'static str> = words.into_iter().map(|word| &*Box::leak(word.into_boxed_str())).collect();
    Box::leak(words.into_boxed_slice())
}

fn native(case: &Case, number: &str) -> Vec<String> {
    words(case.native, number)
}

fn script(case: &Case, number: &str) -> Vec<String> {
    let digest = Digest::of(case.script.as_bytes()).to_string();
    ["EVALSHA".to_owned(), digest].into_iter().chain(words(case.call, number)).collect()
}

/// Measures all cases.
pub fn all(programs: &Programs, effort: Effort) -> Result<Vec<Outcome>> {
    let ruvio = programs.start(Kind::Ruvio { shards: 1 })?.ok_or("there is no ruvio")?;
    let redis = programs.start(Kind::Redis)?;
    CASES.iter().map(|case| measure(programs, &ruvio, redis.as_ref(), case, effort)).collect()
}

fn measure(
    programs: &Programs,
    ruvio: &Server,
    redis: Option<&Server>,
    case: &Case,
    effort: Effort,
) -> Result<Outcome> {
    println!("{}", case.name);
    for server in [Some(ruvio), redis].into_iter().flatten() {
        prepare(server, case)?;
    }
    let load = |command: Vec<String>| Load {
        test: Test::Command(leaked(command)),
        requests: effort.part(REQUESTS),
        pipeline: PIPELINE,
        clients: CLIENTS,
        keys: KEYS,
        cluster: false,
    };
    // What the native command keeps is not what the script does, so each has the keyspace to itself.
    let run = |server: &Server, command: Vec<String>| -> Result<Rounds> {
        prepare(server, case)?;
        Rounds::run(&[(server, load(command))], effort)
    };
    let state = |kind: Kind, command: fn(&Case, &str) -> Vec<String>| -> Result<Option<f64>> {
        if case.keeps_state { bytes_a_key(programs, kind, case, command, effort).map(Some) } else { Ok(None) }
    };
    let one_shard = Kind::Ruvio { shards: 1 };
    let native_figures = figures(&run(ruvio, native(case, "__rand_int__"))?, state(one_shard, native)?)?;
    let script_figures = figures(&run(ruvio, script(case, "__rand_int__"))?, state(one_shard, script)?)?;
    let redis_figures = match redis {
        Some(redis) => Some(figures(&run(redis, script(case, "__rand_int__"))?, state(Kind::Redis, script)?)?),
        None => None,
    };
    Ok(Outcome { name: case.name, native: native_figures, script: script_figures, redis: redis_figures })
}

fn figures(rounds: &Rounds, bytes_a_key: Option<f64>) -> Result<Figures> {
    let median = |figure| rounds.median(0, figure).ok_or_else(|| "nothing was measured".to_owned());
    Ok(Figures {
        cpu_us: median(|sample| sample.cpu_us)?,
        requests_a_second: median(|sample| sample.speed.requests_a_second)?,
        median_ms: median(|sample| sample.speed.median_ms)?,
        p99_ms: median(|sample| sample.speed.p99_ms)?,
        bytes_a_key,
    })
}

/// Has the server hold what the case needs and nothing else, and know the script.
fn prepare(server: &Server, case: &Case) -> Result<()> {
    let mut connection = server.connect()?;
    connection.call(&["FLUSHALL"])?;
    connection.call(&["SCRIPT", "LOAD", case.script])?;
    for setup in case.setup {
        // As redis-benchmark writes numbers.
        let count = if setup.contains('#') { KEYS } else { 1 };
        keys::load(&mut connection, count, |number| words(setup, &format!("{number:012}")))?;
    }
    Ok(())
}

/// Bytes of resident memory that the state of a key costs, in a fresh process.
fn bytes_a_key(
    programs: &Programs,
    kind: Kind,
    case: &Case,
    command: fn(&Case, &str) -> Vec<String>,
    effort: Effort,
) -> Result<f64> {
    let server = programs.start(kind)?.ok_or("the server is not installed")?;
    let mut connection = server.connect()?;
    connection.call(&["SCRIPT", "LOAD", case.script])?;
    // One call first, so that an interpreter is there.
    keys::load(&mut connection, 1, |_| command(case, "first"))?;
    thread::sleep(REST);
    let before = resident_bytes(server.process_id())?;
    let count = effort.part(STATE_KEYS);
    keys::load(&mut connection, count, |number| command(case, &number.to_string()))?;
    thread::sleep(REST);
    let after = resident_bytes(server.process_id())?;
    Ok((after as f64 - before as f64) / count as f64)
}
