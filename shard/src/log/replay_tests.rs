//! Promises of replay: a log that is cut or changed anywhere gives what the shard held after some whole records from the first
//! on, and all of those that were on stable storage; or its damage is noticed.

use proptest::prelude::*;

use super::{Buffer, Ending, HEADER_BYTES, Header, Record, Segment, is_proof_of_sync, records_behind};
use crate::histories::{Content, NOW_MS, content, line, run, shard};

const HEADER: Header = Header { shard: 0, shards: 1, generation: 3, position: 4096 };

/// What was logged of a history, and the shard as it was after each record.
struct History {
    file: Vec<u8>,
    /// The offset in the file behind each record of commands, from that of none on.
    ends: Vec<usize>,
    /// What the shard held then.
    contents: Vec<Content>,
    times_ms: Vec<i64>,
}

/// Executes commands, half a second one after the other, a record each. Every so many records the log says that all before the
/// last one are on stable storage.
fn history(lines: &[(usize, String)], records_a_mark: usize) -> History {
    let mut live = shard();
    let mut buffer = Buffer::new(HEADER.position);
    let mut history = History {
        file: HEADER.encode().to_vec(),
        ends: vec![HEADER_BYTES],
        contents: vec![content(&mut live, NOW_MS)],
        times_ms: vec![NOW_MS],
    };
    let mut before = HEADER.position;
    for (index, (database, line)) in lines.iter().enumerate() {
        let now_ms = NOW_MS + index as i64 * 500;
        if let Some(logged) = run(&mut live, *database, now_ms, line) {
            buffer.begin(now_ms);
            buffer.command(*database, logged.as_args());
            assert!(buffer.end_record());
            history.ends.push(HEADER_BYTES + buffer.len());
            history.contents.push(content(&mut live, now_ms));
            history.times_ms.push(now_ms);
            if history.ends.len().is_multiple_of(records_a_mark) {
                buffer.synced(before);
            }
            before = buffer.end();
        }
    }
    history.file.extend(buffer.take(Vec::new()));
    history
}

/// How many records of commands can be read, where there is no further one, and why. What a shard holds after them is
/// compared.
fn replay(file: &[u8], history: &History) -> (usize, usize, Ending) {
    let mut other = shard();
    let mut segment = Segment::open(file).expect("a whole header");
    let mut records = 0;
    let ending = loop {
        match segment.next_record() {
            Ok(Record::Commands { time_ms, commands }) => {
                other.replay(time_ms, &commands, &mut Vec::new()).expect("a record that fits");
                records += 1;
            }
            Ok(Record::Synced(_)) => {}
            Err(ending) => break ending,
        }
    };
    assert_eq!(content(&mut other, history.times_ms[records]), history.contents[records], "after {records} records");
    (records, segment.offset(), ending)
}

/// How many records are whole before an offset in the file.
fn whole_before(history: &History, offset: usize) -> usize {
    history.ends.iter().filter(|end| **end <= offset).count() - 1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_log_cut_anywhere_gives_what_was_there_after_a_record(lines in prop::collection::vec(line(), 1..40)) {
        let history = history(&lines, 3);
        for cut in HEADER_BYTES..=history.file.len() {
            let (records, _, ending) = replay(&history.file[..cut], &history);
            prop_assert_eq!(records, whole_before(&history, cut));
            prop_assert!(matches!(ending, Ending::Whole | Ending::Torn), "{:?} at {}", ending, cut);
        }
    }

    #[test]
    fn a_log_with_any_byte_changed_gives_what_was_there_before_it(
        lines in prop::collection::vec(line(), 1..40),
        flip in 1..=255_u8,
    ) {
        let history = history(&lines, 3);
        let whole = records_behind(&history.file[HEADER_BYTES..], HEADER.position) as usize;
        prop_assert_eq!(whole, history.ends.len() - 1);
        for at in HEADER_BYTES..history.file.len() {
            let mut changed = history.file.clone();
            changed[at] ^= flip;
            let (records, offset, ending) = replay(&changed, &history);
            let before = whole_before(&history, at);
            prop_assert_eq!(records, before);
            prop_assert_ne!(ending, Ending::Whole);
            prop_assert_ne!(ending, Ending::Malformed);
            // What is lost silently was never said to be on stable storage by what can still be read.
            let position = HEADER.position + (offset - HEADER_BYTES) as u64;
            let is_known = is_proof_of_sync(&changed, HEADER.position, position);
            prop_assert_eq!(ending == Ending::Damaged, is_known, "byte {}, {:?}", at, ending);
            prop_assert!(records_behind(&changed[offset..], position) as usize <= whole - before);
        }
    }
}
