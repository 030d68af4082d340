//! What the other commands cost: bitmaps, HyperLogLogs, geo, whole collections, transactions, publishing; and how long
//! a client that waits for an element does so.

use std::time::{Duration, Instant};

use crate::connection::{Batch, Connection};
use crate::cpu_per_operation::{CPU_COLUMNS, Pair, load};
use crate::keys;
use crate::process::cpu_time;
use crate::redis_benchmark::Test;
use crate::server::{Kind, Programs, Server};
use crate::table::{Table, Target, figure, median};
use crate::{Effort, Result};

/// Different members, fields and bits.
const KEYS: usize = 1_000_000;

/// Clients of a load of our own, and requests that each sends at once.
const CLIENTS: usize = 50;
const PIPELINE: usize = 16;

const SUBSCRIBERS: usize = 100;

/// Members of the set that is removed.
const SET_MEMBERS: usize = 10_000_000;

/// The longest pause there may be, in ms.
const PAUSE_MS: f64 = 5.0;

/// CPU time of a command, a transaction, a delivered message.
pub fn cpu(programs: &Programs, effort: Effort) -> Result<Table> {
    let keys = effort.keys(KEYS);
    let pair = Pair::start(programs, 1)?;
    let mut table = Table::new("Server CPU an operation, one shard, other commands", &CPU_COLUMNS);
    for server in pair.servers() {
        let mut connection = server.connect()?;
        keys::load(&mut connection, 20, |field| {
            ["HSET".to_owned(), "hash".to_owned(), format!("field:{field}"), format!("value:{field}")].to_vec()
        })?;
        keys::load(&mut connection, 100, |member| {
            ["ZADD".to_owned(), "sorted".to_owned(), member.to_string(), format!("member:{member}")].to_vec()
        })?;
    }
    for (name, words, requests) in [
        ("SETBIT", &["SETBIT", "bits:__rand_int__", "100", "1"][..], 1_000_000),
        ("PFADD", &["PFADD", "hyperloglog", "element:__rand_int__"], 1_000_000),
        ("GEOADD", &["GEOADD", "places", "13.361389", "38.115556", "place:__rand_int__"], 600_000),
        ("HGETALL of 20 fields", &["HGETALL", "hash"], 500_000),
        ("ZRANGEBYSCORE of 100", &["ZRANGEBYSCORE", "sorted", "-inf", "+inf"], 200_000),
    ] {
        let load = load(Test::Command(words), effort.requests(requests), PIPELINE, keys);
        pair.measure_cpu(&mut table, name, load, Target::AtMost(0.60), effort)?;
    }
    add_row(&mut table, &pair, "MULTI, INCR, EXEC", effort, 0.60, |server, effort| {
        transactions(server, effort.requests(400_000))
    })?;
    add_row(&mut table, &pair, "PUBLISH to 100, a message", effort, 0.80, |server, effort| {
        publish(server, effort.requests(2_000_000))
    })?;
    Ok(table)
}

