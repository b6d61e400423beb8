use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a proxy has counted since it started.
///
/// A connection counts as a client's until it proves to be a replica's, by its first `REPLCONF`, `PSYNC` or `SYNC`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Connections of clients that were accepted.
    pub accepted: u64,
    /// Those of them that are open now.
    pub open: u64,
    /// Connections of replicas that are open now.
    pub replicas: u64,
    /// Whole requests that came in, by the name of the command in capitals; `CLUSTER` is one name.
    pub requests: BTreeMap<String, u64>,
    /// Replies that were swallowed.
    pub dropped: u64,
    /// Replies that others were sent in place of.
    pub replaced: u64,
}

#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<Counters>);

impl Tally {
    pub(super) fn read(&self) -> Counters {
        self.lock().clone()
    }

    /// Counts a connection for as long as the answer lives.
    pub(super) fn arrival(&self) -> Present<'_> {
        let mut counters = self.lock();
        counters.accepted += 1;
        counters.open += 1;
        Present { tally: self, replica: AtomicBool::new(false) }
    }

    pub(super) fn requests(&self, names: Vec<String>) {
        let mut counters = self.lock();
        for name in names {
            *counters.requests.entry(name).or_default() += 1;
        }
    }

    pub(super) fn instead(&self, reply: &[u8]) {
        let mut counters = self.lock();
        if reply.is_empty() { counters.dropped += 1 } else { counters.replaced += 1 }
    }

    fn lock(&self) -> MutexGuard<'_, Counters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is counted.
#[derive(Debug)]
pub(super) struct Present<'a> {
    tally: &'a Tally,
    replica: AtomicBool,
}

impl Present<'_> {
    /// Counts it as a replica's from now on.
    pub(super) fn mark_replica(&self) {
        if !self.replica.swap(true, Ordering::Relaxed) {
            let mut counters = self.tally.lock();
            counters.accepted -= 1;
            counters.open -= 1;
            counters.replicas += 1;
        }
    }

    /// Says whether it counts as a replica's.
    pub(super) fn is_replica(&self) -> bool {
        self.replica.load(Ordering::Relaxed)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        let replica = self.is_replica();
        let mut counters = self.tally.lock();
        if replica { counters.replicas -= 1 } else { counters.open -= 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_and_go() {
        let tally = Tally::default();
        let (client, replica) = (tally.arrival(), tally.arrival());
        replica.mark_replica();
        replica.mark_replica();
        let counts = |counters: Counters| (counters.accepted, counters.open, counters.replicas);
        assert_eq!(counts(tally.read()), (1, 1, 1));
        drop(client);
        assert_eq!(counts(tally.read()), (1, 0, 1));
        drop(replica);
        assert_eq!(counts(tally.read()), (1, 0, 0));
    }
}
