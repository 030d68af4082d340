//! A client connection, as its core holds it.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use ruvio_shard::command::Flags;
use ruvio_shard::reply::Protocol;

use super::serve::{RESUMED_PIECES, RESUMED_UNSENT};
use super::subscriptions::Subscriptions;
use super::tracking::Tracking;
use super::transaction::{Execution, KeyPlace, Queue};
use super::waiting::DatabaseKey;
use crate::configuration::OutputClass;
use crate::registry::{Registered, Run};
use crate::wire::Progress;

/// Bytes of a buffer that a client keeps when it is empty, or that are not worth moving.
const KEPT_BYTES: usize = 64 << 10;

/// Bytes of output that no limit is for: as much as Redis keeps of it beside the list that it limits.
pub const UNCOUNTED_OUTPUT: usize = 16 << 10;

/// What the first reply of another core is reckoned to have, in bytes, and by which part of the difference a smaller one
/// brings that down.
const FIRST_RECKONED_BYTES: usize = 256 << 10;
const RECKONED_FALL: usize = 32;

/// Names a client on its core; the generation tells a client from earlier ones in the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientKey {
    /// Place in the core's list.
    pub index: u32,
    /// Which client of that place.
    pub generation: u32,
}

impl ClientKey {
    /// Stands for the script that runs on a core, which is no client.
    pub const SCRIPT: ClientKey = ClientKey { index: u32::MAX, generation: u32::MAX };

    /// As the user data of an epoll event.
    #[inline]
    pub fn to_token(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// From the user data of an epoll event.
    #[inline]
    pub fn from_token(token: u64) -> ClientKey {
        ClientKey { index: token as u32, generation: (token >> 32) as u32 }
    }
}

/// The port that a client came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// The shared port: commands for other cores are forwarded.
    Shared,
    /// The shard's own port: commands for other cores are answered `MOVED`.
    Shard,
}

/// Part of what is owed to a client behind a reply that has not come yet, in order.
#[derive(Debug)]
pub enum Piece {
    /// This many bytes of [`Client::held`].
    Held(usize),
    /// A reply that core `0` owes.
    Owed(u16),
    /// A reply that came before an earlier one.
    Early(Vec<u8>),
    /// A reply that is put together from several cores.
    Gathering(u64),
    /// As [`Piece::Owed`], of a reply that is not sent.
    OwedUnwanted(u16),
    /// As [`Piece::Gathering`], of a reply that is not sent.
    GatheringUnwanted(u64),
}

impl Piece {
    /// The core that owes the reply.
    #[inline]
    fn owed_by(&self) -> Option<u16> {
        match self {
            Piece::Owed(core) | Piece::OwedUnwanted(core) => Some(*core),
            _ => None,
        }
    }
}

/// Which replies the client is sent (`CLIENT REPLY`). Pushes are sent in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replies {
    /// Every one.
    #[default]
    Wanted,
    /// None.
    Unwanted,
    /// None for the next command.
    SkipAfterThis,
    /// None for the command in progress.
    Skip,
}

