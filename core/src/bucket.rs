//! The decision: a pure function of a bucket, its limits, the time and what is asked.
//!
//! It exists exactly twice, here and in `lua/take.lua`, line by line the same arithmetic on whole numbers;
//! the shared vectors and random traces hold the two together. No clock, no store, no network.
//!
//! Tokens are counted in units (`scale` units a token), so that a refill of `refill` units a microsecond is
//! whole. Every quantity stays within 2^53, where Lua's numbers are still exact. Rounding takes, never gives.

use smallvec::{SmallVec, smallvec};

use crate::limit::{Limit, MOST_UNITS};
use crate::limits::Limits;

/// The deepest debt of promised tokens, in units: together with a full bucket it stays below 2^53.
const FLOOR: i64 = MOST_UNITS - 1;

/// A stored time further ahead of now than this, in microseconds, is a clock that was set back.
const STEP: i64 = 10_000_000;

/// One number for each limit; two fit without an allocation.
pub(crate) type Units = SmallVec<[i64; 2]>;

/// What is stored for a key: for each limit the units left (below zero when waiters were promised some),
/// and the one time when that was so. Full is the same as no bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bucket {
    at: i64,
    limits: Limits,
    units: Units,
}

/// Requests of one kind, decided one after another: `count` times `cost` tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) cost: i64,
    /// How many requests; below zero gives tokens back.
    pub(crate) count: i64,
    /// How long each may wait, in microseconds. `-1 - d` forces the debit: it takes what is there and
    /// goes into debt by what `d` microseconds refill, limit by limit, but no further.
    pub(crate) wait: i64,
    /// The time after which nobody wants it any more, in the store's microseconds; 0 for no such time.
    pub(crate) until: i64,
}

impl Run {
    pub(crate) fn take(cost: i64, wait: i64) -> Self {
        Run { cost, count: 1, wait, until: 0 }
    }

    /// Whether it asks for one token at once, as nearly all do.
    #[inline]
    pub(crate) fn is_one(&self) -> bool {
        *self == Run { cost: 1, count: 1, wait: 0, until: 0 }
    }

    /// Whether it may debit the bucket.
    pub(crate) fn takes(&self) -> bool {
        self.cost > 0 && self.count > 0
    }

    pub(crate) fn look() -> Self {
        Run::take(0, 0)
    }

    pub(crate) fn refund(tokens: i64) -> Self {
        Run { cost: 1, count: -tokens, wait: 0, until: 0 }
    }
}

/// The answer to a call: what was admitted, and the bucket after it as the caller's limits see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The store's time of the decision.
    pub(crate) now: i64,
    /// How far the bucket's time is ahead of now: nothing refills until then.
    pub(crate) ahead: i64,
    /// For each run how many were admitted; -1 for one that was skipped because its time was over.
    pub(crate) admitted: SmallVec<[i64; 1]>,
    /// For each of the caller's limits the units left.
    pub(crate) units: Units,
}

/// The answer to a request for one token under one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct One {
    pub(crate) taken: bool,
    /// The units left.
    pub(crate) units: i64,
}

/// What a call did to the stored bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    Stored,
    /// It is full again: there is no bucket any more.
    Gone,
}

impl Bucket {
    /// The bucket of a key that has none: full.
    pub(crate) fn full(limits: &Limits, now: i64) -> Self {
        Bucket { at: now, limits: limits.clone(), units: limits.iter().map(Limit::capacity).collect() }
    }

    /// The time at which all limits are full again under the limits they were written with.
    pub(crate) fn full_at(&self) -> i64 {
        self.at + longest_fill(&self.limits, &self.units)
    }

    /// The tokens missing from a full bucket at `now`, rounded up, of the limit that lacks most of them.
    pub(crate) fn missing(&self, now: i64) -> u64 {
        let gone = (now - self.at).max(0);
        let lacks = |(limit, units): (&Limit, &i64)| {
            (limit.capacity() - grown(limit, *units, gone)).unsigned_abs().div_ceil(limit.scale.unsigned_abs())
        };
        self.limits.iter().zip(&self.units).map(lacks).max().unwrap_or(0)
    }

    /// Takes one token under the bucket's own single limit, which is nearly every call: the arithmetic of
    /// [`apply`](Self::apply) without lists. `None` where that must decide: for several limits, for others, or at a time
    /// before the bucket's.
    #[inline]
    pub(crate) fn take_one(&mut self, limits: &Limits, now: i64) -> Option<One> {
        let one = self.look_one(limits, now)?;
        if one.taken {
            (self.at, self.units[0]) = (now, one.units);
        }
        Some(one)
    }

