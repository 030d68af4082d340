//! Tests of the engine with a host that answers by rote.

mod calls;
mod functions;
mod limits;
mod properties;
mod sandbox;

use std::collections::HashMap;

use super::*;
use crate::args::OwnedArgs;

/// A host whose commands reply what the test says.
#[derive(Default)]
struct FakeHost {
    /// Encoded replies by the name of the command.
    replies: HashMap<&'static str, Vec<u8>>,
    /// All words of all commands, in order.
    called: Vec<Vec<Vec<u8>>>,
    protocols: Vec<Protocol>,
    logged: Vec<(LogLevel, Vec<u8>)>,
    replications: Vec<Replication>,
    pulses: usize,
    /// The pulse at which the script is killed.
    kill_at: Option<usize>,
    panics: bool,
}

impl FakeHost {
    fn replying(replies: &[(&'static str, &[u8])]) -> FakeHost {
        let replies = replies.iter().map(|(name, reply)| (*name, reply.to_vec())).collect();
        FakeHost { replies, ..FakeHost::default() }
    }

    /// The words of the only command.
    fn only_call(&self) -> Vec<&[u8]> {
        let [words] = &self.called[..] else { panic!("{} commands", self.called.len()) };
        words.iter().map(|word| &word[..]).collect()
    }
}

impl Host for FakeHost {
    fn call(&mut self, args: Args<'_>, protocol: Protocol, reply: &mut Vec<u8>) {
        assert!(!self.panics, "a command panics");
        self.called.push(args.iter().map(<[u8]>::to_vec).collect());
        self.protocols.push(protocol);
        let known = str::from_utf8(&args[0]).ok().and_then(|name| self.replies.get(name));
        reply.extend_from_slice(known.map_or(b"-ERR unknown command\r\n", |reply| reply));
    }

    fn log(&mut self, level: LogLevel, message: &[u8]) {
        self.logged.push((level, message.to_vec()));
    }

    fn may_run(&mut self, args: Args<'_>) -> Result<bool, CommandError> {
        if args.is(0, "nope") { Err(CommandError::SYNTAX) } else { Ok(!args.is(0, "forbidden")) }
    }

    fn set_replication(&mut self, replication: Replication) {
        self.replications.push(replication);
    }

    fn pulse(&mut self) -> Pulse {
        self.pulses += 1;
        match self.kill_at {
            Some(at) if self.pulses >= at => Pulse::Kill,
            _ => Pulse::GoOn,
        }
    }
}

fn engine() -> Engine {
    Engine::new(Limits { memory_bytes: 16 << 20 }).expect("an interpreter")
}

/// Loads and runs a script; its reply, and how the run ended.
fn run_with(engine: &Engine, script: &[u8], host: &mut FakeHost, protocol: Protocol) -> (Vec<u8>, Ran) {
    let digest = Digest::of(script);
    let mut reply = Vec::new();
    if let Err(error) = engine.load(digest, script) {
        return (format!("-{error}\r\n").into_bytes(), Ran { error: Some(error), ..Ran::default() });
    }
    let keys: OwnedArgs = ["k1", "k2"].into_iter().collect();
    let arguments: OwnedArgs = ["a1", "a2", "a3"].into_iter().collect();
    let call = ScriptCall { keys: keys.as_args(), arguments: arguments.as_args(), protocol };
    let ran = engine.run(&digest, &call, host, &mut reply);
    (reply, ran)
}

/// The reply of a script in RESP2.
fn eval(script: &str) -> String {
    eval_with(&engine(), script, &mut FakeHost::default())
}

/// The same, with a given engine and host.
fn eval_with(engine: &Engine, script: &str, host: &mut FakeHost) -> String {
    String::from_utf8(run_with(engine, script.as_bytes(), host, Protocol::Resp2).0).expect("text")
}

/// The error of a script, without the part that names the script.
fn error_of(script: &str) -> String {
    error_with(&engine(), script, &mut FakeHost::default())
}

fn error_with(engine: &Engine, script: &str, host: &mut FakeHost) -> String {
    let (reply, ran) = run_with(engine, script.as_bytes(), host, Protocol::Resp2);
    let reply = String::from_utf8(reply).expect("text");
    let message = reply.strip_prefix('-').and_then(|line| line.strip_suffix("\r\n"));
    let message = message.unwrap_or_else(|| panic!("{script} replied {reply:?}"));
    assert_eq!(ran.error.as_ref().map(CommandError::text), Some(message));
    let place = format!(" script: {}, on @user_script:", Digest::of(script.as_bytes()));
    message.split(&place).next().unwrap_or_default().to_owned()
}
