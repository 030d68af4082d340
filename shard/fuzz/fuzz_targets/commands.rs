//! Scripts of commands, run on two shards side by side: one speaks RESP2 and converts its collections early, the other
//! speaks RESP3 and keeps the usual limits.
//!
//! No command may panic; each writes exactly one reply, well-formed in its protocol; both shards agree on errors,
//! changes, replies and what is stored, since neither the protocol nor the form of a collection changes what a command
//! does. At the end the counts of keys agree with a scan. See [`script`] for the form of the input.

#![no_main]

use std::cell::Cell;

use libfuzzer_sys::fuzz_target;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use ruvio_shard::args::OwnedArgs;
use ruvio_shard::command::{Command, Group};
use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::reply::Protocol;
use ruvio_shard::scan::ScanFilter;
use ruvio_shard::settings::{EvictionPolicy, Settings};
use ruvio_shard::shard::{Call, Shard};
use ruvio_shard::slot::{SLOTS, key_slot};

#[path = "stored/pool.rs"]
mod pool;
#[path = "commands/reply.rs"]
mod reply;
#[path = "commands/script.rs"]
mod script;

use reply::Reply;
use script::Step;

const DATABASES: usize = 2;

/// Longest string that `SETRANGE` and `APPEND` may make, in bytes.
const LONGEST_STRING: usize = 100_000;

const MAXMEMORY: u64 = 1 << 20;

/// Commands whose replies depend on chance, or on the form of what they look at.
const VAGUE: &[&str] = &[
    "srandmember",
    "hrandfield",
    "zrandmember",
    "sscan",
    "hscan",
    "zscan",
    "object|encoding",
    "object|freq",
    "object|idletime",
    "memory|usage",
    "dump",
];

thread_local! {
    /// What the process seems to hold, in bytes; each look at it finds one byte less.
    static HELD: Cell<u64> = const { Cell::new(0) };
}

fn held() -> u64 {
    HELD.set(HELD.get().saturating_sub(1));
    HELD.get()
}

/// What an input's first two bytes choose.
struct Choices {
    limit: usize,
    policy: EvictionPolicy,
    maxmemory: u64,
}

fn shards(choices: &Choices) -> [Shard; 2] {
    let usual = Settings {
        proto_max_bulk_len: LONGEST_STRING,
        maxmemory: choices.maxmemory,
        maxmemory_policy: choices.policy,
        ..Settings::default()
    };
    let early = Settings {
        hash_max_listpack_entries: choices.limit,
        set_max_intset_entries: choices.limit,
        set_max_listpack_entries: choices.limit,
        zset_max_listpack_entries: choices.limit,
        hash_max_listpack_value: 16,
        set_max_listpack_value: 16,
        zset_max_listpack_value: 16,
        list_max_listpack_size: choices.limit as i64 + 1,
        ..usual.clone()
    };
    let meter = MemoryMeter { total: held, is_due: |_| true };
    [early, usual].map(|settings| {
        let mut shard = pool::take().unwrap_or_else(|| Shard::new(DATABASES, Settings::default(), meter, 1));
        shard.keys.settings = settings;
        shard.keys.random = SmallRng::seed_from_u64(1);
        shard
    })
}

/// Removes every key that is left, and keeps the shard for the next run.
fn empty(mut shard: Shard, now_ms: i64) {
    for database in 0..DATABASES {
        let keys = scan(&mut shard, database, now_ms);
        shard.keys.begin(database, now_ms, None);
        assert!(keys.iter().all(|key| shard.keys.remove(key)));
        assert_eq!(shard.keys.len(database), 0);
    }
    while !shard.keys.reclaim(1000) {}
    assert_eq!(shard.keys.pending_remains(), 0);
    while !shard.sweep_expired(now_ms, 1000).wrapped {}
    pool::keep(shard);
}

/// Runs a command; its one reply, and the changes and the error.
fn execute(shard: &mut Shard, command: &Command, words: &OwnedArgs, call: Call) -> (Reply, u64, Option<String>) {
    let mut out = b"before".to_vec();
    let outcome = shard.execute(command, words.as_args(), call, &mut out);
    let written = out.strip_prefix(b"before").expect("what was there stays");
    let reply = Reply::parse_only(written, call.protocol);
    let error = outcome.error.map(|error| error.to_string());
    assert_eq!(error.is_some(), written[0] == b'-');
    assert!(error.is_none() || outcome.changes == 0, "an error leaves no trace");
    (reply, outcome.changes, error)
}

/// Compares what both shards replied; false when chance made them differ from here on.
fn agree(command: &Command, early: Reply, usual: Reply) -> bool {
    if VAGUE.contains(&command.spec.name) {
        return true;
    }
    let (mut early, mut usual) = (early.into_leaves(), usual.into_leaves());
    if matches!(command.spec.group, Group::Set | Group::Hash) {
        early.sort_unstable();
        usual.sort_unstable();
    }
    if command.spec.name == "spop" && early != usual {
        return false;
    }
    assert_eq!(early, usual, "{}", command.spec.name);
    true
}

