use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn sequence_of<T: AsRef<[u8]>>(elements: &[T]) -> Vec<u8> {
    let mut sequence = Vec::new();
    for element in elements {
        push_back(&mut sequence, element.as_ref());
    }
    sequence
}

fn strings_of(sequence: &[u8]) -> Vec<Vec<u8>> {
    assert!(validate(sequence).is_some());
    Elements::new(sequence).map(|(_, element)| element.as_bytes(&mut IntBuffer::new()).to_vec()).collect()
}

fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => vec(any::<u8>(), 0..12),
        3 => (-200i64..200).prop_map(|value| value.to_string().into_bytes()),
        2 => (any::<i64>(), 0u32..64).prop_map(|(value, shift)| (value >> shift).to_string().into_bytes()),
        1 => vec(any::<u8>(), 50..150),
        1 => (4080usize..4110).prop_map(|len| vec![b'x'; len]),
        1 => "[-+]?[0-9]{1,21}".prop_map(String::into_bytes),
    ]
}

fn elements() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(element(), 0..20)
}

/// Taken from what `DUMP` of Redis 7.0 gives for a list of these elements, without the frame around its listpack.
#[test]
fn encodes_as_redis_does() {
    let vectors: [(&str, &[u8]); 25] = [
        ("0", b"\x00\x01"),
        ("127", b"\x7f\x01"),
        ("128", b"\xc0\x80\x02"),
        ("-1", b"\xdf\xff\x02"),
        ("4095", b"\xcf\xff\x02"),
        ("-4096", b"\xd0\x00\x02"),
        ("4096", b"\xf1\x00\x10\x03"),
        ("-4097", b"\xf1\xff\xef\x03"),
        ("32767", b"\xf1\xff\x7f\x03"),
        ("-32768", b"\xf1\x00\x80\x03"),
        ("32768", b"\xf2\x00\x80\x00\x04"),
        ("8388607", b"\xf2\xff\xff\x7f\x04"),
        ("-8388608", b"\xf2\x00\x00\x80\x04"),
        ("8388608", b"\xf3\x00\x00\x80\x00\x05"),
        ("2147483647", b"\xf3\xff\xff\xff\x7f\x05"),
        ("-2147483648", b"\xf3\x00\x00\x00\x80\x05"),
        ("2147483648", b"\xf4\x00\x00\x00\x80\x00\x00\x00\x00\x09"),
        ("9223372036854775807", b"\xf4\xff\xff\xff\xff\xff\xff\xff\x7f\x09"),
        ("-9223372036854775808", b"\xf4\x00\x00\x00\x00\x00\x00\x00\x80\x09"),
        ("9223372036854775808", b"\x939223372036854775808\x14"),
        ("", b"\x80\x01"),
        ("a", b"\x81a\x02"),
        ("-0", b"\x82-0\x03"),
        ("01", b"\x8201\x03"),
        ("+1", b"\x82+1\x03"),
    ];
    for (text, encoded) in vectors {
        let mut out = Vec::new();
        encode(text.as_bytes(), &mut out);
        assert_eq!(out, encoded, "{text}");
        assert_eq!(strings_of(&out), [text.as_bytes()]);
    }
}

/// Headers and `backlen` around every change of their sizes, taken from `DUMP` of Redis 7.0.
#[test]
fn encodes_lengths_as_redis_does() {
    let vectors: [(usize, &[u8], &[u8]); 15] = [
        (63, b"\xbf", b"\x40"),
        (64, b"\xe0\x40", b"\x42"),
        (125, b"\xe0\x7d", b"\x7f"),
        (126, b"\xe0\x7e", b"\x01\x80"),
        (127, b"\xe0\x7f", b"\x01\x81"),
        (4095, b"\xef\xff", b"\x20\x81"),
        (4096, b"\xf0\x00\x10\x00\x00", b"\x20\x85"),
        (16377, b"\xf0\xf9\x3f\x00\x00", b"\x7f\xfe"),
        (16378, b"\xf0\xfa\x3f\x00\x00", b"\x00\xff\xff"),
        (16379, b"\xf0\xfb\x3f\x00\x00", b"\x01\x80\x80"),
        (16380, b"\xf0\xfc\x3f\x00\x00", b"\x01\x80\x81"),
        (2097144, b"\xf0\xf8\xff\x1f\x00", b"\x7f\xff\xfd"),
        (2097145, b"\xf0\xf9\xff\x1f\x00", b"\x7f\xff\xfe"),
        (2097146, b"\xf0\xfa\xff\x1f\x00", b"\x00\xff\xff\xff"),
        (2097147, b"\xf0\xfb\xff\x1f\x00", b"\x01\x80\x80\x80"),
    ];
    for (len, head, backlen) in vectors {
        let text = vec![b'x'; len];
        let sequence = sequence_of(&[&text[..], b"end"]);
        let encoded = &sequence[..encoded_len(&text)];
        assert_eq!(encoded, [head, &text, backlen].concat(), "{len}");
        assert_eq!(validate(&sequence), Some(2), "{len}");
        let (range, _) = last(&sequence).unwrap();
        let (range, element) = before(&sequence, range.start).unwrap();
        assert_eq!(range, 0..encoded.len());
        assert!(element.eq_bytes(&text));
    }
}

