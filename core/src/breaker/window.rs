//! The window of a closed breaker: by count or by time.

use super::config::{SlidingWindow, micros};
use super::count_window::CountWindow;
use super::sums::Sums;
use super::time_window::{Ended, TimeWindow};

/// In a place of its own: every result writes to it, and what the breaker only reads should stay in every core's cache.
#[derive(Debug)]
pub(super) enum Window {
    Count(Box<CountWindow>),
    Time(Box<TimeWindow>),
}

impl Window {
    pub(super) fn new(window: SlidingWindow, generation: u64) -> Self {
        match window {
            SlidingWindow::Count(calls) => Window::Count(Box::new(CountWindow::new(calls, generation))),
            SlidingWindow::Time(duration) => Window::Time(Box::new(TimeWindow::new(micros(duration)))),
        }
    }

    /// Empties the window for `generation`, before anybody hears of that.
    pub(super) fn clear(&self, generation: u64) {
        match self {
            Window::Count(window) => window.clear(generation),
            Window::Time(_) => {} // its counters know whose they are
        }
    }

    /// Counts a call. None when it changed nothing, or came too late for its generation.
    pub(super) fn record(&self, call: &Ended<'_>) -> Option<Sums> {
        match self {
            Window::Count(window) => window.record(call.generation, call.mark),
            Window::Time(window) => window.record(call),
        }
    }

    pub(super) fn sums(&self, generation: u64, now: u64) -> Sums {
        match self {
            Window::Count(window) => window.sums(generation),
            Window::Time(window) => window.sums(generation, now),
        }
    }
}
