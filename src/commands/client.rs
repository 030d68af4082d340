//! `CLIENT …`: what connections are there, their names, how they are served, and ending them.

use ruvio_shard::args::Args;
use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::number;
use ruvio_shard::reply::Protocol;

use super::help::help;
use super::{Flow, Request, Run, ServerCommand};
use crate::core::Core;
use crate::core::client::{Client, ClientKey, Piece, UNCOUNTED_OUTPUT};
use crate::core::subscriber_counts::Topic;
use crate::core::waiting::Ending;

mod flow;
mod tracking;

pub use tracking::mode_after;

/// The user every connection has.
pub const DEFAULT_USER: &str = "default";

const ANYTIME: Flags = Flags::NO_SCRIPT.and(Flags::LOADING).and(Flags::STALE);
const ADMIN: Flags = ANYTIME.and(Flags::ADMIN);
const EACH_CLIENT: &str = "O(N) where N is the number of connections";

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    ServerCommand {
        spec: Spec {
            name: "client",
            arity: -2,
            flags: Flags::NONE,
            keys: &[],
            categories: Categories::NONE,
            group: Group::Connection,
            since: "2.4.0",
            complexity: "Depends on the subcommand",
            summary: "Contains the commands on connections.",
            syntax: "",
        },
        run: None,
    },
    command("client|id", 2, ANYTIME, "5.0.0", "O(1)", "Returns the number of the connection.", "", id),
    command("client|info", 2, ANYTIME, "6.2.0", "O(1)", "Describes the connection.", "", info),
    command(
        "client|list",
        -2,
        ADMIN,
        "2.4.0",
        EACH_CLIENT,
        "Describes the connections, one a line.",
        "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
        list,
    ),
    command("client|getname", 2, ANYTIME, "2.6.9", "O(1)", "Returns the connection's name.", "", get_name),
    command("client|setname", 3, ANYTIME, "2.6.9", "O(1)", "Names the connection.", "connection-name", set_name),
    command(
        "client|setinfo",
        4,
        ANYTIME,
        "7.2.0",
        "O(1)",
        "Notes the name or the version of the client library.",
        "<LIB-NAME libname | LIB-VER libver>",
        set_info,
    ),
    command(
        "client|kill",
        -3,
        ADMIN,
        "2.4.0",
        EACH_CLIENT,
        "Ends connections.",
        "<ip:port | <[ID client-id] | [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] | [USER username] | \
         [ADDR ip:port] | [LADDR ip:port] | [SKIPME <YES | NO>] | [MAXAGE maxage] ...>>",
        kill,
    ),
    command(
        "client|no-evict",
        3,
        ADMIN,
        "7.0.0",
        "O(1)",
        "Exempts the connection from client eviction.",
        "<ON | OFF>",
        no_evict,
    ),
    command(
        "client|no-touch",
        3,
        ANYTIME,
        "7.2.0",
        "O(1)",
        "Has the connection's reads leave access times and frequencies of keys alone.",
        "<ON | OFF>",
        no_touch,
    ),
    command(
        "client|unblock",
        -3,
        ADMIN,
        "5.0.0",
        "O(log N) where N is the number of connections that wait for a key",
        "Ends the waiting of a connection.",
        "client-id [TIMEOUT | ERROR]",
        unblock,
    ),
    command(
        "client|pause",
        -3,
        ADMIN,
        "3.0.0",
        "O(1)",
        "Has the commands of all connections, or their writes, wait.",
        "timeout [WRITE | ALL]",
        flow::pause,
    ),
    command(
        "client|unpause",
        2,
        ADMIN,
        "6.2.0",
        "O(N) where N is the number of connections that wait",
        "Ends a pause.",
        "",
        flow::unpause,
    ),
    command(
        "client|reply",
        3,
        ANYTIME,
        "3.2.0",
        "O(1)",
        "Chooses whether the connection's commands are answered.",
        "<ON | OFF | SKIP>",
        flow::reply,
    ),
    command(
        "client|tracking",
        -3,
        ANYTIME,
        "6.0.0",
        "O(1) for every core and prefix",
        "Has the connection told when keys change that it has read, or all keys with its prefixes.",
        "<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
        tracking::tracking,
    ),
    command(
        "client|caching",
        3,
        ANYTIME,
        "6.0.0",
        "O(1)",
        "Says whether the reads of the next command are tracked.",
        "<YES | NO>",
        tracking::caching,
    ),
    command(
        "client|getredir",
        2,
        ANYTIME,
        "6.0.0",
        "O(1)",
        "Returns the number of the connection that is told of changes in place of this one.",
        "",
        tracking::get_redirection,
    ),
    command(
        "client|trackinginfo",
        2,
        ANYTIME,
        "6.2.0",
        "O(1)",
        "Returns how the connection is told of changes.",
        "",
        tracking::tracking_info,
    ),
    command("client|help", 2, Flags::LOADING.and(Flags::STALE), "5.0.0", "O(1)", "Lists the subcommands.", "", help),
];