#[test]
fn an_empty_sequence_has_no_elements() {
    assert_eq!(validate(b""), Some(0));
    assert_eq!(Elements::new(b"").count(), 0);
    assert!(first(b"").is_none());
    assert!(last(b"").is_none());
    assert!(get(b"", 0, 0).is_none());
    assert!(find(b"", b"", 0).is_none());
}

#[test]
fn validate_refuses_unknown_headers_and_wrong_backlens() {
    for header in 0xf5..=0xff {
        assert_eq!(validate(&[header, 0x01]), None, "{header:#x}");
    }
    assert_eq!(validate(b"\x81a\x02"), Some(1));
    assert_eq!(validate(b"\x81a\x01"), None);
    assert_eq!(validate(b"\x81a\x82"), None);
    assert_eq!(validate(b"\xf0\xff\xff\xff\xff\x00"), None);
    let long = sequence_of(&[[b'x'; 200]]);
    let mut without_continuation = long.clone();
    *without_continuation.last_mut().unwrap() &= 0x7f;
    assert_eq!(validate(&without_continuation), None);
    let mut endless = long.clone();
    endless[202] |= 0x80;
    assert_eq!(validate(&endless), None);
}

#[test]
fn integers_are_found_however_they_are_stored() {
    // The integer 5 in 64 bits, and the string "5": neither is what `encode` writes, both are valid.
    assert_eq!(find(b"\xf4\x05\x00\x00\x00\x00\x00\x00\x00\x09", b"5", 0), Some(0..10));
    assert_eq!(find(b"\x815\x02", b"5", 0), Some(0..3));
    assert_eq!(find(b"\x815\x02", b"05", 0), None);
}

#[test]
fn an_odd_end_does_not_confuse_find() {
    let sequence = sequence_of(&["field", "value", "lonely"]);
    assert!(find(&sequence, b"lonely", 1).is_some());
    assert!(find(&sequence, b"value", 1).is_none());
    assert!(find(&sequence, b"missing", 5).is_none());
}

