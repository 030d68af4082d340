//! Commands that speak for the whole process: every core does its part, the client's core puts the reply together.

use std::any::Any;
use std::sync::Arc;

use ruvio_shard::error::CommandError;
use ruvio_shard::reply::{Protocol, Reply};

use super::Core;
use super::client::{ClientKey, Piece};
use super::mailbox::{Message, Task, Work};
use super::script::ScriptKind;
use super::script::beside::busy_error;

/// A part, whatever its type.
type Part = Box<dyn Any + Send>;

/// Puts the parts together, in the order of the cores.
type Merge = Box<dyn FnOnce(&mut Core, Vec<Part>, &mut Vec<u8>)>;

/// A reply in the making.
pub struct Gathering {
    client: ClientKey,
    parts: Vec<Option<Part>>,
    missing: usize,
    merge: Merge,
}

/// A reply that a client waits for, see [`Core::promise`]. It can be kept on any core; only the first time counts.
#[derive(Clone)]
#[must_use = "the client waits for it"]
pub struct Promise {
    home: usize,
    number: u64,
    protocol: Protocol,
}

impl Promise {
    /// Gives the client the reply that `write` writes.
    pub fn keep(self, core: &mut Core, write: impl FnOnce(&mut Reply<'_>)) {
        let Promise { home, number, protocol } = self;
        let mut encoded = Vec::new();
        write(&mut Reply::new(&mut encoded, protocol));
        if home == core.number {
            core.add_part(number, 0, Box::new(encoded));
        } else {
            let settle: Task = Box::new(move |core: &mut Core| core.add_part(number, 0, Box::new(encoded)));
            core.send(home, Message::Task(settle));
        }
    }

    /// Gives the client an error, and counts it on this core.
    pub fn fail(self, core: &mut Core, error: &CommandError) {
        core.count_error(error);
        self.keep(core, |reply| reply.error(error));
    }
}

/// Puts encoded parts together as they are.
fn join(_: &mut Core, parts: Vec<Part>, out: &mut Vec<u8>) {
    for part in parts {
        if let Ok(encoded) = part.downcast::<Vec<u8>>() {
            out.extend_from_slice(&encoded);
        }
    }
}

impl Core {
    /// Has every core do `work` and then replies to `client` what `merge` makes of the results, which come in the order
    /// of the cores. The client's commands before this one are executed before it on every core, and its later ones
    /// wait for the reply.
    pub fn gather<P: Send + 'static>(
        &mut self,
        client: ClientKey,
        work: impl Fn(&mut Core) -> P + Send + Sync + 'static,
        merge: impl FnOnce(&mut Core, Vec<P>, &mut Reply<'_>) + 'static,
    ) {
        self.gather_from(client, false, work, merge);
    }

    /// As [`Core::gather`], for work with keys, which waits where a script runs.
    pub fn gather_work<P: Send + 'static>(
        &mut self,
        client: ClientKey,
        work: impl Fn(&mut Core) -> P + Send + Sync + 'static,
        merge: impl FnOnce(&mut Core, Vec<P>, &mut Reply<'_>) + 'static,
    ) {
        self.gather_from(client, true, work, merge);
    }

