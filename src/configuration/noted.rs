//! Parameters that are kept for the programs that set them.
//!
//! In Redis each of them chooses how work is arranged and changes no reply, and here that work is arranged in one way or
//! not done at all. A value is checked, remembered and shown, and has no effect.

use super::parameters::{Kind, Parameter};
use super::values;

/// What values a noted parameter takes.
#[derive(Clone, Copy)]
pub enum Shape {
    /// `yes` or `no`.
    Switch,
    /// An integer in a range.
    Number((i64, i64)),
    /// A number of bytes in a range.
    Bytes((i64, i64)),
    /// One of these words.
    Word(&'static [&'static str]),
}

impl Shape {
    /// The value as it is shown; an error says why it is none.
    pub fn read(self, value: &[u8]) -> Result<String, String> {
        Ok(match self {
            Shape::Switch => values::yes_or_no(values::boolean(value)?).to_owned(),
            Shape::Number(range) => values::integer(value, range)?.to_string(),
            Shape::Bytes(range) => values::memory(value, range)?.to_string(),
            Shape::Word(words) => values::one_of(value, words)?.to_owned(),
        })
    }
}

const fn switch(name: &'static str, default: &'static str) -> Parameter {
    Parameter { name, alias: None, kind: Kind::Noted { default, shape: Shape::Switch } }
}

const fn number(name: &'static str, default: &'static str, range: (i64, i64)) -> Parameter {
    Parameter { name, alias: None, kind: Kind::Noted { default, shape: Shape::Number(range) } }
}

const fn bytes(name: &'static str, default: &'static str, range: (i64, i64)) -> Parameter {
    Parameter { name, alias: None, kind: Kind::Noted { default, shape: Shape::Bytes(range) } }
}

const fn word(name: &'static str, default: &'static str, words: &'static [&'static str]) -> Parameter {
    Parameter { name, alias: None, kind: Kind::Noted { default, shape: Shape::Word(words) } }
}

/// Gives a parameter its older name.
const fn formerly(alias: &'static str, parameter: Parameter) -> Parameter {
    Parameter { alias: Some(alias), ..parameter }
}

const NOT_NEGATIVE: (i64, i64) = (0, i32::MAX as i64);
const POSITIVE: (i64, i64) = (1, i32::MAX as i64);
const ANY_SIZE: (i64, i64) = (0, i64::MAX);

/// Every one, with the value a Redis starts with.
pub static NOTED: &[Parameter] = &[
    number("active-defrag-cycle-max", "25", (1, 99)),
    number("active-defrag-cycle-min", "1", (1, 99)),
    bytes("active-defrag-ignore-bytes", "104857600", (1, i64::MAX)),
    number("active-defrag-max-scan-fields", "1000", (1, i64::MAX)),
    number("active-defrag-threshold-lower", "10", (0, 1000)),
    number("active-defrag-threshold-upper", "100", (0, 1000)),
    switch("activerehashing", "yes"),
    switch("aof-use-rdb-preamble", "yes"),
    switch("cluster-allow-pubsubshard-when-down", "yes"),
    switch("cluster-allow-reads-when-down", "no"),
    number("cluster-node-timeout", "15000", ANY_SIZE),
    switch("cluster-require-full-coverage", "yes"),
    switch("crash-log-enabled", "yes"),
    switch("crash-memcheck-enabled", "yes"),
    switch("dynamic-hz", "yes"),
    number("hz", "10", NOT_NEGATIVE),
    switch("jemalloc-bg-thread", "yes"),
    switch("lazyfree-lazy-eviction", "no"),
    switch("lazyfree-lazy-expire", "no"),
    switch("lazyfree-lazy-server-del", "no"),
    switch("lazyfree-lazy-user-del", "no"),
    switch("lazyfree-lazy-user-flush", "no"),
    number("list-compress-depth", "0", NOT_NEGATIVE),
    number("maxmemory-eviction-tenacity", "10", (0, 100)),
    formerly("min-slaves-max-lag", number("min-replicas-max-lag", "10", NOT_NEGATIVE)),
    switch("rdb-del-sync-files", "no"),
    switch("rdb-save-incremental-fsync", "yes"),
    switch("rdbcompression", "yes"),
    bytes("repl-backlog-size", "1048576", (1, i64::MAX)),
    number("repl-backlog-ttl", "3600", ANY_SIZE),
    switch("repl-disable-tcp-nodelay", "no"),
    word("repl-diskless-load", "disabled", &["disabled", "on-empty-db", "swapdb"]),
    switch("repl-diskless-sync", "yes"),
    number("repl-diskless-sync-delay", "5", NOT_NEGATIVE),
    number("repl-diskless-sync-max-replicas", "0", NOT_NEGATIVE),
    formerly("repl-ping-slave-period", number("repl-ping-replica-period", "10", POSITIVE)),
    number("repl-timeout", "60", POSITIVE),
    switch("replica-announced", "yes"),
    formerly("slave-ignore-maxmemory", switch("replica-ignore-maxmemory", "yes")),
    formerly("slave-lazy-flush", switch("replica-lazy-flush", "no")),
    formerly("slave-priority", number("replica-priority", "100", NOT_NEGATIVE)),
    formerly("slave-read-only", switch("replica-read-only", "yes")),
    formerly("slave-serve-stale-data", switch("replica-serve-stale-data", "yes")),
    word("sanitize-dump-payload", "no", &["no", "yes", "clients"]),
    switch("stop-writes-on-bgsave-error", "yes"),
    bytes("stream-node-max-bytes", "4096", ANY_SIZE),
    number("stream-node-max-entries", "100", ANY_SIZE),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_values_as_they_are_shown() {
        for parameter in NOTED {
            let Kind::Noted { default, shape } = parameter.kind else { panic!("{} is not noted", parameter.name) };
            assert_eq!(shape.read(default.as_bytes()).as_deref(), Ok(default), "{}", parameter.name);
        }
    }

    #[test]
    fn the_readme_names_every_one() {
        let readme = include_str!("../../README.md");
        for parameter in NOTED {
            assert!(readme.contains(&format!("`{}`", parameter.name)), "{} is missing", parameter.name);
        }
    }

    #[test]
    fn values_are_checked_and_shown_in_one_notation() {
        assert_eq!(Shape::Switch.read(b"YES").as_deref(), Ok("yes"));
        assert_eq!(Shape::Bytes(ANY_SIZE).read(b"1mb").as_deref(), Ok("1048576"));
        assert_eq!(Shape::Word(&["one", "two"]).read(b"TWO").as_deref(), Ok("two"));
        assert!(Shape::Switch.read(b"1").is_err());
        assert!(Shape::Number((1, 99)).read(b"100").is_err());
        assert!(Shape::Word(&["one", "two"]).read(b"three").expect_err("no word").ends_with("one, two"));
    }
}
