//! The last N calls, counted without a lock.
//!
//! A ring of slots, one for each call, and the sums of what the slots hold. A call takes the next slot, puts its mark
//! there in exchange for the mark of the call N before it, and changes the sums by the difference. As every mark comes out
//! of its slot exactly once, the sums cannot drift. What calls that end at the very same moment may do is swap places:
//! which of the oldest marks leaves first is then as they happened to run. With one thread all is exact.
//!
//! Slots and sums carry the generation that they belong to, so emptying the window is one store, and a result that
//! comes too late for its generation finds that out where it would be counted.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::sums::{Mark, Sums};

/// A sum may be below 0 for a moment, when a mark is taken out by one thread before another has added it. The sums share
/// a word, so each is kept this much higher, and none borrows from its neighbour.
const BIAS: u64 = 1 << 14;
const FIELD: u64 = 0xFFFF;
const CALLS: u32 = 0;
const FAILED: u32 = 16;
const SLOW: u32 = 32;
const GENERATION: u32 = 48;

const SLOT_FAILED: u32 = 1;
const SLOT_SLOW: u32 = 2;
const SLOT_GENERATION: u32 = 2;

#[derive(Debug)]
pub(super) struct CountWindow {
    /// Counts the calls and never starts again: a ring has no first slot.
    next: AtomicU64,
    /// Each a generation and a mark.
    slots: Box<[AtomicU32]>,
    /// A generation and three biased sums.
    sums: AtomicU64,
}

impl CountWindow {
    /// At most 10,000 calls, so that sums and bias fit their fields.
    pub(super) fn new(calls: u32, generation: u64) -> Self {
        let slots = (0..calls).map(|_| AtomicU32::new(slot_generation(generation.wrapping_sub(1)))).collect();
        CountWindow { next: AtomicU64::new(0), slots, sums: AtomicU64::new(empty(generation)) }
    }

    /// Empties the window for `generation`.
    pub(super) fn clear(&self, generation: u64) {
        // Relaxed: the state word, stored with release afterwards, is what makes the new generation known.
        self.sums.store(empty(generation), Ordering::Relaxed);
    }

    /// Counts a call. None when nothing changed that could open the breaker, or the generation is over.
    pub(super) fn record(&self, generation: u64, mark: Mark) -> Option<Sums> {
        // Relaxed: it only deals out places; the slots' own exchange says who was there before.
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let slot = &self.slots[(next % self.slots.len() as u64) as usize];
        let mine = slot_generation(generation);
        let new = mine | if mark.failed { SLOT_FAILED } else { 0 } | if mark.slow { SLOT_SLOW } else { 0 };
        // Relaxed: nothing else is read on the strength of a slot.
        let mut old = slot.load(Ordering::Relaxed);
        loop {
            if old == new {
                // The same mark once more: to exchange it for itself would change nothing.
                return None;
            }
            if is_later(old, mine) {
                return None;
            }
            match slot.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => old = now,
            }
        }
        let held = old >> SLOT_GENERATION == mine >> SLOT_GENERATION;
        let field = |flag: u32, at: u32| {
            let gone = held && old & flag != 0;
            u64::from(new & flag != 0).wrapping_sub(u64::from(gone)) << at
        };
        let change =
            (u64::from(!held) << CALLS).wrapping_add(field(SLOT_FAILED, FAILED)).wrapping_add(field(SLOT_SLOW, SLOW));
        // Relaxed: all sums are in this one word, so whoever completes what opens the breaker sees it as it is.
        let mut sums = self.sums.load(Ordering::Relaxed);
        loop {
            if sums >> GENERATION != generation & FIELD {
                return None;
            }
            let changed = sums.wrapping_add(change);
            match self.sums.compare_exchange_weak(sums, changed, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(unpack(changed)),
                Err(now) => sums = now,
            }
        }
    }

    /// What the window holds of `generation`.
    pub(super) fn sums(&self, generation: u64) -> Sums {
        // Relaxed: one word, and nothing is read on the strength of it.
        let sums = self.sums.load(Ordering::Relaxed);
        if sums >> GENERATION == generation & FIELD { unpack(sums) } else { Sums::default() }
    }
}

fn empty(generation: u64) -> u64 {
    (generation & FIELD) << GENERATION | BIAS << SLOW | BIAS << FAILED | BIAS << CALLS
}

fn unpack(sums: u64) -> Sums {
    let field = |at: u32| (sums >> at & FIELD).saturating_sub(BIAS);
    Sums { calls: field(CALLS), failed: field(FAILED), slow: field(SLOW) }
}

/// The generation as a slot holds it: its low 30 bits.
fn slot_generation(generation: u64) -> u32 {
    (generation as u32) << SLOT_GENERATION
}

/// Whether a slot belongs to a generation after that of `mine`; generations go round.
fn is_later(slot: u32, mine: u32) -> bool {
    let ahead = (slot >> SLOT_GENERATION).wrapping_sub(mine >> SLOT_GENERATION) & (u32::MAX >> SLOT_GENERATION);
    ahead != 0 && ahead < 1 << 29
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILURE: Mark = Mark { failed: true, slow: false };
    const BOTH: Mark = Mark { failed: true, slow: true };

    /// As when its thread slept between asking for the state and counting.
    #[test]
    fn a_result_that_is_late_within_the_window_changes_nothing() {
        let window = CountWindow::new(3, 1);
        window.clear(2);
        assert_eq!(window.record(1, BOTH), None);
        assert_eq!(window.sums(2), Sums::default());
        for calls in 1..=3 {
            assert_eq!(window.record(2, FAILURE), Some(Sums { calls, failed: calls, slow: 0 }));
        }
        assert_eq!(window.record(1, BOTH), None);
        assert_eq!(
            window.record(2, BOTH),
            Some(Sums { calls: 3, failed: 3, slow: 1 }),
            "the late one put nothing there"
        );
        assert_eq!(window.sums(1), Sums::default());
    }

    /// As when a mark is taken out by a second thread before the first has added it.
    #[test]
    fn a_sum_below_nothing_is_nothing_and_borrows_from_no_other() {
        let below = empty(1).wrapping_sub(1 << FAILED).wrapping_sub(2 << SLOW).wrapping_add(5 << CALLS);
        assert_eq!(unpack(below), Sums { calls: 5, failed: 0, slow: 0 });
        assert_eq!(below >> GENERATION, 1);
    }

    #[test]
    fn generations_go_round() {
        let last = slot_generation(u64::from(u32::MAX >> SLOT_GENERATION));
        assert!(is_later(slot_generation(1) | SLOT_SLOW, last) && !is_later(last, slot_generation(1)));
        assert!(!is_later(last | SLOT_SLOW, last));
    }
}
