//! The commands that run on the core that owns their keys: a file a family.

use crate::command::Command;

pub mod list;
pub mod set;
pub mod sorted_set;
pub mod string;

/// Every family.
pub static FAMILIES: &[&[Command]] = &[list::COMMANDS, set::COMMANDS, sorted_set::COMMANDS, string::COMMANDS];

/// Every command of every family.
pub fn all() -> impl Iterator<Item = &'static Command> {
    FAMILIES.iter().flat_map(|family| family.iter())
}
