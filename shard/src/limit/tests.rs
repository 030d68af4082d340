//! The three modes against exact rational arithmetic.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::*;

/// What a model says of a call: what is left, or nothing when it is refused.
type Verdict = Option<i64>;

fn verdict<S>(decision: &Decision<S>) -> Verdict {
    match *decision {
        Decision::Looked { remaining } | Decision::Accepted { remaining, .. } => Some(remaining),
        Decision::Refused { .. } => None,
    }
}

/// A limiter as an entry holds it: bytes and a deadline.
#[derive(Clone)]
struct Stored<S: Limiter> {
    held: Option<(Vec<u8>, i64)>,
    mode: std::marker::PhantomData<S>,
}

impl<S: Limiter> Stored<S> {
    fn new() -> Self {
        Stored { held: None, mode: std::marker::PhantomData }
    }

    fn look(&self, request: Request) -> Decision<S> {
        let state = self.held.as_ref().map(|(bytes, deadline_ms)| S::load(bytes, *deadline_ms));
        S::decide(state, request).expect("within the bounds")
    }

    fn call(&mut self, request: Request) -> Decision<S> {
        let decision = self.look(request);
        if let Decision::Accepted { state, .. } = &decision {
            self.held = Some((state.bytes().as_ref().to_vec(), state.deadline_ms()));
        }
        decision
    }

    fn deadline_ms(&self) -> i64 {
        self.held.as_ref().expect("something was counted").1
    }

    /// The promise of `retry_after_ms`: accepted after exactly that wait, refused one millisecond earlier.
    fn check_retry(&self, request: Request, decision: &Decision<S>) {
        let Decision::Refused { retry_after_ms } = *decision else { return };
        assert!(retry_after_ms >= 1);
        let after = |wait_ms| self.look(Request { now_ms: request.now_ms + wait_ms, ..request });
        assert!(verdict(&after(retry_after_ms)).is_some(), "refused after {retry_after_ms} ms: {request:?}");
        assert!(verdict(&after(retry_after_ms - 1)).is_none(), "accepted before {retry_after_ms} ms: {request:?}");
    }
}

fn rational(value: i64) -> BigRational {
    BigRational::from_integer(BigInt::from(value))
}

fn whole(value: BigRational) -> i64 {
    value.to_integer().to_i64().expect("small in these tests")
}

fn left(max: i64, used: &BigRational) -> i64 {
    whole((rational(max) - used).floor()).max(0)
}

/// What every model tells.
trait Model: Default {
    type Mode: Limiter;
    fn call(&mut self, request: Request) -> Verdict;
    /// The exact time at which nothing is used any more.
    fn empty_at_ms(&self) -> BigRational;
}

#[derive(Default)]
struct FixedModel {
    open: Option<(i64, i64)>,
}

impl Model for FixedModel {
    type Mode = FixedWindow;

    fn call(&mut self, request: Request) -> Verdict {
        let Request { now_ms, max, window_ms, cost } = request;
        let (end_ms, used) = self.open.filter(|(end_ms, _)| *end_ms > now_ms).unwrap_or((now_ms + window_ms, 0));
        if cost > 0 && used + cost > max {
            return None;
        }
        if cost > 0 {
            self.open = Some((end_ms, used + cost));
        }
        Some((max - used - cost).max(0))
    }

    fn empty_at_ms(&self) -> BigRational {
        rational(self.open.expect("something was counted").0)
    }
}

/// Keeps every counted call. Windows follow each other from the first call on.
#[derive(Default)]
struct SlidingModel {
    first_ms: i64,
    latest_ms: i64,
    window_ms: i64,
    counted: Vec<(i64, i64)>,
}

impl SlidingModel {
    fn window_of(&self, time_ms: i64) -> i64 {
        (time_ms - self.first_ms).div_euclid(self.window_ms)
    }

    fn counted_in(&self, window: i64) -> BigRational {
        let costs = self.counted.iter().filter(|(time_ms, _)| self.window_of(*time_ms) == window);
        rational(costs.map(|(_, cost)| cost).sum())
    }

    fn used(&self, time_ms: i64) -> BigRational {
        let window = self.window_of(time_ms);
        let overlap_ms = self.first_ms + (window + 1) * self.window_ms - time_ms;
        let share = BigRational::new(BigInt::from(overlap_ms), BigInt::from(self.window_ms));
        self.counted_in(window) + self.counted_in(window - 1) * share
    }
}

