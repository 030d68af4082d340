//! `COMMAND GETKEYS` and `COMMAND GETKEYSANDFLAGS`: the keys among the words of a command.

use ruvio_shard::args::Args;
use ruvio_shard::command::{Begin, Flags, KeyFlags};
use ruvio_shard::error::CommandError;

use super::describe::write_key_flags;
use crate::commands::{Flow, Request};
use crate::registry::{Registered, registry};

/// The keys of the command in `args`, with what is done with each.
fn keys(args: Args<'_>) -> Result<Vec<(&[u8], KeyFlags)>, CommandError> {
    let error = |text: &'static str| Err(CommandError::new(text));
    let Some(mut command) = registry().get(args.at(0)) else { return error("ERR Invalid command specified") };
    if !command.subcommands.is_empty() && args.len() > 1 {
        match command.subcommand(args.at(1)) {
            Some(subcommand) => command = subcommand,
            None => return error("ERR Invalid command specified"),
        }
    }
    if command.spec.keys.iter().all(|keys| keys.flags.has(KeyFlags::NOT_KEY)) {
        return error("ERR The command has no key arguments");
    }
    if !command.spec.accepts(args.len()) {
        return error("ERR Invalid number of arguments specified for command");
    }
    let mut found = Vec::new();
    let by_keyword = command.spec.name == "migrate" && args.at(3).is_empty();
    for keys in command.spec.keys {
        if by_keyword && matches!(keys.begin, Begin::Index(_)) {
            // The place of the only key is left empty where several follow a keyword.
            continue;
        }
        let flags = effective_flags(command, keys.flags, args);
        let may_have_none = command.spec.flags.has(Flags::NO_MANDATORY_KEYS);
        if !keys.visit(args, |index| found.push((args.at(index), flags))) && !may_have_none {
            return error("ERR Invalid arguments specified for command");
        }
    }
    Ok(found)
}

/// What this call does with keys, where that depends on its words.
fn effective_flags(command: &Registered, flags: KeyFlags, args: Args<'_>) -> KeyFlags {
    if !flags.has(KeyFlags::VARIABLE_FLAGS) {
        return flags;
    }
    let has_word = |word: &str| (3..args.len()).any(|index| args.is(index, word));
    match command.spec.name {
        "set" if !["get", "ifeq", "ifgt", "iflt"].into_iter().any(has_word) => {
            KeyFlags::OVERWRITE.and(KeyFlags::UPDATE)
        }
        "bitfield" if !["set", "incrby"].into_iter().any(|word| (2..args.len()).any(|index| args.is(index, word))) => {
            KeyFlags::READ.and(KeyFlags::ACCESS)
        }
        _ => KeyFlags(flags.0 & !KeyFlags::VARIABLE_FLAGS.0),
    }
}

/// `COMMAND GETKEYS`
pub fn get_keys(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let keys = keys(request.args.from(2))?;
    let mut reply = request.reply();
    reply.array(keys.len());
    keys.into_iter().for_each(|(key, _)| reply.bulk(key));
    Ok(Flow::Done)
}

/// `COMMAND GETKEYSANDFLAGS`
pub fn get_keys_and_flags(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let keys = keys(request.args.from(2))?;
    let mut reply = request.reply();
    reply.array(keys.len());
    for (key, flags) in keys {
        reply.array(2);
        reply.bulk(key);
        write_key_flags(flags, &mut reply);
    }
    Ok(Flow::Done)
}
