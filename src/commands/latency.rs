//! `LATENCY`: how long commands take, and when they took too long.

use std::collections::BTreeSet;

use hdrhistogram::Histogram;
use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::reply::Reply;

use super::help::help;
use super::{Flow, Request, ServerCommand};
use crate::core::counters::CommandStats;
use crate::core::latency::LatencyEvents;
use crate::registry::{Registered, registry};

mod report;

/// The first bucket of a reported histogram ends here, in ns; each further one at twice the end before it.
const FIRST_BUCKET_NS: u64 = 1024;

const LATENCY: Spec = Spec {
    name: "latency",
    arity: -2,
    flags: Flags::NONE,
    keys: &[],
    categories: Categories::NONE,
    group: Group::Server,
    since: "2.8.13",
    complexity: "Depends on subcommand.",
    summary: "A container for latency commands.",
    syntax: "",
};

const FOR_OPERATORS: Spec = Spec {
    flags: Flags::ADMIN.and(Flags::NO_SCRIPT).and(Flags::LOADING).and(Flags::STALE),
    complexity: "O(1)",
    ..LATENCY
};

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    ServerCommand { spec: LATENCY, run: None },
    ServerCommand {
        spec: Spec {
            name: "latency|doctor",
            arity: 2,
            summary: "Says in words what took long, and what to look at.",
            ..FOR_OPERATORS
        },
        run: Some(doctor),
    },
    ServerCommand {
        spec: Spec {
            name: "latency|graph",
            arity: 3,
            summary: "Draws the latest samples of an event.",
            syntax: "event",
            ..FOR_OPERATORS
        },
        run: Some(graph),
    },
    ServerCommand {
        spec: Spec {
            name: "latency|histogram",
            since: "7.0.0",
            complexity: "O(N) where N is the number of commands whose latencies are returned",
            summary: "Returns how many calls of commands took up to how many microseconds; of all commands if none is named.",
            syntax: "[command [command ...]]",
            ..FOR_OPERATORS
        },
        run: Some(histogram),
    },
    ServerCommand {
        spec: Spec {
            name: "latency|history",
            arity: 3,
            summary: "Returns the latest samples of an event.",
            syntax: "event",
            ..FOR_OPERATORS
        },
        run: Some(history),
    },
    ServerCommand {
        spec: Spec {
            name: "latency|latest",
            arity: 2,
            summary: "Returns the latest and the worst sample of every event.",
            ..FOR_OPERATORS
        },
        run: Some(latest),
    },
    ServerCommand {
        spec: Spec {
            name: "latency|reset",
            summary: "Forgets the samples of events; of all events if none is named.",
            syntax: "[event [event ...]]",
            ..FOR_OPERATORS
        },
        run: Some(reset),
    },
    ServerCommand {
        spec: Spec {
            name: "latency|help",
            arity: 2,
            flags: Flags::LOADING.and(Flags::STALE),
            complexity: "O(1)",
            summary: "Describes the subcommands.",
            ..LATENCY
        },
        run: Some(help),
    },
];

fn histogram(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let mut asked: Vec<&'static Registered> = Vec::new();
    if request.args.len() == 2 {
        asked.extend(registry().all());
    }
    for name in request.args.from(2).iter() {
        let Some(command) = registry().get_full(name) else { continue };
        asked.push(command);
        asked.extend(&command.subcommands);
    }
    let mut named = BTreeSet::new();
    asked.retain(|command| named.insert(command.index));
    let indexes: Vec<usize> = asked.iter().map(|command| command.index).collect();
    request.core.gather(
        request.client,
        move |core| indexes.iter().map(|&index| core.command_stats[index].clone()).collect(),
        move |_, parts: Vec<Vec<CommandStats>>, reply| {
            let mut merged = vec![CommandStats::default(); asked.len()];
            for part in &parts {
                merged.iter_mut().zip(part).for_each(|(all, own)| all.merge(own));
            }
            let called: Vec<_> = asked
                .iter()
                .zip(&merged)
                .filter_map(|(command, stats)| stats.latencies.as_deref().map(|latencies| (command, latencies)))
                .collect();
            reply.map(called.len());
            for (command, latencies) in called {
                reply.bulk(command.spec.name.as_bytes());
                write_histogram(latencies, reply);
            }
        },
    );
    Ok(Flow::Wait)
}

fn write_histogram(latencies: &Histogram<u64>, reply: &mut Reply<'_>) {
    let buckets = cumulative_buckets(latencies);
    reply.map(2);
    reply.bulk(b"calls");
    reply.integer(latencies.len() as i64);
    reply.bulk(b"histogram_usec");
    reply.map(buckets.len());
    for (end_us, calls) in buckets {
        reply.integer(end_us as i64);
        reply.integer(calls as i64);
    }
}

