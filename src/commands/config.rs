//! `CONFIG`: reading and changing the configuration.

use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::glob;

use super::help::help;
use super::{Flow, Request, ServerCommand};
use crate::configuration::parameters;

const CONFIG: Spec = Spec {
    name: "config",
    arity: -2,
    flags: Flags::NONE,
    keys: &[],
    categories: Categories::NONE,
    group: Group::Server,
    since: "2.0.0",
    complexity: "Depends on subcommand.",
    summary: "A container for configuration commands.",
    syntax: "",
};

const FOR_OPERATORS: Spec =
    Spec { flags: Flags::ADMIN.and(Flags::NO_SCRIPT).and(Flags::LOADING).and(Flags::STALE), ..CONFIG };

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    ServerCommand { spec: CONFIG, run: None },
    ServerCommand {
        spec: Spec {
            name: "config|get",
            arity: -3,
            complexity: "O(N) where N is the number of parameters",
            summary: "Returns the parameters whose names match a pattern, with their values.",
            syntax: "parameter [parameter ...]",
            ..FOR_OPERATORS
        },
        run: Some(get),
    },
    ServerCommand {
        spec: Spec {
            name: "config|set",
            arity: -4,
            complexity: "O(N) where N is the number of parameters given",
            summary: "Changes parameters, all of them or none.",
            syntax: "parameter value [parameter value ...]",
            ..FOR_OPERATORS
        },
        run: Some(set),
    },
    ServerCommand {
        spec: Spec {
            name: "config|resetstat",
            arity: 2,
            complexity: "O(1)",
            summary: "Starts the counters that INFO shows anew.",
            ..FOR_OPERATORS
        },
        run: Some(reset_statistics),
    },
    ServerCommand {
        spec: Spec {
            name: "config|rewrite",
            arity: 2,
            since: "2.8.0",
            complexity: "O(1)",
            summary: "Writes the configuration to the file the server was started with, where it can.",
            ..FOR_OPERATORS
        },
        run: Some(rewrite),
    },
    ServerCommand {
        spec: Spec {
            name: "config|help",
            arity: 2,
            flags: Flags::LOADING.and(Flags::STALE),
            since: "5.0.0",
            complexity: "O(1)",
            summary: "Describes the subcommands.",
            ..CONFIG
        },
        run: Some(help),
    },
];

fn get(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let patterns = request.args.from(2);
    let asked = |name: &str| patterns.iter().any(|pattern| glob::matches_ignoring_case(pattern, name.as_bytes()));
    let process = &request.core.process;
    let configuration = process.configuration();
    let mut found: Vec<(&str, Vec<u8>)> = Vec::new();
    for parameter in parameters::all() {
        for name in [Some(parameter.name), parameter.alias].into_iter().flatten() {
            if asked(name) {
                found.push((name, parameter.show(&configuration, &process.options)));
            }
        }
    }
    let mut reply = request.reply();
    reply.map(found.len());
    for (name, value) in found {
        reply.bulk(name.as_bytes());
        reply.bulk(&value);
    }
    Ok(Flow::Done)
}

fn set(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    if args.len() % 2 == 1 {
        return Err(CommandError::SYNTAX);
    }
    let failed = |name: &[u8], reason: &str| {
        let name = String::from_utf8_lossy(name);
        CommandError::new(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"))
    };
    let mut changes: Vec<(&'static parameters::Parameter, bool, &[u8], &[u8])> = Vec::new();
    for index in (2..args.len()).step_by(2) {
        let (name, value) = (args.at(index), args.at(index + 1));
        let Some((parameter, by_alias)) = parameters::find(name) else {
            let name = String::from_utf8_lossy(name);
            return Err(CommandError::new(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            )));
        };
        if parameter.is_immutable() {
            return Err(failed(name, "can't set immutable config"));
        }
        // As in Redis, an older name counts as another parameter.
        if changes.iter().any(|(earlier, alias, ..)| earlier.name == parameter.name && *alias == by_alias) {
            return Err(failed(name, "duplicate parameter"));
        }
        changes.push((parameter, by_alias, name, value));
    }
    let process = &request.core.process;
    process.change_configuration(|configuration| {
        changes.iter().try_for_each(|(parameter, _, name, value)| {
            parameter.change(configuration, &process.options, value).map_err(|reason| failed(name, &reason))
        })
    })?;
    request.core.gather(request.client, |core| core.take_configuration(), |_, _: Vec<()>, reply| reply.ok());
    Ok(Flow::Wait)
}

fn reset_statistics(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.core.process.scripts.reset_evicted();
    request.core.gather(request.client, |core| core.reset_statistics(), |_, _: Vec<()>, reply| reply.ok());
    Ok(Flow::Wait)
}

fn rewrite(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    Err(match &request.core.process.options.config {
        None => CommandError::new("ERR The server is running without a config file"),
        Some(path) => CommandError::new(format!(
            "ERR Rewriting config file: {} is TOML with the options of the command line, which has no place for most \
             parameters; edit it by hand",
            path.display()
        )),
    })
}
