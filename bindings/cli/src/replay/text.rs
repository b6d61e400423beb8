//! The report for people at a terminal, in 80 columns.

use std::env;
use std::io::{self, IsTerminal, Write, stdout};

use super::report::{Report, percent, shown};
use super::{chart, time};
use crate::duration::say;

/// How much of a key is shown.
const KEY: usize = 46;

/// Writes the report with the `top` most denied keys.
pub(crate) fn write(report: &Report<'_>, top: usize, out: &mut impl Write) -> io::Result<()> {
    let tally = report.tally;
    let played = tally.all.total();
    writeln!(out, "{}, limited to {} for each {}", shown(report.names().as_bytes(), 60), report.limits, report.key)?;
    if let Some((from, to)) = tally.span {
        writeln!(out, "{} to {} UTC", time::write(from), time::write(to))?;
    }
    writeln!(out)?;
    writeln!(out, "  admitted {:>12}  {:>7}", tally.all.admitted, percent(tally.all.admitted, played))?;
    writeln!(out, "  denied   {:>12}  {:>7}", tally.all.denied, percent(tally.all.denied, played))?;
    if report.late_lines > 0 {
        let why = format!("out of order by more than {}, played when they came", say(report.window));
        writeln!(out, "  late     {:>12}  {why}", report.late_lines)?;
    }
    write_bad(report, out)?;
    write_keys(report, top, out)?;
    if played > 0 {
        writeln!(out, "\n  {:<16}{:<37} {:>10} {:>10}", "time (UTC)", "", "admitted", "denied")?;
        for line in chart::lines(&tally.timeline, colour()) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

fn write_bad(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let bad = report.tally.bad_lines;
    if bad > 0 {
        writeln!(out, "  bad      {bad:>12}  of {} lines; the first:", report.tally.lines)?;
    }
    for (log, line, why) in report.first_bad() {
        writeln!(out, "    {}:{line}: {}", shown(log.as_bytes(), 30), shown(why.as_bytes(), 60))?;
    }
    Ok(())
}

fn write_keys(report: &Report<'_>, top: usize, out: &mut impl Write) -> io::Result<()> {
    let keys = report.tally.by_denied();
    let denied = keys.iter().filter(|(_, counts)| counts.denied > 0).count();
    writeln!(out, "\n  {denied} of {} keys were denied something", keys.len())?;
    let of_interest = &keys[..denied.min(top)];
    if !of_interest.is_empty() {
        writeln!(out, "\n  {:<KEY$} {:>10} {:>10}", "most denied", "denied", "admitted")?;
    }
    for (key, counts) in of_interest {
        writeln!(out, "  {:<KEY$} {:>10} {:>10}", shown(key, KEY), counts.denied, counts.admitted)?;
    }
    if denied > of_interest.len() {
        writeln!(out, "  and {} more", denied - of_interest.len())?;
    }
    Ok(())
}

/// Colour is for a terminal whose owner did not say no (see no-color.org).
fn colour() -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    stdout().is_terminal() && !refused && env::var_os("TERM").is_none_or(|term| term != "dumb")
}
