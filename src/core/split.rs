//! Commands whose keys are on several shards, where the operator allows that (`--cross-slot allow`).
//!
//! A few commands work on each of their keys alone. They are taken apart, a call for each shard with the keys that it
//! owns, and the replies are put together. The calls are executed one beside the other: what others see in between is
//! some of it done and some not.

use ruvio_shard::args::{Args, OwnedArgs};
use ruvio_shard::error::CommandError;
use ruvio_shard::reply::{Protocol, Reply};
use ruvio_shard::shard::Call;
use ruvio_shard::slot::key_slot;

use super::Core;
use super::client::{ClientKey, Door};
use super::waiting::Place;
use crate::registry::{Registered, Run};

/// How the replies of the calls become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merge {
    /// Arrays of values, a value a key.
    Values,
    /// All confirm.
    Confirmation,
    /// Their sum.
    Sum,
}

/// How a command is taken apart: the words that belong to each key, and how the replies are put together.
fn division(command: &Registered) -> Option<(usize, Merge)> {
    match command.spec.name {
        "mget" => Some((1, Merge::Values)),
        "mset" => Some((2, Merge::Confirmation)),
        "del" | "unlink" | "exists" | "touch" => Some((1, Merge::Sum)),
        _ => None,
    }
}

/// The circumstances that all calls share.
#[derive(Clone, Copy)]
struct Shared {
    command: &'static Registered,
    database: usize,
    protocol: Protocol,
    no_touch: bool,
    client: Place,
    is_tracked: bool,
}

/// What a call came to.
struct Answer {
    encoded: Vec<u8>,
    error: Option<CommandError>,
    refused: bool,
}

impl Core {
    /// Whether the client's commands may have keys in several slots.
    pub(super) fn may_cross_slots(&self, key: ClientKey) -> bool {
        self.configuration.settings.cross_slot
            && self.clients.get(key).is_some_and(|client| client.door == Door::Shared)
    }

    /// The shard that owns every key of a command whose keys are in several slots, where that is allowed.
    pub(super) fn common_owner(&self, key: ClientKey, command: &Registered, args: Args<'_>) -> Option<usize> {
        if command.spec.is_native() || !self.may_cross_slots(key) {
            return None;
        }
        let mut common = None;
        let mut agree = true;
        // Keys were found in several slots, so the words fit.
        command.spec.visit_keys(args, |index| {
            let owner = self.process.owner(key_slot(args.at(index)));
            agree &= *common.get_or_insert(owner) == owner;
        });
        common.filter(|_| agree)
    }

    /// Whether a command whose keys are on several shards is executed nevertheless.
    pub(super) fn may_be_split(&self, key: ClientKey, command: &Registered) -> bool {
        division(command).is_some() && self.may_cross_slots(key)
    }

    /// Executes a command whose keys are on several shards: in parts, or not at all.
    #[cold]
    pub(super) fn execute_apart(
        &mut self,
        key: ClientKey,
        command: &'static Registered,
        args: Args<'_>,
        start: &mut u64,
    ) {
        let (true, Some((words_a_key, merge))) = (self.may_be_split(key, command), division(command)) else {
            self.command_stats[command.index].rejected += 1;
            self.reject(key, &CommandError::CROSS_SLOT);
            return;
        };
        if !(args.len() - 1).is_multiple_of(words_a_key) {
            // The handler says that the last key lacks a word.
            return self.execute_here(key, command, None, args, start);
        }
        let Some(client) = self.clients.get(key) else { return };
        let shared = Shared {
            command,
            database: client.database,
            protocol: client.protocol,
            no_touch: client.no_touch,
            client: Place { core: self.number, client: key },
            is_tracked: client.notes_reads(command),
        };
        let mut calls: Vec<Option<OwnedArgs>> = vec![None; self.process.cores.len()];
        let mut owners: Vec<usize> = Vec::new();
        let process = &self.process;
        command.spec.visit_keys(args, |index| {
            let owner = process.owner(key_slot(args.at(index)));
            let call = calls[owner].get_or_insert_with(|| [args.at(0)].into_iter().collect());
            (index..index + words_a_key).for_each(|word| call.push(args.at(word)));
            owners.push(owner);
        });
        self.counters.forwarded +=
            u64::from(calls.iter().enumerate().any(|(core, call)| core != self.number && call.is_some()));
        self.gather_work(
            key,
            move |core| calls[core.number].as_ref().map(|call| core.execute_call(shared, call.as_args())),
            move |core, answers: Vec<Option<Answer>>, reply| {
                let failed =
                    answers.iter().flatten().find_map(|answer| answer.error.as_ref().zip(Some(answer.refused)));
                if let Some((error, refused)) = failed {
                    core.count_error(error);
                    let stats = &mut core.command_stats[command.index];
                    if refused {
                        stats.take_back()
                    } else {
                        stats.failed += 1
                    }
                    return reply.error(error);
                }
                match merge {
                    Merge::Values => write_values(&owners, &answers, reply),
                    Merge::Confirmation => reply.ok(),
                    Merge::Sum => reply.integer(answers.iter().flatten().map(|answer| integer(&answer.encoded)).sum()),
                }
            },
        );
        let end = self.clock.raw();
        if let Some(entry) = self.note_call(command, args, *start, end, false) {
            self.log_slow(entry, key);
        }
        *start = end;
    }

