//! What is known of a command, in one place: dispatch, routing, `COMMAND …`, access control, documentation and tests
//! are derived from it.

use crate::args::Args;
use crate::context::Context;
use crate::error::CommandResult;

/// Everything about a command but its handler.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Name in lower case; a subcommand is `container|name`.
    pub name: &'static str,
    /// Number of words with the name (and the subcommand's); negative: at least that many.
    pub arity: i32,
    /// What the command does, for those who must know before it runs.
    pub flags: Flags,
    /// Where its keys are.
    pub keys: &'static [KeySpec],
    /// Access-control categories beside those that follow from the flags.
    pub categories: Categories,
    /// Redis's documentation group.
    pub group: Group,
    /// The version of Redis (for the native commands: of Ruvio) that it came with.
    pub since: &'static str,
    /// Time complexity, as documentation gives it.
    pub complexity: &'static str,
    /// One sentence on what it does.
    pub summary: &'static str,
    /// The words after the name, in Redis's notation: `key value [NX | XX] [EX seconds]`.
    pub syntax: &'static str,
}

/// A command that runs on the core that owns its keys.
#[derive(Clone, Copy)]
pub struct Command {
    /// What is known of it.
    pub spec: Spec,
    /// Runs it. The number of words was checked against the arity.
    pub run: Handler,
}

/// A handler: writes its reply to the context, or returns an error instead of any reply.
pub type Handler = fn(&mut Context<'_>, Args<'_>) -> CommandResult;

macro_rules! bit_set {
    ($(#[$about:meta])* $name:ident($repr:ty) { $($(#[$doc:meta])* $bit:ident = $value:expr, $text:literal;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(pub $repr);

        impl $name {
            /// None of them.
            pub const NONE: $name = $name(0);
            $($(#[$doc])* pub const $bit: $name = $name(1 << $value);)*

            /// Each bit with its word.
            pub const ALL: &'static [($name, &'static str)] = &[$(($name::$bit, $text)),*];

            /// Both together.
            pub const fn and(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }

            /// Whether every bit of `other` is set.
            #[inline]
            pub const fn has(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether any bit of `other` is set.
            #[inline]
            pub const fn has_any(self, other: $name) -> bool {
                self.0 & other.0 != 0
            }

            /// The words of the bits that are set.
            pub fn words(self) -> impl Iterator<Item = &'static str> {
                Self::ALL.iter().filter(move |(bit, _)| self.has(*bit)).map(|(_, word)| *word)
            }
        }
    };
}

bit_set! {
    /// Flags of a command, with Redis's words for `COMMAND INFO`.
    Flags(u32) {
        /// May change the keyspace.
        WRITE = 0, "write";
        /// Only reads keys.
        READ_ONLY = 1, "readonly";
        /// May take memory, so it is refused when memory is at its limit.
        DENY_OOM = 2, "denyoom";
        /// For operators.
        ADMIN = 3, "admin";
        /// Publish and subscribe.
        PUBSUB = 4, "pubsub";
        /// Not from scripts.
        NO_SCRIPT = 5, "noscript";
        /// May wait.
        BLOCKING = 6, "blocking";
        /// While data is being loaded too.
        LOADING = 7, "loading";
        /// On a stale replica too.
        STALE = 8, "stale";
        /// Not shown to `MONITOR`.
        SKIP_MONITOR = 9, "skip_monitor";
        /// Not in the slow log.
        SKIP_SLOWLOG = 10, "skip_slowlog";
        /// Answers `ASKING`.
        ASKING = 11, "asking";
        /// Constant or logarithmic time.
        FAST = 12, "fast";
        /// Before authentication too.
        NO_AUTH = 13, "no_auth";
        /// While a script has run too long too.
        ALLOW_BUSY = 14, "allow_busy";
        /// Keys are not at fixed positions.
        MOVABLE_KEYS = 15, "movablekeys";
        /// Not within a transaction.
        NO_MULTI = 16, "no_multi";
        /// Arguments must not be logged (passwords).
        SENTINEL = 17, "sentinel";
        /// Has no keys though it takes arguments that look like keys.
        NO_MANDATORY_KEYS = 18, "no_mandatory_keys";
        /// Documentation calls it deprecated.
        DEPRECATED = 19, "deprecated";
    }
}

bit_set! {
    /// Access-control categories.
    Categories(u32) {
        /// Keyspace.
        KEYSPACE = 0, "keyspace";
        /// Reading.
        READ = 1, "read";
        /// Writing.
        WRITE = 2, "write";
        /// Sets.
        SET = 3, "set";
        /// Sorted sets.
        SORTED_SET = 4, "sortedset";
        /// Lists.
        LIST = 5, "list";
        /// Hashes.
        HASH = 6, "hash";
        /// Strings.
        STRING = 7, "string";
        /// Bitmaps.
        BITMAP = 8, "bitmap";
        /// HyperLogLogs.
        HYPERLOGLOG = 9, "hyperloglog";
        /// Geo.
        GEO = 10, "geo";
        /// Streams.
        STREAM = 11, "stream";
        /// Publish and subscribe.
        PUBSUB = 12, "pubsub";
        /// Operators.
        ADMIN = 13, "admin";
        /// Fast.
        FAST = 14, "fast";
        /// Slow.
        SLOW = 15, "slow";
        /// Waiting.
        BLOCKING = 16, "blocking";
        /// Dangerous.
        DANGEROUS = 17, "dangerous";
        /// Connection.
        CONNECTION = 18, "connection";
        /// Transactions.
        TRANSACTION = 19, "transaction";
        /// Scripts.
        SCRIPTING = 20, "scripting";
        /// Rate limits.
        LIMIT = 21, "limit";
    }
}

bit_set! {
    /// What a command does with a key, with Redis's words for key specifications.
    KeyFlags(u16) {
        /// Reads and writes the value.
        READ_WRITE = 0, "RW";
        /// Only reads it.
        READ = 1, "RO";
        /// Overwrites it without looking.
        OVERWRITE = 2, "OW";
        /// Removes it.
        REMOVE = 3, "RM";
        /// Returns the value or part of it.
        ACCESS = 4, "access";
        /// Changes the value from its earlier one.
        UPDATE = 5, "update";
        /// Adds to it.
        INSERT = 6, "insert";
        /// Deletes from it.
        DELETE = 7, "delete";
        /// The position may hold no key.
        NOT_KEY = 8, "not_key";
        /// The specification does not find all keys.
        INCOMPLETE = 9, "incomplete";
        /// What is done depends on the arguments.
        VARIABLE_FLAGS = 10, "variable_flags";
    }
}

/// Where some of a command's keys are, as in Redis's key specifications.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// Where to begin.
    pub begin: Begin,
    /// How to find keys from there.
    pub find: Find,
    /// What is done with them.
    pub flags: KeyFlags,
}

