//! What of two replies has to be the same: everything, but for what has no order or is a matter of time or chance.

use crate::support::{Connection, Value};

/// What of a reply can be compared. Errors are compared exactly, and the kinds of all replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    Exactly,
    /// The elements come in an order of the server's choice.
    Unordered,
    /// As `Unordered`, of the pairs of a map or of a flat array.
    UnorderedPairs,
    /// As `Unordered`, at every depth.
    UnorderedDeep,
    /// A time to live shrinks between the two servers' answers: only whether there is one.
    Sign,
    /// Redis 7.2 and later show scores in the fewest digits, 7.0 in 17: by value.
    Scores,
    /// As `Scores` and `UnorderedPairs`.
    UnorderedScores,
    /// A cursor, compared exactly, and elements in the order of the server.
    Page,
    /// As `Page`, with pairs.
    PairsPage,
    /// As `PairsPage`, by value.
    ScoresPage,
    /// Chosen by chance, or a matter of time: only the kinds, and how many.
    Shape,
    /// Only whether it is nothing, a value or an error.
    Presence,
    /// How a value is stored: Ruvio says how Redis would store it had it been made as it is, Redis 7.0 what became of it.
    Encoding,
    /// The server's own name, version, number and mode aside.
    Greeting,
}

/// Ways to compare, by the beginning of a template; the first that fits counts. `Exactly` is for all others.
const BY_TEMPLATE: &[(&str, Compare)] = &[
    ("SMEMBERS", Compare::Unordered),
    ("SINTERCARD", Compare::Exactly),
    ("SINTERSTORE", Compare::Exactly),
    ("SINTER", Compare::Unordered),
    ("SUNIONSTORE", Compare::Exactly),
    ("SUNION", Compare::Unordered),
    ("SDIFFSTORE", Compare::Exactly),
    ("SDIFF", Compare::Unordered),
    ("HKEYS", Compare::Unordered),
    ("HVALS", Compare::Unordered),
    ("KEYS", Compare::Unordered),
    ("HGETALL", Compare::UnorderedPairs),
    ("TTL", Compare::Sign),
    ("PTTL", Compare::Sign),
    ("SPOP", Compare::Unordered),
    ("SRANDMEMBER K 1000", Compare::Unordered),
    ("SRANDMEMBER K 0", Compare::Exactly),
    ("SRANDMEMBER", Compare::Shape),
    ("HRANDFIELD K 1000 WITHVALUES", Compare::UnorderedPairs),
    ("HRANDFIELD K 1000", Compare::Unordered),
    ("HRANDFIELD", Compare::Shape),
    ("ZRANDMEMBER K 1000", Compare::UnorderedScores),
    ("ZRANDMEMBER", Compare::Shape),
    ("RANDOMKEY", Compare::Shape),
    ("HSCAN", Compare::PairsPage),
    ("SSCAN", Compare::Page),
    ("ZSCAN", Compare::ScoresPage),
    // The order of a set that is not sorted.
    ("SORT K BY nosort GET # GET", Compare::UnorderedPairs),
    ("SORT K BY nosort", Compare::Unordered),
    ("SORT_RO K BY nosort", Compare::Unordered),
    ("DUMP", Compare::Presence),
    ("FUNCTION DUMP", Compare::Presence),
    ("OBJECT ENCODING", Compare::Encoding),
    ("OBJECT REFCOUNT", Compare::Shape),
    ("OBJECT IDLETIME", Compare::Shape),
    ("MEMORY USAGE", Compare::Shape),
    ("HELLO", Compare::Greeting),
    ("PUBSUB CHANNELS", Compare::Unordered),
    ("PUBSUB SHARDCHANNELS", Compare::Unordered),
    ("CONFIG GET", Compare::UnorderedPairs),
    ("FUNCTION LIST", Compare::UnorderedDeep),
    ("SLOWLOG LEN", Compare::Shape),
    ("TIME", Compare::Shape),
    ("LASTSAVE", Compare::Shape),
    ("BZ", Compare::Scores),
    ("Z", Compare::Scores),
];

/// How to compare the reply of a command made from a template.
pub fn way_for(template: &str) -> Compare {
    let found = BY_TEMPLATE.iter().find(|(start, _)| template.starts_with(start));
    found.map_or(Compare::Exactly, |(_, compare)| *compare)
}

/// Whether two replies are as one in what has to be the same.
pub fn are_same(ours: &Value, theirs: &Value, compare: Compare) -> bool {
    if compare == Compare::Encoding
        && let (Value::Bulk(ours), Value::Bulk(theirs)) = (ours, theirs)
    {
        return is_encoding_for(ours, theirs);
    }
    comparable(ours.clone(), compare) == comparable(theirs.clone(), compare)
}

