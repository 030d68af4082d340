//! `CLIENT TRACKING` and what belongs to it.

use std::collections::BTreeSet;

use ruvio_shard::args::Args;
use ruvio_shard::error::CommandError;
use ruvio_shard::number;

use crate::commands::{Flow, Request};
use crate::core::Core;
use crate::core::client::ClientKey;
use crate::core::tracking::{Mode, Redirection};
use crate::core::waiting::Place;

/// What `CLIENT TRACKING` asks for.
struct Asked {
    on: Option<bool>,
    mode: Mode,
    prefixes: Vec<Box<[u8]>>,
    redirect: Option<i64>,
}

impl Asked {
    /// Reads the words up to the first that is wrong. Whether the client to redirect to is there matters before what is
    /// wrong behind it, so all that was read comes with the error.
    fn parse(args: Args<'_>) -> (Asked, Result<(), CommandError>) {
        let on = if args.is(2, "on") { Some(true) } else { args.is(2, "off").then_some(false) };
        let mut asked = Asked { on, mode: Mode::default(), prefixes: Vec::new(), redirect: None };
        let mut place = 3;
        while place < args.len() {
            let value = args.get(place + 1);
            if let (true, Some(word)) = (args.is(place, "redirect"), value) {
                if asked.redirect.is_some() {
                    let text = "ERR A client can only redirect to a single other client";
                    return (asked, Err(CommandError::new(text)));
                }
                let Some(id) = number::parse_i64(word) else { return (asked, Err(CommandError::NOT_AN_INTEGER)) };
                asked.redirect = Some(id);
                place += 1;
            } else if let (true, Some(word)) = (args.is(place, "prefix"), value) {
                asked.prefixes.push(word.into());
                place += 1;
            } else {
                let mode = &mut asked.mode;
                let option = match args.at(place).to_ascii_lowercase().as_slice() {
                    b"bcast" => &mut mode.broadcast,
                    b"optin" => &mut mode.opt_in,
                    b"optout" => &mut mode.opt_out,
                    b"noloop" => &mut mode.no_loop,
                    _ => return (asked, Err(CommandError::SYNTAX)),
                };
                *option = true;
            }
            place += 1;
        }
        (asked, Ok(()))
    }

    /// The mode of a client after this that was in mode `current`, `None` for no tracking; or why that cannot be.
    fn mode_after(&self, current: Option<Mode>) -> Result<Option<Mode>, CommandError> {
        match self.on {
            None => return Err(CommandError::SYNTAX),
            Some(false) => return Ok(None),
            Some(true) => {}
        }
        let mode = self.mode;
        let before = current.unwrap_or_default();
        let refusal = if !mode.broadcast && !self.prefixes.is_empty() {
            "ERR PREFIX option requires BCAST mode to be enabled"
        } else if current.is_some() && before.broadcast != mode.broadcast {
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it \
             with a different mode."
        } else if mode.broadcast && (mode.opt_in || mode.opt_out) {
            "ERR OPTIN and OPTOUT are not compatible with BCAST"
        } else if mode.opt_in && mode.opt_out {
            "ERR You can't specify both OPTIN mode and OPTOUT mode"
        } else if (mode.opt_in && before.opt_out) || (mode.opt_out && before.opt_in) {
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it \
             with a different mode."
        } else {
            return Ok(Some(Mode { caching: before.caching, ..mode }));
        };
        Err(CommandError::new(refusal))
    }

    /// Refuses prefixes of which one is the beginning of another, or of one that the client has.
    fn check_prefixes(&self, known: Option<&BTreeSet<Box<[u8]>>>) -> Result<(), CommandError> {
        let overlap = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
        let refuse = |prefix: &[u8], what: &str, other: &[u8]| {
            let (prefix, other) = (String::from_utf8_lossy(prefix), String::from_utf8_lossy(other));
            Err(CommandError::new(format!(
                "ERR Prefix '{prefix}' overlaps with {what} '{other}'. Prefixes for a single client must not overlap."
            )))
        };
        for (place, prefix) in self.prefixes.iter().enumerate() {
            if let Some(other) = known.into_iter().flatten().find(|other| overlap(prefix, other)) {
                return refuse(prefix, "an existing prefix", other);
            }
            if let Some(other) = self.prefixes[place + 1..].iter().find(|other| overlap(prefix, other)) {
                return refuse(prefix, "another provided prefix", other);
            }
        }
        Ok(())
    }
}

/// The mode of a client after `CLIENT TRACKING` or `CLIENT CACHING` in a transaction, as far as its reads are concerned.
pub fn mode_after(name: &str, args: Args<'_>, mode: Option<Mode>) -> Option<Mode> {
    let after = match name {
        "client|tracking" => {
            let (asked, parsed) = Asked::parse(args);
            parsed.and_then(|()| asked.mode_after(mode))
        }
        "client|caching" => caching_mode(args, mode).map(Some),
        _ => return mode,
    };
    after.unwrap_or(mode)
}

