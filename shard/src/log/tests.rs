//! Promises of records and segments: what was written is read back, and every cut and every changed bit is noticed.

use proptest::prelude::*;

use super::{Buffer, Ending, HEADER_BYTES, Header, Record, Segment};
use crate::args::OwnedArgs;

/// A record as a test has it: a time and commands with their databases.
type Written = (i64, Vec<(usize, Vec<Vec<u8>>)>);

const HEADER: Header = Header { shard: 1, shards: 2, generation: 7, position: 1_000_000 };

fn segment_of(records: &[Written]) -> (Vec<u8>, Vec<usize>) {
    let mut buffer = Buffer::new(HEADER.position);
    let mut ends = vec![HEADER_BYTES];
    for (time_ms, commands) in records {
        buffer.begin(*time_ms);
        for (database, words) in commands {
            let args: OwnedArgs = words.iter().collect();
            buffer.command(*database, args.as_args());
        }
        assert!(buffer.end_record());
        ends.push(HEADER_BYTES + buffer.len());
    }
    let mut bytes = HEADER.encode().to_vec();
    bytes.extend(buffer.take(Vec::new()));
    (bytes, ends)
}

/// All records up to the first that is none, where that stands, and why.
fn read(bytes: &[u8]) -> (Vec<Written>, usize, Ending) {
    let mut segment = Segment::open(bytes).expect("a whole header");
    let mut records = Vec::new();
    let ending = loop {
        match segment.next_record() {
            Ok(Record::Commands { time_ms, commands }) => {
                let commands = commands
                    .iter()
                    .map(|command| (command.database, command.args.iter().map(<[u8]>::to_vec).collect()));
                records.push((time_ms, commands.collect()));
            }
            Ok(Record::Synced(_)) => {}
            Err(ending) => break ending,
        }
    };
    (records, segment.offset(), ending)
}

fn written() -> impl Strategy<Value = Vec<Written>> {
    let word = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..12),
        prop::collection::vec(any::<u8>(), 120..140),
        Just(b"SET".to_vec())
    ];
    let command = (0..300_usize, prop::collection::vec(word, 1..5));
    prop::collection::vec((any::<i64>(), prop::collection::vec(command, 1..4)), 0..6)
}

proptest! {
    #[test]
    fn records_are_read_as_they_were_written(records in written()) {
        let (bytes, _) = segment_of(&records);
        let (read, end, ending) = read(&bytes);
        prop_assert_eq!(read, records);
        prop_assert_eq!((end, ending), (bytes.len(), Ending::Whole));
    }

    #[test]
    fn a_segment_cut_anywhere_ends_behind_a_whole_record(records in written()) {
        let (bytes, ends) = segment_of(&records);
        for cut in HEADER_BYTES..bytes.len() {
            let (read, end, ending) = read(&bytes[..cut]);
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            prop_assert_eq!(&read[..], &records[..whole]);
            prop_assert_eq!(end, ends[whole]);
            prop_assert_eq!(ending, if end == cut { Ending::Whole } else { Ending::Torn });
        }
    }

    #[test]
    fn a_changed_byte_ends_the_segment_where_it_is(records in written(), flip in 1..=255_u8) {
        let (bytes, ends) = segment_of(&records);
        for at in HEADER_BYTES..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            let (read, end, ending) = read(&changed);
            let whole = ends.iter().filter(|end| **end <= at).count() - 1;
            prop_assert_eq!(&read[..], &records[..whole]);
            prop_assert_eq!((end, ending), (ends[whole], Ending::Torn));
        }
    }
}

#[test]
fn a_changed_byte_before_what_was_synced_is_damage() {
    let mut buffer = Buffer::new(HEADER.position);
    let args: OwnedArgs = ["SET", "key", "value"].into_iter().collect();
    let add = |buffer: &mut Buffer| {
        buffer.begin(5);
        buffer.command(0, args.as_args());
        assert!(buffer.end_record());
    };
    add(&mut buffer);
    add(&mut buffer);
    let synced = buffer.end();
    add(&mut buffer);
    buffer.synced(synced);
    let mut bytes = HEADER.encode().to_vec();
    bytes.extend(buffer.take(Vec::new()));
    for at in HEADER_BYTES..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        let (_, _, ending) = read(&changed);
        let is_before = HEADER.position + ((at - HEADER_BYTES) as u64) < synced;
        assert_eq!(ending, if is_before { Ending::Damaged } else { Ending::Torn }, "byte {at}");
    }
}

#[test]
fn a_changed_byte_of_the_header_is_refused() {
    let bytes = HEADER.encode();
    assert_eq!(Header::decode(&bytes), Ok(HEADER));
    for at in 0..HEADER_BYTES {
        let mut changed = bytes;
        changed[at] ^= 1;
        assert!(Header::decode(&changed).is_err(), "byte {at}");
        assert!(Header::decode(&bytes[..at]).is_err());
    }
}

#[test]
fn a_record_somewhere_else_is_none() {
    let (bytes, ends) = segment_of(&[(1, vec![(0, vec![b"PING".to_vec()])]), (2, vec![(0, vec![b"PING".to_vec()])])]);
    let second = bytes[ends[1]..ends[2]].to_vec();
    let mut moved = bytes[..HEADER_BYTES].to_vec();
    moved.extend(second);
    assert_eq!(read(&moved), (vec![], HEADER_BYTES, Ending::Torn));
}

#[test]
fn a_record_without_commands_leaves_no_trace() {
    let mut buffer = Buffer::new(0);
    buffer.begin(1);
    assert!(buffer.end_record());
    assert!(buffer.is_empty());
}
