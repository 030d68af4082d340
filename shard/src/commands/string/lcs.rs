//! The longest common subsequence of two strings.

use crate::args::Args;
use crate::command::{Begin, Categories, Command, Find, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::commands::options::integer_at;
use crate::commands::string::string_bytes;
use crate::context::Context;
use crate::entry::Kind;
use crate::error::{CommandError, CommandResult};
use crate::keys::Keys;
use crate::number::IntBuffer;
use crate::reply::Reply;

/// `LCS`
pub static COMMANDS: &[Command] = &[Command {
    spec: Spec {
        name: "lcs",
        arity: -3,
        flags: Flags::READ_ONLY,
        keys: &[KeySpec {
            begin: Begin::Index(1),
            find: Find::Range { last: 1, step: 1, limit: 0 },
            flags: KeyFlags::READ.and(KeyFlags::ACCESS),
        }],
        categories: Categories::STRING,
        group: Group::String,
        since: "7.0.0",
        complexity: "O(N*M) where N and M are the lengths of the strings",
        summary: "Finds the longest sequence of bytes that two strings have in common, in order but not without gaps.",
        syntax: "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
    },
    run: lcs,
}];

#[derive(Default)]
struct Options {
    length: bool,
    ranges: bool,
    shortest: usize,
    with_lengths: bool,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Options, CommandError> {
        let mut options = Options::default();
        let mut index = 3;
        while index < args.len() {
            if args.is(index, "idx") {
                options.ranges = true;
            } else if args.is(index, "len") {
                options.length = true;
            } else if args.is(index, "withmatchlen") {
                options.with_lengths = true;
            } else if args.is(index, "minmatchlen") && index + 1 < args.len() {
                index += 1;
                options.shortest = usize::try_from(integer_at(args, index)?).unwrap_or(0);
            } else {
                return Err(CommandError::SYNTAX);
            }
            index += 1;
        }
        if options.length && options.ranges {
            return Err(CommandError::new("ERR If you want both the length and indexes, please just use IDX."));
        }
        Ok(options)
    }
}

/// A copy of the string at `key`, empty where there is none.
fn string(keys: &mut Keys, key: &[u8]) -> Result<Vec<u8>, CommandError> {
    match keys.find(key) {
        Some(entry) if entry.kind() != Kind::String => {
            Err(CommandError::new("ERR The specified keys must contain string values"))
        }
        Some(entry) => Ok(string_bytes(entry, &mut IntBuffer::new()).to_vec()),
        None => Ok(Vec::new()),
    }
}

fn lcs(context: &mut Context<'_>, args: Args<'_>) -> CommandResult {
    let a = string(context.keys, args.at(1));
    let b = string(context.keys, args.at(2));
    let (a, b) = (a?, b?);
    let options = Options::parse(args)?;
    check_size(a.len(), b.len(), context.keys.settings.proto_max_bulk_len)?;
    let common = Common::find(&a, &b, !options.length);
    let reply = &mut context.reply;
    if options.length {
        reply.count(common.len);
    } else if options.ranges {
        reply.map(2);
        reply.bulk(b"matches");
        let matches = reply.begin_array();
        let mut count = 0;
        common.runs(|run| {
            if run.len >= options.shortest {
                write_run(run, options.with_lengths, reply);
                count += 1;
            }
        });
        reply.end(matches, count);
        reply.bulk(b"len");
        reply.count(common.len);
    } else {
        let mut sequence = vec![0; common.len];
        let mut end = common.len;
        common.runs(|run| {
            let start = end.saturating_sub(run.len);
            sequence[start..end].copy_from_slice(&a[run.a..run.a + run.len]);
            end = start;
        });
        reply.bulk(&sequence);
    }
    Ok(())
}

/// What is bounded is the table that Redis would need, which is larger than the one here.
fn check_size(a_len: usize, b_len: usize, bytes_max: usize) -> CommandResult {
    const CELL_BYTES: usize = 4;
    const LENGTH_MAX: usize = u32::MAX as usize - 1;
    if a_len >= LENGTH_MAX || b_len >= LENGTH_MAX {
        return Err(CommandError::new("ERR String too long for LCS"));
    }
    let bytes = (a_len + 1).checked_mul(b_len + 1).and_then(|cells| cells.checked_mul(CELL_BYTES));
    if bytes.is_none_or(|bytes| bytes > bytes_max) {
        return Err(CommandError::new("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"));
    }
    Ok(())
}

fn write_run(run: Run, with_length: bool, reply: &mut Reply<'_>) {
    reply.array(2 + usize::from(with_length));
    for start in [run.a, run.b] {
        reply.array(2);
        reply.count(start);
        reply.count(start + run.len - 1);
    }
    if with_length {
        reply.count(run.len);
    }
}

/// Bytes that follow each other in both strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// Where they begin in the first string.
    a: usize,
    /// Where they begin in the second.
    b: usize,
    len: usize,
}

/// A longest common subsequence, by dynamic programming over the prefixes of both strings.
struct Common<'s> {
    a: &'s [u8],
    b: &'s [u8],
    len: usize,
    /// For each pair of prefixes, row by row: whether the first one's last byte is to be dropped rather than the
    /// second's, where these two differ. Empty where only the length was asked for.
    drops_first: Vec<u64>,
}

impl<'s> Common<'s> {
    fn find(a: &'s [u8], b: &'s [u8], with_path: bool) -> Common<'s> {
        let bits = if with_path { a.len() * b.len() } else { 0 };
        let mut drops_first = vec![0_u64; bits.div_ceil(64)];
        // The lengths for the current prefix of `a` and each of `b`.
        let mut row = vec![0_u32; b.len() + 1];
        for (i, byte) in a.iter().enumerate() {
            let mut diagonal = 0;
            for (j, other) in b.iter().enumerate() {
                let (above, left) = (row[j + 1], row[j]);
                row[j + 1] = if byte == other {
                    diagonal + 1
                } else {
                    if with_path && above > left {
                        let bit = i * b.len() + j;
                        drops_first[bit / 64] |= 1 << (bit % 64);
                    }
                    above.max(left)
                };
                diagonal = above;
            }
        }
        let len = row.last().map_or(0, |len| *len as usize);
        Common { a, b, len, drops_first }
    }

    /// Visits the runs that make up the subsequence, from the last to the first.
    fn runs(&self, mut visit: impl FnMut(Run)) {
        let (mut i, mut j) = (self.a.len(), self.b.len());
        let mut run: Option<Run> = None;
        while i > 0 && j > 0 {
            if self.a[i - 1] == self.b[j - 1] {
                (i, j) = (i - 1, j - 1);
                run = Some(Run { a: i, b: j, len: run.map_or(0, |run| run.len) + 1 });
                continue;
            }
            if let Some(run) = run.take() {
                visit(run);
            }
            let bit = (i - 1) * self.b.len() + j - 1;
            if self.drops_first[bit / 64] >> (bit % 64) & 1 == 1 {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        if let Some(run) = run {
            visit(run);
        }
    }
}
