//! What is asked of a limiter: how much, how long it may wait, under whose limits.

use std::time::Duration;

use crate::bucket::Run;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;

/// The largest cost, refund and wait in microseconds: 2^53 - 1, the last whole number that every language counts to.
const MOST: u64 = (1 << 53) - 1;

/// A request for tokens.
///
/// ```
/// use std::time::Duration;
/// use balde::Acquire;
/// let request = Acquire::cost(5).max_wait(Duration::from_secs(2));
/// assert_eq!(Acquire::default(), Acquire::cost(1));
/// # let _ = request;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a request does nothing until it is given to a limiter"]
pub struct Acquire {
    cost: u64,
    max_wait: Duration,
    limits: Option<Limits>,
    no_fallback: bool,
}

impl Acquire {
    /// A request for `cost` tokens, from 0 (which only looks) to 2^53 - 1. It does not wait.
    pub const fn cost(cost: u64) -> Self {
        Acquire { cost, max_wait: Duration::ZERO, limits: None, no_fallback: false }
    }

    /// How long the request may wait for its tokens; parts of a microsecond are dropped, and what is beyond 2^53
    /// microseconds (285 years) is that. A request that would have to wait longer is denied at once.
    pub const fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// The caller's own limits for this request, on the same bucket: what is left in it stays left.
    pub fn limits(mut self, limits: &Limits) -> Self {
        self.limits = Some(limits.clone());
        self
    }

    /// Answers `unavailable` where the failure policy would decide.
    pub const fn no_fallback(mut self) -> Self {
        self.no_fallback = true;
        self
    }

    pub(crate) fn may_fall_back(&self) -> bool {
        !self.no_fallback
    }

    pub(crate) fn own_limits(&self) -> Option<&Limits> {
        self.limits.as_ref()
    }

    /// # Errors
    /// `invalid_cost` for one out of bounds.
    pub(crate) fn run(&self) -> Result<Run> {
        let max_wait = u64::try_from(self.max_wait.as_micros()).unwrap_or(u64::MAX).min(MOST);
        Ok(Run::take(tokens(self.cost)?, max_wait as i64))
    }
}

impl Default for Acquire {
    fn default() -> Self {
        Acquire::cost(1)
    }
}

/// A number of tokens within bounds.
pub(crate) fn tokens(tokens: u64) -> Result<i64> {
    if tokens > MOST {
        return Err(Error::new(
            ErrorKind::InvalidCost,
            format!("{tokens} tokens: at most {MOST} can be counted exactly"),
        ));
    }
    Ok(tokens as i64)
}