    /// What [`take_one`](Self::take_one) would find, keeping nothing.
    #[inline]
    pub(crate) fn look_one(&self, limits: &Limits, now: i64) -> Option<One> {
        let [limit] = &**limits else { return None };
        let gone = now - self.at;
        if gone < 0 || !self.limits.same(limits) {
            return None;
        }
        let units = grown(limit, self.units[0], gone);
        let taken = units >= limit.scale;
        Some(One { taken, units: if taken { units - limit.scale } else { units } })
    }

    /// Decides `runs` in order at `now` and keeps what they changed.
    pub(crate) fn apply(&mut self, limits: &Limits, now: i64, runs: &[Run]) -> (Outcome, Change) {
        let stepped = self.at - now > STEP;
        let gone = (now - self.at).max(0);
        let Seen { mut units, others, expired } = self.seen_by(limits, gone);
        let idle = others.iter().all(|(limit, units)| *units >= limit.capacity());
        let rest = |units: &Units| idle && limits.iter().zip(units).all(|(limit, units)| *units == limit.capacity());
        let mut ahead = if stepped || rest(&units) { 0 } else { (self.at - now).max(0) };

        // `none`: there is no bucket (yet, or any more), so that there is nothing to give back to.
        let (mut written, mut met, mut none) = (false, false, expired);
        let mut admitted = SmallVec::new();
        for run in runs {
            let skipped = run.until > 0 && now > run.until;
            admitted.push(if skipped {
                -1
            } else if run.cost == 0 || run.count == 0 {
                run.count
            } else if run.count < 0 {
                met = true;
                if !none {
                    written = true;
                    give(limits, &mut units, run.cost.saturating_mul(-run.count));
                    none = rest(&units);
                }
                if none {
                    ahead = 0;
                }
                run.count
            } else if run.wait < 0 {
                (written, met, none) = (true, true, false);
                force(limits, &mut units, run);
                run.count
            } else if limits.iter().any(|limit| run.cost as u64 > limit.burst()) {
                0
            } else {
                let taken = take(limits, &mut units, run, (run.wait - ahead).max(0));
                (written, met, none) = (written || taken > 0, true, none && taken == 0);
                taken
            });
        }

        let change = if written {
            if !self.limits.same(limits) && self.limits != *limits {
                let (rules, left): (SmallVec<[Limit; 2]>, Units) = others.into_iter().unzip();
                self.limits = limits.followed_by(&rules);
                self.units = units.iter().copied().chain(left).collect();
            } else {
                self.units.copy_from_slice(&units);
            }
            self.at = now + ahead;
            if longest_fill(&self.limits, &self.units) == 0 { Change::Gone } else { Change::Stored }
        } else if stepped && met {
            self.at = now;
            Change::Stored
        } else {
            Change::Nothing
        };
        (Outcome { now, ahead, admitted, units }, change)
    }

    /// The bucket as a caller with `limits` sees it `gone` microseconds later.
    fn seen_by(&self, limits: &Limits, gone: i64) -> Seen {
        if self.limits.same(limits) || self.limits == *limits {
            let grown = |(limit, units): (&Limit, &i64)| grown(limit, *units, gone);
            let units: Units = self.limits.iter().zip(&self.units).map(grown).collect();
            let expired = limits.iter().zip(&units).all(|(limit, units)| *units == limit.capacity());
            return Seen { units, others: smallvec![], expired };
        }
        if gone >= longest_fill(&self.limits, &self.units) {
            let units = limits.iter().map(Limit::capacity).collect();
            return Seen { units, others: smallvec![], expired: true };
        }
        let held = || self.limits.iter().copied().zip(self.units.iter().copied());
        let seen = |limit: &Limit| match held().find(|(old, _)| old.period() == limit.period()) {
            Some((old, units)) => grown(limit, rescaled(units, old.scale, limit.scale), gone),
            None => limit.capacity(),
        };
        let unknown = |(old, _): &(Limit, i64)| limits.iter().all(|limit| limit.period() != old.period());
        Seen { units: limits.iter().map(seen).collect(), others: held().filter(unknown).collect(), expired: false }
    }
}

/// A stored bucket in the eyes of a caller.
struct Seen {
    /// For each of the caller's limits the units there are now.
    units: Units,
    /// The limits that the caller does not know, with their units, untouched.
    others: SmallVec<[(Limit, i64); 2]>,
    /// It is full under the limits that it was written with: there is no bucket any more.
    expired: bool,
}

