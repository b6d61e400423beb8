//! Buckets in this process: a sharded map that never holds more than it was told to.
//!
//! A bucket that is full again is the same as none and is dropped before the map would grow. When there is no room left, the
//! bucket that is full soonest goes first, so that an exhausted one is the last to be forgotten; what was
//! forgiven by that is counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;
use std::hint;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{PoisonError, RwLock, RwLockWriteGuard, TryLockError};

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::bucket::{Bucket, Change, One, Outcome, Run};
use crate::limits::Limits;

/// More shards than cores, so that two threads seldom want the same one.
const MOST_SHARDS: usize = 256;

/// How often a taken lock is looked at before a thread goes to sleep for it.
const LOOKS: u32 = 8;

/// Below this many keys a shard, fewer shards keep the bound and the order of eviction exact.
const KEYS_A_SHARD: usize = 256;

#[derive(Debug)]
pub(crate) struct Memory<N = ()> {
    shards: Box<[Shard<N>]>,
    hasher: RandomState,
    keys_a_shard: usize,
}

impl<N: Clone> Memory<N> {
    /// Every key with its note.
    pub(crate) fn noted(&self) -> Vec<(Vec<u8>, N)> {
        let told = |entry: &Entry<N>| (entry.key.to_vec(), entry.note.clone());
        self.shards.iter().flat_map(|shard| shard.lock().table.iter().map(told).collect::<Vec<_>>()).collect()
    }
}

impl Memory {
    /// Decides `runs` on the bucket of `key` at `now`.
    pub(crate) fn call(&self, key: &[u8], limits: &Limits, now: i64, runs: &[Run]) -> Outcome {
        self.call_noting(key, limits, now, runs, ())
    }
}

/// On cache lines of its own: neighbours would slow each other down.
#[derive(Debug)]
#[repr(align(128))]
struct Shard<N> {
    buckets: RwLock<Buckets<N>>,
    /// The last answer was a denial. The next may well be one, and a denial writes nothing: so it is sought under a lock
    /// that readers share. Only a hint, which orders nothing: every load and store of it is relaxed.
    denied: AtomicBool,
}

/// Apart from the word of its lock, which waiting threads keep looking at.
#[derive(Debug)]
#[repr(align(64))]
struct Buckets<N> {
    table: HashTable<Entry<N>>,
    /// When each bucket was to be full, as last looked at, and its hash. Takes only move that time on, so the
    /// first in line is looked at again before it goes; what has no bucket any more is passed over.
    line: BinaryHeap<Reverse<(i64, u64)>>,
    forgotten: Forgotten,
}

/// One cache line where the note is empty: a look at random keys is one miss, and one for the table's tags.
#[derive(Debug)]
#[repr(align(64))]
struct Entry<N> {
    bucket: Bucket,
    key: SmallVec<[u8; 16]>,
    /// What the owner of the store wants to know of the bucket beside what it decides.
    note: N,
}

/// What the bound on keys has cost so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Forgotten {
    /// Buckets dropped before they were full.
    pub(crate) buckets: u64,
    /// Tokens that those buckets lacked.
    pub(crate) tokens: u64,
}

impl<N> Memory<N> {
    /// A store of at most `most` keys (1 or more).
    pub(crate) fn new(most: usize) -> Self {
        let shards = (most / KEYS_A_SHARD).clamp(1, MOST_SHARDS);
        let shards = if shards.is_power_of_two() { shards } else { shards.next_power_of_two() / 2 };
        Memory {
            shards: (0..shards).map(|_| Shard::empty()).collect(),
            hasher: RandomState::default(),
            keys_a_shard: most / shards,
        }
    }

    /// A store that forgets nothing: for clocks that may step back to before a bucket was full.
    pub(crate) fn unbounded() -> Self {
        Memory { keys_a_shard: usize::MAX, ..Memory::new(MOST_SHARDS * KEYS_A_SHARD) }
    }

    /// Takes one token where the bucket is there and can decide that by itself ([`Bucket::take_one`]).
    #[inline]
    pub(crate) fn take_one(&self, key: &[u8], limits: &Limits, now: i64) -> Option<One> {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard(hash);
        let same = |entry: &Entry<N>| entry.key.as_slice() == key;
        if shard.denied.load(Relaxed) {
            let buckets = shard.buckets.read().unwrap_or_else(PoisonError::into_inner);
            let looked = buckets.table.find(hash, same).and_then(|entry| entry.bucket.look_one(limits, now));
            if let Some(one) = looked.filter(|one| !one.taken) {
                return Some(one);
            }
            shard.denied.store(false, Relaxed);
        }
        let one = shard.lock().table.find_mut(hash, same)?.bucket.take_one(limits, now)?;
        if !one.taken {
            shard.denied.store(true, Relaxed);
        }
        Some(one)
    }