impl Model for SlidingModel {
    type Mode = SlidingWindow;

    fn call(&mut self, request: Request) -> Verdict {
        let Request { now_ms, max, window_ms, cost } = request;
        if self.counted.is_empty() || rational(now_ms) >= self.empty_at_ms() {
            if cost > 0 {
                *self = SlidingModel { first_ms: now_ms, latest_ms: now_ms, window_ms, counted: vec![(now_ms, cost)] };
            }
            return Some(max - cost);
        }
        // A clock behind the window of the latest call stands at its beginning.
        let window_start_ms = self.first_ms + self.window_of(self.latest_ms) * self.window_ms;
        let time_ms = now_ms.max(window_start_ms);
        let used = self.used(time_ms);
        if cost > 0 && &used + rational(cost) > rational(max) {
            return None;
        }
        if cost > 0 && window_ms == self.window_ms {
            self.counted.push((time_ms, cost));
            self.latest_ms = self.latest_ms.max(time_ms);
        } else if cost > 0 {
            let all = whole(used.ceil()) + cost;
            *self = SlidingModel { first_ms: time_ms, latest_ms: time_ms, window_ms, counted: vec![(time_ms, all)] };
        }
        Some((left(max, &used) - cost).max(0))
    }

    fn empty_at_ms(&self) -> BigRational {
        rational(self.first_ms + (self.window_of(self.latest_ms) + 2) * self.window_ms)
    }
}

#[derive(Default)]
struct TokenModel {
    missing: BigRational,
    counted_ms: i64,
    window_ms: i64,
    full_at_ms: BigRational,
}

impl Model for TokenModel {
    type Mode = TokenBucket;

    fn call(&mut self, request: Request) -> Verdict {
        let Request { now_ms, max, window_ms, cost } = request;
        let full = TokenModel { counted_ms: now_ms, window_ms, ..TokenModel::default() };
        let from = if self.window_ms == 0 || rational(now_ms) >= self.full_at_ms { &full } else { &*self };
        let (old_window_ms, time_ms) = (from.window_ms, now_ms.max(from.counted_ms));
        let pace = BigRational::new(BigInt::from(max), BigInt::from(old_window_ms));
        let missing = (&from.missing - rational(time_ms - from.counted_ms) * pace).max(BigRational::zero());
        if cost > 0 && &missing + rational(cost) > rational(max) {
            return None;
        }
        let remaining = (left(max, &missing) - cost).max(0);
        if cost > 0 {
            let carried = if window_ms == old_window_ms {
                missing
            } else {
                (missing * rational(window_ms)).ceil() / rational(window_ms)
            };
            self.missing = carried + rational(cost);
            self.counted_ms = time_ms;
            self.window_ms = window_ms;
            self.full_at_ms = rational(time_ms) + &self.missing * rational(window_ms) / rational(max);
        }
        Some(remaining)
    }

    fn empty_at_ms(&self) -> BigRational {
        self.full_at_ms.clone()
    }
}

/// Compares a mode with its model over `requests`; the deadline may be the next whole millisecond.
fn compare<M: Model>(requests: impl IntoIterator<Item = Request>) {
    let (mut model, mut stored) = (M::default(), Stored::<M::Mode>::new());
    for (step, request) in requests.into_iter().enumerate() {
        let decision = stored.look(request);
        stored.check_retry(request, &decision);
        let decision = stored.call(request);
        assert_eq!(verdict(&decision), model.call(request), "step {step}: {request:?}");
        if matches!(decision, Decision::Accepted { .. }) {
            assert_eq!(rational(stored.deadline_ms()), model.empty_at_ms().ceil(), "step {step}: {request:?}");
        }
    }
}

fn requests(windows: impl Strategy<Value = i64> + Clone) -> impl Strategy<Value = Vec<Request>> {
    let request = (-40i64..60, 1i64..12, windows, 0i64..5);
    prop::collection::vec(request, 1..120).prop_map(|steps| {
        let mut now_ms = 1_000_000;
        let advance = |(step_ms, max, window_ms, cost): (i64, i64, i64, i64)| {
            now_ms += step_ms;
            Request { now_ms, max, window_ms, cost: cost.min(max) }
        };
        steps.into_iter().map(advance).collect()
    })
}

