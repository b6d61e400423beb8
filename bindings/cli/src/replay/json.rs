//! Logs of one JSON object a line.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::record::{Flaw, Record, TIME_NAMES, other_names};
use super::time;

/// The members of a line.
#[derive(Debug)]
pub(crate) struct Line(Map<String, Value>);

/// Reads a line.
pub(crate) fn read(line: &[u8]) -> Result<Line, Flaw> {
    match serde_json::from_slice(line) {
        Ok(Value::Object(members)) => Ok(Line(members)),
        Ok(_) => Err("not a JSON object".into()),
        Err(_) => Err("not JSON".into()),
    }
}

impl Line {
    /// The member of that name, or else what the dots in the name lead to.
    fn member(&self, name: &str) -> Option<&Value> {
        if let Some(value) = self.0.get(name) {
            return Some(value);
        }
        let (first, rest) = name.split_once('.')?;
        rest.split('.').try_fold(self.0.get(first)?, |value, name| value.get(name))
    }
}

impl Record for Line {
    fn time(&self, field: Option<&str>) -> Result<u64, Flaw> {
        let value = match field {
            Some(name) => self.member(name),
            None => TIME_NAMES.iter().find_map(|name| self.member(name)),
        };
        let at = match value.ok_or("no time")? {
            Value::String(text) => time::read(text.as_bytes()),
            Value::Number(number) => number.as_f64().and_then(time::epoch),
            _ => None,
        };
        at.ok_or_else(|| "the time cannot be read".into())
    }

    fn field(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let mut names = std::iter::once(&name).chain(other_names(name));
        match names.find_map(|name| self.member(name))? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text.as_bytes().into()),
            value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string().into_bytes().into()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_name_or_by_dots() {
        let line =
            read(br#"{"ts": 1431857103.5, "a.b": "flat", "c": {"d": {"e": 7}}, "remote_addr": "::1", "no": null}"#)
                .unwrap();
        let field = |name| line.field(name).map(|value| String::from_utf8_lossy(&value).into_owned());
        assert_eq!(line.time(None), Ok(1_431_857_103_500_000));
        assert_eq!(field("a.b").as_deref(), Some("flat"));
        assert_eq!(field("c.d.e").as_deref(), Some("7"));
        assert_eq!(field("ip").as_deref(), Some("::1"));
        for name in ["no", "c", "c.d.f", "user"] {
            assert_eq!(field(name), None, "{name}");
        }
    }

    #[test]
    fn lines_without_a_time_say_so() {
        let time = |line: &str, field| read(line.as_bytes()).and_then(|line| line.time(field));
        assert_eq!(time(r#"{"when": "2015-05-17T10:05:03Z"}"#, Some("when")), Ok(1_431_857_103_000_000));
        assert_eq!(time(r#"{"when": "2015-05-17T10:05:03Z"}"#, None), Err("no time".into()));
        assert_eq!(time(r#"{"time": true}"#, None), Err("the time cannot be read".into()));
        assert_eq!(time("[1]", None), Err("not a JSON object".into()));
        assert_eq!(time("{", None), Err("not JSON".into()));
    }
}
