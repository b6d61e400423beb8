//! The report as one page that needs nothing else: no script, no font, no image from anywhere.

mod bars;
mod time_chart;

use std::fmt::Write;

use super::report::{Report, percent, shown};
use super::time;
use super::timeline::Counts;
use crate::duration::say;

/// How much of a key the table shows.
const KEY: usize = 200;

/// The whole page, with the `top` most denied keys.
pub(crate) fn page(report: &Report<'_>, top: usize) -> String {
    let keys = report.tally.by_denied();
    let denied = keys.iter().filter(|(_, counts)| counts.denied > 0).count();
    let top = &keys[..keys.len().min(top)];
    let mut page = String::new();
    page += "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n";
    page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    // Nothing that a log smuggles in could run or be fetched, even if it were not escaped.
    page += "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n";
    page += &format!("<title>balde replay: {}</title>\n", escaped(&report.limits.to_string()));
    page += &format!("<style>\n{}</style>\n", include_str!("page.css"));
    page += &head(report);
    page += &cards(report, keys.len(), denied);
    page += "<h2>Over time</h2>\n";
    page += "<p class=\"legend\"><span class=\"yes\">■</span> admitted <span class=\"no\">■</span> denied</p>\n";
    page += &time_chart::svg(&report.tally.timeline);
    let denied_top: Vec<_> = top.iter().copied().filter(|(_, counts)| counts.denied > 0).collect();
    if !denied_top.is_empty() {
        page += &format!("<h2>Most denied, by {}</h2>\n{}", escaped(&report.key), bars::svg(&denied_top));
    }
    page += &table(report, top, keys.len());
    page += &bad(report);
    page + "</html>\n"
}

fn head(report: &Report<'_>) -> String {
    let span = match report.tally.span {
        Some((from, to)) => format!("{} to {} UTC", time::write(from), time::write(to)),
        None => "no request".into(),
    };
    format!(
        "<h1>What the limit would have done</h1>\n<p><code>{}</code> for each <code>{}</code></p>\n<p>{} · {span}</p>\n",
        escaped(&report.limits.to_string()),
        escaped(&report.key),
        escaped(&report.names()),
    )
}

fn cards(report: &Report<'_>, keys: usize, denied: usize) -> String {
    let tally = report.tally;
    let played = tally.all.total();
    let mut cards = String::from("<div class=\"cards\">\n");
    let mut card = |class: &str, figure: u64, what: &str| {
        // Writing into a string cannot fail.
        let _ = writeln!(cards, "<div class=\"card {class}\"><b>{}</b><span>{what}</span></div>", grouped(figure));
    };
    card("yes", tally.all.admitted, &format!("admitted, {}", percent(tally.all.admitted, played)));
    card("no", tally.all.denied, &format!("denied, {}", percent(tally.all.denied, played)));
    card("", keys as u64, "keys");
    card("", denied as u64, "keys denied something");
    card("", tally.lines, "lines");
    card("", tally.bad_lines, "bad lines");
    card("", report.late_lines, &format!("late by more than {}", say(report.window)));
    cards + "</div>\n"
}

fn table(report: &Report<'_>, top: &[(&[u8], Counts)], keys: usize) -> String {
    let mut table =
        format!("<h2>Keys, the most denied first</h2>\n<p>{} of {} keys</p>\n", top.len(), grouped(keys as u64));
    table += "<div class=\"scroll\"><table>\n";
    table += &format!("<tr><th>{}<th>denied<th>admitted<th>denied of its requests</tr>\n", escaped(&report.key));
    for (key, counts) in top {
        let (key, share) = (escaped(&shown(key, KEY)), percent(counts.denied, counts.total()));
        let (denied, admitted) = (grouped(counts.denied), grouped(counts.admitted));
        table += &format!("<tr><td>{key}<td>{denied}<td>{admitted}<td>{share}</tr>\n");
    }
    table + "</table></div>\n"
}

fn bad(report: &Report<'_>) -> String {
    if report.tally.bad_lines == 0 {
        return String::new();
    }
    let mut bad = String::from("<h2>The first bad lines</h2>\n");
    for (log, line, why) in report.first_bad() {
        bad += &format!("<p><code>{}:{line}</code> {}</p>\n", escaped(log), escaped(why));
    }
    bad
}

/// Text as it may stand in a page, between tags or in an attribute.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            _ => escaped.push(c),
        }
    }
    escaped
}

/// `1,234,567`
fn grouped(figure: u64) -> String {
    let digits = figure.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_log_stays_text() {
        assert_eq!(escaped(r#"<b a='"'>&"#), "&lt;b a=&#39;&quot;&#39;&gt;&amp;");
    }

    #[test]
    fn figures_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
