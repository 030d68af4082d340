//! Eviction: who goes, and that it never takes long.

use std::cell::Cell;

use crate::support::databases::{call, run};
use ruvio_shard::entry::{Encoding, Entry, Header};
use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::settings::{EvictionPolicy, Settings};
use ruvio_shard::shard::Shard;
use ruvio_shard::slab;

const NOW_MS: i64 = 1_700_000_000_000;
const OUT_OF_MEMORY: &[u8] = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";

thread_local! {
    /// What others hold, in bytes.
    static OTHERS: Cell<u64> = const { Cell::new(0) };
    /// What the average shard's keys take, in bytes.
    static AVERAGE: Cell<u64> = const { Cell::new(0) };
    /// What the shard said last that may go, in bytes.
    static EVICTABLE: Cell<u64> = const { Cell::new(u64::MAX) };
    /// How often the meter was read.
    static READINGS: Cell<usize> = const { Cell::new(0) };
}

fn own_bytes() -> u64 {
    slab::usage().keyspace_bytes() as u64
}

fn total_bytes() -> u64 {
    READINGS.set(READINGS.get() + 1);
    own_bytes() + OTHERS.get()
}

fn is_due(bytes: u64) -> bool {
    EVICTABLE.set(bytes);
    bytes >= AVERAGE.get()
}

fn shard_with(policy: EvictionPolicy) -> Shard {
    let settings = Settings { maxmemory: u64::MAX, maxmemory_policy: policy, ..Settings::default() };
    Shard::new(4, settings, MemoryMeter { total: total_bytes, is_due }, 3)
}

fn put(shard: &mut Shard, database: usize, now_ms: i64, key: &str, deadline_ms: Option<i64>) {
    shard.keys.begin(database, now_ms, None);
    let header = Header { key: key.as_bytes(), deadline_ms, access: shard.keys.new_access(), ..Header::default() };
    shard.keys.put(Entry::new(header, Encoding::Bytes, &[&[b'x'; 100]]));
}

/// Sets the limit so far below what is held that about `keys` of the keys that `put` makes have to go.
fn squeeze(shard: &mut Shard, keys: u64) {
    shard.keys.settings.maxmemory = total_bytes() - keys * 120;
}

/// A command that needs memory, and changes nothing itself.
fn ask(shard: &mut Shard, now_ms: i64) -> Vec<u8> {
    let (reply, outcome) = call(shard, 0, now_ms, &[b"COPY", b"missing", b"other"]);
    assert_eq!(outcome.changes, 0, "what is evicted is no change of the command");
    reply
}

/// Asks until there is enough memory.
fn ask_until_enough(shard: &mut Shard, now_ms: i64) {
    while total_bytes() > shard.keys.settings.maxmemory {
        assert_eq!(ask(shard, now_ms), b":0\r\n");
    }
}

fn count(shard: &mut Shard, now_ms: i64, prefix: &str) -> usize {
    let mut count = 0;
    for database in 0..shard.keys.databases().len() {
        shard
            .keys
            .keys_matching(database, now_ms, b"*", |key| count += usize::from(key.starts_with(prefix.as_bytes())));
    }
    count
}

#[test]
fn noeviction_refuses_what_needs_memory() {
    let mut shard = shard_with(EvictionPolicy::NoEviction);
    put(&mut shard, 0, NOW_MS, "a", None);
    assert_eq!(ask(&mut shard, NOW_MS), b":0\r\n");
    squeeze(&mut shard, 1);
    assert_eq!(ask(&mut shard, NOW_MS), OUT_OF_MEMORY);
    assert_eq!(run(&mut shard, NOW_MS, "EXISTS a"), b":1\r\n");
    assert!(!shard.evict_in_turn(NOW_MS));
    assert_eq!(run(&mut shard, NOW_MS, "DEL a"), b":1\r\n");
    assert_eq!(ask(&mut shard, NOW_MS), b":0\r\n");
}

#[test]
fn lru_spares_what_is_used() {
    for policy in [EvictionPolicy::AllKeysLru, EvictionPolicy::VolatileLru] {
        let mut shard = shard_with(policy);
        let deadline_ms = policy.is_volatile().then_some(NOW_MS + 1_000_000_000);
        for index in 0..500 {
            put(&mut shard, 0, NOW_MS, &format!("old:{index}"), deadline_ms);
            put(&mut shard, 0, NOW_MS, &format!("used:{index}"), deadline_ms);
        }
        let later = NOW_MS + 100_000;
        for index in 0..500 {
            run(&mut shard, later, &format!("GET used:{index}"));
        }
        squeeze(&mut shard, 250);
        ask_until_enough(&mut shard, later);
        let evicted = shard.keys.stats.evicted as usize;
        assert!(evicted >= 150, "{evicted} evicted");
        // 1 choice in 32 finds only used keys among its five.
        let used_gone = 500 - count(&mut shard, later, "used");
        assert!(used_gone * 6 < evicted, "{policy:?}: {used_gone} of {evicted} were in use");
    }
}