proptest! {
    #[test]
    fn elements_come_back(model in elements()) {
        let sequence = sequence_of(&model);
        prop_assert_eq!(validate(&sequence), Some(model.len()));
        prop_assert_eq!(sequence.len(), model.iter().map(|element| encoded_len(element)).sum::<usize>());
        prop_assert_eq!(&strings_of(&sequence), &model);
        for ((position, element), expected) in Elements::new(&sequence).zip(&model) {
            let mut out = Vec::new();
            element.write_to(&mut out);
            prop_assert_eq!(&out, expected);
            prop_assert_eq!(element.len(), expected.len());
            prop_assert_eq!(element.is_empty(), expected.is_empty());
            prop_assert!(element.eq_bytes(expected));
            prop_assert!(element == Element::Bytes(expected));
            prop_assert_eq!(element.to_i64(), parse_i64(expected));
            prop_assert_eq!(matches!(element, Element::Int(_)), parse_i64(expected).is_some());
            prop_assert_eq!(position.range().len(), encoded_len(expected));
        }
    }

    #[test]
    fn both_directions_agree(model in elements(), taken in 0usize..20) {
        let sequence = sequence_of(&model);
        let forward: Vec<_> = Elements::new(&sequence).collect();
        let mut backward: Vec<_> = Elements::new(&sequence).rev().collect();
        backward.reverse();
        prop_assert_eq!(&forward, &backward);
        let mut from_both = Elements::new(&sequence);
        let front = from_both.by_ref().take(taken).count();
        prop_assert_eq!(from_both.rev().count(), model.len() - front);
        for (index, (position, element)) in forward.iter().enumerate() {
            let expected = Some((position.range(), *element));
            prop_assert_eq!(get(&sequence, index, model.len()), expected.clone());
            prop_assert_eq!(next_after(&sequence, position.start), expected.clone());
            prop_assert_eq!(before(&sequence, position.end), expected);
            prop_assert_eq!(Elements::new(&sequence).nth_back(model.len() - 1 - index), Some((*position, *element)));
        }
        prop_assert!(get(&sequence, model.len(), model.len()).is_none());
        prop_assert!(Elements::new(&sequence).nth(model.len()).is_none());
        prop_assert!(Elements::new(&sequence).nth_back(model.len()).is_none());
        prop_assert_eq!(first(&sequence), forward.first().map(|(position, element)| (position.range(), *element)));
        prop_assert_eq!(last(&sequence), forward.last().map(|(position, element)| (position.range(), *element)));
    }

    #[test]
    fn find_agrees_with_a_vec(model in elements(), stranger in element(), skip in 0usize..4) {
        let sequence = sequence_of(&model);
        let positions: Vec<_> = Elements::new(&sequence).map(|(position, _)| position.range()).collect();
        for wanted in model.iter().chain([&stranger]) {
            let expected = (0..model.len()).step_by(skip + 1).find(|&index| model[index] == *wanted);
            prop_assert_eq!(find(&sequence, wanted, skip), expected.map(|index| positions[index].clone()));
        }
    }

    #[test]
    fn edits_agree_with_a_vec(model in elements(), added in element(), ends in any::<[prop::sample::Index; 2]>()) {
        let sequence = sequence_of(&model);
        let boundary = |index: usize| Elements::new(&sequence).nth(index).map_or(sequence.len(), |(at, _)| at.start);
        let mut ends = ends.map(|end| end.index(model.len() + 1));
        ends.sort();
        let range = boundary(ends[0])..boundary(ends[1]);

        let (mut edited, mut expected) = (sequence.clone(), model.clone());
        replace(&mut edited, range.clone(), &added);
        expected.splice(ends[0]..ends[1], [added.clone()]);
        prop_assert_eq!(&strings_of(&edited), &expected);

        let (mut edited, mut expected) = (sequence.clone(), model.clone());
        remove(&mut edited, range);
        expected.drain(ends[0]..ends[1]);
        prop_assert_eq!(&strings_of(&edited), &expected);

        let (mut edited, mut expected) = (sequence.clone(), model.clone());
        push_front(&mut edited, &added);
        expected.insert(0, added);
        prop_assert_eq!(&strings_of(&edited), &expected);
    }

    #[test]
    fn integers_encode_as_their_strings(value: i64, shift in 0u32..64) {
        let value = value >> shift;
        let (mut from_integer, mut from_string) = (Vec::new(), Vec::new());
        encode_int(value, &mut from_integer);
        encode(value.to_string().as_bytes(), &mut from_string);
        prop_assert_eq!(&from_integer, &from_string);
        prop_assert_eq!(first(&from_integer).map(|(_, element)| element.to_i64()), Some(Some(value)));
    }

    #[test]
    fn validate_refuses_every_cut_within_an_element(model in vec(element(), 1..6)) {
        let sequence = sequence_of(&model);
        let mut boundaries: Vec<_> = Elements::new(&sequence).map(|(position, _)| position.end).collect();
        boundaries.insert(0, 0);
        for end in 0..=sequence.len() {
            prop_assert_eq!(validate(&sequence[..end]), boundaries.binary_search(&end).ok());
        }
    }

    #[test]
    fn validated_bytes_can_be_walked(
        mut bytes in prop_oneof![vec(any::<u8>(), 0..40), elements().prop_map(|model| sequence_of(&model))],
        damages in vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        for (at, byte) in damages {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        if let Some(count) = validate(&bytes) {
            prop_assert_eq!(Elements::new(&bytes).count(), count);
            let forward: Vec<_> = Elements::new(&bytes).collect();
            let mut backward: Vec<_> = Elements::new(&bytes).rev().collect();
            backward.reverse();
            prop_assert_eq!(forward, backward);
        }
    }
}