    /// Decides `runs` on the bucket of `key` at `now`; a bucket that is stored first takes `note` along.
    pub(crate) fn call_noting(&self, key: &[u8], limits: &Limits, now: i64, runs: &[Run], note: N) -> Outcome {
        let hash = self.hasher.hash_one(key);
        let mut buckets = self.shard(hash).lock();
        let same = |entry: &Entry<N>| entry.key.as_slice() == key;
        if let Some(found) = buckets.table.find_mut(hash, same) {
            let (outcome, change) = found.bucket.apply(limits, now, runs);
            if change == Change::Gone
                && let Ok(found) = buckets.table.find_entry(hash, same)
            {
                found.remove();
            }
            return outcome;
        }
        let mut bucket = Bucket::full(limits, now);
        let (outcome, change) = bucket.apply(limits, now, runs);
        if change == Change::Stored {
            let entry = Entry { bucket, key: SmallVec::from_slice(key), note };
            buckets.insert(hash, entry, now, self);
        }
        outcome
    }

    /// The tokens that the bucket of `key` lacks at `now`, if there is one, which is then forgotten.
    pub(crate) fn take_out(&self, key: &[u8], now: i64) -> Option<u64> {
        let hash = self.hasher.hash_one(key);
        let mut buckets = self.shard(hash).lock();
        let found = buckets.table.find_entry(hash, |entry| entry.key.as_slice() == key).ok()?;
        Some(found.remove().0.bucket.missing(now))
    }

    /// Forgets the bucket of `key`: it is full again.
    pub(crate) fn reset(&self, key: &[u8]) {
        let hash = self.hasher.hash_one(key);
        if let Ok(found) = self.shard(hash).lock().table.find_entry(hash, |entry| entry.key.as_slice() == key) {
            found.remove();
        }
    }

    /// How many buckets there are now.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().table.len()).sum()
    }

    /// What the bound on keys has cost so far.
    pub(crate) fn forgotten(&self) -> Forgotten {
        self.shards.iter().map(|shard| shard.lock().forgotten).fold(Forgotten::default(), |sum, one| Forgotten {
            buckets: sum.buckets + one.buckets,
            tokens: sum.tokens.saturating_add(one.tokens),
        })
    }

    /// The high bits choose the shard; the table uses the others.
    fn shard(&self, hash: u64) -> &Shard<N> {
        &self.shards[(hash >> 48) as usize & (self.shards.len() - 1)]
    }
}

impl<N> Shard<N> {
    fn empty() -> Self {
        Shard { buckets: RwLock::new(Buckets::empty()), denied: AtomicBool::new(false) }
    }

