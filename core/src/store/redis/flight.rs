//! A take that was sent and is not answered yet. Whoever gives up on it leaves it in the air: its answer is awaited in
//! the background, and what it debited for nobody is given back. What stays unanswered stays unknown: it is neither
//! given back nor sent again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use redis::{RedisError, Value};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::cluster::Cluster;
use super::reply;
use super::script::Take;
use super::send::Message;
use crate::bucket::Run;

/// How long a late answer is awaited, and how long giving back may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many answers one process awaits at most: beyond, what is late stays unknown.
const MOST_LATE: usize = 4096;

/// Tells what became of a caller whose take was not answered in time. Dropped, it says that nobody used the tokens.
#[derive(Debug)]
pub(crate) struct Claim(oneshot::Sender<()>);

impl Claim {
    /// A claim and where it is heard.
    pub(crate) fn new() -> (Self, Heard) {
        let (claim, heard) = oneshot::channel();
        (Claim(claim), Heard(heard))
    }

    /// The caller was admitted some other way: what its take debited is used, and stays debited.
    pub(crate) fn used(self) {
        let _ = self.0.send(());
    }
}

/// Where a [`Claim`] is heard.
#[derive(Debug)]
pub(crate) struct Heard(oneshot::Receiver<()>);

/// What a late answer is for.
pub(super) struct Landing {
    pub(super) cluster: Arc<Cluster>,
    pub(super) take: Arc<Take>,
    pub(super) heard: Heard,
    pub(super) runtime: Handle,
}

type Reply = Pin<Box<dyn Future<Output = Result<Value, RedisError>> + Send>>;

/// A call under way: a future of its answer.
pub(super) struct Flight<'a> {
    reply: Option<Reply>,
    /// Whether it was polled, so that it may have been sent.
    begun: bool,
    /// Taken by the flight that is given up on.
    landing: &'a mut Option<Landing>,
}

impl<'a> Flight<'a> {
    pub(super) fn new(
        reply: impl Future<Output = Result<Value, RedisError>> + Send + 'static,
        landing: &'a mut Option<Landing>,
    ) -> Self {
        Flight { reply: Some(Box::pin(reply)), begun: false, landing }
    }
}

impl Future for Flight<'_> {
    type Output = Result<Value, RedisError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.begun = true;
        let Some(reply) = self.reply.as_mut() else { return Poll::Pending };
        let answer = reply.as_mut().poll(context);
        if answer.is_ready() {
            self.reply = None;
        }
        answer
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if let (true, Some(reply), Some(landing)) = (self.begun, self.reply.take(), self.landing.take()) {
            let runtime = landing.runtime.clone();
            runtime.spawn(landing.late(reply));
        }
    }
}

impl Landing {
    /// Boxed, for settling sends a message, which may be late in turn.
    fn late(self, reply: Reply) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.wait(reply))
    }

    async fn wait(self, reply: Reply) {
        // Relaxed: the count orders nothing, it only bounds.
        static LATE: AtomicUsize = AtomicUsize::new(0);
        if LATE.fetch_add(1, Ordering::Relaxed) < MOST_LATE
            && let Ok(Ok(answer)) = timeout(PATIENCE, reply).await
        {
            self.settle(answer).await;
        }
        LATE.fetch_sub(1, Ordering::Relaxed);
    }

    /// Gives back what a late answer says was debited, unless the caller used it.
    async fn settle(self, answer: Value) {
        let Take { limits, runs, .. } = &*self.take;
        let Ok(outcome) = reply::outcome(answer, limits.len(), runs.len()) else { return };
        let debited = |(run, admitted): (&Run, &i64)| if run.takes() { run.cost * (*admitted).max(0) } else { 0 };
        let tokens: i64 = runs.iter().zip(&outcome.admitted).map(debited).sum();
        if tokens > 0 && self.heard.0.await.is_err() {
            let refund = Message::Take(Arc::new(self.take.refund(tokens)));
            let _ = self.cluster.send(&refund, None, PATIENCE, &self.runtime).await;
        }
    }
}
