//! What documentation says of commands that should not be used any more.

/// A deprecated command and what to use instead.
pub struct Replacement {
    /// Its name.
    pub name: &'static str,
    /// The version of Redis that deprecated it.
    pub since: &'static str,
    /// What replaces it.
    pub by: &'static str,
}

const fn replaced(name: &'static str, since: &'static str, by: &'static str) -> Replacement {
    Replacement { name, since, by }
}

/// Every deprecated command.
static REPLACEMENTS: &[Replacement] = &[
    replaced("brpoplpush", "6.2.0", "`BLMOVE` with `RIGHT` and `LEFT`"),
    replaced("cluster|slots", "7.0.0", "`CLUSTER SHARDS`"),
    replaced("georadius", "6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with `BYRADIUS`"),
    replaced("georadius_ro", "6.2.0", "`GEOSEARCH` with `BYRADIUS`"),
    replaced("georadiusbymember", "6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with `BYRADIUS` and `FROMMEMBER`"),
    replaced("georadiusbymember_ro", "6.2.0", "`GEOSEARCH` with `BYRADIUS` and `FROMMEMBER`"),
    replaced("getset", "6.2.0", "`SET` with `GET`"),
    replaced("hmset", "4.0.0", "`HSET` with several fields"),
    replaced("psetex", "2.6.12", "`SET` with `PX`"),
    replaced("quit", "7.2.0", "closing the connection"),
    replaced("rpoplpush", "6.2.0", "`LMOVE` with `RIGHT` and `LEFT`"),
    replaced("setex", "2.6.12", "`SET` with `EX`"),
    replaced("setnx", "2.6.12", "`SET` with `NX`"),
    replaced("substr", "2.0.0", "`GETRANGE`"),
    replaced("zrangebylex", "6.2.0", "`ZRANGE` with `BYLEX`"),
    replaced("zrangebyscore", "6.2.0", "`ZRANGE` with `BYSCORE`"),
    replaced("zrevrange", "6.2.0", "`ZRANGE` with `REV`"),
    replaced("zrevrangebylex", "6.2.0", "`ZRANGE` with `REV` and `BYLEX`"),
    replaced("zrevrangebyscore", "6.2.0", "`ZRANGE` with `REV` and `BYSCORE`"),
];

/// What replaces the command with this full name, if it is deprecated.
pub fn replacement(name: &str) -> Option<&'static Replacement> {
    REPLACEMENTS.iter().find(|replacement| replacement.name == name)
}

#[cfg(test)]
mod tests {
    use ruvio_shard::command::Flags;

    use super::*;
    use crate::registry::registry;

    #[test]
    fn exactly_the_deprecated_commands_have_a_replacement() {
        for command in registry().all() {
            let name = command.spec.name;
            assert_eq!(command.spec.flags.has(Flags::DEPRECATED), replacement(name).is_some(), "{name}");
        }
    }
}
