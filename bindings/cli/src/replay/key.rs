//! Who is limited: a field of the line, or what a pattern finds in it.

use std::borrow::Cow;
use std::fmt;

use regex::bytes::Regex;

use super::record::Record;
use crate::exit::Failure;

/// How the key of a line is found.
#[derive(Debug)]
pub(crate) enum Key {
    Field(String),
    /// A pattern over the whole line, and the group that is the key.
    Pattern(Regex, usize),
}

impl Key {
    /// The longest key, in bytes. A longer one makes its line a bad one.
    pub(crate) const LONGEST: usize = 1024;

    /// Reads `--key`: a name, or `regex:` and a pattern with a group called `key` or any group at all.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let Some(pattern) = text.strip_prefix("regex:") else {
            return match text {
                "" => Err(Failure::misuse("--key is empty", "name a field, or write regex:PATTERN")),
                name => Ok(Key::Field(name.into())),
            };
        };
        let hint = "write regex:PATTERN with a group around the key, such as 'regex:token=([0-9a-f]+)'";
        let regex = Regex::new(pattern).map_err(|error| Failure::misuse(format!("--key: {error}"), hint))?;
        let named = regex.capture_names().position(|name| name == Some("key"));
        match (named, regex.captures_len()) {
            (Some(group), _) => Ok(Key::Pattern(regex, group)),
            (None, 2..) => Ok(Key::Pattern(regex, 1)),
            (None, _) => Err(Failure::misuse("--key: the pattern has no group", hint)),
        }
    }

    /// The key of a line, or `None` where it has none.
    pub(crate) fn of<'a>(&self, line: &'a [u8], record: &'a impl Record) -> Option<Cow<'a, [u8]>> {
        match self {
            Key::Field(name) => record.field(name),
            Key::Pattern(regex, group) => Some(regex.captures(line)?.get(*group)?.as_bytes().into()),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Field(name) => f.write_str(name),
            Key::Pattern(regex, _) => write!(f, "regex:{regex}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::combined;

    fn found(key: &str) -> Option<String> {
        let line = br#"192.0.2.1 - ada [17/May/2015:10:05:03 +0000] "GET /api/v1/cats?token=ab12 HTTP/1.1" 200 5"#;
        let key = Key::parse(key).unwrap();
        let record = combined::read(line).unwrap();
        key.of(line, &record).map(|key| String::from_utf8_lossy(&key).into_owned())
    }

    #[test]
    fn keys_are_fields_or_groups() {
        assert_eq!(found("ip").as_deref(), Some("192.0.2.1"));
        assert_eq!(found("regex:token=([0-9a-f]+)").as_deref(), Some("ab12"));
        assert_eq!(found("regex:/(v[0-9]+)/(?<key>[a-z]+)").as_deref(), Some("cats"));
        assert_eq!(found("regex:session=([0-9]+)"), None);
        assert_eq!(found("tenant"), None);
    }

    #[test]
    fn a_pattern_needs_a_group_and_must_be_one() {
        for text in ["", "regex:", "regex:token", "regex:("] {
            assert!(matches!(Key::parse(text), Err(Failure::Misuse { .. })), "{text}");
        }
    }
}
