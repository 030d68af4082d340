//! Random commands on a shard: none may panic, and each must write exactly one well-formed reply.
//!
//! Run with `cargo fuzz run commands` in `shard/`; `RUSTFLAGS="--cfg ruvio_system_blocks"` lets the sanitizer see every
//! block.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use ruvio_shard::args::OwnedArgs;
use ruvio_shard::command::Command;
use ruvio_shard::commands;
use ruvio_shard::eviction::MemoryMeter;
use ruvio_shard::reply::Protocol;
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::{Call, Shard};

static COMMANDS: LazyLock<Vec<&'static Command>> = LazyLock::new(|| commands::all().collect());

/// The words in capitals of every command's syntax: options that mean something.
static OPTIONS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let words = COMMANDS.iter().flat_map(|command| command.spec.syntax.split(|c: char| !c.is_ascii_alphanumeric()));
    let mut options: Vec<&str> = words.filter(|word| word.len() > 1 && !word.contains(char::is_lowercase)).collect();
    options.sort_unstable();
    options.dedup();
    options
});

/// Words with which handlers have to be careful.
const SPECIAL: &[&[u8]] = &[
    b"",
    b"*",
    b"-1",
    b"0",
    b"01",
    b"-0",
    b"+inf",
    b"-inf",
    b"nan",
    b"1e400",
    b"(1",
    b"[a",
    b"-",
    b"+",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"9223372036854775808",
    b"18446744073709551615",
    b"4294967296",
    b"2147483648",
    b"-32769",
    b"1.5",
    b"-1e-7",
    b"\r\n",
    b"[^a-\\",
];

/// The fuzzer's bytes, read from front to back; zeros when they are used up.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> usize {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first.into()
    }

    fn take(&mut self, len: usize) -> &[u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn word(&mut self, now_ms: i64) -> Vec<u8> {
        match self.next() {
            kind @ 0..100 => vec![b"abcdefgh"[kind % 8]],
            kind @ 100..140 => (kind as i64 - 120).to_string().into_bytes(),
            140..180 if !OPTIONS.is_empty() => OPTIONS[self.next() % OPTIONS.len()].as_bytes().to_vec(),
            180..205 => SPECIAL[self.next() % SPECIAL.len()].to_vec(),
            205..215 => (now_ms + self.next() as i64 - 100).to_string().into_bytes(),
            215..225 => vec![b'x'; self.next() * 20],
            _ => {
                let len = self.next() % 24;
                self.take(len).to_vec()
            }
        }
    }
}

/// The rest behind one well-formed reply.
fn after_reply(reply: &[u8]) -> &[u8] {
    let end = reply.windows(2).position(|pair| pair == b"\r\n").expect("a whole line");
    let (line, mut rest) = (&reply[1..end], &reply[end + 2..]);
    let number = || std::str::from_utf8(line).ok().and_then(|text| text.parse::<i64>().ok()).expect("a number");
    match reply[0] {
        b'+' | b'-' => assert!(!line.contains(&b'\n')),
        b':' => {
            number();
        }
        b'_' => assert!(line.is_empty()),
        b'#' => assert!(line == b"t" || line == b"f"),
        b',' => {
            let text = std::str::from_utf8(line).expect("text");
            assert!(text.parse::<f64>().is_ok());
        }
        b'$' | b'=' => match number() {
            -1 => assert_eq!(reply[0], b'$'),
            len => {
                let len = usize::try_from(len).expect("a length");
                assert_eq!(&rest[len..len + 2], b"\r\n");
                rest = &rest[len + 2..];
            }
        },
        b'*' | b'~' | b'%' | b'>' => match number() {
            -1 => assert_eq!(reply[0], b'*'),
            len => {
                let parts = if reply[0] == b'%' { 2 } else { 1 } * usize::try_from(len).expect("a length");
                for _ in 0..parts {
                    rest = after_reply(rest);
                }
            }
        },
        mark => panic!("a reply that begins with {mark}"),
    }
    rest
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let small = bytes.next() % 8;
    let settings = Settings {
        hash_max_listpack_entries: small,
        set_max_intset_entries: small,
        set_max_listpack_entries: small,
        zset_max_listpack_entries: small,
        list_max_listpack_size: small as i64 + 1,
        proto_max_bulk_len: 1 << 20,
        ..Settings::default()
    };
    let mut shard = Shard::new(2, settings, MemoryMeter::NONE, 1);
    let mut now_ms = 1_000_000;
    let mut out = Vec::new();
    while !bytes.0.is_empty() {
        let command = COMMANDS[bytes.next() % COMMANDS.len()];
        let mut words = OwnedArgs::new();
        words.push(command.spec.name.as_bytes());
        let fewest = command.spec.arity.unsigned_abs() as usize - 1;
        let count = if command.spec.arity > 0 { fewest } else { fewest + bytes.next() % 8 };
        for _ in 0..count {
            words.push(&bytes.word(now_ms));
        }
        now_ms += [0, 0, 0, 1, 50, 5000][bytes.next() % 6];
        let protocol = if bytes.next().is_multiple_of(2) { Protocol::Resp2 } else { Protocol::Resp3 };
        let call = Call { database: 0, slot: None, now_ms, protocol };
        out.clear();
        let outcome = shard.execute(command, words.as_args(), call, &mut out);
        assert!(after_reply(&out).is_empty(), "one reply: {:?}", String::from_utf8_lossy(&out));
        assert_eq!(outcome.error.is_some(), out[0] == b'-');
        if bytes.next() < 16 {
            shard.keys.reclaim(bytes.next());
        }
    }
    while !shard.keys.reclaim(1000) {}
});
