//! Programs that people run, unmodified, each doing its main job.
//!
//! The programs and the packages they need are in `tests/clients`. One that is not installed is passed over with a line
//! that says so, unless `RUVIO_REQUIRE_CLIENTS=1`.

use crate::support::program::{node, node_has, python, python_has, succeed};
use crate::support::{Options, Server};

/// A server for programs that know no slots.
#[track_caller]
fn like_a_single_redis() -> Server {
    Server::with(&Options { shards: 1, arguments: &["--cross-slot", "allow"], ..Options::default() })
}

#[track_caller]
fn python_program(program: &str, server: &Server) {
    succeed(python().arg(program).arg(server.port().to_string()));
}

#[track_caller]
fn node_program(program: &str, mode: &str, server: &Server) {
    succeed(node().arg(program).arg(server.port().to_string()).arg(mode));
}

#[test]
fn rq_works() {
    if python_has("rq") {
        python_program("rq_program.py", &like_a_single_redis());
    }
}

#[test]
fn celery_works() {
    if python_has("celery") {
        python_program("celery_program.py", &like_a_single_redis());
    }
}

#[test]
fn flask_caching_works() {
    if python_has("flask_caching") {
        python_program("flask_caching_program.py", &like_a_single_redis());
    }
}

#[track_caller]
fn express_sessions_work(mode: &str) {
    if node_has("connect-redis") {
        node_program("express_sessions.js", mode, &Server::start());
    }
}

#[test]
fn express_sessions_work_with_a_plain_client() {
    express_sessions_work("plain");
}

#[test]
fn express_sessions_work_with_a_cluster_client() {
    express_sessions_work("cluster");
}

#[track_caller]
fn socket_io_works(adapter: &str) {
    if node_has("@socket.io/redis-adapter") {
        node_program("socket_io.js", adapter, &Server::start());
    }
}

#[test]
fn socket_io_publishes_with_node_redis() {
    socket_io_works("classic-node");
}

#[test]
fn socket_io_publishes_with_ioredis() {
    socket_io_works("classic-ioredis");
}

#[test]
fn socket_io_publishes_with_a_cluster_client() {
    socket_io_works("classic-cluster");
}

#[test]
fn socket_io_publishes_to_shard_channels_with_node_redis() {
    socket_io_works("sharded-node");
}

#[test]
fn socket_io_publishes_to_shard_channels_with_a_cluster_client() {
    socket_io_works("sharded-cluster");
}
