//! What a caller gets: the decision, read off the bucket that the decision left behind.

use std::time::Duration;

use crate::bucket::{self, One, Outcome, Run};
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
}

impl Reason {
    /// The stable name, the same in every language.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::CostExceedsCapacity => "cost_exceeds_capacity",
            Reason::Timeout => "timeout",
            Reason::Unavailable => "unavailable",
        }
    }
}

impl Decision {
    /// The decision on one request of `cost` tokens, of which `admitted` says whether it was (and its tokens taken).
    pub(crate) fn of(limits: &Limits, outcome: &Outcome, cost: i64, admitted: bool, source: Source) -> Self {
        let never = !admitted && limits.iter().any(|limit| cost as u64 > limit.burst());
        // What an admitted request must wait for is the debt that it left; what a denied one lacks was not taken.
        let lacking = if admitted { 0 } else { cost };
        let waits = cost > 0 && !never;
        let seen = |limit, units| Seen::of(limit, units, outcome.ahead, waits.then_some(lacking));
        let (mut all, mut binds) = (seen(&limits[0], outcome.units[0]), 0);
        let mut binding = all;
        for i in 1..limits.len() {
            let one = seen(&limits[i], outcome.units[i]);
            if one.needed > binding.needed || (one.needed == binding.needed && one.left < binding.left) {
                (binding, binds) = (one, i);
            }
            all.left = all.left.min(one.left);
            all.reset = all.reset.max(one.reset);
        }
        if never {
            binds = (0..limits.len()).min_by_key(|i| limits[*i].burst()).unwrap_or(0);
        }
        let wait = micros(binding.needed);
        Decision {
            allowed: admitted,
            remaining: all.left,
            retry_after: if never { None } else { Some(if admitted { Duration::ZERO } else { wait }) },
            reset_after: micros(all.reset),
            wait: if admitted { wait } else { Duration::ZERO },
            limit: limits[binds],
            source,
            reason: never.then_some(Reason::CostExceedsCapacity),
        }
    }

    /// The store's decision on the one request of a call.
    pub(crate) fn stored(limits: &Limits, outcome: &Outcome, run: &Run) -> Self {
        Decision::of(limits, outcome, run.cost, outcome.admitted[0] > 0, Source::Store)
    }

    /// The decision on a request for one token under one limit.
    #[inline]
    pub(crate) fn of_one(limit: &Limit, one: One, source: Source) -> Self {
        let seen = Seen::of(limit, one.units, 0, (!one.taken).then_some(1));
        Decision {
            allowed: one.taken,
            remaining: seen.left,
            retry_after: Some(micros(seen.needed)),
            reset_after: micros(seen.reset),
            wait: Duration::ZERO,
            limit: *limit,
            source,
            reason: None,
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

/// What one limit says: whole tokens left, microseconds until it is full, and until what is lacking is there.
#[derive(Clone, Copy)]
struct Seen {
    left: u64,
    reset: i64,
    needed: i64,
}

impl Seen {
    /// `lacking` is in tokens, `None` for a request that waits for nothing.
    #[inline]
    fn of(limit: &Limit, units: i64, ahead: i64, lacking: Option<i64>) -> Self {
        let left = if units < limit.scale { 0 } else { units as u64 / limit.scale as u64 };
        let fill = bucket::fill(limit, units);
        let short = lacking.map_or(0, |tokens| tokens * limit.scale - units);
        let needed = if short > 0 { ahead + bucket::until(limit, short) } else { 0 };
        Seen { left, reset: if fill > 0 { ahead + fill } else { 0 }, needed }
    }
}

fn micros(micros: i64) -> Duration {
    Duration::from_micros(micros.max(0) as u64)
}
