//! Micro-benchmarks of the keyspace: commands on a shard as a core executes them, and the table below them.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ruvio_shard::args::OwnedArgs;
use ruvio_shard::command::Command;
use ruvio_shard::commands;
use ruvio_shard::entry::{Encoding, Entry, Header};
use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::hash_key;
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::{Call, Shard};
use ruvio_shard::slot::key_slot;
use ruvio_shard::table::Table;

/// Keys of a shard: more than the caches hold.
const KEYS: usize = 1_000_000;

/// Fields or members of a large collection.
const ELEMENTS: usize = 100_000;

/// Different calls that a benchmark takes in turn.
const CALLS: usize = 1 << 16;

/// Replies collected before the buffer is emptied, as a core does when it sends them.
const REPLIES_KEPT_BYTES: usize = 64 * 1024;

const NOW_MS: i64 = 1_700_000_000_000;

/// A value of 64 bytes.
const VALUE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A number below `limit` for each `index`, spread so that neither caches nor predictors foresee the next one.
fn scattered(index: usize, limit: usize) -> usize {
    let spread = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (spread as usize * limit) >> 32
}

fn key(number: usize) -> String {
    format!("key:{number:012}")
}

/// A call with the slot that the router found for it.
struct Request {
    command: &'static Command,
    args: OwnedArgs,
    slot: u16,
}

impl Request {
    fn new(line: &str) -> Request {
        let words: Vec<&str> = line.split(' ').collect();
        let command = commands::all()
            .find(|command| command.spec.name == words[0])
            .unwrap_or_else(|| panic!("no command {}", words[0]));
        let args = words.iter().collect();
        Request { command, args, slot: key_slot(words[1].as_bytes()) }
    }
}

/// A shard and what is asked of it.
struct Load {
    shard: Shard,
    replies: Vec<u8>,
}

impl Load {
    /// A shard that has executed `fill` for every number below `count`.
    fn filled(count: usize, fill: impl Fn(usize) -> String) -> Load {
        let shard = Shard::new(1, Settings::default(), MemoryMeter::NONE, 1);
        let mut load = Load { shard, replies: Vec::with_capacity(REPLIES_KEPT_BYTES + 1024) };
        for number in 0..count {
            load.execute(&Request::new(&fill(number)));
        }
        load
    }

    #[inline]
    fn execute(&mut self, request: &Request) {
        if self.replies.len() > REPLIES_KEPT_BYTES {
            self.replies.clear();
        }
        let call =
            Call { database: 0, slot: Some(request.slot), now_ms: NOW_MS, protocol: Protocol::Resp2, may_wait: false };
        let outcome = self.shard.execute(request.command, request.args.as_args(), call, &mut self.replies);
        debug_assert!(outcome.error.is_none());
        black_box(&outcome);
    }

    /// Measures the calls that `line` makes of numbers below `count`.
    fn measure<M: criterion::measurement::Measurement>(
        &mut self,
        group: &mut BenchmarkGroup<'_, M>,
        name: &str,
        count: usize,
        line: impl Fn(usize) -> String,
    ) {
        let requests: Vec<Request> = (0..CALLS).map(|index| Request::new(&line(scattered(index, count)))).collect();
        let mut next = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                self.execute(&requests[next % CALLS]);
                next += 1;
            });
        });
    }
}

fn strings(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("execute");
    group.throughput(Throughput::Elements(1));
    let mut load = Load::filled(KEYS, |number| format!("set {} {VALUE}", key(number)));
    load.measure(&mut group, "get", KEYS, |number| format!("get {}", key(number)));
    load.measure(&mut group, "get_missing", KEYS, |number| format!("get {}", key(KEYS + number)));
    load.measure(&mut group, "set_overwrite", KEYS, |number| format!("set {} {VALUE}", key(number)));
    let mut load = Load::filled(KEYS, |number| format!("set {} 1000", key(number)));
    load.measure(&mut group, "incr", KEYS, |number| format!("incr {}", key(number)));
}

fn collections(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("execute");
    group.throughput(Throughput::Elements(1));
    let mut load =
        Load::filled(KEYS, |number| format!("hset {} name ada plan pro seats 7 mail ada@example.com", key(number)));
    load.measure(&mut group, "hset_packed", KEYS, |number| format!("hset {} seats {number}", key(number)));
    let mut load = Load::filled(ELEMENTS, |number| format!("hset large field:{number:012} {VALUE}"));
    load.measure(&mut group, "hset_large", ELEMENTS, |number| format!("hset large field:{number:012} {VALUE}"));
    let mut load = Load::filled(KEYS, |number| format!("zadd {} 1 a 2 b 3 c 4 d", key(number)));
    load.measure(&mut group, "zadd_packed", KEYS, |number| format!("zadd {} {} b", key(number), number % 7));
    let mut load = Load::filled(ELEMENTS, |number| format!("zadd large {number} member:{number:012}"));
    let score = |number: usize| scattered(number, ELEMENTS);
    load.measure(&mut group, "zadd_large", ELEMENTS, |number| {
        format!("zadd large {} member:{number:012}", score(number))
    });
}

fn entries(count: usize) -> Vec<(u64, Entry)> {
    let entry = |number| {
        let key = key(number);
        let header = Header { key: key.as_bytes(), ..Header::default() };
        (hash_key(key.as_bytes()), Entry::new(header, Encoding::Bytes, &[VALUE.as_bytes()]))
    };
    (0..count).map(entry).collect()
}

fn table_of(entries: Vec<(u64, Entry)>) -> Table<Entry> {
    let mut table = Table::new();
    for (hash, entry) in entries {
        table.insert(hash, entry);
    }
    table
}

/// Sizes of a table: a slot's of a million keys, the fullest that is one segment, and a large collection's.
const TABLE_SIZES: [usize; 3] = [61, 512, ELEMENTS];

fn tables(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("table_find");
    group.throughput(Throughput::Elements(1));
    for size in TABLE_SIZES {
        let table = table_of(entries(size));
        let keys: Vec<(u64, String)> =
            (0..CALLS).map(|index| key(scattered(index, size))).map(|key| (hash_key(key.as_bytes()), key)).collect();
        let mut next = 0;
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                let (hash, key) = &keys[next % CALLS];
                next += 1;
                table.find(*hash, key.as_bytes())
            });
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("table_insert");
    for size in TABLE_SIZES {
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_batched(|| entries(size), table_of, BatchSize::LargeInput);
        });
    }
}

criterion_group!(benches, strings, collections, tables);
criterion_main!(benches);
