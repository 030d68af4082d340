//! Scripts through real clients, and libraries that live on their scripts, on two shards.
//!
//! The programs and the packages they need are in `tests/clients`. One that is not installed is passed over with a line
//! that says so, unless `RUVIO_REQUIRE_CLIENTS=1`.

use std::process::Command;

use crate::support::program::{node, node_has, python, python_has, succeed, succeed_around};
use crate::support::{Options, Server, Value, wait_until};

#[track_caller]
fn node_program(program: &str, package: &str, argument: &str) {
    if node_has(package) {
        let server = Server::start();
        succeed(node().arg(program).arg(server.port().to_string()).arg(argument));
    }
}

#[track_caller]
fn python_program(mode: &str) {
    if python_has("limits") {
        let server = Server::start();
        succeed(python().arg("python_scripts.py").arg(server.port().to_string()).arg(mode));
    }
}

/// Runs a client during which the server ends and starts again, with the same port and data, and knows no script then.
#[track_caller]
fn across_a_restart(program: &mut Command, further: &[&str]) {
    let options = Options { shards: 2, arguments: &["--durability", "always"], ..Options::default() };
    let mut server = Server::with(&options);
    let port = server.port().to_string();
    succeed_around(program.arg(port).args(further), || {
        assert_eq!(server.info_number("number_of_cached_scripts"), 1);
        server.kill_and_restart();
        let mut connection = server.connect();
        wait_until("the data is read", || !matches!(connection.call(&["DBSIZE"]), Value::Error(_)));
        assert_eq!(server.info_number("number_of_cached_scripts"), 0);
    });
}

#[test]
fn node_clients_fall_back_to_the_text_after_a_restart() {
    if node_has("ioredis") {
        across_a_restart(node().arg("script_restart.js"), &["plain"]);
    }
}

#[test]
fn cluster_aware_node_clients_fall_back_to_the_text_after_a_restart() {
    if node_has("ioredis") {
        across_a_restart(node().arg("script_restart.js"), &["cluster"]);
    }
}

#[test]
fn redis_py_falls_back_to_the_text_after_a_restart() {
    if python_has("redis") {
        across_a_restart(python().arg("script_restart.py"), &[]);
    }
}

#[test]
fn node_clients_define_scripts() {
    node_program("node_scripts.js", "ioredis", "plain");
}

#[test]
fn cluster_aware_node_clients_define_scripts() {
    node_program("node_scripts.js", "ioredis", "cluster");
}

#[test]
fn rate_limiter_flexible_and_redlock_work() {
    node_program("script_libraries.js", "redlock", "plain");
}

#[test]
fn rate_limiter_flexible_and_redlock_work_in_a_cluster() {
    node_program("script_libraries.js", "redlock", "cluster");
}

#[test]
fn bee_queue_loses_and_doubles_no_job() {
    node_program("bee_queue.js", "bee-queue", "10000");
}

#[test]
fn redis_py_scripts_its_locks_and_limits_work() {
    python_program("plain");
}

#[test]
fn redis_py_scripts_its_locks_and_limits_work_in_a_cluster() {
    python_program("cluster");
}
