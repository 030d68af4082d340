//! LZF, the compression of strings in an RDB: the stream format of Marc Lehmann's liblzf.
//!
//! A control byte below 32 announces as many literal bytes and one more. In any other the high three bits are a length
//! (when all are set, the next byte is added to it) and the low five, with the byte behind them, a distance: that many
//! bytes and two more are copied from that distance and one more behind the end of what is written.

/// Most literal bytes behind a control byte.
const LITERALS_MAX: usize = 32;
/// Greatest distance of a copy.
const DISTANCE_MAX: usize = 1 << 13;
/// Fewest and most bytes of a copy.
const COPY_MIN: usize = 3;
const COPY_MAX: usize = 264;
/// A copy of three bytes makes at most [`COPY_MAX`] of them.
const GROWTH_MAX: usize = COPY_MAX / 3;
/// Compressing must save more than this many bytes.
const SAVED_MIN: usize = 4;

const TABLE_BITS_MIN: u32 = 8;
const TABLE_BITS_MAX: u32 = 14;

/// The `len` bytes that `compressed` stands for, or none when it stands for something else. Never panics, and allocates
/// no more than the compressed bytes can grow to.
pub fn decompress(compressed: &[u8], len: usize) -> Option<Vec<u8>> {
    if len == 0 || len > compressed.len().saturating_mul(GROWTH_MAX) {
        return None;
    }
    let mut out: Vec<u8> = Vec::with_capacity(len);
    let mut rest = compressed;
    let next = |rest: &mut &[u8]| {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        Some(usize::from(byte))
    };
    while let Some(control) = next(&mut rest) {
        if control < LITERALS_MAX {
            let (literals, behind) = rest.split_at_checked(control + 1)?;
            if out.len() + literals.len() > len {
                return None;
            }
            out.extend_from_slice(literals);
            rest = behind;
            continue;
        }
        let mut copied = control >> 5;
        if copied == 7 {
            copied += next(&mut rest)?;
        }
        copied += 2;
        let distance = ((control & 0x1f) << 8 | next(&mut rest)?) + 1;
        let start = out.len().checked_sub(distance)?;
        if out.len() + copied > len {
            return None;
        }
        if distance >= copied {
            out.extend_from_within(start..start + copied);
        } else {
            // The copy runs into what it writes: a pattern that repeats.
            for index in start..start + copied {
                out.push(out[index]);
            }
        }
    }
    (out.len() == len).then_some(out)
}

/// `bytes` in fewer bytes, at least five less; none where that does not succeed.
pub fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let room = bytes.len().checked_sub(SAVED_MIN).filter(|room| *room > 0)?;
    let bits = bytes.len().ilog2().clamp(TABLE_BITS_MIN, TABLE_BITS_MAX);
    // Where three bytes with this hash were last seen, counted from 1.
    let mut seen = vec![0_u32; 1 << bits];
    let slot = |at: usize| {
        let three = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], 0]);
        (three.wrapping_mul(0x9e37_79b1) >> (32 - bits)) as usize
    };
    let mut out = Vec::with_capacity(room);
    let mut literals = 0;
    let mut at = 0;
    while at + COPY_MIN <= bytes.len() {
        let slot_here = slot(at);
        let earlier = (seen[slot_here] as usize).checked_sub(1);
        seen[slot_here] = u32::try_from(at + 1).ok()?;
        let found = earlier.filter(|&earlier| {
            at - earlier <= DISTANCE_MAX && bytes[earlier..earlier + COPY_MIN] == bytes[at..at + COPY_MIN]
        });
        let Some(earlier) = found else {
            at += 1;
            continue;
        };
        let longest = COPY_MAX.min(bytes.len() - at);
        let same = (COPY_MIN..longest).take_while(|&index| bytes[earlier + index] == bytes[at + index]).count();
        let copied = COPY_MIN + same;
        write_literals(&bytes[literals..at], &mut out);
        let (length, distance) = (copied - 2, at - earlier - 1);
        if length < 7 {
            out.push((length << 5 | distance >> 8) as u8);
        } else {
            out.push((7 << 5 | distance >> 8) as u8);
            out.push((length - 7) as u8);
        }
        out.push(distance as u8);
        if out.len() >= room {
            return None;
        }
        // The beginning of what follows is likely to come after the end of what was copied.
        for inside in (at + 1..at + copied).rev().take(2) {
            if inside + COPY_MIN <= bytes.len() {
                seen[slot(inside)] = u32::try_from(inside + 1).ok()?;
            }
        }
        at += copied;
        literals = at;
    }
    write_literals(&bytes[literals..], &mut out);
    (out.len() < room).then_some(out)
}

fn write_literals(literals: &[u8], out: &mut Vec<u8>) {
    for run in literals.chunks(LITERALS_MAX) {
        out.push((run.len() - 1) as u8);
        out.extend_from_slice(run);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stream_of_liblzf_is_read() {
        // What Redis 7.0 stores for fifty times the letter a.
        assert_eq!(decompress(&[1, b'a', b'a', 0xe0, 37, 0, 1, b'a', b'a'], 50), Some(vec![b'a'; 50]));
    }

    #[test]
    fn damaged_streams_are_refused() {
        for (stream, len) in [
            (&[][..], 1),
            (&[0], 1),
            (&[0, b'a'], 2),
            (&[0, b'a'], 0),
            (&[0, b'a', 0x20, 1], 4),
            (&[0, b'a', 0x20], 4),
            (&[0, b'a', 0xe0], 10),
            (&[0, b'a', 0x20, 0], 3),
            (&[0x20, 0], 3),
            (&[0, b'a'], usize::MAX),
        ] {
            assert_eq!(decompress(stream, len), None, "{stream:?}");
        }
    }

    #[test]
    fn what_does_not_shrink_is_left() {
        assert_eq!(compress(b""), None);
        assert_eq!(compress(b"abcd"), None);
        assert_eq!(compress(&(0..=255).collect::<Vec<u8>>()), None);
    }

    proptest! {
        #[test]
        fn what_was_compressed_is_had_back(parts in proptest::collection::vec((0_u8..4, 1_usize..600), 0..40)) {
            let mut bytes = Vec::new();
            for (index, (byte, times)) in parts.into_iter().enumerate() {
                bytes.extend((0..times).map(|time| if byte == 3 { (time * index) as u8 } else { byte }));
            }
            if let Some(compressed) = compress(&bytes) {
                prop_assert!(compressed.len() + SAVED_MIN < bytes.len());
                prop_assert_eq!(decompress(&compressed, bytes.len()), Some(bytes));
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(stream in proptest::collection::vec(any::<u8>(), 0..200), len in 0_usize..4000) {
            if let Some(bytes) = decompress(&stream, len) {
                prop_assert_eq!(bytes.len(), len);
            }
        }
    }
}
