//! The same random commands on this server and on `redis-server`: every reply must be the same.
//!
//! `RUVIO_DIFFERENTIAL_COMMANDS` sets how many commands run, `RUVIO_DIFFERENTIAL_SEED` repeats a run that failed.

use crate::support::{Connection, Server, Value, encode_command};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

const BATCH: usize = 40;
const WRONG_WORDS: [&str; 12] = [
    "",
    "x",
    "-1",
    "0",
    "1.5",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "nan",
    "inf",
    "NX",
    "(",
];

/// What of a reply can be compared.
#[derive(Clone, Copy, Debug)]
pub enum Compare {
    Exactly,
    /// The elements come in an order of the server's choice.
    Unordered,
    /// As `Unordered`, of the pairs of a flat array.
    UnorderedPairs,
    /// A time to live shrinks between the two servers' answers: only whether there is one.
    Sign,
    /// Redis 7.2 and later show scores in the fewest digits, 7.0 in 17: by value.
    Scores,
}

/// Commands with options that Redis 7.0 does not have: a word too many is another error there.
const TAKE_MORE_WORDS: [&str; 12] = [
    "INCR",
    "DECR",
    "INCRBY",
    "DECRBY",
    "INCRBYFLOAT",
    "HINCRBY",
    "HINCRBYFLOAT",
    "ZINCRBY",
    "ZRANK",
    "ZREVRANK",
    "BITCOUNT",
    "BITPOS",
];

