//! Values in Redis's format, through `DUMP` and `RESTORE`: nothing is lost, old forms are read, damage is refused.

mod damage;
mod forms;
mod restore;
mod round_trip;

use crc::{CRC_64_REDIS, Crc};
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

use crate::support::{call, shard};

/// The time of all calls, in ms since the epoch.
const NOW_MS: i64 = 1_000_000;

/// Settings under which nearly every collection is large.
fn small_limits() -> Settings {
    Settings {
        hash_max_listpack_entries: 3,
        hash_max_listpack_value: 12,
        set_max_intset_entries: 3,
        set_max_listpack_entries: 3,
        set_max_listpack_value: 12,
        zset_max_listpack_entries: 3,
        zset_max_listpack_value: 12,
        list_max_listpack_size: 3,
        ..Settings::default()
    }
}

/// A type byte and a value with version and checksum behind them.
fn sealed(content: &[u8], version: u16) -> Vec<u8> {
    let mut payload = content.to_vec();
    payload.extend_from_slice(&version.to_le_bytes());
    let checksum = Crc::<u64>::new(&CRC_64_REDIS).checksum(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// What `RESTORE key 0` answers to a type byte and a value, which are given a right end.
fn restore_content(shard: &mut Shard, key: &str, content: &[u8]) -> Vec<u8> {
    run(shard, &[b"RESTORE", key.as_bytes(), b"0", &sealed(content, 12), b"REPLACE"])
}

fn run(shard: &mut Shard, words: &[&[u8]]) -> Vec<u8> {
    call(shard, NOW_MS, Protocol::Resp2, words).0
}

/// The payload that `DUMP` gives.
fn dump(shard: &mut Shard, key: &str) -> Vec<u8> {
    let reply = run(shard, &[b"DUMP", key.as_bytes()]);
    let start = reply.iter().position(|&byte| byte == b'\n').expect("a bulk string") + 1;
    reply[start..reply.len() - 2].to_vec()
}

/// Everything that can be read of a key's value, in an order of its own.
fn content(shard: &mut Shard, key: &str) -> Vec<Vec<u8>> {
    let key = key.as_bytes();
    let kind = run(shard, &[b"TYPE", key]);
    let (words, group): (&[&[u8]], usize) = match &kind[..] {
        b"+string\r\n" => (&[b"GET", key], 0),
        b"+list\r\n" => (&[b"LRANGE", key, b"0", b"-1"], 0),
        b"+zset\r\n" => (&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"], 0),
        b"+set\r\n" => (&[b"SMEMBERS", key], 1),
        b"+hash\r\n" => (&[b"HGETALL", key], 2),
        _ => return vec![kind],
    };
    let mut parts = elements(&run(shard, words));
    if group > 0 {
        let mut groups: Vec<Vec<Vec<u8>>> = parts.chunks(group).map(<[_]>::to_vec).collect();
        groups.sort();
        parts = groups.concat();
    }
    parts.push(kind);
    parts
}

/// The bulk strings of a reply.
fn elements(reply: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = reply;
    let mut found = Vec::new();
    while let Some(end) = rest.iter().position(|&byte| byte == b'\r') {
        let number = std::str::from_utf8(&rest[1..end]).ok().and_then(|text| text.parse::<usize>().ok());
        let after = &rest[end + 2..];
        rest = match (rest[0], number) {
            (b'$', Some(len)) => {
                found.push(after[..len].to_vec());
                &after[len + 2..]
            }
            _ => after,
        };
    }
    found
}

/// An empty shard with these settings.
fn new_shard(settings: Settings) -> Shard {
    shard(settings, 7)
}