/// A connection and its state.
pub struct Client {
    /// The socket.
    pub socket: OwnedFd,
    /// Process-wide number, as `CLIENT ID` says it.
    pub id: u64,
    /// How it came in.
    pub door: Door,
    /// Its address.
    pub peer: SocketAddr,
    /// The address it connected to.
    pub local: SocketAddr,
    /// What was read and not executed yet.
    pub input: Vec<u8>,
    /// How far `input` is parsed.
    pub progress: Progress,
    /// Replies to be sent, in order.
    pub output: Vec<u8>,
    /// How many bytes of `output` are sent.
    pub sent: usize,
    /// Replies that wait behind `pieces`.
    pub held: Vec<u8>,
    /// How many bytes at the front of `held` are in `output` already.
    pub released: usize,
    /// Bytes of replies among `pieces` that came before an earlier one.
    pub early: usize,
    /// Whether a reply is being written to `output` or `held`, which are elsewhere meanwhile.
    pub writing: bool,
    /// Whether a transaction is executed, whose reply comes in parts.
    pub executing: bool,
    /// Messages that came meanwhile: they follow the reply.
    pub late: Vec<u8>,
    /// What is owed, in order; empty unless a reply is outstanding.
    pub pieces: VecDeque<Piece>,
    /// What a reply of another core is reckoned to have, in bytes: as the largest of late, and at first a lot.
    pub reckoned_bytes: usize,
    /// Whether the client waits for a reply before its next command may start.
    pub waiting: bool,
    /// Whether it is not served for now, because too much is owed to it, or its next command has to come behind that.
    pub paused: bool,
    /// Whether its next command starts when nothing is owed to it any more.
    pub awaits_replies: bool,
    /// Whether its next command waits for the end of a `CLIENT PAUSE`.
    pub postponed: bool,
    /// Whether the socket had no room for all of the output.
    pub blocked_on_write: bool,
    /// Whether the socket is watched for room to write.
    pub watches_write: bool,
    /// Whether the socket is watched for input.
    pub watches_read: bool,
    /// Whether the socket is watched for the end of input, which is not read.
    pub watches_end: bool,
    /// Whether it is in the core's list of clients to flush.
    pub to_flush: bool,
    /// Whether it is in the core's list of clients to serve again.
    pub to_resume: bool,
    /// Whether the connection ends once everything owed is sent.
    pub closing: bool,
    /// Whether a reply to it was given up because it would pass the limit of its output.
    pub over_limit: bool,
    /// Whether it is in the core's list of clients that keep input.
    pub keeps_input: bool,
    /// The selected database.
    pub database: usize,
    /// Which replies it is sent.
    pub replies: Replies,
    /// The protocol of its replies.
    pub protocol: Protocol,
    /// Whether it has authenticated, or needs not.
    pub authenticated: bool,
    /// Set by `CLIENT NO-TOUCH`.
    pub no_touch: bool,
    /// Set by `CLIENT NO-EVICT`.
    pub no_evict: bool,
    /// Whether it receives what `MONITOR` shows.
    pub monitor: bool,
    /// Set by `READONLY`.
    pub read_only: bool,
    /// What it keeps copies of, if it is told of changes.
    pub tracking: Option<Box<Tracking>>,
    /// What it subscribes to; `None` when that is nothing.
    pub subscriptions: Option<Box<Subscriptions>>,
    /// `CLIENT SETNAME`.
    pub name: Vec<u8>,
    /// `CLIENT SETINFO LIB-NAME`.
    pub library_name: Vec<u8>,
    /// `CLIENT SETINFO LIB-VER`.
    pub library_version: Vec<u8>,
    /// When it connected, in ms since the epoch.
    pub since_ms: i64,
    /// When it last sent something, in ms since the epoch.
    pub active_ms: i64,
    /// The name of its last command.
    pub last_command: &'static str,
    /// Commands it has sent.
    pub commands: u64,
    /// Bytes received from it.
    pub bytes_in: u64,
    /// Bytes sent to it.
    pub bytes_out: u64,
    /// The position of this core's log that its replies wait for.
    pub log_position: u64,
    /// Whether it is in the core's list of clients that do.
    pub awaits_log: bool,
    /// The core that owns the key it waits for, while it does.
    pub blocked_at: Option<usize>,
    /// What it has queued since `MULTI`.
    pub transaction: Option<Box<Queue>>,
    /// Its transaction, while it is executed.
    pub execution: Option<Box<Execution>>,
    /// What it watches.
    pub watched: Option<KeyPlace>,
    /// The keys that it watches.
    pub watched_keys: BTreeSet<DatabaseKey>,
    /// When its output first passed the soft limit.
    pub over_soft_limit_since_ms: Option<i64>,
}

impl Client {
    /// Whether its socket is read when something comes.
    #[inline]
    pub fn is_read_from(&self) -> bool {
        self.watches_read && self.blocked_at.is_none()
    }

    /// A client that has just connected.
    pub fn new(socket: OwnedFd, id: u64, door: Door, peer: SocketAddr, local: SocketAddr, now_ms: i64) -> Client {
        Client {
            socket,
            id,
            door,
            peer,
            local,
            input: Vec::new(),
            progress: Progress::default(),
            output: Vec::new(),
            sent: 0,
            held: Vec::new(),
            released: 0,
            early: 0,
            writing: false,
            executing: false,
            late: Vec::new(),
            pieces: VecDeque::new(),
            reckoned_bytes: FIRST_RECKONED_BYTES,
            waiting: false,
            paused: false,
            awaits_replies: false,
            postponed: false,
            blocked_on_write: false,
            watches_write: false,
            watches_read: true,
            watches_end: false,
            to_flush: false,
            to_resume: false,
            closing: false,
            over_limit: false,
            keeps_input: false,
            database: 0,
            replies: Replies::Wanted,
            protocol: Protocol::Resp2,
            authenticated: true,
            no_touch: false,
            no_evict: false,
            monitor: false,
            read_only: false,
            tracking: None,
            subscriptions: None,
            name: Vec::new(),
            library_name: Vec::new(),
            library_version: Vec::new(),
            since_ms: now_ms,
            active_ms: now_ms,
            last_command: "NULL",
            commands: 0,
            bytes_in: 0,
            bytes_out: 0,
            log_position: 0,
            awaits_log: false,
            blocked_at: None,
            transaction: None,
            execution: None,
            watched: None,
            watched_keys: BTreeSet::new(),
            over_soft_limit_since_ms: None,
        }
    }

