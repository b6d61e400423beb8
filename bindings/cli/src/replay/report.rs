//! What a replay found, for the three ways to tell it; and the one for programs, JSON.

use std::io::{self, Write};
use std::time::Duration;

use balde::Limits;
use serde::Serialize;

use super::tally::Tally;
use super::time;

/// What a replay found.
pub(crate) struct Report<'a> {
    pub(crate) limits: Limits,
    /// How keys were found, as on the command line.
    pub(crate) key: String,
    pub(crate) window: Duration,
    /// The names of the logs.
    pub(crate) logs: Vec<String>,
    pub(crate) tally: &'a Tally,
    pub(crate) late_lines: u64,
}

#[derive(Serialize)]
struct Object<'a> {
    lines: u64,
    bad_lines: u64,
    late_lines: u64,
    admitted: u64,
    denied: u64,
    limits: Vec<String>,
    key: &'a str,
    /// The log's own time of the first and the last request.
    from: Option<String>,
    to: Option<String>,
    keys: Vec<Key<'a>>,
    timeline_step_seconds: u64,
    timeline: Vec<Step>,
    first_bad_lines: Vec<Bad<'a>>,
}

#[derive(Serialize)]
struct Key<'a> {
    key: std::borrow::Cow<'a, str>,
    admitted: u64,
    denied: u64,
}

#[derive(Serialize)]
struct Step {
    at: String,
    admitted: u64,
    denied: u64,
}

#[derive(Serialize)]
struct Bad<'a> {
    log: &'a str,
    line: u64,
    why: &'a str,
}

impl Report<'_> {
    /// Writes one JSON object with the `top` most denied keys. What is no UTF-8 in a key is replaced.
    pub(crate) fn write_json(&self, out: &mut impl Write, top: usize) -> io::Result<()> {
        let tally = self.tally;
        let keys = tally.by_denied().into_iter().take(top);
        let object = Object {
            lines: tally.lines,
            bad_lines: tally.bad_lines,
            late_lines: self.late_lines,
            admitted: tally.all.admitted,
            denied: tally.all.denied,
            limits: self.limits.iter().map(ToString::to_string).collect(),
            key: &self.key,
            from: tally.span.map(|(from, _)| time::write_rfc3339(from)),
            to: tally.span.map(|(_, to)| time::write_rfc3339(to)),
            keys: keys
                .map(|(key, counts)| Key {
                    key: String::from_utf8_lossy(key),
                    admitted: counts.admitted,
                    denied: counts.denied,
                })
                .collect(),
            timeline_step_seconds: tally.timeline.step(),
            timeline: tally
                .timeline
                .steps()
                .map(|(at, counts)| Step {
                    at: time::write_rfc3339(at),
                    admitted: counts.admitted,
                    denied: counts.denied,
                })
                .collect(),
            first_bad_lines: self.first_bad().map(|(log, line, why)| Bad { log, line, why }).collect(),
        };
        serde_json::to_writer_pretty(&mut *out, &object)?;
        writeln!(out)
    }

    /// The first bad lines: the name of the log, the number of the line in it, what is wrong.
    pub(crate) fn first_bad(&self) -> impl Iterator<Item = (&str, u64, &str)> {
        let bad = self.tally.first_bad.iter();
        bad.map(|(log, number, flaw)| (self.logs[*log].as_str(), *number, flaw.0.as_ref()))
    }

    /// The names of the logs for people: the first ones, and how many more.
    pub(crate) fn names(&self) -> String {
        match &self.logs[..] {
            [one] => one.clone(),
            [one, two] => format!("{one} and {two}"),
            [one, rest @ ..] => format!("{one} and {} more logs", rest.len()),
            [] => String::new(),
        }
    }
}

/// A share of a whole in percent, `12.3 %`; of nothing, nothing.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// A key or a name as it may be shown to people: whatever could move a cursor or hide is written out, and what is longer
/// than `most` characters is cut.
pub(crate) fn shown(text: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(text);
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == most {
            shown.pop();
            shown.push('…');
            break;
        }
        match c.is_control() || ('\u{200b}'..='\u{202e}').contains(&c) || ('\u{2060}'..='\u{206f}').contains(&c) {
            true => shown.push('\u{fffd}'),
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_cannot_drive_a_terminal() {
        assert_eq!(shown(b"\x1b[31mred\xff\n", 20), "\u{fffd}[31mred\u{fffd}\u{fffd}");
        assert_eq!(shown("a\u{202e}b".as_bytes(), 20), "a\u{fffd}b");
        assert_eq!(shown("ääää".as_bytes(), 4), "ääää");
        assert_eq!(shown("ääääb".as_bytes(), 4), "äää…");
    }

    #[test]
    fn shares_are_percentages() {
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(0, 0), "0.0 %");
    }
}
