//! Commands on the keyspace of the whole process: on a shard's port too they speak for every shard.

use rand::RngExt;
use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::number;
use ruvio_shard::reply::Reply;
use ruvio_shard::scan::{KindFilter, ScanFilter, cursor_slot, parse_cursor};
use ruvio_shard::slot::shard_slots;

use super::{Flow, Request, Run, ServerCommand};
use crate::core::Core;

const DANGEROUS: Categories = Categories::KEYSPACE.and(Categories::DANGEROUS);
const EACH_KEY: &str = "O(N) where N is the number of keys";

/// Keys that a step of `SCAN` looks at unless `COUNT` says otherwise.
const SCAN_COUNT: usize = 10;

/// Elements freed between looks at whether all are, when a flush is to wait for it.
const FREED_A_STEP: usize = 1 << 16;

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    command(
        ("dbsize", 1, "1.0.0"),
        Flags::READ_ONLY.and(Flags::FAST),
        Categories::KEYSPACE,
        Group::Server,
        "O(1)",
        "Returns the number of keys in the selected database.",
        "",
        dbsize,
    ),
    command(
        ("keys", 2, "1.0.0"),
        Flags::READ_ONLY,
        DANGEROUS,
        Group::Generic,
        EACH_KEY,
        "Returns the keys that match a pattern.",
        "pattern",
        keys,
    ),
    command(
        ("scan", -2, "2.8.0"),
        Flags::READ_ONLY,
        Categories::KEYSPACE,
        Group::Generic,
        "O(1) a call, O(N) for a whole scan of N keys",
        "Returns some keys of the selected database and where to go on.",
        "cursor [MATCH pattern] [COUNT count] [TYPE type]",
        scan,
    ),
    command(
        ("randomkey", 1, "1.0.0"),
        Flags::READ_ONLY,
        Categories::KEYSPACE,
        Group::Generic,
        "O(1)",
        "Returns a key of the selected database, each with the same chance.",
        "",
        random_key,
    ),
    command(
        ("flushdb", -1, "1.0.0"),
        Flags::WRITE,
        DANGEROUS,
        Group::Server,
        EACH_KEY,
        "Removes every key of the selected database.",
        "[ASYNC | SYNC]",
        flush_selected,
    ),
    command(
        ("flushall", -1, "1.0.0"),
        Flags::WRITE,
        DANGEROUS,
        Group::Server,
        EACH_KEY,
        "Removes every key of every database.",
        "[ASYNC | SYNC]",
        flush_all,
    ),
    command(
        ("swapdb", 3, "4.0.0"),
        Flags::WRITE.and(Flags::FAST),
        DANGEROUS,
        Group::Server,
        "O(1)",
        "Exchanges two databases.",
        "index1 index2",
        swap_databases,
    ),
];

#[expect(clippy::too_many_arguments, reason = "each is a field of the specification")]
const fn command(
    (name, arity, since): (&'static str, i32, &'static str),
    flags: Flags,
    categories: Categories,
    group: Group,
    complexity: &'static str,
    summary: &'static str,
    syntax: &'static str,
    run: Run,
) -> ServerCommand {
    let spec = Spec { name, arity, flags, keys: &[], categories, group, since, complexity, summary, syntax };
    ServerCommand { spec, run: Some(run) }
}

fn dbsize(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let database = request.database();
    request.core.gather_work(
        request.client,
        move |core| core.shard.keys.databases()[database].len(),
        |_, parts: Vec<usize>, reply| reply.count(parts.into_iter().sum()),
    );
    Ok(Flow::Wait)
}

/// Keys as bulk strings one behind the other, with their number.
#[derive(Default)]
struct EncodedKeys {
    encoded: Vec<u8>,
    count: usize,
}

impl EncodedKeys {
    fn push(&mut self, key: &[u8]) {
        // Bulk strings are the same in both protocols.
        Reply::new(&mut self.encoded, Default::default()).bulk(key);
        self.count += 1;
    }

    fn write(&self, reply: &mut Reply<'_>) {
        reply.raw(&self.encoded);
    }
}

fn keys(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let database = request.database();
    let pattern = request.args.at(1).to_vec();
    request.core.gather_work(
        request.client,
        move |core| {
            let mut found = EncodedKeys::default();
            core.shard.keys.keys_matching(database, core.now_ms, &pattern, |key| found.push(key));
            found
        },
        |_, parts: Vec<EncodedKeys>, reply| {
            reply.array(parts.iter().map(|part| part.count).sum());
            for part in &parts {
                part.write(reply);
            }
        },
    );
    Ok(Flow::Wait)
}

