use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{OrderTree, Range};

/// Nodes so small that a few hundred keys make a deep tree.
type SmallTree = OrderTree<u16, 4, 4>;
type MiddlingTree = OrderTree<u16, 9, 5>;

#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    InsertRun(u16, u16),
    Remove(u16),
    RemoveRun(u16, u16),
    RemoveAt(usize),
    PopFirst,
    PopLast,
    RemoveRange(usize, usize),
    Reclaim(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..600_u16).prop_map(Step::Insert),
        3 => (0..600_u16, 0..60_u16).prop_map(|(from, count)| Step::InsertRun(from, count)),
        8 => (0..600_u16).prop_map(Step::Remove),
        2 => (0..600_u16, 0..40_u16).prop_map(|(from, count)| Step::RemoveRun(from, count)),
        2 => (0..400_usize).prop_map(Step::RemoveAt),
        1 => Just(Step::PopFirst),
        1 => Just(Step::PopLast),
        1 => (0..400_usize, 0..120_usize).prop_map(|(from, count)| Step::RemoveRange(from, from + count)),
        1 => (0..20_usize).prop_map(Step::Reclaim),
    ]
}

fn check<const LEAF: usize, const FANOUT: usize>(tree: &OrderTree<u16, LEAF, FANOUT>, model: &[u16]) {
    let mut keys = Vec::new();
    let (_, bytes) = tree.root.check(true, true, &mut keys);
    assert_eq!(keys, model);
    assert_eq!(tree.len(), model.len());
    assert_eq!(tree.is_empty(), model.is_empty());
    assert_eq!(tree.heap_bytes(), bytes);
    assert_eq!(tree.first(), model.first().copied());
    assert_eq!(tree.last(), model.last().copied());
}

fn apply<const LEAF: usize, const FANOUT: usize>(
    tree: &mut OrderTree<u16, LEAF, FANOUT>,
    model: &mut Vec<u16>,
    step: Step,
) {
    let insert = |tree: &mut OrderTree<u16, LEAF, FANOUT>, model: &mut Vec<u16>, key: u16| {
        let place = model.binary_search(&key);
        assert_eq!(tree.insert(key, u16::cmp), place.is_err());
        if let Err(at) = place {
            model.insert(at, key);
        }
    };
    let remove = |tree: &mut OrderTree<u16, LEAF, FANOUT>, model: &mut Vec<u16>, key: u16| {
        let removed = model.binary_search(&key).ok().map(|at| model.remove(at));
        assert_eq!(tree.remove(&key, u16::cmp), removed);
    };
    match step {
        Step::Insert(key) => insert(tree, model, key),
        Step::InsertRun(from, count) => (from..from + count).for_each(|key| insert(tree, model, key)),
        Step::Remove(key) => remove(tree, model, key),
        Step::RemoveRun(from, count) => (from..from + count).for_each(|key| remove(tree, model, key)),
        Step::RemoveAt(rank) => {
            let removed = (rank < model.len()).then(|| model.remove(rank));
            assert_eq!(tree.remove_at(rank), removed);
        }
        Step::PopFirst => {
            let removed = (!model.is_empty()).then(|| model.remove(0));
            assert_eq!(tree.pop_first(), removed);
        }
        Step::PopLast => assert_eq!(tree.pop_last(), model.pop()),
        Step::RemoveRange(from, to) => {
            let mut removed = Vec::new();
            tree.remove_range(from..to, |key| removed.push(key));
            let to = to.min(model.len());
            let expected: Vec<u16> = model.drain(from.min(to)..to).collect();
            assert_eq!(removed, expected);
        }
        Step::Reclaim(budget) => {
            let mut removed = Vec::new();
            let emptied = tree.reclaim(budget, |key| removed.push(key));
            assert_eq!(removed, model.split_off(model.len().saturating_sub(budget)));
            assert_eq!(emptied, model.is_empty());
        }
    }
}

fn run<const LEAF: usize, const FANOUT: usize>(steps: Vec<Step>) {
    let mut tree = OrderTree::<u16, LEAF, FANOUT>::default();
    let mut model = Vec::new();
    for step in steps {
        apply(&mut tree, &mut model, step);
        check(&tree, &model);
    }
}

fn of<const LEAF: usize, const FANOUT: usize>(keys: impl IntoIterator<Item = u16>) -> OrderTree<u16, LEAF, FANOUT> {
    let mut tree = OrderTree::default();
    for key in keys {
        tree.insert(key, u16::cmp);
    }
    tree
}

