//! Publish and subscribe.

use ruvio_shard::command::{Categories, Flags, Group, KeyFlags, KeySpec, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::reply::Reply;

use super::help::help;
use super::{Flow, Request, Run, ServerCommand};
use crate::core::client::Door;
use crate::core::subscriber_counts::{Name, Topic};
use crate::process::Process;

const ANYTIME: Flags = Flags::PUBSUB.and(Flags::LOADING).and(Flags::STALE);
const SUBSCRIBING: Flags = ANYTIME.and(Flags::NO_SCRIPT);
const PUBLISHING: Flags = ANYTIME.and(Flags::FAST);
const SHARD_CHANNELS: &[KeySpec] = &[KeySpec::to_end(1, 1, KeyFlags::NOT_KEY)];

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    ServerCommand {
        spec: Spec {
            complexity: "O(N) where N is the number of channels",
            summary: "Has the messages of channels sent to the connection.",
            syntax: "channel [channel ...]",
            ..spec("subscribe", -2, SUBSCRIBING, "2.0.0")
        },
        run: Some(|request| subscribe(request, Topic::Channel)),
    },
    ServerCommand {
        spec: Spec {
            complexity: "O(N) where N is the number of channels",
            summary: "Ends subscriptions to channels: those given, or all.",
            syntax: "[channel [channel ...]]",
            ..spec("unsubscribe", -1, SUBSCRIBING, "2.0.0")
        },
        run: Some(|request| unsubscribe(request, Topic::Channel)),
    },
    ServerCommand {
        spec: Spec {
            complexity: "O(N) where N is the number of patterns",
            summary: "Has the messages of all channels that match patterns sent to the connection.",
            syntax: "pattern [pattern ...]",
            ..spec("psubscribe", -2, SUBSCRIBING, "2.0.0")
        },
        run: Some(|request| subscribe(request, Topic::Pattern)),
    },
    ServerCommand {
        spec: Spec {
            complexity: "O(N) where N is the number of patterns",
            summary: "Ends subscriptions to patterns: those given, or all.",
            syntax: "[pattern [pattern ...]]",
            ..spec("punsubscribe", -1, SUBSCRIBING, "2.0.0")
        },
        run: Some(|request| unsubscribe(request, Topic::Pattern)),
    },
    ServerCommand {
        spec: Spec {
            complexity: "O(N+M) where N is the number of clients that receive the message, and M the number of patterns \
                         that anybody subscribes to",
            summary: "Sends a message to the subscribers of a channel.",
            syntax: "channel message",
            ..spec("publish", 3, PUBLISHING, "2.0.0")
        },
        run: Some(|request| publish(request, Topic::Channel)),
    },
    ServerCommand {
        spec: Spec {
            complexity: "O(N) where N is the number of shard channels",
            summary: "Has the messages of shard channels sent to the connection.",
            syntax: "shardchannel [shardchannel ...]",
            keys: SHARD_CHANNELS,
            ..spec("ssubscribe", -2, SUBSCRIBING, "7.0.0")
        },
        run: Some(|request| subscribe(request, Topic::ShardChannel)),
    },
    ServerCommand {
        spec: Spec {
            complexity: "O(N) where N is the number of shard channels",
            summary: "Ends subscriptions to shard channels: those given, or all.",
            syntax: "[shardchannel [shardchannel ...]]",
            keys: SHARD_CHANNELS,
            ..spec("sunsubscribe", -1, SUBSCRIBING, "7.0.0")
        },
        run: Some(|request| unsubscribe(request, Topic::ShardChannel)),
    },
    ServerCommand {
        spec: Spec {
            complexity: "O(N) where N is the number of clients that receive the message",
            summary: "Sends a message to the subscribers of a shard channel.",
            syntax: "shardchannel message",
            keys: &[KeySpec::one(1, KeyFlags::NOT_KEY)],
            ..spec("spublish", 3, PUBLISHING, "7.0.0")
        },
        run: Some(|request| publish(request, Topic::ShardChannel)),
    },
    ServerCommand {
        spec: Spec {
            complexity: "Depends on the subcommand",
            summary: "Contains the commands on channels and their subscribers.",
            ..spec("pubsub", -2, Flags::NONE, "2.8.0")
        },
        run: None,
    },
    subcommand(
        Spec {
            complexity: "O(N) where N is the number of channels with subscribers",
            summary: "Returns the channels that have subscribers: all, or those that match a pattern.",
            syntax: "[pattern]",
            ..spec("pubsub|channels", -2, ANYTIME, "2.8.0")
        },
        channels,
    ),
    subcommand(
        Spec {
            complexity: "O(N) where N is the number of channels given",
            summary: "Returns how many clients subscribe to each channel, patterns left out.",
            syntax: "[channel [channel ...]]",
            ..spec("pubsub|numsub", -2, ANYTIME, "2.8.0")
        },
        |request| numbers_of_subscribers(request, Topic::Channel),
    ),
    subcommand(
        Spec {
            complexity: "O(1)",
            summary: "Returns how many different patterns are subscribed to.",
            ..spec("pubsub|numpat", 2, ANYTIME, "2.8.0")
        },
        number_of_patterns,
    ),
    subcommand(
        Spec {
            complexity: "O(N) where N is the number of shard channels with subscribers",
            summary: "Returns the shard channels that have subscribers: all, or those that match a pattern.",
            syntax: "[pattern]",
            ..spec("pubsub|shardchannels", -2, ANYTIME, "7.0.0")
        },
        shard_channels,
    ),
    subcommand(
        Spec {
            complexity: "O(N) where N is the number of shard channels given",
            summary: "Returns how many clients subscribe to each shard channel.",
            syntax: "[shardchannel [shardchannel ...]]",
            ..spec("pubsub|shardnumsub", -2, ANYTIME, "7.0.0")
        },
        |request| numbers_of_subscribers(request, Topic::ShardChannel),
    ),
    subcommand(
        Spec {
            complexity: "O(1)",
            summary: "Lists the subcommands.",
            ..spec("pubsub|help", 2, Flags::LOADING.and(Flags::STALE), "6.2.0")
        },
        help,
    ),
];

