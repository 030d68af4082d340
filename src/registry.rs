//! Every command of the server, by name.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

use ruvio_shard::args::Args;
use ruvio_shard::command::{Begin, Command, Find, Spec};
use ruvio_shard::commands;
use ruvio_shard::error::CommandError;
use ruvio_shard::slot::key_slot;

use crate::commands::{Run as ServerHandler, ServerCommand};

/// Longest command name; nothing longer is looked up.
const MAX_NAME: usize = 32;

/// How a command is run.
#[derive(Clone, Copy)]
pub enum Run {
    /// On the shard that owns its keys.
    Shard(&'static Command),
    /// On the shard that owns its keys, as a script.
    Script(ScriptCommand),
    /// By the core that the client is connected to.
    Server(ServerHandler),
    /// A container: only its subcommands run.
    Container,
}

/// What a command runs that runs scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptCommand {
    /// The script that it is given.
    Eval {
        /// Whether it may not write.
        read_only: bool,
    },
    /// The script with the digest that it is given.
    EvalDigest {
        /// Whether it may not write.
        read_only: bool,
    },
    /// The function that it names.
    Call {
        /// Whether it may not write.
        read_only: bool,
    },
}

impl ScriptCommand {
    /// Whether what it runs may not write.
    pub fn is_read_only(self) -> bool {
        let (ScriptCommand::Eval { read_only }
        | ScriptCommand::EvalDigest { read_only }
        | ScriptCommand::Call { read_only }) = self;
        read_only
    }
}

/// A command as the server knows it.
pub struct Registered {
    /// What is known of it.
    pub spec: &'static Spec,
    /// How it is run.
    pub run: Run,
    /// Its place among all commands, for counters.
    pub index: usize,
    /// Its subcommands, by name without the container's.
    pub subcommands: Vec<&'static Registered>,
    /// The only key is word 1: the common case, found without walking the key specifications.
    single_key: bool,
    /// Its name is letters alone, so that [`short_name`] and the length say whether a word is it.
    is_in_letters: bool,
}

