//! The documentation that `COMMAND DOCS` gives of a command, which `redis-cli` makes its hints from.

use std::sync::LazyLock;

use ruvio_shard::command::{Begin, Find, KeyFlags, Spec};
use ruvio_shard::reply::Reply;

use super::replacements::replacement;
use super::syntax::{Argument, Kind, parse};
use crate::registry::{Registered, registry};

/// Names of arguments that are integers, floats and moments; what is in none of them and no key is a string.
const INTEGERS: &[&str] = &[
    "amount",
    "bit",
    "cap",
    "cost",
    "count",
    "cursor",
    "db",
    "decrement",
    "delta",
    "destination-db",
    "end",
    "frequency",
    "id",
    "index",
    "index1",
    "index2",
    "len",
    "limit",
    "max-len",
    "milliseconds",
    "min-match-len",
    "num-matches",
    "numfields",
    "numkeys",
    "offset",
    "port",
    "protover",
    "rank",
    "seconds",
    "slot",
    "start",
    "start-slot",
    "end-slot",
    "stop",
    "timeout-ms",
    "ttl",
    "version",
    "window-ms",
];
const FLOATS: &[&str] = &["height", "latitude", "longitude", "radius", "score", "timeout", "weight", "width"];
const MOMENTS: &[&str] = &["unix-time-milliseconds", "unix-time-seconds"];

/// Commands that servers and their tests send, not programs.
const INTERNAL: [&str; 3] = ["pfdebug", "pfselftest", "restore-asking"];

/// The arguments of every command, by its index.
static ARGUMENTS: LazyLock<Vec<Vec<Argument>>> =
    LazyLock::new(|| registry().all().iter().map(|command| parse(command.spec.syntax)).collect());

/// Writes the documentation of `command`, and of its subcommands in turn.
pub fn write(command: &Registered, reply: &mut Reply<'_>) {
    let spec = command.spec;
    let arguments = ARGUMENTS.get(command.index).map(Vec::as_slice).unwrap_or_default();
    let replacement = replacement(spec.name);
    let is_internal = replacement.is_none() && INTERNAL.contains(&spec.name);
    let optional = [is_internal, !arguments.is_empty(), !command.subcommands.is_empty()];
    let fields = if replacement.is_some() { 7 } else { 4 };
    reply.map(fields + optional.into_iter().filter(|given| *given).count());
    for (field, value) in [
        ("summary", spec.summary),
        ("since", spec.since),
        ("group", spec.group.name()),
        ("complexity", spec.complexity),
    ] {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    if let Some(replacement) = replacement {
        write_flag("deprecated", reply);
        reply.bulk(b"deprecated_since");
        reply.bulk(replacement.since.as_bytes());
        reply.bulk(b"replaced_by");
        reply.bulk(replacement.by.as_bytes());
    } else if is_internal {
        write_flag("syscmd", reply);
    }
    if !arguments.is_empty() {
        reply.bulk(b"arguments");
        // The words of the name come before the first argument.
        let mut position = Position { index: Some(1 + usize::from(spec.container().is_some())), count_at: None };
        write_arguments(arguments, spec, &mut position, reply);
    }
    if !command.subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(command.subcommands.len());
        for subcommand in &command.subcommands {
            reply.bulk(subcommand.spec.name.as_bytes());
            write(subcommand, reply);
        }
    }
}

fn write_flag(flag: &str, reply: &mut Reply<'_>) {
    reply.bulk(b"doc_flags");
    reply.set(1);
    reply.simple(flag);
}

/// Which word of a call the next argument is.
struct Position {
    /// Unknown behind what may be missing or may repeat.
    index: Option<usize>,
    /// The word that gives the number of keys, where it was the latest.
    count_at: Option<usize>,
}

fn write_arguments(arguments: &[Argument], spec: &Spec, position: &mut Position, reply: &mut Reply<'_>) {
    reply.array(arguments.len());
    for argument in arguments {
        write_argument(argument, spec, position, reply);
    }
}

