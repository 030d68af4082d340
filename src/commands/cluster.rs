//! The cluster view: the process shows itself as a cluster of masters, one a shard, each at its shard's port, so that
//! cluster-aware clients send every command to the core that owns its keys. `myself` is the shard whose port the client
//! came in by; on the shared port it is a node of its own, without slots. There is no cluster bus; the port shown for it
//! only follows the convention.

use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::number;
use ruvio_shard::slot::{SLOTS, key_slot, shard_slots};

use super::help::help;
use super::{Flow, Request, Run, ServerCommand};
use crate::core::client::Door;
use crate::process::Process;

/// Distance from a node's port to its cluster bus's, by convention.
const BUS_PORT_OFFSET: u16 = 10_000;

const EACH_NODE: &str = "O(N) where N is the number of shards";

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    ServerCommand {
        spec: Spec {
            name: "cluster",
            arity: -2,
            flags: Flags::NONE,
            keys: &[],
            categories: Categories::NONE,
            group: Group::Cluster,
            since: "3.0.0",
            complexity: "Depends on the subcommand",
            summary: "Contains the commands on the cluster view.",
            syntax: "",
        },
        run: None,
    },
    ServerCommand { spec: Spec { flags: ANYTIME.and(Flags::DEPRECATED), ..SLOTS_COMMAND.spec }, ..SLOTS_COMMAND },
    command("cluster|shards", 2, "7.0.0", EACH_NODE, "Describes the shards and their nodes.", "", shards),
    command("cluster|nodes", 2, "3.0.0", EACH_NODE, "Describes the nodes, one a line.", "", nodes),
    command("cluster|info", 2, "3.0.0", "O(1)", "Describes the state of the cluster.", "", info),
    command("cluster|myid", 2, "3.0.0", "O(1)", "Returns the identifier of the node.", "", my_id),
    command("cluster|myshardid", 2, "7.2.0", "O(1)", "Returns the identifier of the node's shard.", "", my_shard_id),
    command(
        "cluster|keyslot",
        3,
        "3.0.0",
        "O(N) where N is the number of bytes of the key",
        "Returns the slot of a key.",
        "key",
        slot_of_key,
    ),
    command(
        "cluster|countkeysinslot",
        3,
        "3.0.0",
        "O(1)",
        "Returns the number of keys in a slot.",
        "slot",
        count_keys_in_slot,
    ),
    command(
        "cluster|getkeysinslot",
        4,
        "3.0.0",
        "O(N) where N is the number of keys asked for",
        "Returns keys of a slot.",
        "slot count",
        keys_in_slot,
    ),
    command("cluster|links", 2, "7.0.0", EACH_NODE, "Returns the links of the cluster bus: none.", "", links),
    command("cluster|help", 2, "5.0.0", "O(1)", "Lists the subcommands.", "", describe_subcommands),
    connection_command("readonly", Flags::FAST.and(Flags::LOADING).and(Flags::STALE), READ_ONLY_SUMMARY, read_only),
    connection_command("readwrite", Flags::FAST.and(Flags::LOADING).and(Flags::STALE), READ_WRITE_SUMMARY, read_write),
    connection_command("asking", Flags::FAST, ASKING_SUMMARY, asking),
];

const ANYTIME: Flags = Flags::LOADING.and(Flags::STALE);
const SLOTS_COMMAND: ServerCommand =
    command("cluster|slots", 2, "3.0.0", EACH_NODE, "Returns which node owns which slots.", "", slots);
const READ_ONLY_SUMMARY: &str = "Allows the connection to read from replicas.";
const READ_WRITE_SUMMARY: &str = "Takes READONLY back.";
const ASKING_SUMMARY: &str = "Follows an ASK redirection; there are none, since slots do not move.";

const fn command(
    name: &'static str,
    arity: i32,
    since: &'static str,
    complexity: &'static str,
    summary: &'static str,
    syntax: &'static str,
    run: Run,
) -> ServerCommand {
    let (flags, categories, group) = (ANYTIME, Categories::NONE, Group::Cluster);
    let spec = Spec { name, arity, flags, keys: &[], categories, group, since, complexity, summary, syntax };
    ServerCommand { spec, run: Some(run) }
}