proptest! {
    #[test]
    fn fixed_windows_count_as_the_model_does(requests in requests(1i64..200)) {
        compare::<FixedModel>(requests);
    }

    #[test]
    fn sliding_windows_count_as_the_model_does(requests in requests(prop_oneof![Just(97i64), 1i64..200])) {
        compare::<SlidingModel>(requests);
    }

    #[test]
    fn buckets_count_as_the_model_does(requests in requests(prop_oneof![Just(101i64), 1i64..200])) {
        compare::<TokenModel>(requests);
    }

    #[test]
    fn no_call_overflows(
        calls in prop::collection::vec(
            (any::<[u8; 19]>(), edge(0), edge(0), edge(1), edge(1), edge(0)), 1..50,
        ),
    ) {
        for (bytes, deadline_ms, now_ms, max, window_ms, cost) in calls {
            let request = Request { now_ms, max, window_ms, cost: cost.min(max) };
            check_any(FixedWindow::load(&bytes[..FIXED_BYTES], deadline_ms), request);
            check_any(SlidingWindow::load(&bytes, deadline_ms), request);
            check_any(TokenBucket::load(&bytes, deadline_ms), request);
        }
    }

    #[test]
    fn waits_are_exact_for_large_numbers(
        max in edge(1),
        window_ms in 1i64..STORED_WINDOW_MAX_MS,
        calls in prop::collection::vec((0i64..1 << 38, 1i64..1 << 30), 1..20),
    ) {
        let mut fixed = Stored::<FixedWindow>::new();
        let mut sliding = Stored::<SlidingWindow>::new();
        let mut tokens = Stored::<TokenBucket>::new();
        let mut now_ms = 1_700_000_000_000;
        for (step_ms, cost) in calls {
            now_ms += step_ms;
            let request = Request { now_ms, max, window_ms, cost: cost.min(max) };
            let decision = fixed.call(request);
            fixed.check_retry(request, &decision);
            let decision = sliding.call(request);
            sliding.check_retry(request, &decision);
            let decision = tokens.call(request);
            tokens.check_retry(request, &decision);
        }
    }

    #[test]
    fn a_clock_that_steps_back_hands_out_nothing_twice(
        steps in prop::collection::vec((-3_000i64..400, 1i64..4), 1..200),
    ) {
        within_allowance::<FixedWindow>(&steps);
        within_allowance::<SlidingWindow>(&steps);
        within_allowance::<TokenBucket>(&steps);
    }
}

/// Numbers of every magnitude, from `least` to the greatest.
fn edge(least: i64) -> impl Strategy<Value = i64> + Clone {
    prop_oneof![
        least..20,
        (0u32..63).prop_map(move |bit| (1i64 << bit).max(least)),
        least..=i64::MAX,
        (0i64..20).prop_map(|below| i64::MAX - below),
    ]
}

/// Whatever the state and the request, the answer keeps its bounds and the new state survives its bytes.
fn check_any<S: Limiter + PartialEq + std::fmt::Debug>(state: S, request: Request) {
    match S::decide(Some(state), request) {
        Ok(Decision::Looked { remaining }) => assert!((0..=request.max).contains(&remaining)),
        Ok(Decision::Refused { retry_after_ms }) => assert!(retry_after_ms >= 1),
        Ok(Decision::Accepted { remaining, state }) => {
            assert!((0..=request.max - request.cost).contains(&remaining));
            assert!(state.deadline_ms() > request.now_ms);
            assert_eq!(S::load(state.bytes().as_ref(), state.deadline_ms()), state);
        }
        Err(error) => assert_eq!(error.code(), "ERR"),
    }
}

/// With a clock that never passes the first window's end, no more than `max` is handed out.
fn within_allowance<S: Limiter>(steps: &[(i64, i64)]) {
    let (start_ms, window_ms, max) = (1_000_000, 100_000_000, 20);
    let (mut now_ms, mut total, mut stored) = (start_ms, 0, Stored::<S>::new());
    for &(step_ms, cost) in steps {
        now_ms = (now_ms + step_ms).clamp(0, start_ms + window_ms / max - 1);
        if matches!(stored.call(Request { now_ms, max, window_ms, cost }), Decision::Accepted { .. }) {
            total += cost;
        }
    }
    assert!(total <= max, "{total}");
}