const fn spec(name: &'static str, arity: i32, flags: Flags, since: &'static str) -> Spec {
    Spec {
        name,
        arity,
        flags,
        keys: &[],
        categories: Categories::NONE,
        group: Group::PubSub,
        since,
        complexity: "",
        summary: "",
        syntax: "",
    }
}

const fn subcommand(spec: Spec, run: Run) -> ServerCommand {
    ServerCommand { spec, run: Some(run) }
}

/// The commands that a client may use while it subscribes, with RESP2: there it could not tell other replies from
/// messages.
pub fn is_for_subscribers(name: &str) -> bool {
    matches!(
        name,
        "subscribe"
            | "unsubscribe"
            | "psubscribe"
            | "punsubscribe"
            | "ssubscribe"
            | "sunsubscribe"
            | "ping"
            | "quit"
            | "reset"
    )
}

/// Confirms a subscription, or its end: `word`, the name if there was one, and how many are left.
fn confirm(request: &mut Request<'_>, word: &[u8], name: Option<&[u8]>, count: usize) {
    if !request.client().wants_replies() {
        // As in Redis, it is a message and no reply.
        let mut encoded = Vec::new();
        write_confirmation(&mut Reply::new(&mut encoded, request.protocol), word, name, count);
        request.client().push_message(&encoded);
        return;
    }
    write_confirmation(&mut request.reply(), word, name, count);
}

fn write_confirmation(reply: &mut Reply<'_>, word: &[u8], name: Option<&[u8]>, count: usize) {
    reply.push(3);
    reply.bulk(word);
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.count(count);
}

fn subscribe(request: &mut Request<'_>, topic: Topic) -> Result<Flow, CommandError> {
    let word: &[u8] = match topic {
        Topic::Channel => b"subscribe",
        Topic::Pattern => b"psubscribe",
        Topic::ShardChannel => b"ssubscribe",
    };
    let args = request.args;
    for name in args.from(1).iter() {
        let count = request.core.subscribe(request.client, topic, name);
        confirm(request, word, Some(name), count);
    }
    Ok(Flow::Done)
}