    /// Which limit its output has.
    pub fn output_class(&self) -> OutputClass {
        if self.monitor {
            OutputClass::Replica
        } else if self.subscriptions.is_some() {
            OutputClass::Subscriber
        } else {
            OutputClass::Normal
        }
    }

    /// Forgets what it watches; returns where that is.
    pub fn take_watched(&mut self) -> Option<KeyPlace> {
        let watched = self.watched.take();
        if watched.is_some() {
            self.watched_keys = BTreeSet::new();
        }
        watched
    }

    /// Bytes of replies that are not sent yet.
    #[inline]
    pub fn unsent(&self) -> usize {
        self.output.len() - self.sent + self.held.len() - self.released + self.early + self.late.len()
    }

    /// Whether it is owed more than its class allows at once. `most_unsent` holds for normal clients; what others are sent
    /// is looked at when it is published, and in every tick.
    #[cold]
    pub(super) fn is_over_limit(&self, most_unsent: usize) -> bool {
        self.over_limit || self.unsent() > most_unsent && self.output_class() == OutputClass::Normal
    }

    /// Whether a reply is being put together from several cores.
    pub fn gathers(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Gathering(_)))
    }

    /// Whether a paused client may be served again: little enough is owed to it, in replies and in bytes.
    #[inline]
    pub fn may_resume(&self) -> bool {
        let most_pieces = if self.awaits_replies { 1 } else { RESUMED_PIECES };
        self.pieces.len() < most_pieces && self.unsent() < RESUMED_UNSENT && self.reckoned_owed() < RESUMED_UNSENT
    }

    /// About how many bytes are owed to the client by other cores.
    #[inline]
    pub fn reckoned_owed(&self) -> usize {
        self.pieces.len().saturating_mul(self.reckoned_bytes)
    }

    /// Whether the reply of the command in progress is sent.
    #[inline]
    pub fn wants_replies(&self) -> bool {
        matches!(self.replies, Replies::Wanted | Replies::SkipAfterThis)
    }

    /// Ends a command of a client that does not want every reply. Replies that are still owed for it are those among the
    /// pieces behind the first `owed`, which were there before.
    #[cold]
    pub fn end_command(&mut self, owed: usize) {
        if !self.wants_replies() {
            for piece in self.pieces.iter_mut().skip(owed) {
                match piece {
                    Piece::Owed(core) => *piece = Piece::OwedUnwanted(*core),
                    Piece::Gathering(number) => *piece = Piece::GatheringUnwanted(*number),
                    _ => {}
                }
            }
        }
        self.replies = match self.replies {
            Replies::SkipAfterThis => Replies::Skip,
            Replies::Skip => Replies::Wanted,
            other => other,
        };
    }

    /// Puts a reply (already encoded), or a push, behind all that is owed.
    pub fn push_reply(&mut self, encoded: &[u8]) {
        if self.pieces.is_empty() {
            self.output.extend_from_slice(encoded);
        } else {
            self.held.extend_from_slice(encoded);
            self.hold(encoded.len());
        }
    }

    /// Puts a message (already encoded) where it splits no reply: behind all that has come so far, and behind the reply
    /// that is being written. It does not wait for replies that other cores, or keys, still owe.
    pub fn push_message(&mut self, encoded: &[u8]) {
        if self.writing || self.executing {
            self.late.extend_from_slice(encoded);
            return;
        }
        let owed = self.pieces.iter().rev().take_while(|piece| matches!(piece, Piece::Owed(_))).count();
        let place = self.pieces.len() - owed;
        if owed == 0 {
            self.push_reply(encoded);
        } else if place == 0 {
            self.output.extend_from_slice(encoded);
        } else {
            // No piece behind has anything in `held`.
            self.held.extend_from_slice(encoded);
            match &mut self.pieces[place - 1] {
                Piece::Held(before) => *before += encoded.len(),
                _ => self.pieces.insert(place, Piece::Held(encoded.len())),
            }
        }
    }

    /// Puts the messages in their place that came while a reply was written.
    #[inline]
    pub(super) fn release_late(&mut self) {
        if !self.late.is_empty() && !self.executing && !self.writing {
            let late = std::mem::take(&mut self.late);
            self.push_message(&late);
        }
    }

    /// Notes that the reply of a transaction is complete, but for parts that hold their place.
    pub(super) fn end_execution(&mut self) {
        self.executing = false;
        self.release_late();
    }

    /// Whether what `command` reads is tracked.
    #[inline]
    pub(super) fn notes_reads(&self, command: &Registered) -> bool {
        self.tracking.as_ref().is_some_and(|tracking| tracking.mode.notes_reads())
            && (command.spec.flags.has(Flags::READ_ONLY) || matches!(command.run, Run::Script(_)))
    }

    /// Ends what `CLIENT CACHING` said once there was a command behind it, or a transaction.
    #[cold]
    pub(super) fn end_caching(&mut self) {
        if self.transaction.is_none()
            && !self.last_command.starts_with("client|")
            && let Some(tracking) = &mut self.tracking
        {
            tracking.mode.caching = false;
        }
    }

    /// Notes that `len` more bytes of `held` belong behind all that is owed.
    #[inline]
    pub fn hold(&mut self, len: usize) {
        match self.pieces.back_mut() {
            Some(Piece::Held(before)) => *before += len,
            _ => self.pieces.push_back(Piece::Held(len)),
        }
    }

    /// Takes in the reply that core `from` owed for the earliest command it was given.
    pub fn settle_owed(&mut self, from: u16, encoded: &[u8]) {
        let fall = self.reckoned_bytes.saturating_sub(encoded.len()) / RECKONED_FALL;
        self.reckoned_bytes = (self.reckoned_bytes - fall).max(encoded.len());
        if matches!(self.pieces.front(), Some(Piece::Owed(core)) if *core == from) {
            self.pieces.pop_front();
            self.output.extend_from_slice(encoded);
            self.release();
        } else if let Some(piece) = self.pieces.iter_mut().find(|piece| piece.owed_by() == Some(from)) {
            let encoded = if matches!(piece, Piece::Owed(_)) { encoded.to_vec() } else { Vec::new() };
            self.early += encoded.len();
            *piece = Piece::Early(encoded);
            self.release();
        }
    }

    /// Takes in the reply of gathering `number`.
    pub fn settle_gathering(&mut self, number: u64, mut encoded: Vec<u8>) {
        // A reply that was put together at once is that of the command in progress.
        let wants = self.wants_replies();
        if let Some(piece) = self.pieces.iter_mut().find(|piece| match piece {
            Piece::Gathering(other) | Piece::GatheringUnwanted(other) => *other == number,
            _ => false,
        }) {
            if !wants || matches!(piece, Piece::GatheringUnwanted(_)) {
                encoded = Vec::new();
            }
            self.early += encoded.len();
            *piece = Piece::Early(encoded);
            self.release();
        }
    }

    /// Moves what waits behind nothing any more to the output.
    fn release(&mut self) {
        while let Some(piece) = self.pieces.front_mut() {
            match piece {
                Piece::Held(len) => {
                    let end = self.released + *len;
                    self.output.extend_from_slice(&self.held[self.released..end]);
                    self.released = end;
                }
                Piece::Early(encoded) => {
                    self.early -= encoded.len();
                    self.output.extend_from_slice(encoded);
                }
                Piece::Owed(_) | Piece::Gathering(_) | Piece::OwedUnwanted(_) | Piece::GatheringUnwanted(_) => break,
            }
            self.pieces.pop_front();
        }
        if self.released == self.held.len() {
            self.held.clear();
            self.held.shrink_to(KEPT_BYTES);
            self.released = 0;
        } else if self.released > self.held.len() / 2 {
            // Only when that is more than is moved, so that each byte is moved at most once on average.
            self.held.drain(..self.released);
            self.released = 0;
        }
    }

    /// Forgets the part of the output that is sent, once that is the larger one.
    pub fn trim_output(&mut self) {
        if self.sent > KEPT_BYTES && self.sent > self.output.len() / 2 {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// The clients of a core.
#[derive(Default)]
pub struct Clients {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Place {
    client: Option<Box<Client>>,
    generation: u32,
}

impl Clients {
    /// Adds a client.
    pub fn add(&mut self, client: Client) -> ClientKey {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        place.client = Some(Box::new(client));
        ClientKey { index, generation: place.generation }
    }

    /// The client `key`, if it is still there.
    #[inline]
    pub fn get(&self, key: ClientKey) -> Option<&Client> {
        let place = self.places.get(key.index as usize)?;
        if place.generation == key.generation { place.client.as_deref() } else { None }
    }

    /// The client `key`, if it is still there.
    #[inline]
    pub fn get_mut(&mut self, key: ClientKey) -> Option<&mut Client> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.generation == key.generation { place.client.as_deref_mut() } else { None }
    }

    /// Takes a client out.
    pub fn remove(&mut self, key: ClientKey) -> Option<Box<Client>> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.generation != key.generation {
            return None;
        }
        let client = place.client.take()?;
        // The listeners' and the waker's tokens use the last generation.
        place.generation = if place.generation >= u32::MAX - 1 { 0 } else { place.generation + 1 };
        self.free.push(key.index);
        Some(client)
    }

    /// Every client with its key.
    pub fn iter(&self) -> impl Iterator<Item = (ClientKey, &Client)> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            let key = ClientKey { index: index as u32, generation: place.generation };
            place.client.as_deref().map(|client| (key, client))
        })
    }
}