#[test]
fn buckets_do_not_drift() {
    for (seed, max, window_ms) in [(1, 7, 1_009), (2, 1_009, 7), (3, 10, 1_000), (4, 3, 1_000_003), (5, 65_537, 60_000)]
    {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut now_ms = 1_700_000_000_000;
        let pause_ms = (2 * window_ms / max).max(1);
        compare::<TokenModel>((0..60_000).map(|_| {
            now_ms += random.random_range(0..=pause_ms);
            Request { now_ms, max, window_ms, cost: random.random_range(0..=2.min(max)) }
        }));
    }
}

#[test]
fn sliding_windows_do_not_drift() {
    let mut random = SmallRng::seed_from_u64(11);
    let mut now_ms = 1_700_000_000_000;
    let mut stored = Stored::<SlidingWindow>::new();
    let mut counts: std::collections::BTreeMap<i64, i128> = std::collections::BTreeMap::new();
    let (max, window_ms, first_ms) = (13, 997, now_ms);
    for step in 0..200_000 {
        let window = (now_ms - first_ms) / window_ms;
        let overlap_ms = i128::from(first_ms + (window + 1) * window_ms - now_ms);
        let (current, previous) = (counts.get(&window).unwrap_or(&0), counts.get(&(window - 1)).unwrap_or(&0));
        let passes = (current + 1) * i128::from(window_ms) + previous * overlap_ms <= i128::from(max * window_ms);
        let request = Request { now_ms, max, window_ms, cost: 1 };
        let decision = stored.call(request);
        stored.check_retry(request, &decision);
        assert_eq!(verdict(&decision).is_some(), passes, "step {step}");
        if passes {
            *counts.entry(window).or_default() += 1;
        }
        now_ms += random.random_range(0..120);
    }
}

#[test]
fn a_bucket_keeps_what_it_has_while_the_clock_is_behind() {
    let mut stored = Stored::<TokenBucket>::new();
    let call = |now_ms| Request { now_ms, max: 10, window_ms: 1_000, cost: 5 };
    assert_eq!(verdict(&stored.call(call(5_000))), Some(5));
    assert_eq!(verdict(&stored.call(call(1_000))), Some(0));
    assert_eq!(stored.call(call(1_000)), Decision::Refused { retry_after_ms: 4_500 });
}

#[test]
fn another_max_applies_at_once() {
    fn check<S: Limiter>() {
        let mut stored = Stored::<S>::new();
        let call = |max, cost| Request { now_ms: 1_000, max, window_ms: 1_000, cost };
        assert_eq!(verdict(&stored.call(call(10, 8))), Some(2));
        assert_eq!(verdict(&stored.call(call(20, 0))), Some(12));
        assert_eq!(verdict(&stored.call(call(5, 0))), Some(0));
        assert_eq!(verdict(&stored.call(call(5, 1))), None);
        assert_eq!(verdict(&stored.call(call(20, 12))), Some(0));
    }
    check::<FixedWindow>();
    check::<SlidingWindow>();
    check::<TokenBucket>();
}

#[test]
fn what_cannot_be_stored_is_refused() {
    let call = |max, window_ms, cost| Request { now_ms: 1_000, max, window_ms, cost };
    let long = CommandError::invalid_expire_time("limit");
    assert_eq!(FixedWindow::decide(None, call(1, i64::MAX, 1)), Err(long.clone()));
    assert!(FixedWindow::decide(None, call(i64::MAX, i64::MAX - 1_000, i64::MAX)).is_ok());
    for window_ms in [STORED_WINDOW_MAX_MS + 1, i64::MAX] {
        assert_eq!(SlidingWindow::decide(None, call(1, window_ms, 1)), Err(long.clone()));
        assert_eq!(TokenBucket::decide(None, call(1, window_ms, 1)), Err(long.clone()));
    }
    assert_eq!(SlidingWindow::decide(None, call(i64::MAX, 1, 1 << 56)), Err(counter_overflow()));
    assert!(SlidingWindow::decide(None, call(i64::MAX, 1, (1 << 56) - 1)).is_ok());
    assert_eq!(TokenBucket::decide(None, call(i64::MAX, 1 << 12, 1 << 60)), Err(counter_overflow()));
    assert!(TokenBucket::decide(None, call(i64::MAX, 1 << 12, (1 << 60) - 1)).is_ok());
}