proptest! {
    #[test]
    fn changes_are_those_of_a_sorted_vec(steps in prop::collection::vec(step(), 0..150)) {
        run::<4, 4>(steps.clone());
        run::<9, 5>(steps.clone());
        run::<64, 31>(steps);
    }

    #[test]
    fn queries_are_those_of_a_sorted_vec(
        keys in prop::collection::btree_set(0..800_u16, 0..400),
        order in any::<u64>(),
        probes in prop::collection::vec(0..820_u16, 20),
        from in 0..450_usize,
        to in 0..450_usize,
        turns in prop::collection::vec(any::<bool>(), 450),
    ) {
        let sorted: Vec<u16> = keys.into_iter().collect();
        let mut shuffled = sorted.clone();
        shuffled.sort_by_key(|key| u64::from(*key).wrapping_mul(order | 1).rotate_left(32));
        let tree: MiddlingTree = of(shuffled);
        check(&tree, &sorted);
        for probe in probes {
            prop_assert_eq!(tree.rank(&probe, u16::cmp), sorted.binary_search(&probe).ok());
            prop_assert_eq!(tree.partition_point(|key| *key < probe), sorted.partition_point(|key| *key < probe));
            prop_assert_eq!(tree.partition_point(|key| *key <= probe), sorted.partition_point(|key| *key <= probe));
        }
        for rank in 0..sorted.len() + 2 {
            prop_assert_eq!(tree.get(rank), sorted.get(rank).copied());
        }
        let end = to.min(sorted.len());
        let expected = &sorted[from.min(end)..end];
        prop_assert_eq!(tree.range(from..to).len(), expected.len());
        prop_assert_eq!(tree.range(from..to).collect::<Vec<_>>(), expected);
        let backward: Vec<u16> = expected.iter().rev().copied().collect();
        prop_assert_eq!(tree.range(from..to).rev().collect::<Vec<_>>(), backward);
        let mut both = tree.range(from..to);
        let mut expected = expected.iter().copied();
        for forward in turns {
            if forward {
                prop_assert_eq!(both.next(), expected.next());
            } else {
                prop_assert_eq!(both.next_back(), expected.next_back());
            }
        }
    }

    #[test]
    fn a_removed_key_is_not_compared_again(keys in prop::collection::vec((0..200_u16, any::<bool>()), 0..600)) {
        let present = RefCell::new(BTreeSet::new());
        let mut tree = SmallTree::default();
        for (key, insert) in keys {
            let compare = |stored: &u16, given: &u16| {
                assert!(present.borrow().contains(stored), "{stored} is not in the tree");
                stored.cmp(given)
            };
            if insert {
                tree.insert(key, compare);
                present.borrow_mut().insert(key);
            } else {
                tree.remove(&key, compare);
                present.borrow_mut().remove(&key);
            }
        }
    }
}

#[test]
fn ascending_insertion_leaves_full_leaves() {
    let mut tree = OrderTree::<u128>::new();
    for key in 0..100_000_u128 {
        assert!(tree.insert(key, u128::cmp));
    }
    assert!(tree.range(0..100_000).eq(0..100_000));
    assert!(tree.heap_bytes() < 100_000 * 17, "{} bytes", tree.heap_bytes());
}

#[test]
fn descending_insertion_keeps_order() {
    let tree: SmallTree = of((0..5000).rev());
    check(&tree, &(0..5000).collect::<Vec<_>>());
}

#[test]
fn removing_from_either_end_keeps_order() {
    let mut tree: SmallTree = of(0..2000);
    for turn in 0..1000 {
        assert_eq!(tree.pop_first(), Some(turn));
        assert_eq!(tree.pop_last(), Some(1999 - turn));
        check(&tree, &(turn + 1..1999 - turn).collect::<Vec<_>>());
    }
    assert_eq!(tree.pop_first(), None);
    assert_eq!(tree.pop_last(), None);
}

#[test]
fn any_range_can_be_removed() {
    for start in 0..90 {
        for end in start..=90 {
            let mut tree: SmallTree = of(0..90);
            tree.remove_range(start..end, |_| {});
            check(&tree, &(0..start as u16).chain(end as u16..90).collect::<Vec<_>>());
        }
    }
}

#[test]
fn memory_follows_the_number_of_keys_down() {
    let mut tree = OrderTree::<u128>::new();
    let scattered = |index: u128| index.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (1 << 64);
    for index in 0..100_000 {
        tree.insert(scattered(index), u128::cmp);
    }
    assert!(tree.heap_bytes() < 100_000 * 24, "{} bytes", tree.heap_bytes());
    for index in 0..99_000 {
        assert!(tree.remove(&scattered(index), u128::cmp).is_some());
    }
    assert_eq!(tree.len(), 1000);
    assert!(tree.heap_bytes() < 1000 * 32, "{} bytes", tree.heap_bytes());
    while !tree.reclaim(64, |_| {}) {}
    assert_eq!(tree.heap_bytes(), 0);
}

#[test]
fn ranges_are_clamped_to_the_keys() {
    let mut tree: SmallTree = of(0..10);
    assert_eq!(tree.range(8..usize::MAX).collect::<Vec<_>>(), [8, 9]);
    assert_eq!(tree.range(10..20).next(), None);
    assert_eq!(tree.range(Range { start: 7, end: 3 }).next_back(), None);
    tree.remove_range(Range { start: 7, end: 3 }, |_| panic!("no key is in the range"));
    assert_eq!(tree.len(), 10);
}
