//! The commands that run on the core that owns their keys: a file a family.

use crate::command::Command;

pub mod counter;
pub mod dump;
pub mod expire;
pub mod hash;
pub mod keys;
pub mod limit;
pub mod list;
pub mod object;
pub mod options;
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
];

/// Every command of every family.
pub fn all() -> impl Iterator<Item = &'static Command> {
    FAMILIES.iter().flat_map(|family| family.iter())
}