/// All commands.
pub struct Registry {
    /// Those with a name of up to eight bytes, which nearly all calls are of, in an open hash table.
    short: Box<[Option<(u64, &'static Registered)>; SHORT_PLACES]>,
    by_name: HashMap<Name, &'static Registered, NameHash>,
    all: Vec<&'static Registered>,
}

/// A lower-case name, padded with zeros.
type Name = [u64; MAX_NAME / 8];

fn name(word: &[u8]) -> Option<Name> {
    if word.len() > MAX_NAME {
        return None;
    }
    let mut bytes = [0; MAX_NAME];
    bytes[..word.len()].copy_from_slice(word);
    bytes.make_ascii_lowercase();
    let mut name = [0; MAX_NAME / 8];
    for (part, chunk) in name.iter_mut().zip(bytes.chunks_exact(8)) {
        *part = u64::from_le_bytes(chunk.try_into().expect("chunks of eight"));
    }
    Some(name)
}

/// Places for short names: a few times as many as there are, so that most are found at once.
const SHORT_PLACES: usize = 1024;

/// A name of up to eight bytes with the bit of lower case set in each; other names than ours can be equal to it.
#[inline]
fn short_name(word: &[u8]) -> Option<u64> {
    let part = |at: usize| u32::from_le_bytes([word[at], word[at + 1], word[at + 2], word[at + 3]]);
    let bytes = match word.len() {
        len @ 4..=8 => u64::from(part(0)) | u64::from(part(len - 4)) << ((len - 4) * 8),
        3 => u64::from(word[0]) | u64::from(word[1]) << 8 | u64::from(word[2]) << 16,
        2 => u64::from(word[0]) | u64::from(word[1]) << 8,
        1 => u64::from(word[0]),
        _ => return None,
    };
    Some(bytes | 0x2020_2020_2020_2020)
}

#[inline]
fn short_place(name: u64) -> usize {
    (name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SHORT_PLACES.ilog2())) as usize
}

/// A hash for names that nobody chooses but us.
#[derive(Clone, Copy, Default)]
struct NameHash;

struct NameHasher(u64);

impl BuildHasher for NameHash {
    type Hasher = NameHasher;
    fn build_hasher(&self) -> NameHasher {
        NameHasher(0)
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut part = [0; 8];
            part[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(part));
        }
    }
    #[inline]
    fn write_u64(&mut self, part: u64) {
        self.0 = (self.0.rotate_left(5) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_usize(&mut self, _: usize) {}
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::build);

/// The registry.
#[inline]
pub fn registry() -> &'static Registry {
    &REGISTRY
}

/// A command found by its words.
pub enum Found {
    /// The command to run.
    Command(&'static Registered),
    /// It takes another number of words.
    WrongArity(&'static Registered),
    /// None; why.
    Unknown(CommandError),
}

impl Registry {
    fn build() -> Registry {
        let shard = commands::all().map(|command| (&command.spec, Run::Shard(command)));
        let server = crate::commands::all().map(|command: &'static ServerCommand| {
            let run = command.run.map_or(Run::Container, Run::Server);
            (&command.spec, run)
        });
        let scripts = crate::commands::CALLS.iter().map(|(spec, script)| (spec, Run::Script(*script)));
        let mut registered: Vec<Registered> = shard
            .chain(server)
            .chain(scripts)
            .enumerate()
            .map(|(index, (spec, run))| Registered {
                spec,
                run,
                index,
                subcommands: Vec::new(),
                single_key: is_single_key(spec),
                is_in_letters: spec.name.bytes().all(|byte| byte.is_ascii_alphabetic()),
            })
            .collect();
        let mut subcommands: HashMap<&'static str, Vec<&'static Registered>> = HashMap::new();
        let mut all: Vec<&'static Registered> = Vec::new();
        registered.retain_mut(|command| {
            let Some(container) = command.spec.container() else { return true };
            let owned = Registered { subcommands: Vec::new(), ..*command };
            let leaked: &'static Registered = Box::leak(Box::new(owned));
            subcommands.entry(container).or_default().push(leaked);
            all.push(leaked);
            false
        });
        let mut by_name = HashMap::default();
        let mut short = Box::new([None; SHORT_PLACES]);
        for mut command in registered {
            command.subcommands = subcommands.remove(command.spec.name).unwrap_or_default();
            let leaked: &'static Registered = Box::leak(Box::new(command));
            let key = name(leaked.spec.name.as_bytes()).expect("command names are short");
            let earlier = by_name.insert(key, leaked);
            assert!(earlier.is_none(), "two commands named {}", leaked.spec.name);
            all.push(leaked);
            if let Some(name) = short_name(leaked.spec.name.as_bytes()) {
                let mut place = short_place(name);
                while short[place].is_some() {
                    place = (place + 1) % SHORT_PLACES;
                }
                short[place] = Some((name, leaked));
            }
        }
        assert!(subcommands.is_empty(), "containers missing for {:?}", subcommands.keys());
        all.sort_by_key(|command| command.index);
        Registry { short, by_name, all }
    }

    /// Every command and subcommand.
    pub fn all(&self) -> &[&'static Registered] {
        &self.all
    }

    /// Every command that is no subcommand.
    pub fn top_level(&self) -> impl Iterator<Item = &'static Registered> {
        self.all.iter().copied().filter(|command| command.spec.container().is_none())
    }

    /// The command with this name, subcommands not counted.
    #[inline]
    pub fn get(&self, word: &[u8]) -> Option<&'static Registered> {
        if let Some(name) = short_name(word) {
            let mut place = short_place(name);
            while let Some((other, command)) = self.short[place] {
                if other == name && command.has_name(word) {
                    return Some(command);
                }
                place = (place + 1) % SHORT_PLACES;
            }
            return None;
        }
        self.by_name.get(&name(word)?).copied()
    }

