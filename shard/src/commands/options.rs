//! Options that several commands share: expiry times, and what counters take.

use crate::args::Args;
use crate::error::CommandError;
use crate::number::parse_i64;

/// The word at `index` as an integer.
///
/// # Errors
/// [`CommandError::NOT_AN_INTEGER`], also when there is no such word.
#[inline]
pub fn integer_at(args: Args<'_>, index: usize) -> Result<i64, CommandError> {
    args.get(index).and_then(parse_i64).ok_or(CommandError::NOT_AN_INTEGER)
}

/// The word at `index` as an integer of at least 1: how much a command moves or takes.
///
/// # Errors
/// [`CommandError::NOT_AN_INTEGER`] or [`CommandError::MUST_BE_POSITIVE`].
#[inline]
pub fn positive_at(args: Args<'_>, index: usize) -> Result<i64, CommandError> {
    let number = integer_at(args, index)?;
    if number >= 1 { Ok(number) } else { Err(CommandError::MUST_BE_POSITIVE) }
}

/// What the number behind an expiry option counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// `EX`: seconds from now.
    Seconds,
    /// `PX`: milliseconds from now.
    Milliseconds,
    /// `EXAT`: seconds since the epoch.
    UnixSeconds,
    /// `PXAT`: milliseconds since the epoch.
    UnixMilliseconds,
}

impl TimeUnit {
    /// The unit that an option word stands for.
    #[inline]
    pub fn from_word(word: &[u8]) -> Option<TimeUnit> {
        const WORDS: [(&str, TimeUnit); 4] = [
            ("EX", TimeUnit::Seconds),
            ("PX", TimeUnit::Milliseconds),
            ("EXAT", TimeUnit::UnixSeconds),
            ("PXAT", TimeUnit::UnixMilliseconds),
        ];
        WORDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes())).map(|(_, unit)| *unit)
    }

    /// Whether the time is counted from the time of the call.
    #[inline]
    pub fn is_relative(self) -> bool {
        matches!(self, TimeUnit::Seconds | TimeUnit::Milliseconds)
    }

    /// Whether it counts seconds.
    #[inline]
    pub fn is_seconds(self) -> bool {
        matches!(self, TimeUnit::Seconds | TimeUnit::UnixSeconds)
    }

    /// Reads `time` as a deadline in ms since the epoch. It may lie in the past where the unit is not relative.
    ///
    /// # Errors
    /// [`CommandError::NOT_AN_INTEGER`]; `ERR invalid expire time in '…' command` for a time that is not positive, or
    /// whose milliseconds leave the 64-bit range.
    pub fn deadline_ms(self, time: &[u8], now_ms: i64, command: &str) -> Result<i64, CommandError> {
        let time = parse_i64(time).ok_or(CommandError::NOT_AN_INTEGER)?;
        let milliseconds = match self {
            TimeUnit::Seconds | TimeUnit::UnixSeconds => time.checked_mul(1000),
            TimeUnit::Milliseconds | TimeUnit::UnixMilliseconds => Some(time),
        };
        let start_ms = if self.is_relative() { now_ms } else { 0 };
        milliseconds
            .filter(|milliseconds| *milliseconds > 0)
            .and_then(|milliseconds| milliseconds.checked_add(start_ms))
            .ok_or_else(|| CommandError::invalid_expire_time(command))
    }
}

/// What a call does about the deadline of its key, as it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry<'a> {
    /// Nothing was asked.
    #[default]
    Unnamed,
    /// `KEEPTTL`
    Keep,
    /// `PERSIST`
    Persist,
    /// `EX`, `PX`, `EXAT` or `PXAT` and the time behind it, not read yet.
    At(TimeUnit, &'a [u8]),
}

impl<'a> Expiry<'a> {
    /// Takes the expiry option at `index` in: the number of its words, or `None` when there is none, its time is
    /// missing or it does not go with the option taken before. One option may be repeated; its last time counts.
    #[inline]
    pub fn take(&mut self, args: Args<'a>, index: usize) -> Option<usize> {
        let word = args.get(index)?;
        let (named, words) = if word.eq_ignore_ascii_case(b"KEEPTTL") {
            (Expiry::Keep, 1)
        } else if word.eq_ignore_ascii_case(b"PERSIST") {
            (Expiry::Persist, 1)
        } else {
            (Expiry::At(TimeUnit::from_word(word)?, args.get(index + 1)?), 2)
        };
        let agrees = match (&self, &named) {
            (Expiry::Unnamed, _) => true,
            (Expiry::At(before, _), Expiry::At(unit, _)) => before == unit,
            (before, named) => *before == named,
        };
        agrees.then(|| {
            *self = named;
            words
        })
    }
}

/// The options of a counter from word `start` on: `[EX seconds | PX milliseconds]`, the deadline in ms since the epoch
/// that a key gets if this call creates it.
///
/// # Errors
/// For a word that is no such option that of a wrong number of arguments, as in Redis, where the command takes none;
/// [`CommandError::SYNTAX`] for options that are incomplete or too many, and those of [`TimeUnit::deadline_ms`].
#[inline]
pub fn creation_deadline(
    args: Args<'_>,
    start: usize,
    now_ms: i64,
    command: &str,
) -> Result<Option<i64>, CommandError> {
    if args.len() == start {
        return Ok(None);
    }
    let unit = args.get(start).and_then(TimeUnit::from_word).filter(|unit| unit.is_relative());
    match (unit, args.get(start + 1)) {
        (Some(unit), Some(time)) if args.len() == start + 2 => unit.deadline_ms(time, now_ms, command).map(Some),
        (Some(_), _) => Err(CommandError::SYNTAX),
        (None, _) => Err(CommandError::wrong_arity(command)),
    }
}

/// The option `[MAX cap]` that ends a command, from word `start` on.
///
/// # Errors
/// [`CommandError::SYNTAX`] for anything else, [`CommandError::NOT_AN_INTEGER`].
#[inline]
pub fn cap(args: Args<'_>, start: usize) -> Result<Option<i64>, CommandError> {
    if args.len() == start {
        Ok(None)
    } else if args.len() == start + 2 && args.is(start, "MAX") {
        integer_at(args, start + 1).map(Some)
    } else {
        Err(CommandError::SYNTAX)
    }
}
