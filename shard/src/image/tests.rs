//! Promises of images: what is read back is what was there when the image began, whatever happened meanwhile.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Block, Blocks};
use crate::args::OwnedArgs;
use crate::commands;
use crate::entry::Kind;
use crate::eviction::MemoryMeter;
use crate::keys::Keys;
use crate::log::{HEADER_BYTES, Header};
use crate::reply::Protocol;
use crate::settings::Settings;
use crate::shard::{Call, Shard};

const HEADER: Header = Header { shard: 0, shards: 1, generation: 3, position: 77 };
const NOW_MS: i64 = 1_000_000;

fn shard() -> Shard {
    let meter = MemoryMeter { total: || 0, own: || 0, shards: 1 };
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

fn run(shard: &mut Shard, database: usize, line: &str) {
    let words: OwnedArgs = line.split(' ').collect();
    let command = commands::named(words.as_args().at(0)).expect("a command");
    let call = Call { database, slot: None, now_ms: NOW_MS, protocol: Protocol::Resp2, may_wait: false };
    shard.execute(command, words.as_args(), call, &mut Vec::new());
}

/// Every key with its database, deadline, version and what the command that reads its kind replies, line by line.
type Content = BTreeMap<(usize, Vec<u8>), (Option<i64>, Option<i64>, Vec<String>)>;

fn content(shard: &mut Shard) -> Content {
    let mut found = Vec::new();
    for (number, database) in shard.keys.databases().iter().enumerate() {
        let mut from = 0;
        while let Some(slot) = database.next_slot(from, false) {
            let table = database.table(slot).expect("a slot with keys");
            table.scan(0, usize::MAX, false, |entry| {
                found.push((number, entry.key().to_vec(), entry.kind(), entry.deadline_ms(), entry.version()));
            });
            from = usize::from(slot) + 1;
        }
    }
    let mut content = Content::new();
    for (database, key, kind, deadline_ms, version) in found {
        let name = String::from_utf8(key.clone()).expect("a key of a test");
        let reply = match kind {
            Kind::String => reply(shard, database, &format!("GET {name}")),
            Kind::List => reply(shard, database, &format!("LRANGE {name} 0 -1")),
            Kind::Set => reply(shard, database, &format!("SMEMBERS {name}")),
            Kind::Hash => reply(shard, database, &format!("HGETALL {name}")),
            Kind::SortedSet => reply(shard, database, &format!("ZRANGE {name} 0 -1 WITHSCORES")),
            Kind::Limit => vec![],
        };
        content.insert((database, key), (deadline_ms, version, reply));
    }
    content
}

fn reply(shard: &mut Shard, database: usize, line: &str) -> Vec<String> {
    let words: OwnedArgs = line.split(' ').collect();
    let command = commands::named(words.as_args().at(0)).expect("a command");
    let call = Call { database, slot: None, now_ms: NOW_MS, protocol: Protocol::Resp2, may_wait: false };
    let mut out = Vec::new();
    shard.execute(command, words.as_args(), call, &mut out);
    let mut lines: Vec<String> = String::from_utf8_lossy(&out).lines().map(str::to_owned).collect();
    if line.starts_with("SMEMBERS") || line.starts_with("HGETALL") {
        lines.sort();
    }
    lines
}

fn read(bytes: &[u8], keys: &mut Keys) -> Result<(), String> {
    let header = bytes.first_chunk::<HEADER_BYTES>().ok_or("no header")?;
    let mut blocks = Blocks::open(header)?;
    let mut rest = &bytes[HEADER_BYTES..];
    keys.begin(0, NOW_MS, None);
    loop {
        let head = rest.first_chunk::<{ Blocks::HEAD_BYTES }>().ok_or("no head")?;
        let len = Blocks::HEAD_BYTES + Blocks::body_bytes(head)?;
        let (block, behind) = rest.split_at_checked(len).ok_or("no body")?;
        rest = behind;
        if blocks.add(block, keys)? == Block::End {
            return if rest.is_empty() { Ok(()) } else { Err("something follows".to_owned()) };
        }
    }
}

fn line() -> impl Strategy<Value = (usize, String)> {
    let key = 0..12_u8;
    let line = (key, 0..26_u8, 0..40_u32).prop_map(|(key, what, value)| match what {
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
        _ => format!("GETDEL s{key}"),
    });
    (0..3_usize, line)
}

proptest! {
    #[test]
    fn an_image_is_of_the_moment_it_was_begun(
        before in prop::collection::vec(line(), 0..120),
        during in prop::collection::vec((line(), 0..40_usize), 0..120),
    ) {
        let mut shard = shard();
        before.iter().for_each(|(database, line)| run(&mut shard, *database, line));
        for _ in 0..2 {
            let expected = content(&mut shard);
            prop_assert!(shard.keys.begin_image(&HEADER));
            let mut file = Vec::new();
            let mut done = false;
            for ((database, line), budget) in &during {
                run(&mut shard, *database, line);
                if *budget > 20 && !done {
                    done = shard.keys.advance_image(*budget);
                }
                if let Some(image) = shard.keys.image() {
                    file.extend(image.take().1);
                }
            }
            while !done {
                done = shard.keys.advance_image(1);
            }
            let mut image = shard.keys.end_image().expect("an image");
            file.extend(image.take().1);
            let mut other = self::shard();
            read(&file, &mut other.keys).expect("an image that can be read");
            prop_assert_eq!(content(&mut other), expected);
        }
    }

    #[test]
    fn an_image_that_is_cut_or_changed_is_refused(before in prop::collection::vec(line(), 0..20), flip in 1..=255_u8) {
        let mut shard = shard();
        before.iter().for_each(|(database, line)| run(&mut shard, *database, line));
        shard.keys.begin_image(&HEADER);
        while !shard.keys.advance_image(usize::MAX) {}
        let file = shard.keys.end_image().expect("an image").take().1;
        prop_assert!(read(&file, &mut self::shard().keys).is_ok());
        for at in 0..file.len() {
            prop_assert!(read(&file[..at], &mut self::shard().keys).is_err());
            let mut changed = file.clone();
            changed[at] ^= flip;
            prop_assert!(read(&changed, &mut self::shard().keys).is_err(), "byte {}", at);
        }
    }
}

#[test]
fn a_flush_gives_the_image_up_and_the_next_one_is_whole() {
    let mut shard = shard();
    (0..500).for_each(|number| run(&mut shard, 0, &format!("SET key:{number} v")));
    shard.keys.begin_image(&HEADER);
    assert!(!shard.keys.advance_image(100));
    shard.keys.flush(0);
    (0..300).for_each(|number| run(&mut shard, 0, &format!("SET key:{number} w")));
    while !shard.keys.advance_image(100) {}
    assert!(shard.keys.end_image().expect("an image").is_abandoned());
    let expected = content(&mut shard);
    shard.keys.begin_image(&HEADER);
    run(&mut shard, 0, "SET key:5 x");
    while !shard.keys.advance_image(100) {}
    let file = shard.keys.end_image().expect("an image").take().1;
    let mut other = self::shard();
    read(&file, &mut other.keys).expect("an image that can be read");
    assert_eq!(content(&mut other), expected);
}
