//! Every option of a circuit breaker, with its default and its bounds, in this one place.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::sums::Thresholds;
use crate::error::{Error, Result};

const DEFAULT_WINDOW: SlidingWindow = SlidingWindow::Count(100);
const DEFAULT_MINIMUM_CALLS: u32 = 20;
const DEFAULT_FAILURE_RATE: u32 = 50;
const DEFAULT_SLOW_RATE: u32 = 100;
const DEFAULT_SLOW_DURATION: Duration = Duration::from_secs(60);
const DEFAULT_WAIT: Duration = Duration::from_secs(5);
const DEFAULT_MULTIPLIER: u32 = 2;
const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(60);
const DEFAULT_JITTER: u32 = 20;
const DEFAULT_PROBES: u32 = 10;
const DEFAULT_LEASE: Duration = Duration::from_secs(30);

const COUNTS: RangeInclusive<u32> = 1..=10_000;
const TIMES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3600);
const MINIMUM_CALLS: RangeInclusive<u32> = 1..=1_000_000;
const RATES: RangeInclusive<u32> = 1..=100;
const SLOW_DURATIONS: RangeInclusive<Duration> = Duration::from_micros(1)..=LONGEST;
const WAITS: RangeInclusive<Duration> = Duration::from_millis(1)..=LONGEST;
const MULTIPLIERS: RangeInclusive<u32> = 1..=100;
const JITTERS: RangeInclusive<u32> = 0..=100;
const PROBES: RangeInclusive<u32> = 1..=1_000;

/// Beyond a day something else is meant.
pub(super) const LONGEST: Duration = Duration::from_secs(86_400);

/// Which of the calls that ended are looked at while the breaker is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlidingWindow {
    /// The last so many calls: 1 to 10,000.
    Count(u32),
    /// The calls of the last so long: 100 ms to 1 hour. It moves on by a tenth of that at a time.
    Time(Duration),
}

/// The options of a [`CircuitBreaker`](super::CircuitBreaker), under the names that resilience4j gave them.
///
/// | option | default | bounds |
/// |---|---|---|
/// | `sliding_window` | `Count(100)` | `Count` 1 to 10,000, `Time` 100 ms to 1 hour |
/// | `minimum_number_of_calls` | 20, or what a smaller `Count` holds | 1 to 1,000,000, and not above `Count` |
/// | `failure_rate_threshold` | 50 % | 1 to 100 |
/// | `slow_call_rate_threshold` | 100 % | 1 to 100 |
/// | `slow_call_duration_threshold` | 60 s | 1 us to 1 day |
/// | `wait_duration_in_open_state` | 5 s | 1 ms to 1 day |
/// | `backoff_multiplier` | 2 | 1 to 100 |
/// | `max_wait_duration_in_open_state` | 60 s, or a longer first wait | the first wait to 1 day |
/// | `jitter` | 20 % | 0 to 100 |
/// | `jitter_seed` | another one for each breaker | |
/// | `permitted_number_of_calls_in_half_open_state` | 10 | 1 to 1,000 |
/// | `half_open_probe_lease` | 30 s | 1 ms to 1 day |
/// | `max_wait_duration_in_half_open_state` | none | 1 ms to 1 day |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitBreakerConfig {
    window: SlidingWindow,
    minimum_calls: Option<u32>,
    failure_rate: u32,
    slow_rate: u32,
    slow_duration: Duration,
    wait: Duration,
    multiplier: u32,
    max_wait: Option<Duration>,
    jitter: u32,
    seed: Option<u64>,
    probes: u32,
    lease: Duration,
    max_half_open: Option<Duration>,
}

impl Default for CircuitBreakerConfig {
    fn default() -> Self {
        CircuitBreakerConfig {
            window: DEFAULT_WINDOW,
            minimum_calls: None,
            failure_rate: DEFAULT_FAILURE_RATE,
            slow_rate: DEFAULT_SLOW_RATE,
            slow_duration: DEFAULT_SLOW_DURATION,
            wait: DEFAULT_WAIT,
            multiplier: DEFAULT_MULTIPLIER,
            max_wait: None,
            jitter: DEFAULT_JITTER,
            seed: None,
            probes: DEFAULT_PROBES,
            lease: DEFAULT_LEASE,
            max_half_open: None,
        }
    }
}

impl CircuitBreakerConfig {
    /// The defaults.
    pub fn new() -> Self {
        CircuitBreakerConfig::default()
    }

    /// Which calls are looked at while closed.
    pub fn sliding_window(mut self, window: SlidingWindow) -> Self {
        self.window = window;
        self
    }

    /// How many calls the window must hold before a rate means anything.
    pub fn minimum_number_of_calls(mut self, calls: u32) -> Self {
        self.minimum_calls = Some(calls);
        self
    }

    /// The percentage of failed calls at which the breaker opens.
    pub fn failure_rate_threshold(mut self, percent: u32) -> Self {
        self.failure_rate = percent;
        self
    }

    /// The percentage of slow calls at which the breaker opens.
    pub fn slow_call_rate_threshold(mut self, percent: u32) -> Self {
        self.slow_rate = percent;
        self
    }

