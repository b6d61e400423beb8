//! What was admitted and denied over time, in a bounded number of steps that grow as the log does.

/// The most steps that are kept.
const MOST: u64 = 240;

const SECOND: u64 = 1_000_000;

/// Spans that people know, in seconds. Each is a multiple of the one before, so that steps can be joined.
const SPANS: [u64; 13] = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400];

/// Admitted and denied requests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, allowed: bool) {
        match allowed {
            true => self.admitted += 1,
            false => self.denied += 1,
        }
    }

    fn join(&mut self, other: Counts) {
        self.admitted += other.admitted;
        self.denied += other.denied;
    }

    pub(crate) fn total(self) -> u64 {
        self.admitted + self.denied
    }
}

/// Counts over time. Steps begin at multiples of their length, so they begin on the full minute, hour or day.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    /// The length of a step in seconds.
    step: u64,
    /// The number of the first step, counted from 1970.
    first: u64,
    counts: Vec<Counts>,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Timeline { step: SPANS[0], first: 0, counts: Vec::new() }
    }

    /// Counts a request at a time that is not before the first one's.
    pub(crate) fn add(&mut self, at: u64, allowed: bool) {
        if self.counts.is_empty() {
            self.first = at / (self.step * SECOND);
        }
        while at / (self.step * SECOND) - self.first >= MOST {
            self.widen();
        }
        let index = (at / (self.step * SECOND) - self.first) as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, Counts::default());
        }
        self.counts[index].add(allowed);
    }

    /// The same in at most so many steps, of which 10 or more can always be had.
    pub(crate) fn at_most(&self, steps: usize) -> Self {
        let mut timeline = self.clone();
        while timeline.counts.len() > steps.max(10) {
            timeline.widen();
        }
        timeline
    }

    /// The length of a step in seconds.
    pub(crate) fn step(&self) -> u64 {
        self.step
    }

    /// When each step begins, in microseconds, and what it counted; without gaps.
    pub(crate) fn steps(&self) -> impl ExactSizeIterator<Item = (u64, Counts)> {
        let begin = |index| (self.first + index as u64) * self.step * SECOND;
        self.counts.iter().enumerate().map(move |(index, counts)| (begin(index), *counts))
    }

    /// Joins neighbours into the next longer step.
    fn widen(&mut self) {
        let longer = SPANS.iter().copied().find(|span| *span > self.step).unwrap_or(self.step * 2);
        let (ratio, first) = (longer / self.step, self.first);
        let mut joined: Vec<Counts> = Vec::new();
        for (index, counts) in self.counts.iter().enumerate() {
            let to = ((first + index as u64) / ratio - first / ratio) as usize;
            joined.resize(joined.len().max(to + 1), Counts::default());
            joined[to].join(*counts);
        }
        *self = Timeline { step: longer, first: first / ratio, counts: joined };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_and_lose_nobody() {
        let mut timeline = Timeline::new();
        for at in 0..2000 {
            timeline.add((1_431_857_103 + at * 7) * SECOND, at % 3 > 0);
        }
        // 14,000 s: 234 minutes.
        assert_eq!((timeline.step(), timeline.steps().len()), (60, 234));
        let all = timeline.steps().fold(Counts::default(), |mut sum, (_, counts)| {
            sum.join(counts);
            sum
        });
        assert_eq!(all, Counts { admitted: 1333, denied: 667 });
        let coarse = timeline.at_most(24);
        assert_eq!((coarse.step(), coarse.steps().len()), (600, 24));
        assert!(coarse.steps().all(|(at, _)| at % (600 * SECOND) == 0));
        assert_eq!(coarse.steps().map(|(_, counts)| counts.total()).sum::<u64>(), 2000);
    }

    #[test]
    fn one_time_far_away_takes_no_more_room() {
        let mut timeline = Timeline::new();
        timeline.add(0, true);
        timeline.add((1 << 53) - 1, false);
        assert!(timeline.steps().len() <= MOST as usize);
        assert_eq!(timeline.steps().map(|(_, counts)| counts.total()).sum::<u64>(), 2);
    }

    #[test]
    fn each_span_is_a_multiple_of_the_one_before() {
        assert!(SPANS.windows(2).all(|pair| pair[1] % pair[0] == 0));
    }
}
