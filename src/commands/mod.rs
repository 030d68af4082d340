//! The commands that the client's core runs itself: connection, server and cluster commands.

use std::net::IpAddr;

use ruvio_shard::args::Args;
use ruvio_shard::command::Spec;
use ruvio_shard::error::CommandError;
use ruvio_shard::reply::{Protocol, Reply};

use crate::core::Core;
use crate::core::client::{Client, ClientKey, Door};

mod client;
mod cluster;
mod command;
mod config;
mod connection;
mod function;
mod help;
mod info;
mod keyspace;
mod latency;
mod memory;
mod migrate;
mod monitor;
mod persistence;
mod pubsub;
mod script;
mod server;
mod shutdown;
mod slowlog;
mod transaction;

pub use client::mode_after;
pub use connection::{REDIS_VERSION, selected_database};

pub use pubsub::is_for_subscribers;
pub use script::CALLS;

/// A command that the client's core runs.
pub struct ServerCommand {
    /// What is known of it.
    pub spec: Spec,
    /// Runs it; `None` for a container of subcommands.
    pub run: Option<Run>,
}

/// Runs a command: writes its reply, or has it come later ([`Flow::Wait`]).
pub type Run = fn(&mut Request<'_>) -> Result<Flow, CommandError>;

/// How the connection goes on after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The reply is written.
    Done,
    /// The reply comes later: `Core::gather` or `Core::ask` was called, and nothing was written.
    Wait,
    /// The connection ends after the reply.
    Close,
    /// The client's transaction is to be executed, which replies.
    Execute,
}

/// A command in progress.
pub struct Request<'a> {
    /// The client's core.
    pub core: &'a mut Core,
    /// The client.
    pub client: ClientKey,
    /// The command's words.
    pub args: Args<'a>,
    /// Where the reply goes.
    pub out: &'a mut Vec<u8>,
    /// The protocol of the reply.
    pub protocol: Protocol,
}

impl Request<'_> {
    /// A writer for the reply.
    pub fn reply(&mut self) -> Reply<'_> {
        Reply::new(self.out, self.protocol)
    }

    /// The client's state. There is one for as long as its command runs.
    pub fn client(&mut self) -> &mut Client {
        self.core.clients.get_mut(self.client).expect("a client lives while its command runs")
    }

    /// The client that has the command executed, or the script that calls it; none where its core is another.
    fn caller(&self) -> Option<&Client> {
        let key = match self.core.running_script() {
            Some(running) if self.client == ClientKey::SCRIPT => {
                if running.caller.core != self.core.number {
                    return None;
                }
                running.caller.client
            }
            _ => self.client,
        };
        self.core.clients.get(key)
    }

    /// The port that the client came in by. A script that runs on another core than its client's was forwarded, which
    /// happens to those of the shared port only.
    pub fn door(&self) -> Door {
        self.caller().map_or(Door::Shared, |client| client.door)
    }

    /// The address that the client connected to, where this core knows it.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.caller().map(|client| client.local.ip())
    }

    /// Has the owner of a slot do `work`, which writes the reply. Scripts reach their own shard's slots only.
    ///
    /// # Errors
    /// To scripts, that the slot is another shard's.
    pub fn ask_owner(
        &mut self,
        slot: u16,
        work: impl FnOnce(&mut Core, &mut Reply<'_>) + Send + 'static,
    ) -> Result<Flow, CommandError> {
        let owner = self.core.process.owner(slot);
        if self.client != ClientKey::SCRIPT {
            self.core.ask(self.client, owner, work);
            return Ok(Flow::Wait);
        }
        if owner != self.core.number {
            return Err(CommandError::new(format!("ERR Script attempted to access slot {slot} of another shard")));
        }
        work(self.core, &mut Reply::new(self.out, self.protocol));
        Ok(Flow::Done)
    }

    /// The database that the command is for.
    pub fn database(&self) -> usize {
        match self.core.running_script() {
            Some(running) if self.client == ClientKey::SCRIPT => running.database,
            _ => self.core.clients.get(self.client).map_or(0, |client| client.database),
        }
    }
}

/// Whether a command of the server can be called by scripts: those that need no client. What they say of keys they say of
/// the script's shard.
pub fn runs_in_scripts(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "cluster|countkeysinslot",
        "cluster|getkeysinslot",
        "cluster|info",
        "cluster|keyslot",
        "cluster|links",
        "cluster|myid",
        "cluster|myshardid",
        "cluster|nodes",
        "cluster|shards",
        "cluster|slots",
        "command",
        "command|count",
        "command|docs",
        "command|getkeys",
        "command|getkeysandflags",
        "command|info",
        "command|list",
        "dbsize",
        "echo",
        "flushall",
        "flushdb",
        "info",
        "keys",
        "lastsave",
        "memory|doctor",
        "memory|malloc-stats",
        "memory|purge",
        "memory|stats",
        "ping",
        "publish",
        "pubsub|channels",
        "pubsub|numpat",
        "pubsub|numsub",
        "pubsub|shardchannels",
        "pubsub|shardnumsub",
        "randomkey",
        "scan",
        "select",
        "slowlog|get",
        "slowlog|len",
        "slowlog|reset",
        "spublish",
        "swapdb",
        "time",
    ];
    NAMES.contains(&name) || name.ends_with("|help")
}

/// Every command of every family.
pub fn all() -> impl Iterator<Item = &'static ServerCommand> {
    [
        client::COMMANDS,
        cluster::COMMANDS,
        command::COMMANDS,
        config::COMMANDS,
        connection::COMMANDS,
        function::COMMANDS,
        info::COMMANDS,
        keyspace::COMMANDS,
        latency::COMMANDS,
        memory::COMMANDS,
        migrate::COMMANDS,
        monitor::COMMANDS,
        pubsub::COMMANDS,
        persistence::COMMANDS,
        script::COMMANDS,
        server::COMMANDS,
        shutdown::COMMANDS,
        slowlog::COMMANDS,
        transaction::COMMANDS,
    ]
    .into_iter()
    .flatten()
}
