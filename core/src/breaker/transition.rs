//! The states by name, and what a listener is told when one follows another.

use std::fmt;

/// What a [`CircuitBreaker`](super::CircuitBreaker) does with calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CircuitBreakerState {
    /// Calls pass, and their results are watched.
    Closed,
    /// Calls are refused until the wait is over.
    Open,
    /// A few calls pass as probes; their results decide what follows.
    HalfOpen,
    /// Calls are refused until somebody says otherwise.
    ForcedOpen,
    /// Calls pass, and nothing is watched.
    Disabled,
}

impl CircuitBreakerState {
    /// The state's stable name, such as `"half_open"`.
    pub const fn name(self) -> &'static str {
        match self {
            CircuitBreakerState::Closed => "closed",
            CircuitBreakerState::Open => "open",
            CircuitBreakerState::HalfOpen => "half_open",
            CircuitBreakerState::ForcedOpen => "forced_open",
            CircuitBreakerState::Disabled => "disabled",
        }
    }
}

impl fmt::Display for CircuitBreakerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One state followed another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CircuitBreakerTransition {
    /// The state before.
    pub from: CircuitBreakerState,
    /// The state that was entered.
    pub to: CircuitBreakerState,
    /// Grows with every transition. Threads may tell a listener of theirs in another order; this is the true one.
    pub generation: u64,
}

/// The state and its generation in one word, so that a closed breaker is asked by one load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(u64);

const STATE_BITS: u32 = 3;

impl Word {
    pub(super) fn new(state: CircuitBreakerState, generation: u64) -> Self {
        Word(generation << STATE_BITS | state as u64)
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        Word(bits)
    }

    pub(super) fn bits(self) -> u64 {
        self.0
    }

    pub(super) fn generation(self) -> u64 {
        self.0 >> STATE_BITS
    }

    pub(super) fn state(self) -> CircuitBreakerState {
        match self.0 & ((1 << STATE_BITS) - 1) {
            0 => CircuitBreakerState::Closed,
            1 => CircuitBreakerState::Open,
            2 => CircuitBreakerState::HalfOpen,
            3 => CircuitBreakerState::ForcedOpen,
            _ => CircuitBreakerState::Disabled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_holds_its_state_and_generation() {
        use CircuitBreakerState::*;
        for state in [Closed, Open, HalfOpen, ForcedOpen, Disabled] {
            let word = Word::from_bits(Word::new(state, 1 << 60).bits());
            assert_eq!((word.state(), word.generation()), (state, 1 << 60));
        }
    }
}
