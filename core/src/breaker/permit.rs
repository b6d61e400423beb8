//! The right to make one call, and the refusal of it.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use super::CircuitBreaker;
use super::config::micros;
use super::passage::Issued;
use super::transition::CircuitBreakerState;

/// How a call ended, as a [`CircuitBreaker`] sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallOutcome {
    /// The dependency did its work. Whether it was slow is for the time it took to say.
    Success,
    /// The dependency failed, or did not answer in time.
    Failure,
}

/// The right to make one call, from [`CircuitBreaker::try_acquire_permission`] (`B` is a reference) or
/// [`CircuitBreaker::try_acquire_permission_owned`] (`B` is an `Arc`).
///
/// Say how the call ended by [`success`](CallPermit::success), [`failure`](CallPermit::failure) or
/// [`record`](CallPermit::record). A permit that is dropped without that counts for nothing, as for a call that was
/// cancelled or never made, and gives its probe's place back. A result that comes after the breaker has moved to another
/// state changes nothing.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once counts for nothing"]
pub struct CallPermit<B: Deref<Target = CircuitBreaker>> {
    breaker: B,
    issued: Issued,
    settled: bool,
}

impl<B: Deref<Target = CircuitBreaker>> CallPermit<B> {
    pub(super) fn new(breaker: B, issued: Issued) -> Self {
        CallPermit { breaker, issued, settled: false }
    }

    /// The call succeeded. The time since the permit was given decides whether it was slow.
    pub fn success(self) {
        self.record(CallOutcome::Success);
    }

    /// The call failed.
    pub fn failure(self) {
        self.record(CallOutcome::Failure);
    }

    /// The call ended with `outcome`, having taken the time since the permit was given.
    pub fn record(mut self, outcome: CallOutcome) {
        self.settled = true;
        let now = self.breaker.clock.now();
        self.breaker.settle(self.issued, outcome, now.saturating_sub(self.issued.at), now);
    }

    /// The call ended with `outcome` after `elapsed`, for who has measured that better.
    pub fn record_after(mut self, outcome: CallOutcome, elapsed: Duration) {
        self.settled = true;
        let now = self.breaker.clock.now();
        self.breaker.settle(self.issued, outcome, micros(elapsed), now);
    }
}

impl<B: Deref<Target = CircuitBreaker>> Drop for CallPermit<B> {
    fn drop(&mut self) {
        if !self.settled {
            self.breaker.release(self.issued);
        }
    }
}

/// A breaker did not let a call through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallNotPermitted {
    /// Why: `Open`, `ForcedOpen`, or `HalfOpen` with all probes under way.
    pub state: CircuitBreakerState,
    /// How long the breaker stays open, in whole microseconds. None where nobody can tell: `HalfOpen` ends when its
    /// probes do, `ForcedOpen` when somebody says so.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for CallNotPermitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the circuit breaker is {} and does not permit this call", self.state)?;
        match self.retry_after {
            Some(wait) => write!(f, "; retry after {wait:?}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for CallNotPermitted {}
