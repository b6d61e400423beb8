//! Who wants to hear of transitions.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

use super::transition::CircuitBreakerTransition;

type Listener = dyn Fn(&CircuitBreakerTransition) + Send + Sync;

#[derive(Default)]
pub(super) struct Listeners {
    /// Replaced as a whole, so that telling them holds no lock.
    all: RwLock<Arc<[Arc<Listener>]>>,
}

impl Listeners {
    pub(super) fn add(&self, listener: Arc<Listener>) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        *all = all.iter().cloned().chain([listener]).collect();
    }

    /// Tells each of them. One that panics spoils it neither for the others nor for the call that is ending.
    pub(super) fn tell(&self, transition: &CircuitBreakerTransition) {
        let all = Arc::clone(&self.all.read().unwrap_or_else(PoisonError::into_inner));
        for listener in all.iter() {
            let _ = catch_unwind(AssertUnwindSafe(|| listener(transition)));
        }
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listeners")
    }
}
