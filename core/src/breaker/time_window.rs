//! The calls of the last so long, counted without a lock.
//!
//! Time is cut into spans of a tenth of the window; the window is the span of now and the nine before it. Each
//! span has a bucket, and each bucket three counters that carry the generation and the span that they belong to, so nobody
//! has to empty them: a counter with another stamp holds nothing.
//!
//! A clock that steps back goes through the same spans again, and finds what they held, as far as it is still there.

use std::sync::atomic::{AtomicU64, Ordering};

use super::sums::{Mark, Sums};

const BUCKETS: u64 = 10;

// A counter is one word: 28 bits of the span, 8 of the generation, 28 of a count. With ten buckets it takes a silence
// of 2^28 * 5 spans, to the span, until a stamp comes round again; a count stands still at 268 million.
const BITS: u32 = 28;
const COUNT: u64 = (1 << BITS) - 1;
const SPANS: u64 = 1 << BITS;

#[derive(Debug)]
pub(super) struct TimeWindow {
    /// Microseconds in a span.
    width: u64,
    buckets: [Bucket; BUCKETS as usize],
}

// Everything here is sequentially consistent. Two calls that end together each write one counter and then read the
// other's; with less, both could miss the other, and the call that completes what opens the breaker would be nobody's.
#[derive(Debug, Default)]
struct Bucket {
    calls: AtomicU64,
    failed: AtomicU64,
    slow: AtomicU64,
}

/// What a call brings to the window.
pub(super) struct Ended<'a> {
    pub(super) generation: u64,
    pub(super) now: u64,
    pub(super) mark: Mark,
    /// Whether the generation is still in force, asked anew.
    pub(super) in_force: &'a dyn Fn() -> bool,
    /// The clock, read anew.
    pub(super) clock: &'a dyn Fn() -> u64,
}

impl TimeWindow {
    /// A window of `duration` microseconds, rounded up to a multiple of ten.
    pub(super) fn new(duration: u64) -> Self {
        TimeWindow { width: duration.div_ceil(BUCKETS), buckets: Default::default() }
    }

    /// Counts a call. None when nothing in the window can open the breaker, or the generation is over.
    pub(super) fn record(&self, call: &Ended<'_>) -> Option<Sums> {
        let mut span = call.now / self.width;
        loop {
            let stamp = stamp(call.generation, span);
            let bucket = &self.buckets[(span % BUCKETS) as usize];
            // The calls before the marks, and read in the other order: nobody sees more marks than calls.
            match self.count(&bucket.calls, stamp, call) {
                Counted::Here { first } => {
                    if first {
                        bucket.forget_other_marks(stamp);
                    }
                    let marks = [(call.mark.failed, &bucket.failed), (call.mark.slow, &bucket.slow)];
                    for (_, counter) in marks.into_iter().filter(|(marked, _)| *marked) {
                        self.count(counter, stamp, call);
                    }
                    return self.any_marks(stamp).then(|| self.seen_from(stamp));
                }
                Counted::Late => return None,
                Counted::Moved(now) => span = now,
            }
        }
    }

    fn count(&self, counter: &AtomicU64, stamp: u64, call: &Ended<'_>) -> Counted {
        let mut old = counter.load(Ordering::SeqCst);
        loop {
            let held = old & !COUNT == stamp;
            if !held && old != 0 {
                // Not ours: mostly left by a span that is over. But this thread may have been asleep for a whole window,
                // and so may its generation, or the clock has stepped back. Only asking again can tell.
                if !(call.in_force)() {
                    return Counted::Late;
                }
                let now = (call.clock)() / self.width;
                if is_ahead(old, stamp) && now % SPANS != stamp >> (64 - BITS) {
                    return Counted::Moved(now);
                }
            }
            let count = if held { (old & COUNT).saturating_add(1).min(COUNT) } else { 1 };
            match counter.compare_exchange_weak(old, stamp | count, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Counted::Here { first: !held },
                Err(now) => old = now,
            }
        }
    }

    /// What the window holds of `generation`, seen from `now`.
    pub(super) fn sums(&self, generation: u64, now: u64) -> Sums {
        self.seen_from(stamp(generation, now / self.width))
    }

    /// Whether any call of the window failed or was slow: mostly none did, and that is quickly seen.
    fn any_marks(&self, newest: u64) -> bool {
        let marked = |counter: &AtomicU64| age(counter.load(Ordering::SeqCst), newest) < BUCKETS;
        self.buckets.iter().any(|bucket| marked(&bucket.failed) || marked(&bucket.slow))
    }