/// What `units` have become `gone` microseconds later.
#[inline]
fn grown(limit: &Limit, units: i64, gone: i64) -> i64 {
    let missing = limit.capacity() - units;
    let refill = limit.refill.saturating_mul(gone);
    if refill < missing { units + refill } else { limit.capacity() }
}

/// Units of one scale in units of another, rounded down.
fn rescaled(units: i64, from: i64, to: i64) -> i64 {
    let exact = (i128::from(units) * i128::from(to)).div_euclid(i128::from(from));
    exact.clamp(i128::from(-FLOOR), i128::from(MOST_UNITS)) as i64
}

/// How many requests of the run a limit with `units` has room for, each within `room` microseconds of refill.
fn fit(limit: &Limit, units: i64, run: &Run, room: i64) -> i64 {
    let (price, within) = (run.cost * limit.scale, limit.refill.saturating_mul(room).min(FLOOR));
    if run.count == 1 { i64::from(units + within >= price) } else { (units + within).div_euclid(price) }
}

/// Admits as many requests of the run as fit; debits every limit.
fn take(limits: &Limits, units: &mut Units, run: &Run, room: i64) -> i64 {
    let fits = limits.iter().zip(units.iter()).map(|(limit, units)| fit(limit, *units, run, room));
    let taken = fits.min().unwrap_or(0).clamp(0, run.count);
    if taken > 0 {
        for (limit, units) in limits.iter().zip(units) {
            *units -= taken * run.cost * limit.scale;
        }
    }
    taken
}

/// Debits every limit by itself, down to what the run's debt allows or to where it already was.
fn force(limits: &Limits, units: &mut Units, run: &Run) {
    for (limit, units) in limits.iter().zip(units) {
        let lowest = -limit.refill.saturating_mul(-1 - run.wait).min(FLOOR);
        let debit = run.count.saturating_mul(run.cost).saturating_mul(limit.scale);
        *units = units.saturating_sub(debit).max(lowest.min(*units));
    }
}

/// Gives `tokens` back to every limit, up to full.
fn give(limits: &Limits, units: &mut Units, tokens: i64) {
    for (limit, units) in limits.iter().zip(units) {
        *units = units.saturating_add(tokens.saturating_mul(limit.scale)).min(limit.capacity());
    }
}

/// Microseconds until a limit with `units` is full, rounded up.
#[inline]
pub(crate) fn fill(limit: &Limit, units: i64) -> i64 {
    until(limit, limit.capacity() - units)
}

/// Microseconds until `missing` units have come back, rounded up.
#[inline]
pub(crate) fn until(limit: &Limit, missing: i64) -> i64 {
    let missing = missing.max(0) as u64;
    // Dividing is dear, and one unit a microsecond is what most limits come to.
    if limit.refill == 1 { missing as i64 } else { missing.div_ceil(limit.refill as u64) as i64 }
}