/// Whether a value that Redis 7.0 stores as `theirs` may be `ours`: Redis 7.2 has `listpack` for small lists and sets too,
/// and what has once been large stays as it is in Redis.
fn is_encoding_for(ours: &[u8], theirs: &[u8]) -> bool {
    let small: &[&[u8]] = match theirs {
        b"hashtable" => &[b"listpack", b"intset"],
        b"skiplist" | b"quicklist" => &[b"listpack"],
        b"raw" => &[b"embstr", b"int"],
        _ => &[],
    };
    ours == theirs || small.contains(&ours)
}

/// What has to be the same of a reply.
fn comparable(value: Value, compare: Compare) -> Value {
    match (compare, value) {
        (_, error @ Value::Error(_)) => error,
        (Compare::Unordered, value) => value.sorted(),
        (Compare::UnorderedPairs, value) => pairs_sorted(value),
        (Compare::UnorderedDeep, value) => deeply_sorted(value),
        (Compare::Sign, Value::Integer(integer)) => Value::Integer(integer.min(1)),
        (Compare::Scores, value) => by_value(value),
        (Compare::UnorderedScores, value) => pairs_sorted_if_any(by_value(value)),
        (Compare::Page, value) => page(value, Value::sorted),
        (Compare::PairsPage, value) => page(value, pairs_sorted),
        (Compare::ScoresPage, value) => page(value, |elements| pairs_sorted(by_value(elements))),
        (Compare::Shape, value) => shape(value),
        (Compare::Presence, value) if value.is_null() => value,
        (Compare::Presence, _) => Value::Bulk(b"a value".to_vec()),
        (Compare::Greeting, value) => greeting(value),
        (_, value) => value,
    }
}

/// With scores or without: members alone have no pairs.
fn pairs_sorted_if_any(value: Value) -> Value {
    let is_score = |value: &Value| match value {
        Value::Bulk(bytes) => std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<f64>().is_ok()),
        _ => false,
    };
    match &value {
        Value::Array(elements)
            if elements.len().is_multiple_of(2) && elements.chunks(2).all(|pair| is_score(&pair[1])) =>
        {
            pairs_sorted(value)
        }
        _ => value.sorted(),
    }
}

fn pairs_sorted(value: Value) -> Value {
    match &value {
        // RESP3 sends some pairs as arrays.
        Value::Array(elements) if elements.iter().all(|element| matches!(element, Value::Array(_))) => value.sorted(),
        _ => value.sorted_pairs(),
    }
}

fn deeply_sorted(value: Value) -> Value {
    let all = |elements: Vec<Value>| elements.into_iter().map(deeply_sorted).collect();
    match value {
        Value::Array(elements) => Value::Array(all(elements)),
        Value::Set(elements) => Value::Set(all(elements)),
        Value::Map(pairs) => {
            Value::Map(pairs.into_iter().map(|(key, value)| (deeply_sorted(key), deeply_sorted(value))).collect())
        }
        value => value,
    }
    .sorted()
}

fn page(value: Value, sorted: impl Fn(Value) -> Value) -> Value {
    match value {
        Value::Array(mut parts) if parts.len() == 2 => {
            let elements = parts.pop().expect("two parts");
            parts.push(sorted(elements));
            Value::Array(parts)
        }
        value => value,
    }
}

fn shape(value: Value) -> Value {
    match value {
        Value::Bulk(_) => Value::Bulk(Vec::new()),
        Value::Integer(_) => Value::Integer(0),
        Value::Double(_) => Value::Double(String::new()),
        Value::Array(elements) => Value::Array(elements.into_iter().map(shape).collect()),
        value => value,
    }
}

/// Without the values of the fields that tell the server and the connection.
fn greeting(value: Value) -> Value {
    let own = |name: &Value| matches!(name.text(), "server" | "version" | "id" | "mode");
    match value {
        Value::Map(pairs) => Value::Map(
            pairs
                .into_iter()
                .map(|(name, value)| if own(&name) { (name, Value::Null) } else { (name, value) })
                .collect(),
        ),
        Value::Array(elements) if elements.len().is_multiple_of(2) => {
            let blank = |pair: &[Value]| [pair[0].clone(), if own(&pair[0]) { Value::Null } else { pair[1].clone() }];
            Value::Array(elements.chunks(2).flat_map(blank).collect())
        }
        value => value,
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
pub fn contents(connection: &mut Connection) -> Vec<(String, String)> {
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

/// What a whole iteration with `SCAN` finds, sorted, each key once.
pub fn scan_everything(connection: &mut Connection, options: &[&str]) -> Vec<Value> {
    let mut found = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let mut words = vec!["SCAN", &cursor];
        words.extend(options);
        let reply = connection.call(&words);
        let [next, keys] = reply.elements() else { panic!("no page: {reply:?}") };
        found.extend(keys.elements().iter().cloned());
        cursor = next.text().to_owned();
        if cursor == "0" {
            found.sort();
            found.dedup();
            return found;
        }
    }
}
