//! `LINDEX`, `LLEN`, `LPOS` and `LRANGE`.

use crate::args::Args;
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::list::{End, ListRef, Wanted};
use crate::number::parse_i64;

use super::{integer, reply_element, resolve, resolve_range};

pub(super) fn lindex(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let Some(entry) = context.keys.find_kind(args.at(1), Kind::List)? else {
        context.reply.null();
        return Ok(());
    };
    let list = ListRef::of(entry);
    let index = integer(args.at(2))?;
    match resolve(index, list.len()).and_then(|index| list.get(index)) {
        Some(element) => reply_element(&mut context.reply, element),
        None => context.reply.null(),
    }
    Ok(())
}

pub(super) fn llen(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let len = context.keys.find_kind(args.at(1), Kind::List)?.map_or(0, |entry| ListRef::of(entry).len());
    context.reply.count(len);
    Ok(())
}

pub(super) fn lrange(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let (start, stop) = (integer(args.at(2))?, integer(args.at(3))?);
    let Some(entry) = context.keys.find_kind(args.at(1), Kind::List)? else {
        context.reply.array(0);
        return Ok(());
    };
    let list = ListRef::of(entry);
    let range = resolve_range(start, stop, list.len());
    context.reply.array(range.len());
    for element in list.walk(End::Left, range.start).take(range.len()) {
        reply_element(&mut context.reply, element);
    }
    Ok(())
}

/// The options of `LPOS`.
struct Search {
    from: End,
    /// Matches to pass over.
    skip: u64,
    /// Matches to reply; none: a single one, not as an array.
    count: Option<usize>,
    /// Elements to look at.
    most: usize,
}

impl Search {
    fn parse(options: Args<'_>) -> Result<Search, CommandError> {
        let mut search = Search { from: End::Left, skip: 0, count: None, most: usize::MAX };
        let mut at = 0;
        while at < options.len() {
            let value = options.get(at + 1).ok_or(CommandError::SYNTAX)?;
            if options.is(at, "RANK") {
                let rank = super::symmetric_integer(value)?;
                if rank == 0 {
                    return Err(CommandError::new(
                        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use \
                         negative to start from the end of the list",
                    ));
                }
                search.from = if rank > 0 { End::Left } else { End::Right };
                search.skip = rank.unsigned_abs() - 1;
            } else if options.is(at, "COUNT") {
                search.count = Some(not_negative(value, "ERR COUNT can't be negative")?);
            } else if options.is(at, "MAXLEN") {
                search.most = not_negative(value, "ERR MAXLEN can't be negative")?;
            } else {
                return Err(CommandError::SYNTAX);
            }
            at += 2;
        }
        if search.most == 0 {
            search.most = usize::MAX;
        }
        Ok(search)
    }
}

fn not_negative(word: &[u8], error: &'static str) -> Result<usize, CommandError> {
    parse_i64(word).and_then(|value| usize::try_from(value).ok()).ok_or(CommandError::new(error))
}

pub(super) fn lpos(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let search = Search::parse(args.from(3))?;
    let wanted = Wanted::new(args.at(2));
    let reply = &mut context.reply;
    let Some(entry) = context.keys.find_kind(args.at(1), Kind::List)? else {
        match search.count {
            Some(_) => reply.array(0),
            None => reply.null(),
        }
        return Ok(());
    };
    let list = ListRef::of(entry);
    let len = list.len();
    let mut skip = search.skip;
    let mut matches = list.walk(search.from, 0).take(search.most).enumerate().filter_map(|(step, element)| {
        if !wanted.is(element) {
            return None;
        }
        if skip > 0 {
            skip -= 1;
            return None;
        }
        Some(if search.from == End::Left { step } else { len - 1 - step })
    });
    match search.count {
        None => match matches.next() {
            Some(index) => reply.count(index),
            None => reply.null(),
        },
        Some(count) => {
            let array = reply.begin_array();
            let mut found = 0;
            for index in matches.take(if count == 0 { usize::MAX } else { count }) {
                reply.count(index);
                found += 1;
            }
            reply.end(array, found);
        }
    }
    Ok(())
}