    fn gather_from<P: Send + 'static>(
        &mut self,
        client: ClientKey,
        waits_for_scripts: bool,
        work: impl Fn(&mut Core) -> P + Send + Sync + 'static,
        merge: impl FnOnce(&mut Core, Vec<P>, &mut Reply<'_>) + 'static,
    ) {
        if client == ClientKey::SCRIPT {
            let part = work(self);
            return self.reply_to_script(|core, reply| merge(core, vec![part], reply));
        }
        let Some(state) = self.clients.get_mut(client) else { return };
        let protocol = state.protocol;
        let number = self.next_gathering;
        self.next_gathering += 1;
        state.pieces.push_back(Piece::Gathering(number));
        state.waiting = true;
        let cores = self.process.cores.len();
        let merge = move |core: &mut Core, parts: Vec<Part>, out: &mut Vec<u8>| {
            let parts: Vec<P> = parts.into_iter().filter_map(|part| part.downcast().ok()).map(|part| *part).collect();
            merge(core, parts, &mut Reply::new(out, protocol));
        };
        self.gatherings.insert(
            number,
            Gathering { client, parts: (0..cores).map(|_| None).collect(), missing: cores, merge: Box::new(merge) },
        );
        let work = Arc::new(work);
        let home = self.number;
        for other in (0..cores).filter(|&other| other != home) {
            let work = Arc::clone(&work);
            let task: Task = Box::new(move |core: &mut Core| {
                let log_before = core.log_end();
                let part: Part = Box::new(work(core));
                let from = core.number;
                core.send_reply(
                    home,
                    log_before,
                    Message::Task(Box::new(move |core: &mut Core| core.add_part(number, from, part))),
                );
            });
            let message = if waits_for_scripts {
                Message::Work(Work { run: task, refuse: Some(refusal(home, number)) })
            } else {
                Message::Task(task)
            };
            self.send(other, message);
        }
        let log_before = self.log_end();
        let part = Box::new(work(self));
        self.await_log(client, log_before);
        self.add_part(number, home, part);
    }

    /// Refuses a client for which a core that runs a script has no part.
    fn refuse_part(&mut self, number: u64, kind: ScriptKind) {
        let Some(gathering) = self.gatherings.remove(&number) else { return };
        let error = busy_error(kind);
        self.count_error(&error);
        if let Some(client) = self.clients.get_mut(gathering.client) {
            let mut encoded = Vec::new();
            Reply::new(&mut encoded, client.protocol).error(&error);
            client.settle_gathering(number, encoded);
            client.waiting = client.gathers() || client.execution.is_some();
            self.want_flush(gathering.client);
            self.want_resume(gathering.client);
        }
    }

    fn add_part(&mut self, number: u64, from: usize, part: Part) {
        let Some(gathering) = self.gatherings.get_mut(&number) else { return };
        if gathering.parts[from].replace(part).is_none() {
            gathering.missing -= 1;
        }
        if gathering.missing > 0 {
            return;
        }
        let Some(gathering) = self.gatherings.remove(&number) else { return };
        let mut encoded = Vec::new();
        (gathering.merge)(self, gathering.parts.into_iter().flatten().collect(), &mut encoded);
        if let Some(client) = self.clients.get_mut(gathering.client) {
            client.settle_gathering(number, encoded);
            client.waiting = client.gathers() || client.execution.is_some();
            self.want_flush(gathering.client);
            self.want_resume(gathering.client);
        }
    }

    /// Has every core do `work`, without a reply and without waiting.
    pub fn broadcast(&mut self, work: impl Fn(&mut Core) + Send + Sync + 'static) {
        let work = Arc::new(work);
        let home = self.number;
        for other in (0..self.process.cores.len()).filter(|&other| other != home) {
            let work = Arc::clone(&work);
            self.send(other, Message::Task(Box::new(move |core: &mut Core| work(core))));
        }
        work(self);
    }