/// Where a key specification begins.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    /// At this word.
    Index(usize),
    /// After this word, searched from word `start` on (negative: backwards from the end).
    Keyword {
        /// The word.
        word: &'static str,
        /// Where the search starts.
        start: i32,
    },
    /// Where only the command's own reading of its words tells (`unknown` in Redis): it is given the words and shows
    /// the index of each key to the visitor.
    Unknown(fn(Args<'_>, &mut dyn FnMut(usize))),
}

/// How a key specification finds keys.
#[derive(Clone, Copy, Debug)]
pub enum Find {
    /// From the beginning to `last` (relative to it; negative: from the end of the words), each `step` words; with a
    /// `limit` of n > 1 only the first n-th part of the words there.
    Range {
        /// Last key.
        last: i32,
        /// Distance between keys.
        step: usize,
        /// Divisor, 0 or 1 for none.
        limit: usize,
    },
    /// Their number stands at word `count`, the first at word `first` (both relative to the beginning).
    Count {
        /// Where the number stands.
        count: usize,
        /// Where the first key stands.
        first: usize,
        /// Distance between keys.
        step: usize,
    },
    /// What belongs to [`Begin::Unknown`].
    Unknown,
}

impl KeySpec {
    /// One key at word `index`.
    pub const fn one(index: usize, flags: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Index(index), find: Find::Range { last: 0, step: 1, limit: 0 }, flags }
    }

    /// Keys from word `index` to the last word, each `step` words.
    pub const fn to_end(index: usize, step: usize, flags: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Index(index), find: Find::Range { last: -1, step, limit: 0 }, flags }
    }

    /// Keys from word `index` to the `before`-th word from the end (1: the last one).
    pub const fn until(index: usize, before: i32, step: usize, flags: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Index(index), find: Find::Range { last: -before, step, limit: 0 }, flags }
    }

    /// A number of keys at word `index`, the keys after it.
    pub const fn counted(index: usize, flags: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Index(index), find: Find::Count { count: 0, first: 1, step: 1 }, flags }
    }

    /// Keys that `find` finds, see [`Begin::Unknown`].
    pub const fn unknown(find: fn(Args<'_>, &mut dyn FnMut(usize)), flags: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Unknown(find), find: Find::Unknown, flags }
    }

    /// Calls `visit` with the index of each key word. False when the words do not fit the specification.
    #[inline]
    pub fn visit(&self, args: Args<'_>, mut visit: impl FnMut(usize)) -> bool {
        let begin = match self.begin {
            Begin::Index(index) => index,
            Begin::Keyword { word, start } => match find_keyword(args, word, start) {
                Some(index) => index + 1,
                // An optional clause that is not there.
                None => return true,
            },
            Begin::Unknown(find) => {
                find(args, &mut visit);
                return true;
            }
        };
        match self.find {
            // Keys that may be left out, and are.
            Find::Range { .. } if begin >= args.len() => true,
            Find::Unknown => true,
            Find::Range { last, step, limit } => {
                let last = if last >= 0 {
                    begin + last as usize
                } else if limit > 1 {
                    begin + (args.len() - begin) / limit - 1
                } else {
                    match args.len().checked_sub(last.unsigned_abs() as usize) {
                        Some(last) => last,
                        None => return false,
                    }
                };
                if last >= args.len() {
                    return false;
                }
                let mut index = begin;
                while index <= last {
                    visit(index);
                    index += step;
                }
                true
            }
            Find::Count { count, first, step } => {
                let Some(number) = args.get(begin + count).and_then(crate::number::parse_i64) else { return false };
                let first = begin + first;
                let Ok(number) = usize::try_from(number) else { return false };
                if number == 0 || number.saturating_mul(step) > args.len().saturating_sub(first) {
                    return false;
                }
                for key in 0..number {
                    visit(first + key * step);
                }
                true
            }
        }
    }
}

