//! The limits in force: read by every call, changed hardly ever.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::limits::Limits;

/// Limits that may be replaced. Until they are, reading them is one load and no count that threads would fight for.
#[derive(Debug)]
pub(crate) struct InForce {
    first: Limits,
    replaced: AtomicBool,
    later: RwLock<Limits>,
}

impl InForce {
    pub(crate) fn new(limits: Limits) -> Self {
        InForce { first: limits.clone(), replaced: AtomicBool::new(false), later: RwLock::new(limits) }
    }

    /// Calls `with` with the limits in force.
    pub(crate) fn read<T>(&self, with: impl FnOnce(&Limits) -> T) -> T {
        // Acquire pairs with the release in `replace`: who sees the flag sees what it stands for.
        if !self.replaced.load(Ordering::Acquire) {
            return with(&self.first);
        }
        let later = self.later.read().unwrap_or_else(PoisonError::into_inner).clone();
        with(&later)
    }

    /// The limits in force.
    pub(crate) fn get(&self) -> Limits {
        self.read(Limits::clone)
    }

    pub(crate) fn replace(&self, limits: Limits) {
        *self.later.write().unwrap_or_else(PoisonError::into_inner) = limits;
        self.replaced.store(true, Ordering::Release);
    }
}
