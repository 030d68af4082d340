//! `FUNCTION`: libraries of functions.

use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::glob;
use ruvio_shard::reply::Reply;

use super::help::help;
use super::script::{check_flush, kill};
use super::{Flow, Request, ServerCommand};
use crate::core::Core;
use crate::core::script::ScriptKind;
use crate::core::script::beside::busy_error;
use crate::functions::{ENGINE, Library, LibrarySet, Restored, payload};

const FUNCTION: Spec = Spec {
    name: "function",
    arity: -2,
    flags: Flags::NONE,
    keys: &[],
    categories: Categories::NONE,
    group: Group::Scripting,
    since: "7.0.0",
    complexity: "Depends on the subcommand",
    summary: "Contains the commands on libraries of functions.",
    syntax: "",
};

const SUBCOMMAND: Spec = Spec { flags: Flags::NO_SCRIPT, categories: Categories::SCRIPTING, ..FUNCTION };
const WRITING: Flags = Flags::NO_SCRIPT.and(Flags::WRITE);

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    ServerCommand { spec: FUNCTION, run: None },
    ServerCommand {
        spec: Spec {
            name: "function|load",
            arity: -3,
            flags: WRITING.and(Flags::DENY_OOM),
            complexity: "O(1), but for the compilation of the library",
            summary: "Adds a library, and returns its name.",
            syntax: "[REPLACE] function-code",
            ..SUBCOMMAND
        },
        run: Some(load),
    },
    ServerCommand {
        spec: Spec {
            name: "function|delete",
            arity: 3,
            flags: WRITING,
            complexity: "O(1)",
            summary: "Removes a library with its functions.",
            syntax: "library-name",
            ..SUBCOMMAND
        },
        run: Some(delete),
    },
    ServerCommand {
        spec: Spec {
            name: "function|flush",
            flags: WRITING,
            complexity: "O(N) where N is the number of functions",
            summary: "Removes every library.",
            syntax: "[ASYNC | SYNC]",
            ..SUBCOMMAND
        },
        run: Some(flush),
    },
    ServerCommand {
        spec: Spec {
            name: "function|list",
            complexity: "O(N) where N is the number of functions",
            summary: "Describes the libraries.",
            syntax: "[LIBRARYNAME library-name-pattern] [WITHCODE]",
            ..SUBCOMMAND
        },
        run: Some(list),
    },
    ServerCommand {
        spec: Spec {
            name: "function|dump",
            arity: 2,
            complexity: "O(N) where N is the number of functions",
            summary: "Returns all libraries as one string, for FUNCTION RESTORE.",
            ..SUBCOMMAND
        },
        run: Some(dump),
    },
    ServerCommand {
        spec: Spec {
            name: "function|restore",
            arity: -3,
            flags: WRITING.and(Flags::DENY_OOM),
            complexity: "O(N) where N is the number of functions",
            summary: "Adds the libraries of a string that FUNCTION DUMP returned.",
            syntax: "serialized-value [FLUSH | APPEND | REPLACE]",
            ..SUBCOMMAND
        },
        run: Some(restore),
    },
    ServerCommand {
        spec: Spec {
            name: "function|stats",
            arity: 2,
            flags: Flags::NO_SCRIPT.and(Flags::ALLOW_BUSY),
            complexity: "O(1)",
            summary: "Tells which function runs, and how many there are.",
            ..SUBCOMMAND
        },
        run: Some(stats),
    },
    ServerCommand {
        spec: Spec {
            name: "function|kill",
            arity: 2,
            flags: Flags::NO_SCRIPT.and(Flags::ALLOW_BUSY),
            complexity: "O(1)",
            summary: "Ends the functions that run and have not written.",
            ..SUBCOMMAND
        },
        run: Some(|request| kill(request, ScriptKind::Function)),
    },
    ServerCommand {
        spec: Spec {
            name: "function|help",
            arity: 2,
            flags: Flags::LOADING.and(Flags::STALE),
            complexity: "O(1)",
            summary: "Describes the subcommands.",
            ..SUBCOMMAND
        },
        run: Some(help),
    },
];

