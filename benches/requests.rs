//! Micro-benchmarks of what a core does with a request before it executes it: framing, finding the command, finding
//! the slot; and of all of it together.
//!
//! The modules are the server's own, compiled into this program. Only the commands that need a running server to run
//! are left out of the registry.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ruvio_shard::args::{ArgRange, Args};
use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::{Call, Shard};

use registry::{Found, Registered, Run, Slots, registry};
use wire::{Framed, Limits, Progress};

#[expect(dead_code, reason = "what runs scripts, which do not run here")]
#[path = "../src/registry.rs"]
mod registry;
#[expect(dead_code, reason = "helpers of its unit tests, which do not run here")]
#[path = "../src/wire.rs"]
mod wire;

/// Stands where the server has its own commands: here there is none.
mod commands {
    use ruvio_shard::command::Spec;

    /// No handler can exist.
    pub type Run = std::convert::Infallible;

    /// As the server's.
    pub struct ServerCommand {
        /// What is known of it.
        pub spec: Spec,
        /// Runs it.
        pub run: Option<Run>,
    }

    /// No script runs.
    pub static CALLS: &[(Spec, crate::registry::ScriptCommand)] = &[];

    /// No command.
    pub fn all() -> impl Iterator<Item = &'static ServerCommand> {
        std::iter::empty()
    }
}

const LIMITS: Limits = Limits { max_bulk_len: 512 << 20, authenticated: true };

/// Requests in one buffer: as many as a client that pipelines much sends at once.
const PIPELINE: usize = 64;

const NOW_MS: i64 = 1_700_000_000_000;

/// A request as clients send it.
fn encoded(words: &[&[u8]]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
    request
}

/// [`PIPELINE`] requests, `words` of a key each.
fn pipeline<'a>(words: impl Fn(&'a [u8]) -> Vec<&'a [u8]>, keys: &'a [Vec<u8>]) -> Vec<u8> {
    keys.iter().flat_map(|key| encoded(&words(key))).collect()
}

fn keys() -> Vec<Vec<u8>> {
    (0..PIPELINE).map(|number| format!("key:{:012}", number * 15_013).into_bytes()).collect()
}

/// Frames the first request of `bytes`; its length.
#[inline]
fn framed(bytes: &[u8], progress: &mut Progress) -> usize {
    progress.reset();
    match wire::frame(bytes, progress, LIMITS) {
        Framed::Request(len) => len,
        Framed::Incomplete => panic!("the requests are whole"),
        Framed::Broken(text) => panic!("{text}"),
    }
}

fn found(args: Args<'_>) -> &'static Registered {
    match registry().find(args) {
        Found::Command(command) => command,
        Found::WrongArity(command) => panic!("wrong number of words for {}", command.spec.name),
        Found::Unknown(error) => panic!("{error:?}"),
    }
}

/// Calls `each` with the words of every request in `bytes`.
#[inline]
fn each_request(bytes: &[u8], progress: &mut Progress, mut each: impl FnMut(Args<'_>)) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let len = framed(rest, progress);
        each(Args::new(rest, progress.ranges()));
        rest = &rest[len..];
    }
}

fn parser(criterion: &mut Criterion) {
    let keys = keys();
    let value = [b'x'; 64];
    let long_value = vec![b'x'; 16 * 1024];
    let many_words: Vec<&[u8]> = std::iter::once(&b"DEL"[..]).chain(keys.iter().map(Vec::as_slice)).collect();
    let mut group = criterion.benchmark_group("parser");
    let cases = [
        ("get", pipeline(|key| vec![b"GET", key], &keys)),
        ("set_64_bytes", pipeline(|key| vec![b"SET", key, &value], &keys)),
        ("set_16_kib", pipeline(|key| vec![b"SET", key, &long_value], &keys)),
        ("del_64_keys", encoded(&many_words).repeat(PIPELINE)),
    ];
    for (name, bytes) in cases {
        let mut progress = Progress::default();
        group.throughput(Throughput::Elements(PIPELINE as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                each_request(&bytes, &mut progress, |args| {
                    black_box(args);
                })
            });
        });
    }
    let (mut words, mut ranges) = (Vec::new(), Vec::<ArgRange>::new());
    group.throughput(Throughput::Elements(1));
    group.bench_function("inline", |bencher| {
        bencher.iter(|| {
            words.clear();
            ranges.clear();
            wire::inline_words(black_box(b"SET key:000000000001 \"a b\\x41\" EX 10\r\n"), &mut words, &mut ranges)
        });
    });
}