/// Templates of commands: `Generator::word` says what each word in short capitals stands for.
const TEMPLATES: [&str; 295] = [
    "SET K V",
    "SET K V",
    "SET K I",
    "SET K I",
    "SET K V NX",
    "SET K V XX",
    "SET K V GET",
    "SET K V NX GET",
    "SET K V EXAT FUTURE",
    "SET K V PXAT FUTUREMS KEEPTTL",
    "SET K V KEEPTTL",
    "SET K V PXAT FUTUREMS",
    "GETEX K EXAT 1",
    "SET K V EX 0",
    "SET K V bogus",
    "GET K",
    "GET K",
    "GETSET K V",
    "GETDEL K",
    "GETEX K",
    "GETEX K PERSIST",
    "GETEX K PXAT FUTUREMS",
    "GETEX K EXAT FUTURE PERSIST",
    "SETNX K V",
    "SETEX K 0 V",
    "PSETEX K W V",
    "APPEND K V",
    "STRLEN K",
    "GETRANGE K N N",
    "SUBSTR K N N",
    "SETRANGE K P V",
    "SETRANGE K N V",
    "INCR K",
    "DECR K",
    "INCRBY K I",
    "DECRBY K I",
    "INCRBY K BIG",
    "DECRBY K BIG",
    "INCRBYFLOAT K F",
    "INCRBYFLOAT K W",
    "MGET K K K",
    "MSET K V K V",
    "MSET K V K",
    "MSETNX K V K V",
    "HSET K M V",
    "HSET K M V M I",
    "HSET K M I M F",
    "HSET K M",
    "HSETNX K M V",
    "HGET K M",
    "HMGET K M M",
    "HMSET K M V",
    "HDEL K M",
    "HDEL K M M M",
    "HLEN K",
    "HEXISTS K M",
    "HSTRLEN K M",
    "HGETALL K",
    "HKEYS K",
    "HVALS K",
    "HINCRBY K M I",
    "HINCRBY K M BIG",
    "HINCRBY K M W",
    "HINCRBYFLOAT K M F",
    "HINCRBYFLOAT K M W",
    "HRANDFIELD K 0",
    "LPUSH K M",
    "LPUSH K M M M",
    "RPUSH K M",
    "RPUSH K M M M",
    "RPUSH K V I",
    "LPUSHX K M",
    "RPUSHX K M M",
    "LPOP K",
    "RPOP K",
    "LPOP K P",
    "RPOP K P",
    "LPOP K N",
    "LLEN K",
    "LRANGE K N N",
    "LRANGE K 0 -1",
    "LRANGE K W N",
    "LINDEX K N",
    "LSET K N M",
    "LSET K W M",
    "LINSERT K BEFORE M M",
    "LINSERT K AFTER M M",
    "LINSERT K W M M",
    "LTRIM K N N",
    "LTRIM K 0 20",
    "LREM K N M",
    "LREM K 0 M",
    "LPOS K M",
    "LPOS K M RANK N",
    "LPOS K M COUNT P",
    "LPOS K M COUNT N MAXLEN P",
    "LPOS K M RANK N COUNT P MAXLEN P",
    "LMOVE K K LEFT RIGHT",
    "LMOVE K K RIGHT LEFT",
    "LMOVE K K LEFT LEFT",
    "RPOPLPUSH K K",
    "LMPOP 2 K K LEFT COUNT P",
    "LMPOP 1 K RIGHT",
    "LMPOP W K LEFT",
    "SADD K M",
    "SADD K M M M",
    "SADD K I I I",
    "SADD K I",
    "SREM K M",
    "SREM K M I M",
    "SCARD K",
    "SISMEMBER K M",
    "SMISMEMBER K M I M",
    "SMEMBERS K",
    "SMOVE K K M",
    "SINTER K K",
    "SUNION K K K",
    "SDIFF K K",
    "SDIFF K K K",
    "SINTERSTORE K K K",
    "SUNIONSTORE K K K",
    "SDIFFSTORE K K K",
    "SINTERCARD 2 K K",
    "SINTERCARD 2 K K LIMIT P",
    "SINTERCARD W K",
    "SRANDMEMBER K 0",
    "ZADD K F M",
    "ZADD K F M F M F M",
    "ZADD K I M",
    "ZADD K NX F M",
    "ZADD K XX F M F M",
    "ZADD K GT CH F M",
    "ZADD K LT CH F M F M",
    "ZADD K CH F M",
    "ZADD K INCR F M",
    "ZADD K XX INCR F M",
    "ZADD K NX GT F M",
    "ZADD K W M",
    "ZADD K GT INCR F M",
    "ZINCRBY K F M",
    "ZINCRBY K W M",
    "ZREM K M M",
    "ZREM K M",
    "ZCARD K",
    "ZSCORE K M",
    "ZMSCORE K M M",
    "ZRANK K M",
    "ZREVRANK K M",
    "ZCOUNT K B B",
    "ZLEXCOUNT LEX L L",
    "ZRANGE K N N",
    "ZRANGE K N N WITHSCORES",
    "ZRANGE K 0 -1 REV",
    "ZRANGE K B B BYSCORE WITHSCORES",
    "ZRANGE K B B BYSCORE REV LIMIT N P",
    "ZRANGE LEX L L BYLEX",
    "ZRANGE LEX L L BYLEX REV LIMIT P N",
    "ZRANGEBYSCORE K B B",
    "ZRANGEBYSCORE K B B WITHSCORES LIMIT P P",
    "ZREVRANGEBYSCORE K B B",
    "ZREVRANGE K N N WITHSCORES",
    "ZRANGEBYLEX LEX L L",
    "ZREVRANGEBYLEX LEX L L LIMIT P P",
    "ZRANGESTORE K K N N",
    "ZRANGESTORE K K B B BYSCORE",
    "ZREMRANGEBYRANK K N N",
    "ZREMRANGEBYSCORE K B B",
    "ZREMRANGEBYLEX LEX L L",
    "ZPOPMIN K",
    "ZPOPMAX K",
    "ZPOPMIN K P",
    "ZPOPMAX K P",
    "ZMPOP 2 K K MIN COUNT P",
    "ZMPOP 1 K MAX",
    "ZUNION 2 K K WITHSCORES",
    "ZINTER 2 K K WITHSCORES",
    "ZUNION 2 K K WEIGHTS F F AGGREGATE MAX WITHSCORES",
    "ZINTER 2 K K AGGREGATE MIN",
    "ZDIFF 2 K K WITHSCORES",
    "ZUNIONSTORE K 2 K K",
    "ZINTERSTORE K 2 K K WEIGHTS F F",
    "ZDIFFSTORE K 2 K K",
    "ZINTERCARD 2 K K LIMIT P",
    "ZUNION W K",
    "ZRANDMEMBER K 0",
    "SETBIT K O T",
    "SETBIT K O T",
    "SETBIT K W T",
    "SETBIT K O W",
    "GETBIT K O",
    "BITCOUNT K",
    "BITCOUNT K N N",
    "BITCOUNT K N N BIT",
    "BITPOS K T",
    "BITPOS K T N",
    "BITPOS K T N N",
    "BITPOS K T N N BIT",
    "BITPOS K W",
    "BITOP AND K K K",
    "BITOP OR K K K",
    "BITOP XOR K K K",
    "BITOP NOT K K",
    "BITOP NOT K K K",
    "BITOP W K K",
    "BITFIELD K GET BF O",
    "BITFIELD K SET BF O BIG GET BF O",
    "BITFIELD K INCRBY BF O BIG OVERFLOW SAT INCRBY BF O BIG OVERFLOW FAIL INCRBY BF O BIG",
    "BITFIELD K OVERFLOW SAT SET BF O I INCRBY BF O I",
    "BITFIELD K OVERFLOW FAIL SET BF O BIG",
    "BITFIELD K SET BF W I",
    "BITFIELD_RO K GET BF O GET BF O",
    "BITFIELD_RO K SET BF O I",
    "PFADD HLL M M M",
    "PFADD HLL BIG BIG BIG BIG BIG BIG BIG BIG BIG BIG BIG BIG",
    "PFADD HLL F",
    "PFADD K M M",
    "PFCOUNT HLL",
    "PFCOUNT K",
    "PFCOUNT HLL HLL K",
    "PFMERGE HLL HLL HLL",
    "PFDEBUG ENCODING HLL",
    "PFDEBUG DECODE HLL",
    "GET HLL",
    "GEOADD K LON LAT M",
    "GEOADD K CH LON LAT M LON LAT M LON LAT M",
    "GEOADD K NX LON LAT M LON LAT M",
    "GEOADD K XX CH LON LAT M",
    "GEOADD K W LAT M",
    "GEOPOS K M M M",
    "GEOHASH K M M M",
    "GEODIST K M M KM",
    "GEODIST K M M U",
    "GEOSEARCH K FROMLONLAT LON LAT BYRADIUS R U",
    "GEOSEARCH K FROMLONLAT LON LAT BYRADIUS R U ASC WITHDIST WITHCOORD WITHHASH",
    "GEOSEARCH K FROMLONLAT LON LAT BYBOX R R U DESC COUNT P",
    "GEOSEARCH K FROMLONLAT LON LAT BYBOX R R U COUNT P ANY",
    "GEOSEARCH K FROMMEMBER M BYRADIUS R U WITHDIST",
    "GEOSEARCH K FROMMEMBER M BYBOX R W U",
    "GEOSEARCHSTORE K K FROMLONLAT LON LAT BYRADIUS R U",
    "GEOSEARCHSTORE K K FROMMEMBER M BYBOX R R U COUNT P",
    "GEORADIUS K LON LAT R U ASC",
    "GEORADIUS K LON LAT R U WITHCOORD COUNT P",
    "GEORADIUS K LON LAT R U STORE K",
    "GEORADIUSBYMEMBER K M R U DESC",
    "GEORADIUSBYMEMBER K M R U STORE K",
    "GEORADIUSBYMEMBER_RO K M R U COUNT P",
    "GEORADIUS_RO K LON LAT R U W",
    "DEL K",
    "DEL K K",
    "UNLINK K",
    "EXISTS K K",
    "TYPE K",
    "TYPE K",
    "TOUCH K K",
    "RENAME K K",
    "RENAMENX K K",
    "COPY K K",
    "COPY K K REPLACE",
    "COPY K K DB D REPLACE",
    "MOVE K D",
    "EXPIREAT K FUTURE",
    "PEXPIREAT K FUTUREMS",
    "EXPIREAT K FUTURE NX",
    "EXPIREAT K FUTURE XX",
    "PEXPIREAT K FUTUREMS GT",
    "PEXPIREAT K FUTUREMS LT",
    "EXPIREAT K FUTURE NX GT",
    "EXPIRE K 0",
    "EXPIRE K W",
    "EXPIRETIME K",
    "PEXPIRETIME K",
    "TTL K",
    "PTTL K",
    "PERSIST K",
    "KEYS *a*",
    "ZADD LEX 0 M 0 M",
    "ZADD LEX 0 M 0 M 0 M",
    "DBSIZE",
    "SET WK I",
    "SET WK F",
    "SORT K",
    "SORT K DESC LIMIT N P",
    "SORT K ALPHA STORE K",
    "SORT K STORE K DESC LIMIT P N",
    "SORT K BY WP",
    "SORT K BY WP DESC GET # GET WP",
    "SORT K BY WP LIMIT P P STORE K",
    "SORT_RO K LIMIT N N",
    "SORT_RO K W",
    "LCS K K",
    "LCS K K LEN",
    "LCS K K IDX",
    "LCS K K IDX MINMATCHLEN P WITHMATCHLEN",
    "LCS K K W",
    "SELECT D",
];

