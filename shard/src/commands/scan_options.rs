//! What follows the cursor of `HSCAN`, `SSCAN` and `ZSCAN`.

use crate::args::Args;
use crate::error::CommandError;
use crate::glob;
use crate::number::parse_i64;

/// Elements to visit when no `COUNT` is given.
const DEFAULT_COUNT: usize = 10;

/// `[MATCH pattern] [COUNT count]`, and `NOVALUES` or `NOSCORES` where the command has it.
pub struct ScanOptions<'a> {
    /// About how many elements to visit.
    pub count: usize,
    /// Whether each element is returned without what belongs to it.
    pub bare: bool,
    pattern: Option<&'a [u8]>,
}

impl<'a> ScanOptions<'a> {
    /// Reads the words behind the cursor of `command`, which is given in capitals.
    ///
    /// # Errors
    /// [`CommandError::SYNTAX`] and [`CommandError::NOT_AN_INTEGER`]; a text of its own for `NOVALUES` and `NOSCORES` of
    /// another command.
    pub fn parse(words: Args<'a>, command: &str) -> Result<ScanOptions<'a>, CommandError> {
        let mut options = ScanOptions { count: DEFAULT_COUNT, bare: false, pattern: None };
        let mut index = 0;
        while index < words.len() {
            if let Some((option, owner)) = BARE.into_iter().find(|(option, _)| words.is(index, option)) {
                if owner != command {
                    return Err(CommandError::new(format!("ERR {option} option can only be used in {owner}")));
                }
                options.bare = true;
                index += 1;
                continue;
            }
            let value = words.get(index + 1).ok_or(CommandError::SYNTAX)?;
            if words.is(index, "COUNT") {
                let count = parse_i64(value).ok_or(CommandError::NOT_AN_INTEGER)?;
                if count < 1 {
                    return Err(CommandError::SYNTAX);
                }
                options.count = usize::try_from(count).unwrap_or(usize::MAX);
            } else if words.is(index, "MATCH") {
                // A lone star matches everything, an empty element too.
                options.pattern = (value != b"*").then_some(value);
            } else {
                return Err(CommandError::SYNTAX);
            }
            index += 2;
        }
        Ok(options)
    }

    /// Whether an element is returned.
    #[inline]
    pub fn matches(&self, element: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, element))
    }
}

/// The options that leave something out, each with the command that has it.
const BARE: [(&str, &str); 2] = [("NOVALUES", "HSCAN"), ("NOSCORES", "ZSCAN")];
