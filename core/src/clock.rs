//! Time, as the memory store sees it. A Redis store never asks: its own clock decides.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// A clock in whole microseconds, and the sleep that goes with it.
///
/// The memory store decides by [`now`](Clock::now); a request with `max_wait` waits by [`sleep`](Clock::sleep).
pub trait Clock: Send + Sync + fmt::Debug {
    /// Microseconds since a moment of the clock's own choosing.
    fn now(&self) -> u64;

    /// Completes once `duration` has passed on this clock.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The machine's monotonic clock; it sleeps on the tokio runtime that polls it.
#[derive(Debug)]
pub struct SystemClock {
    clock: quanta::Clock,
    start: u64,
}

impl SystemClock {
    /// A clock that starts at 0 now.
    pub fn new() -> Self {
        let clock = quanta::Clock::new();
        SystemClock { start: clock.raw(), clock }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> u64 {
        self.clock.delta_as_nanos(self.start, self.clock.raw()) / 1000
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A clock that stands still until it is moved, so that limits can be tested without sleeping.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use balde::{Limiter, ManualClock};
///
/// let clock = Arc::new(ManualClock::new());
/// let limiter = Limiter::builder("api").limits("1/s".parse()?).clock(clock.clone()).build()?;
/// assert!(limiter.try_acquire_local("user:42").unwrap().allowed);
/// assert!(!limiter.try_acquire_local("user:42").unwrap().allowed);
/// clock.advance(Duration::from_secs(1));
/// assert!(limiter.try_acquire_local("user:42").unwrap().allowed);
/// # Ok::<(), balde::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ManualClock {
    state: Mutex<ManualState>,
}

#[derive(Debug, Default)]
struct ManualState {
    now: u64,
    sleepers: Vec<Waker>,
}

impl ManualClock {
    /// A clock that stands at 0.
    pub fn new() -> Self {
        ManualClock::default()
    }

    /// Moves the clock forward and wakes who slept until then. Parts of a microsecond are dropped.
    pub fn advance(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.change(|now| now.saturating_add(micros));
    }

    /// Puts the clock at `micros`; it may step back, as real clocks do.
    pub fn set(&self, micros: u64) {
        self.change(|_| micros);
    }

    /// Every sleeper is woken and looks for itself: a test has few of them, and a missed one would hang.
    fn change(&self, moved: impl FnOnce(u64) -> u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.now = moved(state.now);
        let sleepers = std::mem::take(&mut state.sleepers);
        drop(state);
        sleepers.into_iter().for_each(Waker::wake);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).now
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let end = self.now().saturating_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
        Box::pin(poll_fn(move |context| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.now >= end {
                return Poll::Ready(());
            }
            if !state.sleepers.iter().any(|waker| waker.will_wake(context.waker())) {
                state.sleepers.push(context.waker().clone());
            }
            Poll::Pending
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_the_clock_has_moved_far_enough() {
        let clock = std::sync::Arc::new(ManualClock::new());
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_micros(10)).await }
        });
        tokio::task::yield_now().await;
        clock.advance(Duration::from_micros(9));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_micros(1));
        sleeper.await.unwrap();
    }

    #[test]
    fn the_manual_clock_may_step_back() {
        let clock = ManualClock::new();
        clock.set(5);
        clock.set(3);
        assert_eq!(clock.now(), 3);
    }
}
