//! Copies of collections that have outgrown their packed form.

use crate::support::databases::run;
use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

const NOW_MS: i64 = 1_700_000_000_000;

/// What each command that reads a whole collection replies for `key`.
fn content(shard: &mut Shard, read: &str, key: &str) -> Vec<u8> {
    run(shard, NOW_MS, &read.replace("KEY", key))
}

#[test]
fn a_copy_has_the_content_and_shares_nothing() {
    let settings = Settings { list_max_listpack_size: 8, ..Settings::default() };
    for (add, read, encoding, change) in [
        ("HSET KEY field:N value:N", "HGET KEY field:1999", "hashtable", "HSET KEY field:1999 changed"),
        ("RPUSH KEY element:N", "LRANGE KEY 0 -1", "quicklist", "LSET KEY 0 changed"),
        ("SADD KEY member:N", "SISMEMBER KEY member:1999", "hashtable", "SREM KEY member:1999"),
        ("ZADD KEY N member:N", "ZRANGE KEY 0 -1 WITHSCORES", "skiplist", "ZADD KEY 7 member:1999"),
    ] {
        let mut shard = Shard::new(1, settings.clone(), MemoryMeter::NONE, 1);
        for index in 0..2000 {
            run(&mut shard, NOW_MS, &add.replace("KEY", "a").replace('N', &index.to_string()));
        }
        let before = content(&mut shard, read, "a");
        assert_eq!(run(&mut shard, NOW_MS, "COPY a b"), b":1\r\n");
        let word = format!("${}\r\n{encoding}\r\n", encoding.len());
        assert_eq!(run(&mut shard, NOW_MS, "OBJECT ENCODING b"), word.as_bytes());
        assert_eq!(content(&mut shard, read, "b"), before, "{encoding}");
        run(&mut shard, NOW_MS, &change.replace("KEY", "a"));
        assert_ne!(content(&mut shard, read, "a"), before, "{encoding}");
        assert_eq!(content(&mut shard, read, "b"), before, "{encoding}");
        run(&mut shard, NOW_MS, "DEL a");
        while !shard.keys.reclaim(100) {}
        assert_eq!(content(&mut shard, read, "b"), before, "{encoding}");
    }
}