fn router(criterion: &mut Criterion) {
    let key = b"key:000000000001";
    let mut group = criterion.benchmark_group("router");
    group.throughput(Throughput::Elements(1));
    let cases: [(&str, &[&[u8]]); 6] = [
        ("get", &[b"GET", key]),
        ("long_name", &[b"ZREMRANGEBYSCORE", key, b"1", b"2"]),
        ("subcommand", &[b"OBJECT", b"ENCODING", key]),
        ("tagged_key", &[b"INCR", b"{user:42}:wallet"]),
        ("two_keys", &[b"TRANSFER", b"{user:42}:wallet", b"{user:42}:escrow", b"30"]),
        ("counted_keys", &[b"ZUNION", b"3", b"{a}1", b"{a}2", b"{a}3"]),
    ];
    for (name, words) in cases {
        let request = encoded(words);
        let mut progress = Progress::default();
        framed(&request, &mut progress);
        let args = Args::new(&request, progress.ranges());
        assert!(matches!(found(args).slots(args), Slots::One(_)), "{name} has one slot");
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let args = black_box(args);
                found(args).slots(args)
            });
        });
    }
    let names: Vec<&str> = registry().top_level().map(|command| command.spec.name).collect();
    group.throughput(Throughput::Elements(names.len() as u64));
    group.bench_function("every_name", |bencher| {
        bencher.iter(|| names.iter().filter(|name| registry().get(black_box(name.as_bytes())).is_some()).count());
    });
    let full_names: Vec<&str> = registry().all().iter().map(|command| command.spec.name).collect();
    group.throughput(Throughput::Elements(full_names.len() as u64));
    group.bench_function("every_full_name", |bencher| {
        let known = |name: &&&str| registry().get_full(black_box(name.as_bytes())).is_some();
        bencher.iter(|| full_names.iter().filter(known).count());
    });
}

/// From bytes to replies, 64 requests at a time: framed, found, routed and executed.
fn whole_way(criterion: &mut Criterion) {
    let keys = keys();
    let value = [b'x'; 64];
    let mut shard = Shard::new(1, Settings::default(), MemoryMeter::NONE, 1);
    let mut replies = Vec::new();
    let mut progress = Progress::default();
    let mut group = criterion.benchmark_group("whole_way");
    group.throughput(Throughput::Elements(PIPELINE as u64));
    for (name, bytes) in
        [("set", pipeline(|key| vec![b"SET", key, &value], &keys)), ("get", pipeline(|key| vec![b"GET", key], &keys))]
    {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                replies.clear();
                each_request(&bytes, &mut progress, |args| {
                    let command = found(args);
                    let Slots::One(slot) = command.slots(args) else { panic!("one slot each") };
                    let call = Call {
                        database: 0,
                        slot: Some(slot),
                        now_ms: NOW_MS,
                        protocol: Protocol::Resp2,
                        may_wait: false,
                    };
                    match command.run {
                        Run::Shard(command) => drop(shard.execute(command, args, call, &mut replies)),
                        Run::Server(never) => match never {},
                        Run::Script(_) | Run::Container => panic!("neither a script nor a container is called"),
                    }
                });
                replies.len()
            });
        });
    }
}

criterion_group!(benches, parser, router, whole_way);
criterion_main!(benches);
