//! Checkpoints on demand: `SAVE`, `BGSAVE`, `BGREWRITEAOF` and `LASTSAVE`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ruvio_shard::command::{Categories, Flags, Group, Spec};
use ruvio_shard::error::CommandError;

use super::{Flow, Request, Run, ServerCommand};
use crate::core::Core;

const ADMIN: Flags = Flags::ADMIN.and(Flags::NO_SCRIPT);

/// The family's commands.
pub static COMMANDS: &[ServerCommand] = &[
    command(
        ("save", 1, ADMIN.and(Flags::NO_MULTI)),
        ("1.0.0", "O(N) where N is the number of all keys"),
        "Makes a checkpoint of every shard, and answers when all are on stable storage.",
        "",
        save,
    ),
    command(
        ("bgsave", -1, ADMIN),
        ("1.0.0", "O(1)"),
        "Has a checkpoint of every shard made in the background.",
        "[SCHEDULE]",
        background_save,
    ),
    command(
        ("bgrewriteaof", 1, ADMIN),
        ("1.0.0", "O(1)"),
        "Has a checkpoint of every shard made in the background, after which older parts of the log are removed.",
        "",
        rewrite_log,
    ),
    command(
        ("lastsave", 1, Flags::LOADING.and(Flags::STALE).and(Flags::FAST)),
        ("1.0.0", "O(1)"),
        "Returns when the last checkpoint was ended.",
        "",
        last_save,
    ),
];

const fn command(
    (name, arity, flags): (&'static str, i32, Flags),
    (since, complexity): (&'static str, &'static str),
    summary: &'static str,
    syntax: &'static str,
    run: Run,
) -> ServerCommand {
    let (categories, group) = (Categories::ADMIN.and(Categories::DANGEROUS), Group::Server);
    let spec = Spec { name, arity, flags, keys: &[], categories, group, since, complexity, summary, syntax };
    ServerCommand { spec, run: Some(run) }
}

/// The error where no data is kept.
fn check_durability(request: &Request<'_>) -> Result<(), CommandError> {
    match request.core.process.data {
        Some(_) => Ok(()),
        None => Err(CommandError::new(
            "ERR nothing is saved with durability 'memory'; start with --durability everysec or always",
        )),
    }
}

fn save(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    check_durability(request)?;
    let Some(promise) = request.core.promise(request.client) else { return Ok(Flow::Wait) };
    let left = Arc::new(AtomicUsize::new(request.core.process.cores.len()));
    let failure: Arc<Mutex<Option<String>>> = Arc::default();
    request.core.broadcast(move |core: &mut Core| {
        let (promise, left, failure) = (promise.clone(), Arc::clone(&left), Arc::clone(&failure));
        core.want_checkpoint(Some(Box::new(move |core: &mut Core, result| {
            let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(problem) = result {
                failure.get_or_insert_with(|| problem.clone());
            }
            if left.fetch_sub(1, Ordering::AcqRel) > 1 {
                return;
            }
            match failure.take() {
                None => promise.keep(core, |reply| reply.ok()),
                Some(problem) => promise.fail(core, &CommandError::new(format!("ERR {problem}"))),
            }
        })));
    });
    Ok(Flow::Wait)
}

fn begin_everywhere(request: &mut Request<'_>, reply: &'static str) -> Result<Flow, CommandError> {
    check_durability(request)?;
    request.core.gather(
        request.client,
        |core| {
            let is_busy = core.makes_checkpoint();
            core.want_checkpoint(None);
            is_busy
        },
        move |core, busy: Vec<bool>, out| {
            if busy.into_iter().all(|is_busy| is_busy) {
                let error = CommandError::new("ERR Background save already in progress");
                core.count_error(&error);
                out.error(&error);
            } else {
                out.simple(reply);
            }
        },
    );
    Ok(Flow::Wait)
}

fn background_save(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    if request.args.len() > 2 || request.args.len() == 2 && !request.args.is(1, "schedule") {
        return Err(CommandError::SYNTAX);
    }
    begin_everywhere(request, "Background saving started")
}

fn rewrite_log(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    begin_everywhere(request, "Background append only file rewriting started")
}

fn last_save(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let last_save_s = request.core.process.last_save_s.load(Ordering::Relaxed);
    request.reply().integer(last_save_s as i64);
    Ok(Flow::Done)
}
