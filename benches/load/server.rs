//! Servers under measurement.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Result;
use crate::connection::Connection;

/// How long a start may take, with all that is read then.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Which server to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Redis, nothing persisted.
    Redis,
    /// Redis with its append-only file.
    RedisAppending {
        /// Its `appendfsync`.
        fsync: &'static str,
    },
    /// Ruvio with this many shards, nothing persisted.
    Ruvio {
        /// Shards, a core each.
        shards: u16,
    },
    /// Ruvio with its log.
    RuvioLogging {
        /// Shards, a core each.
        shards: u16,
        /// Its `--durability`.
        durability: &'static str,
    },
}

/// The programs to measure.
pub struct Programs {
    ruvio: PathBuf,
    redis: Option<PathBuf>,
    versions: String,
}

fn version(program: &Path, flag: &str) -> Option<String> {
    let output = Command::new(program).arg(flag).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Programs {
    /// Finds the programs: `ruvio` or the one built along with the harness, and Redis where it is installed.
    pub fn find(ruvio: Option<&Path>, redis: &Path) -> Result<Programs> {
        let ruvio = ruvio.unwrap_or(Path::new(env!("CARGO_BIN_EXE_ruvio")));
        let ruvio = std::path::absolute(ruvio).map_err(|error| format!("{}: {error}", ruvio.display()))?;
        let ruvio_version = version(&ruvio, "--version").ok_or_else(|| format!("{} does not run", ruvio.display()))?;
        let load = version(Path::new("redis-benchmark"), "--version")
            .ok_or("redis-benchmark is needed to make the load: install redis-tools")?;
        let redis_version = version(redis, "--version");
        let versions = format!(
            "programs: {ruvio_version}; {}; load by {load}",
            redis_version.as_deref().unwrap_or("no redis-server, so no ratios")
        );
        Ok(Programs { ruvio, redis: redis_version.map(|_| redis.to_owned()), versions })
    }

    /// Their versions in one line.
    pub fn line(&self) -> &str {
        &self.versions
    }

    /// Starts a server and waits until it answers; `None` for Redis where it is not installed.
    pub fn start(&self, kind: Kind) -> Result<Option<Server>> {
        let directory = TempDir::with_prefix("ruvio-load-").map_err(|error| format!("no temporary folder: {error}"))?;
        let redis = |appending: &[&str]| {
            let Some(redis) = &self.redis else { return Result::Ok(None) };
            let port = free_ports(1)?;
            let mut command = Command::new(redis);
            command.args(["--port", &port.to_string(), "--save", ""]).args(appending);
            Ok(Some((command, port)))
        };
        let ruvio = |shards: u16, durability| {
            let port = free_ports(shards + 1)?;
            let mut command = Command::new(&self.ruvio);
            command.args(["--port", &port.to_string(), "--shard-port-base", &(port + 1).to_string()]);
            command.args(["--durability", durability, "--shards", &shards.to_string(), "--dir"]);
            command.arg(directory.path().join("data"));
            Result::Ok(Some((command, port)))
        };
        let found = match kind {
            Kind::Redis => redis(&["--appendonly", "no"])?,
            // Its file grows as ours does: nothing is rewritten meanwhile.
            Kind::RedisAppending { fsync } => {
                redis(&["--appendonly", "yes", "--appendfsync", fsync, "--auto-aof-rewrite-percentage", "0"])?
            }
            Kind::Ruvio { shards } => ruvio(shards, "memory")?,
            Kind::RuvioLogging { shards, durability } => ruvio(shards, durability)?,
        };
        let Some((mut command, port)) = found else { return Ok(None) };
        command.current_dir(directory.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let mut server = Server { child, command, port, _directory: directory };
        server.wait_until_it_answers()?;
        Ok(Some(server))
    }
}

/// The first of `count` ports in a row that nobody listens on. Below the range for outgoing connections.
fn free_ports(count: u16) -> Result<u16> {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    (23_000..32_000)
        .step_by(usize::from(count))
        .find(|&first| (first..first + count).all(is_free))
        .ok_or_else(|| "no free ports from 23000 to 32000".into())
}

/// A running server, killed when this value goes.
pub struct Server {
    child: Child,
    command: Command,
    port: u16,
    _directory: TempDir,
}

impl Server {
    /// The port that takes every command.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process number.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// A new connection.
    pub fn connect(&self) -> Result<Connection> {
        Connection::open(self.port)
    }

    /// Kills it and starts it again on the same files; how long it takes until it answers.
    pub fn restart(&mut self) -> Result<Duration> {
        self.child.kill().and_then(|()| self.child.wait()).map_err(|error| error.to_string())?;
        let begin = Instant::now();
        self.child = self.command.spawn().map_err(|error| format!("{:?}: {error}", self.command))?;
        self.wait_until_it_answers()?;
        Ok(begin.elapsed())
    }

    fn wait_until_it_answers(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return Err(format!("the server on port {} ended at once ({status})", self.port));
            }
            match self.connect().and_then(|mut connection| connection.call(&["PING"])) {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > deadline => return Err(format!("the server does not answer: {error}")),
                Err(_) => thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.kill().is_ok() {
            // A process that was killed ends; there is nothing to do about one that cannot be waited for.
            let _ = self.child.wait();
        }
    }
}
