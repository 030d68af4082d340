//! Lists of both forms against a plain vector, and what a client may rely on.

mod model;
mod promises;

use super::{Limit, ListRef};
use crate::args::OwnedArgs;
use crate::commands;
use crate::entry::Encoding;
use crate::eviction::MemoryMeter;
use crate::object::Object;
use crate::reply::Protocol;
use crate::settings::Settings;
use crate::shard::{Call, Shard};

fn shard(list_max_listpack_size: i64) -> Shard {
    Shard::new(1, Settings { list_max_listpack_size, ..Settings::default() }, MemoryMeter::NONE, 1)
}

/// The reply to a command, and the changes it made.
fn call<W: AsRef<[u8]>>(shard: &mut Shard, protocol: Protocol, words: &[W]) -> (Vec<u8>, u64) {
    let name = words[0].as_ref().to_ascii_lowercase();
    let command = commands::all().find(|command| command.spec.name.as_bytes() == name).expect("a command");
    assert!(command.spec.accepts(words.len()));
    let args: OwnedArgs = words.iter().collect();
    let mut out = Vec::new();
    let outcome = shard.execute(
        command,
        args.as_args(),
        Call { database: 0, slot: None, now_ms: 1, protocol, may_wait: false },
        &mut out,
    );
    (out, outcome.changes)
}

fn run(shard: &mut Shard, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    String::from_utf8(call(shard, Protocol::Resp2, &words).0).expect("text")
}

/// The elements of the list at `key`, after checks of everything that must hold of its form.
fn elements(shard: &mut Shard, key: &[u8]) -> Vec<Vec<u8>> {
    let limit = Limit::of(&shard.keys.settings);
    let Some(entry) = shard.keys.peek(key) else { return Vec::new() };
    let list = ListRef::of(entry);
    match list {
        ListRef::Large(large) => large.check(limit),
        ListRef::Packed { elements, count } => assert_eq!(crate::packed::validate(elements), Some(count)),
    }
    let walk = |end| -> Vec<Vec<u8>> {
        let text = |element: crate::packed::Element<'_>| {
            let mut text = Vec::new();
            element.write_to(&mut text);
            text
        };
        list.walk(end, 0).map(text).collect()
    };
    let forward = walk(super::End::Left);
    let mut backward = walk(super::End::Right);
    backward.reverse();
    assert_eq!(forward, backward);
    assert_eq!(forward.len(), list.len());
    forward
}

fn is_packed(shard: &mut Shard, key: &str) -> bool {
    shard.keys.peek(key.as_bytes()).expect("a list").encoding() == Encoding::PackedList
}

/// Bytes that a large list holds.
fn large_bytes(shard: &mut Shard, key: &str) -> usize {
    let entry = shard.keys.peek(key.as_bytes()).expect("a list");
    entry.object().map(Object::heap_bytes).expect("a large list")
}