    /// A call that took longer than this is slow, whether it failed or not. Parts of a microsecond are dropped.
    pub fn slow_call_duration_threshold(mut self, duration: Duration) -> Self {
        self.slow_duration = duration;
        self
    }

    /// How long the breaker stays open the first time, before probes are let through.
    pub fn wait_duration_in_open_state(mut self, duration: Duration) -> Self {
        self.wait = duration;
        self
    }

    /// Each time that the probes fail, the next wait is so many times the last. 1 keeps it the same.
    pub fn backoff_multiplier(mut self, times: u32) -> Self {
        self.multiplier = times;
        self
    }

    /// The longest wait that the multiplier leads to.
    pub fn max_wait_duration_in_open_state(mut self, duration: Duration) -> Self {
        self.max_wait = Some(duration);
        self
    }

    /// Each wait is shortened by a random part of it, up to this percentage, so that the processes of a fleet do not
    /// probe in step. It never lengthens a wait.
    pub fn jitter(mut self, percent: u32) -> Self {
        self.jitter = percent;
        self
    }

    /// Makes the jitter the same in every run, for tests.
    pub fn jitter_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// How many probes decide whether the breaker closes or opens again; no more calls than that are let through.
    pub fn permitted_number_of_calls_in_half_open_state(mut self, calls: u32) -> Self {
        self.probes = calls;
        self
    }

    /// After so long a probe that did not report may lose its place to the next caller, so that lost probes
    /// cannot keep the breaker half open for ever. It should be longer than a call can take.
    pub fn half_open_probe_lease(mut self, duration: Duration) -> Self {
        self.lease = duration;
        self
    }

    /// A half-open breaker that is not decided after so long opens again. Without it, it waits for its probes.
    pub fn max_wait_duration_in_half_open_state(mut self, duration: Duration) -> Self {
        self.max_half_open = Some(duration);
        self
    }

    /// The options as the breaker works with them: checked, and in microseconds.
    pub(super) fn settings(&self) -> Result<Settings> {
        let (minimum, max_wait) = (self.minimum_calls, self.max_wait);
        let minimum = match self.window {
            SlidingWindow::Count(calls) => {
                within("sliding_window Count", calls, &COUNTS)?;
                let minimum = minimum.unwrap_or(DEFAULT_MINIMUM_CALLS.min(calls));
                within("minimum_number_of_calls of a Count window", minimum, &(1..=calls))?;
                minimum
            }
            SlidingWindow::Time(duration) => {
                within("sliding_window Time", duration, &TIMES)?;
                minimum.unwrap_or(DEFAULT_MINIMUM_CALLS)
            }
        };
        within("minimum_number_of_calls", minimum, &MINIMUM_CALLS)?;
        within("failure_rate_threshold", self.failure_rate, &RATES)?;
        within("slow_call_rate_threshold", self.slow_rate, &RATES)?;
        within("slow_call_duration_threshold", self.slow_duration, &SLOW_DURATIONS)?;
        within("wait_duration_in_open_state", self.wait, &WAITS)?;
        within("backoff_multiplier", self.multiplier, &MULTIPLIERS)?;
        let max_wait = max_wait.unwrap_or(DEFAULT_MAX_WAIT.max(self.wait));
        within("max_wait_duration_in_open_state", max_wait, &(self.wait..=LONGEST))?;
        within("jitter", self.jitter, &JITTERS)?;
        within("permitted_number_of_calls_in_half_open_state", self.probes, &PROBES)?;
        within("half_open_probe_lease", self.lease, &WAITS)?;
        if let Some(duration) = self.max_half_open {
            within("max_wait_duration_in_half_open_state", duration, &WAITS)?;
        }
        Ok(Settings {
            window: self.window,
            minimum: u64::from(minimum),
            thresholds: Thresholds { failed: u64::from(self.failure_rate), slow: u64::from(self.slow_rate) },
            slow_duration: micros(self.slow_duration),
            wait: micros(self.wait),
            multiplier: u64::from(self.multiplier),
            max_wait: micros(max_wait),
            jitter: u64::from(self.jitter),
            seed: self.seed,
            probes: self.probes as usize,
            lease: micros(self.lease),
            max_half_open: self.max_half_open.map(micros),
        })
    }
}

/// Options within their bounds; times in microseconds.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) window: SlidingWindow,
    pub(super) minimum: u64,
    pub(super) thresholds: Thresholds,
    pub(super) slow_duration: u64,
    pub(super) wait: u64,
    pub(super) multiplier: u64,
    pub(super) max_wait: u64,
    pub(super) jitter: u64,
    pub(super) seed: Option<u64>,
    pub(super) probes: usize,
    pub(super) lease: u64,
    pub(super) max_half_open: Option<u64>,
}

fn within<T: PartialOrd + std::fmt::Debug>(name: &str, value: T, bounds: &RangeInclusive<T>) -> Result<()> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let (least, most) = (bounds.start(), bounds.end());
    Err(Error::option(format!("{name} {value:?}: it may be {least:?} to {most:?}")))
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
