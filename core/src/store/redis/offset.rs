//! What is known of a server's clock, so that a take can say after which of the server's times nobody wants it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an observation counts.
const RECENT: Duration = Duration::from_secs(10);

/// How far a connection's server is ahead of this process's monotonic clock, learnt from answers.
///
/// An answer says the server's time at some moment between sending and receiving. Taking it for the moment of sending
/// is the most lenient reading, and the most lenient of recent ones counts: a take is then skipped too late rather
/// than too early, also when the server's clock is being slewed. One that stepped forward is learnt from the first
/// skip, which returns the server's time.
#[derive(Debug)]
pub(super) struct Offset {
    start: Instant,
    /// The largest offsets in microseconds of the span under way and of the one before, and when the former began.
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    began: Duration,
    now: Option<i64>,
    before: Option<i64>,
}

impl Offset {
    pub(super) fn new() -> Self {
        Offset { start: Instant::now(), seen: Mutex::default() }
    }

    /// This process's time, on the clock that the offset is against.
    pub(super) fn here(&self) -> Duration {
        self.start.elapsed()
    }

    /// Learns that the server's clock showed `server` microseconds at or after the time `sent` here.
    pub(super) fn learn(&self, server: i64, sent: Duration) {
        let offset = server - micros(sent);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.saturating_sub(seen.began) > RECENT {
            *seen = Seen { began: sent, now: None, before: seen.now };
        }
        seen.now = seen.now.max(Some(offset));
    }

    /// The server's time at `here`, if anything is known: never earlier than it truly is, unless it stepped forward.
    pub(super) fn there(&self, here: Duration) -> Option<i64> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.now.max(seen.before).map(|offset| offset + micros(here))
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_most_lenient_recent_reading_counts() {
        let offset = Offset::new();
        assert_eq!(offset.there(SECOND), None);
        offset.learn(1_000_100, SECOND);
        offset.learn(2_000_900, 2 * SECOND);
        offset.learn(3_000_050, 3 * SECOND);
        assert_eq!(offset.there(4 * SECOND), Some(4_000_900));
    }

    #[test]
    fn a_clock_that_was_set_back_is_believed_again_after_a_while() {
        let offset = Offset::new();
        offset.learn(50_000_000, SECOND);
        for second in 2..30 {
            offset.learn(i64::from(second) * 1_000_000, second * SECOND);
        }
        assert_eq!(offset.there(30 * SECOND), Some(30_000_000));
    }

    #[test]
    fn a_clock_that_was_set_forward_is_believed_at_once() {
        let offset = Offset::new();
        offset.learn(1_000_000, SECOND);
        offset.learn(3_602_000_000, 2 * SECOND);
        assert_eq!(offset.there(3 * SECOND), Some(3_603_000_000));
    }
}
