//! The native commands, and the scripts that do the same.
//!
//! In the words of a command `#` stands for a number, chosen at random among the keys.

/// A native command and its script.
pub struct Case {
    /// What is measured.
    pub name: &'static str,
    /// What is there before: a command for each key.
    pub setup: &'static [&'static str],
    /// The native command.
    pub native: &'static str,
    /// The script.
    pub script: &'static str,
    /// Number of keys, keys and arguments of the script.
    pub call: &'static str,
    /// Whether it keeps a state of its own a key, whose size is measured.
    pub keeps_state: bool,
}

const TRANSFER: &str = "\
local amount = tonumber(ARGV[1])
local source = tonumber(redis.call('GET', KEYS[1]) or '0')
if source < amount then return false end
return {redis.call('DECRBY', KEYS[1], amount), redis.call('INCRBY', KEYS[2], amount)}";

const HASH_TRANSFER: &str = "\
local amount = tonumber(ARGV[3])
local source = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
if source < amount then return false end
return {redis.call('HINCRBY', KEYS[1], ARGV[1], -amount), redis.call('HINCRBY', KEYS[1], ARGV[2], amount)}";

const TAKE: &str = "\
local held = tonumber(redis.call('GET', KEYS[1]) or '0')
if held < tonumber(ARGV[1]) then return false end
return redis.call('DECRBY', KEYS[1], ARGV[1])";

const INCREMENT_TO_MAXIMUM: &str = "\
local value = tonumber(redis.call('GET', KEYS[1]) or '0')
if value + tonumber(ARGV[1]) > tonumber(ARGV[2]) then return false end
return redis.call('INCRBY', KEYS[1], ARGV[1])";

const INCREMENT_WITH_DEADLINE: &str = "\
local value = redis.call('INCR', KEYS[1])
if value == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return value";

const SET_IF_GREATER: &str = "\
local value = redis.call('GET', KEYS[1])
if value and tonumber(value) >= tonumber(ARGV[1]) then return false end
return redis.call('SET', KEYS[1], ARGV[1])";

const COMPARE_AND_SET: &str = "\
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
return redis.call('SET', KEYS[1], ARGV[2])";

const COMPARE_AND_DELETE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0";

const VERSIONED_SET: &str = "\
redis.call('HSET', KEYS[1], 'value', ARGV[1])
return redis.call('HINCRBY', KEYS[1], 'version', 1)";

const FIXED_WINDOW: &str = "\
local current = redis.call('INCR', KEYS[1])
if current == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if current > tonumber(ARGV[1]) then return false end
return tonumber(ARGV[1]) - current";

const SLIDING_WINDOW: &str = "\
local now, window, most = tonumber(ARGV[3]), tonumber(ARGV[2]), tonumber(ARGV[1])
local start = math.floor(now / window)
local state = redis.call('HMGET', KEYS[1], 'start', 'before', 'count')
local before, count = tonumber(state[2] or '0'), tonumber(state[3] or '0')
local moved = start - tonumber(state[1] or start)
if moved == 1 then before, count = count, 0 elseif moved > 1 then before, count = 0, 0 end
local weighed = before * (window - now % window) / window + count
if weighed + 1 > most then return false end
redis.call('HSET', KEYS[1], 'start', start, 'before', before, 'count', count + 1)
redis.call('PEXPIRE', KEYS[1], 2 * window)
return math.floor(most - weighed - 1)";

const TOKEN_BUCKET: &str = include_str!("../../tests/support/token_bucket.lua");

const POP_BY_SCORE: &str = "\
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
if #due > 0 then redis.call('ZREM', KEYS[1], unpack(due)) end
return due";

const MOVE_DUE: &str = "\
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
if #due > 0 then
  redis.call('ZREM', KEYS[1], unpack(due))
  redis.call('RPUSH', KEYS[2], unpack(due))
end
return #due";

