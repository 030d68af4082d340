//! The commands that run on the core that owns their keys: a file a family.

use crate::command::Command;

pub mod expire;
pub mod keys;
pub mod object;
pub mod string;

/// Every family.
pub static FAMILIES: &[&[Command]] = &[expire::COMMANDS, keys::COMMANDS, object::COMMANDS, string::COMMANDS];

/// Every command of every family.
pub fn all() -> impl Iterator<Item = &'static Command> {
    FAMILIES.iter().flat_map(|family| family.iter())
}
