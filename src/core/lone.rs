//! A client that is alone and sends one request after another: its core spins for the next one, because going to sleep and
//! being woken takes longer than the request.

use rustix::event::epoll;

use super::Core;
use super::client::ClientKey;

/// Turns that must have served one and the same client before the core spins for its next request.
const LONE_TURNS: u32 = 64;

/// How long it spins then, in ns: about what a lone client takes to send its next request.
const SPIN_NS: u64 = 40_000;

/// While the lone client's socket alone is read, the others are looked at this often, in ns.
const OTHERS_EVERY_NS: u64 = 100_000;

/// Where the requests of a turn came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A client of this core, by its token.
    Client(u64),
    /// A client of another core, by its token there.
    Forwarded { from: u16, token: u64 },
    /// More than one.
    Several,
}

/// Tells whether one client alone keeps the core busy.
#[derive(Default)]
pub(super) struct Lone {
    /// Who was served in the last turn in which somebody was.
    last: Option<Source>,
    /// For how many turns on end that was one alone.
    turns: u32,
    /// Who was served in this turn.
    current: Option<Source>,
    /// When all sockets were looked at, by the raw clock.
    looked_at: u64,
}

impl Lone {
    /// Takes note of requests that are served in this turn.
    #[inline]
    pub(super) fn note(&mut self, source: Source) {
        self.current = Some(if self.current.is_none() { source } else { Source::Several });
    }

    #[inline]
    pub(super) fn end_turn(&mut self) {
        let Some(current) = self.current.take() else { return };
        let is_same = current != Source::Several && self.last == Some(current);
        self.turns = if is_same { self.turns.saturating_add(1) } else { 0 };
        self.last = Some(current);
    }
}

impl Core {
    /// Spins for the next request of a client that is alone; whether there is something to do.
    pub(super) fn spin_for_lone(&mut self, events: &mut Vec<epoll::Event>) -> bool {
        if self.lone.turns < LONE_TURNS {
            return false;
        }
        let start = self.clock.raw();
        loop {
            let now = self.clock.raw();
            if let Some(Source::Client(token)) = self.lone.last
                && self.clock.delta_as_nanos(self.lone.looked_at, now) < OTHERS_EVERY_NS
                && !self.is_log_busy()
            {
                events.clear();
                if self.read_lone(ClientKey::from_token(token)) {
                    self.counters.idle_ns += self.clock.delta_as_nanos(start, now);
                    self.lone.note(Source::Client(token));
                    return true;
                }
            } else {
                self.lone.looked_at = now;
                self.poll(events, 0);
            }
            let spun_ns = self.clock.delta_as_nanos(start, now);
            let has_work = !events.is_empty() || !self.process.cores[self.number].is_empty();
            if has_work || spun_ns > SPIN_NS {
                self.counters.idle_ns += spun_ns;
                if !has_work {
                    self.lone.turns = LONE_TURNS / 2;
                }
                return has_work;
            }
        }
    }

    /// Reads from a client's socket, and serves it, without having been told that something came.
    fn read_lone(&mut self, key: ClientKey) -> bool {
        let is_read_from = self.clients.get(key).is_some_and(|client| client.is_read_from());
        if !is_read_from || self.is_log_stalled() || self.is_served_below(key) {
            return false;
        }
        self.begin_turn();
        self.read_client(key, false)
    }
}