/// Makes random commands.
pub struct Generator {
    random: StdRng,
    /// The keys of the last command had this hash tag.
    pub tag: u32,
}

impl Generator {
    /// The same commands for the same seed.
    pub fn new(seed: u64) -> Generator {
        Generator { random: StdRng::seed_from_u64(seed), tag: 0 }
    }

    fn pick<'c>(&mut self, choices: &[&'c str]) -> &'c str {
        choices.choose(&mut self.random).expect("a choice")
    }

    /// What a word of a template stands for: a key, a member, a value, an integer and so on.
    fn word(&mut self, placeholder: &str) -> Vec<u8> {
        let text = match placeholder {
            "K" => {
                let name = self.pick(&["a", "b", "c", "d", "e", "f"]);
                format!("{{{}}}{name}", self.tag)
            }
            // Weights for SORT, and the pattern that finds them.
            "WK" => format!("{{{}}}w_m{}", self.tag, self.random.random_range(0..12)),
            "WP" => format!("{{{}}}w_*", self.tag),
            // Ranges by name are defined where all scores are equal: no other command uses this key.
            "LEX" => format!("{{{}}}lex", self.tag),
            "M" if self.random.random_ratio(1, 40) => "m".repeat(self.random.random_range(60..200)),
            "M" => format!("m{}", self.random.random_range(0..12)),
            "V" => return self.value(),
            "HLL" => format!("{{{}}}hll{}", self.tag, self.random.random_range(0..2)),
            "T" => self.random.random_range(0..2).to_string(),
            "O" if self.random.random_ratio(1, 4) => format!("#{}", self.random.random_range(0..8)),
            "O" => self.random.random_range(0..200).to_string(),
            "BF" => format!("{}{}", self.pick(&["i", "u"]), self.random.random_range(1..=64)),
            // Hundredths of a degree: far enough from each other that no two distances are the same.
            "LON" => format!("{}", f64::from(self.random.random_range(-18_000_i32..=18_000)) / 100.0),
            "LAT" => format!("{}", f64::from(self.random.random_range(-8_500_i32..=8_500)) / 100.0),
            "R" => {
                let digits = self.random.random_range(1..8);
                self.random.random_range(0..10_u64.pow(digits)).to_string()
            }
            "U" => self.pick(&["m", "km", "KM", "ft", "mi", "ells"]).to_owned(),
            "I" => self.random.random_range(-20_i64..100).to_string(),
            "BIG" => (self.random.random::<i64>() >> self.random.random_range(0..4)).to_string(),
            // Quarters are exact in binary, and few digits in any way of printing them.
            "F" => format!("{}", f64::from(self.random.random_range(-40_i32..80)) / 4.0),
            "N" => self.random.random_range(-8_i32..12).to_string(),
            "P" => self.random.random_range(0_i32..6).to_string(),
            "B" => {
                let score = f64::from(self.random.random_range(-20_i32..40)) / 2.0;
                match self.random.random_range(0..8) {
                    0 => "-inf".to_owned(),
                    1 => "+inf".to_owned(),
                    2 => format!("({score}"),
                    3 => self.pick(&WRONG_WORDS).to_owned(),
                    _ => score.to_string(),
                }
            }
            "L" => match self.random.random_range(0..8) {
                0 | 1 => "-".to_owned(),
                2 | 3 => "+".to_owned(),
                4 => self.pick(&WRONG_WORDS).to_owned(),
                side => format!("{}m{}", if side == 5 { "(" } else { "[" }, self.random.random_range(0..12)),
            },
            "W" => self.pick(&WRONG_WORDS).to_owned(),
            "D" => self.random.random_range(0..3).to_string(),
            "FUTURE" => self.random.random_range(9_000_000_000_u64..9_000_000_010).to_string(),
            "FUTUREMS" => self.random.random_range(9_000_000_000_000_u64..9_000_000_010_000).to_string(),
            fixed => fixed.to_owned(),
        };
        text.into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let length = match self.random.random_range(0..20) {
            0 => self.random.random_range(100..2_000),
            1..4 => 0,
            _ => self.random.random_range(1..12),
        };
        (0..length).map(|_| if self.random.random_ratio(1, 8) { self.random.random() } else { b'v' }).collect()
    }

    /// A command, and what of its reply can be compared.
    pub fn command(&mut self) -> (Vec<Vec<u8>>, Compare) {
        if self.random.random_ratio(1, 2_000) {
            return (vec![b"FLUSHDB".to_vec()], Compare::Exactly);
        }
        // Few tags, so that keys meet each other; several, so that both shards own some.
        self.tag = self.random.random_range(0..6);
        let template = TEMPLATES.choose(&mut self.random).expect("a template");
        let mut words: Vec<Vec<u8>> = template.split(' ').map(|placeholder| self.word(placeholder)).collect();
        let name = template.split(' ').next().unwrap_or_default();
        if self.random.random_ratio(1, 60) && !TAKE_MORE_WORDS.contains(&name) {
            // Where the word would be a key it must be of the same slot.
            let key_follows = template.ends_with(" K") || template.ends_with(" HLL") || name.starts_with("MSET");
            words.push(if key_follows { self.word("K") } else { self.pick(&WRONG_WORDS).as_bytes().to_vec() });
        }
        let compare = match name {
            "SMEMBERS" | "SINTER" | "SUNION" | "SDIFF" | "HKEYS" | "HVALS" | "KEYS" => Compare::Unordered,
            "HGETALL" => Compare::UnorderedPairs,
            "TTL" | "PTTL" => Compare::Sign,
            name if name.starts_with('Z') => Compare::Scores,
            _ => Compare::Exactly,
        };
        (words, compare)
    }
}

