//! Scripts through real clients, and libraries that live on their scripts, on two shards.
//!
//! The programs and the packages they need are in `tests/clients`. One that is not installed is passed over with a line
//! that says so, unless `RUVIO_REQUIRE_CLIENTS=1`.

use crate::support::Server;
use crate::support::program::{node, node_has, python, python_has, succeed};

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
