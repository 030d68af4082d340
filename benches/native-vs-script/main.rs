//! Every native command against the script that it replaces: natively and as a script on Ruvio, and as a script on Redis.
//!
//! Writes `benches/RESULTS.md` and `benches/native-vs-script.svg` from the figures of the run. See `benches/README.md`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

mod cases;
mod measure;
mod plot;
mod report;

#[path = "../load/connection.rs"]
mod connection;
#[path = "../load/keys.rs"]
mod keys;
#[path = "../load/machine.rs"]
mod machine;
#[expect(dead_code, reason = "the load harness uses the rest")]
#[path = "../load/process.rs"]
mod process;
#[expect(dead_code, reason = "the load harness uses the rest")]
#[path = "../load/redis_benchmark.rs"]
mod redis_benchmark;
#[expect(dead_code, reason = "the load harness uses the rest")]
#[path = "../load/rounds.rs"]
mod rounds;
#[expect(dead_code, reason = "the load harness uses the rest")]
#[path = "../load/server.rs"]
mod server;
#[expect(dead_code, reason = "the load harness uses the rest")]
#[path = "../load/table.rs"]
mod table;

/// Result with an error that is one line for the user.
type Result<T> = std::result::Result<T, String>;

/// Measures the native commands against scripts, and writes the benchmarks page.
#[derive(Debug, Parser)]
#[command(name = "native-vs-script", bin_name = "cargo bench --bench native-vs-script --")]
struct Arguments {
    /// A tenth of the work and one round: shows that everything runs; prints the page instead of writing it
    #[arg(long)]
    quick: bool,
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
    /// A number of requests or keys, a tenth of it when quick.
    fn part(self, full: usize) -> usize {
        if self.quick { full / 10 } else { full }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let effort = Effort {
        rounds: arguments.rounds.map_or(if arguments.quick { 1 } else { 3 }, usize::from),
        quick: arguments.quick,
    };
    let programs = server::Programs::find(arguments.ruvio.as_deref(), &arguments.redis)?;
    println!("{}\n{}", machine::line(), programs.line());
    let results = measure::all(&programs, effort)?;
    let page = report::page(&programs, effort, &results);
    if arguments.quick {
        println!("{page}");
        return Ok(());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
    for (name, text) in [("RESULTS.md", page), (report::PLOT, plot::svg(&results))] {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if !arguments.bench {
        println!("measures for minutes; run it with: cargo bench --bench native-vs-script -- --quick");
        return ExitCode::SUCCESS;
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("native-vs-script: {error}");
            ExitCode::FAILURE
        }
    }
}
