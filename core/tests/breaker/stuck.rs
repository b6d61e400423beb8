//! Whatever is done to it, a breaker admits no more probes than permitted and finds its way back to closed.

use std::sync::Arc;
use std::time::Duration;

use balde::{CallPermit, CircuitBreaker, CircuitBreakerState as State, SlidingWindow};
use proptest::prelude::*;

use crate::{SECOND, breaker, small};

const LEASE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
enum Step {
    Acquire,
    Success(usize),
    Failure(usize),
    Drop(usize),
    Advance(u64),
    Back(u64),
    ForceOpen,
    Disable,
    Close,
    Reset,
    OpenUntil(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let micros = || prop_oneof![0..200_000u64, 0..3_000_000u64, 0..30_000_000u64];
    let which = || 0..1_000usize;
    let step = prop_oneof![
        30 => Just(Step::Acquire),
        10 => which().prop_map(Step::Success),
        12 => which().prop_map(Step::Failure),
        5 => which().prop_map(Step::Drop),
        15 => micros().prop_map(Step::Advance),
        3 => micros().prop_map(Step::Back),
        1 => Just(Step::ForceOpen),
        1 => Just(Step::Disable),
        1 => Just(Step::Close),
        1 => Just(Step::Reset),
        2 => micros().prop_map(Step::OpenUntil),
    ];
    prop::collection::vec(step, 1..150)
}

/// A permit that has not reported.
struct Out {
    permit: CallPermit<Arc<CircuitBreaker>>,
    /// Which half-open state it is a probe of.
    episode: Option<usize>,
    /// How far the clock had ever been moved forward when it was given, in microseconds.
    given: u64,
}

impl Out {
    /// Whether it is a probe of `episode` whose lease cannot be over, however the clock stepped back.
    fn holds(&self, episode: usize, forward: u64) -> bool {
        self.episode == Some(episode) && forward - self.given < LEASE.as_micros() as u64
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn never_stuck_and_never_too_many_probes(
        steps in steps(),
        permitted in 1..5u32,
        by_time in any::<bool>(),
        most in prop::option::of(1..20u32),
    ) {
        let window = if by_time { SlidingWindow::Time(SECOND) } else { SlidingWindow::Count(6) };
        let mut config = small().sliding_window(window).half_open_probe_lease(LEASE).backoff_multiplier(2).jitter(30);
        config = config.permitted_number_of_calls_in_half_open_state(permitted);
        if let Some(seconds) = most {
            config = config.max_wait_duration_in_half_open_state(seconds * SECOND);
        }
        let (breaker, clock) = breaker(&config);
        let (mut now, mut forward) = (0u64, 0u64);
        let (mut out, mut episode, mut reported): (Vec<Out>, usize, u32) = (Vec::new(), 0, 0);
        for step in steps {
            let before = breaker.state();
            match step {
                Step::Acquire => {
                    let permit = breaker.try_acquire_permission_owned();
                    let after = breaker.state();
                    if after == State::HalfOpen && before != State::HalfOpen {
                        (episode, reported) = (episode + 1, 0);
                    }
                    if after != State::HalfOpen {
                        prop_assert_eq!(permit.is_ok(), matches!(after, State::Closed | State::Disabled));
                    }
                    if let Ok(permit) = permit {
                        let episode = (after == State::HalfOpen).then_some(episode);
                        out.push(Out { permit, episode, given: forward });
                    }
                }
                Step::Success(which) | Step::Failure(which) if !out.is_empty() => {
                    let one = out.swap_remove(which % out.len());
                    reported += u32::from(before == State::HalfOpen && one.holds(episode, forward));
                    let late = one.episode != Some(episode);
                    if matches!(step, Step::Success(_)) { one.permit.success() } else { one.permit.failure() }
                    if late && before != State::Closed {
                        prop_assert_eq!(breaker.state(), before, "a late result");
                    }
                }
                Step::Drop(which) if !out.is_empty() => {
                    drop(out.swap_remove(which % out.len()));
                    prop_assert_eq!(breaker.state(), before, "a drop is neutral");
                }
                Step::Success(_) | Step::Failure(_) | Step::Drop(_) => {}
                Step::Advance(by) => (now, forward) = (now + by, forward + by),
                Step::Back(by) => now = now.saturating_sub(by),
                Step::ForceOpen => breaker.transition_to_forced_open(),
                Step::Disable => breaker.transition_to_disabled(),
                Step::Close => breaker.transition_to_closed(),
                Step::Reset => breaker.reset(),
                Step::OpenUntil(wait) => breaker.open_until(Duration::from_micros(wait)),
            }
            clock.set(now);
            if breaker.state() == State::HalfOpen {
                let probes = out.iter().filter(|out| out.holds(episode, forward)).count() as u32 + reported;
                prop_assert!(probes <= permitted, "{} probes of {}", probes, permitted);
                let seen = breaker.snapshot();
                prop_assert!(seen.probes + seen.calls <= u64::from(permitted));
            }
        }

        if matches!(breaker.state(), State::ForcedOpen | State::Disabled) {
            breaker.transition_to_closed();
        }
        // The permits that are still out never report. Each refusal is waited out, each call succeeds.
        for _ in 0..4 * permitted + 8 {
            if breaker.state() == State::Closed {
                break;
            }
            match breaker.try_acquire_permission() {
                Ok(permit) => permit.success(),
                Err(refused) => clock.advance(refused.retry_after.unwrap_or(LEASE)),
            }
        }
        prop_assert_eq!(breaker.state(), State::Closed);
    }
}
