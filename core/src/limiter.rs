//! The face: checks what is asked, passes it on, and computes nothing.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::acquire::{Acquire, tokens};
use crate::bucket::Run;
use crate::clock::Clock;
use crate::config::Builder;
use crate::decision::{Decision, Source};
use crate::error::{Error, Result};
use crate::in_force::InForce;
use crate::key;
use crate::limits::Limits;
use crate::runtime::{Runtime, on};
use crate::stats::Stats;
use crate::store::{Claim, Fallback, Store};

/// Between two tries to settle what the fallback admitted.
const SETTLE_INTERVAL: Duration = Duration::from_millis(500);

/// Decides whether requests may pass: a token bucket for each key, in this process or on Redis.
///
/// Cheap to clone; the clones are one limiter. Safe to use from any number of threads and tasks.
/// Two limiters with the same prefix and name on the same servers share their buckets; two `memory:` limiters never do.
///
/// ```
/// use balde::{Acquire, Limiter};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), balde::Error> {
/// let limiter = Limiter::builder("api").limits("10/s burst 20".parse()?).build()?;
/// let decision = limiter.acquire("user:42").await?;
/// assert!(decision.allowed);
/// assert_eq!(decision.remaining, 19);
/// let dear = limiter.acquire_with("user:42", Acquire::cost(20)).await?;
/// assert!(!dear.allowed && dear.retry_after.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Limiter {
    inner: Arc<Inner>,
}

/// What the clones of a limiter share.
pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) limits: InForce,
    pub(crate) store: Store,
    pub(crate) fallback: Fallback,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) deadline: Duration,
    pub(crate) runtime: Runtime,
    pub(crate) closed: AtomicBool,
}

impl Limiter {
    /// The longest key, in bytes. The empty key is a key like any other.
    pub const MAX_KEY: usize = key::MAX_KEY;

    /// Begins a limiter. `name` is part of its keys: limiters of one name share buckets on a server.
    pub fn builder(name: &str) -> Builder {
        Builder::new(name)
    }

    pub(crate) fn new(inner: Inner) -> Self {
        Limiter { inner: Arc::new(inner) }
    }

    /// Asks for one token. One round trip to a server, none to `memory:`.
    ///
    /// # Errors
    /// As [`acquire_with`](Limiter::acquire_with).
    pub async fn acquire(&self, key: impl AsRef<[u8]>) -> Result<Decision> {
        self.acquire_with(key, Acquire::default()).await
    }

    /// Asks for tokens, and waits for them as long as the request allows. One round trip to a server.
    ///
    /// A request that has to wait takes its place when it is decided, and then sleeps its own
    /// [`wait`](Decision::wait). If this future is dropped while it sleeps, its tokens are given back (on a server
    /// by a task that outlives the call). If it is dropped before the server's answer came, that answer is awaited in the
    /// background, and tokens that it took are given back; where it never comes, nobody knows and nothing is done.
    ///
    /// # Errors
    /// `invalid_key`, `invalid_cost`, `invalid_option`, `closed`; from a server `auth`, `permission`,
    /// `unsupported_server`, `internal`. A denial is not an error, and neither is a server that does not answer: then
    /// the failure policy decides ([`Builder::on_failure`]), except for [`Acquire::no_fallback`].
    pub async fn acquire_with(&self, key: impl AsRef<[u8]>, request: Acquire) -> Result<Decision> {
        let (key, run) = (key::checked(key.as_ref())?, request.run()?);
        let limits = self.limits_of(&request)?;
        let decision = self.decide(key, &limits, &run, request.may_fall_back()).await?;
        if !decision.wait.is_zero() {
            let source = decision.source;
            let mut reserved = Reservation { limiter: self, key, limits: &limits, tokens: run.cost, source };
            self.sleep(decision.wait).await?;
            reserved.tokens = 0;
        }
        Ok(decision)
    }

    /// The store's decision, or else the failure policy's.
    async fn decide(&self, key: &[u8], limits: &Limits, run: &Run, may_fall_back: bool) -> Result<Decision> {
        let Inner { store, fallback, deadline, .. } = &*self.inner;
        if let Some(decision) = store.decide_here(key, limits, run) {
            return Ok(decision);
        }
        // Dropped without a word, also with this future, it says that nobody used what a late answer took.
        let (claim, heard) = Claim::new();
        match store.call(key, limits, &[*run], Some(heard), *deadline).await {
            Err(error) if error.is_retryable() && may_fall_back => {
                let decision = fallback.decide(key, limits, run, error.reason());
                if decision.allowed && fallback.settles() {
                    // What is settled afterwards must not stay debited by a late answer as well.
                    drop(claim);
                    self.settle_later();
                } else if decision.allowed {
                    claim.used();
                }
                Ok(decision)
            }
            outcome => Ok(Decision::stored(limits, &outcome?, run)),
        }
    }

