//! Sorting only the first few of many.
//!
//! The algorithm is Jon L. Bentley's and M. Douglas McIlroy's quicksort ("Engineering a Sort Function", 1993), which
//! leaves out the parts that are not asked for. It is not stable; Redis uses the same one, so that members at the same
//! distance come in the same order.

use std::cmp::Ordering;

/// Up to this many are sorted by insertion.
const FEW: usize = 6;

/// From this many on the pivot is the median of three medians.
const MANY: usize = 41;

/// Puts those that belong there in the first `count` places, in order. The order of the others is not specified.
pub(super) fn sort_first<T>(items: &mut [T], count: usize, compare: &impl Fn(&T, &T) -> Ordering) {
    // Deeper only where somebody chose the input for it.
    let depth_max = 2 * (usize::BITS - items.len().leading_zeros());
    sort_part(items, count, compare, depth_max);
}

fn sort_part<T>(mut items: &mut [T], mut count: usize, compare: &impl Fn(&T, &T) -> Ordering, mut depth_left: u32) {
    loop {
        if items.len() <= FEW {
            insert_in_order(items, compare);
            return;
        }
        if depth_left == 0 {
            items.sort_by(compare);
            return;
        }
        depth_left -= 1;
        let (less, greater) = partition(items, compare);
        let len = items.len();
        let (rest, greater) = items.split_at_mut(len - greater);
        if less > 1 {
            sort_part(&mut rest[..less], count, compare, depth_left);
        }
        if greater.len() <= 1 || rest.len() >= count {
            return;
        }
        count -= rest.len();
        items = greater;
    }
}

fn insert_in_order<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) {
    for end in 1..items.len() {
        let mut at = end;
        while at > 0 && compare(&items[at - 1], &items[at]).is_gt() {
            items.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// The one of three places that holds neither the least nor the greatest.
fn median<T>(items: &[T], [a, b, c]: [usize; 3], compare: &impl Fn(&T, &T) -> Ordering) -> usize {
    let order = |one: usize, other: usize| compare(&items[one], &items[other]);
    if order(a, b).is_lt() {
        if order(b, c).is_lt() {
            b
        } else if order(a, c).is_lt() {
            c
        } else {
            a
        }
    } else if order(b, c).is_gt() {
        b
    } else if order(a, c).is_lt() {
        a
    } else {
        c
    }
}

fn pivot<T>(items: &[T], compare: &impl Fn(&T, &T) -> Ordering) -> usize {
    let (last, middle) = (items.len() - 1, items.len() / 2);
    if items.len() == FEW + 1 {
        return middle;
    }
    if items.len() < MANY {
        return median(items, [0, middle, last], compare);
    }
    let eighth = items.len() / 8;
    let medians = [
        median(items, [0, eighth, 2 * eighth], compare),
        median(items, [middle - eighth, middle, middle + eighth], compare),
        median(items, [last - 2 * eighth, last - eighth, last], compare),
    ];
    median(items, medians, compare)
}

/// Puts those less than a pivot in front and those greater at the end; how many there are of each.
fn partition<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) -> (usize, usize) {
    let pivot = pivot(items, compare);
    items.swap(0, pivot);
    // Equal ones are collected at both ends: before `equal`, and from `equal_end` on. The places from `low` to before
    // `high` were not looked at yet.
    let len = items.len();
    let (mut equal, mut low, mut high, mut equal_end) = (1, 1, len, len);
    loop {
        while low < high {
            match compare(&items[low], &items[0]) {
                Ordering::Greater => break,
                Ordering::Equal => {
                    items.swap(equal, low);
                    equal += 1;
                }
                Ordering::Less => {}
            }
            low += 1;
        }
        while low < high {
            match compare(&items[high - 1], &items[0]) {
                Ordering::Less => break,
                Ordering::Equal => {
                    equal_end -= 1;
                    items.swap(high - 1, equal_end);
                }
                Ordering::Greater => {}
            }
            high -= 1;
        }
        if low >= high {
            break;
        }
        items.swap(low, high - 1);
        low += 1;
        high -= 1;
    }
    // Then they are put between the others.
    let (less, greater) = (low - equal, equal_end - high);
    let moved = equal.min(less);
    swap_ranges(items, 0, low - moved, moved);
    let moved = greater.min(len - equal_end);
    swap_ranges(items, low, len - moved, moved);
    (less, greater)
}

fn swap_ranges<T>(items: &mut [T], one: usize, other: usize, len: usize) {
    (0..len).for_each(|offset| items.swap(one + offset, other + offset));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_few_are_the_least(
            // Few different ones, and many.
            mut items in prop_oneof![prop::collection::vec(0u32..5, 0..200), prop::collection::vec(any::<u32>(), 0..200)],
            count in 0usize..200,
        ) {
            let mut sorted = items.clone();
            sorted.sort_unstable();
            let count = count.min(items.len());
            sort_first(&mut items, count, &Ord::cmp);
            prop_assert_eq!(&items[..count], &sorted[..count]);
            items.sort_unstable();
            prop_assert_eq!(items, sorted);
        }

        #[test]
        fn no_input_needs_more_depth_than_there_is(mut items in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut sorted = items.clone();
            sorted.sort_unstable();
            let count = items.len();
            sort_part(&mut items, count, &Ord::cmp, 1);
            prop_assert_eq!(items, sorted);
        }
    }
}
