//! The same decisions under a clock that the caller gives with each call: for replaying logs and for tests.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::acquire::{Acquire, tokens};
use crate::bucket::{Outcome, Run};
use crate::config::DEFAULT_PREFIX;
use crate::decision::{Decision, Source};
use crate::error::{Error, Result};
use crate::key::{self, Keyspace};
use crate::limits::Limits;
use crate::runtime::Runtime;
use crate::store::{Memory, Place, Redis, ScriptClock, StoreUrl};

/// How long a server may take to be there.
const OPENING: Duration = Duration::from_secs(5);

/// How long one call may take: a simulation is in no hurry, and its result must not depend on a slow machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// Buckets under a given clock. Nothing sleeps and nothing is forgotten by real time or for lack of room.
///
/// On a server it runs the very script of production behind another clock, on keys of its own that
/// [`close`](Simulation::close) removes. Times are microseconds; they may stand still and step back, as clocks do.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), balde::Error> {
/// use balde::{Acquire, Simulation, StoreUrl};
/// let simulation = Simulation::open(&StoreUrl::memory(), "what-if", "1/s".parse()?).await?;
/// assert!(simulation.acquire(0, b"k", &Acquire::cost(1)).await?.allowed);
/// assert!(!simulation.acquire(999_999, b"k", &Acquire::cost(1)).await?.allowed);
/// assert!(simulation.acquire(1_000_000, b"k", &Acquire::cost(1)).await?.allowed);
/// # simulation.close().await
/// # }
/// ```
#[derive(Debug)]
pub struct Simulation {
    limits: Limits,
    buckets: Buckets,
}

#[derive(Debug)]
enum Buckets {
    Here(Memory),
    There { server: Redis, keyspace: Keyspace, written: Mutex<HashSet<Vec<u8>>> },
}

impl Simulation {
    /// Opens a simulation on a store. Two with one `name` on one server would meet in the same buckets.
    ///
    /// # Errors
    /// `invalid_option` for a name that is not 1 to 64 of `A-Z a-z 0-9 . _ -`; what keeps a server from answering.
    pub async fn open(store: &StoreUrl, name: &str, limits: Limits) -> Result<Self> {
        let keyspace = Keyspace::new(&format!("{DEFAULT_PREFIX}-simulation"), name)?;
        let buckets = match &store.0 {
            Place::Memory => Buckets::Here(Memory::unbounded()),
            Place::Redis(servers) => {
                let server = Redis::new(servers.clone(), ScriptClock::Given, Runtime::new(None));
                server.ready(OPENING).await?;
                Buckets::There { server, keyspace, written: Mutex::default() }
            }
        };
        Ok(Simulation { limits, buckets })
    }

    /// Decides a request at `at`. One that may wait is told how long it would have to; nothing sleeps.
    ///
    /// # Errors
    /// As [`Limiter::acquire_with`](crate::Limiter::acquire_with); `invalid_option` for a time beyond 2^53.
    pub async fn acquire(&self, at: u64, key: &[u8], request: &Acquire) -> Result<Decision> {
        let run = request.run()?;
        let limits = request.own_limits().unwrap_or(&self.limits);
        let outcome = self.call(at, key, limits, run).await?;
        Ok(Decision::stored(limits, &outcome, &run))
    }

    /// What a request of `cost` tokens that will not wait would be told at `at`, taking nothing.
    ///
    /// # Errors
    /// As [`acquire`](Simulation::acquire).
    pub async fn peek(&self, at: u64, key: &[u8], cost: u64) -> Result<Decision> {
        let cost = tokens(cost)?;
        let outcome = self.call(at, key, &self.limits, Run::look()).await?;
        Ok(Decision::foreseen(&self.limits, &outcome, cost, Source::Store))
    }

    /// Gives tokens back at `at`, up to full, and returns the whole tokens that are then left.
    ///
    /// # Errors
    /// As [`acquire`](Simulation::acquire).
    pub async fn refund(&self, at: u64, key: &[u8], tokens: u64) -> Result<u64> {
        let run = Run::refund(self::tokens(tokens)?);
        let outcome = self.call(at, key, &self.limits, run).await?;
        Ok(Decision::foreseen(&self.limits, &outcome, 0, Source::Store).remaining)
    }

    /// Forgets a bucket.
    ///
    /// # Errors
    /// `invalid_key`; what keeps a server from answering.
    pub async fn reset(&self, _at: u64, key: &[u8]) -> Result<()> {
        let key = key::checked(key)?;
        match &self.buckets {
            Buckets::Here(memory) => memory.reset(key),
            Buckets::There { server, keyspace, .. } => server.remove(keyspace.key(key), DEADLINE).await?,
        }
        Ok(())
    }

    /// Other limits from the next call on; what is left in a bucket stays left.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Removes every key that the simulation wrote on a server.
    ///
    /// # Errors
    /// What kept a server from answering; keys may then be left behind.
    pub async fn close(self) -> Result<()> {
        if let Buckets::There { server, keyspace, written } = self.buckets {
            for key in written.into_inner().unwrap_or_else(PoisonError::into_inner) {
                server.remove(keyspace.key(&key), DEADLINE).await?;
            }
            server.close();
        }
        Ok(())
    }

    async fn call(&self, at: u64, key: &[u8], limits: &Limits, run: Run) -> Result<Outcome> {
        let key = key::checked(key)?;
        let now = i64::try_from(at).ok().filter(|now| *now < 1 << 53);
        let now = now.ok_or_else(|| Error::option(format!("the time {at} is beyond 2^53 microseconds")))?;
        match &self.buckets {
            Buckets::Here(memory) => Ok(memory.call(key, limits, now, &[run])),
            Buckets::There { server, keyspace, written } => {
                written.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_vec());
                server.call(keyspace.key(key), limits, &[run], Some(now), None, DEADLINE).await
            }
        }
    }
}
