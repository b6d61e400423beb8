//! Every option of a limiter, with its default and its bounds, in this one place.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::clock::{Clock, SystemClock};
use crate::error::{Error, Result};
use crate::in_force::InForce;
use crate::key::Keyspace;
use crate::limiter::{Inner, Limiter};
use crate::limits::Limits;
use crate::runtime::Runtime;
use crate::store::{Fallback, Memory, OnFailure, Place, Redis, ScriptClock, Store, StoreUrl};

/// What server keys begin with.
pub(crate) const DEFAULT_PREFIX: &str = "balde";

/// How long a decision may take.
pub(crate) const DEFAULT_DEADLINE: Duration = Duration::from_millis(50);

/// How many processes share a limit, where nobody said.
pub(crate) const DEFAULT_FLEET: u64 = 32;

/// How many buckets a process keeps; one takes about 150 bytes beside a long key.
pub(crate) const DEFAULT_MAX_LOCAL_KEYS: usize = 1_000_000;

/// The longest deadline: beyond a day something else is meant.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Collects the options of a [`Limiter`]; see [`Limiter::builder`].
///
/// | option | default | bounds |
/// |---|---|---|
/// | `name` | none: it must be given | 1 to 64 of `A-Z a-z 0-9 . _ -` |
/// | `limits` | none: they must be given | 1 to 16, of different periods |
/// | `store` | `memory:` | see [`StoreUrl`] |
/// | `prefix` | `balde` | as `name` |
/// | `on_failure` | `Allow` | |
/// | `fleet` | 32 | 1 to 1,000,000 |
/// | `deadline` | 50 ms | 1 ms to 1 day |
/// | `max_local_keys` | 1,000,000 | 1 or more |
/// | `clock` | the monotonic system clock | memory store only |
/// | `runtime` | the one that polls the call | |
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    name: String,
    limits: Option<Limits>,
    store: StoreUrl,
    prefix: String,
    deadline: Duration,
    on_failure: OnFailure,
    fleet: u64,
    max_local_keys: usize,
    clock: Option<Arc<dyn Clock>>,
    runtime: Option<Handle>,
}

impl Builder {
    pub(crate) fn new(name: &str) -> Self {
        Builder {
            name: name.to_string(),
            limits: None,
            store: StoreUrl::memory(),
            prefix: DEFAULT_PREFIX.to_string(),
            deadline: DEFAULT_DEADLINE,
            on_failure: OnFailure::default(),
            fleet: DEFAULT_FLEET,
            max_local_keys: DEFAULT_MAX_LOCAL_KEYS,
            clock: None,
            runtime: None,
        }
    }

    /// The limits that a request must pass, all of them or none.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Where the buckets live.
    pub fn store(mut self, store: StoreUrl) -> Self {
        self.store = store;
        self
    }

    /// What the keys on a server begin with, before the limiter's name.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.prefix = prefix.to_string();
        self
    }

    /// How long a decision of a server may take, with connecting, redirections and further tries.
    /// A wait for tokens ([`Acquire::max_wait`](crate::Acquire::max_wait)) comes on top.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// What is decided when a server does not answer within the deadline.
    pub fn on_failure(mut self, policy: OnFailure) -> Self {
        self.on_failure = policy;
        self
    }

    /// How many processes share the limits, for [`OnFailure::Local`]: each decides on that part of them.
    pub fn fleet(mut self, processes: u64) -> Self {
        self.fleet = processes;
        self
    }

    /// How many buckets the memory store, or the local fallback, holds at most. When there is no room the fullest are forgotten first.
    pub fn max_local_keys(mut self, keys: usize) -> Self {
        self.max_local_keys = keys;
        self
    }

    /// The memory store's clock, such as a [`ManualClock`](crate::ManualClock) in tests. A server decides by its own.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The tokio runtime (with I/O and time enabled) that connections and timers live on, so that a limiter
    /// can be used from any executor. Without it, calls that need one must be awaited within a tokio runtime.
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// The limiter. Opens no connection and starts no task: that waits for the first call.
    ///
    /// # Errors
    /// `invalid_option` for a missing option or one out of its bounds.
    pub fn build(self) -> Result<Limiter> {
        let limits = self.limits.ok_or_else(|| Error::option("a limiter needs limits, such as \"10/s burst 20\""))?;
        let keyspace = Keyspace::new(&self.prefix, &self.name)?;
        if self.deadline < Duration::from_millis(1) || self.deadline > LONGEST {
            return Err(Error::option(format!("deadline {:?}: it may be 1 ms to 1 day", self.deadline)));
        }
        if self.fleet == 0 || self.fleet > 1_000_000 {
            return Err(Error::option(format!("fleet {}: it may be 1 to 1,000,000 processes", self.fleet)));
        }
        if self.max_local_keys == 0 {
            return Err(Error::option("max_local_keys 0: it must be 1 or more"));
        }
        if self.clock.is_some() && self.store != StoreUrl::memory() {
            return Err(Error::option(
                "clock: a server decides by its own clock; give one with the memory: store only",
            ));
        }
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        let runtime = Runtime::new(self.runtime);
        let store = match self.store.0 {
            Place::Memory => Store::Memory { buckets: Memory::new(self.max_local_keys), clock: Arc::clone(&clock) },
            Place::Redis(servers) => {
                Store::Redis { server: Redis::new(servers, ScriptClock::Server, runtime.clone()), keyspace }
            }
        };
        let fallback = Fallback::new(self.on_failure, self.fleet, Arc::clone(&clock), self.max_local_keys);
        let (name, deadline) = (self.name, self.deadline);
        Ok(Limiter::new(Inner {
            name,
            limits: InForce::new(limits),
            store,
            fallback,
            clock,
            deadline,
            runtime,
            closed: AtomicBool::new(false),
        }))
    }
}
