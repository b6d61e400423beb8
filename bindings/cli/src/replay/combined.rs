//! Access logs in the common and the combined format, and those that write more fields behind them.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use super::record::{Flaw, Record};
use super::time;

/// `ip ident user [time] "request" status bytes`, and in the combined format `"referer" "agent"`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    at: u64,
    ip: &'a [u8],
    user: &'a [u8],
    request: &'a [u8],
    status: &'a [u8],
    bytes: &'a [u8],
    referer: &'a [u8],
    agent: &'a [u8],
}

/// Reads a line, of which the end was cut off.
pub(crate) fn read(line: &[u8]) -> Result<Line<'_>, Flaw> {
    let (ip, rest) = word(line).ok_or("not an access log: no address")?;
    let (_, rest) = word(rest).ok_or("not an access log: no identity")?;
    // A user's name may have blanks in it.
    let end = memmem::find(rest, b" [").filter(|end| *end > 0).ok_or("not an access log: no time in brackets")?;
    let (user, rest) = (&rest[..end], &rest[end + 2..]);
    let end = memchr(b']', rest).ok_or("not an access log: no time in brackets")?;
    let (time, rest) = (&rest[..end], &rest[end + 1..]);
    let at = time::access_log(time).ok_or("the time cannot be read")?;
    let (request, rest) = quoted(rest).ok_or("no request in quotes")?;
    let rest = rest.strip_prefix(b" ").ok_or("no status behind the request")?;
    let (status, bytes) = word(rest).ok_or("no status and size behind the request")?;
    if status.len() != 3 || !status.iter().all(u8::is_ascii_digit) {
        return Err("the status is not a number of three digits".into());
    }
    let (bytes, rest) = word(bytes).unwrap_or((bytes.trim_ascii_end(), b""));
    if bytes != b"-" && (bytes.is_empty() || !bytes.iter().all(u8::is_ascii_digit)) {
        return Err("the size is not a number".into());
    }
    let mut record = Line { at, ip, user, request, status, bytes, referer: b"", agent: b"" };
    if rest.starts_with(b"\"") {
        let (referer, rest) = quoted_here(rest).ok_or("the referer has no end")?;
        let (agent, _) = quoted(rest).ok_or("the agent has no end")?;
        (record.referer, record.agent) = (referer, agent);
    }
    Ok(record)
}

impl Record for Line<'_> {
    fn time(&self, _: Option<&str>) -> Result<u64, Flaw> {
        Ok(self.at)
    }

    /// Fields are as the log writes them, escapes and all; `-` is how it writes none.
    fn field(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let value = match name {
            "ip" => self.ip,
            "user" => self.user,
            "request" => self.request,
            "method" => self.part(0)?,
            "target" => self.part(1)?,
            "path" => self.part(1)?.split(|byte| *byte == b'?').next()?,
            "protocol" => self.part(2)?,
            "status" => self.status,
            "bytes" => self.bytes,
            "referer" => self.referer,
            "agent" => self.agent,
            _ => return None,
        };
        (!value.is_empty() && value != b"-").then_some(value.into())
    }
}

impl Line<'_> {
    /// A part of `GET /path HTTP/1.1`; anything may have been sent instead of that.
    fn part(&self, index: usize) -> Option<&[u8]> {
        let mut parts = self.request.split(|byte| *byte == b' ');
        (parts.clone().count() == 3).then(|| parts.nth(index))?
    }
}

/// The names of all fields, for whoever asks for one that there is not.
pub(crate) const NAMES: [&str; 11] =
    ["ip", "user", "request", "method", "target", "path", "protocol", "status", "bytes", "referer", "agent"];

/// Up to the next blank, and what is behind it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr(b' ', text).filter(|end| *end > 0)?;
    Some((&text[..end], &text[end + 1..]))
}

/// What stands in quotes behind one blank, and what is behind it.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    quoted_here(text.strip_prefix(b" ")?)
}

/// What stands in quotes at the beginning. A quote behind a backslash is part of it.
fn quoted_here(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', &text[from..])?;
        if text[at] == b'"' {
            return Some((&text[..at], &text[at + 1..]));
        }
        from = at + 2;
        if from > text.len() {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(line: &str, name: &str) -> Option<String> {
        let record = read(line.as_bytes()).unwrap();
        record.field(name).map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    #[test]
    fn a_combined_line_has_all_its_fields() {
        let line = r#"2001:db8::7 - ada l. [17/May/2015:12:05:03 +0200] "GET /a?b=1 HTTP/1.1" 200 512 "http://x/" "a \"b\" \\" 0.12"#;
        let wanted = [
            "2001:db8::7",
            "ada l.",
            "GET /a?b=1 HTTP/1.1",
            "GET",
            "/a?b=1",
            "/a",
            "HTTP/1.1",
            "200",
            "512",
            "http://x/",
        ];
        for (name, value) in NAMES.iter().zip(wanted) {
            assert_eq!(field(line, name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(field(line, "agent").as_deref(), Some(r#"a \"b\" \\"#));
        assert_eq!(read(line.as_bytes()).unwrap().time(None), Ok(1_431_857_103_000_000));
    }

    #[test]
    fn a_common_line_lacks_what_it_does_not_write() {
        let line = r#"192.0.2.1 - - [17/May/2015:10:05:03 +0000] "\x16\x03" 400 -"#;
        for name in ["user", "method", "path", "bytes", "referer", "agent", "tenant"] {
            assert_eq!(field(line, name), None, "{name}");
        }
        assert_eq!(field(line, "request").as_deref(), Some(r"\x16\x03"));
    }

    #[test]
    fn broken_lines_say_what_is_wrong() {
        let good = r#"192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5 "-" "-""#;
        assert!(read(good.as_bytes()).is_ok());
        for (from, to, why) in [
            (good, "", "not an access log: no address"),
            (good, "hello there", "not an access log: no identity"),
            ("[", "(", "not an access log: no time in brackets"),
            ("17/May", "37/May", "the time cannot be read"),
            ("\"GET / HTTP/1.1\"", "GET", "no request in quotes"),
            ("200", "2xx", "the status is not a number of three digits"),
            (" 5 ", " five ", "the size is not a number"),
            (" \"-\" \"-\"", " \"-\" \"-", "the agent has no end"),
            (" \"-\" \"-\"", " \"-\\", "the referer has no end"),
        ] {
            let bad = good.replace(from, to);
            assert_eq!(read(bad.as_bytes()).unwrap_err(), Flaw::from(why), "{bad}");
        }
    }
}