    fn seen_from(&self, newest: u64) -> Sums {
        let mut sums = Sums::default();
        for bucket in &self.buckets {
            // The marks first: what is marked before the calls are read has been counted among them.
            let marks = [&bucket.failed, &bucket.slow].map(|counter| counter.load(Ordering::SeqCst));
            let calls = bucket.calls.load(Ordering::SeqCst);
            if age(calls, newest) < BUCKETS {
                // Marks of another stamp are of calls that are no longer, or not yet, here.
                let [failed, slow] = marks.map(|marks| if (marks ^ calls) & !COUNT == 0 { marks & COUNT } else { 0 });
                sums.calls += calls & COUNT;
                sums.failed += failed;
                sums.slow += slow;
            }
        }
        sums
    }
}

impl Bucket {
    /// Empties the marks of another span than `stamp`. The calls that they belong to were forgotten just now, and if a
    /// clock that stepped back comes to that span again, it must not find the marks alone.
    fn forget_other_marks(&self, stamp: u64) {
        for counter in [&self.failed, &self.slow] {
            let old = counter.load(Ordering::SeqCst);
            if old & !COUNT != stamp {
                // Should it fail, a call of this span was faster, and has put its own there.
                let _ = counter.compare_exchange(old, 0, Ordering::SeqCst, Ordering::SeqCst);
            }
        }
    }
}

enum Counted {
    Here {
        /// Whether it is the first call of its span.
        first: bool,
    },
    /// The generation is over.
    Late,
    /// It is another span by now.
    Moved(u64),
}

/// A counter's word without its count.
fn stamp(generation: u64, span: u64) -> u64 {
    span << (64 - BITS) | (generation & 0xFF) << BITS
}

/// How many spans a counter is older than `newest`, going round; of another generation, more than there are spans.
fn age(counter: u64, newest: u64) -> u64 {
    newest.wrapping_sub(counter & !COUNT).rotate_left(BITS)
}

/// Whether a counter is of a later span than `stamp`, of whatever generation.
fn is_ahead(counter: u64, stamp: u64) -> bool {
    let spans = (counter >> (64 - BITS)).wrapping_sub(stamp >> (64 - BITS)) % SPANS;
    (1..SPANS / 2).contains(&spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As when its thread slept between asking for the state and counting.
    #[test]
    fn a_result_that_is_late_within_the_window_changes_nothing() {
        let window = TimeWindow::new(10_000_000);
        let end = |generation: u64, in_force: bool| {
            let mark = Mark { failed: true, slow: true };
            window.record(&Ended { generation, now: 5, mark, in_force: &|| in_force, clock: &|| 5 })
        };
        let one = Sums { calls: 1, failed: 1, slow: 1 };
        assert_eq!(end(1, true), Some(one));
        assert_eq!(end(2, true), Some(one));
        assert_eq!(end(1, false), None);
        assert_eq!((window.sums(2, 5), window.sums(1, 5)), (one, Sums::default()));
    }

    /// As when its thread slept for a whole window, and another has the bucket by now.
    #[test]
    fn a_result_that_slept_counts_where_it_woke() {
        let window = TimeWindow::new(10);
        let end = |now: u64, clock: u64| {
            let mark = Mark { failed: true, slow: false };
            window.record(&Ended { generation: 1, now, mark, in_force: &|| true, clock: &|| clock })
        };
        end(15, 15);
        assert_eq!(end(5, 16), Some(Sums { calls: 2, failed: 2, slow: 0 }));
        assert_eq!(window.sums(1, 16), Sums { calls: 2, failed: 2, slow: 0 });
    }

    #[test]
    fn ages_go_round_with_the_spans_and_tell_generations_apart() {
        for span in [0, 5, 12_345, SPANS - 1] {
            let newest = stamp(300, span + 9);
            assert_eq!(age(stamp(300, span) | COUNT, newest), 9, "from span {span}");
            assert!(is_ahead(newest, stamp(7, span)) && !is_ahead(stamp(7, span), newest));
            for other in [0, 299, 301] {
                assert!(age(stamp(other, span) | 1, newest) > SPANS, "generation {other} from span {span}");
            }
        }
        assert!(age(stamp(1, 6), stamp(1, 5)) >= BUCKETS, "the future is not in the window");
    }
}
