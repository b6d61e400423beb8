//! Where buckets are kept: in this process, or on Redis. Both answer a call with the same [`Outcome`].

mod fallback;
mod memory;
mod redis;
#[cfg(test)]
mod twins;
mod url;

use std::sync::Arc;
use std::time::Duration;

use crate::bucket::{Outcome, Run};
use crate::clock::Clock;
use crate::decision::{Decision, Source};
use crate::error::Result;
use crate::key::Keyspace;
use crate::limits::Limits;

pub(crate) use fallback::Fallback;
pub use fallback::OnFailure;
pub(crate) use memory::Memory;
pub(crate) use redis::{Claim, Heard, Redis, ScriptClock};
pub(crate) use url::Place;
pub use url::StoreUrl;

/// One of the two stores. An enum, so that a decision in memory costs no allocation and no dynamic call.
#[derive(Debug)]
pub(crate) enum Store {
    Memory { buckets: Memory, clock: Arc<dyn Clock> },
    Redis { server: Redis, keyspace: Keyspace },
}

impl Store {
    /// Decides `runs` on the bucket of `key`, in order, in one step. With `heard`, what a server debited for a caller who
    /// is gone by then is given back.
    pub(crate) async fn call(
        &self,
        key: &[u8],
        limits: &Limits,
        runs: &[Run],
        heard: Option<Heard>,
        deadline: Duration,
    ) -> Result<Outcome> {
        match self {
            Store::Memory { buckets, clock } => Ok(buckets.call(key, limits, clock.now() as i64, runs)),
            Store::Redis { server, keyspace } => {
                server.call(keyspace.key(key), limits, runs, None, heard, deadline).await
            }
        }
    }

    /// The same where no network is needed.
    pub(crate) fn call_here(&self, key: &[u8], limits: &Limits, runs: &[Run]) -> Option<Outcome> {
        match self {
            Store::Memory { buckets, clock } => Some(buckets.call(key, limits, clock.now() as i64, runs)),
            Store::Redis { .. } => None,
        }
    }

    /// Decides one request where no network is needed.
    #[inline]
    pub(crate) fn decide_here(&self, key: &[u8], limits: &Limits, run: &Run) -> Option<Decision> {
        let Store::Memory { buckets, clock } = self else { return None };
        let now = clock.now() as i64;
        if let (true, [limit]) = (run.is_one(), &**limits)
            && let Some(one) = buckets.take_one(key, limits, now)
        {
            return Some(Decision::of_one(limit, one, Source::Store));
        }
        let outcome = buckets.call(key, limits, now, &[*run]);
        Some(Decision::stored(limits, &outcome, run))
    }

    /// Forgets the bucket of `key`: it is full again.
    pub(crate) async fn reset(&self, key: &[u8], deadline: Duration) -> Result<()> {
        match self {
            Store::Memory { buckets, .. } => {
                buckets.reset(key);
                Ok(())
            }
            Store::Redis { server, keyspace } => server.remove(keyspace.key(key), deadline).await,
        }
    }

    /// Connects ahead, so that the first decisions need not.
    pub(crate) async fn ready(&self, deadline: Duration) -> Result<()> {
        match self {
            Store::Memory { .. } => Ok(()),
            Store::Redis { server, .. } => server.ready(deadline).await,
        }
    }

    /// Closes every connection.
    pub(crate) fn close(&self) {
        if let Store::Redis { server, .. } = self {
            server.close();
        }
    }
}
