//! What a caller gets: the decision, read off the bucket that the decision left behind.

use std::time::Duration;

use crate::bucket::{self, Outcome};
use crate::limit::Limit;
use crate::limits::Limits;

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a decision that nobody looks at limits nothing"]
#[non_exhaustive]
pub struct Decision {
    /// Whether the request may pass (after [`wait`](Decision::wait), if that is not zero).
    pub allowed: bool,
    /// Whole tokens left after the decision, of the limit that has the fewest; never below 0.
    pub remaining: u64,
    /// How long until the same request could be admitted; zero when it was, `None` when it can never succeed.
    pub retry_after: Option<Duration>,
    /// How long until every limit is full again, if nothing more is taken.
    pub reset_after: Duration,
    /// How long an admitted request waited, or has still to wait, for its tokens; zero for a denied one.
    pub wait: Duration,
    /// The limit that binds: the one to wait for longest, or else the one with the fewest tokens left.
    pub limit: Limit,
    /// Who decided.
    pub source: Source,
    /// Why, where the figures do not say it.
    pub reason: Option<Reason>,
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The store: the script on the server, or the memory of this process for `memory:`.
    Store,
    /// The failure policy, because the server did not answer; [`Decision::reason`] says why.
    Fallback,
}

impl Source {
    /// The stable name, the same in every language.
    pub const fn as_str(self) -> &'static str {
        match self {
            Source::Store => "store",
            Source::Fallback => "fallback",
        }
    }
}

/// Why a decision is what it is, where its figures do not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The request asks for more tokens than a full bucket holds, so that it can never succeed.
    CostExceedsCapacity,
    /// A fallback: the server did not answer within the deadline.
    Timeout,
    /// A fallback: the server could not be reached, or said that it cannot decide now.
    Unavailable,
    /// A fallback: the server failed lately and was not asked.
    BreakerOpen,
}

impl Reason {
    /// The stable name, the same in every language.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::CostExceedsCapacity => "cost_exceeds_capacity",
            Reason::Timeout => "timeout",
            Reason::Unavailable => "unavailable",
            Reason::BreakerOpen => "breaker_open",
        }
    }
}

impl Decision {
    /// The decision on one request of `cost` tokens, of which `admitted` says whether it was (and its tokens taken).
    pub(crate) fn of(limits: &Limits, outcome: &Outcome, cost: i64, admitted: bool, source: Source) -> Self {
        let never = limits.iter().any(|limit| cost as u64 > limit.burst());
        // What an admitted request must wait for is the debt that it left; what a denied one lacks was not taken.
        let lacking = if admitted { 0 } else { cost };
        let (mut wait, mut fewest, mut reset) = (0, u64::MAX, 0);
        let mut binding = (0, u64::MAX, limits[0]);
        for (limit, units) in limits.iter().zip(&outcome.units) {
            let left = units.div_euclid(limit.scale).max(0) as u64;
            let refill = bucket::fill(limit, *units);
            if refill > 0 {
                reset = reset.max(outcome.ahead + refill);
            }
            let mut needed = 0;
            if cost > 0 && !never {
                let short = bucket::until(limit, lacking * limit.scale - units);
                needed = if short > 0 { outcome.ahead + short } else { 0 };
            }
            if needed > binding.0 || (needed == binding.0 && left < binding.1) {
                binding = (needed, left, *limit);
            }
            wait = wait.max(needed);
            fewest = fewest.min(left);
        }
        if never && !admitted {
            binding.2 = *limits.iter().min_by_key(|limit| limit.burst()).unwrap_or(&binding.2);
        }
        Decision {
            allowed: admitted,
            remaining: fewest,
            retry_after: match (admitted, never) {
                (true, _) => Some(Duration::ZERO),
                (false, true) => None,
                (false, false) => Some(micros(wait)),
            },
            reset_after: micros(reset),
            wait: if admitted { micros(wait) } else { Duration::ZERO },
            limit: binding.2,
            source,
            reason: (never && !admitted).then_some(Reason::CostExceedsCapacity),
        }
    }

    /// What a request of `cost` tokens that will not wait would be told, from a bucket that nothing was taken from.
    pub(crate) fn foreseen(limits: &Limits, outcome: &Outcome, cost: i64, source: Source) -> Self {
        let denied = Decision::of(limits, outcome, cost, false, source);
        match denied.retry_after {
            Some(Duration::ZERO) => Decision { allowed: true, ..denied },
            _ => denied,
        }
    }
}

fn micros(micros: i64) -> Duration {
    Duration::from_micros(micros.max(0) as u64)
}
