//! What an operator may set and a shard must know.

/// Which keys go when memory is at its limit, in Redis's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvictionPolicy {
    /// `noeviction`: writes are refused.
    #[default]
    NoEviction,
    /// `allkeys-lru`
    AllKeysLru,
    /// `allkeys-lfu`
    AllKeysLfu,
    /// `allkeys-random`
    AllKeysRandom,
    /// `volatile-lru`
    VolatileLru,
    /// `volatile-lfu`
    VolatileLfu,
    /// `volatile-random`
    VolatileRandom,
    /// `volatile-ttl`
    VolatileTtl,
}

impl EvictionPolicy {
    /// Every policy with its word.
    pub const ALL: [(EvictionPolicy, &'static str); 8] = [
        (EvictionPolicy::NoEviction, "noeviction"),
        (EvictionPolicy::AllKeysLru, "allkeys-lru"),
        (EvictionPolicy::AllKeysLfu, "allkeys-lfu"),
        (EvictionPolicy::AllKeysRandom, "allkeys-random"),
        (EvictionPolicy::VolatileLru, "volatile-lru"),
        (EvictionPolicy::VolatileLfu, "volatile-lfu"),
        (EvictionPolicy::VolatileRandom, "volatile-random"),
        (EvictionPolicy::VolatileTtl, "volatile-ttl"),
    ];

    /// The policy's word.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(policy, _)| *policy == self).map_or("noeviction", |(_, name)| name)
    }

    /// Whether entries' access stamps count frequency instead of time.
    #[inline]
    pub fn is_lfu(self) -> bool {
        matches!(self, EvictionPolicy::AllKeysLfu | EvictionPolicy::VolatileLfu)
    }

    /// Whether only keys with a deadline may go.
    #[inline]
    pub fn is_volatile(self) -> bool {
        matches!(
            self,
            EvictionPolicy::VolatileLru
                | EvictionPolicy::VolatileLfu
                | EvictionPolicy::VolatileRandom
                | EvictionPolicy::VolatileTtl
        )
    }
}

/// The settings of a shard. The names are Redis's configuration names with underscores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of a reply with which its client is disconnected, whatever it is.
    pub most_reply_bytes: usize,
    /// Fields of a packed hash.
    pub hash_max_listpack_entries: usize,
    /// Longest field or value of a packed hash, in bytes.
    pub hash_max_listpack_value: usize,
    /// Members of a set of integers.
    pub set_max_intset_entries: usize,
    /// Members of a packed set.
    pub set_max_listpack_entries: usize,
    /// Longest member of a packed set, in bytes.
    pub set_max_listpack_value: usize,
    /// Members of a packed sorted set.
    pub zset_max_listpack_entries: usize,
    /// Longest member of a packed sorted set, in bytes.
    pub zset_max_listpack_value: usize,
    /// Size of a list's packed nodes: positive, in elements; negative, -1 to -5 for 4 to 64 KiB.
    pub list_max_listpack_size: i64,
    /// Longest sparse HyperLogLog, in bytes.
    pub hll_sparse_max_bytes: usize,
    /// Longest bulk string, in bytes.
    pub proto_max_bulk_len: usize,
    /// Memory the whole process may use, in bytes; 0 for no limit.
    pub maxmemory: u64,
    /// What goes when it is reached.
    pub maxmemory_policy: EvictionPolicy,
    /// Keys looked at for each one evicted.
    pub maxmemory_samples: usize,
    /// How slowly the frequency counter rises.
    pub lfu_log_factor: u64,
    /// Minutes after which the frequency counter falls by one.
    pub lfu_decay_time: u64,
    /// How hard active expiry works, 1 to 10.
    pub active_expire_effort: u64,
    /// Whether the keys of a command may be in several slots of this shard (`--cross-slot allow`).
    pub cross_slot: bool,
    /// Whether keys are removed once expired without being touched.
    pub active_expire: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            most_reply_bytes: usize::MAX,
            hash_max_listpack_entries: 512,
            hash_max_listpack_value: 64,
            set_max_intset_entries: 512,
            set_max_listpack_entries: 128,
            set_max_listpack_value: 64,
            zset_max_listpack_entries: 128,
            zset_max_listpack_value: 64,
            list_max_listpack_size: -2,
            hll_sparse_max_bytes: 3000,
            proto_max_bulk_len: 512 * 1024 * 1024,
            maxmemory: 0,
            maxmemory_policy: EvictionPolicy::NoEviction,
            maxmemory_samples: 5,
            lfu_log_factor: 10,
            lfu_decay_time: 1,
            active_expire_effort: 1,
            cross_slot: false,
            active_expire: true,
        }
    }
}