/// All keys of a database, by a scan in small steps. What has expired is removed.
fn scan(shard: &mut Shard, database: usize, now_ms: i64) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut cursor = 0;
    loop {
        let all = 0..=(SLOTS - 1) as u16;
        let add = |key: &[u8]| keys.push(key.to_vec());
        cursor = shard.keys.scan_database(database, now_ms, cursor, 3, &ScanFilter::default(), all, add);
        if cursor == 0 {
            break;
        }
    }
    keys.sort_unstable();
    keys
}

/// Checks every count against the keys that a scan finds; returns them.
fn check_counts(shard: &mut Shard, database: usize, now_ms: i64) -> Vec<Vec<u8>> {
    let keys = scan(shard, database, now_ms);
    assert!(keys.is_sorted_by(|one, next| one < next), "each key once");
    assert_eq!(shard.keys.len(database), keys.len());
    shard.keys.begin(database, now_ms, None);
    let with_deadline =
        keys.iter().filter(|key| shard.keys.peek(key).expect("a key that is there").deadline_ms().is_some()).count();
    assert_eq!(shard.keys.databases()[database].with_deadline(), with_deadline);
    let mut matching = Vec::new();
    shard.keys.keys_matching(database, now_ms, b"*", |key| matching.push(key.to_vec()));
    matching.sort_unstable();
    assert_eq!(matching, keys);
    for key in &keys {
        let slot = key_slot(key);
        let here = keys.iter().filter(|other| key_slot(other) == slot).count();
        assert_eq!(shard.keys.count_in_slot(database, slot), here);
    }
    keys
}

/// What a key holds, in a form that is the same for all forms of storage.
fn contents(shard: &mut Shard, database: usize, now_ms: i64, key: &[u8]) -> Vec<Vec<Vec<u8>>> {
    const LOOKS: &[(&str, &[&[u8]])] = &[
        ("type", &[]),
        ("pexpiretime", &[]),
        ("get", &[]),
        ("getv", &[]),
        ("lrange", &[b"0", b"-1"]),
        ("hgetall", &[]),
        ("smembers", &[]),
        ("zrange", &[b"0", b"-1", b"WITHSCORES"]),
    ];
    let look = |&(name, more): &(&str, &[&[u8]])| {
        let command = script::command(name).expect("a command of the table");
        let words: OwnedArgs = [name.as_bytes(), key].into_iter().chain(more.iter().copied()).collect();
        let call = Call { database, slot: Some(key_slot(key)), now_ms, protocol: Protocol::Resp2, may_wait: false };
        let mut leaves = execute(shard, command, &words, call).0.into_leaves();
        if name == "smembers" {
            leaves.sort_unstable();
        }
        if name == "hgetall" {
            let mut pairs: Vec<_> = leaves.chunks(2).map(<[_]>::to_vec).collect();
            pairs.sort_unstable();
            leaves = pairs.concat();
        }
        leaves
    };
    LOOKS.iter().map(look).collect()
}

fuzz_target!(|data: &[u8]| {
    let Some((&[limit, policy], text)) = data.split_first_chunk::<2>() else { return };
    let choices = Choices {
        limit: usize::from(limit % 8),
        policy: EvictionPolicy::ALL[usize::from(policy % 8)].0,
        maxmemory: if policy & 8 == 0 { 0 } else { MAXMEMORY },
    };
    HELD.set(0);
    let [mut early, mut usual] = shards(&choices);
    // Eviction chooses by chance.
    let mut comparable = choices.maxmemory == 0;
    let mut now_ms = script::START_MS;
    let mut database = 0;
    for step in script::steps(text) {
        match step {
            Step::Advance(ms) => now_ms += ms,
            Step::Select(number) => database = number % DATABASES,
            Step::Hold(over) => HELD.set(MAXMEMORY + over),
            Step::Clean(budget) => {
                for shard in [&mut early, &mut usual] {
                    shard.keys.reclaim(budget);
                    shard.sweep_expired(now_ms, budget);
                }
            }
            Step::Flush => {
                let [one, other] = [&mut early, &mut usual].map(|shard| shard.keys.flush(database));
                assert!(!comparable || one == other);
            }
            Step::Swap => [&mut early, &mut usual].into_iter().for_each(|shard| shard.keys.swap_databases(0, 1)),
            Step::Run(line) => {
                let Some((command, words, slot)) = line.resolve(now_ms) else { continue };
                let call = |protocol| Call { database, slot, now_ms, protocol, may_wait: false };
                let held = HELD.get();
                let (early_reply, early_changes, early_error) =
                    execute(&mut early, command, &words, call(Protocol::Resp2));
                HELD.set(held);
                let (usual_reply, usual_changes, usual_error) =
                    execute(&mut usual, command, &words, call(Protocol::Resp3));
                if comparable {
                    assert_eq!((early_changes, early_error), (usual_changes, usual_error), "{}", command.spec.name);
                    comparable = agree(command, early_reply, usual_reply);
                }
            }
        }
    }
    for database in 0..DATABASES {
        let keys = check_counts(&mut early, database, now_ms);
        let usual_keys = check_counts(&mut usual, database, now_ms);
        if comparable {
            assert_eq!(keys, usual_keys);
            for key in keys {
                let early_contents = contents(&mut early, database, now_ms, &key);
                assert_eq!(early_contents, contents(&mut usual, database, now_ms, &key), "{}", key.escape_ascii());
            }
        }
    }
    empty(early, now_ms);
    empty(usual, now_ms);
});
