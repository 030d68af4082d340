//! The command line: flags, environment and file; refusals to start; and how the process ends.

use crate::support::{Connection, PortBlock, Server, Value};
use std::fs;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn ruvio() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ruvio"))
}

fn folder() -> TempDir {
    TempDir::with_prefix("ruvio-test-").expect("a folder for the server")
}

/// Runs a command that should end by itself with exit code 1 and one line on its error stream, and gives that line.
#[track_caller]
fn refusal(command: &mut Command) -> String {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.current_dir(std::env::temp_dir()).spawn().expect("run the server");
    let deadline = Instant::now() + Duration::from_secs(20);
    while child.try_wait().expect("ask for the server's end").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("end the server");
            panic!("the server started: {command:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
    let Output { status, stderr, .. } = child.wait_with_output().expect("the server's error stream");
    let stderr = String::from_utf8(stderr).expect("UTF-8");
    assert_eq!(status.code(), Some(1), "{command:?}: {stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    let [line] = lines[..] else { panic!("one line on stderr, not {}: {stderr}", lines.len()) };
    line.to_owned()
}

#[test]
fn a_bad_flag_is_refused_in_one_line() {
    for (arguments, named) in [
        (["--nosuch", "1"], "--nosuch"),
        (["--port", "x"], "--port"),
        (["--port", "65536"], "--port"),
        (["--port", "-1"], "--port"),
        (["--shards", "0"], "--shards"),
        (["--shards", "x"], "--shards"),
        (["--shard-port-base", "70000"], "--shard-port-base"),
        (["--bind", "not-an-address"], "not-an-address"),
        (["--durability", "sometimes"], "--durability"),
        (["--maxmemory", "lots"], "--maxmemory"),
        (["--maxmemory-policy", "oldest"], "--maxmemory-policy"),
        (["--databases", "0"], "--databases"),
        (["--config", "/nonexistent/ruvio.toml"], "/nonexistent/ruvio.toml"),
    ] {
        let line = refusal(ruvio().args(arguments));
        assert!(line.contains(named), "{arguments:?}: {line}");
    }
}

#[test]
fn a_bad_environment_variable_is_refused_in_one_line() {
    let line = refusal(ruvio().env("RUVIO_PORT", "x"));
    assert!(line.contains("port") || line.contains("PORT"), "{line}");
    let line = refusal(ruvio().env("RUVIO_DURABILITY", "sometimes"));
    assert!(line.contains("sometimes"), "{line}");
}

#[test]
fn a_bad_file_is_refused_in_one_line() {
    let directory = folder();
    let path = directory.path().join("ruvio.toml");
    for (content, named) in [
        ("port = \"x\"\n", "port"),
        ("port = 6379 6380\n", "ruvio.toml"),
        ("nosuch = 1\n", "nosuch"),
        ("durability = \"sometimes\"\n", "durability"),
    ] {
        fs::write(&path, content).expect("write the file");
        let line = refusal(ruvio().arg("--config").arg(&path));
        assert!(line.contains(named), "{content}: {line}");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let ports = PortBlock::claim();
    let directory = folder();
    let taken = TcpListener::bind(("127.0.0.1", ports.port(0))).expect("take the port");
    let mut command = ruvio();
    command.args(["--shards", "2", "--port", &ports.port(0).to_string()]).arg("--dir").arg(directory.path());
    let line = refusal(&mut command);
    assert!(line.contains(&ports.port(0).to_string()), "{line}");
    drop(taken);
    let _taken = TcpListener::bind(("127.0.0.1", ports.port(2))).expect("take a shard's port");
    let line = refusal(&mut command);
    assert!(line.contains(&ports.port(2).to_string()), "{line}");
}

#[test]
fn a_second_server_on_the_same_port_is_refused() {
    let server = Server::start();
    let directory = folder();
    let port = server.port().to_string();
    let line = refusal(ruvio().args(["--shards", "1", "--port", &port]).arg("--dir").arg(directory.path()));
    assert!(line.contains(&port), "{line}");
    assert_eq!(server.connect().line("PING"), Value::Simple("PONG".to_owned()), "the first goes on");
}

/// Connects without a pause between two attempts, so that what is open for microseconds is found too, until 20 were answered.
fn connect_until_answered(port: u16) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut answered = 0;
    while answered < 20 {
        assert!(Instant::now() < deadline, "no answer");
        let Ok(mut connection) = Connection::open(port) else { continue };
        assert_eq!(connection.call(&["PING"]), Value::Simple("PONG".to_owned()));
        answered += 1;
    }
}

#[test]
fn who_can_connect_while_it_starts_is_answered() {
    let mut server = Server::start();
    for _ in 0..50 {
        server.kill();
        server.restart_without_waiting();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| connect_until_answered(server.port()));
            }
        });
    }
}

#[test]
fn help_and_version_go_to_the_output_stream() {
    let help = ruvio().arg("--help").output().expect("run the server");
    assert!(help.status.success() && help.stderr.is_empty());
    let text = String::from_utf8(help.stdout).expect("UTF-8");
    for flag in [
        "--bind",
        "--port",
        "--shards",
        "--shard-port-base",
        "--dir",
        "--durability",
        "--maxmemory",
        "--maxmemory-policy",
        "--databases",
        "--config",
        "--announce-ip",
    ] {
        assert!(text.contains(flag), "{flag} in {text}");
    }
    let version = ruvio().arg("--version").output().expect("run the server");
    assert!(version.status.success());
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), concat!("ruvio ", env!("CARGO_PKG_VERSION")));
}

