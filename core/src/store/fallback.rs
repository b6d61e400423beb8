//! Deciding when a server does not answer: by the policy that the user chose, in this process, at once.
//!
//! `local` gives each process its share of every limit, so that the fleet as a whole stays near it. What was admitted so
//! is settled: once the shard is back, what the local bucket still holds as spent is debited on the server, never below 0.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

use super::{Memory, Store};
use crate::bucket::Run;
use crate::clock::Clock;
use crate::decision::{Decision, Reason, Source};
use crate::limits::Limits;

/// When a fallback denies, when to come again, unless its bucket knows better: about when the server is asked anew.
const COME_AGAIN: Duration = Duration::from_secs(1);

/// What is decided when a server does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnFailure {
    /// Admit: the business goes on. Nothing is counted, and nothing is settled afterwards.
    #[default]
    Allow,
    /// Deny.
    Deny,
    /// Decide in this process on its share of each limit: rate / fleet, and a burst of burst / fleet, at least 1.
    Local,
}

/// The fallback of one limiter.
#[derive(Debug)]
pub(crate) struct Fallback {
    policy: OnFailure,
    fleet: u64,
    clock: Arc<dyn Clock>,
    /// For each key what this process admitted by itself, and the limits that the server knows the bucket by.
    shares: Memory<Limits>,
    /// Whether somebody is settling.
    settling: AtomicBool,
    admitted: AtomicU64,
    settled: AtomicU64,
}

impl Fallback {
    pub(crate) fn new(policy: OnFailure, fleet: u64, clock: Arc<dyn Clock>, most_keys: usize) -> Self {
        // The other policies hold nothing.
        let most_keys = if policy == OnFailure::Local { most_keys } else { 1 };
        Fallback {
            policy,
            fleet,
            clock,
            shares: Memory::new(most_keys),
            settling: AtomicBool::new(false),
            admitted: AtomicU64::new(0),
            settled: AtomicU64::new(0),
        }
    }

    /// Decides one request without the server, for `reason`.
    pub(crate) fn decide(&self, key: &[u8], limits: &Limits, run: &Run, reason: Reason) -> Decision {
        let never = limits.iter().any(|limit| run.cost as u64 > limit.burst());
        let share = shares(limits, if self.policy == OnFailure::Local { self.fleet } else { 1 });
        let now = self.clock.now() as i64;
        let runs = if self.policy == OnFailure::Local { [*run] } else { [Run::look()] };
        let outcome = self.shares.call_noting(key, &share, now, &runs, limits.clone());
        let admitted = match self.policy {
            OnFailure::Allow => !never,
            OnFailure::Deny => false,
            OnFailure::Local => outcome.admitted[0] > 0,
        };
        let mut decision = Decision::of(&share, &outcome, run.cost, admitted, Source::Fallback);
        // A request that is dear for a share alone may succeed when the server is back.
        if !never {
            decision.reason = Some(reason);
        }
        if !admitted && !never {
            let by_share = decision.retry_after.filter(|after| !after.is_zero());
            decision.retry_after = Some(by_share.unwrap_or(COME_AGAIN));
        }
        if admitted {
            // Relaxed: a count for people.
            self.admitted.fetch_add(run.cost as u64, Ordering::Relaxed);
        }
        decision
    }

    /// Gives tokens back that a waiting caller did not use.
    pub(crate) fn refund(&self, key: &[u8], limits: &Limits, tokens: i64) {
        if self.settles() {
            let share = shares(limits, self.fleet);
            let now = self.clock.now() as i64;
            let _ = self.shares.call_noting(key, &share, now, &[Run::refund(tokens)], limits.clone());
        }
    }

