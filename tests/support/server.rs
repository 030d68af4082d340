//! A server process of its own for each test.

use super::connection::Connection;
use super::notation::split_words;
use super::ports::PortBlock;
use super::value::Value;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Names the program to test in place of Ruvio, such as `redis-server --port {port} --save "" --appendonly no`, so that
/// the promises of standard commands can be checked against Redis itself.
const SERVER_COMMAND_VARIABLE: &str = "RUVIO_TEST_SERVER_COMMAND";
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How to start a server.
#[derive(Default)]
pub struct Options<'o> {
    /// Number of shards; 0 stands for 2.
    pub shards: u16,
    /// Further words of the command line.
    pub arguments: &'o [&'o str],
    /// Variables added to the environment.
    pub environment: &'o [(&'o str, &'o str)],
}

/// A running server, killed when this value goes. What it wrote is printed when the test fails.
pub struct Server {
    child: Child,
    command: Command,
    ports: PortBlock,
    directory: TempDir,
}

/// Whether the tests run against another server to check the tests themselves.
pub fn against_reference_server() -> bool {
    std::env::var_os(SERVER_COMMAND_VARIABLE).is_some()
}

/// Waits until `condition` holds, and panics with `what` when it does not within 20 seconds.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "waited too long: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

impl Server {
    /// Starts a server of two shards.
    #[track_caller]
    pub fn start() -> Server {
        Server::with(&Options::default())
    }

    /// Starts a server and waits until it answers.
    #[track_caller]
    pub fn with(options: &Options) -> Server {
        let ports = PortBlock::claim();
        let directory = TempDir::with_prefix("ruvio-test-").expect("a folder for the server");
        let mut command = match std::env::var(SERVER_COMMAND_VARIABLE) {
            Ok(line) => reference_command(&line, ports.port(0), directory.path()),
            Err(_) => ruvio_command(&ports, directory.path(), if options.shards == 0 { 2 } else { options.shards }),
        };
        // Most tests are about something else.
        command.env("RUVIO_DURABILITY", "memory");
        command.args(options.arguments).envs(options.environment.iter().copied());
        Server::from_command(command, ports, directory)
    }

    /// Starts a `redis-server` with further words of its command line; `None` where there is none on `PATH`.
    #[track_caller]
    pub fn start_redis(arguments: &[&str]) -> Option<Server> {
        Command::new("redis-server").arg("--version").output().ok()?;
        let ports = PortBlock::claim();
        let directory = TempDir::with_prefix("ruvio-test-").expect("a folder for the server");
        let mut command = Command::new("redis-server");
        command.args(["--port", &ports.port(0).to_string(), "--save", "", "--appendonly", "no"]);
        // Strings are compared by their bytes, in no language.
        command.args(arguments).env("LC_ALL", "C");
        Some(Server::from_command(command, ports, directory))
    }

    /// Starts a command that makes a server on port 0 of `ports`, in `directory`, and waits until it answers.
    #[track_caller]
    pub fn from_command(mut command: Command, ports: PortBlock, directory: TempDir) -> Server {
        command.current_dir(directory.path());
        let child = spawn(&mut command, directory.path());
        let mut server = Server { child, command, ports, directory };
        server.wait_until_it_answers();
        server
    }

    /// Kills the process, as `kill -9` does, and starts it again with the same command line.
    #[track_caller]
    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    /// Starts the process again, which has ended, with the same command line.
    #[track_caller]
    pub fn restart(&mut self) {
        self.child = spawn(&mut self.command, self.directory.path());
        self.wait_until_it_answers();
    }

    /// Kills the process with `kill -9`, and does not start it again.
    #[track_caller]
    pub fn kill(&mut self) {
        self.child.kill().expect("kill the server");
        self.child.wait().expect("collect the server's exit code");
    }

    /// Has further starts be of `shards` shards, with further words of the command line.
    pub fn start_later_with(&mut self, shards: u16, arguments: &[&str]) {
        self.command = ruvio_command(&self.ports, self.directory.path(), shards);
        self.command.args(arguments).current_dir(self.directory.path());
    }

    /// Starts the process again, which has ended, without waiting for anything.
    #[track_caller]
    pub fn restart_without_waiting(&mut self) {
        self.child = spawn(&mut self.command, self.directory.path());
    }

    /// The folder of the server's data.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// The shared port.
    pub fn port(&self) -> u16 {
        self.ports.port(0)
    }

    /// The port of one shard.
    pub fn shard_port(&self, shard: u16) -> u16 {
        self.ports.port(1 + shard)
    }

    /// The process number.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// A new connection to the shared port.
    #[track_caller]
    pub fn connect(&self) -> Connection {
        Connection::open(self.port()).expect("connect to the server")
    }

    /// A new connection to a shard's own port.
    #[track_caller]
    pub fn connect_to_shard(&self, shard: u16) -> Connection {
        Connection::open(self.shard_port(shard)).expect("connect to the shard")
    }

    /// The number a field of `INFO` holds.
    #[track_caller]
    pub fn info_number(&self, field: &str) -> i64 {
        let reply = self.connect().line("INFO everything");
        let prefix = format!("{field}:");
        let value = reply.text().lines().find_map(|line| line.strip_prefix(&prefix));
        let value = value.unwrap_or_else(|| panic!("no {field} in INFO"));
        value.trim().parse().unwrap_or_else(|_| panic!("{field} is no number: {value}"))
    }

    /// Waits for the process to end by itself.
    #[track_caller]
    pub fn wait_for_exit(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the server should have ended", || {
            status = self.child.try_wait().expect("ask for the server's end");
            status.is_some()
        });
        status.expect("the server has ended")
    }

    /// What the server has written to its output and error streams.
    pub fn output(&self) -> String {
        fs::read(self.directory.path().join("output.log"))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    #[track_caller]
    fn wait_until_it_answers(&mut self) {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().expect("ask for the server's end") {
                panic!("the server ended at once with {status}");
            }
            let answer = Connection::open(self.port()).and_then(|mut connection| {
                connection.try_send(b"PING\r\n")?;
                connection.try_read_value()
            });
            if answer.is_ok_and(|value| value == Value::Simple("PONG".to_owned())) {
                return;
            }
            assert!(Instant::now() < deadline, "the server does not answer PING");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.kill().is_ok() {
            self.child.wait().expect("collect the server's exit code");
        }
        if thread::panicking() {
            eprintln!("--- output of the server on port {} ---\n{}---", self.port(), self.output());
        }
    }
}

#[track_caller]
fn spawn(command: &mut Command, directory: &Path) -> Child {
    let log = OpenOptions::new().create(true).append(true).open(directory.join("output.log"));
    let log = log.expect("a file for the server's output");
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("share the output file"))
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| panic!("start {command:?}: {error}"))
}

fn ruvio_command(ports: &PortBlock, directory: &Path, shards: u16) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ruvio"));
    for (flag, value) in [("--port", ports.port(0)), ("--shards", shards), ("--shard-port-base", ports.port(1))] {
        command.arg(flag).arg(value.to_string());
    }
    command.arg("--dir").arg(directory.join("data"));
    command
}

fn reference_command(line: &str, port: u16, directory: &Path) -> Command {
    let words = split_words(line).expect("a well-formed command line");
    let words: Vec<String> = words.into_iter().map(|word| String::from_utf8(word).expect("UTF-8")).collect();
    let fill = |word: &String| word.replace("{port}", &port.to_string()).replace("{dir}", &directory.to_string_lossy());
    let (program, arguments) = words.split_first().expect("a program to start");
    let mut command = Command::new(program);
    command.args(arguments.iter().map(fill));
    command
}