const fn connection_command(name: &'static str, flags: Flags, summary: &'static str, run: Run) -> ServerCommand {
    let spec = Spec {
        name,
        arity: 1,
        flags,
        keys: &[],
        categories: Categories::CONNECTION,
        group: Group::Cluster,
        since: "3.0.0",
        complexity: "O(1)",
        summary,
        syntax: "",
    };
    ServerCommand { spec, run: Some(run) }
}

/// Refuses when the process does not show itself as a cluster: keys of a command may be in several slots then, which
/// clients that know of slots would not send.
fn check_enabled(request: &Request<'_>) -> Result<(), CommandError> {
    if request.core.process.options.cross_slot {
        return Err(CommandError::new("ERR This instance has cluster support disabled"));
    }
    Ok(())
}

fn describe_subcommands(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    help(request)
}

/// The address that the nodes are shown with. A script whose client is another core's does not know the one that the
/// client connected to: then it is empty, as in Redis while a node has not learned its own.
fn address(request: &Request<'_>) -> String {
    let process = &request.core.process;
    match request.local_ip() {
        Some(local) => process.announced_ip(local),
        None => process.options.announce_ip.clone().unwrap_or_default(),
    }
}

fn slots(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    let address = address(request);
    let process = request.core.process.clone();
    let shards = process.options.shards;
    let mut reply = request.reply();
    reply.array(shards);
    for shard in 0..shards {
        let slots = shard_slots(shard, shards);
        reply.array(3);
        reply.integer(i64::from(*slots.start()));
        reply.integer(i64::from(*slots.end()));
        reply.array(4);
        reply.bulk(address.as_bytes());
        reply.integer(i64::from(process.shard_port(shard)));
        reply.bulk(process.node_ids[shard].as_bytes());
        // Further names of the node.
        reply.map(0);
    }
    Ok(Flow::Done)
}

fn shards(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    let address = address(request);
    let process = request.core.process.clone();
    let shards = process.options.shards;
    let mut reply = request.reply();
    reply.array(shards);
    for shard in 0..shards {
        let slots = shard_slots(shard, shards);
        reply.map(2);
        reply.bulk(b"slots");
        reply.array(2);
        reply.integer(i64::from(*slots.start()));
        reply.integer(i64::from(*slots.end()));
        reply.bulk(b"nodes");
        reply.array(1);
        reply.map(7);
        reply.bulk(b"id");
        reply.bulk(process.node_ids[shard].as_bytes());
        reply.bulk(b"port");
        reply.integer(i64::from(process.shard_port(shard)));
        reply.bulk(b"ip");
        reply.bulk(address.as_bytes());
        reply.bulk(b"endpoint");
        reply.bulk(address.as_bytes());
        reply.bulk(b"role");
        reply.bulk(b"master");
        reply.bulk(b"replication-offset");
        reply.integer(0);
        reply.bulk(b"health");
        reply.bulk(b"online");
    }
    Ok(Flow::Done)
}

/// A node's epoch: a number that no other node of the cluster has.
fn epoch(shard: usize) -> usize {
    shard + 1
}

/// The cluster bus's port, by convention; 0, a node without a bus, where the convention leaves no port for it.
fn bus_port(port: u16) -> u16 {
    port.checked_add(BUS_PORT_OFFSET).unwrap_or(0)
}

/// The line of the shared port: a node without slots, so that tools which keep the address they were given for `myself`
/// send it nothing that would have to be forwarded.
fn router_line(process: &Process, address: &str) -> String {
    let port = process.options.port;
    format!("{} {address}:{port}@{} myself,master - 0 0 0 connected\n", process.router_id, bus_port(port))
}

fn node_line(process: &Process, shard: usize, myself: Option<usize>, address: &str, now_ms: i64) -> String {
    let port = process.shard_port(shard);
    let bus_port = bus_port(port);
    let (flags, heard_ms) = if myself == Some(shard) { ("myself,master", 0) } else { ("master", now_ms) };
    let slots = shard_slots(shard, process.options.shards);
    format!(
        "{id} {address}:{port}@{bus_port} {flags} - 0 {heard_ms} {epoch} connected {first}-{last}\n",
        id = process.node_ids[shard],
        epoch = epoch(shard),
        first = slots.start(),
        last = slots.end(),
    )
}

