//! The load harness: measures Ruvio from outside, beside Redis where it is installed, against the project's targets.
//!
//! It starts the servers itself, in temporary folders, and prints tables; nothing else is written. See
//! `benches/README.md`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

mod checkpoint_latency;
mod commands;
mod connection;
mod cpu_per_operation;
mod durability;
mod keys;
mod longest_pause;
mod machine;
mod memory_per_key;
mod process;
mod redis_benchmark;
mod rounds;
mod server;
mod table;

/// Result with an error that is one line for the user.
type Result<T> = std::result::Result<T, String>;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Section {
    /// CPU time an operation: GET, SET, INCR at three pipeline depths.
    Strings,
    /// CPU time an operation: collection commands.
    Collections,
    /// CPU time an operation with two shards, plain and cluster-aware clients.
    Shards,
    /// One connection, one request at a time.
    Connection,
    /// Bytes a key.
    Memory,
    /// Longest pause while keys are loaded.
    Pause,
    /// CPU time an operation: bitmaps, geo, whole collections, transactions, publishing; hand-over to who waits.
    Commands,
    /// What durability costs, and how long a start takes.
    Durability,
    /// Latency of reads during a checkpoint.
    Checkpoint,
}

/// Measures Ruvio against its targets, beside Redis where redis-server is installed.
#[derive(Debug, Parser)]
#[command(name = "load", bin_name = "cargo bench --bench load --")]
struct Arguments {
    /// A part of the work and one round: shows that everything runs, figures are coarse
    #[arg(long)]
    quick: bool,
    /// Measure only these
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "strings,collections,shards,connection,memory,pause,commands,durability,checkpoint"
    )]
    only: Vec<Section>,
    /// Rounds that count, behind one that warms up [default: 3, with --quick 1]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: Option<u8>,
    /// The ruvio program [default: the one built along with this harness]
    #[arg(long)]
    ruvio: Option<PathBuf>,
    /// The redis-server program
    #[arg(long, default_value = "redis-server")]
    redis: PathBuf,
    /// Given by cargo bench; without it nothing is measured, so that `cargo test --benches` ends at once
    #[arg(long, hide = true)]
    bench: bool,
}

/// How much work a measurement is.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Rounds that count.
    rounds: usize,
    quick: bool,
}

impl Effort {
    /// A number of keys, a tenth of it when quick.
    fn keys(self, full: usize) -> usize {
        if self.quick { full / 10 } else { full }
    }

    /// A number of requests, a quarter of it when quick: with fewer, the clock tick shows in the CPU times.
    fn requests(self, full: usize) -> usize {
        if self.quick { full / 4 } else { full }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let effort = Effort {
        rounds: arguments.rounds.map_or(if arguments.quick { 1 } else { 3 }, usize::from),
        quick: arguments.quick,
    };
    let programs = server::Programs::find(arguments.ruvio.as_deref(), &arguments.redis)?;
    println!("{}", machine::line());
    println!("{}", programs.line());
    if arguments.quick {
        println!("quick: a part of the work, figures are coarse");
    }
    if cfg!(debug_assertions) && arguments.ruvio.is_none() {
        println!("not a release build: figures mean nothing");
    }
    let wanted = |section| arguments.only.contains(&section);
    if wanted(Section::Strings) {
        cpu_per_operation::strings(&programs, effort)?.print();
    }
    if wanted(Section::Collections) {
        cpu_per_operation::collections(&programs, effort)?.print();
    }
    if wanted(Section::Shards) {
        cpu_per_operation::two_shards(&programs, effort)?.print();
    }
    if wanted(Section::Connection) {
        cpu_per_operation::one_connection(&programs, effort)?.print();
    }
    if wanted(Section::Memory) {
        memory_per_key::measure(&programs)?.print();
    }
    if wanted(Section::Pause) {
        longest_pause::measure(&programs, effort)?.print();
    }
    if wanted(Section::Commands) {
        commands::cpu(&programs, effort)?.print();
        commands::hand_over(&programs, effort)?.print();
        commands::large_set(&programs, effort)?.print();
    }
    if wanted(Section::Durability) {
        durability::cost(&programs, effort)?.print();
        durability::always(&programs, effort)?.print();
        durability::refused(&programs, effort)?.print();
        durability::recovery(&programs, effort)?.print();
    }
    if wanted(Section::Checkpoint) {
        checkpoint_latency::measure(&programs, effort)?.print();
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if !arguments.bench {
        println!("measures for minutes; run it with: cargo bench --bench load -- --quick");
        return ExitCode::SUCCESS;
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}
