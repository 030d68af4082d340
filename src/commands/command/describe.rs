//! The ten parts that `COMMAND INFO` gives of a command.

use ruvio_shard::command::{Begin, Find, Flags, KeyFlags, KeySpec, Spec};
use ruvio_shard::reply::Reply;

use super::tips::tips;
use crate::registry::Registered;

/// Flags that say something about documentation or about another server's modes, not about a call.
const UNLISTED: Flags = Flags::SENTINEL.and(Flags::DEPRECATED).and(Flags::MOVABLE_KEYS);

/// Where keys are, as clients older than key specifications understand it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key; 0 for none.
    pub first: i64,
    /// The last key; negative: from the end of the words.
    pub last: i64,
    /// Words from one key to the next.
    pub step: i64,
    /// Whether some keys are not in the range, or may not be.
    pub movable: bool,
}

/// The range of a command's keys, found as Redis finds it: the only specification if it is a plain range, else the plain
/// ranges without gaps that come first.
pub fn key_range(spec: &Spec) -> KeyRange {
    let plain = |keys: &KeySpec| match (keys.begin, keys.find) {
        (Begin::Index(index), Find::Range { last, step, .. }) => {
            let first = index as i64;
            let last = i64::from(last);
            Some((first, if last >= 0 { first + last } else { last }, step as i64))
        }
        _ => None,
    };
    let incomplete = |keys: &KeySpec| keys.flags.has(KeyFlags::INCOMPLETE);
    let mut range = KeyRange { movable: spec.flags.has(Flags::MOVABLE_KEYS), ..KeyRange::default() };
    if let [only] = spec.keys
        && let Some((first, last, step)) = plain(only)
    {
        return KeyRange { first, last, step, movable: range.movable || incomplete(only) };
    }
    for keys in spec.keys {
        let next = plain(keys).filter(|&(first, _, step)| step == 1 && (range.last == 0 || range.last == first - 1));
        let Some((first, last, step)) = next else {
            range.movable = true;
            continue;
        };
        range.movable |= incomplete(keys);
        range.first = if range.first == 0 { first } else { range.first.min(first) };
        // A negative end lies behind every other.
        range.last = if last < 0 || range.last < 0 { last.min(range.last) } else { range.last.max(last) };
        range.step = step;
    }
    range
}

/// Writes the parts of `command`, and of its subcommands in turn.
pub fn write(command: &Registered, reply: &mut Reply<'_>) {
    let spec = command.spec;
    let range = key_range(spec);
    reply.array(10);
    reply.bulk(spec.name.as_bytes());
    reply.integer(i64::from(spec.arity));
    let mut flags: Vec<&str> = Flags(spec.flags.0 & !UNLISTED.0).words().collect();
    if range.movable {
        flags.push("movablekeys");
    }
    reply.set(flags.len());
    flags.into_iter().for_each(|flag| reply.simple(flag));
    for position in [range.first, range.last, range.step] {
        reply.integer(position);
    }
    let categories: Vec<&str> = spec.all_categories().words().collect();
    reply.set(categories.len());
    categories.into_iter().for_each(|category| reply.simple(&format!("@{category}")));
    let tips = tips(spec.name);
    reply.set(tips.len());
    tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(spec.keys.len());
    spec.keys.iter().for_each(|keys| write_key_spec(keys, reply));
    if command.subcommands.is_empty() {
        reply.set(0);
    } else {
        reply.array(command.subcommands.len());
        command.subcommands.iter().for_each(|subcommand| write(subcommand, reply));
    }
}

/// Writes key flags as a set of simple strings.
pub fn write_key_flags(flags: KeyFlags, reply: &mut Reply<'_>) {
    let words: Vec<&str> = flags.words().collect();
    reply.set(words.len());
    words.into_iter().for_each(|word| reply.simple(word));
}

fn write_key_spec(keys: &KeySpec, reply: &mut Reply<'_>) {
    reply.map(3);
    reply.bulk(b"flags");
    write_key_flags(keys.flags, reply);
    reply.bulk(b"begin_search");
    match keys.begin {
        Begin::Index(index) => write_search("index", &[("index", index as i64)], reply),
        Begin::Keyword { word, start } => {
            begin_search("keyword", 2, reply);
            reply.bulk(b"keyword");
            reply.bulk(word.as_bytes());
            reply.bulk(b"startfrom");
            reply.integer(i64::from(start));
        }
        Begin::Unknown(_) => begin_search("unknown", 0, reply),
    }
    reply.bulk(b"find_keys");
    match keys.find {
        Find::Range { last, step, limit } => {
            let numbers = [("lastkey", i64::from(last)), ("keystep", step as i64), ("limit", limit as i64)];
            write_search("range", &numbers, reply);
        }
        Find::Count { count, first, step } => {
            let numbers = [("keynumidx", count as i64), ("firstkey", first as i64), ("keystep", step as i64)];
            write_search("keynum", &numbers, reply);
        }
        Find::Unknown => begin_search("unknown", 0, reply),
    }
}

fn begin_search(kind: &str, fields: usize, reply: &mut Reply<'_>) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(fields);
}

fn write_search(kind: &str, numbers: &[(&str, i64)], reply: &mut Reply<'_>) {
    begin_search(kind, numbers.len(), reply);
    for (field, number) in numbers {
        reply.bulk(field.as_bytes());
        reply.integer(*number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::registry;

    #[test]
    fn key_ranges_are_those_redis_gives() {
        for (name, first, last, step, movable) in [
            ("get", 1, 1, 1, false),
            ("ping", 0, 0, 0, false),
            ("mset", 1, -1, 2, false),
            ("lmove", 1, 2, 1, false),
            ("lmpop", 0, 0, 0, true),
            ("zunionstore", 1, 1, 1, true),
            ("zunion", 0, 0, 0, true),
            ("sinterstore", 1, -1, 1, false),
            ("object|encoding", 2, 2, 1, false),
            ("sort", 1, 1, 1, true),
            ("migrate", 3, 3, 1, true),
        ] {
            let command = registry().get_full(name.as_bytes()).expect("a command");
            assert_eq!(key_range(command.spec), KeyRange { first, last, step, movable }, "{name}");
        }
    }
}
