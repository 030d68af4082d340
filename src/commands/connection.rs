//! Connection commands.

use ruvio_shard::args::Args;
use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::number;
use ruvio_shard::reply::Protocol;
use subtle::ConstantTimeEq;

use super::client::{DEFAULT_USER, checked_name};
use super::{Flow, Request, ServerCommand};
use crate::core::client::Replies;

const ANYTIME: Flags = Flags::LOADING.and(Flags::STALE).and(Flags::FAST);
const UNAUTHENTICATED: Flags = ANYTIME.and(Flags::ALLOW_BUSY).and(Flags::NO_SCRIPT).and(Flags::NO_AUTH);

/// The version of Redis whose behaviour clients can count on. They go by it to use what came with it: the expiry of hash
/// fields; and client-side caching, which redis-py offers from this version on.
pub const REDIS_VERSION: &str = "7.4.0";

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    ServerCommand {
        spec: Spec {
            name: "ping",
            arity: -1,
            flags: Flags::FAST,
            keys: &[],
            categories: Categories::CONNECTION,
            group: Group::Connection,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Answers PONG, or the message.",
            syntax: "[message]",
        },
        run: Some(ping),
    },
    ServerCommand {
        spec: Spec {
            name: "echo",
            arity: 2,
            flags: ANYTIME,
            keys: &[],
            categories: Categories::CONNECTION,
            group: Group::Connection,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Returns the message.",
            syntax: "message",
        },
        run: Some(echo),
    },
    ServerCommand {
        spec: Spec {
            name: "select",
            arity: 2,
            flags: ANYTIME,
            keys: &[],
            categories: Categories::CONNECTION,
            group: Group::Connection,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Changes the selected database.",
            syntax: "index",
        },
        run: Some(select),
    },
    ServerCommand {
        spec: Spec {
            name: "quit",
            arity: -1,
            flags: UNAUTHENTICATED.and(Flags::DEPRECATED),
            keys: &[],
            categories: Categories::CONNECTION,
            group: Group::Connection,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Closes the connection.",
            syntax: "",
        },
        run: Some(quit),
    },
    ServerCommand {
        spec: Spec {
            name: "hello",
            arity: -1,
            flags: UNAUTHENTICATED,
            keys: &[],
            categories: Categories::CONNECTION,
            group: Group::Connection,
            since: "6.0.0",
            complexity: "O(1)",
            summary: "Chooses the protocol and describes the server.",
            syntax: "[protover [AUTH username password] [SETNAME clientname]]",
        },
        run: Some(hello),
    },
    ServerCommand {
        spec: Spec {
            name: "auth",
            arity: -2,
            flags: UNAUTHENTICATED,
            keys: &[],
            categories: Categories::CONNECTION,
            group: Group::Connection,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "Authenticates the connection.",
            syntax: "[username] password",
        },
        run: Some(auth),
    },
    ServerCommand {
        spec: Spec {
            name: "reset",
            arity: 1,
            flags: UNAUTHENTICATED,
            keys: &[],
            categories: Categories::CONNECTION,
            group: Group::Connection,
            since: "6.2.0",
            complexity: "O(1)",
            summary: "Returns the connection to how it was when it was made.",
            syntax: "",
        },
        run: Some(reset),
    },
];

fn ping(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    if args.len() > 2 {
        return Err(CommandError::wrong_arity("ping"));
    }
    let client = request.core.clients.get(request.client);
    if request.protocol == Protocol::Resp2 && client.is_some_and(|client| client.subscriptions.is_some()) {
        // In the form of a message, which is all that the client may be ready for.
        let mut reply = request.reply();
        reply.array(2);
        reply.bulk(b"pong");
        reply.bulk(args.get(1).unwrap_or_default());
        return Ok(Flow::Done);
    }
    match args.get(1) {
        None => request.reply().simple("PONG"),
        Some(message) => request.reply().bulk(message),
    }
    Ok(Flow::Done)
}

fn echo(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let message = request.args.at(1);
    request.reply().bulk(message);
    Ok(Flow::Done)
}

