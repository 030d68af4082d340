//! Scripts: `EVAL` and its like, and `SCRIPT`.

use ruvio_shard::command::{Categories, Flags, Group, KeyFlags, KeySpec, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::script::Digest;

use super::help::help;
use super::{Flow, Request, ServerCommand};
use crate::core::script::beside::busy_error;
use crate::core::script::{Kill, ScriptKind};
use crate::registry::ScriptCommand;

const CALLING: Flags =
    Flags::NO_SCRIPT.and(Flags::STALE).and(Flags::SKIP_MONITOR).and(Flags::NO_MANDATORY_KEYS).and(Flags::MOVABLE_KEYS);

const KEYS: &[KeySpec] = &[KeySpec::counted(2, KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::UPDATE))];
const KEYS_READ: &[KeySpec] = &[KeySpec::counted(2, KeyFlags::READ.and(KeyFlags::ACCESS))];

const fn call(name: &'static str, since: &'static str) -> Spec {
    Spec {
        name,
        arity: -3,
        flags: CALLING,
        keys: KEYS,
        categories: Categories::SCRIPTING,
        group: Group::Scripting,
        since,
        complexity: "That of the commands that the script calls",
        summary: "",
        syntax: "",
    }
}

const fn reading_call(name: &'static str) -> Spec {
    Spec { flags: CALLING.and(Flags::READ_ONLY), keys: KEYS_READ, ..call(name, "7.0.0") }
}

const SCRIPT_SYNTAX: &str = "script numkeys [key [key ...]] [arg [arg ...]]";
const DIGEST_SYNTAX: &str = "sha1 numkeys [key [key ...]] [arg [arg ...]]";
const FUNCTION_SYNTAX: &str = "function numkeys [key [key ...]] [arg [arg ...]]";

/// The commands that run scripts and functions, on the core that owns the keys.
pub static CALLS: &[(Spec, ScriptCommand)] = &[
    (
        Spec { summary: "Runs a script.", syntax: SCRIPT_SYNTAX, ..call("eval", "2.6.0") },
        ScriptCommand::Eval { read_only: false },
    ),
    (
        Spec { summary: "Runs a script that the server knows.", syntax: DIGEST_SYNTAX, ..call("evalsha", "2.6.0") },
        ScriptCommand::EvalDigest { read_only: false },
    ),
    (
        Spec { summary: "Runs a script that may not write.", syntax: SCRIPT_SYNTAX, ..reading_call("eval_ro") },
        ScriptCommand::Eval { read_only: true },
    ),
    (
        Spec {
            summary: "Runs a script that the server knows, and that may not write.",
            syntax: DIGEST_SYNTAX,
            ..reading_call("evalsha_ro")
        },
        ScriptCommand::EvalDigest { read_only: true },
    ),
    (
        Spec { summary: "Calls a function of a library.", syntax: FUNCTION_SYNTAX, ..call("fcall", "7.0.0") },
        ScriptCommand::Call { read_only: false },
    ),
    (
        Spec {
            summary: "Calls a function of a library that does not write.",
            syntax: FUNCTION_SYNTAX,
            ..reading_call("fcall_ro")
        },
        ScriptCommand::Call { read_only: true },
    ),
];

const SCRIPT: Spec = Spec {
    name: "script",
    arity: -2,
    flags: Flags::NONE,
    keys: &[],
    categories: Categories::NONE,
    group: Group::Scripting,
    since: "2.6.0",
    complexity: "Depends on the subcommand",
    summary: "Contains the commands on the scripts that the server knows.",
    syntax: "",
};

