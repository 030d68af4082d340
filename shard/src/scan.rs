//! What looks at a shard's keys as a whole: `SCAN`, `KEYS`, `RANDOMKEY`, `DBSIZE` and the keys of a slot.
//!
//! A cursor is the same for all shards: the slot in its upper 14 bits, the position in the slot's table
//! ([`SCAN_BITS`] bits) below, 52 bits together, which a double holds exactly. 0 is start and end. It survives every
//! change of the keyspace: a key that is there during the whole scan is returned.

use std::ops::RangeInclusive;

use crate::entry::Kind;
use crate::error::CommandError;
use crate::glob;
use crate::keys::Keys;
use crate::slot::SLOTS;
use crate::table::SCAN_BITS;

/// Keys that `random_key` may find expired in a row.
const RANDOM_TRIES: usize = 1000;

/// Which types a scan returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KindFilter {
    /// All of them.
    #[default]
    Any,
    /// Only this one.
    Only(Kind),
    /// None: a word that names no type.
    Nothing,
}

impl KindFilter {
    /// The filter for the word after `TYPE`, in any case. As in Redis a word that names no type is no error.
    pub fn named(word: &[u8]) -> KindFilter {
        const KINDS: [Kind; 6] = [Kind::String, Kind::List, Kind::Set, Kind::SortedSet, Kind::Hash, Kind::Limit];
        let named = KINDS.into_iter().find(|kind| word.eq_ignore_ascii_case(kind.name().as_bytes()));
        named.map_or(KindFilter::Nothing, KindFilter::Only)
    }

    #[inline]
    fn accepts(self, kind: Kind) -> bool {
        match self {
            KindFilter::Any => true,
            KindFilter::Only(wanted) => wanted == kind,
            KindFilter::Nothing => false,
        }
    }
}

/// Which keys a scan returns.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanFilter<'a> {
    /// Only those that this glob pattern matches.
    pub pattern: Option<&'a [u8]>,
    /// Only those of this type.
    pub kind: KindFilter,
}

/// The cursor in a word, or `ERR invalid cursor`. As in Redis, which leaves it to C's `strtoull`, an empty word is 0 and
/// a sign is taken.
pub fn parse_cursor(word: &[u8]) -> Result<u64, CommandError> {
    let (negative, digits) = match word {
        [] => return Ok(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return Err(CommandError::INVALID_CURSOR);
    }
    let value = digits.iter().try_fold(0u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    });
    let value = value.ok_or(CommandError::INVALID_CURSOR)?;
    Ok(if negative { value.wrapping_neg() } else { value })
}

/// The slot where a cursor goes on: its owner is the shard to ask. `None` for a number past every slot, at which a scan
/// has ended.
pub fn cursor_slot(cursor: u64) -> Option<u16> {
    u16::try_from(cursor >> SCAN_BITS).ok().filter(|&slot| usize::from(slot) < SLOTS)
}

/// The cursor that begins at `slot`; the end after the last slot.
fn cursor_at(slot: usize, position: u64) -> u64 {
    if slot < SLOTS { (slot as u64) << SCAN_BITS | position } else { 0 }
}