fn longest_fill(limits: &[Limit], units: &[i64]) -> i64 {
    limits.iter().zip(units).map(|(limit, units)| fill(limit, *units)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn limits(text: &str) -> Limits {
        text.parse().unwrap()
    }

    fn admitted(bucket: &mut Bucket, limits: &Limits, now: i64, run: Run) -> i64 {
        bucket.apply(limits, now, &[run]).0.admitted[0]
    }

    #[test]
    fn many_at_once_are_many_in_a_row() {
        let limits = limits("3/s burst 10; 7/m");
        let (mut one, mut many) = (Bucket::full(&limits, 0), Bucket::full(&limits, 0));
        for now in [0, SECOND, 5 * SECOND, 30 * SECOND] {
            let run = Run { cost: 2, count: 4, wait: 900_000, until: 0 };
            let got = admitted(&mut many, &limits, now, run);
            let each: i64 = (0..4).map(|_| admitted(&mut one, &limits, now, Run { count: 1, ..run })).sum();
            assert_eq!((got, &many), (each, &one), "at {now}");
        }
    }

    #[test]
    fn several_runs_in_one_call_are_several_calls() {
        let limits = limits("10/s; 30/m");
        let runs =
            [Run::take(4, 0), Run::take(9, 0), Run::refund(2), Run::take(8, 0), Run::look(), Run::take(1, SECOND)];
        let (mut one, mut many) = (Bucket::full(&limits, 0), Bucket::full(&limits, 0));
        let (outcome, _) = many.apply(&limits, SECOND, &runs);
        let each: Vec<i64> = runs.iter().map(|run| admitted(&mut one, &limits, SECOND, *run)).collect();
        assert_eq!(outcome.admitted.as_slice(), each);
        assert_eq!(each, [1, 0, -2, 1, 1, 1]);
        assert_eq!(many, one);
    }

    #[test]
    fn the_short_way_decides_as_the_long_one() {
        for text in ["10/s burst 20", "3/7us burst 5", "1/d"] {
            let limits = limits(text);
            let (mut short, mut long) = (Bucket::full(&limits, 0), Bucket::full(&limits, 0));
            for step in 0..200_i64 {
                let now = step * step * 1_237;
                let (outcome, _) = long.apply(&limits, now, &[Run::take(1, 0)]);
                let one = short.take_one(&limits, now).unwrap();
                assert_eq!((i64::from(one.taken), one.units), (outcome.admitted[0], outcome.units[0]));
                assert_eq!(short, long, "{text} at {now}");
            }
            assert_eq!(short.take_one(&limits, -1), None, "the bucket's time is ahead");
            assert_eq!(short.take_one(&"1/s; 1/m".parse().unwrap(), i64::MAX / 2), None);
        }
    }

    #[test]
    fn nobody_wants_it_any_more() {
        let limits = limits("1/s");
        let mut bucket = Bucket::full(&limits, 0);
        let late = Run { until: 5, ..Run::take(1, 0) };
        assert_eq!(bucket.apply(&limits, 6, &[late]).1, Change::Nothing);
        assert_eq!(admitted(&mut bucket, &limits, 6, late), -1);
        assert_eq!(admitted(&mut bucket, &limits, 5, late), 1);
    }

    #[test]
    fn a_forced_debit_stops_at_its_debt_and_takes_each_limit_by_itself() {
        let limits = limits("10/s; 100/h");
        let mut bucket = Bucket::full(&limits, 0);
        let forced = Run { cost: 1, count: 40, wait: -1, until: 0 };
        let (outcome, change) = bucket.apply(&limits, 0, &[forced]);
        assert_eq!((outcome.admitted[0], change), (40, Change::Stored));
        assert_eq!(outcome.units.as_slice(), [0, 60 * limits[1].scale]);
        let in_debt = Run { wait: -1 - 500_000, ..forced };
        let (outcome, _) = bucket.apply(&limits, 0, &[in_debt]);
        assert_eq!(outcome.units.as_slice(), [-5 * limits[0].scale, 20 * limits[1].scale]);
        let (outcome, _) = bucket.apply(&limits, 0, &[forced]);
        assert_eq!(outcome.units[0], -5 * limits[0].scale, "a debit never gives");
    }

    #[test]
    fn promises_saturate_and_what_is_beyond_is_denied() {
        let limits = limits("1/us burst 4503599627370496");
        let mut bucket = Bucket::full(&limits, 0);
        let run = Run { cost: 1, count: i64::MAX / 4, wait: i64::MAX / 4, until: 0 };
        let (outcome, _) = bucket.apply(&limits, 0, &[run]);
        assert_eq!(outcome.units[0], -FLOOR);
        assert_eq!(admitted(&mut bucket, &limits, 0, Run::take(1, i64::MAX / 4)), 0);
    }

    #[test]
    fn full_is_no_bucket() {
        let limits = limits("1/s burst 5");
        let mut bucket = Bucket::full(&limits, 0);
        assert_eq!(bucket.apply(&limits, 0, &[Run::refund(1)]).1, Change::Nothing);
        assert_eq!(bucket.apply(&limits, 0, &[Run::take(2, 0)]).1, Change::Stored);
        assert_eq!((bucket.full_at(), bucket.missing(0), bucket.missing(SECOND)), (2 * SECOND, 2, 1));
        assert_eq!((bucket.missing(1), bucket.missing(2 * SECOND)), (2, 0));
        assert_eq!(bucket.apply(&limits, 0, &[Run::look()]).1, Change::Nothing);
        assert_eq!(bucket.apply(&limits, 0, &[Run::refund(2)]).1, Change::Gone);
    }

    #[test]
    fn units_of_another_scale_round_down_also_below_zero() {
        assert_eq!(rescaled(7, 3, 2), 4);
        assert_eq!(rescaled(-7, 3, 2), -5);
        assert_eq!(rescaled(MOST_UNITS, 1, MOST_UNITS), MOST_UNITS);
        assert_eq!(rescaled(-FLOOR, 1, 1000), -FLOOR);
    }
}
