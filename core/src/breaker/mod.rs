//! A circuit breaker: calls to a dependency that fails are refused at once, until probes say that it is well again.

mod call;
mod config;
mod count_window;
mod listeners;
mod machine;
mod passage;
mod permit;
mod snapshot;
mod sums;
mod time_window;
mod transition;
mod window;

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::error::Result;
use config::{LONGEST, Settings, micros};
use listeners::Listeners;
use machine::Machine;
use passage::Issued;
use transition::Word;
use window::Window;

pub use call::CallError;
pub use config::{CircuitBreakerConfig, SlidingWindow};
pub use permit::{CallNotPermitted, CallOutcome, CallPermit};
pub use snapshot::CircuitBreakerSnapshot;
pub use transition::{CircuitBreakerState, CircuitBreakerTransition};

use CircuitBreakerState as State;

/// Watches the calls to one dependency and refuses them while it is down.
///
/// - **Closed**: calls pass. Once a window of the last calls holds too many that failed or were slow, it opens.
/// - **Open**: calls are refused for a while, longer each time. The first call after that finds it half open.
/// - **Half open**: some calls pass as probes. If too many of them fail it opens again, else it closes. A probe that never
///   reports loses its place after its lease, so that the state always has a way out.
/// - **Forced open** and **disabled**: all calls are refused, or all pass, until somebody says otherwise.
///
/// It has no task, no timer and no thread: what is due happens when a call asks. While it is closed, neither
/// a permit nor a result takes a lock. Its clock is monotonic; should it step back, no wait gets longer than it was,
/// counted from the step. No lock is held while the caller's code, a listener or the clock runs.
///
/// With one thread the windows are exact. With several, each result still counts exactly once, and calls that end at the
/// very same moment count in the order that they happened to.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use balde::{CircuitBreaker, CircuitBreakerConfig, CircuitBreakerState, ManualClock, SlidingWindow};
///
/// let config = CircuitBreakerConfig::new()
///     .sliding_window(SlidingWindow::Count(4))
///     .wait_duration_in_open_state(Duration::from_secs(1))
///     .jitter(0)
///     .permitted_number_of_calls_in_half_open_state(1);
/// let clock = Arc::new(ManualClock::new());
/// let breaker = CircuitBreaker::with_clock(&config, clock.clone())?;
///
/// for _ in 0..4 {
///     breaker.try_acquire_permission().unwrap().failure();
/// }
/// let refused = breaker.try_acquire_permission().unwrap_err();
/// assert_eq!(refused.state, CircuitBreakerState::Open);
/// assert_eq!(refused.retry_after, Some(Duration::from_secs(1)));
///
/// clock.advance(Duration::from_secs(1));
/// let answer = breaker.call(|| "42".parse::<u32>());
/// assert_eq!(answer, Ok(42));
/// assert_eq!(breaker.state(), CircuitBreakerState::Closed);
/// # Ok::<(), balde::Error>(())
/// ```
pub struct CircuitBreaker {
    /// The state and its generation. Stored with release while the machine's lock is held, after what belongs to the
    /// generation is in place, and loaded with acquire.
    word: AtomicU64,
    settings: Settings,
    clock: Arc<dyn Clock>,
    window: Window,
    machine: Mutex<Machine>,
    not_permitted: AtomicU64,
    listeners: Listeners,
}

impl CircuitBreaker {
    /// A closed breaker on the machine's monotonic clock.
    ///
    /// # Errors
    /// `invalid_option` for an option that is out of its bounds or contradicts another.
    pub fn new(config: &CircuitBreakerConfig) -> Result<Self> {
        CircuitBreaker::with_clock(config, Arc::new(SystemClock::new()))
    }

