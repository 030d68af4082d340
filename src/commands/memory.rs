//! `MEMORY`: what the process's memory is used for.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::slab::{self, SlabUsage};

use super::help::help;
use super::info::part::Part;
use super::info::sections::human;
use super::{Flow, Request, ServerCommand};
use crate::core::Core;
use crate::{machine, memory};

const MEMORY: Spec = Spec {
    name: "memory",
    arity: -2,
    flags: Flags::NONE,
    keys: &[],
    categories: Categories::NONE,
    group: Group::Server,
    since: "4.0.0",
    complexity: "Depends on subcommand.",
    summary: "A container for memory commands.",
    syntax: "",
};

const ALONE: Spec = Spec { arity: 2, complexity: "O(N) where N is the number of shards", ..MEMORY };

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    ServerCommand { spec: MEMORY, run: None },
    ServerCommand {
        spec: Spec { name: "memory|doctor", summary: "Reports what is unusual about the use of memory.", ..ALONE },
        run: Some(doctor),
    },
    ServerCommand {
        spec: Spec { name: "memory|malloc-stats", summary: "Returns what the allocators of the shards hold.", ..ALONE },
        run: Some(allocator_statistics),
    },
    ServerCommand {
        spec: Spec {
            name: "memory|purge",
            summary: "Has the allocator give free memory back to the kernel.",
            complexity: "Depends on how much memory is free.",
            ..ALONE
        },
        run: Some(purge),
    },
    ServerCommand {
        spec: Spec { name: "memory|stats", summary: "Returns how much memory is used for what.", ..ALONE },
        run: Some(stats),
    },
    ServerCommand {
        spec: Spec {
            name: "memory|help",
            flags: Flags::LOADING.and(Flags::STALE),
            complexity: "O(1)",
            summary: "Describes the subcommands.",
            ..ALONE
        },
        run: Some(help),
    },
];

/// The use of memory at one moment, in bytes.
#[derive(Clone, Debug, Default)]
struct Use {
    used: u64,
    peak: u64,
    resident: u64,
    limit: u64,
    shards: Vec<u64>,
}

impl Use {
    fn now(core: &Core) -> Use {
        let used = memory::used();
        Use {
            used,
            peak: core.process.peak_memory.fetch_max(used, Ordering::Relaxed).max(used),
            resident: machine::resident_bytes(),
            limit: core.configuration.settings.maxmemory,
            shards: (0..core.process.options.shards).map(memory::keyspace_of).collect(),
        }
    }

    fn fragmentation(&self) -> f64 {
        self.resident as f64 / self.used.max(1) as f64
    }
}

/// The shard of the first part: a script has its own shard's alone.
fn first_shard<P>(core: &Core, parts: &[P]) -> usize {
    if parts.len() < core.process.options.shards { core.number } else { 0 }
}

fn stats(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.core.gather(
        request.client,
        |core| Part::of(core, false),
        |core, parts: Vec<Part>, reply| {
            let all = Part::sum(&parts);
            let now = Use::now(core);
            let integers = [
                ("peak.allocated", now.peak as i64),
                ("total.allocated", now.used as i64),
                ("clients.normal", all.client_bytes as i64),
                ("keys.count", all.key_count() as i64),
                ("allocator.resident", now.resident as i64),
            ];
            reply.map(integers.len() + parts.len() + 3);
            for (field, value) in integers {
                reply.bulk(field.as_bytes());
                reply.integer(value);
            }
            for (part, (shard, used)) in parts.iter().zip(now.shards.iter().enumerate().skip(first_shard(core, &parts)))
            {
                reply.bulk(format!("shard.{shard}").as_bytes());
                reply.map(2);
                reply.bulk(b"keyspace.bytes");
                reply.integer(*used as i64);
                reply.bulk(b"keys.count");
                reply.count(part.key_count());
            }
            reply.bulk(b"peak.percentage");
            reply.double(now.used as f64 * 100.0 / now.peak.max(1) as f64);
            reply.bulk(b"fragmentation");
            reply.double(now.fragmentation());
            reply.bulk(b"fragmentation.bytes");
            reply.integer(now.resident as i64 - now.used as i64);
        },
    );
    Ok(Flow::Wait)
}

