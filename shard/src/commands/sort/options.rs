//! What a call of `SORT` asks for.

use std::ops::Range;

use super::pattern::Pattern;
use crate::args::Args;
use crate::commands::options::integer_at;
use crate::error::CommandError;

/// The options of `SORT`.
#[derive(Default)]
pub struct Options<'a> {
    /// `DESC`
    pub descending: bool,
    /// `ALPHA`: weights are strings, not numbers.
    pub alpha: bool,
    /// Elements stay in the order they have: `BY` a pattern that makes no keys.
    pub unsorted: bool,
    /// What elements are sorted by; themselves where it is none.
    pub by: Option<Pattern<'a>>,
    /// What is returned for each element; itself where there is none.
    pub gets: Vec<Pattern<'a>>,
    /// `STORE`
    pub store: Option<&'a [u8]>,
    offset: i64,
    /// Negative for all.
    count: Option<i64>,
}

/// The number of words behind an option of `SORT` that belong to it; none for words that are no such option.
fn operands(args: Args<'_>, index: usize) -> Option<usize> {
    const OPTIONS: [(&str, usize); 7] =
        [("asc", 0), ("desc", 0), ("alpha", 0), ("limit", 2), ("store", 1), ("by", 1), ("get", 1)];
    let (_, operands) = OPTIONS.iter().find(|(word, _)| args.is(index, word))?;
    (index + operands < args.len()).then_some(*operands)
}

/// Shows `visit` where the destination of `SORT` stands: behind the last `STORE`, which counts.
pub fn visit_destination(args: Args<'_>, visit: &mut dyn FnMut(usize)) {
    let mut index = 2;
    let mut found = None;
    while index < args.len() {
        let operands = operands(args, index).unwrap_or(0);
        if operands == 1 && args.is(index, "store") {
            found = Some(index + 1);
        }
        index += 1 + operands;
    }
    if let Some(index) = found {
        visit(index);
    }
}

impl<'a> Options<'a> {
    /// Reads the options. Unless `any_slot`, patterns must make keys of the slot of the key that is sorted.
    pub fn parse(args: Args<'a>, may_store: bool, any_slot: bool) -> Result<Options<'a>, CommandError> {
        let mut options = Options::default();
        let mut index = 2;
        while index < args.len() {
            let Some(operands) = operands(args, index) else { return Err(CommandError::SYNTAX) };
            if args.is(index, "asc") {
                options.descending = false;
            } else if args.is(index, "desc") {
                options.descending = true;
            } else if args.is(index, "alpha") {
                options.alpha = true;
            } else if args.is(index, "limit") {
                options.offset = integer_at(args, index + 1)?;
                options.count = Some(integer_at(args, index + 2)?);
            } else if args.is(index, "store") {
                if !may_store {
                    return Err(CommandError::SYNTAX);
                }
                options.store = args.get(index + 1);
            } else if args.is(index, "by") {
                let pattern = Pattern::parse(args.at(index + 1));
                options.unsorted = !pattern.makes_keys();
                if !options.unsorted {
                    check_slot(&pattern, args, any_slot, "BY")?;
                    options.by = Some(pattern);
                }
            } else {
                let pattern = Pattern::parse(args.at(index + 1));
                check_slot(&pattern, args, any_slot, "GET")?;
                options.gets.push(pattern);
            }
            index += 1 + operands;
        }
        if options.unsorted {
            options.by = None;
        }
        Ok(options)
    }

    /// Whether other keys than the sorted one are read.
    pub fn reads_keys(&self) -> bool {
        self.by.iter().chain(&self.gets).any(Pattern::makes_keys)
    }

    /// The range of `len` elements that `LIMIT` leaves.
    pub fn range(&self, len: usize) -> Range<usize> {
        let start = usize::try_from(self.offset).unwrap_or(0).min(len);
        let count = self.count.and_then(|count| usize::try_from(count).ok()).unwrap_or(len);
        start..start.saturating_add(count).min(len)
    }
}

fn check_slot(pattern: &Pattern<'_>, args: Args<'_>, any_slot: bool, option: &str) -> Result<(), CommandError> {
    if any_slot || pattern.stays_in_slot_of(args.at(1)) {
        return Ok(());
    }
    Err(CommandError::new(format!(
        "ERR {option} option of SORT denied in Cluster mode when keys formed by the pattern may be in different slots."
    )))
}
