//! `COMMANDS.md`, made from the table of commands. `RUVIO_UPDATE_COMMANDS=1 cargo test commands_md` writes it anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use super::replacements::{Replacement, replacement};
use crate::registry::{Registered, Run, registry};

mod differences;
mod replies;

/// Set to have the file written anew.
const UPDATE_VARIABLE: &str = "RUVIO_UPDATE_COMMANDS";

/// The groups in the order of the file, with their titles.
const TITLES: [(&str, &str); 15] = [
    ("string", "Strings and counters"),
    ("bitmap", "Bitmaps"),
    ("hyperloglog", "HyperLogLogs"),
    ("hash", "Hashes"),
    ("list", "Lists"),
    ("set", "Sets"),
    ("sorted-set", "Sorted sets"),
    ("geo", "Geo"),
    ("limit", "Rate limits"),
    ("generic", "Keys"),
    ("transactions", "Transactions"),
    ("pubsub", "Publish and subscribe"),
    ("scripting", "Scripts and functions"),
    ("connection", "Connections"),
    ("server", "The server"),
];

/// What follows the groups that are named above.
const LAST_TITLE: (&str, &str) = ("cluster", "The cluster view");

const HEAD: &str = "\
# Commands

Made from the server's own table, which `COMMAND` and `COMMAND DOCS` answer from: `RUVIO_UPDATE_COMMANDS=1 cargo test
commands_md` writes it anew.

A command does what Redis 7.2 does, but for what is said under *Differs*. *Since* is the version of Redis that it came
with; for a *native* command, which Redis does not have, the version of Ruvio. All keys of a command have to be in one
slot unless the server was started with `--cross-slot allow`, and those of a native command in any case.
Errors are UTF-8: bytes of a client's words that are none are repeated as `\u{fffd}`.
";

/// The texts of a table, by name.
fn by_name(table: &[(&'static str, &'static str)]) -> BTreeMap<&'static str, &'static str> {
    let mut texts = BTreeMap::new();
    for (names, text) in table {
        for name in names.split(' ') {
            assert!(texts.insert(name, *text).is_none(), "{name} comes twice");
        }
    }
    texts
}

/// The commands that can be called, by group and name.
fn callable() -> BTreeMap<&'static str, BTreeMap<&'static str, &'static Registered>> {
    let mut groups: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for command in registry().all().iter().filter(|command| !matches!(command.run, Run::Container)) {
        groups.entry(command.spec.group.name()).or_default().insert(command.spec.name, *command);
    }
    groups
}

fn write_command(command: &Registered, reply: &str, difference: Option<&&str>, out: &mut String) {
    let spec = command.spec;
    let words = spec.name.to_uppercase().replace('|', " ");
    let call = format!("{words} {}", spec.syntax);
    let native = if spec.is_native() { ", native" } else { "" };
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "\n### {words}\n\n```text\n{}\n```\n\n{} Since {}{native}. ",
        call.trim_end(),
        spec.summary,
        spec.since
    );
    let _ = writeln!(out, "{}.\n", spec.complexity.trim_end_matches('.'));
    let _ = writeln!(out, "*Reply:* {reply}");
    if let Some(text) = difference {
        let _ = writeln!(out, "\n*Differs:* {text}");
    }
    if let Some(Replacement { since, by, .. }) = replacement(spec.name) {
        let _ = writeln!(out, "\n*Deprecated* since {since}: use {by}.");
    }
}

/// The whole file.
fn reference() -> String {
    let replies = by_name(replies::REPLIES);
    let differences = by_name(differences::DIFFERENCES);
    let mut groups = callable();
    let names = groups.values().flat_map(|commands| commands.keys().copied());
    let missing: Vec<&str> = names.filter(|name| !replies.contains_key(name)).collect();
    assert!(missing.is_empty(), "missing in replies.rs: {missing:?}");
    let mut out = HEAD.to_owned();
    for (group, title) in TITLES.into_iter().chain([LAST_TITLE]) {
        let Some(commands) = groups.remove(group) else { continue };
        let _ = writeln!(out, "\n## {title}");
        for (name, command) in commands {
            write_command(command, replies[name], differences.get(name), &mut out);
        }
    }
    assert!(groups.is_empty(), "groups without a title: {:?}", groups.keys());
    out
}

#[test]
fn commands_md_is_in_step_with_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("COMMANDS.md");
    let wanted = reference();
    if std::env::var_os(UPDATE_VARIABLE).is_some() {
        std::fs::write(&path, &wanted).expect("COMMANDS.md can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let different = wanted.lines().zip(found.lines()).position(|(wanted, found)| wanted != found);
    assert!(
        wanted == found,
        "COMMANDS.md is out of step from line {} on; write it anew with {UPDATE_VARIABLE}=1 cargo test commands_md",
        different.map_or(0, |line| line + 1)
    );
}