fn scan(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    let cursor = parse_cursor(args.at(1))?;
    let mut count = SCAN_COUNT;
    let mut pattern = None;
    let mut kind = KindFilter::Any;
    let mut place = 2;
    while place < args.len() {
        let value = args.get(place + 1).ok_or(CommandError::SYNTAX)?;
        if args.is(place, "count") {
            let number = number::parse_i64(value).ok_or(CommandError::NOT_AN_INTEGER)?;
            if number < 1 {
                return Err(CommandError::SYNTAX);
            }
            count = usize::try_from(number).unwrap_or(usize::MAX);
        } else if args.is(place, "match") {
            pattern = Some(value.to_vec());
        } else if args.is(place, "type") {
            kind = KindFilter::named(value);
        } else {
            return Err(CommandError::SYNTAX);
        }
        place += 2;
    }
    let Some(slot) = cursor_slot(cursor) else {
        // Past the last slot there is nothing more.
        write_scanned(0, &EncodedKeys::default(), &mut request.reply());
        return Ok(Flow::Done);
    };
    let database = request.database();
    let owner = request.core.process.owner(slot);
    request.core.relay(
        request.client,
        owner,
        (cursor, EncodedKeys::default()),
        move |core, (cursor, found)| {
            let filter = ScanFilter { pattern: pattern.as_deref(), kind };
            let slots = shard_slots(core.number, core.process.options.shards);
            let left = count.saturating_sub(found.count).max(1);
            let (from, now_ms) = (*cursor, core.now_ms);
            let keys = &mut core.shard.keys;
            *cursor = keys.scan_database(database, now_ms, from, left, &filter, slots, |key| found.push(key));
            // A shard that ends before enough is found leaves the rest to the next one.
            let next = cursor_slot(*cursor).filter(|_| *cursor != 0).map(|slot| core.process.owner(slot));
            next.filter(|&next| next != core.number && found.count < count)
        },
        |(cursor, found), reply| write_scanned(cursor, &found, reply),
    );
    Ok(Flow::Wait)
}

fn write_scanned(next: u64, found: &EncodedKeys, reply: &mut Reply<'_>) {
    reply.array(2);
    reply.bulk(next.to_string().as_bytes());
    reply.array(found.count);
    found.write(reply);
}

/// A shard's choice of a key.
struct RandomKey {
    /// How many keys it was chosen from.
    among: usize,
    key: Box<[u8]>,
    /// Whether it has not expired.
    is_live: bool,
}

fn random_key(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let database = request.database();
    request.core.gather_work(
        request.client,
        move |core| {
            let keys = &mut core.shard.keys;
            let key = keys.random_key(database, core.now_ms)?;
            let is_live = keys.peek(&key).is_some();
            Some(RandomKey { among: keys.len(database).max(1), key, is_live })
        },
        |_, parts: Vec<Option<RandomKey>>, reply| {
            // Each shard counts by its keys, so that each key has the same chance. One that has expired is returned only
            // in a pause, if there is no other.
            let any_live = parts.iter().flatten().any(|part| part.is_live);
            let found: Vec<RandomKey> = parts.into_iter().flatten().filter(|part| part.is_live == any_live).collect();
            let all: usize = found.iter().map(|part| part.among).sum();
            let mut chosen = if all > 0 { rand::rng().random_range(0..all) } else { 0 };
            for RandomKey { among, key, .. } in found {
                if chosen < among {
                    return reply.bulk(&key);
                }
                chosen -= among;
            }
            reply.null();
        },
    );
    Ok(Flow::Wait)
}

/// Whether memory is to be free before the reply: only if asked for, since every core frees in the background without
/// standing still.
fn waits_for_memory(request: &Request<'_>) -> Result<bool, CommandError> {
    let args = request.args;
    match args.len() {
        1 => Ok(false),
        2 if args.is(1, "async") => Ok(false),
        2 if args.is(1, "sync") => Ok(true),
        _ => Err(CommandError::SYNTAX),
    }
}

fn flush_selected(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let waits = waits_for_memory(request)?;
    let database = request.database();
    flush(request, database..database + 1, waits)
}

fn flush_all(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let waits = waits_for_memory(request)?;
    let databases = request.core.process.options.databases;
    flush(request, 0..databases, waits)
}

fn flush(request: &mut Request<'_>, databases: std::ops::Range<usize>, waits: bool) -> Result<Flow, CommandError> {
    let number = request.core.process.next_flush();
    request.core.gather_work(
        request.client,
        move |core: &mut Core| {
            core.flush_databases(databases.clone());
            core.announce_flush(number);
            while waits && !core.shard.keys.reclaim(FREED_A_STEP) {}
        },
        |_, _: Vec<()>, reply| reply.ok(),
    );
    Ok(Flow::Wait)
}

fn swap_databases(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let index = |place: usize, error: &'static str| {
        number::parse_i64(request.args.at(place))
            .and_then(|index| i32::try_from(index).ok())
            .ok_or_else(|| CommandError::new(error))
    };
    let first = index(1, "ERR invalid first DB index")?;
    let second = index(2, "ERR invalid second DB index")?;
    let databases = request.core.process.options.databases;
    let checked = |index: i32| {
        usize::try_from(index).ok().filter(|&index| index < databases).ok_or(CommandError::DB_INDEX_OUT_OF_RANGE)
    };
    let (first, second) = (checked(first)?, checked(second)?);
    request.core.gather_work(
        request.client,
        move |core: &mut Core| core.swap_databases(first, second),
        |_, _: Vec<()>, reply| reply.ok(),
    );
    Ok(Flow::Wait)
}
