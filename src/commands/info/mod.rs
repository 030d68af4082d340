//! `INFO`: the state of the server in sections of `field:value` lines.

use ruvio_shard::args::Args;
use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;

use self::part::Part;
use super::{Flow, Request, ServerCommand};
use crate::core::Core;

pub mod part;
pub mod sections;

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[ServerCommand {
    spec: Spec {
        name: "info",
        arity: -1,
        flags: Flags::LOADING.and(Flags::STALE).and(Flags::SENTINEL),
        keys: &[],
        categories: Categories::DANGEROUS,
        group: Group::Server,
        since: "1.0.0",
        complexity: "O(N) where N is the number of shards",
        summary: "Returns the state and the counters of the server.",
        syntax: "[section [section ...]]",
    },
    run: Some(info),
}];

/// A section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The program and how it runs.
    Server,
    /// Connections.
    Clients,
    /// Memory.
    Memory,
    /// What is on disk.
    Persistence,
    /// Counters.
    Stats,
    /// Replication.
    Replication,
    /// Processor time.
    Cpu,
    /// Modules.
    Modules,
    /// Counters of each command.
    CommandStats,
    /// Counters of each error.
    ErrorStats,
    /// Latencies of each command.
    LatencyStats,
    /// The cluster view.
    Cluster,
    /// A line a shard.
    Shards,
    /// A line a database.
    Keyspace,
}

/// When a section is shown though it is not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// When nothing is named, or `default`.
    Default,
    /// With `all`.
    All,
    /// With `everything`.
    Everything,
}

/// The sections in the order they are shown in, with the names they are asked for by.
const SECTIONS: [(Section, &str, Shown); 14] = [
    (Section::Server, "server", Shown::Default),
    (Section::Clients, "clients", Shown::Default),
    (Section::Memory, "memory", Shown::Default),
    (Section::Persistence, "persistence", Shown::Default),
    (Section::Stats, "stats", Shown::Default),
    (Section::Replication, "replication", Shown::Default),
    (Section::Cpu, "cpu", Shown::Default),
    (Section::Modules, "modules", Shown::Everything),
    (Section::CommandStats, "commandstats", Shown::All),
    (Section::ErrorStats, "errorstats", Shown::Default),
    (Section::LatencyStats, "latencystats", Shown::All),
    (Section::Cluster, "cluster", Shown::Default),
    (Section::Shards, "shards", Shown::All),
    (Section::Keyspace, "keyspace", Shown::Default),
];

/// The sections that the words ask for.
fn asked(words: Args<'_>) -> Vec<Section> {
    let named = |name: &str| words.iter().any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let everything = named("everything");
    let all = everything || named("all");
    let default = all || words.is_empty() || named("default");
    SECTIONS
        .iter()
        .filter(|(_, name, shown)| {
            named(name)
                || match shown {
                    Shown::Default => default,
                    Shown::All => all,
                    Shown::Everything => everything,
                }
        })
        .map(|(section, ..)| *section)
        .collect()
}

fn info(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let sections = asked(request.args.from(1));
    let with_commands = sections.contains(&Section::CommandStats) || sections.contains(&Section::LatencyStats);
    request.core.gather(
        request.client,
        move |core| Part::of(core, with_commands),
        move |core: &mut Core, parts: Vec<Part>, reply| {
            let all = Part::sum(&parts);
            let texts: Vec<String> =
                sections.iter().map(|section| sections::write(*section, core, &all, &parts)).collect();
            reply.verbatim(texts.join("\r\n").as_bytes());
        },
    );
    Ok(Flow::Wait)
}

#[cfg(test)]
mod tests {
    use ruvio_shard::args::OwnedArgs;

    use super::*;

    fn names(line: &str) -> Vec<Section> {
        let words: OwnedArgs = line.split_whitespace().collect();
        asked(words.as_args())
    }

    #[test]
    fn sections_come_once_and_in_their_order() {
        assert_eq!(names("memory SERVER memory nosuch"), [Section::Server, Section::Memory]);
        assert_eq!(names("nosuch"), []);
        assert_eq!(names(""), names("default"));
        assert_eq!(names("everything").len(), SECTIONS.len());
        assert!(!names("all").contains(&Section::Modules) && names("all").contains(&Section::CommandStats));
        assert!(names("default commandstats").contains(&Section::CommandStats));
    }
}
