//! Keeping the topology true: one question at a time, asked of several nodes, the first good answer taken.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::cmd;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::cluster::Cluster;
use super::connect::Node;
use super::reply::{Verdict, says_no_cluster};
use super::topology::Topology;
use crate::error::{Error, ErrorKind, Result};
use crate::store::url::Servers;

/// Between two refreshes, however many callers see a reason for one.
const LEAST_INTERVAL: Duration = Duration::from_millis(100);

/// How long one node may take to answer, connecting included.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long the next node is left alone when the one before has not answered yet.
const STAGGER: Duration = Duration::from_millis(25);

/// Whether a refresh is under way, and how the last one ended.
#[derive(Debug)]
pub(super) struct Refresh {
    running: AtomicBool,
    last: Mutex<Option<Instant>>,
    ended: watch::Sender<Result<()>>,
}

impl Refresh {
    pub(super) fn new() -> Self {
        Refresh { running: AtomicBool::new(false), last: Mutex::new(None), ended: watch::Sender::new(Ok(())) }
    }

    /// Starts a refresh unless one is under way, and returns where its end will show.
    pub(super) fn start(&self, cluster: &Arc<Cluster>, runtime: &Handle) -> watch::Receiver<Result<()>> {
        let ended = self.ended.subscribe();
        // Acquire and release order one refresh after the other; who loses the exchange awaits the winner's.
        if self.running.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            let cluster = Arc::clone(cluster);
            runtime.spawn({
                let runtime = runtime.clone();
                async move { cluster.refresh.run(&cluster, &runtime).await }
            });
        }
        ended
    }

    async fn run(&self, cluster: &Arc<Cluster>, runtime: &Handle) {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rest) = last.and_then(|last| LEAST_INTERVAL.checked_sub(last.elapsed())) {
            sleep(rest).await;
        }
        let result = ask_all(cluster, runtime).await.map(|topology| cluster.adopt(topology));
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.running.store(false, Ordering::Release);
        let _ = self.ended.send_replace(result);
    }
}

/// The first good answer of all nodes that may know; else the error that says most.
async fn ask_all(cluster: &Arc<Cluster>, runtime: &Handle) -> Result<Topology> {
    let mut asked = JoinSet::new();
    for (i, node) in cluster.candidates().into_iter().enumerate() {
        let (servers, handle, runtime) = (cluster.servers.clone(), runtime, runtime.clone());
        asked.spawn_on(
            async move {
                sleep(STAGGER * i as u32).await;
                let what = format!("asking {} for the cluster's slots", node.address);
                timeout(PATIENCE, ask(&node, &servers, &runtime))
                    .await
                    .unwrap_or_else(|_| Err(Error::overdue(PATIENCE, what)))
            },
            handle,
        );
    }
    let mut worst: Option<Error> = None;
    while let Some(answer) = asked.join_next().await {
        match answer {
            Ok(Ok(topology)) => return Ok(topology),
            Ok(Err(error)) if worst.as_ref().is_none_or(Error::is_retryable) => worst = Some(error),
            Ok(Err(_)) | Err(_) => {}
        }
    }
    Err(worst.unwrap_or_else(|| Error::unavailable("no node of the store is known")))
}

async fn ask(node: &Arc<Node>, servers: &Servers, runtime: &Handle) -> Result<Topology> {
    let mut connection = node.connection(runtime).await?;
    let mut slots = cmd("CLUSTER");
    slots.arg("SLOTS");
    let answer = connection.send(&[], &slots).await;
    let no_cluster = answer.as_ref().is_err_and(says_no_cluster);
    if no_cluster && servers.cluster {
        let says = format!("{} is not a cluster node; use redis:// for a single server", node.address);
        return Err(Error::new(ErrorKind::UnsupportedServer, says));
    }
    if no_cluster {
        return Ok(Topology::single(node.address.clone()));
    }
    match Verdict::of(answer, &node.address) {
        Verdict::Answer(_) if servers.db != 0 => Err(Error::option(format!(
            "{} is a cluster node, and a cluster has database 0 only; leave /{} out of the URL",
            node.address, servers.db
        ))),
        Verdict::Answer(slots) => Topology::read(&slots, &node.address).ok_or_else(|| {
            Error::unavailable(format!("{} serves no slots; it has not joined its cluster yet", node.address))
        }),
        Verdict::Refused(error) | Verdict::Unable(error) | Verdict::Unknown(error) => Err(error),
        Verdict::Later(says) | Verdict::Moved(says) | Verdict::Ask(says) => Err(Error::unavailable(says)),
        Verdict::NoScript => Err(Error::unavailable(format!("{} answered NOSCRIPT to CLUSTER SLOTS", node.address))),
    }
}
