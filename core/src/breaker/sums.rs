//! What a window adds up to, and whether that is too much.

/// How a call counts: it failed, it was slow, both or neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) failed: bool,
    pub(super) slow: bool,
}

/// The calls of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sums {
    pub(super) calls: u64,
    pub(super) failed: u64,
    pub(super) slow: u64,
}

impl Sums {
    pub(super) fn add(&mut self, mark: Mark) {
        self.calls += 1;
        self.failed += u64::from(mark.failed);
        self.slow += u64::from(mark.slow);
    }
}

/// Percentages of failed and of slow calls, each of which is too much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thresholds {
    pub(super) failed: u64,
    pub(super) slow: u64,
}

impl Thresholds {
    /// Whether so many bad ones out of `calls` reach a threshold. In whole numbers: 1 of 3 is not 33 %, but above it.
    pub(super) fn reached(self, sums: Sums, calls: u64) -> bool {
        calls > 0 && (sums.failed * 100 >= self.failed * calls || sums.slow * 100 >= self.slow * calls)
    }
}
