//! Bytes of a connection, read in pieces: whatever the cuts, the same requests are found where they are, and the words
//! of every request survive being written again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ruvio_shard::args::{ArgRange, Args};

#[path = "../../../src/wire.rs"]
mod wire;

use wire::{Framed, Limits, Progress};

/// Bits of an input's first byte.
const UNAUTHENTICATED: u8 = 1;
const LONG_PIECES: u8 = 2;
const PADDED: u8 = 4;
const SMALL_BULKS: u8 = 8;

/// Lengths of the pieces, used in turn.
const PIECES: usize = 3;

/// Padding begins just below the longest line.
const SHORTEST_PADDING: usize = 64 * 1024 - 16;

/// Most bytes of a line's words that are quoted and split again: it takes long.
const LONGEST_QUOTED: usize = 4096;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// How a stream of requests ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Incomplete,
    Broken(String),
}

/// A request's place in the stream, and its words' places in the request.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    start: usize,
    len: usize,
    ranges: Vec<ArgRange>,
}

/// Reads the stream as a connection does, in pieces of these lengths.
fn read(stream: &[u8], limits: Limits, mut pieces: impl Iterator<Item = usize>) -> (Vec<Request>, End) {
    let mut requests = Vec::new();
    let mut progress = Progress::default();
    let (mut start, mut received) = (0, 0);
    loop {
        match wire::frame(&stream[start..received], &mut progress, limits) {
            Framed::Request(len) => {
                assert!(len > 0 && start + len <= received, "a request of bytes that are there");
                requests.push(Request { start, len, ranges: progress.ranges().to_vec() });
                progress.reset();
                start += len;
            }
            Framed::Incomplete if received == stream.len() => return (requests, End::Incomplete),
            Framed::Incomplete => received = stream.len().min(received + pieces.next().unwrap_or(usize::MAX / 2)),
            Framed::Broken(text) => return (requests, End::Broken(text)),
        }
    }
}

/// The words at `ranges`, which lie one behind the other and inside of `bytes`.
fn words<'a>(bytes: &'a [u8], ranges: &'a [ArgRange]) -> Vec<&'a [u8]> {
    let mut end = 0;
    for range in ranges {
        assert!(range.start as usize >= end);
        end = range.start as usize + range.len as usize;
    }
    assert!(end <= bytes.len());
    Args::new(bytes, ranges).iter().collect()
}

/// A request of these words comes back as it was.
fn check_array(content: &[&[u8]], limits: Limits) {
    let mut request = format!("*{}\r\n", content.len()).into_bytes();
    for word in content {
        request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
    let (again, end) = read(&request, limits, std::iter::empty());
    assert_eq!(end, End::Incomplete);
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].len, request.len());
    assert_eq!(words(&request, &again[0].ranges), content);
}

/// The words of a line, and the same words quoted, are equal.
fn check_inline(line: &[u8]) {
    let (mut buffer, mut ranges) = (b"before".to_vec(), Vec::new());
    if !wire::inline_words(line, &mut buffer, &mut ranges) {
        return;
    }
    assert!(ranges.iter().all(|range| range.start >= 6), "words are appended");
    let found = words(&buffer, &ranges);
    if buffer.len() > LONGEST_QUOTED {
        return;
    }
    let mut quoted = Vec::new();
    for word in &found {
        quoted.push(b'"');
        for byte in *word {
            quoted.extend([b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        quoted.extend(b"\" ");
    }
    let (mut again, mut again_ranges) = (Vec::new(), Vec::new());
    assert!(wire::inline_words(&quoted, &mut again, &mut again_ranges));
    assert_eq!(words(&again, &again_ranges), found);
}

fuzz_target!(|data: &[u8]| {
    let Some((&[flags, pad, pieces @ ..], stream)) = data.split_first_chunk::<{ 2 + PIECES }>() else { return };
    let limits = Limits {
        max_bulk_len: if flags & SMALL_BULKS != 0 { 16 } else { 512 << 20 },
        authenticated: flags & UNAUTHENTICATED == 0,
    };
    let mut stream = stream.to_vec();
    if flags & PADDED != 0 {
        // Lines of about the longest length allowed, which would take too long to find.
        let at = usize::from(pad) % (stream.len() + 1);
        let padding = vec![pad; SHORTEST_PADDING + usize::from(pieces[0]) % 32];
        stream.splice(at..at, padding);
    }
    let unit = if flags & (LONG_PIECES | PADDED) != 0 { 257 } else { 1 };
    let pieces = pieces.into_iter().cycle().map(|length| usize::from(length).max(1) * unit);
    let in_pieces = read(&stream, limits, pieces);
    let (requests, end) = read(&stream, limits, std::iter::empty());
    assert_eq!((&requests, &end), (&in_pieces.0, &in_pieces.1));
    for request in &requests {
        let bytes = &stream[request.start..][..request.len];
        if bytes[0] != b'*' {
            assert!(request.ranges.is_empty());
            check_inline(bytes.strip_suffix(b"\n").unwrap_or(bytes));
        } else if !request.ranges.is_empty() {
            check_array(&words(bytes, &request.ranges), limits);
        }
    }
});