const VALUE: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// All of them.
pub const CASES: &[Case] = &[
    Case {
        name: "TRANSFER",
        setup: &["SET {pair}a 1000000000000"],
        native: "TRANSFER {pair}a {pair}b 1",
        script: TRANSFER,
        call: "2 {pair}a {pair}b 1",
        keeps_state: false,
    },
    Case {
        name: "HTRANSFER",
        setup: &["HSET h:# from 1000000000000"],
        native: "HTRANSFER h:# from to 1",
        script: HASH_TRANSFER,
        call: "1 h:# from to 1",
        keeps_state: false,
    },
    Case {
        name: "TAKE",
        setup: &["SET t:# 1000000000000"],
        native: "TAKE t:# 1",
        script: TAKE,
        call: "1 t:# 1",
        keeps_state: false,
    },
    Case {
        name: "TAKE, refused",
        setup: &["SET e:# 0"],
        native: "TAKE e:# 1",
        script: TAKE,
        call: "1 e:# 1",
        keeps_state: false,
    },
    Case {
        name: "INCRBY MAX",
        setup: &["SET m:# 1"],
        native: "INCRBY m:# 1 MAX 1000000000000",
        script: INCREMENT_TO_MAXIMUM,
        call: "1 m:# 1 1000000000000",
        keeps_state: false,
    },
    Case {
        name: "INCR EX",
        setup: &[],
        native: "INCR w:# EX 3600",
        script: INCREMENT_WITH_DEADLINE,
        call: "1 w:# 3600",
        keeps_state: true,
    },
    Case {
        name: "SET IFGT",
        setup: &["SET g:# 5"],
        native: "SET g:# 1# IFGT",
        script: SET_IF_GREATER,
        call: "1 g:# 1#",
        keeps_state: false,
    },
    Case {
        name: "SET IFEQ",
        setup: &["SET q:# same"],
        native: "SET q:# same IFEQ same",
        script: COMPARE_AND_SET,
        call: "1 q:# same same",
        keeps_state: false,
    },
    Case {
        name: "DELIFEQ, refused",
        setup: &["SET d:# owner"],
        native: "DELIFEQ d:# stranger",
        script: COMPARE_AND_DELETE,
        call: "1 d:# stranger",
        keeps_state: false,
    },
    Case { name: "SETV", setup: &[], native: "SETV v:# V", script: VERSIONED_SET, call: "1 v:# V", keeps_state: true },
    Case {
        name: "LIMIT",
        setup: &[],
        native: "LIMIT lf:# 1000000 3600000",
        script: FIXED_WINDOW,
        call: "1 lf:# 1000000 3600000",
        keeps_state: true,
    },
    Case {
        name: "LIMIT SLIDING",
        setup: &[],
        native: "LIMIT ls:# 1000000 3600000 SLIDING",
        script: SLIDING_WINDOW,
        call: "1 ls:# 1000000 3600000 1700000000000",
        keeps_state: true,
    },
    Case {
        name: "LIMIT TOKENS",
        setup: &[],
        native: "LIMIT lt:# 1000000 3600000 TOKENS",
        script: TOKEN_BUCKET,
        call: "1 lt:# 1000000 277 1700000000000 3600000",
        keeps_state: true,
    },
    Case {
        name: "ZPOPBYSCORE, none due",
        setup: &["ZADD z:# 100 a 200 b 300 c"],
        native: "ZPOPBYSCORE z:# 50 COUNT 10",
        script: POP_BY_SCORE,
        call: "1 z:# 50 10",
        keeps_state: false,
    },
    Case {
        name: "ZMOVEDUE, none due",
        setup: &["ZADD {due}delayed 100 a 200 b 300 c"],
        native: "ZMOVEDUE {due}delayed {due}ready 50 COUNT 10",
        script: MOVE_DUE,
        call: "2 {due}delayed {due}ready 50 10",
        keeps_state: false,
    },
];

/// The words of a command, with `number` in the place of `#`.
pub fn words(command: &str, number: &str) -> Vec<String> {
    let fill = |word: &str| if word == "V" { VALUE.to_owned() } else { word.replace('#', number) };
    command.split(' ').map(fill).collect()
}
