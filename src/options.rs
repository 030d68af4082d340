//! The command line, the environment and the configuration file: a flag over a variable over the file over the default.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
pub use ruvio_shard::log::Durability;
use ruvio_shard::settings::EvictionPolicy;
use serde::Deserialize;

use crate::import::Import;

/// Most databases a server may have.
pub const MAX_DATABASES: usize = 1024;

/// The databases of a server that is told no other number.
pub const DEFAULT_DATABASES: usize = 16;

/// The command line: the server's flags, or another task with its own.
#[derive(Parser, Debug)]
#[command(
    name = "ruvio",
    version,
    about = "A Redis-compatible server: shared-nothing, one thread a core",
    allow_negative_numbers = true,
    disable_help_subcommand = true
)]
struct CommandLine {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    task: Option<Task>,
}

/// What the program does instead of serving.
#[derive(Subcommand, Debug)]
enum Task {
    /// Reads a data directory that no server uses, and says what it holds and what is wrong with it
    ///
    /// The exit code is 0 where a server can start with it, 1 where something is damaged, and 2 where it cannot be read.
    Check {
        /// The data directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// End damaged logs where they can still be read; what stood behind is moved to DIR/removed-N
        #[arg(long)]
        repair: bool,
    },
    /// Makes a data directory of an RDB file that Redis wrote
    ///
    /// What has no place here, such as streams, is named. After an error nothing is left of the import.
    Import {
        /// The RDB file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The data directory to make; it must hold no data
        #[arg(long, env = "RUVIO_DIR")]
        dir: PathBuf,
        /// Number of shards that the data are divided into [default: the cores it may run on]
        #[arg(long, env = "RUVIO_SHARDS", value_name = "N")]
        shards: Option<usize>,
    },
}

/// The flags; each is also a variable of the environment and a key of the file.
#[derive(Args, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Flags {
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long, env = "RUVIO_BIND", value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// The shared port, for every client [default: 6379]
    #[arg(long, env = "RUVIO_PORT")]
    port: Option<u16>,
    /// Number of shards, a core each [default: the cores it may run on]
    #[arg(long, env = "RUVIO_SHARDS", value_name = "N")]
    shards: Option<usize>,
    /// Port of the first shard, for cluster-aware clients; the others follow [default: PORT+1]
    #[arg(long, env = "RUVIO_SHARD_PORT_BASE", value_name = "PORT")]
    shard_port_base: Option<u16>,
    /// Directory for data [default: ./ruvio-data]
    #[arg(long, env = "RUVIO_DIR")]
    dir: Option<PathBuf>,
    /// What survives: memory (nothing is written), everysec or always [default: everysec]
    #[arg(long, env = "RUVIO_DURABILITY", value_name = "MODE")]
    durability: Option<String>,
    /// Most memory to use, in bytes or with kb, mb, gb; 0 for no limit [default: 0]
    #[arg(long, env = "RUVIO_MAXMEMORY", value_name = "BYTES")]
    #[serde(default, deserialize_with = "number_or_text")]
    maxmemory: Option<String>,
    /// What goes when memory is at its limit: noeviction, allkeys-lru, … [default: noeviction]
    #[arg(long, env = "RUVIO_MAXMEMORY_POLICY", value_name = "POLICY")]
    maxmemory_policy: Option<String>,
    /// Whether keys of a command may be in several slots: deny or allow [default: deny]
    #[arg(long, env = "RUVIO_CROSS_SLOT", value_name = "RULE")]
    cross_slot: Option<String>,
    /// Number of databases [default: 16]
    #[arg(long, env = "RUVIO_DATABASES", value_name = "N")]
    databases: Option<usize>,
    /// Address that CLUSTER SLOTS announces [default: the one a client connected to]
    #[arg(long, env = "RUVIO_ANNOUNCE_IP", value_name = "ADDRESS")]
    announce_ip: Option<String>,
    /// A TOML file with the same keys as these flags
    #[arg(long, env = "RUVIO_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    config: Option<PathBuf>,
}

