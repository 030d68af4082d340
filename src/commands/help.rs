//! `HELP` of the containers: what the registry knows of their subcommands.

use ruvio_shard::error::CommandError;

use super::{Flow, Request};
use crate::registry::registry;

/// Replies the subcommands of the container that was called, each with what it does.
pub fn help(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let Some(container) = registry().get(request.args.at(0)) else { return Err(CommandError::SYNTAX) };
    let mut lines = vec![format!(
        "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        container.spec.name.to_uppercase()
    )];
    if container.spec.arity == -1 {
        lines.push("(no subcommand)".into());
        lines.push(format!("    {}", container.spec.summary));
    }
    // HELP comes last.
    let mut subcommands = container.subcommands.clone();
    subcommands.sort_by_key(|subcommand| subcommand.spec.name.ends_with("|help"));
    for subcommand in subcommands {
        let (_, name) = subcommand.spec.name.split_once('|').unwrap_or_default();
        lines.push(format!("{} {}", name.to_uppercase(), subcommand.spec.syntax).trim_end().to_owned());
        lines.push(format!("    {}", subcommand.spec.summary));
    }
    let mut reply = request.reply();
    reply.array(lines.len());
    for line in lines {
        reply.simple(&line);
    }
    Ok(Flow::Done)
}
