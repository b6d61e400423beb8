//! The formats of logs: which one a log has, and a request out of each of its lines.

use super::record::{Flaw, Request, Wanted};
use super::{combined, csv, json};
use crate::args::FormatName;

/// How lines are read. The names of the columns belong to it, so each log has its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Combined,
    Json,
    /// The header is yet to be read.
    Csv(Option<csv::Header>),
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Combined => Format::Combined,
            FormatName::Json => Format::Json,
            FormatName::Csv => Format::Csv(None),
        }
    }
}

impl Format {
    /// Guesses the format from how a log begins: by the first of its lines that one of them understands.
    pub(crate) fn guess(head: &[u8], wanted: &Wanted) -> Self {
        let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty());
        for (number, line) in lines.enumerate() {
            if combined::read(line).is_ok() {
                return Format::Combined;
            }
            if line.trim_ascii_start().starts_with(b"{") {
                return Format::Json;
            }
            if number == 0 && csv::Header::read(line).is_some_and(|header| header.names_a_time(wanted.time.as_deref()))
            {
                return Format::Csv(None);
            }
        }
        Format::Combined
    }

    /// What a line asks, or why it is a bad one; `None` for a header, which asks nothing.
    pub(crate) fn request(&mut self, line: &[u8], wanted: &Wanted) -> Option<Result<Request, Flaw>> {
        Some(match self {
            _ if line.is_empty() => Err("an empty line".into()),
            Format::Combined => combined::read(line).and_then(|record| wanted.of(line, &record)),
            Format::Json => json::read(line).and_then(|record| wanted.of(line, &record)),
            Format::Csv(Some(header)) => header.line(line).and_then(|record| wanted.of(line, &record)),
            Format::Csv(header) => {
                *header = csv::Header::read(line);
                return match header {
                    Some(_) => None,
                    None => Some(Err("the header has a quote without its end".into())),
                };
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::key::Key;

    fn wanted(time: Option<&str>) -> Wanted {
        Wanted { key: Key::Field("ip".into()), time: time.map(String::from), cost: None }
    }

    #[test]
    fn the_first_line_that_makes_sense_tells_the_format() {
        let access = r#"192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5"#;
        let guess = |head: &str| Format::guess(head.as_bytes(), &wanted(None));
        assert_eq!(guess(access), Format::Combined);
        assert_eq!(guess(&format!("-- rotated --\n{access}\n{{")), Format::Combined);
        assert_eq!(guess("\n  {\"time\": 1}\n"), Format::Json);
        assert_eq!(guess("ip,Timestamp\n1,2\n"), Format::Csv(None));
        assert_eq!(guess("nothing of the kind\n"), Format::Combined);
        assert_eq!(Format::guess(b"ip,moment\n", &wanted(Some("moment"))), Format::Csv(None));
    }

    #[test]
    fn a_header_asks_nothing_and_names_the_rest() {
        let (mut format, wanted) = (Format::Csv(None), wanted(None));
        assert_eq!(format.request(b"time,ip", &wanted), None);
        let request = format.request(b"5,::1", &wanted).unwrap().unwrap();
        assert_eq!(request, Request { at: 5_000_000, key: b"::1"[..].into(), cost: 1 });
        assert_eq!(format.request(b"5,", &wanted), Some(Err("no key: ip".into())));
        assert_eq!(format.request(b"", &wanted), Some(Err("an empty line".into())));
    }
}