const SUBCOMMAND: Spec = Spec { flags: Flags::NO_SCRIPT, categories: Categories::SCRIPTING, ..SCRIPT };

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    ServerCommand { spec: SCRIPT, run: None },
    ServerCommand {
        spec: Spec {
            name: "script|load",
            arity: 3,
            flags: Flags::NO_SCRIPT.and(Flags::STALE),
            complexity: "O(N) where N is the length of the script",
            summary: "Has every shard know a script, and returns its digest.",
            syntax: "script",
            ..SUBCOMMAND
        },
        run: Some(load),
    },
    ServerCommand {
        spec: Spec {
            name: "script|exists",
            arity: -3,
            complexity: "O(N) where N is the number of digests",
            summary: "Tells which of these scripts the server knows.",
            syntax: "sha1 [sha1 ...]",
            ..SUBCOMMAND
        },
        run: Some(exists),
    },
    ServerCommand {
        spec: Spec {
            name: "script|flush",
            complexity: "O(N) where N is the number of scripts",
            summary: "Forgets every script.",
            syntax: "[ASYNC | SYNC]",
            ..SUBCOMMAND
        },
        run: Some(flush),
    },
    ServerCommand {
        spec: Spec {
            name: "script|kill",
            arity: 2,
            flags: Flags::NO_SCRIPT.and(Flags::ALLOW_BUSY),
            complexity: "O(1)",
            summary: "Ends the scripts that run and have not written.",
            ..SUBCOMMAND
        },
        run: Some(|request| kill(request, ScriptKind::Script)),
    },
    ServerCommand {
        spec: Spec {
            name: "script|show",
            arity: 3,
            since: "8.0.0",
            complexity: "O(1)",
            summary: "Returns the text of a script that the server knows.",
            syntax: "sha1",
            ..SUBCOMMAND
        },
        run: Some(show),
    },
    ServerCommand {
        spec: Spec {
            name: "script|debug",
            arity: 3,
            since: "3.2.0",
            complexity: "O(1)",
            summary: "Debugs scripts in Redis; there is no debugger here, so only NO is accepted.",
            syntax: "<YES | SYNC | NO>",
            ..SUBCOMMAND
        },
        run: Some(debug),
    },
    ServerCommand {
        spec: Spec {
            name: "script|help",
            arity: 2,
            flags: Flags::LOADING.and(Flags::STALE),
            since: "5.0.0",
            complexity: "O(1)",
            summary: "Describes the subcommands.",
            ..SUBCOMMAND
        },
        run: Some(help),
    },
];

fn load(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let script = request.core.load_script(request.args.at(2), true)?;
    request.reply().bulk(script.digest.to_string().as_bytes());
    Ok(Flow::Done)
}

fn exists(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let digests = request.args.from(2);
    let known: Vec<bool> = digests
        .iter()
        .map(|word| Digest::parse(word).is_some_and(|digest| request.core.process.scripts.get(&digest).is_some()))
        .collect();
    let mut reply = request.reply();
    reply.array(known.len());
    known.into_iter().for_each(|known| reply.integer(i64::from(known)));
    Ok(Flow::Done)
}

/// Refuses what follows `FLUSH` but `ASYNC` and `SYNC`, which differ in nothing here.
pub(super) fn check_flush(request: &Request<'_>, refusal: &'static str) -> Result<(), CommandError> {
    let args = request.args;
    match args.len() {
        2 => Ok(()),
        3 if args.is(2, "async") || args.is(2, "sync") => Ok(()),
        _ => Err(CommandError::new(refusal)),
    }
}

fn flush(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_flush(request, "ERR SCRIPT FLUSH only support SYNC|ASYNC option")?;
    request.core.process.scripts.flush();
    request.core.gather(
        request.client,
        |core| core.flush_scripts(),
        |core, flushed: Vec<Result<(), CommandError>>, reply| match flushed.into_iter().find_map(Result::err) {
            None => reply.ok(),
            Some(error) => {
                core.count_error(&error);
                reply.error(&error);
            }
        },
    );
    Ok(Flow::Wait)
}

/// `SCRIPT KILL` and `FUNCTION KILL`.
pub(super) fn kill(request: &mut Request<'_>, kind: ScriptKind) -> Result<Flow, CommandError> {
    request.core.gather(
        request.client,
        move |core| core.kill_script(kind),
        |core, kills: Vec<Kill>, reply| {
            let other = kills.iter().find_map(|kill| match kill {
                Kill::Other(kind) => Some(*kind),
                _ => None,
            });
            let error = if kills.contains(&Kill::Killed) {
                return reply.ok();
            } else if kills.contains(&Kill::HasWritten) {
                CommandError::new(
                    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the \
                     script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
                )
            } else if let Some(other) = other {
                busy_error(other)
            } else {
                CommandError::new("NOTBUSY No scripts in execution right now.")
            };
            core.count_error(&error);
            reply.error(&error);
        },
    );
    Ok(Flow::Wait)
}

fn show(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let digest = Digest::parse(request.args.at(2));
    let script = digest.and_then(|digest| request.core.process.scripts.get(&digest)).ok_or(CommandError::NO_SCRIPT)?;
    request.reply().bulk(&script.body);
    Ok(Flow::Done)
}

fn debug(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    if request.args.is(2, "no") {
        request.reply().ok();
        Ok(Flow::Done)
    } else if request.args.is(2, "yes") || request.args.is(2, "sync") {
        Err(CommandError::new("ERR this server has no script debugger"))
    } else {
        Err(CommandError::new("ERR Use SCRIPT DEBUG YES/SYNC/NO"))
    }
}
