use balde::{CallOutcome, CircuitBreakerState as State};

use crate::{SECOND, breaker, fail, small};

#[test]
fn no_more_probes_than_permitted() {
    let (breaker, clock) = breaker(&small().permitted_number_of_calls_in_half_open_state(3));
    fail(&breaker, 4);
    clock.advance(SECOND);
    let mut probes: Vec<_> = (0..3).map(|_| breaker.try_acquire_permission_owned().unwrap()).collect();
    let refused = breaker.try_acquire_permission().unwrap_err();
    assert_eq!((refused.state, refused.retry_after), (State::HalfOpen, None));
    probes.pop().unwrap().success();
    assert!(breaker.try_acquire_permission().is_err(), "a place that has reported is used up");
    drop(probes.pop());
    let again = breaker.try_acquire_permission().unwrap();
    assert!(breaker.try_acquire_permission().is_err());
    again.success();
    assert_eq!(breaker.snapshot().probes, 1);
    probes.pop().unwrap().success();
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn it_opens_as_soon_as_too_many_probes_have_failed() {
    let (breaker, clock) = breaker(&small().permitted_number_of_calls_in_half_open_state(5));
    fail(&breaker, 4);
    clock.advance(SECOND);
    for _ in 0..2 {
        breaker.try_acquire_permission().unwrap().failure();
    }
    assert_eq!(breaker.state(), State::HalfOpen);
    breaker.try_acquire_permission().unwrap().failure();
    assert_eq!(breaker.state(), State::Open, "3 of 5 are 50 % or more, whatever the others would say");
}

#[test]
fn some_failures_below_the_threshold_close_it() {
    let (breaker, clock) = breaker(&small().permitted_number_of_calls_in_half_open_state(5));
    fail(&breaker, 4);
    clock.advance(SECOND);
    for outcome in [CallOutcome::Failure, CallOutcome::Failure, CallOutcome::Success, CallOutcome::Success] {
        breaker.try_acquire_permission().unwrap().record(outcome);
        assert_eq!(breaker.state(), State::HalfOpen);
    }
    breaker.try_acquire_permission().unwrap().success();
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn a_lost_probe_frees_its_place_after_its_lease() {
    let (breaker, clock) = breaker(&small());
    fail(&breaker, 4);
    clock.advance(SECOND);
    let late = breaker.try_acquire_permission().unwrap();
    clock.advance(4 * SECOND);
    std::mem::forget(breaker.try_acquire_permission().unwrap());
    clock.advance(6 * SECOND - SECOND / 1_000_000);
    assert!(breaker.try_acquire_permission().is_err());
    clock.advance(SECOND / 1_000_000);
    let next = breaker.try_acquire_permission().unwrap();
    assert!(breaker.try_acquire_permission().is_err(), "the other lease is not over");
    late.failure();
    assert_eq!((breaker.state(), breaker.snapshot().calls), (State::HalfOpen, 0), "its place went to another");
    next.success();
    clock.advance(4 * SECOND);
    breaker.try_acquire_permission().unwrap().success();
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn a_probe_past_its_lease_counts_while_nobody_took_its_place() {
    let (breaker, clock) = breaker(&small());
    fail(&breaker, 4);
    clock.advance(SECOND);
    let slow = breaker.try_acquire_permission().unwrap();
    clock.advance(100 * SECOND);
    slow.failure();
    assert_eq!(breaker.state(), State::Open);
}

#[test]
fn half_open_for_too_long_opens_again() {
    let (breaker, clock) = breaker(&small().max_wait_duration_in_half_open_state(5 * SECOND).backoff_multiplier(2));
    fail(&breaker, 4);
    clock.advance(SECOND);
    let hung = breaker.try_acquire_permission().unwrap();
    clock.advance(5 * SECOND);
    let refused = breaker.try_acquire_permission().unwrap_err();
    assert_eq!((refused.state, refused.retry_after), (State::Open, Some(2 * SECOND)));
    hung.success();
    assert_eq!(breaker.state(), State::Open);
}
