//! Who was admitted and denied, when, and what could not be read. Memory grows with the keys.

use indexmap::IndexMap;

use super::order::Event;
use super::record::Flaw;
use super::timeline::{Counts, Timeline};

/// How many bad lines are kept to be shown.
const SHOWN: usize = 3;

/// What was counted so far.
#[derive(Debug)]
pub(crate) struct Tally {
    keys: IndexMap<Box<[u8]>, Counts>,
    pub(crate) lines: u64,
    pub(crate) bad_lines: u64,
    /// The first bad lines: log, number in it, what is wrong.
    pub(crate) first_bad: Vec<(usize, u64, Flaw)>,
    pub(crate) all: Counts,
    pub(crate) timeline: Timeline,
    /// The times of the first and the last request, in microseconds.
    pub(crate) span: Option<(u64, u64)>,
    /// One letter a line, where somebody wants them.
    decisions: Option<Vec<u8>>,
}

impl Tally {
    pub(crate) fn new(decisions: bool) -> Self {
        Tally {
            keys: IndexMap::new(),
            lines: 0,
            bad_lines: 0,
            first_bad: Vec::new(),
            all: Counts::default(),
            timeline: Timeline::new(),
            span: None,
            decisions: decisions.then(Vec::new),
        }
    }

    /// Counts a line that asks something. Returns its place among all lines and the index of its key.
    pub(crate) fn asked(&mut self, key: Box<[u8]>) -> (u64, usize) {
        let entry = self.keys.entry(key);
        let index = entry.index();
        entry.or_default();
        // The letter is set when the line is played; until then it says that it was not.
        (self.line(b'?'), index)
    }

    /// Counts a line that cannot be read.
    pub(crate) fn bad(&mut self, log: usize, number: u64, flaw: Flaw) {
        self.line(b'B');
        self.bad_lines += 1;
        if self.first_bad.len() < SHOWN {
            self.first_bad.push((log, number, flaw));
        }
    }

    /// Counts what was decided on a line. Times must not go back.
    pub(crate) fn decided(&mut self, event: &Event, allowed: bool) {
        self.keys[event.key].add(allowed);
        self.all.add(allowed);
        self.timeline.add(event.at, allowed);
        self.span = Some((self.span.map_or(event.at, |(from, _)| from), event.at));
        if let Some(decisions) = &mut self.decisions {
            decisions[event.place as usize] = if allowed { b'A' } else { b'D' };
        }
    }

    pub(crate) fn key(&self, index: usize) -> &[u8] {
        &self.keys.get_index(index).expect("an index comes from this very map").0[..]
    }

    /// All keys, the most denied first, and of equally denied ones by their bytes.
    pub(crate) fn by_denied(&self) -> Vec<(&[u8], Counts)> {
        let mut keys: Vec<_> = self.keys.iter().map(|(key, counts)| (&key[..], *counts)).collect();
        keys.sort_unstable_by(|(a, x), (b, y)| y.denied.cmp(&x.denied).then_with(|| a.cmp(b)));
        keys
    }

    /// One letter a line, in the order of the lines: A admitted, D denied, B bad.
    pub(crate) fn decisions(&self) -> &[u8] {
        self.decisions.as_deref().unwrap_or_default()
    }

    fn line(&mut self, letter: u8) -> u64 {
        let place = self.lines;
        self.lines += 1;
        if let Some(decisions) = &mut self.decisions {
            decisions.push(letter);
        }
        place
    }
}
