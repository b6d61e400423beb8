//! A small chart for the terminal: time downwards, requests to the right.

use super::time;
use super::timeline::{Counts, Timeline};

/// The most lines of a chart, and the cells of its longest bar. With times and figures it fits 80 columns.
const LINES: usize = 24;
const CELLS: u64 = 36;

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// The lines of the chart. Without colour the two parts of a bar still differ.
pub(crate) fn lines(timeline: &Timeline, colour: bool) -> Vec<String> {
    let timeline = timeline.at_most(LINES);
    let most = timeline.steps().map(|(_, counts)| counts.total()).max().unwrap_or(0);
    let line = |(at, counts): (u64, Counts)| {
        let (admitted, denied) = cells(counts, most);
        let (full, part) = ("█".repeat(admitted), "▒".repeat(denied));
        let bar = match colour {
            true => format!("{GREEN}{full}{RED}{part}{PLAIN}"),
            false => full + &part,
        };
        let space = " ".repeat(CELLS as usize - admitted - denied);
        format!("{}  {bar}{space} {:>10} {:>10}", moment(at, timeline.step()), counts.admitted, counts.denied)
    };
    timeline.steps().map(line).collect()
}

/// How long the two parts of a bar are. What is there at all is seen, and nothing grows beyond the longest bar.
fn cells(counts: Counts, most: u64) -> (usize, usize) {
    let scaled = |count: u64| (u128::from(count) * u128::from(CELLS)).div_ceil(u128::from(most.max(1))) as usize;
    let whole = scaled(counts.total());
    let denied = scaled(counts.denied);
    match counts.admitted {
        0 => (0, denied),
        _ => (whole.saturating_sub(denied).max(1), denied.min(CELLS as usize - 1)),
    }
}

/// The beginning of a step, as precise as its length asks for; 16 characters.
fn moment(at: u64, step: u64) -> String {
    let text = time::write(at);
    match step {
        0..60 => format!("{:<16}", &text[text.len() - 14..]),
        _ => text[..text.len() - 3].to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn bars_have_their_parts_in_proportion() {
        let mut timeline = Timeline::new();
        for (at, admitted, denied) in [(0, 3, 1), (1, 1, 0), (3, 0, 2)] {
            (0..admitted).for_each(|_| timeline.add(at * SECOND, true));
            (0..denied).for_each(|_| timeline.add(at * SECOND, false));
        }
        let lines = lines(&timeline, false);
        let bars: Vec<_> = lines.iter().map(|line| (line.matches('█').count(), line.matches('▒').count())).collect();
        assert_eq!(bars, [(27, 9), (9, 0), (0, 0), (0, 18)]);
        assert!(lines[0].starts_with("01-01 00:00:00    █"), "{}", lines[0]);
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn one_denied_among_millions_is_seen() {
        assert_eq!(cells(Counts { admitted: 10_000_000, denied: 1 }, 10_000_001), (35, 1));
        assert_eq!(cells(Counts { admitted: 1, denied: 10_000_000 }, 10_000_001), (1, 35));
        assert_eq!(cells(Counts { admitted: 0, denied: 0 }, 0), (0, 0));
    }

    #[test]
    fn a_long_log_fits_a_screen() {
        let mut timeline = Timeline::new();
        (0..100_000).for_each(|at| timeline.add(at * 37 * SECOND, true));
        let lines = lines(&timeline, true);
        assert!((5..=LINES).contains(&lines.len()), "{}", lines.len());
        assert!(lines.iter().all(|line| line.contains(GREEN) && line.contains(PLAIN)));
    }
}