/// What the server was started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address to listen on.
    pub bind: IpAddr,
    /// The shared port.
    pub port: u16,
    /// Number of shards.
    pub shards: usize,
    /// Port of the first shard.
    pub shard_port_base: u16,
    /// Directory for data.
    pub dir: PathBuf,
    /// What survives a crash.
    pub durability: Durability,
    /// Most memory to use, in bytes; 0 for no limit.
    pub maxmemory: u64,
    /// What goes when memory is at its limit.
    pub maxmemory_policy: EvictionPolicy,
    /// Whether the keys of a command may be in several slots, on the shared port.
    pub cross_slot: bool,
    /// Number of databases.
    pub databases: usize,
    /// Address that the cluster view announces.
    pub announce_ip: Option<String>,
    /// The configuration file.
    pub config: Option<PathBuf>,
}

/// What the command line asks for.
pub enum Asked {
    /// To run.
    Run(Box<Options>),
    /// To check a data directory.
    Check {
        /// Where it is.
        directory: PathBuf,
        /// Whether to repair it.
        repair: bool,
    },
    /// To import a file of Redis.
    Import(Import),
    /// To print this and end.
    Print(String),
}

/// Reads the process's command line and environment, and the file they name. An error is one line.
pub fn read(cpus: usize) -> Result<Asked, String> {
    let parsed = CommandLine::command().try_get_matches().and_then(|matches| {
        let command_line = CommandLine::from_arg_matches(&matches)?;
        Ok((command_line, matches))
    });
    match parsed {
        Ok((CommandLine { flags, task: None }, _)) => options(flags, cpus).map(|options| Asked::Run(Box::new(options))),
        Ok((CommandLine { task: Some(task), .. }, matches)) => {
            check_no_flags(&matches)?;
            match task {
                Task::Check { directory, repair } => Ok(Asked::Check { directory, repair }),
                Task::Import { file, dir, shards } => {
                    let shards = checked_shards(shards.unwrap_or(cpus))?;
                    Ok(Asked::Import(Import { file, directory: dir, shards }))
                }
            }
        }
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Ok(Asked::Print(error.to_string()))
        }
        Err(error) => {
            let text = error.to_string();
            let first: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:")).collect();
            let line = first.join(" ");
            Err(format!("{} (see ruvio --help)", line.trim_start_matches("error: ").trim_end()))
        }
    }
}

/// Refuses flags of the server in front of another task, which has no use for them.
fn check_no_flags(matches: &ArgMatches) -> Result<(), String> {
    let given = |name: &&str| matches.value_source(name) == Some(ValueSource::CommandLine);
    match matches.ids().map(|id| id.as_str()).filter(|name| matches.try_contains_id(name).is_ok()).find(given) {
        Some(flag) => Err(format!(
            "--{} is for the server, not for `ruvio {}` (see ruvio --help)",
            flag.replace('_', "-"),
            matches.subcommand_name().unwrap_or_default()
        )),
        None => Ok(()),
    }
}

fn checked_shards(shards: usize) -> Result<usize, String> {
    if shards == 0 || shards > crate::memory::MAX_CORES {
        return Err(format!("--shards must be 1 to {}, not {shards}", crate::memory::MAX_CORES));
    }
    Ok(shards)
}

