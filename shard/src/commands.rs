//! The commands that run on the core that owns their keys: a file a family.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::command::Command;

pub mod bitmap;
pub mod counter;
pub mod dump;
pub mod expire;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod keys;
pub mod limit;
pub mod list;
pub mod object;
pub mod options;
pub mod scan_options;
pub mod set;
pub mod sort;
pub mod sorted_set;
pub mod string;
pub mod version;

/// Every family.
pub static FAMILIES: &[&[Command]] = &[
    string::read::COMMANDS,
    string::set::COMMANDS,
    string::exchange::COMMANDS,
    string::edit::COMMANDS,
    string::lcs::COMMANDS,
    counter::COMMANDS,
    version::COMMANDS,
    list::COMMANDS,
    hash::COMMANDS,
    limit::COMMANDS,
    keys::COMMANDS,
    expire::COMMANDS,
    object::COMMANDS,
    dump::COMMANDS,
    sort::COMMANDS,
    set::COMMANDS,
    sorted_set::COMMANDS,
    bitmap::COMMANDS,
    hyperloglog::COMMANDS,
    geo::COMMANDS,
];

/// Every command of every family.
pub fn all() -> impl Iterator<Item = &'static Command> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

static BY_NAME: LazyLock<HashMap<&'static str, &'static Command>> =
    LazyLock::new(|| all().map(|command| (command.spec.name, command)).collect());

/// The command with this name, in any case.
pub fn named(word: &[u8]) -> Option<&'static Command> {
    let name = std::str::from_utf8(word).ok()?.to_ascii_lowercase();
    BY_NAME.get(name.as_str()).copied()
}
