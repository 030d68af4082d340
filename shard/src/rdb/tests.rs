//! Lengths and strings, as the format writes them.

use proptest::prelude::*;

use super::{LoadError, Reader, save_length, save_string};
use crate::number::IntBuffer;

#[test]
fn lengths_take_the_fewest_bytes() {
    for (length, bytes) in [
        (0, 1),
        (63, 1),
        (64, 2),
        (16_383, 2),
        (16_384, 5),
        (u64::from(u32::MAX), 5),
        (u64::from(u32::MAX) + 1, 9),
        (u64::MAX, 9),
    ] {
        let mut out = Vec::new();
        save_length(length, &mut out);
        assert_eq!(out.len(), bytes, "{length}");
        assert_eq!(Reader::new(&out).number(), Ok(length));
    }
}

#[test]
fn kinds_that_are_none_are_damage() {
    assert_eq!(Reader::new(b"\x82").number(), Err(LoadError::Damaged));
    assert_eq!(Reader::new(b"\xc0\x01").number(), Err(LoadError::Damaged));
    assert_eq!(Reader::new(b"\xc4\x01").text().err(), Some(LoadError::Damaged));
}

proptest! {
    #[test]
    fn strings_are_read_as_they_were_written(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            "-?[0-9]{1,12}".prop_map(String::into_bytes),
            proptest::collection::vec(0_u8..3, 0..20_000),
        ],
        behind in any::<u8>(),
    ) {
        let mut out = Vec::new();
        save_string(&bytes, &mut out);
        out.push(behind);
        let mut reader = Reader::new(&out);
        let text = reader.text();
        prop_assert!(text.is_ok());
        if let Ok(text) = text {
            let mut scratch = IntBuffer::new();
            prop_assert_eq!(text.as_bytes(&mut scratch), &bytes[..]);
        }
        prop_assert_eq!(reader.rest(), &[behind]);
    }
}
