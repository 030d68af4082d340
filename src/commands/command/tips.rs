//! Tips for clients and proxies: how to spread a command over nodes, and how far its replies can be compared.

/// Tips by full name. Facts of Redis's command table; a command that is not here has none.
static TIPS: &[(&str, &[&str])] = &[
    ("client|info", &[CHANGING]),
    ("client|list", &[CHANGING]),
    ("client|setinfo", &[ALL_NODES, ALL_SUCCEEDED]),
    ("client|setname", &[ALL_NODES, ALL_SUCCEEDED]),
    ("cluster|getkeysinslot", &[CHANGING]),
    ("cluster|info", &[CHANGING]),
    ("cluster|links", &[CHANGING]),
    ("cluster|myshardid", &[CHANGING]),
    ("cluster|nodes", &[CHANGING]),
    ("cluster|shards", &[CHANGING]),
    ("cluster|slots", &[CHANGING]),
    ("command", &[NO_ORDER]),
    ("command|docs", &[NO_ORDER]),
    ("command|info", &[NO_ORDER]),
    ("command|list", &[NO_ORDER]),
    ("config|resetstat", &[ALL_NODES, ALL_SUCCEEDED]),
    ("config|rewrite", &[ALL_NODES, ALL_SUCCEEDED]),
    ("config|set", &[ALL_NODES, ALL_SUCCEEDED]),
    ("dbsize", &[ALL_SHARDS, SUM]),
    ("del", &[MULTI_SHARD, SUM]),
    ("dump", &[CHANGING]),
    ("exists", &[MULTI_SHARD, SUM]),
    ("flushall", &[ALL_SHARDS, ALL_SUCCEEDED]),
    ("flushdb", &[ALL_SHARDS, ALL_SUCCEEDED]),
    ("hgetall", &[NO_ORDER]),
    ("hkeys", &[NO_ORDER]),
    ("hrandfield", &[CHANGING]),
    ("hscan", &[CHANGING]),
    ("hvals", &[NO_ORDER]),
    ("info", &[CHANGING, ALL_SHARDS, SPECIAL]),
    ("keys", &[ALL_SHARDS, NO_ORDER]),
    ("latency|doctor", &[CHANGING, ALL_NODES, SPECIAL]),
    ("latency|graph", &[CHANGING, ALL_NODES, SPECIAL]),
    ("latency|histogram", &[CHANGING, ALL_NODES, SPECIAL]),
    ("latency|history", &[CHANGING, ALL_NODES, SPECIAL]),
    ("latency|latest", &[CHANGING, ALL_NODES, SPECIAL]),
    ("latency|reset", &[ALL_NODES, SUM]),
    ("memory|doctor", &[CHANGING, ALL_SHARDS, SPECIAL]),
    ("memory|malloc-stats", &[CHANGING, ALL_SHARDS, SPECIAL]),
    ("memory|purge", &[ALL_SHARDS, ALL_SUCCEEDED]),
    ("memory|stats", &[CHANGING, ALL_SHARDS, SPECIAL]),
    ("mget", &[MULTI_SHARD]),
    ("migrate", &[CHANGING]),
    ("mset", &[MULTI_SHARD, ALL_SUCCEEDED]),
    ("object|encoding", &[CHANGING]),
    ("object|freq", &[CHANGING]),
    ("object|idletime", &[CHANGING]),
    ("object|refcount", &[CHANGING]),
    ("ping", &[ALL_SHARDS, ALL_SUCCEEDED]),
    ("pttl", &[CHANGING]),
    ("randomkey", &[ALL_SHARDS, SPECIAL, CHANGING]),
    ("scan", &[CHANGING, SPECIAL_REQUEST, SPECIAL]),
    ("sdiff", &[NO_ORDER]),
    ("sinter", &[NO_ORDER]),
    ("slowlog|get", &[ALL_NODES, CHANGING]),
    ("slowlog|len", &[ALL_NODES, SUM, CHANGING]),
    ("slowlog|reset", &[ALL_NODES, ALL_SUCCEEDED]),
    ("smembers", &[NO_ORDER]),
    ("spop", &[CHANGING]),
    ("srandmember", &[CHANGING]),
    ("sscan", &[CHANGING]),
    ("sunion", &[NO_ORDER]),
    ("time", &[CHANGING]),
    ("touch", &[MULTI_SHARD, SUM]),
    ("ttl", &[CHANGING]),
    ("unlink", &[MULTI_SHARD, SUM]),
    ("zrandmember", &[CHANGING]),
    ("zscan", &[CHANGING]),
];

const CHANGING: &str = "nondeterministic_output";
const NO_ORDER: &str = "nondeterministic_output_order";
const ALL_NODES: &str = "request_policy:all_nodes";
const ALL_SHARDS: &str = "request_policy:all_shards";
const MULTI_SHARD: &str = "request_policy:multi_shard";
const SPECIAL_REQUEST: &str = "request_policy:special";
const ALL_SUCCEEDED: &str = "response_policy:all_succeeded";
const SUM: &str = "response_policy:agg_sum";
const SPECIAL: &str = "response_policy:special";

/// The tips of the command with this full name.
pub fn tips(name: &str) -> &'static [&'static str] {
    TIPS.iter().find(|(known, _)| *known == name).map_or(&[], |(_, tips)| tips)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::registry;

    #[test]
    fn tips_belong_to_commands_and_come_once() {
        assert!(TIPS.is_sorted_by(|(one, _), (next, _)| one < next), "by name");
        for (name, tips) in TIPS {
            assert!(registry().get_full(name.as_bytes()).is_some(), "no command {name}");
            assert!(!tips.is_empty(), "{name} has no tips");
        }
    }
}