fn comparable(value: Value, compare: Compare) -> Value {
    match (compare, value) {
        (Compare::Unordered, value) => value.sorted(),
        (Compare::UnorderedPairs, value) => value.sorted_pairs(),
        (Compare::Sign, Value::Integer(integer)) => Value::Integer(integer.min(1)),
        (Compare::Scores, value) => by_value(value),
        (_, value) => value,
    }
}

/// The reply with every text that is a number in one form.
fn by_value(value: Value) -> Value {
    let one_form = |text: &str| text.parse::<f64>().ok().map(|number| format!("{number:e}"));
    match value {
        Value::Array(elements) => Value::Array(elements.into_iter().map(by_value).collect()),
        Value::Double(text) => Value::Double(one_form(&text).unwrap_or(text)),
        Value::Bulk(bytes) => match std::str::from_utf8(&bytes).ok().and_then(one_form) {
            Some(text) => Value::Bulk(text.into_bytes()),
            None => Value::Bulk(bytes),
        },
        value => value,
    }
}

/// Everything a database holds, key by key.
fn contents(connection: &mut Connection) -> Vec<(String, String)> {
    let keys = connection.line("KEYS *").sorted();
    let mut contents = Vec::new();
    for key in keys.elements() {
        let key = key.text().to_owned();
        let value = match connection.call(&["TYPE", &key]).text() {
            "string" => connection.call(&["GET", &key]),
            "list" => connection.call(&["LRANGE", &key, "0", "-1"]),
            "set" => connection.call(&["SMEMBERS", &key]).sorted(),
            "hash" => connection.call(&["HGETALL", &key]).sorted_pairs(),
            _ => by_value(connection.call(&["ZRANGE", &key, "0", "-1", "WITHSCORES"])),
        };
        let deadline = connection.call(&["PEXPIRETIME", &key]);
        contents.push((key, format!("{value:?} until {deadline:?}")));
    }
    contents
}