fn write_argument(argument: &Argument, spec: &Spec, position: &mut Position, reply: &mut Reply<'_>) {
    let inner = match &argument.kind {
        Kind::OneOf(parts) | Kind::Block(parts) => Some(parts),
        Kind::Value | Kind::PureToken => None,
    };
    if argument.optional {
        position.index = None;
    }
    let start = position.index;
    if !argument.token.is_empty() {
        position.index = position.index.map(|index| index + 1);
    }
    let key_spec = if argument.kind == Kind::Value { key_spec_of(argument, spec, position) } else { None };
    let flags: Vec<&str> =
        [(argument.optional, "optional"), (argument.multiple, "multiple"), (argument.multiple_token, "multiple_token")]
            .into_iter()
            .filter(|(set, _)| *set)
            .map(|(_, word)| word)
            .collect();
    let fields = [inner.is_none(), key_spec.is_some(), !argument.token.is_empty(), !flags.is_empty(), inner.is_some()];
    reply.map(2 + fields.into_iter().filter(|given| *given).count());
    reply.bulk(b"name");
    reply.bulk(argument.name.as_bytes());
    reply.bulk(b"type");
    reply.bulk(type_of(argument, key_spec.is_some(), spec).as_bytes());
    if inner.is_none() {
        reply.bulk(b"display_text");
        reply.bulk(argument.name.as_bytes());
    }
    if let Some(index) = key_spec {
        reply.bulk(b"key_spec_index");
        reply.count(index);
    }
    if !argument.token.is_empty() {
        reply.bulk(b"token");
        reply.bulk(argument.token.as_bytes());
    }
    if !flags.is_empty() {
        reply.bulk(b"flags");
        reply.set(flags.len());
        flags.into_iter().for_each(|flag| reply.simple(flag));
    }
    match (&argument.kind, inner) {
        (Kind::OneOf(_), Some(parts)) => {
            reply.bulk(b"arguments");
            reply.array(parts.len());
            for part in parts {
                let mut alternative = Position { index: start, count_at: None };
                write_argument(part, spec, &mut alternative, reply);
            }
            // Alternatives that are tokens alone take a word each.
            let one_word = parts.iter().all(|part| part.kind == Kind::PureToken);
            position.index = if one_word { start.map(|index| index + 1) } else { None };
        }
        (Kind::Block(_), Some(parts)) => {
            reply.bulk(b"arguments");
            write_arguments(parts, spec, position, reply);
        }
        (Kind::Value, _) => {
            position.count_at = position.index;
            position.index = position.index.map(|index| index + 1);
        }
        _ => {}
    }
    if argument.optional || argument.multiple {
        *position = Position { index: None, count_at: None };
    }
}

/// The key specification that finds an argument.
fn key_spec_of(argument: &Argument, spec: &Spec, position: &Position) -> Option<usize> {
    spec.keys.iter().position(|keys| match (keys.begin, keys.find) {
        (Begin::Index(begin), Find::Range { last, step, .. }) => position.index.is_some_and(|index| {
            index >= begin
                && (last < 0 || index <= begin + last as usize)
                && (index - begin).is_multiple_of(step.max(1))
        }),
        (Begin::Index(begin), Find::Count { count, .. }) => {
            position.count_at == Some(begin + count) && position.index == position.count_at.map(|at| at + 1)
        }
        (Begin::Keyword { word, .. }, _) => argument.token.eq_ignore_ascii_case(word),
        (Begin::Unknown(_), _) => match argument.token.as_str() {
            "BY" | "GET" => keys.flags.has(KeyFlags::READ),
            "STORE" => keys.flags.has(KeyFlags::OVERWRITE),
            _ => false,
        },
        (_, Find::Unknown) => false,
    })
}

fn type_of(argument: &Argument, is_key: bool, spec: &Spec) -> &'static str {
    match argument.kind {
        Kind::PureToken => "pure-token",
        Kind::OneOf(_) => "oneof",
        Kind::Block(_) => "block",
        Kind::Value => {
            let name = argument.name.as_str();
            if name == "pattern" {
                "pattern"
            } else if is_key {
                "key"
            } else if name == "increment" {
                if spec.name.ends_with("float") || spec.name == "zincrby" { "double" } else { "integer" }
            } else if INTEGERS.contains(&name) {
                "integer"
            } else if FLOATS.contains(&name) {
                "double"
            } else if MOMENTS.contains(&name) {
                "unix-time"
            } else {
                "string"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ruvio_shard::reply::{Protocol, Reply};

    use super::*;

    fn documentation(name: &str) -> String {
        let mut out = Vec::new();
        write(registry().get_full(name.as_bytes()).expect("a command"), &mut Reply::new(&mut out, Protocol::Resp3));
        let text = String::from_utf8(out).expect("text");
        let lines: Vec<&str> = text.split("\r\n").filter(|line| !line.starts_with('$')).collect();
        lines.join(" ")
    }

    #[test]
    fn keys_are_told_from_values_by_the_specifications() {
        for (name, part) in [
            ("get", "name key type key display_text key key_spec_index :0"),
            ("mset", "name key type key display_text key key_spec_index :0 %3 name value type string"),
            (
                "lmpop",
                "name numkeys type integer display_text numkeys %5 name key type key display_text key key_spec_index :0",
            ),
            ("lmove", "name destination type key display_text destination key_spec_index :1"),
            ("object|encoding", "name key type key display_text key key_spec_index :0"),
            ("sort", "name destination type key display_text destination key_spec_index :2 token STORE"),
            ("sort_ro", "name pattern type pattern display_text pattern key_spec_index :1 token BY"),
        ] {
            let text = documentation(name);
            assert!(text.contains(part), "{name}: {text}");
        }
    }

    #[test]
    fn every_command_is_documented() {
        for command in registry().all() {
            let spec = command.spec;
            for text in [spec.summary, spec.since, spec.complexity] {
                assert!(!text.is_empty(), "{} lacks documentation", spec.name);
            }
            for keys in spec.keys {
                assert!(!keys.flags.words().collect::<Vec<_>>().is_empty(), "{} says nothing of its keys", spec.name);
            }
        }
    }
}
