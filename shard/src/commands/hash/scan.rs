//! `HSCAN`.

use super::{Args, reply_element};
use crate::commands::scan_options::ScanOptions;
use crate::context::Context;
use crate::error::CommandResult;
use crate::number::{self, IntBuffer};
use crate::scan::parse_cursor;

pub(super) fn hscan(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let cursor = parse_cursor(args.at(2))?;
    let Some(hash) = context.keys.find_hash(args.at(1), [])? else {
        // Redis does not look at the options then.
        context.reply.array(2);
        context.reply.bulk(b"0");
        context.reply.array(0);
        return Ok(());
    };
    let options = ScanOptions::parse(args.from(3), "HSCAN")?;
    let mut found = Vec::new();
    let next = hash.scan(cursor, options.count, |field, value| {
        if options.matches(field.as_bytes(&mut IntBuffer::new())) {
            found.push((field, value));
        }
    });
    let reply = &mut context.reply;
    reply.array(2);
    let mut text = Vec::with_capacity(20);
    // Cursors have fewer bits than an `i64`.
    number::write_i64(next as i64, &mut text);
    reply.bulk(&text);
    reply.array(if options.bare { found.len() } else { found.len() * 2 });
    for (field, value) in found {
        reply_element(reply, field);
        if !options.bare {
            reply_element(reply, value);
        }
    }
    Ok(())
}
