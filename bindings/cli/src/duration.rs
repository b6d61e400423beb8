//! Spans of time as people write and read them: `2s`, `1.5s`, `250ms`.

use std::time::Duration;

/// The units, longest first, in nanoseconds.
const UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
];

/// Reads a number, with a fraction or without, and its unit: `us`, `ms`, `s`, `m`, `h` or `d`. A bare `0` needs none.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let wrong = || "write a number and a unit, such as 2s, 1.5s or 250ms".to_string();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(split);
    let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?;
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * *nanos as f64 / 1e9).map_err(|_| "that is too long".to_string())
}

/// Says a span in its largest fitting unit, to three digits or so, rounded up: nobody should come back too early.
pub(crate) fn say(span: Duration) -> String {
    let nanos = span.as_nanos();
    let Some((name, unit)) = UNITS.iter().find(|(_, unit)| nanos >= u128::from(*unit)) else {
        return if nanos == 0 { "0s".into() } else { "1us".into() };
    };
    let unit = u128::from(*unit);
    let whole = nanos / unit;
    let (step, places) = match whole {
        0..10 => (unit / 100, 2),
        10..100 => (unit / 10, 1),
        _ => (unit, 0),
    };
    let steps = nanos.div_ceil(step);
    let per_unit = unit / step;
    let fraction = format!("{:0places$}", steps % per_unit);
    match fraction.trim_end_matches('0') {
        "" => format!("{}{name}", steps / per_unit),
        fraction => format!("{}.{fraction}{name}", steps / per_unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read() {
        for (text, millis) in
            [("2s", 2000), ("1.5s", 1500), ("250ms", 250), ("1m", 60_000), ("0", 0), ("0s", 0), ("3 s", 3000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "2", "s", "-1s", "2 weeks", "1.2.3s", "99999999999999999999d"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spans_are_said_rounded_up() {
        for (micros, text) in [
            (0, "0s"),
            (1, "1us"),
            (1500, "1.5ms"),
            (100_000, "100ms"),
            (999_999, "1000ms"),
            (1_000_001, "1.01s"),
            (12_340_000, "12.4s"),
            (60_000_000, "1m"),
            (86_400_000_000, "1d"),
            (8_640_000_000_000, "100d"),
        ] {
            assert_eq!(say(Duration::from_micros(micros)), text);
        }
    }
}
