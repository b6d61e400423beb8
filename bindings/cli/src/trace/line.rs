//! A line of a trace, read and checked.

use std::sync::LazyLock;
use std::time::Duration;

use balde::{ErrorKind, Limit, Limits};
use regex::{Captures, Regex};
use serde_json::{Map, Value};

/// The largest whole number that every language holds exactly.
const MOST: u64 = (1 << 53) - 1;

/// The longest key, in bytes; the same bound as the library's, met here so that a refused step says so before its clock.
const LONGEST_KEY: usize = 1024;

/// What a step may have. A header may have more: it describes its case.
const FIELDS: [&str; 6] = ["at", "op", "key", "cost", "max_wait", "limits"];

#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    Blank,
    /// A new case, or what is wrong with its limits.
    Header(Result<Limits, ErrorKind>),
    /// A step, or what is wrong with it.
    Step(Result<Step, ErrorKind>),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Step {
    /// The store's clock, in microseconds.
    pub(crate) at: u64,
    pub(crate) key: Vec<u8>,
    pub(crate) op: Op,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Op {
    Acquire { cost: u64, max_wait: Duration },
    Peek { cost: u64 },
    Refund { tokens: u64 },
    Reset,
    Limits(Limits),
}

/// Reads a line. One that is not a JSON object is a step that makes no sense: `invalid_option`.
pub(crate) fn read(line: &[u8]) -> Line {
    if line.trim_ascii().is_empty() {
        return Line::Blank;
    }
    let object = serde_json::from_slice(line).or_else(|_| serde_json::from_str(&without_nan(line)));
    let Ok(Value::Object(object)) = object else {
        return Line::Step(Err(ErrorKind::InvalidOption));
    };
    if object.contains_key("limits") && !object.contains_key("op") && !object.contains_key("at") {
        return Line::Header(limits(object.get("limits")));
    }
    Line::Step(step(&object))
}

/// The line with `null` for NaN and the infinities, which some programs write as numbers although JSON has none.
/// They are then refused as the numbers they are not, by the code of their field.
fn without_nan(line: &[u8]) -> String {
    static WORD: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#""(?:[^"\\]|\\.)*"|-?Infinity|NaN"#).expect("the pattern is a valid one"));
    let kept = |found: &Captures<'_>| if found[0].starts_with('"') { found[0].to_string() } else { "null".into() };
    WORD.replace_all(&String::from_utf8_lossy(line), kept).into_owned()
}

fn step(object: &Map<String, Value>) -> Result<Step, ErrorKind> {
    let option = |value: Option<&Value>, default| whole(value, default).ok_or(ErrorKind::InvalidOption);
    if object.keys().any(|name| !FIELDS.contains(&name.as_str())) {
        return Err(ErrorKind::InvalidOption);
    }
    let op = match object.get("op") {
        None => "acquire",
        Some(Value::String(op)) => op,
        Some(_) => return Err(ErrorKind::InvalidOption),
    };
    if op == "limits" {
        let limits = limits(object.get("limits"))?;
        return Ok(Step { at: option(object.get("at"), Some(0))?, key: Vec::new(), op: Op::Limits(limits) });
    }
    if !matches!(op, "acquire" | "peek" | "refund" | "reset") || object.contains_key("limits") {
        return Err(ErrorKind::InvalidOption);
    }
    let key = match object.get("key") {
        None => "k",
        Some(Value::String(key)) if key.len() <= LONGEST_KEY => key,
        Some(_) => return Err(ErrorKind::InvalidKey),
    };
    // A bucket that goes away does so at any time.
    let at = option(object.get("at"), (op == "reset").then_some(0))?;
    let cost = whole(object.get("cost"), Some(1)).ok_or(ErrorKind::InvalidCost)?;
    let max_wait = Duration::from_micros(option(object.get("max_wait"), Some(0))?);
    let op = match op {
        "acquire" => Op::Acquire { cost, max_wait },
        "peek" => Op::Peek { cost },
        "refund" => Op::Refund { tokens: cost },
        _ => Op::Reset,
    };
    Ok(Step { at, key: key.as_bytes().to_vec(), op })
}

fn limits(value: Option<&Value>) -> Result<Limits, ErrorKind> {
    let limits = match value {
        Some(Value::String(text)) => text.parse(),
        Some(Value::Array(texts)) => {
            // What is no text reads as none, and no text is no limit.
            let each = texts.iter().map(|text| text.as_str().unwrap_or_default().parse::<Limit>());
            each.collect::<Result<Vec<_>, _>>().and_then(Limits::new)
        }
        _ => return Err(ErrorKind::InvalidLimit),
    };
    limits.map_err(|error| error.kind())
}

/// A whole number from 0 to [`MOST`]. `2.0` is one; `-0.0`, written as less than nothing, is not.
fn whole(value: Option<&Value>, default: Option<u64>) -> Option<u64> {
    let Some(value) = value else { return default };
    let number = match (value.as_u64(), value.as_f64()) {
        (Some(number), _) => number,
        (None, Some(number)) if number.is_sign_positive() && number.fract() == 0.0 && number <= MOST as f64 => {
            number as u64
        }
        _ => return None,
    };
    (number <= MOST).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> Option<&'static str> {
        match read(line.as_bytes()) {
            Line::Step(Err(kind)) | Line::Header(Err(kind)) => Some(kind.code()),
            _ => None,
        }
    }

    #[test]
    fn defaults_are_an_acquire_of_one_token_of_k() {
        let op = Op::Acquire { cost: 1, max_wait: Duration::ZERO };
        assert_eq!(read(br#"{"at": 7}"#), Line::Step(Ok(Step { at: 7, key: b"k".to_vec(), op })));
    }

    #[test]
    fn a_header_has_limits_and_neither_op_nor_time() {
        let limits = ["10/s burst 20; 1000/d", "5/m"].map(|text| text.parse().unwrap());
        let [two, one] = limits;
        assert_eq!(read(br#"{"limits": ["10/s burst 20", "1000/d"], "name": "x"}"#), Line::Header(Ok(two)));
        assert_eq!(read(br#"{"limits": "5/m", "note": 1}"#), Line::Header(Ok(one)));
        for line in [r#"{"limits": []}"#, r#"{"limits": [1]}"#, r#"{"limits": null}"#, r#"{"limits": ["1/s;1/m"]}"#] {
            assert_eq!(refused(line), Some("invalid_limit"), "{line}");
        }
        assert_eq!(refused(r#"{"at": 0, "limits": ["1/s"]}"#), Some("invalid_option"));
    }

    #[test]
    fn costs_are_whole_numbers_up_to_2_to_the_53() {
        for cost in ["0", "2.0", "9007199254740991", "1e3"] {
            assert_eq!(refused(&format!(r#"{{"at": 0, "cost": {cost}}}"#)), None, "{cost}");
        }
        for cost in
            ["-1", "-0.0", "0.5", "9007199254740992", "1e300", "null", r#""1""#, "[1]", "NaN", "Infinity", "-Infinity"]
        {
            assert_eq!(refused(&format!(r#"{{"at": 0, "cost": {cost}}}"#)), Some("invalid_cost"), "{cost}");
        }
    }

    #[test]
    fn what_is_no_step_is_refused_by_its_code() {
        for (line, code) in [
            ("{", "invalid_option"),
            ("[1]", "invalid_option"),
            (r#"{"op": "peek"}"#, "invalid_option"),
            (r#"{"at": -1}"#, "invalid_option"),
            (r#"{"at": 0.5}"#, "invalid_option"),
            (r#"{"at": 0, "max_wait": -1}"#, "invalid_option"),
            (r#"{"at": 0, "op": "take"}"#, "invalid_option"),
            (r#"{"at": 0, "costs": 1}"#, "invalid_option"),
            (r#"{"at": 0, "key": null}"#, "invalid_key"),
            (r#"{"at": 0, "op": "limits", "limits": ["0/s"]}"#, "invalid_limit"),
        ] {
            assert_eq!(refused(line), Some(code), "{line}");
        }
        let long = format!(r#"{{"at": 0, "key": "{}"}}"#, "x".repeat(1025));
        assert_eq!(refused(&long), Some("invalid_key"));
    }

    #[test]
    fn a_key_that_says_nan_is_left_alone() {
        let line = r#"{"at": 0, "key": "a\"NaN", "cost": NaN}"#;
        assert_eq!(without_nan(line.as_bytes()), line.replace("cost\": NaN", "cost\": null"));
    }
}
