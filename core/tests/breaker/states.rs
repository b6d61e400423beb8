//! The way from closed to open and back, as calls lead it.

use balde::{CallOutcome, CircuitBreakerState as State};

use crate::{SECOND, breaker, fail, small, succeed};

#[test]
fn closed_opens_then_probes_then_closes() {
    let (breaker, clock) = breaker(&small());
    succeed(&breaker, 2);
    fail(&breaker, 1);
    assert_eq!(breaker.state(), State::Closed);
    fail(&breaker, 1);
    assert_eq!(breaker.state(), State::Open);

    clock.advance(SECOND / 4);
    let refused = breaker.try_acquire_permission().unwrap_err();
    assert_eq!((refused.state, refused.retry_after), (State::Open, Some(SECOND * 3 / 4)));
    clock.advance(SECOND * 3 / 4);
    assert_eq!(breaker.state(), State::Open, "nobody has asked yet");
    breaker.try_acquire_permission().unwrap().success();
    assert_eq!(breaker.state(), State::HalfOpen);
    breaker.try_acquire_permission().unwrap().success();
    assert_eq!(breaker.state(), State::Closed);
    fail(&breaker, 3);
    assert_eq!(breaker.state(), State::Closed, "the window began anew");
}

#[test]
fn probes_that_fail_open_it_for_longer_until_it_was_closed() {
    let (breaker, clock) = breaker(&small().backoff_multiplier(3).max_wait_duration_in_open_state(5 * SECOND));
    let open_for = |seconds: u32| {
        assert_eq!(breaker.try_acquire_permission().unwrap_err().retry_after, Some(seconds * SECOND));
        clock.advance(seconds * SECOND);
    };
    fail(&breaker, 4);
    for seconds in [1, 3, 5, 5] {
        open_for(seconds);
        breaker.try_acquire_permission().unwrap().failure();
    }
    open_for(5);
    breaker.try_acquire_permission().unwrap().success();
    breaker.try_acquire_permission().unwrap().success();
    fail(&breaker, 4);
    open_for(1);
}

#[test]
fn too_few_calls_open_nothing() {
    let (breaker, _) = breaker(&small());
    fail(&breaker, 3);
    assert_eq!(breaker.state(), State::Closed);
    assert_eq!(breaker.snapshot().failure_rate_permille, None);
    succeed(&breaker, 1);
    assert_eq!(breaker.state(), State::Open, "also a success may complete the minimum");
    assert_eq!(breaker.snapshot().failure_rate_permille, Some(750));
}

#[test]
fn slow_calls_open_it_by_the_time_since_their_permit() {
    let (breaker, clock) = breaker(&small().slow_call_duration_threshold(SECOND).slow_call_rate_threshold(50));
    for wait in [SECOND, SECOND * 2, SECOND, SECOND * 2] {
        assert_eq!(breaker.state(), State::Closed);
        let permit = breaker.try_acquire_permission().unwrap();
        clock.advance(wait);
        permit.success();
    }
    assert_eq!(breaker.state(), State::Open, "as long as the threshold is not yet slow, and 2 of 4 are too many");
    assert_eq!((breaker.snapshot().slow_calls, breaker.snapshot().failed_calls), (2, 0));
}

#[test]
fn slow_probes_open_it_again() {
    let (breaker, clock) = breaker(&small().slow_call_duration_threshold(SECOND).slow_call_rate_threshold(50));
    fail(&breaker, 4);
    clock.advance(SECOND);
    breaker.try_acquire_permission().unwrap().record_after(CallOutcome::Success, 2 * SECOND);
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn a_late_result_of_an_old_state_changes_nothing() {
    let (breaker, clock) = breaker(&small());
    let old: Vec<_> = (0..8).map(|_| breaker.try_acquire_permission().unwrap()).collect();
    let mut old = old.into_iter();
    fail(&breaker, 4);
    let mut late = |outcome| old.next().unwrap().record(outcome);
    late(CallOutcome::Success);
    assert_eq!((breaker.state(), breaker.snapshot().calls), (State::Open, 4));
    clock.advance(SECOND);
    let probe = breaker.try_acquire_permission().unwrap();
    late(CallOutcome::Failure);
    late(CallOutcome::Success);
    assert_eq!((breaker.state(), breaker.snapshot().calls), (State::HalfOpen, 0));
    probe.success();
    breaker.try_acquire_permission().unwrap().success();
    for _ in 0..5 {
        late(CallOutcome::Failure);
    }
    assert_eq!((breaker.state(), breaker.snapshot().calls), (State::Closed, 0));
}

#[test]
fn a_clock_that_steps_back_makes_no_wait_longer() {
    let (breaker, clock) = breaker(&small());
    clock.set(3_600_000_000);
    fail(&breaker, 4);
    clock.set(1);
    assert_eq!(breaker.try_acquire_permission().unwrap_err().retry_after, Some(SECOND));
    clock.advance(SECOND);
    let lost = [breaker.try_acquire_permission().unwrap(), breaker.try_acquire_permission().unwrap()];
    clock.set(0);
    assert!(breaker.try_acquire_permission().is_err());
    clock.advance(10 * SECOND);
    breaker.try_acquire_permission().unwrap().success();
    breaker.try_acquire_permission().unwrap().success();
    assert_eq!(breaker.state(), State::Closed);
    drop(lost);
    let permit = breaker.try_acquire_permission().unwrap();
    clock.set(0);
    permit.success();
    assert_eq!((breaker.snapshot().calls, breaker.snapshot().slow_calls), (1, 0));
}
