//! The way of a call through the breaker: from asking to its result, and from there to another state.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::CircuitBreaker;
use super::machine::{Answer, Machine};
use super::permit::{CallNotPermitted, CallOutcome};
use super::sums::Mark;
use super::time_window::Ended;
use super::transition::{CircuitBreakerState as State, CircuitBreakerTransition, Word};

/// What a permit stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Issued {
    pub(super) generation: u64,
    /// When, by the clock.
    pub(super) at: u64,
    /// Its place among the probes, if it is one.
    pub(super) probe: Option<u64>,
}

impl CircuitBreaker {
    pub(super) fn word(&self) -> Word {
        // Acquire pairs with the release in `change`: who sees a generation sees the window emptied for it.
        Word::from_bits(self.word.load(Ordering::Acquire))
    }

    pub(super) fn issue(&self) -> Result<Issued, CallNotPermitted> {
        loop {
            let word = self.word();
            // After the word: a moment before the one that its state was entered at can then only mean a step back.
            let at = self.clock.now();
            let refused = match word.state() {
                State::Closed | State::Disabled => {
                    return Ok(Issued { generation: word.generation(), at, probe: None });
                }
                State::ForcedOpen => CallNotPermitted { state: State::ForcedOpen, retry_after: None },
                State::Open | State::HalfOpen => {
                    let current = |machine: &mut Machine| {
                        (machine.generation() == word.generation()).then(|| machine.ask(&self.settings, at))
                    };
                    match self.change(current) {
                        None => continue,
                        Some(Answer::Probe { generation, id }) => {
                            return Ok(Issued { generation, at, probe: Some(id) });
                        }
                        Some(Answer::Refused { state, retry_after }) => {
                            CallNotPermitted { state, retry_after: retry_after.map(Duration::from_micros) }
                        }
                    }
                }
            };
            // Relaxed: a statistic.
            self.not_permitted.fetch_add(1, Ordering::Relaxed);
            return Err(refused);
        }
    }

    pub(super) fn settle(&self, issued: Issued, outcome: CallOutcome, elapsed: u64, now: u64) {
        let word = self.word();
        let generation = issued.generation;
        if word.generation() != generation {
            return;
        }
        let mark = Mark { failed: outcome == CallOutcome::Failure, slow: elapsed > self.settings.slow_duration };
        if let Some(id) = issued.probe {
            self.change_in(generation, |machine| machine.settle(&self.settings, id, mark, now));
        } else if word.state() == State::Closed {
            let in_force = || self.word().generation() == generation;
            let clock = || self.clock.now();
            let ended = Ended { generation, now, mark, in_force: &in_force, clock: &clock };
            let Some(sums) = self.window.record(&ended) else { return };
            if sums.calls >= self.settings.minimum && self.settings.thresholds.reached(sums, sums.calls) {
                self.change_in(generation, |machine| machine.open(&self.settings, now, sums));
            }
        }
    }

    pub(super) fn release(&self, issued: Issued) {
        if let Some(id) = issued.probe {
            self.change_in(issued.generation, |machine| machine.release(id));
        }
    }

    /// Changes the machine if it is still of `generation`.
    fn change_in(&self, generation: u64, work: impl FnOnce(&mut Machine)) {
        self.change(|machine| {
            if machine.generation() == generation {
                work(machine);
            }
        });
    }

    /// Changes the machine, makes a new generation known, and tells the listeners once the lock is free.
    pub(super) fn change<T>(&self, work: impl FnOnce(&mut Machine) -> T) -> T {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, before) = (machine.state(), machine.generation());
        let result = work(&mut machine);
        let (to, generation) = (machine.state(), machine.generation());
        if generation != before {
            if to == State::Closed {
                self.window.clear(generation);
            }
            // Release: the emptied window comes before the generation that it is for.
            self.word.store(Word::new(to, generation).bits(), Ordering::Release);
        }
        drop(machine);
        if from != to {
            self.listeners.tell(&CircuitBreakerTransition { from, to, generation });
        }
        result
    }
}