/// How many calls took up to how many µs: the buckets that add any.
fn cumulative_buckets(latencies: &Histogram<u64>) -> Vec<(u64, u64)> {
    let mut buckets = Vec::new();
    let (mut end_ns, mut counted, mut next_ns) = (FIRST_BUCKET_NS, 0, 0);
    while counted < latencies.len() {
        let last_ns = latencies.highest_equivalent(end_ns);
        let here = latencies.count_between(next_ns, last_ns);
        if here > 0 {
            counted += here;
            buckets.push((last_ns / 1000, counted));
        }
        next_ns = last_ns + 1;
        end_ns = end_ns.saturating_mul(2);
    }
    buckets
}

/// Has every core hand over its events, and replies what `write` makes of all of them together.
fn with_events(
    request: &mut Request<'_>,
    write: impl FnOnce(&LatencyEvents, &mut Reply<'_>) + 'static,
) -> Result<Flow, CommandError> {
    request.core.gather(
        request.client,
        |core| core.latency_events.clone(),
        |_, parts: Vec<LatencyEvents>, reply| {
            let mut all = LatencyEvents::default();
            parts.iter().for_each(|part| all.merge(part));
            write(&all, reply);
        },
    );
    Ok(Flow::Wait)
}

fn doctor(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let (threshold_ms, now_ms) = (request.core.configuration.latency_monitor_threshold_ms, request.core.now_ms);
    with_events(request, move |events, reply| {
        reply.verbatim(report::doctor(events, threshold_ms, now_ms / 1000).as_bytes());
    })
}

fn graph(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let name = String::from_utf8_lossy(request.args.at(2)).into_owned();
    let now_s = request.core.now_ms / 1000;
    request.core.gather(
        request.client,
        |core| core.latency_events.clone(),
        move |core, parts: Vec<LatencyEvents>, reply| {
            let mut all = LatencyEvents::default();
            parts.iter().for_each(|part| all.merge(part));
            match all.get(name.as_bytes()).and_then(|event| report::graph(&name, event, now_s)) {
                Some(text) => reply.verbatim(text.as_bytes()),
                None => {
                    let error = CommandError::new(format!("ERR No samples available for event '{name}'"));
                    core.count_error(&error);
                    reply.error(&error);
                }
            }
        },
    );
    Ok(Flow::Wait)
}

fn latest(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    with_events(request, |events, reply| {
        reply.array(events.iter().len());
        for (name, event) in events.iter() {
            let (time_s, duration_ms) = event.samples.back().copied().unwrap_or_default();
            reply.array(4);
            reply.bulk(name.as_bytes());
            reply.integer(time_s);
            reply.integer(duration_ms as i64);
            reply.integer(event.worst_ms as i64);
        }
    })
}

fn history(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let name = request.args.at(2).to_vec();
    with_events(request, move |events, reply| {
        let samples = events.get(&name).map(|event| &event.samples);
        reply.array(samples.map_or(0, |samples| samples.len()));
        for &(time_s, duration_ms) in samples.into_iter().flatten() {
            reply.array(2);
            reply.integer(time_s);
            reply.integer(duration_ms as i64);
        }
    })
}

fn reset(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let names: Vec<Vec<u8>> = request.args.from(2).iter().map(<[u8]>::to_vec).collect();
    request.core.gather(
        request.client,
        move |core| {
            let chosen =
                |event: &str| names.is_empty() || names.iter().any(|name| name.eq_ignore_ascii_case(event.as_bytes()));
            core.latency_events.forget(chosen)
        },
        |_, parts: Vec<Vec<&'static str>>, reply| {
            let forgotten: BTreeSet<&str> = parts.into_iter().flatten().collect();
            reply.count(forgotten.len());
        },
    );
    Ok(Flow::Wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_count_all_that_took_no_longer() {
        let mut stats = CommandStats::default();
        for duration_ns in [900, 3_000, 4_100, 4_200, 131_500, 2_000_000_000] {
            stats.record(duration_ns, false, true);
        }
        let buckets = cumulative_buckets(stats.latencies.as_deref().expect("recorded"));
        assert_eq!(&buckets[..4], [(1, 1), (4, 3), (8, 4), (132, 5)]);
        assert_eq!(
            buckets[4..].iter().map(|(_, calls)| *calls).collect::<Vec<_>>(),
            [6],
            "the bound takes the longest"
        );
    }
}
