//! Looking into a HyperLogLog: PFDEBUG.

use super::{check_form, replace};
use crate::args::Args;
use crate::commands::string::check_unversioned;
use crate::context::Context;
use crate::entry::{EntryRef, Kind};
use crate::error::{CommandError, CommandResult};
use crate::hyperloglog::{self, Form, HEADER_BYTES, Union};

pub(super) fn pfdebug(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let key = args.at(2);
    let Some(mut entry) = context.keys.find_mut_kind(key, Kind::String)? else {
        return Err(CommandError::new("ERR The specified key does not exist"));
    };
    let form = check_form(entry.view())?;
    let mut made_dense = false;
    if args.is(1, "getreg") {
        let mut union = Union::default();
        union.take_in(entry.view().payload())?;
        context.reply.array(union.registers().len());
        union.registers().iter().for_each(|value| context.reply.integer(i64::from(*value)));
        // As in Redis the registers are looked at where they are dense. A value with a version stays as it is.
        if form == Form::Sparse && entry.view().version().is_none() {
            let dense = hyperloglog::to_dense(entry.view().payload())?;
            replace(&mut entry, &dense);
            made_dense = true;
        }
    } else if args.is(1, "decode") {
        if form == Form::Dense {
            return Err(CommandError::new("ERR HLL encoding is not sparse"));
        }
        context.reply.bulk(spell_runs(entry.view()).as_bytes());
    } else if args.is(1, "encoding") {
        context.reply.simple(match form {
            Form::Dense => "dense",
            Form::Sparse => "sparse",
        });
    } else if args.is(1, "todense") {
        if form == Form::Sparse {
            check_unversioned(entry.view())?;
            let dense = hyperloglog::to_dense(entry.view().payload())?;
            replace(&mut entry, &dense);
            made_dense = true;
        }
        context.reply.integer(i64::from(made_dense));
    } else {
        let name = String::from_utf8_lossy(args.at(1));
        return Err(CommandError::new(format!("ERR Unknown PFDEBUG subcommand '{name}'")));
    }
    drop(entry);
    if made_dense {
        context.keys.changed_without_event(key);
    }
    Ok(())
}

/// The runs of a sparse sketch: `z:length` and `Z:length` for zeros in one byte and in two, `v:value,length`.
fn spell_runs(entry: EntryRef<'_>) -> String {
    let spelled = hyperloglog::runs(&entry.payload()[HEADER_BYTES..]).map(|run| match (run.value, run.is_long) {
        (0, false) => format!("z:{}", run.len),
        (0, true) => format!("Z:{}", run.len),
        (value, _) => format!("v:{value},{}", run.len),
    });
    spelled.collect::<Vec<_>>().join(" ")
}