    /// Executes a part of a command on this core's shard.
    fn execute_call(&mut self, shared: Shared, args: Args<'_>) -> Answer {
        let Shared { command, database, protocol, no_touch, client, is_tracked } = shared;
        let mut encoded = Vec::new();
        let Run::Shard(shard_command) = command.run else { return Answer { encoded, error: None, refused: false } };
        let call = Call { database, slot: None, now_ms: self.now_ms, protocol, may_wait: false };
        self.shard.keys.no_touch = no_touch;
        let outcome = self.execute_logged(command, shard_command, args, call, &mut encoded);
        self.shard.keys.no_touch = false;
        self.after_command(Some(client));
        if is_tracked {
            self.note_reads(client, command, args);
        }
        Answer { encoded, error: outcome.error, refused: outcome.refused }
    }
}

/// The number of an integer reply.
fn integer(encoded: &[u8]) -> i64 {
    let digits = encoded.strip_prefix(b":").and_then(|rest| rest.strip_suffix(b"\r\n"));
    digits.and_then(ruvio_shard::number::parse_i64).unwrap_or(0)
}

/// Splits a line off the front, with its end.
fn line<'a>(encoded: &mut &'a [u8]) -> &'a [u8] {
    let end = encoded.iter().position(|&byte| byte == b'\n').map_or(encoded.len(), |end| end + 1);
    let (line, rest) = encoded.split_at(end);
    *encoded = rest;
    line
}

/// Splits a bulk string or a null off the front.
fn value<'a>(encoded: &mut &'a [u8]) -> &'a [u8] {
    let whole = *encoded;
    let head = line(encoded);
    let len =
        head.strip_prefix(b"$").and_then(|rest| rest.strip_suffix(b"\r\n")).and_then(ruvio_shard::number::parse_i64);
    let Some(len) = len.and_then(|len| usize::try_from(len).ok()) else { return head };
    let end = (head.len() + len + 2).min(whole.len());
    *encoded = &whole[end..];
    &whole[..end]
}

/// Writes the values of all shards' arrays in the order of the keys; `owners` names the shard of each key.
fn write_values(owners: &[usize], answers: &[Option<Answer>], reply: &mut Reply<'_>) {
    let mut left: Vec<&[u8]> =
        answers.iter().map(|answer| answer.as_ref().map_or(&[][..], |answer| &answer.encoded)).collect();
    left.iter_mut().for_each(|encoded| {
        line(encoded);
    });
    reply.array(owners.len());
    for &owner in owners {
        reply.raw(value(&mut left[owner]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_in_the_order_of_the_keys() {
        let answer = |text: &str| Some(Answer { encoded: text.into(), error: None, refused: false });
        let answers = [answer("*2\r\n$4\r\na\r\nb\r\n$-1\r\n"), None, answer("*3\r\n$0\r\n\r\n_\r\n$2\r\n\r\n\r\n")];
        let mut out = Vec::new();
        write_values(&[2, 0, 2, 2, 0], &answers, &mut Reply::new(&mut out, Protocol::Resp2));
        let expected = "*5\r\n$0\r\n\r\n$4\r\na\r\nb\r\n_\r\n$2\r\n\r\n\r\n$-1\r\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }

    #[test]
    fn integers_are_read_back() {
        for (encoded, number) in [(":0\r\n", 0), (":12\r\n", 12), (":-3\r\n", -3)] {
            assert_eq!(integer(encoded.as_bytes()), number);
        }
    }
}
