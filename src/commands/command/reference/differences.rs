//! Where commands differ from Redis's, in words.

/// Names, separated by spaces, and the difference. What Redis does not have at all is told apart elsewhere.
pub static DIFFERENCES: &[(&str, &str)] = &[
    ("set", "`IFGT` and `IFLT` write only what is greater or less than the stored integer; `IFEQ` is Valkey's."),
    ("incrby", "Takes `MAX` (nil instead of a value beyond it), and `EX` or `PX` for the key that this call creates."),
    (
        "incr decr decrby incrbyfloat hincrby hincrbyfloat zincrby",
        "Takes `EX` or `PX`, for the key that this call creates.",
    ),
    ("append setrange setbit bitfield", "Refuses a value that `SETV` has given a version, as `INCR` and its like do."),
    ("bitcount", "Takes a start without an end, as Valkey 8 does."),
    (
        "mget mset del unlink exists touch",
        "With `--cross-slot allow` the keys may be on several shards. The command is split over them then, and others may \
         see it done in part.",
    ),
    ("msetnx rename renamenx copy", "With `--cross-slot allow` the keys still have to be on one shard."),
    ("select move", "Databases work in the cluster view too; every database has the same slots."),
    ("expire expireat pexpire pexpireat persist", "Refused for a key of type `limit`: its deadline is the limiter's."),
    (
        "object|encoding",
        "The word is the one Redis would have for the same value, made anew; how it is stored is Ruvio's own.",
    ),
    ("restore", "Refuses a time to live whose end is no number of 64 bits."),
    ("object|refcount", "Always 1: values are not shared."),
    ("memory|usage", "Exact, however many `SAMPLES` are asked for."),
    ("scan", "Goes over the slots in order, from shard to shard, on a shard's port too; cursors have at most 52 bits."),
    (
        "hrandfield srandmember zrandmember",
        "With a negative count, a reply that would be longer than `proto-max-bulk-len` is refused.",
    ),
    (
        "latency|latest",
        "Of Redis's events there are `command`, `fast-command`, `expire-cycle`, `eviction-cycle`, `aof-write` with its kinds, \
         and `aof-fsync-always`.",
    ),
    ("keys dbsize randomkey flushall flushdb swapdb", "Speaks for every shard, on a shard's port too."),
    (
        "eval eval_ro evalsha evalsha_ro fcall fcall_ro",
        "Runs on the shard that owns the keys, and waits only for scripts of the same shard. A script's keys, declared or not, \
         are in one slot, or with the flag `allow-cross-slot-keys` or `--cross-slot allow` on one shard. `DBSIZE`, `KEYS`, \
         `SCAN`, `RANDOMKEY`, `FLUSHDB`, `FLUSHALL`, `INFO` and `MEMORY` speak for that shard in a script; `SWAPDB` is refused \
         in one where there are several shards. `redis.set_repl` leaves nothing out of the log. While a script runs for longer \
         than `busy-reply-threshold`, only commands that need its shard are answered `BUSY`. In a pipeline, \
         `EVALSHA` may find a script that only a later `EVAL` of the pipeline, on another core, makes known.",
    ),
    (
        "script|kill function|kill",
        "Ends what runs on every shard; it need not have run for `busy-reply-threshold` yet.",
    ),
    ("script|debug", "There is no debugger: only `NO` is accepted."),
    ("script|flush function|flush", "`ASYNC` and `SYNC` do the same."),
    ("script|show", "Came with Valkey 8."),
    (
        "pubsub|channels pubsub|numpat pubsub|numsub",
        "On a shard's port, what the clients of that shard's core subscribe to, as on a node of a cluster; on the shared \
         port, what all clients do.",
    ),
    (
        "pubsub|shardchannels pubsub|shardnumsub",
        "On a shard's port, the channels of its slots; on the shared port, all.",
    ),
    (
        "client|help command|help config|help cluster|help function|help latency|help memory|help object|help pubsub \
         script|help slowlog|help",
        "In words of its own.",
    ),
    (
        "command|getkeys command|getkeysandflags",
        "A number of keys that is no integer is refused, as the command itself would refuse it.",
    ),
    ("info", "Has a section `shards`; the other figures are those of all shards together."),
    ("config|set", "Takes only what has an effect; where there is one way only, the value that stands for it."),
    ("config|rewrite", "Refused: the file is TOML with the options of the command line."),
    ("shutdown", "`SAVE` is refused while nothing is stored."),
    ("client|kill client|list", "The one user is `default`; there are no replicas and no masters."),
    ("client|no-evict", "Shown in `CLIENT LIST`. Clients are not evicted, so there is nothing to be exempt from."),
    ("auth", "The one user is `default`."),
    ("hello", "The one user is `default`. `mode` is `cluster`, and with `--cross-slot allow` `standalone`."),
    ("role", "Always a master without replicas."),
    ("memory|doctor memory|malloc-stats memory|stats", "The figures are those of Ruvio's allocators."),
    ("monitor", "Commands of different cores come in the order in which they reach the connection's core."),
    (
        "cluster|nodes cluster|shards cluster|slots",
        "Shows the shards as nodes, each with a port of its own. The shared port is a node without slots.",
    ),
    ("cluster|info cluster|links", "There is no cluster bus, so nothing is counted and linked there."),
    ("asking readonly readwrite", "Changes nothing: slots do not move, and there are no replicas."),
];