#[test]
fn lfu_spares_what_is_used_often() {
    for policy in [EvictionPolicy::AllKeysLfu, EvictionPolicy::VolatileLfu] {
        let mut shard = shard_with(policy);
        let deadline_ms = policy.is_volatile().then_some(NOW_MS + 1_000_000_000);
        for index in 0..300 {
            put(&mut shard, 0, NOW_MS, &format!("rare:{index}"), deadline_ms);
            put(&mut shard, 0, NOW_MS, &format!("often:{index}"), deadline_ms);
            for _ in 0..20 {
                run(&mut shard, NOW_MS, &format!("GET often:{index}"));
            }
        }
        // The latest use is of the rare ones: only the frequency speaks for the others.
        for index in 0..300 {
            run(&mut shard, NOW_MS + 1000, &format!("EXISTS rare:{index}"));
        }
        squeeze(&mut shard, 150);
        ask_until_enough(&mut shard, NOW_MS);
        let evicted = shard.keys.stats.evicted as usize;
        let often_gone = 300 - count(&mut shard, NOW_MS, "often");
        assert!(evicted >= 80 && often_gone * 6 < evicted, "{policy:?}: {often_gone} of {evicted} were used often");
    }
}

#[test]
fn random_policies_take_from_everywhere_alike() {
    for policy in [EvictionPolicy::AllKeysRandom, EvictionPolicy::VolatileRandom] {
        let mut shard = shard_with(policy);
        let deadline_ms = policy.is_volatile().then_some(NOW_MS + 1_000_000_000);
        for index in 0..900 {
            // Most keys in one slot of one database, the others spread over the slots of another.
            put(&mut shard, 0, NOW_MS, &format!("{{tag}}one:{index}"), deadline_ms);
            if index % 9 == 0 {
                put(&mut shard, 3, NOW_MS, &format!("spread:{index}"), deadline_ms);
            }
        }
        squeeze(&mut shard, 500);
        ask_until_enough(&mut shard, NOW_MS);
        let one_gone = 900 - count(&mut shard, NOW_MS, "{tag}");
        let spread_gone = 100 - count(&mut shard, NOW_MS, "spread");
        // 9 to 1, with room for chance: about 50 of the spread keys go, give or take 5.
        assert!((25..80).contains(&spread_gone) && one_gone > 300, "{policy:?}: {one_gone} and {spread_gone}");
    }
}

#[test]
fn volatile_ttl_takes_what_expires_first() {
    let mut shard = shard_with(EvictionPolicy::VolatileTtl);
    for index in 0..400 {
        put(&mut shard, 0, NOW_MS, &format!("soon:{index}"), Some(NOW_MS + 10_000 + index));
        put(&mut shard, 0, NOW_MS, &format!("late:{index}"), Some(NOW_MS + 90_000_000 + index));
    }
    squeeze(&mut shard, 200);
    ask_until_enough(&mut shard, NOW_MS);
    let evicted = shard.keys.stats.evicted as usize;
    let late_gone = 400 - count(&mut shard, NOW_MS, "late");
    assert!(evicted >= 100 && late_gone * 6 < evicted, "{late_gone} of {evicted} would have expired late");
}

#[test]
fn volatile_policies_leave_keys_without_deadline() {
    for (policy, _) in EvictionPolicy::ALL.into_iter().filter(|(policy, _)| policy.is_volatile()) {
        let mut shard = shard_with(policy);
        for index in 0..5000 {
            put(&mut shard, 0, NOW_MS, &format!("stays:{index}"), None);
        }
        for index in 0..20 {
            put(&mut shard, 0, NOW_MS, &format!("goes:{index}"), Some(NOW_MS + 1_000_000));
        }
        squeeze(&mut shard, 100);
        let mut replies = 0;
        while ask(&mut shard, NOW_MS) != OUT_OF_MEMORY {
            replies += 1;
            assert!(replies < 100, "{policy:?} comes to an end");
        }
        assert_eq!((count(&mut shard, NOW_MS, "stays"), count(&mut shard, NOW_MS, "goes")), (5000, 0), "{policy:?}");
        assert_eq!(shard.keys.stats.evicted, 20);
    }
}

#[test]
fn a_command_evicts_a_bounded_number_of_keys() {
    let mut shard = shard_with(EvictionPolicy::AllKeysLru);
    for index in 0..2000 {
        put(&mut shard, 0, NOW_MS, &format!("key:{index}"), None);
    }
    shard.keys.settings.maxmemory = 1;
    READINGS.set(0);
    assert_eq!(ask(&mut shard, NOW_MS), b":0\r\n");
    assert_eq!(shard.keys.stats.evicted, 64);
    assert!(READINGS.get() < 200, "the meter was read {} times", READINGS.get());
    assert!(shard.evict_in_turn(NOW_MS), "turns go on with it");
    assert_eq!(shard.keys.stats.evicted, 128);
}

