use proptest::prelude::*;

use super::*;

/// A string as its bits, one by one.
fn spread(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> (7 - bit) & 1 == 1)).collect()
}

fn strings() -> impl Strategy<Value = Vec<u8>> {
    // Mostly runs of equal bytes, so that searches go past whole words.
    let runs = prop::collection::vec((prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 1usize..30), 0..6);
    runs.prop_map(|runs| runs.into_iter().flat_map(|(byte, len)| std::iter::repeat_n(byte, len)).collect())
}

fn string_and_range() -> impl Strategy<Value = (Vec<u8>, Range<u64>)> {
    strings().prop_flat_map(|bytes| {
        let bits = bytes.len() as u64 * 8;
        (Just(bytes), 0..=bits, 0..=bits).prop_map(|(bytes, one, other)| (bytes, one.min(other)..one.max(other)))
    })
}

fn field_types() -> impl Strategy<Value = FieldType> {
    (any::<bool>(), 1u32..=63).prop_map(|(signed, width)| {
        let word = format!("{}{}", if signed { 'i' } else { 'u' }, width + u32::from(signed));
        FieldType::parse(word.as_bytes()).expect(&word)
    })
}

proptest! {
    #[test]
    fn ranges_are_counted_and_searched_as_bit_by_bit((bytes, range) in string_and_range()) {
        let bits = spread(&bytes);
        let within = &bits[range.start as usize..range.end as usize];
        prop_assert_eq!(count(&bytes, range.clone()), within.iter().filter(|bit| **bit).count() as u64);
        for bit in [false, true] {
            let expected = within.iter().position(|here| *here == bit).map(|at| range.start + at as u64);
            prop_assert_eq!(find(&bytes, range.clone(), bit), expected);
        }
    }

    #[test]
    fn strings_are_combined_as_bit_by_bit(mut one in strings(), other in strings()) {
        let len = one.len().max(other.len());
        for (combination, rule) in [
            (Combination::And, (|a, b| a & b) as fn(u8, u8) -> u8),
            (Combination::Or, |a, b| a | b),
            (Combination::Xor, |a, b| a ^ b),
        ] {
            let byte = |bytes: &[u8], index: usize| bytes.get(index).copied().unwrap_or(0);
            let expected: Vec<u8> = (0..len).map(|index| rule(byte(&one, index), byte(&other, index))).collect();
            let mut result = one.clone();
            combine(&mut result, &other, combination);
            prop_assert_eq!(result, expected);
        }
        let inverted: Vec<bool> = spread(&one).into_iter().map(|bit| !bit).collect();
        invert(&mut one);
        prop_assert_eq!(spread(&one), inverted);
    }

    #[test]
    fn fields_are_read_and_written_as_bit_by_bit(
        mut bytes in prop::collection::vec(any::<u8>(), 1..30),
        field in field_types(),
        offset in 0u64..300,
        value in any::<i64>(),
    ) {
        let bits = spread(&bytes);
        let width = u64::from(field.width());
        let mut expected: i128 = 0;
        for at in offset..offset + width {
            expected = expected << 1 | i128::from(bits.get(at as usize).copied().unwrap_or(false));
        }
        if field.bounds().1 < 0 && expected >> (width - 1) == 1 {
            expected -= 1 << width;
        }
        prop_assert_eq!(i128::from(field.get(&bytes, offset)), expected);
        if offset + width <= bits.len() as u64 {
            field.set(&mut bytes, offset, value);
            prop_assert_eq!(field.get(&bytes, offset), field.truncate(value));
            let after = spread(&bytes);
            let outside = |at: &usize| !(offset..offset + width).contains(&(*at as u64));
            prop_assert!((0..bits.len()).filter(outside).all(|at| bits[at] == after[at]), "a neighbour changed");
        }
    }

    #[test]
    fn sums_stay_in_range_or_overflow(field in field_types(), value in any::<i64>(), increment in any::<i64>()) {
        let value = field.truncate(value);
        let (largest, smallest) = field.bounds();
        let sum = i128::from(value) + i128::from(increment);
        let fits = (i128::from(smallest)..=i128::from(largest)).contains(&sum);
        let span = i128::from(largest) - i128::from(smallest) + 1;
        let wrapped = (sum - i128::from(smallest)).rem_euclid(span) + i128::from(smallest);
        prop_assert_eq!(field.add(value, increment, Overflow::Wrap).map(i128::from), Some(wrapped));
        let clamped = sum.clamp(i128::from(smallest), i128::from(largest));
        prop_assert_eq!(field.add(value, increment, Overflow::Saturate).map(i128::from), Some(clamped));
        prop_assert_eq!(field.add(value, increment, Overflow::Fail).map(i128::from), fits.then_some(sum));
    }
}

#[test]
fn single_bits_are_numbered_from_the_highest() {
    let mut bytes = vec![0, 0];
    assert!(!set(&mut bytes, 9, true));
    assert!(set(&mut bytes, 9, true));
    assert_eq!(bytes, [0, 0x40]);
    assert!(get(&bytes, 9) && !get(&bytes, 8) && !get(&bytes, 16) && !get(&bytes, u64::MAX));
    assert!(set(&mut bytes, 9, false));
    assert_eq!(bytes, [0, 0]);
}

#[test]
fn field_types_are_spelled_strictly() {
    for word in ["i1", "i64", "u1", "u63"] {
        assert!(FieldType::parse(word.as_bytes()).is_some(), "{word}");
    }
    for word in ["", "i", "i0", "i65", "u64", "u-1", "I8", "x8", "8", "i08", "i 8"] {
        assert_eq!(FieldType::parse(word.as_bytes()), None, "{word}");
    }
}

#[test]
fn stored_numbers_overflow_as_redis_has_it() {
    let field = |word: &str| FieldType::parse(word.as_bytes()).expect(word);
    for (word, value, wrapped, saturated) in [
        ("i8", 127, 127, 127),
        ("i8", 128, -128, 127),
        ("i8", -129, 127, -128),
        // So far below that the distance to the largest number does not fit 64 bits.
        ("i8", i64::MIN, 0, 127),
        ("i64", i64::MIN, i64::MIN, i64::MIN),
        ("u8", 256, 0, 255),
        ("u8", -1, 255, 255),
        ("u63", i64::MIN, 0, i64::MAX),
    ] {
        let field = field(word);
        assert_eq!(field.store(value, Overflow::Wrap), Some(wrapped), "{word} {value}");
        assert_eq!(field.store(value, Overflow::Saturate), Some(saturated), "{word} {value}");
        assert_eq!(field.store(value, Overflow::Fail), (wrapped == value).then_some(value), "{word} {value}");
    }
}
