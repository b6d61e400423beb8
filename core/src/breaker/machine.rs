//! The states and the ways between them: pure, with time and randomness given.
//!
//! A clock may step back. Every moment that the machine waits from is then moved back with it, so that no wait is ever
//! longer than what was asked for, counted from the step.

use super::config::Settings;
use super::sums::{Mark, Sums};
use super::transition::CircuitBreakerState as State;

#[derive(Debug)]
pub(super) struct Machine {
    phase: Phase,
    /// Moves with every change of the phase, and with every reset: results of another generation mean nothing.
    generation: u64,
    /// How often it opened since it was last closed.
    opened: u32,
    random: u64,
}

#[derive(Debug)]
enum Phase {
    Closed,
    Open {
        since: u64,
        wait: u64,
        /// What it opened for.
        sums: Sums,
    },
    HalfOpen {
        since: u64,
        sums: Sums,
        probes: Vec<Probe>,
        next: u64,
    },
    ForcedOpen,
    Disabled,
}

/// A probe that has not reported.
#[derive(Debug)]
struct Probe {
    id: u64,
    since: u64,
}

/// What a caller gets who asks a breaker that is open or half open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Probe { generation: u64, id: u64 },
    Refused { state: State, retry_after: Option<u64> },
}

impl Machine {
    pub(super) fn new(seed: u64) -> Self {
        // The first generation is 1: 0 is what empty counters hold.
        Machine { phase: Phase::Closed, generation: 1, opened: 0, random: seed }
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn state(&self) -> State {
        match self.phase {
            Phase::Closed => State::Closed,
            Phase::Open { .. } => State::Open,
            Phase::HalfOpen { .. } => State::HalfOpen,
            Phase::ForcedOpen => State::ForcedOpen,
            Phase::Disabled => State::Disabled,
        }
    }

    /// What was counted outside of the closed state, whose window keeps its own.
    pub(super) fn sums(&self) -> Sums {
        match self.phase {
            Phase::Open { sums, .. } | Phase::HalfOpen { sums, .. } => sums,
            Phase::Closed | Phase::ForcedOpen | Phase::Disabled => Sums::default(),
        }
    }

    /// Probes that have not reported.
    pub(super) fn probing(&self) -> usize {
        if let Phase::HalfOpen { probes, .. } = &self.phase { probes.len() } else { 0 }
    }

    /// How long an open breaker stays so.
    pub(super) fn remaining(&self, now: u64) -> Option<u64> {
        let Phase::Open { since, wait, .. } = self.phase else { return None };
        Some(wait - now.saturating_sub(since).min(wait))
    }

    /// Asks for a place at `now`, in a state that is open or half open.
    pub(super) fn ask(&mut self, settings: &Settings, now: u64) -> Answer {
        match &mut self.phase {
            Phase::Open { since, wait, .. } => {
                *since = now.min(*since);
                if now - *since >= *wait {
                    self.half_open(settings, now);
                }
            }
            Phase::HalfOpen { since, probes, sums, .. } => {
                *since = now.min(*since);
                probes.iter_mut().for_each(|probe| probe.since = now.min(probe.since));
                if settings.max_half_open.is_some_and(|most| now - *since >= most) {
                    let sums = *sums;
                    self.open(settings, now, sums);
                } else if sums.calls as usize + probes.len() >= settings.probes {
                    probes.retain(|probe| now - probe.since < settings.lease);
                }
            }
            Phase::Closed | Phase::ForcedOpen | Phase::Disabled => {}
        }
        if let Phase::HalfOpen { probes, sums, next, .. } = &mut self.phase
            && sums.calls as usize + probes.len() < settings.probes
        {
            let id = *next;
            *next += 1;
            probes.push(Probe { id, since: now });
            return Answer::Probe { generation: self.generation, id };
        }
        Answer::Refused { state: self.state(), retry_after: self.remaining(now) }
    }

    /// The result of a probe. One whose place went to another caller means nothing any more.
    pub(super) fn settle(&mut self, settings: &Settings, id: u64, mark: Mark, now: u64) {
        let Phase::HalfOpen { probes, sums, .. } = &mut self.phase else { return };
        let Some(at) = probes.iter().position(|probe| probe.id == id) else { return };
        probes.swap_remove(at);
        sums.add(mark);
        let sums = *sums;
        // Measured against all the probes there will be: once enough have failed, the others cannot mend it.
        if settings.thresholds.reached(sums, settings.probes as u64) {
            self.open(settings, now, sums);
        } else if sums.calls as usize >= settings.probes {
            self.close();
        }
    }

    /// A probe that ended without a result gives its place back.
    pub(super) fn release(&mut self, id: u64) {
        if let Phase::HalfOpen { probes, .. } = &mut self.phase {
            probes.retain(|probe| probe.id != id);
        }
    }

    /// Opens for `sums`, longer each time until it was closed again.
    pub(super) fn open(&mut self, settings: &Settings, now: u64, sums: Sums) {
        let times = settings.multiplier.saturating_pow(self.opened);
        let wait = settings.wait.saturating_mul(times).min(settings.max_wait);
        let most_off = wait / 100 * settings.jitter + wait % 100 * settings.jitter / 100;
        let off = self.draw() % (most_off + 1);
        self.opened = self.opened.saturating_add(1);
        // Not below a microsecond: open for no time at all would not be open.
        self.enter(Phase::Open { since: now, wait: (wait - off).max(1), sums });
    }

    /// Opens for `wait`, or stays open for that long if it would be for less. What was forced stays.
    pub(super) fn open_for(&mut self, wait: u64, now: u64) {
        let forced = matches!(self.phase, Phase::ForcedOpen | Phase::Disabled);
        if forced || self.remaining(now).is_some_and(|remaining| remaining >= wait) {
            return;
        }
        let sums = self.sums();
        self.enter(Phase::Open { since: now, wait, sums });
    }

    fn half_open(&mut self, settings: &Settings, now: u64) {
        let probes = Vec::with_capacity(settings.probes);
        self.enter(Phase::HalfOpen { since: now, sums: Sums::default(), probes, next: 0 });
    }

    pub(super) fn close(&mut self) {
        self.opened = 0;
        self.enter(Phase::Closed);
    }

    pub(super) fn force_open(&mut self) {
        self.enter(Phase::ForcedOpen);
    }

    pub(super) fn disable(&mut self) {
        self.enter(Phase::Disabled);
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation += 1;
    }

    /// SplitMix64: small, and good enough to keep processes out of step.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.random;
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ bits >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breaker::CircuitBreakerConfig;
    use std::time::Duration;

    fn waits(config: CircuitBreakerConfig, times: usize) -> Vec<u64> {
        let settings = config.settings().unwrap();
        let mut machine = Machine::new(settings.seed.unwrap_or(0));
        let mut wait = || {
            machine.open(&settings, 0, Sums::default());
            machine.remaining(0).unwrap()
        };
        (0..times).map(|_| wait()).collect()
    }

    #[test]
    fn each_opening_waits_longer_up_to_the_cap() {
        let config = CircuitBreakerConfig::new().wait_duration_in_open_state(Duration::from_micros(1_500)).jitter(0);
        let config = config.max_wait_duration_in_open_state(Duration::from_micros(20_000)).backoff_multiplier(3);
        assert_eq!(waits(config.clone(), 5), [1_500, 4_500, 13_500, 20_000, 20_000]);
        assert_eq!(waits(config.backoff_multiplier(1), 3), [1_500; 3]);
    }

    #[test]
    fn a_cap_holds_however_often_it_opened() {
        assert_eq!(waits(CircuitBreakerConfig::new().jitter(0), 200).last(), Some(&60_000_000));
    }

    #[test]
    fn jitter_shortens_by_up_to_its_part_and_uses_all_of_it() {
        let day = Duration::from_secs(86_400);
        for (percent, config) in [(20, CircuitBreakerConfig::new()), (100, CircuitBreakerConfig::new().jitter(100))] {
            let waits = waits(config.wait_duration_in_open_state(day).jitter_seed(7), 1_000);
            let (most, least) = (86_400_000_000, 86_400_000_000 / 100 * (100 - percent));
            assert!(waits.iter().all(|wait| (least..=most).contains(wait)));
            let part = |wait: u64| (wait - least) * 10 / (most - least + 1);
            let parts: std::collections::BTreeSet<u64> = waits.into_iter().map(part).collect();
            assert_eq!(parts.len(), 10, "every tenth of the range is drawn");
        }
    }
}
