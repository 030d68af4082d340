//! `SSCAN`.

use crate::args::Args;
use crate::commands::scan_options::ScanOptions;
use crate::commands::set::reply_member;
use crate::context::Context;
use crate::entry::Kind;
use crate::error::CommandResult;
use crate::packed::IntBuffer;
use crate::scan::parse_cursor;
use crate::set::SetRef;

pub(super) fn sscan(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let cursor = parse_cursor(args.at(2))?;
    let Some(set) = context.keys.find_kind(args.at(1), Kind::Set)?.and_then(SetRef::new) else {
        context.reply.array(2);
        context.reply.bulk_integer(0);
        context.reply.array(0);
        return Ok(());
    };
    let options = ScanOptions::parse(args.from(3), "SSCAN")?;
    let reply = &mut context.reply;
    reply.array(2);
    match set {
        SetRef::Large(large) => {
            let mut members = Vec::new();
            let next = large.scan(cursor, options.count, |member| members.push(member));
            members.retain(|member| options.matches(member));
            // Positions have far fewer bits than an integer.
            reply.bulk_integer(next.map_or(0, |next| next as i64));
            reply.array(members.len());
            for member in members {
                reply.bulk(member);
            }
        }
        _ => {
            reply.bulk_integer(0);
            let place = reply.begin_array();
            let mut members = 0;
            for member in set.iter().filter(|member| options.matches(member.as_bytes(&mut IntBuffer::new()))) {
                reply_member(reply, member);
                members += 1;
            }
            reply.end(place, members);
        }
    }
    Ok(())
}
