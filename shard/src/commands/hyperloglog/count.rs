//! Estimates and unions: PFCOUNT and PFMERGE.

use super::{check_form, new_entry, replace};
use crate::args::Args;
use crate::commands::string::edit::open_for_editing;
use crate::commands::string::{check_unversioned, count_read};
use crate::context::Context;
use crate::entry::{Entry, Header, Kind};
use crate::error::{CommandError, CommandResult};
use crate::events::Class;
use crate::hyperloglog::{self, Sketch, Union};
use crate::keys::Keys;

pub(super) fn pfcount(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let estimate = if args.len() > 2 {
        union(context.keys, args.from(1))?.estimate()
    } else {
        let (estimate, is_noted) = count_one(context.keys, args.at(1))?;
        if is_noted {
            context.keys.changed_without_event(args.at(1));
        }
        estimate
    };
    context.reply.integer(estimate as i64);
    Ok(())
}

/// The estimate of the HyperLogLog of a key, and whether it was noted there.
fn count_one(keys: &mut Keys, key: &[u8]) -> Result<(u64, bool), CommandError> {
    let Some(mut entry) = keys.find_mut(key) else {
        count_read(keys, key, false);
        return Ok((0, false));
    };
    let counted = count_entry(&mut entry);
    drop(entry);
    count_read(keys, key, true);
    counted
}

fn count_entry(entry: &mut Entry) -> Result<(u64, bool), CommandError> {
    if entry.view().kind() != Kind::String {
        return Err(CommandError::WRONG_TYPE);
    }
    check_form(entry.view())?;
    let sketch = entry.view().payload();
    if let Some(estimate) = hyperloglog::cached_estimate(sketch) {
        return Ok((estimate, false));
    }
    let estimate = hyperloglog::estimate(sketch)?;
    // A value with a version is never changed in place.
    let is_noted = entry.view().version().is_none();
    if is_noted {
        open_for_editing(entry);
        hyperloglog::cache_estimate(entry.payload_mut(), estimate);
    }
    Ok((estimate, is_noted))
}

/// What the HyperLogLogs of several keys have seen together.
fn union(keys: &mut Keys, names: Args<'_>) -> Result<Union, CommandError> {
    let mut union = Union::default();
    for key in names.iter() {
        if let Some(entry) = keys.find_kind(key, Kind::String)? {
            check_form(entry)?;
            union.take_in(entry.payload())?;
        }
    }
    Ok(union)
}

pub(super) fn pfmerge(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(1);
    let longest_sparse = context.keys.settings.hll_sparse_max_bytes;
    let union = union(context.keys, args.from(1))?;
    if let Some(mut entry) = context.keys.find_mut_kind(key, Kind::String)? {
        check_unversioned(entry.view())?;
        let mut sketch = Sketch::copy_of(entry.view().payload());
        sketch.add_all(&union, longest_sparse)?;
        sketch.discard_estimate();
        replace(&mut entry, sketch.bytes());
    } else {
        let mut sketch = Sketch::default();
        sketch.add_all(&union, longest_sparse)?;
        sketch.discard_estimate();
        let header = Header { key, access: context.keys.new_access(), ..Header::default() };
        context.keys.add(new_entry(header, &sketch));
    }
    context.keys.changed(Class::String, "pfadd", key);
    context.reply.ok();
    Ok(())
}