#[test]
fn a_shard_below_the_average_leaves_eviction_to_others() {
    let mut shard = shard_with(EvictionPolicy::AllKeysLru);
    for index in 0..100 {
        put(&mut shard, 0, NOW_MS, &format!("key:{index}"), None);
    }
    OTHERS.set(4 * own_bytes());
    shard.keys.settings.maxmemory = OTHERS.get();
    AVERAGE.set(2 * own_bytes());
    assert_eq!(ask(&mut shard, NOW_MS), b":0\r\n");
    assert!(!shard.evict_in_turn(NOW_MS));
    assert_eq!(shard.keys.stats.evicted, 0);
    // Above the average it evicts down to it, though the process is still over the limit.
    AVERAGE.set(own_bytes() / 2);
    while shard.evict_in_turn(NOW_MS) {}
    let average = AVERAGE.get();
    assert!(own_bytes() <= average && own_bytes() > average - 200 && total_bytes() > shard.keys.settings.maxmemory);
}

#[test]
fn a_shard_with_nothing_to_evict_says_so() {
    let mut shard = shard_with(EvictionPolicy::VolatileTtl);
    put(&mut shard, 0, NOW_MS, "stays", None);
    put(&mut shard, 0, NOW_MS, "goes", Some(NOW_MS + 1000));
    shard.keys.settings.maxmemory = own_bytes() - 1;
    assert_eq!(ask(&mut shard, NOW_MS), b":0\r\n");
    assert_eq!((shard.keys.stats.evicted, EVICTABLE.get() > 0), (1, true));
    shard.keys.settings.maxmemory = 1;
    assert_eq!(ask(&mut shard, NOW_MS), OUT_OF_MEMORY);
    assert_eq!(EVICTABLE.get(), 0, "the average is that of the others");
}

#[test]
fn the_account_of_what_keys_take_ends_at_nothing() {
    let before = own_bytes();
    let mut shard = shard_with(EvictionPolicy::NoEviction);
    let long = "x".repeat(20_000);
    for round in 0..400 {
        for command in [
            format!("SET string {long}"),
            format!("APPEND string {long}"),
            format!("SETRANGE string {} y", 50_000 + 1000 * round),
            format!("RPUSH list {round} {}", "e".repeat(round)),
            format!("LPUSH list {round} {}", "e".repeat(round)),
            format!("LINSERT list AFTER {round} between"),
            format!("LREM list 1 {}", round / 2),
            format!("LSET list 0 {}", "s".repeat(round * 20)),
            format!("LTRIM list 0 {}", 300 - round / 2),
            format!("ZADD sorted {round} m{round} {} n{round}", round % 7),
            format!("ZREMRANGEBYRANK sorted {} {}", round / 3, round / 3 + round % 3),
            format!("SADD set m{round} n{round}"),
            format!("HSET hash f{round} {}", "v".repeat(round)),
            "COPY list list2 REPLACE".to_owned(),
            "COPY sorted sorted2 REPLACE".to_owned(),
            format!("SETBIT bits {} 1", round * 1000),
        ] {
            run(&mut shard, NOW_MS, &command);
        }
    }
    assert!(own_bytes() > before + 500_000);
    run(&mut shard, NOW_MS, "DEL list sorted2");
    shard.keys.flush(0);
    while !shard.keys.reclaim(1000) {}
    drop(shard);
    assert_eq!(own_bytes(), before);
}

#[test]
fn memory_on_its_way_out_costs_no_key() {
    let mut shard = shard_with(EvictionPolicy::AllKeysLru);
    for index in 0..20_000 {
        put(&mut shard, 1, NOW_MS, &format!("flushed:{index}"), None);
    }
    for index in 0..100 {
        put(&mut shard, 0, NOW_MS, &format!("key:{index}"), None);
    }
    squeeze(&mut shard, 15_000);
    assert_eq!(shard.keys.flush(1), 20_000);
    ask_until_enough(&mut shard, NOW_MS);
    assert_eq!((shard.keys.stats.evicted, shard.keys.len(0)), (0, 100));
    assert!(shard.keys.has_remains());
    while !shard.keys.reclaim(1000) {}
    assert_eq!(shard.keys.pending_remains(), 0);
}

#[test]
fn an_expired_key_goes_as_expired() {
    let mut shard = shard_with(EvictionPolicy::VolatileTtl);
    put(&mut shard, 0, NOW_MS, "a", Some(NOW_MS + 10));
    squeeze(&mut shard, 1);
    assert_eq!(ask(&mut shard, NOW_MS + 10), b":0\r\n");
    assert_eq!((shard.keys.stats.expired, shard.keys.stats.evicted), (1, 0));
}

#[test]
fn the_few_that_may_go_are_found_in_a_large_table() {
    let mut shard = shard_with(EvictionPolicy::VolatileRandom);
    for index in 0..3000 {
        let deadline_ms = (index % 100 == 0).then_some(NOW_MS + 1_000_000);
        put(&mut shard, 0, NOW_MS, &format!("{{tag}}{index}"), deadline_ms);
    }
    squeeze(&mut shard, 20);
    ask_until_enough(&mut shard, NOW_MS);
    let database = &shard.keys.databases()[0];
    assert_eq!(database.len() - database.with_deadline(), 2970);
    assert!((1..=20).contains(&database.with_deadline()), "{} are left", database.with_deadline());
}
