//! Ranges of scores and of members, as clients write them.

use crate::error::CommandError;
use crate::number::parse_f64;

/// A range of scores.
#[derive(Clone, Copy, Debug)]
pub struct ScoreRange {
    /// The lower bound.
    pub min: f64,
    /// The upper bound.
    pub max: f64,
    /// Whether the lower bound is outside of the range.
    pub min_exclusive: bool,
    /// Whether the upper bound is outside of the range.
    pub max_exclusive: bool,
}

impl ScoreRange {
    /// Parses the bounds of a range: `5`, `(5`, `-inf`.
    pub fn parse(min: &[u8], max: &[u8]) -> Result<ScoreRange, CommandError> {
        let error = || CommandError::new("ERR min or max is not a float");
        let (min, min_exclusive) = score_bound(min).ok_or_else(error)?;
        let (max, max_exclusive) = score_bound(max).ok_or_else(error)?;
        Ok(ScoreRange { min, max, min_exclusive, max_exclusive })
    }

    /// Whether a score is before the range.
    #[inline]
    pub fn is_below(&self, score: f64) -> bool {
        score < self.min || self.min_exclusive && score == self.min
    }

    /// Whether a score is behind the range.
    #[inline]
    pub fn is_above(&self, score: f64) -> bool {
        score > self.max || self.max_exclusive && score == self.max
    }
}

fn score_bound(word: &[u8]) -> Option<(f64, bool)> {
    match word.strip_prefix(b"(") {
        Some(rest) => Some((strtod(rest)?, true)),
        None => Some((strtod(word)?, false)),
    }
}

/// What C's `strtod` makes of a whole word. Redis reads bounds (unlike scores) with no further check but for NaN, so an
/// empty word is 0, space may come first, and what leaves the range of a double saturates.
fn strtod(word: &[u8]) -> Option<f64> {
    if word.is_empty() {
        return Some(0.0);
    }
    let spaces = word.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let number = &word[spaces..];
    parse_f64(number).or_else(|| {
        let digits = number.strip_prefix(b"-").or_else(|| number.strip_prefix(b"+")).unwrap_or(number);
        // Rust's parser saturates as well, but it knows words that C does not.
        let is_decimal = matches!(digits.first(), Some(b'0'..=b'9' | b'.'));
        if is_decimal { str::from_utf8(number).ok()?.parse().ok() } else { None }
    })
}

/// One end of a range of members.
#[derive(Clone, Copy, Debug)]
pub enum LexBound<'a> {
    /// `-`: before every member.
    Lowest,
    /// `+`: behind every member.
    Highest,
    /// `[member`
    Inclusive(&'a [u8]),
    /// `(member`
    Exclusive(&'a [u8]),
}

/// A range of members.
#[derive(Clone, Copy, Debug)]
pub struct LexRange<'a> {
    min: LexBound<'a>,
    max: LexBound<'a>,
}

impl<'a> LexRange<'a> {
    /// Parses the bounds of a range.
    pub fn parse(min: &'a [u8], max: &'a [u8]) -> Result<LexRange<'a>, CommandError> {
        let error = || CommandError::new("ERR min or max not valid string range item");
        Ok(LexRange { min: lex_bound(min).ok_or_else(error)?, max: lex_bound(max).ok_or_else(error)? })
    }

    /// Whether a member is before the range.
    #[inline]
    pub fn is_below(&self, member: &[u8]) -> bool {
        match self.min {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(min) => member < min,
            LexBound::Exclusive(min) => member <= min,
        }
    }

    /// Whether a member is behind the range.
    #[inline]
    pub fn is_above(&self, member: &[u8]) -> bool {
        match self.max {
            LexBound::Lowest => true,
            LexBound::Highest => false,
            LexBound::Inclusive(max) => member > max,
            LexBound::Exclusive(max) => member >= max,
        }
    }
}

fn lex_bound(word: &[u8]) -> Option<LexBound<'_>> {
    match word {
        b"-" => Some(LexBound::Lowest),
        b"+" => Some(LexBound::Highest),
        [b'[', member @ ..] => Some(LexBound::Inclusive(member)),
        [b'(', member @ ..] => Some(LexBound::Exclusive(member)),
        _ => None,
    }
}