pub fn tracking(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let key = request.client;
    let (asked, parsed) = Asked::parse(request.args);
    let Some(id) = asked.redirect else {
        parsed?;
        let is_done = apply(request.core, key, asked, None)?;
        if is_done {
            request.reply().ok();
        }
        return Ok(if is_done { Flow::Done } else { Flow::Wait });
    };
    request.core.gather(
        key,
        move |core| {
            let found = core.clients.iter().find(|(_, client)| u64::try_from(id) == Ok(client.id));
            found.map(|(client, state)| Redirection { id: state.id, place: Place { core: core.number, client } })
        },
        move |core, parts: Vec<Option<Redirection>>, reply| {
            let result = match parts.into_iter().flatten().next() {
                None => Err(CommandError::new("ERR The client ID you want redirect to does not exist")),
                redirection => parsed.and_then(|()| apply(core, key, asked, redirection)),
            };
            match result {
                Ok(true) => reply.ok(),
                Ok(false) => {}
                Err(error) => {
                    core.count_error(&error);
                    reply.error(&error);
                }
            }
        },
    );
    Ok(Flow::Wait)
}

/// Does what is asked for. True when that is done; else the reply comes when every core knows of it.
fn apply(
    core: &mut Core,
    key: ClientKey,
    asked: Asked,
    redirection: Option<Redirection>,
) -> Result<bool, CommandError> {
    let Some(client) = core.clients.get(key) else { return Ok(true) };
    let tracking = client.tracking.as_ref();
    let Some(mode) = asked.mode_after(tracking.map(|tracking| tracking.mode))? else {
        core.stop_tracking(key);
        return Ok(true);
    };
    let mut prefixes = BTreeSet::new();
    if mode.broadcast {
        let known = tracking.map(|tracking| &tracking.prefixes);
        asked.check_prefixes(known)?;
        prefixes.extend(known.into_iter().flatten().cloned());
        if asked.prefixes.is_empty() {
            prefixes.insert(Box::default());
        }
        prefixes.extend(asked.prefixes);
    }
    core.start_tracking(key, mode, redirection, prefixes.clone());
    if mode.broadcast {
        let place = Place { core: core.number, client: key };
        core.gather(
            key,
            move |core| core.register_prefixes(place, mode.no_loop, &prefixes),
            |_, _: Vec<()>, reply| reply.ok(),
        );
    }
    Ok(!mode.broadcast)
}

/// A client's mode after `CLIENT CACHING`.
fn caching_mode(args: Args<'_>, mode: Option<Mode>) -> Result<Mode, CommandError> {
    let refuse = |text: &'static str| Err(CommandError::new(text));
    let Some(mode) = mode else {
        return refuse(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        );
    };
    match (args.is(2, "yes"), args.is(2, "no")) {
        (true, _) if !mode.opt_in => {
            refuse("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
        }
        (_, true) if !mode.opt_out => {
            refuse("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
        }
        (false, false) => Err(CommandError::SYNTAX),
        _ => Ok(Mode { caching: true, ..mode }),
    }
}

pub fn caching(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let args = request.args;
    let tracking = request.client().tracking.as_mut();
    let mode = caching_mode(args, tracking.as_ref().map(|tracking| tracking.mode))?;
    if let Some(tracking) = tracking {
        tracking.mode = mode;
    }
    request.reply().ok();
    Ok(Flow::Done)
}

/// The number of the client that is told in place of another: 0 for none, -1 without tracking.
pub fn redirected_to(client: &crate::core::client::Client) -> i64 {
    let Some(tracking) = &client.tracking else { return -1 };
    tracking.redirection.map_or(0, |redirection| redirection.id as i64)
}

pub fn get_redirection(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let id = redirected_to(request.client());
    request.reply().integer(id);
    Ok(Flow::Done)
}

pub fn tracking_info(request: &mut Request<'_>) -> Result<Flow, CommandError> {
    let redirect = redirected_to(request.client());
    let mut flags = Vec::new();
    let mut prefixes = Vec::new();
    if let Some(tracking) = &request.client().tracking {
        let mode = tracking.mode;
        let all = [
            (true, "on"),
            (mode.broadcast, "bcast"),
            (mode.opt_in, "optin"),
            (mode.opt_in && mode.caching, "caching-yes"),
            (mode.opt_out, "optout"),
            (mode.opt_out && mode.caching, "caching-no"),
            (mode.no_loop, "noloop"),
            (tracking.is_broken, "broken_redirect"),
        ];
        flags.extend(all.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag));
        prefixes.extend(tracking.prefixes.iter().cloned());
    } else {
        flags.push("off");
    }
    let mut reply = request.reply();
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.integer(redirect);
    reply.bulk(b"prefixes");
    reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| reply.bulk(prefix));
    Ok(Flow::Done)
}
