//! Buckets on Redis or Valkey, a single server or a cluster: one connection to each master, one script.

mod cluster;
mod connect;
mod flight;
mod offset;
mod refresh;
mod reply;
mod script;
mod send;
mod topology;

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use self::cluster::Cluster;
use self::script::Take;
use self::send::Message;
use super::url::Servers;
use crate::bucket::{Outcome, Run};
use crate::error::{Error, ErrorKind, Result};
use crate::key::ServerKey;
use crate::limits::Limits;
use crate::runtime::{Runtime, on};

pub(crate) use self::flight::{Claim, Heard};
pub(crate) use self::script::ScriptClock;

/// The servers of one store. Nothing is connected before the first call.
#[derive(Debug)]
pub(crate) struct Redis {
    cluster: Arc<Cluster>,
    clock: ScriptClock,
    runtime: Runtime,
}

impl Redis {
    pub(crate) fn new(servers: Servers, clock: ScriptClock, runtime: Runtime) -> Self {
        Redis { cluster: Cluster::new(servers), clock, runtime }
    }

    /// Decides `runs` on the bucket of `key`: one round trip. `given` is the time for [`ScriptClock::Given`]. With
    /// `heard`, what is debited for a caller who is gone by then is given back.
    pub(crate) async fn call(
        &self,
        key: ServerKey,
        limits: &Limits,
        runs: &[Run],
        given: Option<i64>,
        heard: Option<Heard>,
        deadline: Duration,
    ) -> Result<Outcome> {
        let take = Take { clock: self.clock, key, limits: limits.clone(), runs: SmallVec::from_slice(runs), given };
        let message = Message::Take(Arc::new(take));
        let outcome = self.cluster.send(&message, heard, deadline, &self.runtime()?).await?;
        outcome.ok_or_else(|| Error::new(ErrorKind::Internal, "a take was answered without an outcome"))
    }

    /// Removes the bucket of `key`: one round trip.
    pub(crate) async fn remove(&self, key: ServerKey, deadline: Duration) -> Result<()> {
        self.cluster.send(&Message::Remove(key), None, deadline, &self.runtime()?).await.map(drop)
    }

    /// Finds every master, connects to it and loads the script there.
    ///
    /// # Errors
    /// `unavailable` naming the first master that was not ready in time; the others are.
    pub(crate) async fn ready(&self, deadline: Duration) -> Result<()> {
        let runtime = self.runtime()?;
        let mut before = None;
        let loaded = async {
            self.known(&runtime, &mut before).await?;
            let mut loading = tokio::task::JoinSet::new();
            for address in self.cluster.masters() {
                let (node, runtime, handle, clock) =
                    (self.cluster.node(&address)?, &runtime, runtime.clone(), self.clock);
                loading.spawn_on(
                    async move {
                        let mut connection = node.connection(&handle).await?;
                        match reply::Verdict::of(connection.send(&[], &clock.script().load()).await, &node.address) {
                            reply::Verdict::Answer(_) => Ok(()),
                            reply::Verdict::Refused(error)
                            | reply::Verdict::Unable(error)
                            | reply::Verdict::Unknown(error) => Err(error),
                            other => Err(Error::unavailable(format!("{} is not ready: {other:?}", node.address))),
                        }
                    },
                    runtime,
                );
            }
            let mut first = Ok(());
            while let Some(loaded) = loading.join_next().await {
                first = first.and(loaded.unwrap_or_else(|_| Err(Error::unavailable("the runtime is shutting down"))));
            }
            first
        };
        let ready = on(&runtime, || timeout(deadline, loaded)).await;
        ready.unwrap_or_else(|_| {
            let why = before.map_or_else(String::new, |error| format!("; the try before: {}", error.message()));
            Err(Error::overdue(deadline, format!("getting ready{why}")))
        })
    }

    /// Closes every connection; later calls answer `closed`.
    pub(crate) fn close(&self) {
        self.cluster.close();
    }

    /// Waits until some node has said who owns what.
    async fn known(&self, runtime: &Handle, before: &mut Option<Error>) -> Result<()> {
        while self.cluster.masters().is_empty() {
            match self.cluster.owner(0, runtime).await {
                Err(error) if error.is_retryable() => {
                    *before = Some(error);
                    on(runtime, || sleep(Duration::from_millis(20))).await;
                }
                other => return other.map(drop),
            }
        }
        Ok(())
    }

    fn runtime(&self) -> Result<Handle> {
        self.runtime.handle().ok_or_else(|| {
            Error::option("a Redis store needs a tokio runtime: await within one, or give its handle to the builder")
        })
    }
}