fn unsubscribe(request: &mut Request<'_>, topic: Topic) -> Result<Flow, CommandError> {
    let word: &[u8] = match topic {
        Topic::Channel => b"unsubscribe",
        Topic::Pattern => b"punsubscribe",
        Topic::ShardChannel => b"sunsubscribe",
    };
    let args = request.args;
    for name in args.from(1).iter() {
        let count = request.core.unsubscribe(request.client, topic, name);
        confirm(request, word, Some(name), count);
    }
    if args.len() > 1 {
        return Ok(Flow::Done);
    }
    let subscriptions = request.client().subscriptions.as_ref();
    let count = subscriptions.map_or(0, |subscriptions| subscriptions.shown_count(topic));
    let names: Vec<Name> =
        subscriptions.map_or_else(Vec::new, |subscriptions| subscriptions.names(topic).cloned().collect());
    if names.is_empty() {
        confirm(request, word, None, count);
    }
    for name in names {
        let count = request.core.unsubscribe(request.client, topic, &name);
        confirm(request, word, Some(&name), count);
    }
    Ok(Flow::Done)
}

fn publish(request: &mut Request<'_>, topic: Topic) -> Result<Flow, CommandError> {
    let args = request.args;
    let receivers = request.core.publish(topic, args.at(1), args.at(2));
    request.reply().count(receivers);
    Ok(Flow::Done)
}

/// The pattern of `PUBSUB CHANNELS` and `PUBSUB SHARDCHANNELS`.
fn pattern<'a>(request: &Request<'a>) -> Result<Option<&'a [u8]>, CommandError> {
    let args = request.args;
    if args.len() > 3 {
        let given = String::from_utf8_lossy(args.at(1));
        return Err(CommandError::new(format!(
            "ERR unknown subcommand or wrong number of arguments for '{given}'. Try PUBSUB HELP."
        )));
    }
    Ok(args.get(2))
}

fn write_names(request: &mut Request<'_>, names: &[Name]) {
    let mut reply = request.reply();
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name));
}

/// On a shard's own port, its core, or else none: there the numbers are those of a node of a cluster, whose clients add up
/// what all nodes say.
fn node(request: &Request<'_>) -> Option<usize> {
    (request.door() == Door::Shard).then_some(request.core.number)
}

/// Whether a node, or the whole process, has the slot of a shard channel.
fn has_shard_channel(process: &Process, node: Option<usize>, name: &[u8]) -> bool {
    node.is_none_or(|core| process.owner(ruvio_shard::slot::key_slot(name)) == core)
}

fn channels(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let pattern = pattern(request)?;
    let node = node(request);
    let names = request.core.process.subscriber_counts.matching(Topic::Channel, pattern, node);
    write_names(request, &names);
    Ok(Flow::Done)
}

fn shard_channels(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let pattern = pattern(request)?;
    let (node, process) = (node(request), &request.core.process);
    let mut names = process.subscriber_counts.matching(Topic::ShardChannel, pattern, None);
    names.retain(|name| has_shard_channel(process, node, name));
    write_names(request, &names);
    Ok(Flow::Done)
}

fn numbers_of_subscribers(request: &mut Request<'_>, topic: Topic) -> Result<Flow, CommandError> {
    let names = request.args.from(2);
    let (node, process) = (node(request), &request.core.process);
    let count = |name: &[u8]| match topic {
        // Its subscribers may be on any core, but only the node of its slot speaks for it.
        Topic::ShardChannel if has_shard_channel(process, node, name) => {
            process.subscriber_counts.count(topic, name, None)
        }
        Topic::ShardChannel => 0,
        Topic::Channel | Topic::Pattern => process.subscriber_counts.count(topic, name, node),
    };
    let counts: Vec<usize> = names.iter().map(count).collect();
    let mut reply = request.reply();
    reply.array(counts.len() * 2);
    for (name, count) in names.iter().zip(counts) {
        reply.bulk(name);
        reply.count(count);
    }
    Ok(Flow::Done)
}

fn number_of_patterns(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let node = node(request);
    let subscribers = &request.core.process.subscriber_counts;
    let patterns = match node {
        Some(core) => subscribers.names_of_core(Topic::Pattern, core),
        None => subscribers.names(Topic::Pattern),
    };
    request.reply().count(patterns);
    Ok(Flow::Done)
}