#[expect(clippy::too_many_arguments, reason = "each is a field of the specification")]
const fn command(
    name: &'static str,
    arity: i32,
    flags: Flags,
    since: &'static str,
    complexity: &'static str,
    summary: &'static str,
    syntax: &'static str,
    run: Run,
) -> ServerCommand {
    let categories = Categories::CONNECTION;
    let spec = Spec {
        name,
        arity,
        flags,
        keys: &[],
        categories,
        group: Group::Connection,
        since,
        complexity,
        summary,
        syntax,
    };
    ServerCommand { spec, run: Some(run) }
}

fn id(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let id = request.client().id;
    request.reply().integer(id as i64);
    Ok(Flow::Done)
}

fn info(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let executing = request.args.iter().map(<[u8]>::len).sum();
    let now_ms = request.core.now_ms;
    let line = describe(request.client(), now_ms, executing);
    request.reply().verbatim(&line);
    Ok(Flow::Done)
}

/// The types that clients are told apart by. There are no replicas or masters to be of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Normal,
    Subscriber,
    Other,
}

impl Type {
    /// As in Redis, a monitor is of the type it would be of otherwise.
    fn of(client: &Client) -> Type {
        if client.subscriptions.is_some() { Type::Subscriber } else { Type::Normal }
    }
}

fn parse_type(word: &[u8]) -> Result<Type, CommandError> {
    if word.eq_ignore_ascii_case(b"normal") {
        return Ok(Type::Normal);
    }
    if word.eq_ignore_ascii_case(b"pubsub") {
        return Ok(Type::Subscriber);
    }
    let others: [&[u8]; 3] = [b"slave", b"replica", b"master"];
    if others.iter().any(|other| word.eq_ignore_ascii_case(other)) {
        return Ok(Type::Other);
    }
    Err(CommandError::new(format!("ERR Unknown client type '{}'", String::from_utf8_lossy(word))))
}

fn list(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    let mut asked_type = None;
    let mut ids: Option<Vec<u64>> = None;
    match args.len() {
        2 => {}
        4 if args.is(2, "type") => asked_type = Some(parse_type(args.at(3))?),
        4.. if args.is(2, "id") => {
            let parsed = args.from(3).iter().map(|word| {
                // Numbers below 1 are nobody's.
                number::parse_i64(word)
                    .map(|id| u64::try_from(id).unwrap_or(0))
                    .ok_or_else(|| CommandError::new("ERR Invalid client ID"))
            });
            ids = Some(parsed.collect::<Result<_, _>>()?);
        }
        _ => return Err(CommandError::SYNTAX),
    }
    let caller = request.client().id;
    let executing = args.iter().map(<[u8]>::len).sum();
    let wanted: Option<std::collections::HashSet<u64>> = ids.as_ref().map(|ids| ids.iter().copied().collect());
    request.core.gather(
        request.client,
        move |core| {
            let fits = |client: &Client| {
                asked_type.is_none_or(|asked| asked == Type::of(client))
                    && wanted.as_ref().is_none_or(|wanted| wanted.contains(&client.id))
            };
            let lines = core.clients.iter().filter(|(_, client)| fits(client)).map(|(_, client)| {
                let executing = if client.id == caller { executing } else { 0 };
                (client.id, describe(client, core.now_ms, executing))
            });
            lines.collect()
        },
        move |_, parts: Vec<Vec<(u64, Vec<u8>)>>, reply| {
            let mut lines: Vec<(u64, Vec<u8>)> = parts.into_iter().flatten().collect();
            lines.sort_unstable_by_key(|(id, _)| *id);
            let text: Vec<u8> = match ids {
                None => lines.into_iter().flat_map(|(_, line)| line).collect(),
                // In the order asked for.
                Some(ids) => ids
                    .iter()
                    .filter_map(|id| lines.binary_search_by_key(id, |(id, _)| *id).ok())
                    .flat_map(|place| lines[place].1.iter().copied())
                    .collect(),
            };
            reply.verbatim(&text);
        },
    );
    Ok(Flow::Wait)
}

