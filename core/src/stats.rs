//! Numbers to watch.

use crate::store::Store;

/// What the local state of a limiter holds, and what its bound has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Buckets in this process now; at most `max_local_keys`.
    pub local_keys: u64,
    /// Buckets that were forgotten before they were full because there was no room.
    pub evicted_keys: u64,
    /// Tokens that those buckets lacked: what the evictions forgave.
    pub forgiven_tokens: u64,
}

impl Stats {
    pub(crate) fn of(store: &Store) -> Self {
        let Store::Memory { buckets, .. } = store else { return Stats::default() };
        let forgotten = buckets.forgotten();
        Stats { local_keys: buckets.len() as u64, evicted_keys: forgotten.buckets, forgiven_tokens: forgotten.tokens }
    }
}
