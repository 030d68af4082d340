//! Collections that are saved in parts, and what is done to them meanwhile, as the input has it.

use ruvio_shard::args::OwnedArgs;
use ruvio_shard::commands;
use ruvio_shard::reply::Protocol;
use ruvio_shard::shard::{Call, Shard};

/// The number of elements from which on a collection is saved in parts.
pub const IN_PARTS_FROM: usize = 512;

const NOW_MS: i64 = 1_000_000;

/// The key of the collection, and another one that it is moved to.
const KEYS: [&str; 2] = ["c", "d"];

/// What a collection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    List,
    Set,
    Hash,
    SortedSet,
}

impl Form {
    /// The one that a byte of the input stands for.
    pub fn of(byte: u8) -> Form {
        [Form::List, Form::Set, Form::Hash, Form::SortedSet][usize::from(byte % 4)]
    }

    /// Makes a collection of `elements` elements, some of which are long.
    pub fn fill(self, shard: &mut Shard, elements: usize) {
        let mut words = vec![["RPUSH", "SADD", "HSET", "ZADD"][self as usize].to_owned(), KEYS[0].to_owned()];
        for index in 0..elements {
            let element = format!("e{index}");
            let long = format!("{index}{}", "v".repeat(if index % 101 == 0 { 900 } else { index % 7 }));
            match self {
                Form::List => words.push(if index % 3 == 0 { index.to_string() } else { long }),
                Form::Set => words.push(element),
                Form::Hash => words.extend([element, long]),
                Form::SortedSet => words.extend([(index as i64 * 7 % 50 - 25).to_string(), element]),
            }
        }
        call(shard, &words);
    }

    /// Changes what is there, in a way that two bytes of the input stand for.
    pub fn change(self, shard: &mut Shard, how: u8, which: u8) {
        let own: &[&str] = match self {
            Form::List => &[
                "LPUSH c new{}",
                "RPUSH c {}",
                "LPOP c {}",
                "RPOP c {}",
                "LSET c {} changed",
                "LSET c -{} changed",
                "LREM c 2 {}",
                "LREM c -1 {}",
                "LINSERT c BEFORE {} between",
                "LTRIM c {} -2",
                "LTRIM c 1 -{}",
                "LMOVE c c LEFT RIGHT",
                "LMOVE c d RIGHT LEFT",
            ],
            Form::Set => &[
                "SADD c new{}",
                "SREM c e{}",
                "SREM c new{}",
                "SPOP c",
                "SPOP c {}",
                "SMOVE c d e{}",
                "SADD c {}",
                "SDIFFSTORE c c d",
                "SUNIONSTORE d c",
            ],
            Form::Hash => &[
                "HSET c e{} changed",
                "HDEL c e{}",
                "HSET c new{} v",
                "HDEL c new{}",
                "HINCRBY c n{} 1",
                "HSETNX c e{} v",
                "HEXPIRE c 1000 FIELDS 1 e{}",
                "HPERSIST c FIELDS 1 e{}",
                "HPEXPIREAT c 1 FIELDS 1 e{}",
                "HGETDEL c FIELDS 1 e{}",
            ],
            Form::SortedSet => &[
                "ZADD c {} e{}",
                "ZADD c {} new{}",
                "ZREM c e{}",
                "ZINCRBY c 1.5 e{}",
                "ZPOPMIN c {}",
                "ZPOPMAX c",
                "ZREMRANGEBYRANK c {} {}",
                "ZREMRANGEBYSCORE c {} inf",
                "ZRANGESTORE d c 0 {}",
            ],
        };
        let any = [
            "DEL c",
            "RENAME c d",
            "RENAME d c",
            "COPY c d REPLACE",
            "PEXPIRE c 5000",
            "PERSIST c",
            "SET c {}",
            "DEL d",
        ];
        let line = own.iter().chain(&any).nth(usize::from(how) % (own.len() + any.len())).expect("one of them");
        let line = line.replace("{}", &which.to_string());
        call(shard, &line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    }
}

fn call(shard: &mut Shard, words: &[String]) -> String {
    let words: OwnedArgs = words.iter().map(String::as_bytes).collect();
    let command = commands::named(words.as_args().at(0)).expect("a command of the shard");
    let call = Call { database: 0, slot: None, now_ms: NOW_MS, protocol: Protocol::Resp2, may_wait: false };
    let mut out = Vec::new();
    shard.execute(command, words.as_args(), call, &mut out);
    String::from_utf8(out).expect("text")
}

/// What both keys hold.
pub fn content(shard: &mut Shard) -> Vec<String> {
    let mut content = Vec::new();
    for key in KEYS {
        let mut show = |line: &str| call(shard, &line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for line in ["TYPE", "PEXPIRETIME"] {
            content.push(show(&format!("{line} {key}")));
        }
        for line in ["GET K", "LRANGE K 0 -1", "ZRANGE K 0 -1 WITHSCORES"] {
            content.push(show(&line.replace('K', key)));
        }
        let members = show(&format!("SMEMBERS {key}"));
        let mut members: Vec<&str> = members.lines().collect();
        members.sort_unstable();
        content.push(members.join(" "));
        let names = show(&format!("HKEYS {key}"));
        let mut fields: Vec<String> =
            names.lines().filter(|name| name.starts_with(['e', 'n'])).map(str::to_owned).collect();
        fields.sort_unstable();
        for name in fields {
            let value = show(&format!("HGET {key} {name}"));
            content.push(format!("{name} {value} {}", show(&format!("HPEXPIRETIME {key} FIELDS 1 {name}"))));
        }
    }
    content
}
