//! `MIGRATE`: moves keys of one shard to another server.
//!
//! The owning core takes the values as `DUMP` gives them, a thread of its own sends them (no core ever waits for the
//! network), and then the owning core deletes the keys that the other server has taken. Unlike in Redis the keys can be
//! used meanwhile: one that has changed since its value was taken is kept.

mod transfer;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ruvio_shard::args::Args;
use ruvio_shard::command::{Begin, Categories, Find, Flags, Group, KeyFlags, KeySpec, Spec};
use ruvio_shard::error::CommandError;
use ruvio_shard::number::parse_i64;
use ruvio_shard::rdb;
use ruvio_shard::slot::key_slot;

use super::{Flow, Request, ServerCommand};
use crate::core::Core;
use crate::core::client::Door;
use crate::core::gather::Promise;
use crate::core::mailbox::{self, Message, Task};
use crate::core::script::ScriptKind;
use crate::core::script::beside::busy_error;
use transfer::{Item, Target, Transferred};

/// Calls whose data are under way at once, in the whole process: a thread each.
const MIGRATIONS_MAX: usize = 16;

/// The time-out where a call gives none that is positive, in ms; Redis's.
const DEFAULT_TIMEOUT_MS: u64 = 1000;

const MOVED_KEY: KeyFlags = KeyFlags::READ_WRITE.and(KeyFlags::ACCESS).and(KeyFlags::DELETE);

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[ServerCommand {
    spec: Spec {
        name: "migrate",
        arity: -6,
        flags: Flags::WRITE,
        keys: &[
            KeySpec::one(3, MOVED_KEY),
            KeySpec {
                begin: Begin::Keyword { word: "KEYS", start: -2 },
                find: Find::Range { last: -1, step: 1, limit: 0 },
                flags: MOVED_KEY.and(KeyFlags::INCOMPLETE),
            },
        ],
        categories: Categories::KEYSPACE.and(Categories::DANGEROUS),
        group: Group::Generic,
        since: "2.6.0",
        complexity: "O(N) where N is the size of the values",
        summary: "Moves keys of one slot to another server: a DUMP and a deletion here, a RESTORE there.",
        syntax: "host port <key | \"\"> destination-db timeout-ms [COPY] [REPLACE] [AUTH password | AUTH2 username password] [KEYS key [key ...]]",
    },
    run: Some(migrate),
}];

/// What a call asks for.
struct Options {
    copy: bool,
    target: Target,
    /// Its keys are the words from this one on.
    keys_from: usize,
    keys: usize,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Options, CommandError> {
        let (mut copy, mut replace, mut credentials) = (false, false, Vec::new());
        let (mut keys_from, mut keys) = (3, 1);
        let mut index = 6;
        while index < args.len() {
            let more = args.len() - index - 1;
            if args.is(index, "copy") {
                copy = true;
            } else if args.is(index, "replace") {
                replace = true;
            } else if args.is(index, "auth") && more >= 1 {
                credentials = vec![args.at(index + 1).to_vec()];
                index += 1;
            } else if args.is(index, "auth2") && more >= 2 {
                credentials = vec![args.at(index + 1).to_vec(), args.at(index + 2).to_vec()];
                index += 2;
            } else if args.is(index, "keys") {
                if !args.at(3).is_empty() {
                    return Err(CommandError::new(
                        "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
                    ));
                }
                (keys_from, keys) = (index + 1, more);
                break;
            } else {
                return Err(CommandError::SYNTAX);
            }
            index += 1;
        }
        let timeout_ms = parse_i64(args.at(5)).ok_or(CommandError::NOT_AN_INTEGER)?;
        let database = parse_i64(args.at(4)).ok_or(CommandError::NOT_AN_INTEGER)?;
        let timeout_ms = u64::try_from(timeout_ms).ok().filter(|timeout_ms| *timeout_ms > 0);
        let target = Target {
            host: String::from_utf8_lossy(args.at(1)).into_owned(),
            // A port that is none leads nowhere, and so does port 0.
            port: parse_i64(args.at(2)).and_then(|port| u16::try_from(port).ok()).unwrap_or(0),
            credentials,
            database,
            timeout: Duration::from_millis(timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS)),
            replace,
        };
        Ok(Options { copy, target, keys_from, keys })
    }
}

/// What the owning core does.
struct Work {
    keys: Vec<Box<[u8]>>,
    /// The slot of all keys, unless they may be in several.
    slot: Option<u16>,
    database: usize,
    copy: bool,
    target: Target,
}

