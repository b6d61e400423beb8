//! Numbers to watch.

use crate::store::{Fallback, Store};

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
    /// Tokens that the failure policy admitted because the server did not answer.
    pub fallback_admitted: u64,
    /// Tokens of those that were debited on the server afterwards ([`OnFailure::Local`](crate::OnFailure::Local)).
    pub fallback_settled: u64,
}

impl Stats {
    pub(crate) fn of(store: &Store, fallback: &Fallback) -> Self {
        let (fallback_admitted, fallback_settled) = fallback.counts();
        let Store::Memory { buckets, .. } = store else {
            return Stats { fallback_admitted, fallback_settled, ..Stats::default() };
        };
        let forgotten = buckets.forgotten();
        Stats {
            local_keys: buckets.len() as u64,
            evicted_keys: forgotten.buckets,
            forgiven_tokens: forgotten.tokens,
            ..Stats::default()
        }
    }
}
