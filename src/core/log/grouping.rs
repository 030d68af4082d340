//! Syncs that are shared: when the next one begins where every reply waits for one.
//!
//! When a sync ends, the clients that it has released send their next commands. A sync that begins at once for what came
//! meanwhile leaves those for the one behind it, so that two groups of clients take turns, each waiting for the other's
//! sync. Waiting a little for those that were released makes one group of them.

/// The part of a sync's length that the next one is held back at the most.
const PART: u64 = 4;

/// The longest that a sync is held back, in ns.
const LONGEST_NS: u64 = 4_000_000;

/// Fewer released than this are not waited for.
const FEWEST: usize = 2;

/// When the next sync begins. Times are in ns, of any clock that does not go back.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    /// When the sync under way began.
    began_ns: Option<u64>,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    until_ns: u64,
    /// How many replies are to wait before.
    expected: usize,
}

impl Grouping {
    /// Notes a sync that has begun.
    pub(super) fn began(&mut self, now_ns: u64) {
        self.held = None;
        self.began_ns.get_or_insert(now_ns);
    }

    /// Notes that a sync has ended and has released `released` replies, while `waiting` wait for the next.
    pub(super) fn ended(&mut self, now_ns: u64, released: usize, waiting: usize) {
        let Some(began_ns) = self.began_ns.take() else { return };
        if released >= FEWEST {
            let hold_ns = (now_ns.saturating_sub(began_ns) / PART).min(LONGEST_NS);
            self.held = Some(Held { until_ns: now_ns + hold_ns, expected: released + waiting });
        }
    }

    /// Whether the next sync is to be held back still, with `waiting` replies that wait for it.
    pub(super) fn holds(&mut self, now_ns: u64, waiting: usize) -> bool {
        if self.held.as_ref().is_some_and(|held| now_ns >= held.until_ns || waiting >= held.expected) {
            self.held = None;
        }
        self.held.is_some()
    }

    /// Whether one may be held back.
    #[inline]
    pub(super) fn has_held(&self) -> bool {
        self.held.is_some()
    }

    /// How long it is held back from now on, in ns, if it is.
    pub(super) fn left_ns(&self, now_ns: u64) -> Option<u64> {
        self.held.as_ref().and_then(|held| held.until_ns.checked_sub(now_ns)).filter(|left_ns| *left_ns > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_clients_are_waited_for_a_part_of_a_sync() {
        let mut grouping = Grouping::default();
        assert!(!grouping.holds(0, 1), "the first sync begins at once");
        grouping.began(1000);
        grouping.ended(9000, 10, 3);
        assert!(grouping.holds(9001, 3) && grouping.holds(10_999, 12));
        assert_eq!(grouping.left_ns(10_000), Some(1000));
        assert!(!grouping.holds(10_500, 13), "all are there");
        grouping.began(11_000);
        grouping.ended(19_000, 10, 0);
        assert!(!grouping.holds(21_000, 9), "a quarter of the sync has passed");
        assert_eq!(grouping.left_ns(21_000), None);
        grouping.began(30_000);
        grouping.ended(1_000_000_000, 10, 0);
        assert_eq!(grouping.left_ns(1_000_000_000), Some(LONGEST_NS));
    }

    #[test]
    fn a_lone_client_waits_for_nobody() {
        let mut grouping = Grouping::default();
        grouping.began(0);
        grouping.ended(8000, 1, 0);
        assert!(!grouping.holds(8000, 1));
    }
}