    /// Has core `target` do `work` and then replies to `client` what it wrote. Like [`Core::gather`], for one core.
    pub fn ask(
        &mut self,
        client: ClientKey,
        target: usize,
        work: impl FnOnce(&mut Core, &mut Reply<'_>) + Send + 'static,
    ) {
        let Some(state) = self.clients.get_mut(client) else { return };
        let protocol: Protocol = state.protocol;
        let number = self.next_gathering;
        self.next_gathering += 1;
        state.pieces.push_back(Piece::Gathering(number));
        state.waiting = true;
        self.gatherings.insert(number, Gathering { client, parts: vec![None], missing: 1, merge: Box::new(join) });
        let run = move |core: &mut Core| -> Part {
            let mut encoded = Vec::new();
            work(core, &mut Reply::new(&mut encoded, protocol));
            Box::new(encoded)
        };
        if target == self.number {
            let part = run(self);
            self.add_part(number, 0, part);
            return;
        }
        let home = self.number;
        self.send(
            target,
            Message::Task(Box::new(move |core: &mut Core| {
                let part = run(core);
                core.send(home, Message::Task(Box::new(move |core: &mut Core| core.add_part(number, 0, part))));
            })),
        );
    }

    /// Owes `client` a reply that comes from elsewhere, later; until then its next commands wait. None when the client is
    /// gone.
    pub fn promise(&mut self, client: ClientKey) -> Option<Promise> {
        let state = self.clients.get_mut(client)?;
        let number = self.next_gathering;
        self.next_gathering += 1;
        state.pieces.push_back(Piece::Gathering(number));
        state.waiting = true;
        let promise = Promise { home: self.number, number, protocol: state.protocol };
        self.gatherings.insert(number, Gathering { client, parts: vec![None], missing: 1, merge: Box::new(join) });
        Some(promise)
    }

    /// Has cores do `work` one after another, from core `first` on, and then replies to `client` what `finish` makes of
    /// the state they pass on. `work` returns the core to go on with, or `None` at the end. Otherwise like
    /// [`Core::gather`].
    pub fn relay<S: Send + 'static>(
        &mut self,
        client: ClientKey,
        first: usize,
        state: S,
        work: impl Fn(&mut Core, &mut S) -> Option<usize> + Send + 'static,
        finish: impl FnOnce(S, &mut Reply<'_>) + 'static,
    ) {
        if client == ClientKey::SCRIPT {
            let mut state = state;
            let own = self.number;
            while work(self, &mut state) == Some(own) {}
            return self.reply_to_script(|_, reply| finish(state, reply));
        }
        let Some(waiting) = self.clients.get_mut(client) else { return };
        let protocol = waiting.protocol;
        let number = self.next_gathering;
        self.next_gathering += 1;
        waiting.pieces.push_back(Piece::Gathering(number));
        waiting.waiting = true;
        let merge: Merge = Box::new(move |_, parts, out| {
            if let Some(state) = parts.into_iter().find_map(|part| part.downcast().ok()) {
                finish(*state, &mut Reply::new(out, protocol));
            }
        });
        self.gatherings.insert(number, Gathering { client, parts: vec![None], missing: 1, merge });
        let home = self.number;
        hand_over(self, first, Leg { home, number, state, work });
    }
}

/// What a core does that runs a script instead of its part of gathering `number` of core `home`.
fn refusal(home: usize, number: u64) -> Task {
    Box::new(move |core: &mut Core| {
        let kind = core.running_script().map_or(ScriptKind::Script, |running| running.kind);
        let refuse: Task = Box::new(move |core: &mut Core| core.refuse_part(number, kind));
        core.send(home, Message::Task(refuse));
    })
}

/// What travels from core to core in [`Core::relay`].
struct Leg<S, W> {
    home: usize,
    number: u64,
    state: S,
    work: W,
}

/// Has core `target` go on.
fn hand_over<S, W>(core: &mut Core, target: usize, leg: Leg<S, W>)
where
    S: Send + 'static,
    W: Fn(&mut Core, &mut S) -> Option<usize> + Send + 'static,
{
    if target == core.number {
        run_leg(core, leg);
    } else {
        let refuse = Some(refusal(leg.home, leg.number));
        core.send(target, Message::Work(Work { run: Box::new(move |core: &mut Core| run_leg(core, leg)), refuse }));
    }
}

fn run_leg<S, W>(core: &mut Core, mut leg: Leg<S, W>)
where
    S: Send + 'static,
    W: Fn(&mut Core, &mut S) -> Option<usize> + Send + 'static,
{
    if let Some(next) = (leg.work)(core, &mut leg.state) {
        return hand_over(core, next, leg);
    }
    let (home, number, part): (usize, u64, Part) = (leg.home, leg.number, Box::new(leg.state));
    if home == core.number {
        core.add_part(number, 0, part);
    } else {
        core.send(home, Message::Task(Box::new(move |core: &mut Core| core.add_part(number, 0, part))));
    }
}
