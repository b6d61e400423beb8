//! Logs of separated values whose first line names them. A record is one line.

use std::borrow::Cow;

use super::record::{Flaw, Record, TIME_NAMES, other_names};
use super::time;

/// The first line: what the columns are called and what stands between them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    names: Vec<Vec<u8>>,
    separator: u8,
}

/// The values of a line.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    header: &'a Header,
    values: Vec<Cow<'a, [u8]>>,
}

impl Header {
    /// Reads the first line. The separator is the one of comma, semicolon and tab that it has most of.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let count = |separator: &u8| line.iter().filter(|byte| *byte == separator).count();
        let separator = [b'\t', b';', b','].into_iter().max_by_key(count)?;
        let names = split(line, separator)?;
        Some(Header { names: names.iter().map(|name| name.trim_ascii().to_vec()).collect(), separator })
    }

    /// Whether one of the columns has the name of a time: a guess that this is a header.
    pub(crate) fn names_a_time(&self, field: Option<&str>) -> bool {
        match field {
            Some(name) => self.column(name).is_some(),
            None => TIME_NAMES.iter().any(|name| self.column(name).is_some()),
        }
    }

    /// Reads a line.
    pub(crate) fn line<'a>(&'a self, line: &'a [u8]) -> Result<Line<'a>, Flaw> {
        let values = split(line, self.separator).ok_or("a quote without its end")?;
        if values.len() != self.names.len() {
            return Err(format!("{} values for {} columns", values.len(), self.names.len()).into());
        }
        Ok(Line { header: self, values })
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|column| column.eq_ignore_ascii_case(name.as_bytes()))
    }
}

impl Line<'_> {
    fn value(&self, name: &str) -> Option<&[u8]> {
        let value = self.values[self.header.column(name)?].trim_ascii();
        (!value.is_empty()).then_some(value)
    }
}

impl Record for Line<'_> {
    fn time(&self, field: Option<&str>) -> Result<u64, Flaw> {
        let value = match field {
            Some(name) => self.value(name),
            None => TIME_NAMES.iter().find_map(|name| self.value(name)),
        };
        time::read(value.ok_or("no time")?).ok_or_else(|| "the time cannot be read".into())
    }

    fn field(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let mut names = std::iter::once(&name).chain(other_names(name));
        names.find_map(|name| self.value(name)).map(Cow::from)
    }
}

/// The values of a line, or `None` when a quote is not closed. In quotes, two of them are one.
fn split(line: &[u8], separator: u8) -> Option<Vec<Cow<'_, [u8]>>> {
    let mut values = Vec::new();
    let mut rest = line;
    loop {
        let (value, end) = match rest.strip_prefix(b"\"") {
            None => {
                let end = memchr::memchr(separator, rest).unwrap_or(rest.len());
                (Cow::from(&rest[..end]), end)
            }
            Some(inner) => {
                let (value, length) = unquote(inner)?;
                (value, length + 1)
            }
        };
        values.push(value);
        match rest.get(end) {
            None => return Some(values),
            Some(byte) if *byte == separator => rest = &rest[end + 1..],
            // Something between the closing quote and the separator.
            Some(_) => return None,
        }
    }
}

/// A value up to its closing quote, and how far that is.
fn unquote(text: &[u8]) -> Option<(Cow<'_, [u8]>, usize)> {
    let mut from = 0;
    let end = loop {
        let at = from + memchr::memchr(b'"', &text[from..])?;
        if text.get(at + 1) != Some(&b'"') {
            break at;
        }
        from = at + 2;
    };
    let mut value = Cow::from(&text[..end]);
    if from > 0 {
        let mut first_of_two = false;
        value.to_mut().retain(|byte| {
            first_of_two = *byte == b'"' && !first_of_two;
            !first_of_two
        });
    }
    Some((value, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hide_separators_and_double_themselves() {
        let texts = |line: &str| {
            let values = split(line.as_bytes(), b',')?;
            Some(values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect::<Vec<_>>())
        };
        let wanted = |values: &[&str]| Some(values.iter().map(|value| value.to_string()).collect());
        assert_eq!(texts(r#"a,"b,c",,"d ""e"" f",g"#), wanted(&["a", "b,c", "", "d \"e\" f", "g"]));
        assert_eq!(texts("\"\"\",\"\"\",\"\"\"\""), wanted(&["\",\"", "\""]));
        assert_eq!(texts(""), wanted(&[""]));
        for open in [r#"a,"b"#, r#""a"b,c"#, "\"a\"\""] {
            assert_eq!(texts(open), None, "{open}");
        }
    }

    #[test]
    fn columns_are_found_by_name_in_any_case() {
        let header = Header::read(b"\xef\xbb\xbfTime;IP;note, if any").unwrap();
        assert!(header.names_a_time(None) && header.names_a_time(Some("ip")) && !header.names_a_time(Some("x")));
        let line = header.line(b"2015-05-17 10:05:03; 192.0.2.1 ;").unwrap();
        assert_eq!(line.time(None), Ok(1_431_857_103_000_000));
        assert_eq!(line.field("ip").as_deref(), Some(&b"192.0.2.1"[..]));
        assert_eq!(line.field("note, if any"), None);
        assert_eq!(header.line(b"a;b").unwrap_err(), Flaw::from("2 values for 3 columns"));
    }
}