/// Measures a load of our own on both servers in turns, and adds a row.
fn add_row(
    table: &mut Table,
    pair: &Pair,
    name: &str,
    effort: Effort,
    most: f64,
    run: impl Fn(&Server, Effort) -> Result<(f64, f64)>,
) -> Result<()> {
    let servers = pair.servers();
    let mut samples = vec![Vec::new(); servers.len()];
    for round in 0..=effort.rounds {
        for (server, samples) in servers.iter().zip(&mut samples) {
            let sample = run(server, effort)?;
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    let figures =
        |server: usize, which: fn(&(f64, f64)) -> f64| median(samples.get(server)?.iter().map(which).collect());
    let (redis, ruvio) = if servers.len() == 2 { (0, 1) } else { (1, 0) };
    let ratios = || {
        let [redis, ruvio] = samples.as_slice() else { return None };
        median(redis.iter().zip(ruvio).map(|(redis, ruvio)| ruvio.0 / redis.0).collect())
    };
    let ratio = ratios();
    let (target, met) = Target::AtMost(most).cells(ratio);
    table.row([
        name.to_owned(),
        PIPELINE.to_string(),
        figure(figures(redis, |sample| sample.0), 3),
        figure(figures(ruvio, |sample| sample.0), 3),
        figure(ratio, 2),
        target,
        met,
        figure(figures(redis, |sample| sample.1), 0),
        figure(figures(ruvio, |sample| sample.1), 0),
    ]);
    Ok(())
}

/// CPU time in µs for each of `units`, and thousands of them a second, of what `work` does with a server.
fn account(server: &Server, units: usize, work: impl FnOnce() -> Result<()>) -> Result<(f64, f64)> {
    let (before, begin) = (cpu_time(server.process_id())?, Instant::now());
    work()?;
    let (spent, elapsed) = (cpu_time(server.process_id())? - before, begin.elapsed());
    Ok((spent.as_secs_f64() * 1e6 / units as f64, units as f64 / elapsed.as_secs_f64() / 1000.0))
}

fn transactions(server: &Server, count: usize) -> Result<(f64, f64)> {
    let mut batch = Batch::default();
    for number in 0..PIPELINE {
        batch.push(&["MULTI"]);
        batch.push(&["INCR", &format!("counter:{number}")]);
        batch.push(&["EXEC"]);
    }
    let mut clients = connect(server, CLIENTS)?;
    let rounds = count.div_ceil(CLIENTS * PIPELINE);
    account(server, rounds * CLIENTS * PIPELINE, || {
        for _ in 0..rounds {
            clients.iter_mut().try_for_each(|client| client.write(&batch))?;
            clients.iter_mut().try_for_each(|client| client.read(3 * PIPELINE))?;
        }
        Ok(())
    })
}

fn publish(server: &Server, messages: usize) -> Result<(f64, f64)> {
    let mut subscribers = connect(server, SUBSCRIBERS)?;
    let mut subscribe = Batch::default();
    subscribe.push(&["SUBSCRIBE", "channel"]);
    subscribers.iter_mut().try_for_each(|client| client.send(&subscribe))?;
    let mut publisher = server.connect()?;
    let mut batch = Batch::default();
    (0..PIPELINE).for_each(|_| batch.push(&["PUBLISH", "channel", &"x".repeat(64)]));
    let rounds = messages.div_ceil(SUBSCRIBERS * PIPELINE);
    account(server, rounds * SUBSCRIBERS * PIPELINE, || {
        for _ in 0..rounds {
            publisher.send(&batch)?;
            subscribers.iter_mut().try_for_each(|client| client.read(PIPELINE))?;
        }
        Ok(())
    })
}

fn connect(server: &Server, count: usize) -> Result<Vec<Connection>> {
    (0..count).map(|_| server.connect()).collect()
}

/// From the push of an element until the client that waits for it has it.
pub fn hand_over(programs: &Programs, effort: Effort) -> Result<Table> {
    let pair = Pair::start(programs, 1)?;
    let (mut pop, mut push) = (Batch::default(), Batch::default());
    pop.push(&["BLPOP", "queue", "0"]);
    push.push(&["LPUSH", "queue", "element"]);
    let servers = pair.servers();
    let mut medians_us = vec![Vec::new(); servers.len()];
    for round in 0..=effort.rounds {
        for (server, medians_us) in servers.iter().zip(&mut medians_us) {
            let (mut waiting, mut pushing) = (server.connect()?, server.connect()?);
            let mut lengths_us = Vec::new();
            for _ in 0..effort.requests(20_000) {
                waiting.write(&pop)?;
                // Long enough that it waits when the element comes.
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_micros(60) {
                    std::hint::spin_loop();
                }
                let begin = Instant::now();
                pushing.write(&push)?;
                waiting.read(1)?;
                lengths_us.push(begin.elapsed().as_secs_f64() * 1e6);
                pushing.read(1)?;
            }
            if round > 0 {
                medians_us.extend(median(lengths_us));
            }
        }
    }
    let mut table =
        Table::new("From LPUSH to the client in BLPOP, µs", &["", "Redis", "Ruvio", "ratio", "target", "met"]);
    let (redis, ruvio) = match medians_us.as_slice() {
        [redis, ruvio] => (median(redis.clone()), median(ruvio.clone())),
        [ruvio] => (None, median(ruvio.clone())),
        _ => (None, None),
    };
    let ratio = redis.zip(ruvio).map(|(redis, ruvio)| ruvio / redis);
    let (target, met) = Target::AtMost(1.0).cells(ratio);
    table.row(["median".to_owned(), figure(redis, 1), figure(ruvio, 1), figure(ratio, 2), target, met]);
    Ok(table)
}

/// The longest round trip of a GET while a huge set is removed.
pub fn large_set(programs: &Programs, effort: Effort) -> Result<Table> {
    let members = effort.keys(SET_MEMBERS);
    let title = format!("Longest round trip of a GET around the removal of a set of {members} members (ms)");
    let mut table = Table::new(title, &["command", "before", "during", "target", "met"]);
    let server = programs.start(Kind::Ruvio { shards: 1 })?.ok_or("there is no ruvio")?;
    let mut connection = server.connect()?;
    for command in ["DEL", "UNLINK"] {
        keys::load(&mut connection, members / 100, |chunk| {
            let names = (0..100).map(|number| format!("member:{}", chunk * 100 + number));
            ["SADD".to_owned(), "set".to_owned()].into_iter().chain(names).collect()
        })?;
        let (mut probe, mut get, mut remove) = (server.connect()?, Batch::default(), Batch::default());
        get.push(&["GET", "nothing"]);
        remove.push(&[command, "set"]);
        // What the machine itself does to a server that does nothing else.
        let before = longest_round_trip(&mut probe, &get)?;
        connection.write(&remove)?;
        let during = longest_round_trip(&mut probe, &get)?;
        connection.read(1)?;
        let [before_ms, during_ms] = [before, during].map(|longest| longest.as_secs_f64() * 1000.0);
        let (target, met) = Target::AtMost(PAUSE_MS).cells(Some(during_ms));
        table.row([command.to_owned(), figure(Some(before_ms), 2), figure(Some(during_ms), 2), target, met]);
    }
    Ok(table)
}

/// The longest round trip of a command within a few seconds.
fn longest_round_trip(connection: &mut Connection, command: &Batch) -> Result<Duration> {
    let (mut longest, end) = (Duration::ZERO, Instant::now() + Duration::from_secs(3));
    while Instant::now() < end {
        let begin = Instant::now();
        connection.send(command)?;
        longest = longest.max(begin.elapsed());
    }
    Ok(longest)
}
