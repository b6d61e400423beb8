//! The ways that somebody asks for, and who is told.

use std::sync::{Arc, Mutex};

use balde::CircuitBreakerState as State;

use crate::{SECOND, breaker, fail, small, succeed};

#[test]
fn forced_open_refuses_and_disabled_permits_until_told_otherwise() {
    let (breaker, clock) = breaker(&small());
    breaker.transition_to_forced_open();
    clock.advance(86_400 * SECOND);
    let refused = breaker.try_acquire_permission().unwrap_err();
    assert_eq!((refused.state, refused.retry_after), (State::ForcedOpen, None));
    breaker.open_until(SECOND);
    assert_eq!(breaker.state(), State::ForcedOpen);

    breaker.transition_to_disabled();
    for _ in 0..20 {
        breaker.try_acquire_permission().unwrap().failure();
    }
    breaker.open_until(SECOND);
    assert_eq!((breaker.state(), breaker.snapshot().calls), (State::Disabled, 0));

    breaker.transition_to_closed();
    assert_eq!(breaker.state(), State::Closed);
    fail(&breaker, 3);
    breaker.transition_to_closed();
    assert_eq!(breaker.snapshot().calls, 3, "a closed breaker that is closed stays as it is");
}

#[test]
fn reset_empties_everything() {
    let (breaker, clock) = breaker(&small().backoff_multiplier(2));
    fail(&breaker, 3);
    breaker.reset();
    assert_eq!(breaker.snapshot().calls, 0);
    fail(&breaker, 4);
    clock.advance(SECOND);
    breaker.try_acquire_permission().unwrap().failure();
    assert!(breaker.try_acquire_permission().is_err());
    assert_eq!(breaker.snapshot().not_permitted_calls, 1);
    breaker.reset();
    assert_eq!((breaker.state(), breaker.snapshot().not_permitted_calls), (State::Closed, 0));
    fail(&breaker, 4);
    assert_eq!(breaker.snapshot().retry_after, Some(SECOND), "the wait is short again");
}

#[test]
fn a_server_that_says_when_is_believed() {
    let (breaker, clock) = breaker(&small());
    let remaining = || breaker.snapshot().retry_after;
    breaker.open_until(3 * SECOND);
    assert_eq!(remaining(), Some(3 * SECOND));
    clock.advance(SECOND);
    breaker.open_until(SECOND);
    assert_eq!(remaining(), Some(2 * SECOND), "never earlier");
    breaker.open_until(4 * SECOND);
    assert_eq!(remaining(), Some(4 * SECOND));
    breaker.open_until(SECOND * u32::MAX);
    assert_eq!(remaining(), Some(86_400 * SECOND), "a day at most");
    clock.advance(86_400 * SECOND);
    succeed(&breaker, 2);
    for _ in 0..2 {
        breaker.try_acquire_permission().unwrap().success();
    }
    assert_eq!(breaker.state(), State::Closed);
    breaker.open_until(SECOND / 10_000_000);
    assert_eq!(breaker.state(), State::Closed, "for no time at all");
}

#[test]
fn a_half_open_breaker_can_be_told_to_wait() {
    let (breaker, clock) = breaker(&small());
    fail(&breaker, 4);
    clock.advance(SECOND);
    let probe = breaker.try_acquire_permission().unwrap();
    breaker.open_until(3 * SECOND);
    probe.success();
    assert_eq!((breaker.state(), breaker.snapshot().retry_after), (State::Open, Some(3 * SECOND)));
}

#[test]
fn listeners_hear_each_transition_once_and_may_call_back() {
    let (breaker, clock) = breaker(&small());
    let heard = Arc::new(Mutex::new(Vec::new()));
    breaker.on_transition(|_| panic!("a listener that is itself broken"));
    breaker.on_transition({
        let (breaker, heard) = (Arc::downgrade(&breaker), heard.clone());
        move |transition| {
            heard.lock().unwrap().push((transition.from, transition.to));
            let breaker = breaker.upgrade().unwrap();
            if transition.to == State::HalfOpen {
                breaker.try_acquire_permission().unwrap().success();
            }
            if transition.to == State::ForcedOpen {
                breaker.on_transition(|_| ());
                breaker.reset();
            }
        }
    });
    fail(&breaker, 4);
    clock.advance(SECOND);
    let probe = breaker.try_acquire_permission().unwrap();
    assert_eq!(breaker.snapshot().calls, 1, "the listener's own probe");
    probe.success();
    breaker.transition_to_forced_open();
    assert_eq!(breaker.state(), State::Closed);
    let expected = [
        (State::Closed, State::Open),
        (State::Open, State::HalfOpen),
        (State::HalfOpen, State::Closed),
        (State::Closed, State::ForcedOpen),
        (State::ForcedOpen, State::Closed),
    ];
    assert_eq!(*heard.lock().unwrap(), expected);
}
