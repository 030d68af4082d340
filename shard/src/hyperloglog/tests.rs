use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The registers of a sketch, one by one.
fn registers_of(sketch: &[u8]) -> Vec<u8> {
    let mut union = Union::default();
    union.take_in(sketch).expect("a sound sketch");
    union.registers().to_vec()
}

/// Sketches change as registers in a map do, whatever their form.
fn check_against_map(places: &[(usize, u8)], longest_sparse: usize) -> Result<(), TestCaseError> {
    let mut sketch = Sketch::default();
    let mut map: BTreeMap<usize, u8> = BTreeMap::new();
    for &(index, run) in places {
        let register = map.entry(index).or_default();
        let raised = *register < run;
        *register = run.max(*register);
        cache_estimate(&mut sketch.0, 7);
        prop_assert_eq!(sketch.raise(Place { index, run }, longest_sparse), Ok(raised));
        prop_assert_eq!(cached_estimate(sketch.bytes()), (!raised).then_some(7));
    }
    let registers = registers_of(sketch.bytes());
    let expected: Vec<u8> = (0..REGISTERS).map(|index| map.get(&index).copied().unwrap_or(0)).collect();
    prop_assert_eq!(registers_of(&to_dense(sketch.bytes()).expect("sound")[..]), &expected[..]);
    prop_assert_eq!(registers, expected);
    if sketch.form() == Some(Form::Sparse) {
        prop_assert!(sketch.bytes().len() <= longest_sparse.max(HEADER_BYTES + sparse::EMPTY.len()));
    }
    Ok(())
}

proptest! {
    #[test]
    fn registers_are_raised_as_in_a_map(
        // Close neighbours with few values, so that runs are split and joined in every way.
        near in prop::collection::vec((prop_oneof![0usize..80, 16_300..REGISTERS, 8_000usize..8_010], 1u8..5), 0..300),
        far in prop::collection::vec((0..REGISTERS, 1u8..=51), 0..20),
        longest_sparse in prop_oneof![Just(3000usize), 0usize..200],
    ) {
        check_against_map(&near, longest_sparse)?;
        check_against_map(&[near, far].concat(), longest_sparse)?;
    }

    #[test]
    fn what_is_no_sketch_is_told_or_read_without_harm(
        form_byte in 0u8..4,
        body in prop::collection::vec(any::<u8>(), 0..80),
        element in any::<u8>(),
    ) {
        let header = [&b"HYLL"[..], &[form_byte, 0, 0, 0], &[0; 8]].concat();
        let bytes = [header, body].concat();
        prop_assert_eq!(form(&bytes), (form_byte == 1).then_some(Form::Sparse));
        if form_byte == 1 {
            let sound = runs(&bytes[HEADER_BYTES..]).map(|run| run.len).sum::<usize>() == REGISTERS;
            prop_assert_eq!(estimate(&bytes).is_ok(), sound);
            prop_assert_eq!(to_dense(&bytes).is_ok(), sound);
            prop_assert_eq!(Union::default().take_in(&bytes).is_ok(), sound);
            let mut sketch = Sketch::copy_of(&bytes);
            // Adding looks no farther than the register.
            let added = sketch.add(&[element], 3000);
            prop_assert!(!sound || added.is_ok());
        }
    }
}

proptest! {
    #[test]
    fn eight_opcodes_are_as_long_as_one_by_one(opcodes in any::<[u8; 8]>()) {
        let each: Vec<sparse::Run> = runs(&opcodes).collect();
        let expected = each.iter().all(|run| !run.is_long).then(|| each.iter().map(|run| run.len).sum());
        prop_assert_eq!(sparse::length_of_eight(&opcodes), expected);
        let short = opcodes.map(|opcode| if opcode & 0xc0 == 0x40 { opcode ^ 0x40 } else { opcode });
        let expected = runs(&short).map(|run| run.len).sum();
        prop_assert_eq!(sparse::length_of_eight(&short), Some(expected));
    }
}

#[test]
fn dense_registers_keep_their_values() {
    for shift in 0..64u8 {
        let values: Vec<u8> =
            (0..REGISTERS).map(|index| (index as u8).wrapping_mul(7).wrapping_add(shift) % 64).collect();
        assert_eq!(check_registers(&values), Ok(()));
    }
}

#[test]
fn both_forms_give_the_same_histogram() {
    let mut sketch = Sketch::default();
    for number in 0..500 {
        sketch.add(format!("element:{number}").as_bytes(), 3000).expect("sound");
    }
    assert_eq!(sketch.form(), Some(Form::Sparse));
    let dense = to_dense(sketch.bytes()).expect("sound");
    assert_eq!(form(&dense), Some(Form::Dense));
    let of_sparse = sparse::histogram(&sketch.bytes()[HEADER_BYTES..]).expect("sound");
    assert_eq!(dense::histogram(&dense[HEADER_BYTES..]), of_sparse);
    assert_eq!(of_sparse.iter().sum::<u32>() as usize, REGISTERS);
    let mut union = Union::default();
    union.take_in(&dense).expect("sound");
    assert_eq!(Ok(union.estimate()), sketch.estimate());
}

/// Bytes and estimates that Redis 7.0.15 has for the same elements.
#[test]
fn bytes_and_estimates_are_those_of_redis() {
    let mut sketch = Sketch::default();
    for element in ["a", "b", "c", "d", "e", "f", "g", "foo", "bar", "zap", ""] {
        assert_eq!(sketch.add(element.as_bytes(), 3000), Ok(true));
    }
    let expected: &[u8] = b"HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80Fm\x80P\xc2\x84EH\x806\x90B\x07\x84A\
        \xfb\x848\x80F!\x80J\x8e\x84I\x8c\x80Bm\x80BZ";
    assert_eq!(sketch.bytes(), expected);
    assert_eq!(sketch.estimate(), Ok(11));

    for (elements, estimate, bytes) in
        [(10, 10, 48), (100, 99, 285), (1000, 997, 1897), (5000, 5005, DENSE_BYTES), (100_000, 100_039, DENSE_BYTES)]
    {
        let mut sketch = Sketch::default();
        for number in 0..elements {
            sketch.add(format!("element:{number}").as_bytes(), 3000).expect("sound");
        }
        assert_eq!(sketch.estimate(), Ok(estimate), "{elements} elements");
        assert_eq!(sketch.bytes().len(), bytes, "{elements} elements");
    }
}

#[test]
fn registers_that_no_element_makes_give_no_estimate() {
    let mut dense = Sketch::default().into_dense().expect("sound");
    assert_eq!(dense.estimate(), Ok(0));
    (0..REGISTERS).for_each(|index| dense::set(&mut dense.0[HEADER_BYTES..], index, 63));
    let estimate = dense.estimate().expect("sound");
    cache_estimate(&mut dense.0, estimate);
    assert_eq!(cached_estimate(dense.bytes()), None);
}
