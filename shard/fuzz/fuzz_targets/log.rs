//! A shard's log: whatever a segment holds, reading it ends, and what is read lies inside of it; records that were sealed as
//! the log seals them are executed again without a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ruvio_shard::log::{Ending, HEADER_BYTES, Header, Record, SEAL_BYTES, Segment, is_proof_of_sync, records_behind};
use ruvio_shard::settings::Settings;
use ruvio_shard::shard::Shard;

#[path = "stored/empty.rs"]
mod empty;
#[path = "stored/sealed.rs"]
mod sealed;

use empty::{empty_shard, give_back};
use sealed::{HEADER, sealed};

/// Bits of an input's first byte: the rest is a whole file; a byte of it is changed; it is cut.
const RAW: u8 = 1;
const CHANGED: u8 = 2;
const CUT: u8 = 4;

/// Longest string that a command may make, in bytes.
const LONGEST_STRING: usize = 100_000;

/// Reads a segment to its end; executes its records where they may be such as were logged.
fn read(file: &[u8], shard: &mut Option<Shard>) -> (u64, u64, Ending) {
    let Ok(mut segment) = Segment::open(file) else { return (0, 0, Ending::Torn) };
    let (mut records, mut replies) = (0, Vec::new());
    loop {
        let (offset, position) = (segment.offset(), segment.position());
        assert_eq!((position - segment.header().position) as usize, offset - HEADER_BYTES);
        match segment.next_record() {
            Ok(Record::Commands { time_ms, commands }) => {
                records += 1;
                for command in &commands {
                    assert!(!command.args.is_empty());
                    for word in command.args.iter() {
                        let (start, end) = (word.as_ptr() as usize, word.as_ptr() as usize + word.len());
                        let inside = file.as_ptr() as usize + offset..=file.as_ptr() as usize + file.len();
                        assert!(inside.contains(&start) && inside.contains(&end));
                    }
                }
                if let Some(shard) = shard
                    && shard.replay(time_ms, &commands, &mut replies).is_err()
                {
                    return (records, offset as u64, Ending::Malformed);
                }
            }
            Ok(Record::Synced(_)) => {}
            Err(ending) => {
                assert_eq!(segment.offset(), offset, "nothing is passed");
                assert!(ending != Ending::Whole || offset == file.len());
                assert!(ending != Ending::Sealed || offset + SEAL_BYTES == file.len());
                return (records, offset as u64, ending);
            }
        }
        assert!(segment.offset() > offset && segment.offset() <= file.len());
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&[flags, high, low], rest)) = data.split_first_chunk::<3>() else { return };
    let mut file = if flags & RAW != 0 {
        rest.to_vec()
    } else {
        let header: Header = HEADER;
        let mut file = header.encode().to_vec();
        sealed(rest, header.position, &mut file);
        file
    };
    let whole = read(&file, &mut None);
    let place = usize::from(u16::from_be_bytes([high, low])).min(file.len());
    if flags & RAW == 0 {
        assert!(records_behind(&file[HEADER_BYTES..], HEADER.position) >= whole.0);
        let settings = Settings { proto_max_bulk_len: LONGEST_STRING, ..Settings::default() };
        let mut shard = Some(empty_shard(&settings));
        read(&file, &mut shard);
        shard.into_iter().for_each(give_back);
    }
    if flags & CUT != 0 {
        file.truncate(place);
    } else if flags & CHANGED != 0 && place < file.len() {
        file[place] ^= 1 << (flags >> 5);
    }
    let after = read(&file, &mut None);
    if flags & RAW == 0 && flags & (CUT | CHANGED) != 0 {
        // A prefix of the records, and nothing else.
        assert!(after.0 <= whole.0 && after.1 <= whole.1);
        assert!(after.2 != Ending::Whole || flags & CUT != 0 || place >= whole.1 as usize);
    }
    records_behind(&file, HEADER.position);
    is_proof_of_sync(&file, HEADER.position, HEADER.position);
});