    /// The command or subcommand with this full name (`config|get`).
    pub fn get_full(&self, word: &[u8]) -> Option<&'static Registered> {
        match word.iter().position(|&byte| byte == b'|') {
            None => self.get(word),
            Some(bar) => self.get(&word[..bar])?.subcommand(&word[bar + 1..]),
        }
    }

    /// The command that `args` call, subcommand included, with the right number of words.
    #[inline]
    pub fn find(&self, args: Args<'_>) -> Found {
        let Some(mut command) = self.get(args.at(0)) else { return Found::Unknown(unknown_command(args)) };
        if !command.subcommands.is_empty()
            && let Some(word) = args.get(1)
        {
            match command.subcommand(word) {
                Some(subcommand) => command = subcommand,
                None => return Found::Unknown(unknown_subcommand(command, word)),
            }
        }
        if !command.spec.accepts(args.len()) {
            return Found::WrongArity(command);
        }
        Found::Command(command)
    }
}

fn is_single_key(spec: &Spec) -> bool {
    match spec.keys {
        [keys] => {
            matches!(keys.begin, Begin::Index(1)) && matches!(keys.find, Find::Range { last: 0, .. }) && spec.arity != 1
        }
        _ => false,
    }
}

/// Where a command's keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slots {
    /// It has none.
    None,
    /// All in this slot.
    One(u16),
    /// In several slots.
    Several,
    /// The words do not say.
    Invalid,
}

impl Registered {
    /// Whether a word whose [`short_name`] is the command's is its name.
    #[inline]
    fn has_name(&self, word: &[u8]) -> bool {
        let name = self.spec.name.as_bytes();
        // No byte but the two cases of a letter becomes that letter by the bit of lower case.
        name.len() == word.len() && (self.is_in_letters || name.eq_ignore_ascii_case(word))
    }

    /// Its subcommand with this name.
    pub fn subcommand(&self, word: &[u8]) -> Option<&'static Registered> {
        self.subcommands.iter().copied().find(|subcommand| {
            let (_, last) = subcommand.spec.name.split_once('|').unwrap_or_default();
            word.eq_ignore_ascii_case(last.as_bytes())
        })
    }

    /// The slot of the command's keys.
    #[inline]
    pub fn slots(&self, args: Args<'_>) -> Slots {
        if self.single_key {
            return Slots::One(key_slot(args.at(1)));
        }
        let mut slots = Slots::None;
        let fits = self.spec.visit_keys(args, |index| {
            let slot = key_slot(args.at(index));
            slots = match slots {
                Slots::None => Slots::One(slot),
                Slots::One(first) if first == slot => slots,
                _ => Slots::Several,
            };
        });
        if fits { slots } else { Slots::Invalid }
    }
}

/// Bytes of a client's words that an error repeats.
const MAX_QUOTED: usize = 128;

/// What an error repeats of a word: up to a zero byte, as Redis does.
fn repeated(word: &[u8], most: usize) -> &[u8] {
    let word = &word[..word.len().min(most)];
    word.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn quoted(word: &[u8]) -> String {
    String::from_utf8_lossy(repeated(word, MAX_QUOTED)).into_owned()
}

fn unknown_command(args: Args<'_>) -> CommandError {
    let mut beginning = Vec::new();
    for word in args.from(1).iter() {
        if beginning.len() >= MAX_QUOTED {
            break;
        }
        let room = MAX_QUOTED - beginning.len();
        beginning.push(b'\'');
        beginning.extend_from_slice(repeated(word, room));
        beginning.extend_from_slice(b"' ");
    }
    CommandError::new(format!(
        "ERR unknown command '{}', with args beginning with: {}",
        quoted(args.at(0)),
        String::from_utf8_lossy(&beginning)
    ))
}

fn unknown_subcommand(container: &Registered, word: &[u8]) -> CommandError {
    CommandError::new(format!(
        "ERR unknown subcommand '{}'. Try {} HELP.",
        quoted(word),
        container.spec.name.to_uppercase()
    ))
}