/// The number that a variable holds.
pub fn number_from_environment(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

#[test]
fn random_commands_are_answered_as_redis_answers_them() {
    let Some(redis) = Server::start_redis(&[]) else {
        println!("skipped: no redis-server on PATH to compare with");
        return;
    };
    let server = Server::start();
    let commands = number_from_environment("RUVIO_DIFFERENTIAL_COMMANDS").unwrap_or(20_000) as usize;
    let seed = number_from_environment("RUVIO_DIFFERENTIAL_SEED").unwrap_or_else(rand::random);
    let mut generator = Generator::new(seed);
    let mut ours = server.connect();
    let mut theirs = redis.connect();
    let mut differences = Vec::new();
    for start in (0..commands).step_by(BATCH) {
        if start / BATCH == commands / BATCH / 2 {
            ours.line("HELLO 3");
            theirs.line("HELLO 3");
        }
        let batch: Vec<_> = (0..BATCH).map(|_| generator.command()).collect();
        let frames: Vec<u8> = batch.iter().flat_map(|(words, _)| encode_command(words)).collect();
        ours.send(&frames);
        theirs.send(&frames);
        for (position, (words, compare)) in batch.iter().enumerate() {
            let our_reply = comparable(ours.read_value(), *compare);
            let their_reply = comparable(theirs.read_value(), *compare);
            if our_reply != their_reply {
                let shown: Vec<String> = words.iter().map(|word| format!("\"{}\"", word.escape_ascii())).collect();
                let number = start + position;
                differences.push(format!(
                    "{number}: {}\n  ours:   {our_reply:?}\n  Redis's: {their_reply:?}",
                    shown.join(" ")
                ));
            }
        }
        // What follows a difference differs in its turn: the first few say what is wrong.
        assert!(differences.is_empty(), "seed {seed}:\n{}", differences.join("\n"));
    }
    for database in 0..3 {
        let select = format!("SELECT {database}");
        ours.line(&select);
        theirs.line(&select);
        assert_eq!(contents(&mut ours), contents(&mut theirs), "seed {seed}, database {database}");
    }
}
