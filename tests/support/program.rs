//! Programs with real clients, run to their end. A program that is not installed is passed over with a line that says so,
//! unless `RUVIO_REQUIRE_CLIENTS=1`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM_TIMEOUT: Duration = Duration::from_secs(120);

/// Where the programs are, and the packages that they use.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// Runs a program to its end and gives what it wrote to its output and error streams, and whether it succeeded.
pub fn run(command: &mut Command) -> std::io::Result<(bool, String)> {
    let directory = TempDir::with_prefix("ruvio-test-")?;
    let path = directory.path().join("output.log");
    let log = File::create(&path)?;
    let mut child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
    let succeeded = ends_well(&mut child, || false)?;
    Ok((succeeded, String::from_utf8_lossy(&fs::read(&path)?).into_owned()))
}

/// Waits for a program's end, or until `condition` holds; whether it succeeded, or the condition holds. Kills it when
/// that takes too long.
fn ends_well(child: &mut Child, condition: impl Fn() -> bool) -> std::io::Result<bool> {
    let deadline = Instant::now() + PROGRAM_TIMEOUT;
    loop {
        if condition() {
            return Ok(true);
        }
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// As [`succeed`], for a client that stops on its way: when it has written the line `ready`, `between` runs, and then its
/// input ends, upon which it goes on.
#[track_caller]
pub fn succeed_around(command: &mut Command, between: impl FnOnce()) {
    let directory = TempDir::with_prefix("ruvio-test-").expect("a folder for the output");
    let path = directory.path().join("output.log");
    let log = File::create(&path).expect("create the output");
    let output = || String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
    let is_ready = || output().lines().any(|line| line == "ready");
    command.stdin(Stdio::piped()).stdout(log.try_clone().expect("share the output")).stderr(log);
    let mut child = command.spawn().expect("start the client");
    let input = child.stdin.take();
    let stopped = ends_well(&mut child, is_ready).expect("wait for the client");
    assert!(stopped && is_ready(), "{command:?} did not get ready:\n{}", output());
    between();
    drop(input);
    let succeeded = ends_well(&mut child, || false).expect("wait for the client");
    assert!(succeeded, "{command:?} failed:\n{}", output());
}

/// Runs a client and panics with its output when it fails.
#[track_caller]
pub fn succeed(command: &mut Command) -> String {
    let (succeeded, output) = run(command).unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(succeeded, "{command:?} failed:\n{output}");
    output
}

/// Whether a client is there, as `probe` shows by its success.
#[track_caller]
pub fn available(client: &str, probe: &mut Command) -> bool {
    let found = run(probe).is_ok_and(|(succeeded, _)| succeeded);
    if !found {
        assert!(
            std::env::var_os("RUVIO_REQUIRE_CLIENTS").is_none_or(|value| value != "1"),
            "{client} is not installed"
        );
        println!("skipped: {client} is not installed");
    }
    found
}

/// The interpreter with the packages of `tests/clients/requirements.txt`, in the folder of the programs.
pub fn python() -> Command {
    let local = folder().join(".venv/bin/python");
    let fallback = if local.exists() { local.into_os_string() } else { "python3".into() };
    let mut command = Command::new(std::env::var_os("RUVIO_TEST_PYTHON").unwrap_or(fallback));
    command.current_dir(folder()).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Whether a module of Python is there.
#[track_caller]
pub fn python_has(module: &str) -> bool {
    available(&format!("the module {module} of Python"), python().args(["-c", &format!("import {module}")]))
}

/// Node, in the folder of the programs.
pub fn node() -> Command {
    let mut command = Command::new("node");
    command.current_dir(folder());
    command
}

/// Whether a package of Node is there.
#[track_caller]
pub fn node_has(package: &str) -> bool {
    let probe = format!("import '{package}'");
    available(&format!("the package {package} of Node"), node().args(["--input-type=module", "-e", &probe]))
}
