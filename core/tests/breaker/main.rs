//! The circuit breaker from outside: its states, its windows against a naive model, its probes, and that no way of
//! using it leaves it stuck.

mod calls;
mod options;
mod probes;
mod states;
mod stuck;
mod threads;
mod transitions;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use balde::{CallOutcome, CircuitBreaker, CircuitBreakerConfig, ManualClock, SlidingWindow};

const SECOND: Duration = Duration::from_secs(1);

/// Opens at two failures of four, for a second each time; two probes.
fn small() -> CircuitBreakerConfig {
    CircuitBreakerConfig::new()
        .sliding_window(SlidingWindow::Count(4))
        .minimum_number_of_calls(4)
        .wait_duration_in_open_state(SECOND)
        .backoff_multiplier(1)
        .jitter(0)
        .permitted_number_of_calls_in_half_open_state(2)
        .half_open_probe_lease(10 * SECOND)
}

fn breaker(config: &CircuitBreakerConfig) -> (Arc<CircuitBreaker>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    (Arc::new(CircuitBreaker::with_clock(config, clock.clone()).unwrap()), clock)
}

fn fail(breaker: &CircuitBreaker, calls: usize) {
    (0..calls).for_each(|_| breaker.record(CallOutcome::Failure, Duration::ZERO));
}

fn succeed(breaker: &CircuitBreaker, calls: usize) {
    (0..calls).for_each(|_| breaker.record(CallOutcome::Success, Duration::ZERO));
}