/// A client's line in `CLIENT LIST`, in the format of Redis 7.2, with what later versions show besides. `executing` is how many bytes of words the client has in
/// execution.
fn describe(client: &Client, now_ms: i64, executing: usize) -> Vec<u8> {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    let elapsed_s = |since_ms: i64| (now_ms - since_ms).max(0) / 1000;
    let mut flags = String::new();
    let tracking = client.tracking.as_ref();
    for (set, flag) in [
        (client.monitor, 'O'),
        (client.subscriptions.is_some(), 'P'),
        (client.transaction.is_some(), 'x'),
        (client.blocked_at.is_some() || client.postponed, 'b'),
        (tracking.is_some(), 't'),
        (tracking.is_some_and(|tracking| tracking.is_broken), 'R'),
        (tracking.is_some_and(|tracking| tracking.mode.broadcast), 'B'),
        (client.closing, 'c'),
        (client.read_only, 'r'),
        (client.no_evict, 'e'),
        (client.no_touch, 'T'),
    ] {
        if set {
            flags.push(flag);
        }
    }
    if flags.is_empty() {
        flags.push('N');
    }
    let mut events = String::new();
    if client.watches_read {
        events.push('r');
    }
    if client.watches_write {
        events.push('w');
    }
    // Redis has the first of it in a buffer of its own, and the rest in a list of such.
    let output_bytes = client.output.len() - client.sent;
    let (buffered, room) = (output_bytes.min(UNCOUNTED_OUTPUT), client.output.capacity().min(UNCOUNTED_OUTPUT));
    let listed = (output_bytes - buffered).div_ceil(UNCOUNTED_OUTPUT);
    let held_bytes = client.held.capacity() + client.early;
    let listed_bytes = client.output.capacity() - room + held_bytes;
    let total_bytes = size_of::<Client>()
        + client.input.capacity()
        + client.output.capacity()
        + held_bytes
        + client.name.capacity()
        + client.library_name.capacity()
        + client.library_version.capacity()
        + executing;
    let queued = client.transaction.as_ref().map_or(-1, |queue| queue.len() as i64);
    let queued_bytes = client.transaction.as_ref().map_or(0, |queue| queue.bytes());
    let mut line = Vec::with_capacity(400);
    let fd = client.socket.as_raw_fd();
    line.extend_from_slice(
        format!("id={} addr={} laddr={} fd={fd} name=", client.id, client.peer, client.local).as_bytes(),
    );
    line.extend_from_slice(&client.name);
    let mut write = |text: std::fmt::Arguments<'_>| {
        // Writing to memory does not fail.
        let _ = line.write_fmt(text);
    };
    write(format_args!(" age={} idle={} ", elapsed_s(client.since_ms), elapsed_s(client.active_ms)));
    let [channels, patterns, shard_channels] = [Topic::Channel, Topic::Pattern, Topic::ShardChannel]
        .map(|topic| client.subscriptions.as_ref().map_or(0, |subscriptions| subscriptions.count(topic)));
    write(format_args!("flags={flags} db={} ", client.database));
    write(format_args!("sub={channels} psub={patterns} ssub={shard_channels} multi={queued} "));
    write(format_args!("watch={} ", client.watched_keys.len()));
    let input_room = client.input.capacity() - client.input.len();
    write(format_args!(
        "qbuf={} qbuf-free={input_room} argv-mem={executing} multi-mem={queued_bytes} ",
        client.input.len()
    ));
    write(format_args!("rbs={room} rbp={room} obl={buffered} "));
    // The reply that shows this is not owed yet.
    let is_own = executing > 0 && matches!(client.pieces.back(), Some(Piece::Gathering(_)));
    let listed = listed + client.pieces.len() - usize::from(is_own);
    let listed_bytes = if listed > 0 { listed_bytes } else { 0 };
    write(format_args!("oll={listed} omem={listed_bytes} tot-mem={total_bytes} "));
    write(format_args!("events={events} cmd={} user={DEFAULT_USER} ", client.last_command));
    write(format_args!("redir={} ", tracking::redirected_to(client)));
    write(format_args!("resp={} lib-name=", if client.protocol == Protocol::Resp3 { 3 } else { 2 }));
    line.extend_from_slice(&client.library_name);
    line.extend_from_slice(b" lib-ver=");
    line.extend_from_slice(&client.library_version);
    // Those that have ended.
    let commands = client.commands.saturating_sub(u64::from(executing > 0 || client.blocked_at.is_some()));
    let (bytes_in, bytes_out) = (client.bytes_in, client.bytes_out);
    line.extend_from_slice(format!(" tot-net-in={bytes_in} tot-net-out={bytes_out} tot-cmds={commands}\n").as_bytes());
    line
}

