//! HyperLogLogs.

mod count;
mod debug;
mod self_test;

use crate::args::Args;
use crate::command::{Categories, Command, Flags, Group, Handler, KeyFlags, KeySpec, Spec};
use crate::commands::string::check_unversioned;
use crate::commands::string::edit::open_for_editing;
use crate::context::Context;
use crate::entry::{Encoding, Entry, EntryRef, Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::hyperloglog::{self, Change, Corrupt, Form, Sketch};

const READ_WRITE_ACCESS: KeyFlags = KeyFlags::READ_WRITE.and(KeyFlags::ACCESS);
const WRITE_OOM: Flags = Flags::WRITE.and(Flags::DENY_OOM);

/// What the commands of the family have in common.
const fn command(
    (name, arity, flags): (&'static str, i32, Flags),
    keys: &'static [KeySpec],
    complexity: &'static str,
    summary: &'static str,
    syntax: &'static str,
    run: Handler,
) -> Command {
    let (categories, group, since) = (Categories::HYPERLOGLOG, Group::HyperLogLog, "2.8.9");
    Command { spec: Spec { name, arity, flags, keys, categories, group, since, complexity, summary, syntax }, run }
}

/// The family's commands.
pub static COMMANDS: &[Command] = &[
    command(
        ("pfadd", -2, WRITE_OOM.and(Flags::FAST)),
        &[KeySpec::one(1, KeyFlags::READ_WRITE.and(KeyFlags::INSERT))],
        "O(1) for each element.",
        "Adds elements to a HyperLogLog, or creates it.",
        "key [element [element ...]]",
        pfadd,
    ),
    command(
        ("pfcount", -2, Flags::READ_ONLY),
        &[KeySpec::to_end(1, 1, READ_WRITE_ACCESS)],
        "O(1) with one key and a very small constant; O(N) with N keys and a much larger one.",
        "Estimates how many different elements were added to HyperLogLogs, taken together.",
        "key [key ...]",
        count::pfcount,
    ),
    command(
        ("pfmerge", -2, WRITE_OOM),
        &[
            KeySpec::one(1, READ_WRITE_ACCESS.and(KeyFlags::INSERT)),
            KeySpec::to_end(2, 1, KeyFlags::READ.and(KeyFlags::ACCESS)),
        ],
        "O(N) for N HyperLogLogs, with a large constant.",
        "Adds to a HyperLogLog all that was added to others.",
        "destkey [sourcekey [sourcekey ...]]",
        count::pfmerge,
    ),
    command(
        ("pfdebug", 3, WRITE_OOM.and(Flags::ADMIN)),
        &[KeySpec::one(2, READ_WRITE_ACCESS)],
        "O(1), with a large constant.",
        "Shows how a HyperLogLog is represented, or makes it dense.",
        "<GETREG | DECODE | ENCODING | TODENSE> key",
        debug::pfdebug,
    ),
    command(
        ("pfselftest", 1, Flags::ADMIN),
        &[],
        "O(1), but it takes seconds.",
        "Tests the registers and the estimates of HyperLogLogs.",
        "",
        self_test::pfselftest,
    ),
];

impl From<Corrupt> for CommandError {
    fn from(_: Corrupt) -> CommandError {
        CommandError::new("INVALIDOBJ Corrupted HLL object detected")
    }
}

/// The form of a string that is a HyperLogLog.
#[inline]
fn check_form(entry: EntryRef<'_>) -> Result<Form, CommandError> {
    let form = if entry.encoding().is_integer() { None } else { hyperloglog::form(entry.payload()) };
    form.ok_or(CommandError::new("WRONGTYPE Key is not a valid HyperLogLog string value."))
}

/// Replaces the whole of a HyperLogLog.
fn replace(entry: &mut Entry, sketch: &[u8]) {
    entry.set_payload(Encoding::EditedBytes, &[sketch]);
}

/// A new entry.
fn new_entry(header: Header<'_>, sketch: &Sketch) -> Entry {
    Entry::new(header, Encoding::EditedBytes, &[sketch.bytes()])
}

fn pfadd(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let longest_sparse = context.keys.settings.hll_sparse_max_bytes;
    let elements = args.from(2);
    let changed = if let Some(mut entry) = context.keys.find_mut_kind(key, Kind::String)? {
        let form = check_form(entry.view())?;
        check_unversioned(entry.view())?;
        open_for_editing(&mut entry);
        match form {
            Form::Dense => {
                let sketch = entry.payload_mut();
                let changes = elements.iter().filter(|element| hyperloglog::add_to_dense(sketch, element)).count();
                if changes > 0 {
                    hyperloglog::discard_estimate(sketch);
                }
                changes > 0
            }
            Form::Sparse if elements.len() == 1 => add_to_sparse(&mut entry, elements.at(0), longest_sparse)?,
            // Beside the entry, so that nothing has changed when one of the later elements shows that it is corrupt.
            Form::Sparse => {
                let mut sketch = Sketch::copy_of(entry.view().payload());
                let changed = add_all(&mut sketch, elements, longest_sparse)?;
                if changed {
                    replace(&mut entry, sketch.bytes());
                }
                changed
            }
        }
    } else {
        let mut sketch = Sketch::default();
        add_all(&mut sketch, elements, longest_sparse)?;
        sketch.discard_estimate();
        let header = Header { key, access: context.keys.new_access(), ..Header::default() };
        context.keys.add(new_entry(header, &sketch));
        true
    };
    if changed {
        context.keys.changed(Class::String, "pfadd", key);
    }
    context.reply.integer(i64::from(changed));
    Ok(())
}

/// Adds elements; whether that changed anything.
fn add_all(sketch: &mut Sketch, elements: Args<'_>, longest_sparse: usize) -> Result<bool, Corrupt> {
    let mut changed = false;
    for element in elements.iter() {
        changed |= sketch.add(element, longest_sparse)?;
    }
    Ok(changed)
}

/// Adds one element to a sparse sketch where it is; whether that changed it.
#[inline]
fn add_to_sparse(entry: &mut Entry, element: &[u8], longest_sparse: usize) -> Result<bool, Corrupt> {
    match hyperloglog::plan_addition(entry.view().payload(), element, longest_sparse)? {
        Change::None => return Ok(false),
        Change::Splice(range, replacement) => entry.splice(range, &replacement),
        Change::Whole(sketch) => replace(entry, &sketch),
    }
    hyperloglog::discard_estimate(entry.payload_mut());
    Ok(true)
}