#[track_caller]
fn configured(server: &Server, name: &str) -> String {
    server.connect().line(&format!("CONFIG GET {name}")).field(name).text().to_owned()
}

#[test]
fn a_flag_goes_before_the_environment_and_that_before_the_file() {
    let (ports, directory) = (PortBlock::claim(), folder());
    let path = directory.path().join("ruvio.toml");
    let data = directory.path().join("data");
    fs::write(
        &path,
        format!(
            "port = {}\nshards = 1\nshard-port-base = {}\ndir = {:?}\ndatabases = 3\nmaxmemory = 3000000\n\
             maxmemory-policy = \"allkeys-lru\"\n",
            ports.port(0),
            ports.port(1),
            data
        ),
    )
    .expect("write the file");
    let mut command = ruvio();
    command.arg("--config").arg(&path).args(["--databases", "5"]);
    command.env("RUVIO_DATABASES", "4").env("RUVIO_MAXMEMORY", "4000000");
    let server = Server::from_command(command, ports, directory);
    assert_eq!(configured(&server, "databases"), "5", "from the flag");
    assert_eq!(configured(&server, "maxmemory"), "4000000", "from the environment");
    assert_eq!(configured(&server, "maxmemory-policy"), "allkeys-lru", "from the file");
    let mut connection = server.connect();
    assert_eq!(connection.line("SELECT 4"), Value::Simple("OK".to_owned()));
    assert_eq!(connection.line("SELECT 5").error(), "ERR DB index is out of range");
    assert_eq!(server.connect_to_shard(0).line("PING"), Value::Simple("PONG".to_owned()));
}

#[test]
fn every_flag_is_also_an_environment_variable() {
    let (ports, directory) = (PortBlock::claim(), folder());
    let mut command = ruvio();
    command
        .env("RUVIO_BIND", "127.0.0.1")
        .env("RUVIO_PORT", ports.port(0).to_string())
        .env("RUVIO_SHARDS", "2")
        .env("RUVIO_SHARD_PORT_BASE", ports.port(5).to_string())
        .env("RUVIO_DIR", directory.path().join("data"))
        .env("RUVIO_DURABILITY", "memory")
        .env("RUVIO_MAXMEMORY", "50000000")
        .env("RUVIO_MAXMEMORY_POLICY", "volatile-ttl")
        .env("RUVIO_DATABASES", "2")
        .env("RUVIO_ANNOUNCE_IP", "127.0.0.2");
    let server = Server::from_command(command, ports, directory);
    assert_eq!(configured(&server, "maxmemory-policy"), "volatile-ttl");
    assert_eq!(configured(&server, "databases"), "2");
    let slots = server.connect().line("CLUSTER SLOTS");
    assert_eq!(slots.elements().len(), 2);
    for range in slots.elements() {
        let node = range.elements()[2].elements();
        assert_eq!(node[0].text(), "127.0.0.2", "the announced address");
        assert!([5, 6].map(|offset| i64::from(server.port() + offset)).contains(&node[1].integer()));
    }
}

#[test]
fn shard_ports_follow_the_shared_port_and_shards_the_cores() {
    let (ports, directory) = (PortBlock::claim(), folder());
    let mut command = ruvio();
    command.args(["--port", &ports.port(0).to_string()]).arg("--dir").arg(directory.path().join("data"));
    let server = Server::from_command(command, ports, directory);
    let slots = server.connect().line("CLUSTER SLOTS");
    let cores = thread::available_parallelism().expect("the number of cores").get();
    assert_eq!(slots.elements().len(), cores);
    let mut found: Vec<i64> =
        slots.elements().iter().map(|range| range.elements()[2].elements()[1].integer()).collect();
    found.sort_unstable();
    let first = i64::from(server.port()) + 1;
    assert_eq!(found, (first..first + cores as i64).collect::<Vec<_>>());
}

#[test]
fn sigterm_and_sigint_end_it_cleanly() {
    for signal in ["-TERM", "-INT"] {
        let mut server = Server::start();
        let mut connection = server.connect();
        connection.line("SET a 1");
        let sent = Command::new("kill").args([signal, &server.process_id().to_string()]).status();
        assert!(sent.expect("send the signal").success());
        assert_eq!(server.wait_for_exit().code(), Some(0), "{signal}");
        connection.expect_close();
    }
}

#[test]
fn shutdown_ends_it_cleanly() {
    for command in ["SHUTDOWN", "SHUTDOWN NOSAVE", "SHUTDOWN NOW"] {
        let mut server = Server::start();
        let mut connection = server.connect();
        connection.send(format!("{command}\r\n").as_bytes());
        assert_eq!(server.wait_for_exit().code(), Some(0), "{command}");
        connection.expect_close();
    }
}

#[test]
fn a_port_is_free_again_after_the_end() {
    let mut server = Server::start();
    let port = server.port();
    server.connect().send(b"SHUTDOWN\r\n");
    server.wait_for_exit();
    TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
}
