//! Libraries of functions.

use super::{Host, Limits, Ran, ScriptCall, ScriptFlags};
use crate::error::CommandError;

/// A function that a library registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// What it is called by.
    pub name: String,
    /// What it is for, in its author's words.
    pub description: Option<String>,
    /// What it says of itself.
    pub flags: ScriptFlags,
}

pub(super) struct Functions;

const MISSING: CommandError = CommandError::SYNTAX;

impl Functions {
    pub fn new(_limits: Limits) -> Result<Functions, CommandError> {
        Ok(Functions)
    }
    pub fn set_limits(&self, _limits: Limits) {}
    pub fn used_memory(&self) -> usize {
        0
    }
    pub fn load_library(&self, _: &str, _: &[u8], _: &mut dyn Host) -> Result<Vec<FunctionInfo>, CommandError> {
        Err(MISSING)
    }
    pub fn delete_library(&self, _: &str) -> bool {
        false
    }
    pub fn run_function(&self, _: &[u8], call: &ScriptCall<'_>, _: &mut dyn Host, reply: &mut Vec<u8>) -> Ran {
        Ran::refused(MISSING, call.protocol, reply)
    }
}
