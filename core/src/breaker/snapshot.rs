//! A breaker at one moment, in numbers.

use std::time::Duration;

use super::sums::Sums;
use super::transition::CircuitBreakerState;

/// What a [`CircuitBreaker`](super::CircuitBreaker) looked like when it was asked.
///
/// While calls end on other threads, the numbers of a time window may be those of neighbouring moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CircuitBreakerSnapshot {
    /// The state.
    pub state: CircuitBreakerState,
    /// Calls that ended: of the window when closed, of the probes when half open, and when open of what it opened for.
    pub calls: u64,
    /// Those of them that failed.
    pub failed_calls: u64,
    /// Those of them that were slow, failed ones among them.
    pub slow_calls: u64,
    /// Failed calls in a thousand, rounded down. None while there are too few calls for that to mean anything.
    pub failure_rate_permille: Option<u32>,
    /// Slow calls in a thousand, likewise.
    pub slow_call_rate_permille: Option<u32>,
    /// Probes that have not reported.
    pub probes: u64,
    /// Calls that were refused, since the breaker was made or reset.
    pub not_permitted_calls: u64,
    /// How long the breaker stays open, if it is.
    pub retry_after: Option<Duration>,
}

impl CircuitBreakerSnapshot {
    /// A snapshot with the sums of it; rates are given from `minimum` calls on.
    pub(super) fn new(state: CircuitBreakerState, sums: Sums, minimum: u64) -> Self {
        let rate = |bad: u64| (sums.calls >= minimum.max(1)).then(|| (bad * 1000 / sums.calls).min(1000) as u32);
        CircuitBreakerSnapshot {
            state,
            calls: sums.calls,
            failed_calls: sums.failed,
            slow_calls: sums.slow,
            failure_rate_permille: rate(sums.failed),
            slow_call_rate_permille: rate(sums.slow),
            probes: 0,
            not_permitted_calls: 0,
            retry_after: None,
        }
    }
}