fn get_name(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let name = std::mem::take(&mut request.client().name);
    if name.is_empty() {
        request.reply().null();
    } else {
        request.reply().bulk(&name);
    }
    request.client().name = name;
    Ok(Flow::Done)
}

/// Whether every byte may stand in a line of `CLIENT LIST`.
fn is_plain(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_graphic)
}

/// A client's name, if it may be one.
pub fn checked_name(word: &[u8]) -> Result<Vec<u8>, CommandError> {
    if is_plain(word) {
        return Ok(word.to_vec());
    }
    Err(CommandError::new("ERR Client names cannot contain spaces, newlines or special characters."))
}

fn set_name(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.client().name = checked_name(request.args.at(2))?;
    request.reply().ok();
    Ok(Flow::Done)
}

fn set_info(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let (attribute, value) = (request.args.at(2), request.args.at(3));
    let is_name = attribute.eq_ignore_ascii_case(b"lib-name");
    let attribute = String::from_utf8_lossy(attribute);
    if !is_name && !attribute.eq_ignore_ascii_case("lib-ver") {
        return Err(CommandError::new(format!("ERR Unrecognized option '{attribute}'")));
    }
    if !is_plain(value) {
        return Err(CommandError::new(format!(
            "ERR {attribute} cannot contain spaces, newlines or special characters."
        )));
    }
    let client = request.client();
    *(if is_name { &mut client.library_name } else { &mut client.library_version }) = value.to_vec();
    request.reply().ok();
    Ok(Flow::Done)
}

fn on_or_off(args: Args<'_>) -> Result<bool, CommandError> {
    match (args.is(2, "on"), args.is(2, "off")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(CommandError::SYNTAX),
    }
}

fn no_evict(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.client().no_evict = on_or_off(request.args)?;
    request.reply().ok();
    Ok(Flow::Done)
}

fn no_touch(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.client().no_touch = on_or_off(request.args)?;
    request.reply().ok();
    Ok(Flow::Done)
}

/// Which connections to end: those that fit all that is given.
struct Filter {
    id: Option<u64>,
    asked_type: Option<Type>,
    peer: Option<Vec<u8>>,
    local: Option<Vec<u8>>,
    max_age_s: Option<i64>,
    /// The caller, where it is left out.
    skipped: Option<u64>,
}

impl Filter {
    fn fits(&self, client: &Client, now_ms: i64) -> bool {
        let is = |address: &Option<Vec<u8>>, own: std::net::SocketAddr| {
            address.as_ref().is_none_or(|address| own.to_string().as_bytes() == &address[..])
        };
        self.skipped != Some(client.id)
            && self.id.is_none_or(|id| id == client.id)
            && self.asked_type.is_none_or(|asked| asked == Type::of(client))
            && self.max_age_s.is_none_or(|age_s| (now_ms - client.since_ms) / 1000 >= age_s)
            && is(&self.peer, client.peer)
            && is(&self.local, client.local)
    }
}

