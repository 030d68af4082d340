//! The form of the input: a script, a line a step, so that it can be read, and means the same when commands are added.
//!
//! - `NAME word word …` runs a command, `OBJECT ENCODING word` a subcommand; a name that is none chooses a command all
//!   the same. Missing words are added. Words that are keys are taken from a few in one slot.
//! - Words are split at spaces. `@5` is the time in 5 ms, `@@5` in 5 s, as seconds; `%100` is 100 bytes.
//! - `+5` lets 5 ms pass; `>1` selects a database; `!5` says that memory is 5 bytes over its limit; `-5` cleans up with a
//!   budget of 5; `/` flushes; `=` exchanges both databases.

use std::collections::HashMap;
use std::sync::LazyLock;

use ruvio_shard::args::OwnedArgs;
use ruvio_shard::command::Command;
use ruvio_shard::commands;
use ruvio_shard::slot::key_slot;

/// The time at the script's start, in ms since the epoch.
pub const START_MS: i64 = 1_700_000_000_000;

/// Most steps of a script.
const STEPS: usize = 400;

/// Longest time that one step lets pass.
const LONGEST_MS: u64 = 1 << 40;

/// Longest word of repeated bytes.
const LONGEST_WORD: usize = 70_000;

/// Random members asked for with repetition at the most: the reply has as many, however few there are.
const RANDOM_MEMBERS: i64 = 1000;

const KEYS: [&[u8]; 7] = [b"{t}a", b"{t}b", b"{t}c", b"{t}d", b"{t}e", b"{t}", b"{t}a key too long for a short entry"];

/// All commands but the one that takes seconds whatever its words.
static COMMANDS: LazyLock<Vec<&'static Command>> =
    LazyLock::new(|| commands::all().filter(|command| command.spec.name != "pfselftest").collect());

static NAMES: LazyLock<HashMap<&'static str, &'static Command>> =
    LazyLock::new(|| COMMANDS.iter().map(|command| (command.spec.name, *command)).collect());

/// One line.
pub enum Step<'a> {
    /// Time passes, in ms.
    Advance(i64),
    /// Another database is selected.
    Select(usize),
    /// So many bytes more are held than may be.
    Hold(u64),
    /// What was removed is freed, what expired is removed, with this budget.
    Clean(usize),
    /// The database is flushed.
    Flush,
    /// Both databases change places.
    Swap,
    /// A command runs.
    Run(Line<'a>),
}

/// A command and its words as they are written.
pub struct Line<'a>(&'a [u8]);

/// The command with this name in lower case, a subcommand's as in `container|name`.
pub fn command(name: &str) -> Option<&'static Command> {
    NAMES.get(name).copied()
}

/// The steps of a script.
pub fn steps(text: &[u8]) -> impl Iterator<Item = Step<'_>> {
    text.split(|&byte| byte == b'\n').filter_map(step).take(STEPS)
}

fn step(line: &[u8]) -> Option<Step<'_>> {
    let (&mark, rest) = line.split_first()?;
    let number = digits(rest);
    Some(match mark {
        b'+' => Step::Advance(number.min(LONGEST_MS) as i64),
        b'>' => Step::Select(number as usize),
        b'!' => Step::Hold(number % 100),
        b'-' => Step::Clean((number % 1000) as usize),
        b'/' => Step::Flush,
        b'=' => Step::Swap,
        _ => Step::Run(Line(line)),
    })
}

/// The number that bytes begin with; 0 without one.
fn digits(bytes: &[u8]) -> u64 {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u64, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}

/// A small number that depends on every byte.
fn mix(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |sum: usize, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
}

fn word(written: &[u8], now_ms: i64) -> Vec<u8> {
    match written {
        [b'@', b'@', number @ ..] => {
            (now_ms / 1000).saturating_add_unsigned(digits(number)).saturating_sub(5).to_string().into_bytes()
        }
        [b'@', number @ ..] => {
            now_ms.saturating_add_unsigned(digits(number)).saturating_sub(5).to_string().into_bytes()
        }
        [b'%', number @ ..] => {
            let fill = number.last().copied().unwrap_or(b'x');
            vec![fill; digits(number).min(LONGEST_WORD as u64) as usize]
        }
        plain => plain.to_vec(),
    }
}

impl Line<'_> {
    /// The command, its words, and the slot where its keys are known.
    pub fn resolve(&self, now_ms: i64) -> Option<(&'static Command, OwnedArgs, Option<u16>)> {
        let mut written = self.0.split(|&byte| byte == b' ').peekable();
        let name = String::from_utf8_lossy(written.next()?).to_lowercase();
        let second = written.peek().map(|word| String::from_utf8_lossy(word).to_lowercase());
        let container = second.map(|second| format!("{name}|{second}"));
        let command = match (command(&name), container.and_then(|full| command(&full))) {
            (Some(command), _) => command,
            (None, Some(subcommand)) => {
                written.next();
                subcommand
            }
            (None, None) => COMMANDS[mix(name.as_bytes()) % COMMANDS.len()],
        };
        let mut words: Vec<Vec<u8>> = command.spec.name.split('|').map(|part| part.as_bytes().to_vec()).collect();
        words.extend(written.map(|written| word(written, now_ms)));
        let fewest = command.spec.arity.unsigned_abs() as usize;
        while words.len() < fewest {
            words.push(b"1".to_vec());
        }
        if command.spec.arity > 0 {
            words.truncate(fewest);
        }
        let mut keys = Vec::new();
        let fits = command.spec.visit_keys(words.iter().collect::<OwnedArgs>().as_args(), |index| keys.push(index));
        for &index in &keys {
            words[index] = KEYS[mix(&words[index]) % KEYS.len()].to_vec();
        }
        let slot = (fits && !keys.is_empty()).then(|| key_slot(KEYS[0]));
        if command.spec.name.ends_with("randmember") || command.spec.name.ends_with("randfield") {
            let count = words.get(2).and_then(|count| std::str::from_utf8(count).ok()?.parse::<i64>().ok());
            if count.is_some_and(|count| count < -RANDOM_MEMBERS) {
                return None;
            }
        }
        Some((command, words.iter().collect(), slot))
    }
}