/// The shard of the port that the client came in by; `None` on the shared port.
fn my_shard(request: &Request<'_>) -> Option<usize> {
    (request.door() == Door::Shard).then_some(request.core.number)
}

fn nodes(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    let address = address(request);
    let myself = my_shard(request);
    let core = &*request.core;
    let mut lines = if myself.is_none() { router_line(&core.process, &address) } else { String::new() };
    for shard in 0..core.process.options.shards {
        lines.push_str(&node_line(&core.process, shard, myself, &address, core.now_ms));
    }
    request.reply().verbatim(lines.as_bytes());
    Ok(Flow::Done)
}

fn info(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    let shards = request.core.process.options.shards;
    let myself = my_shard(request);
    let my_epoch = myself.map_or(0, epoch);
    let nodes = shards + usize::from(myself.is_none());
    let text = format!(
        "cluster_state:ok\r\n\
         cluster_slots_assigned:{SLOTS}\r\n\
         cluster_slots_ok:{SLOTS}\r\n\
         cluster_slots_pfail:0\r\n\
         cluster_slots_fail:0\r\n\
         cluster_known_nodes:{nodes}\r\n\
         cluster_size:{shards}\r\n\
         cluster_current_epoch:{shards}\r\n\
         cluster_my_epoch:{my_epoch}\r\n\
         cluster_stats_messages_sent:0\r\n\
         cluster_stats_messages_received:0\r\n\
         total_cluster_links_buffer_limit_exceeded:0\r\n"
    );
    request.reply().verbatim(text.as_bytes());
    Ok(Flow::Done)
}

fn my_id(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    let myself = my_shard(request);
    let process = &request.core.process;
    let id = myself.map_or(&process.router_id, |shard| &process.node_ids[shard]).clone();
    request.reply().bulk(id.as_bytes());
    Ok(Flow::Done)
}

fn my_shard_id(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    let id = request.core.process.shard_ids[request.core.number].clone();
    request.reply().bulk(id.as_bytes());
    Ok(Flow::Done)
}

fn slot_of_key(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    let slot = key_slot(request.args.at(2));
    request.reply().integer(i64::from(slot));
    Ok(Flow::Done)
}

/// The slot that a number names.
fn valid_slot(number: i64) -> Option<u16> {
    u16::try_from(number).ok().filter(|&slot| usize::from(slot) < SLOTS)
}

fn count_keys_in_slot(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    let number = number::parse_i64(request.args.at(2)).ok_or(CommandError::NOT_AN_INTEGER)?;
    let slot = valid_slot(number).ok_or_else(|| CommandError::new("ERR Invalid slot"))?;
    let database = request.database();
    request.ask_owner(slot, move |core, reply| reply.count(core.shard.keys.count_in_slot(database, slot)))
}

fn keys_in_slot(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    let number = |place| number::parse_i64(request.args.at(place)).ok_or(CommandError::NOT_AN_INTEGER);
    let (slot, count) = (number(2)?, number(3)?);
    let (Some(slot), Ok(count)) = (valid_slot(slot), usize::try_from(count)) else {
        return Err(CommandError::new("ERR Invalid slot or number of keys"));
    };
    let database = request.database();
    request.ask_owner(slot, move |core, reply| {
        let keys = &core.shard.keys;
        reply.array(keys.count_in_slot(database, slot).min(count));
        keys.keys_in_slot(database, slot, count, |key| reply.bulk(key));
    })
}

/// No node talks to another over a bus: all live in this process.
fn links(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    request.reply().array(0);
    Ok(Flow::Done)
}

fn read_only(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    request.client().read_only = true;
    request.reply().ok();
    Ok(Flow::Done)
}

fn read_write(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    request.client().read_only = false;
    request.reply().ok();
    Ok(Flow::Done)
}

/// Changes nothing: a slot is only ever where its owner is, so no command is let through that was not before.
fn asking(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_enabled(request)?;
    request.reply().ok();
    Ok(Flow::Done)
}