    /// Settles in the background what the fallback admitted, unless that goes on already.
    fn settle_later(&self) {
        let runtime = self.inner.runtime.handle();
        let Some(runtime) = runtime.filter(|_| self.inner.fallback.must_settle()) else { return };
        let limiter = Arc::downgrade(&self.inner);
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(SETTLE_INTERVAL).await;
                // Whoever dropped or closed the limiter does not settle any more.
                let Some(inner) = limiter.upgrade() else { return };
                if inner.closed.load(Ordering::Acquire) || inner.fallback.settle(&inner.store, inner.deadline).await {
                    return;
                }
            }
        });
    }

    /// Asks for one token where that needs no network: `None` when it does (or when the key or the limiter
    /// is of no use, which [`acquire`](Limiter::acquire) then says).
    pub fn try_acquire_local(&self, key: impl AsRef<[u8]>) -> Option<Decision> {
        let (key, run) = (key::checked(key.as_ref()).ok()?, Run::take(1, 0));
        self.open().ok()?;
        self.inner.limits.read(|limits| self.inner.store.decide_here(key, limits, &run))
    }

    /// What [`acquire`](Limiter::acquire) would say, taking nothing. One round trip to a server.
    ///
    /// # Errors
    /// As [`acquire_with`](Limiter::acquire_with).
    pub async fn peek(&self, key: impl AsRef<[u8]>) -> Result<Decision> {
        self.peek_with(key, Acquire::default()).await
    }

    /// What [`acquire_with`](Limiter::acquire_with) would say if it did not wait, taking nothing. One round trip to a server.
    ///
    /// # Errors
    /// As [`acquire_with`](Limiter::acquire_with).
    pub async fn peek_with(&self, key: impl AsRef<[u8]>, request: Acquire) -> Result<Decision> {
        let (key, run) = (key::checked(key.as_ref())?, request.run()?);
        let limits = self.limits_of(&request)?;
        let outcome = self.inner.store.call(key, &limits, &[Run::look()], None, self.inner.deadline).await?;
        Ok(Decision::foreseen(&limits, &outcome, run.cost, Source::Store))
    }

    /// Gives `tokens` back to a bucket, up to full, and returns the whole tokens that are then left.
    /// One round trip to a server; never sent twice.
    ///
    /// # Errors
    /// As [`acquire_with`](Limiter::acquire_with).
    pub async fn refund(&self, key: impl AsRef<[u8]>, tokens: u64) -> Result<u64> {
        let (key, tokens) = (key::checked(key.as_ref())?, self::tokens(tokens)?);
        self.open()?;
        let limits = self.limits();
        let outcome = self.inner.store.call(key, &limits, &[Run::refund(tokens)], None, self.inner.deadline).await?;
        Ok(Decision::foreseen(&limits, &outcome, 0, Source::Store).remaining)
    }

    /// Forgets a bucket: it is full again, and nobody was promised anything. One round trip to a server.
    ///
    /// # Errors
    /// As [`acquire_with`](Limiter::acquire_with).
    pub async fn reset(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key::checked(key.as_ref())?;
        self.open()?;
        self.inner.store.reset(key, self.inner.deadline).await
    }

    /// Other limits from now on, in this process. In every bucket what is left stays left, at most the new burst,
    /// and comes back at the new rate: lowering locks nobody out, raising refills nothing.
    ///
    /// # Errors
    /// `closed`.
    pub fn set_limits(&self, limits: Limits) -> Result<()> {
        self.open()?;
        self.inner.limits.replace(limits);
        Ok(())
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.inner.limits.get()
    }

    /// The limiter's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Connects to every master and loads the script ahead, so that the first requests need not wait for that.
    ///
    /// # Errors
    /// `unavailable` when that took longer than `timeout`, `closed`, or the refusal of a server (`auth`, ...).
    /// The limiter stays usable: it goes on connecting when it is asked.
    pub async fn ready(&self, timeout: Duration) -> Result<()> {
        self.open()?;
        self.inner.store.ready(timeout).await
    }

    /// What this limiter's local state holds.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.inner.store, &self.inner.fallback)
    }

    /// Closes the connections of this limiter and its clones. Later calls answer `closed`; closing again does nothing.
    /// Calls under way may end as `closed` or `unavailable`, and whether a server acted on them is then unknown.
    pub fn close(&self) {
        // Release pairs with the acquire in `open`: who sees `closed` sees no connection either.
        if !self.inner.closed.swap(true, Ordering::AcqRel) {
            self.inner.store.close();
        }
    }

    fn limits_of(&self, request: &Acquire) -> Result<Limits> {
        self.open()?;
        Ok(request.own_limits().cloned().unwrap_or_else(|| self.limits()))
    }

    /// # Errors
    /// `closed`.
    fn open(&self) -> Result<()> {
        if self.inner.closed.load(Ordering::Acquire) { Err(Error::closed()) } else { Ok(()) }
    }

    /// # Errors
    /// `invalid_option` where there is no runtime to sleep on.
    async fn sleep(&self, wait: Duration) -> Result<()> {
        let runtime = self.inner.runtime.handle().ok_or_else(|| {
            Error::option("max_wait needs a tokio runtime: await within one, or give its handle to the builder")
        })?;
        on(&runtime, || self.inner.clock.sleep(wait)).await;
        Ok(())
    }
}

/// The tokens of a request that sleeps until they are there; given back when the caller does not stay.
struct Reservation<'a> {
    limiter: &'a Limiter,
    key: &'a [u8],
    limits: &'a Limits,
    tokens: i64,
    source: Source,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.tokens == 0 {
            return;
        }
        let refund = Run::refund(self.tokens);
        let inner = &self.limiter.inner;
        if self.source == Source::Fallback {
            return inner.fallback.refund(self.key, self.limits, self.tokens);
        }
        if inner.store.call_here(self.key, self.limits, &[refund]).is_some() {
            return;
        }
        if let Some(runtime) = inner.runtime.handle() {
            let (inner, key, limits) = (Arc::clone(inner), self.key.to_vec(), self.limits.clone());
            runtime.spawn(async move {
                let _ = inner.store.call(&key, &limits, &[refund], None, inner.deadline).await;
            });
        }
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("name", &self.inner.name)
            .field("limits", &self.limits())
            .finish_non_exhaustive()
    }
}