fn kill(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    let caller = request.client().id;
    let mut filter =
        Filter { id: None, asked_type: None, peer: None, local: None, max_age_s: None, skipped: Some(caller) };
    let by_address = args.len() == 3;
    if by_address {
        filter.peer = Some(args.at(2).to_vec());
        filter.skipped = None;
    } else {
        parse_filter(args, caller, &mut filter)?;
    }
    request.core.gather(
        request.client,
        move |core| end_clients(core, &filter, caller),
        move |core, parts: Vec<usize>, reply| match (by_address, parts.into_iter().sum()) {
            (true, 0) => {
                let error = CommandError::new("ERR No such client");
                core.count_error(&error);
                reply.error(&error);
            }
            (true, _) => reply.ok(),
            (false, ended) => reply.count(ended),
        },
    );
    Ok(Flow::Wait)
}

fn unblock(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    let ending = match args.len() {
        3 => Ending::TimedOut,
        4 if args.is(3, "timeout") => Ending::TimedOut,
        4 if args.is(3, "error") => Ending::Error,
        4 => return Err(CommandError::new("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
        _ => return Err(CommandError::wrong_arity("client|unblock")),
    };
    let id = number::parse_i64(args.at(2)).ok_or(CommandError::NOT_AN_INTEGER)?;
    request.core.gather(
        request.client,
        move |core| {
            let found = core.clients.iter().find(|(_, client)| u64::try_from(id) == Ok(client.id)).map(|(key, _)| key);
            found.is_some_and(|key| core.end_blocking_of(key, ending))
        },
        |_, parts: Vec<bool>, reply| reply.integer(i64::from(parts.contains(&true))),
    );
    Ok(Flow::Wait)
}

fn parse_filter(args: Args<'_>, caller: u64, filter: &mut Filter) -> Result<(), CommandError> {
    let mut place = 2;
    while place < args.len() {
        let value = args.get(place + 1).ok_or(CommandError::SYNTAX)?;
        match args.at(place).to_ascii_lowercase().as_slice() {
            b"id" => {
                let id = number::parse_i64(value).and_then(|id| u64::try_from(id).ok()).filter(|&id| id > 0);
                filter.id = Some(id.ok_or_else(|| CommandError::new("ERR client-id should be greater than 0"))?);
            }
            b"maxage" => {
                let age_s = number::parse_i64(value)
                    .ok_or_else(|| CommandError::new("ERR maxage is not an integer or out of range"))?;
                if age_s <= 0 {
                    return Err(CommandError::new("ERR maxage should be greater than 0"));
                }
                filter.max_age_s = Some(age_s);
            }
            b"type" => filter.asked_type = Some(parse_type(value)?),
            b"addr" => filter.peer = Some(value.to_vec()),
            b"laddr" => filter.local = Some(value.to_vec()),
            b"user" if value == DEFAULT_USER.as_bytes() => {}
            b"user" => {
                let user = String::from_utf8_lossy(value);
                return Err(CommandError::new(format!("ERR No such user '{user}'")));
            }
            b"skipme" if value.eq_ignore_ascii_case(b"yes") => filter.skipped = Some(caller),
            b"skipme" if value.eq_ignore_ascii_case(b"no") => filter.skipped = None,
            _ => return Err(CommandError::SYNTAX),
        }
        place += 2;
    }
    Ok(())
}

/// Ends the connections of a core that fit; the caller's own only after the reply. Returns how many.
fn end_clients(core: &mut Core, filter: &Filter, caller: u64) -> usize {
    let fitting = core.clients.iter().filter(|(_, client)| filter.fits(client, core.now_ms));
    let keys: Vec<(ClientKey, u64)> = fitting.map(|(key, client)| (key, client.id)).collect();
    for (key, id) in &keys {
        if *id != caller {
            core.end_client(*key);
        } else if let Some(client) = core.clients.get_mut(*key) {
            client.closing = true;
        }
    }
    keys.len()
}