fn options(flags: Flags, cpus: usize) -> Result<Options, String> {
    let file = match &flags.config {
        Some(path) => read_file(path)?,
        None => Flags::default(),
    };
    let port = flags.port.or(file.port).unwrap_or(6379);
    if port == 0 {
        return Err("port 0 is no port to listen on; choose one from 1 to 65535".into());
    }
    let shards = checked_shards(flags.shards.or(file.shards).unwrap_or(cpus))?;
    let shard_port_base = match flags.shard_port_base.or(file.shard_port_base) {
        Some(base) => base,
        None => port
            .checked_add(1)
            .ok_or_else(|| format!("no port is left behind {port} for the shards; choose --shard-port-base"))?,
    };
    let last = u32::from(shard_port_base) + shards as u32 - 1;
    if shard_port_base == 0 || last > u32::from(u16::MAX) {
        return Err(format!("{shards} shard ports from {shard_port_base} on do not fit 1 to 65535"));
    }
    if (u32::from(shard_port_base)..=last).contains(&u32::from(port)) {
        return Err(format!(
            "the shared port {port} is one of the shard ports {shard_port_base} to {last}; choose another --shard-port-base"
        ));
    }
    let durability = match flags.durability.or(file.durability).as_deref() {
        Some("memory") => Durability::Memory,
        None | Some("everysec") => Durability::EverySecond,
        Some("always") => Durability::Always,
        Some(other) => return Err(format!("--durability '{other}' is not one of memory, everysec, always")),
    };
    let maxmemory = match flags.maxmemory.or(file.maxmemory) {
        None => 0,
        Some(text) => parse_memory(&text)
            .ok_or_else(|| format!("--maxmemory '{text}' is not a number of bytes (kb, mb, gb may follow)"))?,
    };
    let maxmemory_policy = match flags.maxmemory_policy.or(file.maxmemory_policy) {
        None => EvictionPolicy::NoEviction,
        Some(word) => EvictionPolicy::ALL
            .iter()
            .find(|(_, name)| name.eq_ignore_ascii_case(&word))
            .map(|(policy, _)| *policy)
            .ok_or_else(|| {
                let words: Vec<&str> = EvictionPolicy::ALL.iter().map(|(_, name)| *name).collect();
                format!("--maxmemory-policy '{word}' is not one of {}", words.join(", "))
            })?,
    };
    let cross_slot = match flags.cross_slot.or(file.cross_slot).as_deref() {
        None | Some("deny") => false,
        Some("allow") => true,
        Some(other) => return Err(format!("--cross-slot '{other}' is not one of deny, allow")),
    };
    let databases = flags.databases.or(file.databases).unwrap_or(DEFAULT_DATABASES);
    if databases == 0 || databases > MAX_DATABASES {
        return Err(format!("--databases must be 1 to {MAX_DATABASES}, not {databases}"));
    }
    Ok(Options {
        bind: flags.bind.or(file.bind).unwrap_or(IpAddr::from([127, 0, 0, 1])),
        port,
        shards,
        shard_port_base,
        dir: flags.dir.or(file.dir).unwrap_or_else(|| "./ruvio-data".into()),
        durability,
        maxmemory,
        maxmemory_policy,
        cross_slot,
        databases,
        announce_ip: flags.announce_ip.or(file.announce_ip),
        config: flags.config,
    })
}

fn read_file(path: &Path) -> Result<Flags, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the configuration file {}: {error}", path.display()))?;
    toml::from_str(&text).map_err(|error| {
        let number = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        let line = text.lines().nth(number - 1).unwrap_or_default().trim();
        format!("{}, line {number} ({line}): {}", path.display(), error.message().replace('\n', " "))
    })
}

/// A number of bytes, with Redis's units: `k` 1000, `kb` 1024, and so on.
pub fn parse_memory(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit: u64 = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

fn number_or_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u64),
        Text(String),
    }
    Ok(Some(match Either::deserialize(deserializer)? {
        Either::Number(number) => number.to_string(),
        Either::Text(text) => text,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_with_redis_units() {
        assert_eq!(parse_memory("1024"), Some(1024));
        assert_eq!(parse_memory("2kb"), Some(2048));
        assert_eq!(parse_memory("2K"), Some(2000));
        assert_eq!(parse_memory("1GB"), Some(1 << 30));
        assert_eq!(parse_memory("x"), None);
        assert_eq!(parse_memory("-1"), None);
        assert_eq!(parse_memory("99999999999999gb"), None);
    }

    #[test]
    fn a_flag_goes_over_the_file_and_the_file_over_the_default() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), "port = 7000\nmaxmemory = \"1mb\"\nshard-port-base = 9000\n").expect("written");
        let read = |flags: &[&str]| {
            let mut words = vec!["ruvio", "--config", file.path().to_str().expect("a path")];
            words.extend(flags);
            options(CommandLine::try_parse_from(words).expect("flags").flags, 4).expect("options")
        };
        let both = read(&["--port", "7001"]);
        assert_eq!((both.port, both.maxmemory, both.shard_port_base, both.shards), (7001, 1 << 20, 9000, 4));
        assert_eq!(read(&[]).port, 7000);
    }

    #[test]
    fn what_cannot_be_is_refused_with_one_line() {
        for (words, part) in [
            (&["--durability", "often"][..], "not one of"),
            (&["--maxmemory-policy", "x"], "not one of noeviction"),
            (&["--cross-slot", "sometimes"], "not one of deny, allow"),
            (&["--shards", "0"], "--shards must be"),
            (&["--port", "65535"], "no port is left"),
            (&["--port", "7000", "--shard-port-base", "6999", "--shards", "2"], "one of the shard ports"),
            (&["--config", "/nonexistent.toml"], "cannot read"),
        ] {
            let words = [&["ruvio"], words].concat();
            let error = options(CommandLine::try_parse_from(words).expect("flags").flags, 4).expect_err("refused");
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        }
    }
}