/// The database that `SELECT` asks for with these words.
pub fn selected_database(args: Args<'_>, databases: usize) -> Result<usize, CommandError> {
    let number = args.get(1).and_then(number::parse_i64).ok_or(CommandError::NOT_AN_INTEGER)?;
    if i32::try_from(number).is_err() {
        return Err(CommandError::new("ERR value is out of range, value must between -2147483648 and 2147483647"));
    }
    usize::try_from(number).ok().filter(|&number| number < databases).ok_or(CommandError::DB_INDEX_OUT_OF_RANGE)
}

fn select(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let database = selected_database(request.args, request.core.process.options.databases)?;
    request.client().database = database;
    request.reply().ok();
    Ok(Flow::Done)
}

fn quit(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.reply().ok();
    Ok(Flow::Close)
}

fn hello(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    let mut protocol = request.protocol;
    if let Some(word) = args.get(1) {
        protocol = match number::parse_i64(word) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Err(CommandError::new("NOPROTO unsupported protocol version")),
            None => return Err(CommandError::new("ERR Protocol version is not an integer or out of range")),
        };
    }
    let mut credentials = None;
    let mut name = None;
    let mut place = 2;
    while let Some(option) = args.get(place) {
        if let (true, Some(user), Some(password)) = (args.is(place, "auth"), args.get(place + 1), args.get(place + 2)) {
            credentials = Some((user, password));
            place += 3;
        } else if let (true, Some(word)) = (args.is(place, "setname"), args.get(place + 1)) {
            name = Some(checked_name(word)?);
            place += 2;
        } else {
            let option = String::from_utf8_lossy(option);
            return Err(CommandError::new(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }
    if let Some((user, password)) = credentials {
        authenticate(request, user, password)?;
    }
    if !request.client().authenticated {
        return Err(CommandError::new(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
             <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    let client = request.client();
    if let Some(name) = name {
        client.name = name;
    }
    client.protocol = protocol;
    let id = client.id;
    request.protocol = protocol;
    let mode = if request.core.process.options.cross_slot { "standalone" } else { "cluster" };
    let mut reply = request.reply();
    reply.map(7);
    for (field, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(if protocol == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(id as i64);
    for (field, value) in [("mode", mode), ("role", "master")] {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
    Ok(Flow::Done)
}

fn auth(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    match args.len() {
        2 if request.core.configuration.require_pass.is_empty() => {
            return Err(CommandError::new(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            ));
        }
        2 => authenticate(request, DEFAULT_USER.as_bytes(), args.at(1))?,
        3 => authenticate(request, args.at(1), args.at(2))?,
        _ => return Err(CommandError::SYNTAX),
    }
    request.reply().ok();
    Ok(Flow::Done)
}

/// Authenticates the client, or refuses. How long it takes does not tell how much of the password is right.
fn authenticate(request: &mut Request<'_>, user: &[u8], password: &[u8]) -> Result<(), CommandError> {
    let wanted = &request.core.configuration.require_pass;
    // Without a password set, the default user takes any.
    let right = wanted.is_empty() || bool::from(wanted.as_slice().ct_eq(password));
    if user != DEFAULT_USER.as_bytes() || !right {
        return Err(CommandError::new("WRONGPASS invalid username-password pair or user is disabled."));
    }
    request.client().authenticated = true;
    Ok(())
}

fn reset(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let authenticated = request.core.configuration.require_pass.is_empty();
    request.core.stop_monitoring(request.client);
    // Refused only where there is none.
    let _ = request.core.discard_transaction(request.client);
    request.core.unwatch(request.client);
    request.core.unsubscribe_all(request.client);
    request.core.stop_tracking(request.client);
    let client = request.client();
    client.database = 0;
    client.protocol = Protocol::Resp2;
    client.authenticated = authenticated;
    client.no_touch = false;
    client.no_evict = false;
    client.replies = Replies::Wanted;
    client.read_only = false;
    client.name.clear();
    request.reply().simple("RESET");
    Ok(Flow::Done)
}