    /// Tokens admitted without a server, and tokens debited for them afterwards.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.admitted.load(Ordering::Relaxed), self.settled.load(Ordering::Relaxed))
    }

    /// Whether what this policy admits is debited on the server afterwards.
    pub(crate) fn settles(&self) -> bool {
        self.policy == OnFailure::Local
    }

    /// Whether there is something to settle and nobody does it. Who is told so must settle.
    pub(crate) fn must_settle(&self) -> bool {
        if !self.settles() {
            return false;
        }
        // Pairs with the fence in `settle`: either this sees that nobody settles any more, or who did sees what was
        // admitted before this. In an outage somebody nearly always does, and counting the shares locks every shard.
        fence(Ordering::SeqCst);
        !self.settling.load(Ordering::Relaxed)
            && self.shares.len() > 0
            // Acquire pairs with the release at the end of `settle`: one settles after the other.
            && self.settling.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Debits on the server what this process admitted by itself, for the keys whose shard answers, and returns whether
    /// nothing is left to settle.
    ///
    /// A debit that was sent is never sent again: where its answer fails to come, the server may not know of it.
    pub(crate) async fn settle(&self, store: &Store, deadline: Duration) -> bool {
        for (key, limits) in self.shares.noted() {
            // Looking first: what must not be sent twice is sent to a shard that answers.
            if store.call(&key, &limits, &[Run::look()], None, deadline).await.is_err() {
                continue;
            }
            let spent = self.shares.take_out(&key, self.clock.now() as i64).unwrap_or(0);
            let push = Run { cost: 1, count: spent as i64, wait: -1, until: 0 };
            if spent > 0 && store.call(&key, &limits, &[push], None, deadline).await.is_ok() {
                // Relaxed: a count for people.
                self.settled.fetch_add(spent, Ordering::Relaxed);
            }
        }
        // Released before the last look, whose fence comes between the two: who admits after it finds nobody settling.
        self.settling.store(false, Ordering::Release);
        !self.must_settle()
    }
}

/// Each limit's share of one process out of `fleet`: that part of its rate, and of its burst, but a token at least.
fn shares(limits: &Limits, fleet: u64) -> Limits {
    if fleet <= 1 { limits.clone() } else { limits.mapped(|limit| limit.share(fleet)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    fn fallback(policy: OnFailure, fleet: u64) -> (Fallback, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new());
        (Fallback::new(policy, fleet, clock.clone(), 1000), clock)
    }

    #[test]
    fn allow_admits_and_deny_denies_and_both_say_why() {
        let limits: Limits = "2/s".parse().unwrap();
        for _ in 0..5 {
            let allowed = fallback(OnFailure::Allow, 1).0.decide(b"k", &limits, &Run::take(1, 0), Reason::Timeout);
            assert!(allowed.allowed && allowed.source == Source::Fallback && allowed.reason == Some(Reason::Timeout));
            let denied = fallback(OnFailure::Deny, 1).0.decide(b"k", &limits, &Run::take(1, 0), Reason::Unavailable);
            assert_eq!((denied.allowed, denied.retry_after), (false, Some(COME_AGAIN)));
            assert_eq!(denied.reason, Some(Reason::Unavailable));
        }
    }

    #[test]
    fn a_cost_that_can_never_succeed_is_denied_by_every_policy() {
        let limits: Limits = "2/s".parse().unwrap();
        for policy in [OnFailure::Allow, OnFailure::Deny, OnFailure::Local] {
            let decision = fallback(policy, 4).0.decide(b"k", &limits, &Run::take(3, 0), Reason::Timeout);
            assert_eq!((decision.allowed, decision.retry_after), (false, None));
            assert_eq!(decision.reason, Some(Reason::CostExceedsCapacity));
        }
    }

    #[test]
    fn a_fleet_that_is_cut_off_admits_a_burst_together() {
        let limits: Limits = "100/100d".parse().unwrap();
        let admitted: usize = (0..4)
            .map(|_| {
                let process = fallback(OnFailure::Local, 4).0;
                let take = || process.decide(b"k", &limits, &Run::take(1, 0), Reason::Timeout).allowed;
                (0..200).filter(|_| take()).count()
            })
            .sum();
        assert_eq!(admitted, 100);
    }

    #[test]
    fn a_share_of_less_than_a_token_is_one_at_the_rate_of_the_share() {
        let (process, clock) = fallback(OnFailure::Local, 100);
        let limits: Limits = "1/s".parse().unwrap();
        let take = |run: Run| process.decide(b"k", &limits, &run, Reason::Timeout);
        assert!(take(Run::take(1, 0)).allowed);
        assert_eq!(take(Run::take(1, 0)).retry_after, Some(Duration::from_secs(100)));
        clock.advance(Duration::from_secs(100));
        assert!(take(Run::take(1, 0)).allowed);
        let limits: Limits = "10/s".parse().unwrap();
        let dear = process.decide(b"dear", &limits, &Run::take(5, 0), Reason::Timeout);
        assert_eq!((dear.allowed, dear.retry_after), (false, Some(COME_AGAIN)), "dear for a share, not for ever");
    }
}