fn migrate(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let Options { copy, target, keys_from, keys } = Options::parse(request.args)?;
    let keys: Vec<Box<[u8]>> = request.args.from(keys_from).iter().take(keys).map(Box::from).collect();
    let Some(first) = keys.first().map(|key| key_slot(key)) else {
        request.reply().simple("NOKEY");
        return Ok(Flow::Done);
    };
    let core = &mut *request.core;
    let owner = core.process.owner(first);
    let one_slot = keys.iter().all(|key| key_slot(key) == first);
    let may_go_together = one_slot
        || core.configuration.settings.cross_slot && keys.iter().all(|key| core.process.owner(key_slot(key)) == owner);
    if !may_go_together {
        return Err(CommandError::CROSS_SLOT);
    }
    let Some(client) = core.clients.get(request.client) else { return Ok(Flow::Done) };
    if client.door == Door::Shard && owner != core.number {
        let announced = core.process.announced_address(owner, client.local.ip());
        core.counters.moved += 1;
        return Err(CommandError::new(format!("MOVED {first} {announced}")));
    }
    let database = client.database;
    let work = Work { keys, slot: one_slot.then_some(first), database, copy, target };
    if let Some(promise) = core.promise(request.client) {
        if owner == core.number {
            work.begin(core, promise);
        } else {
            let refused = promise.clone();
            let run: Task = Box::new(move |core: &mut Core| work.begin(core, promise));
            let refuse: Task = Box::new(move |core: &mut Core| refused.fail(core, &busy_error(ScriptKind::Script)));
            core.send(owner, Message::Work(mailbox::Work { run, refuse: Some(refuse) }));
        }
    }
    Ok(Flow::Wait)
}

impl Work {
    /// Takes the values of the keys and has them sent.
    fn begin(self, core: &mut Core, promise: Promise) {
        let now_ms = core.now_ms;
        let keys = &mut core.shard.keys;
        keys.begin(self.database, now_ms, self.slot);
        let mut items = Vec::new();
        for key in &self.keys {
            if let Some(entry) = keys.find(key) {
                let (payload, deadline_ms) = (rdb::dump(entry), entry.deadline_ms());
                items.push(Item { key: key.clone(), payload, deadline_ms });
            }
        }
        if items.is_empty() {
            promise.keep(core, |reply| reply.simple("NOKEY"));
            return;
        }
        let process = Arc::clone(&core.process);
        if process.migrations.fetch_add(1, Ordering::Relaxed) >= MIGRATIONS_MAX {
            process.migrations.fetch_sub(1, Ordering::Relaxed);
            let error = CommandError::new(format!("ERR {MIGRATIONS_MAX} calls of MIGRATE are in progress, try again"));
            promise.fail(core, &error);
            return;
        }
        let owner = core.number;
        let spare = promise.clone();
        let send = {
            let process = Arc::clone(&process);
            move || {
                let transferred = transfer::send(&self.target, &items);
                process.migrations.fetch_sub(1, Ordering::Relaxed);
                let run: Task = Box::new(move |core: &mut Core| self.end(core, &items, transferred, promise));
                process.cores[owner].deliver(Message::Work(mailbox::Work { run, refuse: None }), &process.stopping);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("migrate".into()).spawn(send) {
            process.migrations.fetch_sub(1, Ordering::Relaxed);
            spare.fail(core, &CommandError::new(format!("IOERR cannot start a thread: {error}")));
        }
    }

    /// Deletes what was taken by the other server, unless it has changed, and replies.
    fn end(&self, core: &mut Core, items: &[Item], transferred: Transferred, promise: Promise) {
        let mut changed = 0;
        if !self.copy {
            let now_ms = core.now_ms;
            let taken = items.iter().zip(&transferred.taken).filter(|(_, taken)| **taken);
            for (item, _) in taken {
                let is_due = item.deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms);
                core.shard.keys.begin(self.database, now_ms, self.slot);
                let is_same = core
                    .shard
                    .keys
                    .peek(&item.key)
                    .map(|entry| entry.deadline_ms() == item.deadline_ms && rdb::dump(entry) == item.payload);
                match is_same {
                    Some(true) => core.delete_key(self.database, &item.key),
                    None if is_due => {}
                    _ => changed += 1,
                }
            }
        }
        match transferred.error {
            Some(error) => promise.fail(core, &error),
            None if changed > 0 => {
                let all = items.len();
                let error = format!(
                    "ERR {changed} of {all} keys changed here while they were sent, and were not deleted; the target has \
                     their earlier values"
                );
                promise.fail(core, &CommandError::new(error));
            }
            None => promise.keep(core, |reply| reply.ok()),
        }
    }
}