    /// A closed breaker on another clock, such as a [`ManualClock`](crate::ManualClock) in tests.
    ///
    /// # Errors
    /// As [`CircuitBreaker::new`].
    pub fn with_clock(config: &CircuitBreakerConfig, clock: Arc<dyn Clock>) -> Result<Self> {
        let settings = config.settings()?;
        let machine = Machine::new(settings.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish()));
        let generation = machine.generation();
        Ok(CircuitBreaker {
            word: AtomicU64::new(Word::new(State::Closed, generation).bits()),
            window: Window::new(settings.window, generation),
            settings,
            clock,
            machine: Mutex::new(machine),
            not_permitted: AtomicU64::new(0),
            listeners: Listeners::default(),
        })
    }

    /// Asks whether a call may be made. The answer comes at once; closed, it costs one load and one look at the clock.
    ///
    /// # Errors
    /// [`CallNotPermitted`] when it may not.
    pub fn try_acquire_permission(&self) -> Result<CallPermit<&CircuitBreaker>, CallNotPermitted> {
        self.issue().map(|issued| CallPermit::new(self, issued))
    }

    /// The same with a permit that keeps its breaker alive, to be moved where a reference cannot go.
    ///
    /// # Errors
    /// As [`try_acquire_permission`](CircuitBreaker::try_acquire_permission).
    pub fn try_acquire_permission_owned(self: &Arc<Self>) -> Result<CallPermit<Arc<CircuitBreaker>>, CallNotPermitted> {
        self.issue().map(|issued| CallPermit::new(Arc::clone(self), issued))
    }

    /// Counts a call that took no permit and ended with `outcome` after `elapsed`. It counts in the closed state only.
    pub fn record(&self, outcome: CallOutcome, elapsed: Duration) {
        let now = self.clock.now();
        let issued = Issued { generation: self.word().generation(), at: now, probe: None };
        self.settle(issued, outcome, micros(elapsed), now);
    }

    /// The state. An open breaker whose wait is over says `Open` until a call asks.
    pub fn state(&self) -> CircuitBreakerState {
        self.word().state()
    }

    /// The breaker in numbers.
    pub fn snapshot(&self) -> CircuitBreakerSnapshot {
        let now = self.clock.now();
        let machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        let (sums, minimum) = match machine.state() {
            State::Closed => (self.window.sums(machine.generation(), now), self.settings.minimum),
            _ => (machine.sums(), 1),
        };
        CircuitBreakerSnapshot {
            probes: machine.probing() as u64,
            // Relaxed: a statistic.
            not_permitted_calls: self.not_permitted.load(Ordering::Relaxed),
            retry_after: machine.remaining(now).map(Duration::from_micros),
            ..CircuitBreakerSnapshot::new(machine.state(), sums, minimum)
        }
    }

    /// Closes the breaker with an empty window, from any state. One that is closed already stays as it is.
    pub fn transition_to_closed(&self) {
        self.change(|machine| match machine.state() {
            State::Closed => {}
            _ => machine.close(),
        });
    }

    /// Refuses all calls until [`transition_to_closed`](CircuitBreaker::transition_to_closed),
    /// [`transition_to_disabled`](CircuitBreaker::transition_to_disabled) or [`reset`](CircuitBreaker::reset).
    pub fn transition_to_forced_open(&self) {
        self.change(|machine| match machine.state() {
            State::ForcedOpen => {}
            _ => machine.force_open(),
        });
    }

    /// Lets all calls pass and watches none, until [`transition_to_closed`](CircuitBreaker::transition_to_closed),
    /// [`transition_to_forced_open`](CircuitBreaker::transition_to_forced_open) or [`reset`](CircuitBreaker::reset).
    pub fn transition_to_disabled(&self) {
        self.change(|machine| match machine.state() {
            State::Disabled => {}
            _ => machine.disable(),
        });
    }

    /// Makes the breaker as new: closed, its window empty, the wait short again, no refusals counted.
    pub fn reset(&self) {
        self.change(Machine::close);
        // Relaxed: a statistic.
        self.not_permitted.store(0, Ordering::Relaxed);
    }

    /// Opens the breaker for `retry_after` from now, as a server asked that said so; a day at most, and without jitter. An
    /// open breaker never probes earlier for it, and one that is forced open or disabled stays so.
    pub fn open_until(&self, retry_after: Duration) {
        let wait = micros(retry_after.min(LONGEST));
        if wait > 0 {
            let now = self.clock.now();
            self.change(|machine| machine.open_for(wait, now));
        }
    }

    /// Calls `listener` after each transition, on the thread that caused it. It may call the breaker; it holds up the call
    /// that is ending, so it should be quick. What it panics with is dropped.
    pub fn on_transition(&self, listener: impl Fn(&CircuitBreakerTransition) + Send + Sync + 'static) {
        self.listeners.add(Arc::new(listener));
    }
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker").field("state", &self.state()).finish_non_exhaustive()
    }
}
