//! Puts requests into the order of their times, as far as a stated window allows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A request that waits for its turn. Of one moment, the earlier line comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    /// When it was, in microseconds since 1970.
    pub(crate) at: u64,
    /// Its place among the lines of all logs, from 0.
    pub(crate) place: u64,
    /// The index of its key.
    pub(crate) key: usize,
    pub(crate) cost: u64,
}

/// Holds requests back until none within the window can come before them. Memory grows with the window only.
#[derive(Debug)]
pub(crate) struct Order {
    window: u64,
    held: BinaryHeap<Reverse<Event>>,
    /// The newest time seen, and that of the last event let go.
    newest: u64,
    reached: u64,
    late: u64,
}

impl Order {
    /// `window` is in microseconds.
    pub(crate) fn new(window: u64) -> Self {
        Order { window, held: BinaryHeap::new(), newest: 0, reached: 0, late: 0 }
    }

    pub(crate) fn put(&mut self, event: Event) {
        self.newest = self.newest.max(event.at);
        self.held.push(Reverse(event));
    }

    /// The next event that is due. One that comes after its time was passed is let go at the time reached by then:
    /// a clock that went back would take that much refill from everybody.
    pub(crate) fn due(&mut self) -> Option<Event> {
        self.next_until(self.newest.saturating_sub(self.window))
    }

    /// The next event, when no more are to come.
    pub(crate) fn rest(&mut self) -> Option<Event> {
        self.next_until(self.newest)
    }

    /// How many events came after their time was passed.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    fn next_until(&mut self, until: u64) -> Option<Event> {
        let Reverse(event) = *self.held.peek().filter(|Reverse(event)| event.at <= until)?;
        self.held.pop();
        self.late += u64::from(event.at < self.reached);
        self.reached = self.reached.max(event.at);
        Some(Event { at: self.reached, ..event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places and times at which events of these times are let go with a window of 10, and how many are late.
    fn played(times: &[u64]) -> (Vec<(u64, u64)>, u64) {
        let (mut order, mut played) = (Order::new(10), Vec::new());
        for (place, at) in times.iter().enumerate() {
            order.put(Event { at: *at, place: place as u64, key: 0, cost: 1 });
            played.extend(std::iter::from_fn(|| order.due()));
        }
        played.extend(std::iter::from_fn(|| order.rest()));
        (played.iter().map(|event| (event.place, event.at)).collect(), order.late())
    }

    #[test]
    fn within_the_window_times_rule_and_lines_break_ties() {
        assert_eq!(played(&[105, 100, 100, 110]), (vec![(1, 100), (2, 100), (0, 105), (3, 110)], 0));
    }

    #[test]
    fn a_line_beyond_the_window_is_played_late_and_never_back_in_time() {
        assert_eq!(played(&[100, 115, 90, 116]), (vec![(0, 100), (2, 100), (1, 115), (3, 116)], 1));
    }

    #[test]
    fn one_time_far_ahead_spoils_nothing_but_the_sorting() {
        assert_eq!(played(&[9000, 100, 101, 102]), (vec![(1, 100), (2, 101), (3, 102), (0, 9000)], 0));
    }
}
