//! Errors of commands, in Redis's words.

use std::borrow::Cow;
use std::fmt;

/// An error reply: its code and text as they go over the wire, without the leading `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError(Cow<'static, str>);

macro_rules! errors {
    ($($(#[$about:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$about])* pub const $name: CommandError = CommandError(Cow::Borrowed($text));)*
    };
}

impl CommandError {
    errors! {
        /// A key holds another type than the command works on.
        WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value";
        /// Options that do not fit together, or unknown ones.
        SYNTAX = "ERR syntax error";
        /// A word, or a stored value, is no 64-bit integer.
        NOT_AN_INTEGER = "ERR value is not an integer or out of range";
        /// A word, or a stored value, is no float.
        NOT_A_FLOAT = "ERR value is not a valid float";
        /// A counter would leave the 64-bit range.
        OVERFLOW = "ERR increment or decrement would overflow";
        /// The key is missing where it must not be.
        NO_SUCH_KEY = "ERR no such key";
        /// An index outside the list.
        INDEX_OUT_OF_RANGE = "ERR index out of range";
        /// An offset outside what a string may hold.
        OFFSET_OUT_OF_RANGE = "ERR offset is out of range";
        /// A string would grow past `proto-max-bulk-len`.
        STRING_TOO_LONG = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
        /// A count or a time-out below what is allowed.
        MUST_BE_POSITIVE = "ERR value is out of range, must be positive";
        /// A cursor that no SCAN gave.
        INVALID_CURSOR = "ERR invalid cursor";
        /// A database number outside the configured ones.
        DB_INDEX_OUT_OF_RANGE = "ERR DB index is out of range";
        /// Keys of a command in more than one slot.
        CROSS_SLOT = "CROSSSLOT Keys in request don't hash to the same slot";
        /// A change in place of a versioned value, which would not get a new version.
        VERSIONED = "ERR the value has a version, change it with SETV";
        /// The data is still being read.
        LOADING = "LOADING Redis is loading the dataset in memory";
        /// A key is there where it must not be.
        BUSY_KEY = "BUSYKEY Target key name already exists.";
        /// A command that a script calls and may not.
        NOT_FROM_SCRIPTS = "ERR This Redis command is not allowed from script";
        /// No script has the digest that was given.
        NO_SCRIPT = "NOSCRIPT No matching script. Please use EVAL.";
        /// A reply that its client will not get, because it is disconnected for it.
        REPLY_OVER_LIMIT = "ERR the reply exceeds client-output-buffer-limit";
        /// A write refused because memory is at its limit.
        OUT_OF_MEMORY = "OOM command not allowed when used memory > 'maxmemory'.";
    }

    /// An error with a text of its own, code included.
    pub fn new(text: impl Into<Cow<'static, str>>) -> CommandError {
        CommandError(text.into())
    }

    /// `ERR wrong number of arguments for 'name' command`
    pub fn wrong_arity(name: &str) -> CommandError {
        CommandError(Cow::Owned(format!("ERR wrong number of arguments for '{name}' command")))
    }

    /// `ERR invalid expire time in 'name' command`
    pub fn invalid_expire_time(name: &str) -> CommandError {
        CommandError(Cow::Owned(format!("ERR invalid expire time in '{name}' command")))
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The first word: `ERR`, `WRONGTYPE`, …
    pub fn code(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for CommandError {}

/// What a handler returns: its reply is written, or there is an error instead of any reply.
pub type CommandResult = Result<(), CommandError>;