/// Changes the libraries, keeps them, and then replies what `reply` writes.
fn change(
    request: &mut Request<'_>,
    change: impl FnOnce(&mut LibrarySet) -> Result<(), CommandError> + Send + 'static,
    reply: impl FnOnce(&mut Reply<'_>) + Send + 'static,
) -> Result<Flow, CommandError> {
    if request.core.process.data.is_none() {
        request.core.process.change_libraries(change)?;
        reply(&mut request.reply());
        return Ok(Flow::Done);
    }
    // The file is written and synced by a thread, for which no core waits.
    request.core.change_libraries_aside(request.client, change, reply)?;
    Ok(Flow::Wait)
}

fn load(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    let replace = args.is(2, "replace") && args.len() > 3;
    let place = if replace { 3 } else { 2 };
    if args.len() > place + 1 {
        let option = String::from_utf8_lossy(args.at(2));
        return Err(CommandError::new(format!("ERR Unknown option given: {option}")));
    }
    let library = Library::new(args.at(place), request.core.script_limits())?;
    let name = library.name.clone();
    change(request, move |libraries| libraries.add(library, replace), move |reply| reply.bulk(name.as_bytes()))
}

fn delete(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let name = String::from_utf8_lossy(request.args.at(2)).into_owned();
    let remove = move |libraries: &mut LibrarySet| {
        if libraries.remove(&name) { Ok(()) } else { Err(CommandError::new("ERR Library not found")) }
    };
    change(request, remove, |reply| reply.ok())
}

fn flush(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    if request.args.len() > 3 {
        return Err(CommandError::new(
            "ERR unknown subcommand or wrong number of arguments for 'flush'. Try FUNCTION HELP.",
        ));
    }
    check_flush(request, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option")?;
    let clear = |libraries: &mut LibrarySet| {
        libraries.clear();
        Ok(())
    };
    change(request, clear, |reply| reply.ok())
}

fn list(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    let (mut pattern, mut with_code) = (None, false);
    let mut place = 2;
    while place < args.len() {
        if !with_code && args.is(place, "withcode") {
            with_code = true;
        } else if pattern.is_none() && args.is(place, "libraryname") {
            place += 1;
            pattern = Some(args.get(place).ok_or(CommandError::new("ERR library name argument was not given"))?);
        } else {
            let word = String::from_utf8_lossy(args.at(place));
            return Err(CommandError::new(format!("ERR Unknown argument {word}")));
        }
        place += 1;
    }
    let libraries = request.core.process.libraries.current();
    let matching: Vec<_> = libraries
        .all()
        .filter(|library| pattern.is_none_or(|pattern| glob::matches_ignoring_case(pattern, library.name.as_bytes())))
        .collect();
    let mut reply = request.reply();
    reply.array(matching.len());
    for library in matching {
        write_library(library, with_code, &mut reply);
    }
    Ok(Flow::Done)
}

fn write_library(library: &Library, with_code: bool, reply: &mut Reply<'_>) {
    reply.map(3 + usize::from(with_code));
    reply.bulk(b"library_name");
    reply.bulk(library.name.as_bytes());
    reply.bulk(b"engine");
    reply.bulk(ENGINE.as_bytes());
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    for function in &library.functions {
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(function.name.as_bytes());
        reply.bulk(b"description");
        match &function.description {
            Some(description) => reply.bulk(description.as_bytes()),
            None => reply.null(),
        }
        reply.bulk(b"flags");
        let words: Vec<_> = function.flags.names().collect();
        reply.set(words.len());
        words.into_iter().for_each(|word| reply.simple(word));
    }
    if with_code {
        reply.bulk(b"library_code");
        reply.bulk(&library.code);
    }
}

fn dump(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let libraries = request.core.process.libraries.current();
    request.reply().bulk(&payload::write(&libraries));
    Ok(Flow::Done)
}

fn restore(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    let how = match args.len() {
        3 => Restored::Append,
        4 if args.is(3, "append") => Restored::Append,
        4 if args.is(3, "replace") => Restored::Replace,
        4 if args.is(3, "flush") => Restored::Flush,
        4 => {
            return Err(CommandError::new(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
        _ => {
            return Err(CommandError::new(
                "ERR unknown subcommand or wrong number of arguments for 'restore'. Try FUNCTION HELP.",
            ));
        }
    };
    let libraries = payload::read(args.at(2), request.core.script_limits())?;
    change(request, move |all| all.restore(libraries, how), |reply| reply.ok())
}

/// What a core says of the script that it runs.
struct RunningPart {
    kind: ScriptKind,
    name: Vec<u8>,
    words: Vec<Vec<u8>>,
    duration_ms: u64,
}

fn running_part(core: &mut Core) -> Option<RunningPart> {
    let duration_ms = core.script_duration_ms();
    let running = core.running_script()?;
    let words: Vec<Vec<u8>> = running.words.as_args().iter().map(<[u8]>::to_vec).collect();
    let name = words.get(1).cloned().unwrap_or_default();
    Some(RunningPart { kind: running.kind, name, words, duration_ms })
}

fn stats(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.core.gather(request.client, running_part, |core, parts: Vec<Option<RunningPart>>, reply| {
        let running: Option<RunningPart> = parts.into_iter().flatten().max_by_key(|part| part.duration_ms);
        if let Some(part) = running.as_ref().filter(|part| part.kind == ScriptKind::Script) {
            let error = busy_error(part.kind);
            core.count_error(&error);
            return reply.error(&error);
        }
        let libraries = core.process.libraries.current();
        reply.map(2);
        reply.bulk(b"running_script");
        match running {
            None => reply.null(),
            Some(part) => {
                reply.map(3);
                reply.bulk(b"name");
                reply.bulk(&part.name);
                reply.bulk(b"command");
                reply.array(part.words.len());
                part.words.iter().for_each(|word| reply.bulk(word));
                reply.bulk(b"duration_ms");
                reply.integer(part.duration_ms as i64);
            }
        }
        reply.bulk(b"engines");
        reply.map(1);
        reply.bulk(ENGINE.as_bytes());
        reply.map(2);
        reply.bulk(b"libraries_count");
        reply.count(libraries.len());
        reply.bulk(b"functions_count");
        reply.count(libraries.functions());
    });
    Ok(Flow::Wait)
}
