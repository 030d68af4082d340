//! `COMMAND`: what the server knows of its commands.

use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::glob;

use super::help::help;
use super::{Flow, Request, ServerCommand};
use crate::registry::{Registered, registry};

mod describe;
mod document;
mod keys;
#[cfg(test)]
mod reference;
mod replacements;
mod syntax;
mod tips;

const COMMAND: Spec = Spec {
    name: "command",
    arity: -1,
    flags: Flags::LOADING.and(Flags::STALE).and(Flags::SENTINEL),
    keys: &[],
    categories: Categories::CONNECTION,
    group: Group::Server,
    since: "2.8.13",
    complexity: "O(N) where N is the number of commands",
    summary: "Returns details of all commands.",
    syntax: "",
};

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    ServerCommand { spec: COMMAND, run: Some(info) },
    ServerCommand {
        spec: Spec {
            name: "command|count",
            arity: 2,
            complexity: "O(1)",
            summary: "Returns the number of commands.",
            ..COMMAND
        },
        run: Some(count),
    },
    ServerCommand {
        spec: Spec {
            name: "command|docs",
            arity: -2,
            since: "7.0.0",
            complexity: "O(N) where N is the number of commands named",
            summary: "Returns the documentation of commands; of all commands if none is named.",
            syntax: "[command-name [command-name ...]]",
            ..COMMAND
        },
        run: Some(docs),
    },
    ServerCommand {
        spec: Spec {
            name: "command|getkeys",
            arity: -3,
            complexity: "O(N) where N is the number of words of the command",
            summary: "Returns the keys among the words of a command.",
            syntax: "command [arg [arg ...]]",
            ..COMMAND
        },
        run: Some(keys::get_keys),
    },
    ServerCommand {
        spec: Spec {
            name: "command|getkeysandflags",
            arity: -3,
            since: "7.0.0",
            complexity: "O(N) where N is the number of words of the command",
            summary: "Returns the keys among the words of a command, and what it does with each.",
            syntax: "command [arg [arg ...]]",
            ..COMMAND
        },
        run: Some(keys::get_keys_and_flags),
    },
    ServerCommand {
        spec: Spec {
            name: "command|info",
            arity: -2,
            complexity: "O(N) where N is the number of commands named",
            summary: "Returns details of commands; of all commands if none is named.",
            syntax: "[command-name [command-name ...]]",
            ..COMMAND
        },
        run: Some(info),
    },
    ServerCommand {
        spec: Spec {
            name: "command|list",
            arity: -2,
            since: "7.0.0",
            summary: "Returns the names of commands.",
            syntax: "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
            ..COMMAND
        },
        run: Some(list),
    },
    ServerCommand {
        spec: Spec {
            name: "command|help",
            arity: 2,
            since: "5.0.0",
            complexity: "O(1)",
            summary: "Describes the subcommands.",
            ..COMMAND
        },
        run: Some(help),
    },
];

fn count(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.reply().count(registry().top_level().count());
    Ok(Flow::Done)
}

fn info(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let names = request.args.from(2);
    let commands: Vec<Option<&'static Registered>> = if names.is_empty() {
        registry().top_level().map(Some).collect()
    } else {
        names.iter().map(|name| registry().get_full(name)).collect()
    };
    let mut reply = request.reply();
    reply.array(commands.len());
    for command in commands {
        match command {
            Some(command) => describe::write(command, &mut reply),
            None => reply.null(),
        }
    }
    Ok(Flow::Done)
}

fn docs(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let names = request.args.from(2);
    let commands: Vec<&'static Registered> = if names.is_empty() {
        registry().top_level().collect()
    } else {
        names.iter().filter_map(|name| registry().get_full(name)).collect()
    };
    let mut reply = request.reply();
    reply.map(commands.len());
    for command in commands {
        reply.bulk(command.spec.name.as_bytes());
        document::write(command, &mut reply);
    }
    Ok(Flow::Done)
}

fn list(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    let mut commands: Vec<&'static Registered> = registry().all().to_vec();
    if args.len() > 2 {
        if args.len() != 5 || !args.is(2, "filterby") {
            return Err(CommandError::SYNTAX);
        }
        let value = args.at(4);
        if args.is(3, "pattern") {
            commands.retain(|command| glob::matches_ignoring_case(value, command.spec.name.as_bytes()));
        } else if args.is(3, "aclcat") {
            let known = Categories::ALL.iter().find(|(_, word)| value.eq_ignore_ascii_case(word.as_bytes()));
            let category = known.map(|(category, _)| *category);
            commands.retain(|command| category.is_some_and(|wanted| command.spec.all_categories().has(wanted)));
        } else if args.is(3, "module") {
            // No command comes from a module.
            commands.clear();
        } else {
            return Err(CommandError::SYNTAX);
        }
    }
    let mut reply = request.reply();
    reply.array(commands.len());
    for command in commands {
        reply.bulk(command.spec.name.as_bytes());
    }
    Ok(Flow::Done)
}
