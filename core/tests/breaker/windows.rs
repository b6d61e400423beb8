//! Both windows against a list of everything that happened.

use std::collections::VecDeque;
use std::time::Duration;

use balde::{CallOutcome, CircuitBreaker, CircuitBreakerConfig, CircuitBreakerState as State, SlidingWindow};
use proptest::prelude::*;

use crate::{SECOND, breaker, fail, small, succeed};

const SLOW: Duration = SECOND;

#[derive(Debug, Clone, Copy)]
struct Call {
    failed: bool,
    slow: bool,
}

#[derive(Debug, Clone)]
enum Step {
    End(Call),
    Advance(u64),
    Back(u64),
}

fn calls() -> impl Strategy<Value = Step> {
    (prop::bool::weighted(0.3), prop::bool::weighted(0.3)).prop_map(|(failed, slow)| Step::End(Call { failed, slow }))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let times = || prop_oneof![0..50_000u64, 0..400_000u64, 0..3_000_000u64];
    let step = prop_oneof![20 => calls(), 5 => times().prop_map(Step::Advance), 1 => times().prop_map(Step::Back)];
    prop::collection::vec(step, 1..200)
}

#[derive(Debug, Clone, Copy)]
struct Rules {
    minimum: u32,
    failed: u32,
    slow: u32,
}

impl Rules {
    /// Whether the calls are too many, and their sums.
    fn judge<'a>(self, window: impl Iterator<Item = &'a Call>) -> (bool, [u64; 3]) {
        let mut sums = [0; 3];
        for call in window {
            sums[0] += 1;
            sums[1] += u64::from(call.failed);
            sums[2] += u64::from(call.slow);
        }
        let [calls, failed, slow] = sums;
        let reached = |bad: u64, percent: u32| bad * 100 >= u64::from(percent) * calls;
        (calls >= u64::from(self.minimum) && (reached(failed, self.failed) || reached(slow, self.slow)), sums)
    }

    fn config(self, window: SlidingWindow) -> CircuitBreakerConfig {
        CircuitBreakerConfig::new()
            .sliding_window(window)
            .minimum_number_of_calls(self.minimum)
            .failure_rate_threshold(self.failed)
            .slow_call_rate_threshold(self.slow)
            .slow_call_duration_threshold(SLOW)
    }
}

fn end(breaker: &CircuitBreaker, call: Call) {
    let outcome = if call.failed { CallOutcome::Failure } else { CallOutcome::Success };
    let elapsed = if call.slow { SLOW + Duration::from_micros(1) } else { SLOW };
    breaker.record(outcome, elapsed);
}

fn sums(breaker: &CircuitBreaker) -> [u64; 3] {
    let seen = breaker.snapshot();
    [seen.calls, seen.failed_calls, seen.slow_calls]
}

proptest! {
    #[test]
    fn by_count(size in 1..40u32, part in 1..=100u32, failed in 20..=100u32, slow in 20..=100u32, steps in steps()) {
        let rules = Rules { minimum: (size * part / 100).max(1), failed, slow };
        let (breaker, _) = breaker(&rules.config(SlidingWindow::Count(size)));
        let mut model = VecDeque::new();
        for step in steps {
            let Step::End(call) = step else { continue };
            end(&breaker, call);
            model.push_back(call);
            if model.len() > size as usize {
                model.pop_front();
            }
            let (opens, expected) = rules.judge(model.iter());
            prop_assert_eq!(breaker.state() == State::Open, opens);
            prop_assert_eq!(sums(&breaker), expected);
            if opens {
                breaker.transition_to_closed();
                model.clear();
            }
        }
    }

    /// A span of time that comes again after the clock stepped back finds what it held, unless a span that is a
    /// multiple of ten away has taken its bucket.
    #[test]
    fn by_time(minimum in 1..20u32, failed in 20..=100u32, slow in 20..=100u32, steps in steps()) {
        let rules = Rules { minimum, failed, slow };
        let (breaker, clock) = breaker(&rules.config(SlidingWindow::Time(SECOND)));
        let mut now = 5_000_000;
        let mut model: Vec<(u64, Call)> = Vec::new();
        for step in steps {
            match step {
                Step::Advance(by) => now += by,
                Step::Back(by) => now = u64::saturating_sub(now, by),
                Step::End(_) => {}
            }
            clock.set(now);
            let span = now / 100_000;
            if let Step::End(call) = step {
                end(&breaker, call);
                model.retain(|(other, _)| *other == span || other % 10 != span % 10);
                model.push((span, call));
            }
            let within = |other: u64| other <= span && other + 10 > span;
            let (reached, expected) = rules.judge(model.iter().filter(|(at, _)| within(*at)).map(|(_, call)| call));
            let opens = reached && matches!(step, Step::End(_));
            prop_assert_eq!(breaker.state() == State::Open, opens);
            prop_assert_eq!(sums(&breaker), expected);
            if opens {
                breaker.reset();
                model.clear();
            }
        }
    }
}

#[test]
fn a_time_window_forgets() {
    let (breaker, clock) = breaker(&small().sliding_window(SlidingWindow::Time(10 * SECOND)));
    fail(&breaker, 3);
    clock.advance(10 * SECOND - Duration::from_micros(1));
    assert_eq!(breaker.snapshot().calls, 3);
    clock.advance(Duration::from_micros(1));
    assert_eq!(breaker.snapshot().calls, 0);
    fail(&breaker, 3);
    assert_eq!(breaker.state(), State::Closed);
    fail(&breaker, 1);
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn a_time_that_comes_again_does_not_find_failures_without_their_calls() {
    let (breaker, clock) = breaker(&small().sliding_window(SlidingWindow::Time(SECOND)));
    clock.set(2_000_000);
    fail(&breaker, 2);
    clock.set(1_000_000);
    succeed(&breaker, 1);
    clock.set(2_000_000);
    succeed(&breaker, 1);
    assert_eq!(sums(&breaker), [1, 0, 0], "the span of 1 s took the place of that of 2 s");
}

/// Past where the generations that the counters hold come round.
#[test]
fn a_window_survives_very_many_generations() {
    for window in [SlidingWindow::Count(4), SlidingWindow::Time(10 * SECOND)] {
        let (breaker, _) = breaker(&small().sliding_window(window));
        for round in 0..70_000 {
            fail(&breaker, 3);
            assert_eq!(breaker.snapshot().calls, 3, "{window:?}, round {round}");
            breaker.reset();
        }
    }
}