    /// A lock is held for some fifty nanoseconds, and to be put to sleep and woken takes a hundred times that: so
    /// whoever finds it taken looks again a few times, less and less often, before going to sleep for it.
    ///
    /// Nothing under the lock leaves a bucket half written, so that a poisoned lock is as good as any.
    #[inline]
    fn lock(&self) -> RwLockWriteGuard<'_, Buckets<N>> {
        for turn in 0..LOOKS {
            match self.buckets.try_write() {
                Ok(buckets) => return buckets,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => (0..4 << turn).for_each(|_| hint::spin_loop()),
            }
        }
        self.buckets.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<N> Buckets<N> {
    fn empty() -> Self {
        Buckets { table: HashTable::new(), line: BinaryHeap::new(), forgotten: Forgotten::default() }
    }

    fn insert(&mut self, hash: u64, entry: Entry<N>, now: i64, memory: &Memory<N>) {
        let rehash = |entry: &Entry<N>| memory.hasher.hash_one(entry.key.as_slice());
        if memory.keys_a_shard < usize::MAX {
            self.make_room(now, memory.keys_a_shard, rehash);
            self.line.push(Reverse((entry.bucket.full_at(), hash)));
        }
        self.table.insert_unique(hash, entry, rehash);
    }

    /// Leaves less than `most` buckets, and a line not much longer than there are.
    fn make_room(&mut self, now: i64, most: usize, rehash: impl Fn(&Entry<N>) -> u64) {
        // What is full again stays until the table would have to grow: most keys come back, and find their place. So it
        // does grow where a quarter is in use, or the same keys would go and come for ever.
        let room = self.table.capacity();
        if self.table.len() == room && room < most {
            self.table.retain(|entry| entry.bucket.full_at() > now);
            if self.table.len() > room / 4 {
                self.table.reserve(room.min(most), &rehash);
            }
        }
        while self.table.len() >= most {
            self.drop_first(now, &rehash);
        }
        if self.line.len() > 2 * self.table.len() + 64 {
            self.line = self.table.iter().map(|entry| Reverse((entry.bucket.full_at(), rehash(entry)))).collect();
        }
    }

    /// Drops the first bucket in line, or sends it back to where it belongs by now.
    fn drop_first(&mut self, now: i64, rehash: &impl Fn(&Entry<N>) -> u64) {
        let Some(Reverse((due, hash))) = self.line.pop() else { return };
        let Ok(found) = self.table.find_entry(hash, |entry| rehash(entry) == hash) else { return };
        let bucket = &found.get().bucket;
        if bucket.full_at() > due {
            self.line.push(Reverse((bucket.full_at(), hash)));
            return;
        }
        let tokens = bucket.missing(now);
        if tokens > 0 {
            self.forgotten.buckets += 1;
            self.forgotten.tokens = self.forgotten.tokens.saturating_add(tokens);
        }
        found.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn taken(memory: &Memory, key: &str, limits: &Limits, now: i64, cost: i64) -> bool {
        memory.call(key.as_bytes(), limits, now, &[Run::take(cost, 0)]).admitted[0] > 0
    }

    #[test]
    fn a_million_keys_stay_within_the_bound_and_an_exhausted_bucket_is_not_forgotten() {
        let limits: Limits = "10/h".parse().unwrap();
        let memory = Memory::<()>::new(10_000);
        assert!(taken(&memory, "greedy", &limits, 0, 10));
        for i in 0..1_000_000 {
            assert!(taken(&memory, &format!("key {i}"), &limits, 0, 1));
        }
        assert!(memory.len() <= 10_000, "{}", memory.len());
        assert!(!taken(&memory, "greedy", &limits, 0, 1));
        let forgotten = memory.forgotten();
        assert_eq!(forgotten.buckets, forgotten.tokens);
        assert_eq!(forgotten.buckets as usize, 1_000_001 - memory.len());
    }

    #[test]
    fn the_fullest_goes_first() {
        let limits: Limits = "10/s".parse().unwrap();
        let memory = Memory::<()>::new(3);
        for (key, cost) in [("five", 5), ("one", 1), ("nine", 9), ("two", 2)] {
            assert!(taken(&memory, key, &limits, 0, cost));
        }
        assert!(taken(&memory, "one", &limits, 0, 10), "it was forgotten, and is full");
        assert!(!taken(&memory, "five", &limits, 0, 6));
        assert!(!taken(&memory, "nine", &limits, 0, 2));
        assert_eq!(memory.forgotten(), Forgotten { buckets: 2, tokens: 3 });
    }

    #[test]
    fn a_bucket_that_took_more_since_moves_back_in_line() {
        let limits: Limits = "10/s".parse().unwrap();
        let memory = Memory::<()>::new(2);
        assert!(taken(&memory, "a", &limits, 0, 1));
        assert!(taken(&memory, "b", &limits, 0, 2));
        assert!(taken(&memory, "a", &limits, 0, 9));
        assert!(taken(&memory, "c", &limits, 0, 1));
        assert!(!taken(&memory, "a", &limits, 0, 1));
    }

    #[test]
    fn full_buckets_are_dropped_on_the_way() {
        let limits: Limits = "10/s".parse().unwrap();
        let memory = Memory::<()>::new(1_000_000);
        for i in 0..100_000_i64 {
            assert!(taken(&memory, &i.to_string(), &limits, i * 1000, 1));
        }
        assert!(memory.len() <= 4000, "{}", memory.len());
        assert_eq!(memory.forgotten(), Forgotten::default());
    }

    #[test]
    fn taking_and_giving_back_for_ever_leaves_nothing() {
        let limits: Limits = "1/d".parse().unwrap();
        let memory = Memory::<()>::new(1000);
        for i in 0..10_000 {
            assert!(taken(&memory, "k", &limits, i, 1));
            let _ = memory.call(b"k", &limits, i, &[Run::refund(1)]);
        }
        assert_eq!(memory.len(), 0);
        let line: usize = memory.shards.iter().map(|shard| shard.lock().line.len()).sum();
        assert!(line < 200, "{line}");
        assert!(taken(&memory, "k", &limits, SECOND, 1));
        memory.reset(b"k");
        assert_eq!(memory.len(), 0);
    }
}