fn allocator_statistics(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.core.gather(
        request.client,
        |_| slab::usage(),
        |core, parts: Vec<SlabUsage>, reply| {
            let first = first_shard(core, &parts);
            let mut text = format!(
                "{}: {} bytes in use, {} resident\n",
                memory::ALLOCATOR_NAME,
                memory::used(),
                machine::resident_bytes()
            );
            for (slab, shard) in parts.iter().zip(first..) {
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "shard {shard}: keys take {} bytes; slab: {} bytes in pages, {} of them in blocks",
                    slab.keyspace_bytes(),
                    slab.held_bytes,
                    slab.used_bytes
                );
            }
            reply.verbatim(text.as_bytes());
        },
    );
    Ok(Flow::Wait)
}

fn purge(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.core.gather(request.client, |_| memory::release(), |_, _: Vec<()>, reply| reply.ok());
    Ok(Flow::Wait)
}

fn doctor(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    // Every core notes what it holds before the report is made.
    request.core.gather(
        request.client,
        |_| memory::note_slab(),
        |core, _: Vec<()>, reply| reply.verbatim(diagnose(&Use::now(core)).as_bytes()),
    );
    Ok(Flow::Wait)
}

/// Below this many bytes in use, ratios say nothing.
const TOO_LITTLE_BYTES: u64 = 16 << 20;

/// From these on a finding is worth telling.
const HIGH_PEAK: f64 = 1.5;
const HIGH_FRAGMENTATION: f64 = 1.4;
const NEAR_LIMIT: f64 = 0.9;
const UNEVEN: f64 = 2.0;

/// The findings, a line each.
fn diagnose(now: &Use) -> String {
    if now.used < TOO_LITTLE_BYTES {
        return format!("Only {} are in use: too little to tell whether anything is wrong.\n", human(now.used));
    }
    let mut findings = Vec::new();
    let used = now.used as f64;
    if now.peak as f64 > used * HIGH_PEAK {
        findings.push(format!(
            "Peak: {} were in use at the most, {} are now. The allocator may still hold the difference; MEMORY PURGE \
             gives back what it can.",
            human(now.peak),
            human(now.used)
        ));
    }
    if now.fragmentation() > HIGH_FRAGMENTATION {
        findings.push(format!(
            "Fragmentation: the process takes {} of the machine's memory for {} in use, {:.2} times as much.",
            human(now.resident),
            human(now.used),
            now.fragmentation()
        ));
    }
    if now.limit > 0 && used > now.limit as f64 * NEAR_LIMIT {
        findings.push(format!(
            "Limit: {} are in use and maxmemory is {}; beyond it keys are evicted or writes refused.",
            human(now.used),
            human(now.limit)
        ));
    }
    if let Some((shard, most)) = now.shards.iter().enumerate().max_by_key(|(_, used)| **used) {
        let others: u64 = now.shards.iter().sum::<u64>() - most;
        let other_count = now.shards.len().saturating_sub(1);
        if other_count > 0 && *most as f64 > UNEVEN * others as f64 / other_count as f64 {
            findings.push(format!(
                "Shards: the keys of shard {shard} take {}, those of the others {} on average. Large keys or many keys in few slots do that.",
                human(*most),
                human(others / other_count as u64)
            ));
        }
    }
    if findings.is_empty() {
        return "Nothing is unusual about the use of memory.\n".into();
    }
    findings.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_is_told_on_its_own() {
        let sound = Use { used: 100 << 20, peak: 100 << 20, resident: 110 << 20, limit: 0, shards: vec![50 << 20; 2] };
        assert!(diagnose(&sound).starts_with("Nothing is unusual"));
        assert!(diagnose(&Use { used: 1 << 20, ..sound.clone() }).starts_with("Only 1.00M"));
        for (unsound, finding) in [
            (Use { peak: 200 << 20, ..sound.clone() }, "Peak: 200.00M"),
            (Use { resident: 150 << 20, ..sound.clone() }, "Fragmentation: the process takes 150.00M"),
            (Use { limit: 105 << 20, ..sound.clone() }, "Limit: 100.00M"),
            (Use { shards: vec![10 << 20, 90 << 20], ..sound.clone() }, "Shards: the keys of shard 1 take 90.00M"),
        ] {
            let report = diagnose(&unsound);
            assert!(report.starts_with(finding) && report.lines().count() == 1, "{report}");
        }
    }
}
