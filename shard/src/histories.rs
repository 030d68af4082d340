//! Random histories of a shard, and what it holds then, for tests of images and logs.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::args::OwnedArgs;
use crate::commands;
use crate::entry::Kind;
use crate::eviction::MemoryMeter;
use crate::reply::Protocol;
use crate::settings::Settings;
use crate::shard::{Call, Shard};

/// When histories begin, in ms since the epoch.
pub const NOW_MS: i64 = 1_000_000;

/// A shard whose collections are converted early.
pub fn shard() -> Shard {
    let meter = MemoryMeter::NONE;
    let settings = Settings {
        hash_max_listpack_entries: 3,
        set_max_listpack_entries: 3,
        zset_max_listpack_entries: 3,
        set_max_intset_entries: 3,
        list_max_listpack_size: 4,
        ..Settings::default()
    };
    Shard::new(4, settings, meter, 1)
}

/// Executes a command at a time. What a log is to hold of it, if it has changed something.
pub fn run(shard: &mut Shard, database: usize, now_ms: i64, line: &str) -> Option<OwnedArgs> {
    let words: OwnedArgs = line.split(' ').collect();
    let command = commands::named(words.as_args().at(0)).expect("a command");
    let call = Call { database, slot: None, now_ms, protocol: Protocol::Resp2, may_wait: false };
    let outcome = shard.execute(command, words.as_args(), call, &mut Vec::new());
    (outcome.changes > 0).then(|| outcome.logged.unwrap_or(words))
}

/// Every key with its database, deadline, version and what the command that reads its kind replies, line by line.
pub type Content = BTreeMap<(usize, Vec<u8>), (Option<i64>, Option<i64>, Vec<String>)>;

/// Everything that a shard holds at a time.
pub fn content(shard: &mut Shard, now_ms: i64) -> Content {
    let mut found = Vec::new();
    for (number, database) in shard.keys.databases().iter().enumerate() {
        let mut from = 0;
        while let Some(slot) = database.next_slot(from, false) {
            let table = database.table(slot).expect("a slot with keys");
            table.scan(0, usize::MAX, false, |entry| {
                // One that has expired may still be there, or not.
                if entry.deadline_ms().is_none_or(|deadline_ms| deadline_ms > now_ms) {
                    found.push((number, entry.key().to_vec(), entry.kind(), entry.deadline_ms(), entry.version()));
                }
            });
            from = usize::from(slot) + 1;
        }
    }
    let mut content = Content::new();
    for (database, key, kind, deadline_ms, version) in found {
        let name = String::from_utf8(key.clone()).expect("a key of a test");
        let reply = match kind {
            Kind::String => reply(shard, (database, now_ms), &format!("GET {name}")),
            Kind::List => reply(shard, (database, now_ms), &format!("LRANGE {name} 0 -1")),
            Kind::Set => reply(shard, (database, now_ms), &format!("SMEMBERS {name}")),
            Kind::Hash => reply(shard, (database, now_ms), &format!("HGETALL {name}")),
            Kind::SortedSet => reply(shard, (database, now_ms), &format!("ZRANGE {name} 0 -1 WITHSCORES")),
            Kind::Limit => vec![],
        };
        content.insert((database, key), (deadline_ms, version, reply));
    }
    content
}

fn reply(shard: &mut Shard, (database, now_ms): (usize, i64), line: &str) -> Vec<String> {
    let words: OwnedArgs = line.split(' ').collect();
    let command = commands::named(words.as_args().at(0)).expect("a command");
    let call = Call { database, slot: None, now_ms, protocol: Protocol::Resp2, may_wait: false };
    let mut out = Vec::new();
    shard.execute(command, words.as_args(), call, &mut out);
    let mut lines: Vec<String> = String::from_utf8_lossy(&out).lines().map(str::to_owned).collect();
    if line.starts_with("SMEMBERS") || line.starts_with("HGETALL") {
        lines.sort();
    }
    lines
}

/// A database and a command.
pub fn line() -> impl Strategy<Value = (usize, String)> {
    let key = 0..12_u8;
    let line = (key, 0..44_u8, 0..40_u32).prop_map(|(key, what, value)| match what {
        0 => format!("SET s{key} value:{value}"),
        1 => format!("APPEND s{key} {value}"),
        2 => format!("INCR n{key}"),
        3 => format!("HSET h{key} f{value} v{value}"),
        4 => format!("HDEL h{key} f{value}"),
        5 => format!("SADD t{key} m{value}"),
        6 => format!("SADD t{key} {value}"),
        7 => format!("SREM t{key} m{value}"),
        8 => format!("ZADD z{key} {value} m{value}"),
        9 => format!("ZPOPMIN z{key}"),
        10 => format!("RPUSH l{key} e{value}"),
        11 => format!("LPOP l{key}"),
        12 => format!("DEL s{key} h{key} t{key}"),
        13 => format!("EXPIRE s{key} {}", value + 1),
        14 => format!("PERSIST s{key}"),
        15 => format!("RENAME s{key} s{value}"),
        16 => format!("COPY h{key} h{value} REPLACE"),
        17 => format!("SETV s{key} {value} EX 100"),
        18 => format!("LIMIT l:{key} 5 10"),
        19 => format!("HEXPIRE h{key} 50 FIELDS 1 f{value}"),
        20 => format!("MOVE s{key} 2"),
        21 => format!("SPOP t{key}"),
        22 => format!("EXPIRE h{key} -1"),
        23 => format!("SINTERSTORE t{key} t{value} t1"),
        24 => format!("SETRANGE s{key} 100 x"),
        25 => format!("LPUSH l{key} {value} e e{value}"),
        26 => format!("RPOP l{key} {}", value % 5 + 1),
        27 => format!("LSET l{key} {} set:{value}", value as i64 % 9 - 3),
        28 => format!("LINSERT l{key} BEFORE e in:{value}"),
        29 => format!("LREM l{key} {} e", value as i64 % 5 - 2),
        30 => format!("LTRIM l{key} {} {}", value % 3, 20 - value as i64 % 5),
        31 => format!("LMOVE l{key} l{value} RIGHT LEFT"),
        32 => format!("RENAME l{key} l{value}"),
        33 => format!("RENAME t{key} t{value}"),
        34 => format!("RENAME z{key} z{value}"),
        35 => format!("MOVE h{key} 2"),
        36 => format!("DEL l{key} z{key} t{value}"),
        37 => format!("ZINCRBY z{key} {value} m{}", value / 3),
        38 => format!("ZREMRANGEBYRANK z{key} {} {}", value % 4, value % 4 + 2),
        39 => format!("ZADD z{key} 1 a{value} 2 b{value} 3 c{value} 4 d{value}"),
        40 => format!("HSET h{key} a{value} 1 b{value} 2 c{value} 3 d{value} 4"),
        41 => format!("SADD t{key} a{value} b{value} c{value} d{value}"),
        42 => format!("RPUSH l{key} {value} r{value} e {value}"),
        _ => format!("GETDEL s{key}"),
    });
    (0..3_usize, line)
}