fn find_keyword(args: Args<'_>, word: &str, start: i32) -> Option<usize> {
    if start >= 0 {
        (start as usize..args.len()).find(|&index| args.is(index, word))
    } else {
        let last = args.len().checked_sub(start.unsigned_abs() as usize)?;
        (1..=last).rev().find(|&index| args.is(index, word))
    }
}

/// The commands that Redis does not have.
const NATIVE: [&str; 9] =
    ["delifeq", "getv", "htransfer", "limit", "setv", "take", "transfer", "zmovedue", "zpopbyscore"];

impl Spec {
    /// Whether Redis does not have the command. The keys of a native one are in one slot, whatever the operator allows.
    pub fn is_native(&self) -> bool {
        NATIVE.contains(&self.name)
    }

    /// Whether a call with `words` words has the right number of them.
    #[inline]
    pub fn accepts(&self, words: usize) -> bool {
        if self.arity >= 0 { words == self.arity as usize } else { words >= self.arity.unsigned_abs() as usize }
    }

    /// Calls `visit` with the index of each key word. False when the words do not fit the key specifications.
    #[inline]
    pub fn visit_keys(&self, args: Args<'_>, mut visit: impl FnMut(usize)) -> bool {
        self.keys.iter().all(|keys| keys.visit(args, &mut visit))
    }

    /// All access-control categories: the ones named and the ones that follow from the flags.
    pub fn all_categories(&self) -> Categories {
        let mut all = self.categories;
        if self.flags.has(Flags::WRITE) {
            all = all.and(Categories::WRITE);
        }
        if self.flags.has(Flags::READ_ONLY) && !self.categories.has(Categories::SCRIPTING) {
            all = all.and(Categories::READ);
        }
        if self.flags.has(Flags::ADMIN) {
            all = all.and(Categories::ADMIN).and(Categories::DANGEROUS);
        }
        if self.flags.has(Flags::PUBSUB) {
            all = all.and(Categories::PUBSUB);
        }
        if self.flags.has(Flags::BLOCKING) {
            all = all.and(Categories::BLOCKING);
        }
        all.and(if self.flags.has(Flags::FAST) { Categories::FAST } else { Categories::SLOW })
    }

    /// The container's name where this is a subcommand.
    pub fn container(&self) -> Option<&'static str> {
        self.name.split_once('|').map(|(container, _)| container)
    }
}

/// Redis's documentation groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Strings and counters.
    String,
    /// Hashes.
    Hash,
    /// Lists.
    List,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Bitmaps.
    Bitmap,
    /// HyperLogLogs.
    HyperLogLog,
    /// Geo.
    Geo,
    /// Commands on keys of any type.
    Generic,
    /// Connections.
    Connection,
    /// The server.
    Server,
    /// The cluster view.
    Cluster,
    /// Rate limits.
    Limit,
    /// Transactions.
    Transactions,
    /// Publish and subscribe.
    PubSub,
    /// Scripts and functions.
    Scripting,
}

impl Group {
    /// The word that `COMMAND DOCS` uses.
    pub const fn name(self) -> &'static str {
        match self {
            Group::String => "string",
            Group::Hash => "hash",
            Group::List => "list",
            Group::Set => "set",
            Group::SortedSet => "sorted-set",
            Group::Bitmap => "bitmap",
            Group::HyperLogLog => "hyperloglog",
            Group::Geo => "geo",
            Group::Generic => "generic",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Cluster => "cluster",
            Group::Limit => "limit",
            Group::Transactions => "transactions",
            Group::PubSub => "pubsub",
            Group::Scripting => "scripting",
        }
    }
}
