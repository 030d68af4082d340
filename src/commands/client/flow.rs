//! `CLIENT PAUSE`, `CLIENT UNPAUSE` and `CLIENT REPLY`: whether commands are executed, and whether they are answered.

use ruvio_shard::error::CommandError;
use ruvio_shard::number;

use crate::commands::{Flow, Request};
use crate::core::Core;
use crate::core::client::Replies;
use crate::core::pause::{Pause, Paused};

/// The end of a time in ms that begins now.
fn end_ms(word: &[u8], now_ms: i64) -> Result<i64, CommandError> {
    let timeout_ms =
        number::parse_i64(word).ok_or_else(|| CommandError::new("ERR timeout is not an integer or out of range"))?;
    if timeout_ms < 0 {
        return Err(CommandError::new("ERR timeout is negative"));
    }
    now_ms.checked_add(timeout_ms).ok_or_else(|| CommandError::new("ERR timeout is out of range"))
}

/// `CLIENT PAUSE timeout [WRITE | ALL]`
pub fn pause(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    let paused = match args.len() {
        3 => Paused::All,
        4 if args.is(3, "all") => Paused::All,
        4 if args.is(3, "write") => Paused::Writes,
        4 => return Err(CommandError::new("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => {
            let name = String::from_utf8_lossy(args.at(1));
            return Err(CommandError::new(format!(
                "ERR unknown subcommand or wrong number of arguments for '{name}'. Try CLIENT HELP."
            )));
        }
    };
    let pause = Pause { paused, until_ms: end_ms(args.at(2), request.core.now_ms)? };
    let cores = request.core.process.cores.len();
    // Twice around: what a core forwarded before it paused is executed before the second visit, so once the reply is
    // there nothing changes any more.
    request.core.relay(
        request.client,
        0,
        0,
        move |core: &mut Core, visits: &mut usize| {
            if *visits < cores {
                core.pause_clients(pause);
            }
            *visits += 1;
            (*visits < 2 * cores).then_some(*visits % cores)
        },
        |_, reply| reply.ok(),
    );
    Ok(Flow::Wait)
}

/// `CLIENT UNPAUSE`
pub fn unpause(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    request.core.gather(request.client, Core::unpause_clients, |_, _: Vec<()>, reply| reply.ok());
    Ok(Flow::Wait)
}

/// `CLIENT REPLY ON | OFF | SKIP`
pub fn reply(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    if args.is(2, "on") {
        request.client().replies = Replies::Wanted;
        request.reply().ok();
    } else if args.is(2, "off") {
        request.client().replies = Replies::Unwanted;
    } else if args.is(2, "skip") {
        let client = request.client();
        if client.replies != Replies::Unwanted {
            client.replies = Replies::SkipAfterThis;
        }
    } else {
        return Err(CommandError::SYNTAX);
    }
    Ok(Flow::Done)
}