impl Keys {
    /// Goes on with a scan of database `database` from `cursor` over this shard's `slots`: looks at about `count` keys
    /// and calls `visit` with those that `filter` accepts and that have not expired before `now_ms` (they are removed).
    ///
    /// Returns the cursor to go on from: in `slots` when there may be more, else where the next shard's slots begin; 0
    /// after the last slot of all. Slots without keys cost next to nothing, so one call passes over all of them.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a word of the call that comes over the wire or from its route"
    )]
    pub fn scan_database(
        &mut self,
        database: usize,
        now_ms: i64,
        cursor: u64,
        count: usize,
        filter: &ScanFilter<'_>,
        slots: RangeInclusive<u16>,
        mut visit: impl FnMut(&[u8]),
    ) -> u64 {
        self.begin(database, now_ms, None);
        let (first, end) = (usize::from(*slots.start()), usize::from(*slots.end()) + 1);
        let Some(asked) = cursor_slot(cursor) else { return 0 };
        let mut slot = usize::from(asked);
        let mut position = cursor & ((1 << SCAN_BITS) - 1);
        if slot < first {
            (slot, position) = (first, 0);
        }
        if slot >= end {
            return cursor;
        }
        let count = count.max(1);
        let mut examined = 0;
        let mut expired: Vec<Box<[u8]>> = Vec::new();
        let next = loop {
            let keys = &self.databases()[database];
            let Some(used) = keys.next_slot(slot, false).filter(|&used| usize::from(used) < end) else {
                break cursor_at(end, 0);
            };
            if usize::from(used) != slot {
                (slot, position) = (usize::from(used), 0);
            }
            if examined >= count {
                break cursor_at(slot, position);
            }
            let Some(table) = keys.table(used) else { break cursor_at(end, 0) };
            let (visited, next) = table.scan(position, count - examined, false, |entry| {
                let key = entry.key();
                if entry.deadline_ms().is_some_and(|deadline_ms| deadline_ms <= now_ms) {
                    expired.push(key.into());
                } else if filter.kind.accepts(entry.kind())
                    && filter.pattern.is_none_or(|pattern| glob::matches(pattern, key))
                {
                    visit(key);
                }
            });
            examined += visited;
            (slot, position) = next.map_or((slot + 1, 0), |next| (slot, next));
        };
        for key in expired {
            self.remove_expired(&key);
        }
        next
    }

    /// Calls `visit` with every key of database `database` that matches `pattern` and has not expired before `now_ms`.
    pub fn keys_matching(&self, database: usize, now_ms: i64, pattern: &[u8], mut visit: impl FnMut(&[u8])) {
        let database = &self.databases()[database];
        let all = pattern == b"*";
        let mut from = 0;
        while let Some(slot) = database.next_slot(from, false) {
            for entry in database.table(slot).into_iter().flat_map(|table| table.iter()) {
                let live = entry.deadline_ms().is_none_or(|deadline_ms| deadline_ms > now_ms);
                if live && (all || glob::matches(pattern, entry.key())) {
                    visit(entry.key());
                }
            }
            from = usize::from(slot) + 1;
        }
    }

    /// A key of database `database`, each with the same chance; those found expired before `now_ms` are removed. `None`
    /// when there is no key, or when a thousand in a row had expired. During a pause, when none is removed, the last of
    /// these is returned, as in Redis.
    pub fn random_key(&mut self, database: usize, now_ms: i64) -> Option<Box<[u8]>> {
        self.begin(database, now_ms, None);
        let mut expired = None;
        for _ in 0..RANDOM_TRIES {
            let entry = self.sample_in(database)?;
            let is_live = entry.deadline_ms().is_none_or(|deadline_ms| deadline_ms > now_ms);
            let key: Box<[u8]> = entry.key().into();
            if is_live {
                return Some(key);
            }
            self.remove_expired(&key);
            expired = Some(key);
        }
        expired.filter(|_| self.paused)
    }

    /// Number of keys of a database, expired ones included that nobody has noticed yet.
    pub fn len(&self, database: usize) -> usize {
        self.databases()[database].len()
    }

    /// Number of keys in `slot` of a database, expired ones included that nobody has noticed yet.
    pub fn count_in_slot(&self, database: usize, slot: u16) -> usize {
        self.databases()[database].table(slot).map_or(0, |table| table.len())
    }

    /// Calls `visit` with up to `count` keys in `slot` of a database, expired ones included that nobody has noticed yet.
    pub fn keys_in_slot(&self, database: usize, slot: u16, count: usize, mut visit: impl FnMut(&[u8])) {
        let table = self.databases()[database].table(slot);
        for entry in table.into_iter().flat_map(|table| table.iter()).take(count) {
            visit(entry.key());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_the_reference_server_reads_them() {
        let cases: [(&str, Option<u64>); 9] = [
            ("0", Some(0)),
            ("", Some(0)),
            ("007", Some(7)),
            ("+5", Some(5)),
            ("-1", Some(u64::MAX)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            (" 1", None),
            ("-", None),
        ];
        for (word, cursor) in cases {
            assert_eq!(parse_cursor(word.as_bytes()).ok(), cursor, "{word}");
        }
    }
}
