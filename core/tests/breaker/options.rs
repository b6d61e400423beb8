use std::time::Duration;

use balde::{CircuitBreaker, CircuitBreakerConfig, SlidingWindow};

use crate::SECOND;

#[test]
fn the_defaults_and_all_bounds_are_accepted() {
    let new = CircuitBreakerConfig::new;
    let day = 86_400 * SECOND;
    for config in [
        new(),
        new().sliding_window(SlidingWindow::Count(1)),
        new().sliding_window(SlidingWindow::Count(10_000)).minimum_number_of_calls(10_000),
        new().sliding_window(SlidingWindow::Time(SECOND / 10)).minimum_number_of_calls(1_000_000),
        new().sliding_window(SlidingWindow::Time(3_600 * SECOND)),
        new().failure_rate_threshold(1).slow_call_rate_threshold(1).jitter(0),
        new().failure_rate_threshold(100).slow_call_rate_threshold(100).jitter(100),
        new().wait_duration_in_open_state(day).half_open_probe_lease(day).backoff_multiplier(100),
        new().permitted_number_of_calls_in_half_open_state(1_000).max_wait_duration_in_half_open_state(day),
    ] {
        assert!(CircuitBreaker::new(&config).is_ok(), "{config:?}");
    }
}

#[test]
fn what_is_out_of_bounds_is_refused_by_name() {
    let new = CircuitBreakerConfig::new;
    let long = Duration::from_secs(86_401);
    for (name, config) in [
        ("sliding_window", new().sliding_window(SlidingWindow::Count(0))),
        ("sliding_window", new().sliding_window(SlidingWindow::Count(10_001))),
        ("sliding_window", new().sliding_window(SlidingWindow::Time(Duration::from_millis(99)))),
        ("sliding_window", new().sliding_window(SlidingWindow::Time(3_601 * SECOND))),
        ("minimum_number_of_calls", new().minimum_number_of_calls(0)),
        ("minimum_number_of_calls", new().minimum_number_of_calls(101)),
        (
            "minimum_number_of_calls",
            new().sliding_window(SlidingWindow::Time(SECOND)).minimum_number_of_calls(1_000_001),
        ),
        ("failure_rate_threshold", new().failure_rate_threshold(0)),
        ("failure_rate_threshold", new().failure_rate_threshold(101)),
        ("slow_call_rate_threshold", new().slow_call_rate_threshold(101)),
        ("slow_call_duration_threshold", new().slow_call_duration_threshold(Duration::ZERO)),
        ("wait_duration_in_open_state", new().wait_duration_in_open_state(Duration::ZERO)),
        ("wait_duration_in_open_state", new().wait_duration_in_open_state(long)),
        ("backoff_multiplier", new().backoff_multiplier(0)),
        ("max_wait_duration_in_open_state", new().max_wait_duration_in_open_state(SECOND)),
        ("jitter", new().jitter(101)),
        ("permitted_number_of_calls_in_half_open_state", new().permitted_number_of_calls_in_half_open_state(0)),
        ("half_open_probe_lease", new().half_open_probe_lease(long)),
        ("max_wait_duration_in_half_open_state", new().max_wait_duration_in_half_open_state(Duration::ZERO)),
    ] {
        let error = CircuitBreaker::new(&config).expect_err(name);
        assert_eq!(error.code(), "invalid_option");
        assert!(error.message().starts_with(name), "{error}");
    }
}
