//! A limit: so many tokens per period, and how many a full bucket holds. Whole numbers only.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// The largest number of units that a full bucket may hold. Lua counts exactly to 2^53; the other
/// half of that range is for the tokens that waiters were promised.
pub(crate) const MOST_UNITS: i64 = 1 << 52;

/// `count` tokens per `period`, at most `burst` at once.
///
/// Read as text, `N/[k]UNIT [burst C]` or `N per [k]UNIT [burst C]`, with UNIT one of `us ms s m h d`
/// (`second`, `minutes` and so on are understood too): `10/s`, `100/15m burst 200`, `5000 per hour`.
/// Without `burst`, a full bucket holds N tokens. Printing a limit gives text that reads back as the same limit.
///
/// A bucket that starts full admits `burst + rate * T` in its first span T: "1000/h" may pass 2000 in the
/// first hour. A smaller `burst` is the way to ask for less.
///
/// ```
/// use balde::Limit;
/// let limit: Limit = "10/s burst 20".parse()?;
/// assert_eq!((limit.count(), limit.burst()), (10, 20));
/// assert_eq!(limit.to_string(), "10/s burst 20");
/// assert_eq!("0/s".parse::<Limit>().unwrap_err().code(), "invalid_limit");
/// # Ok::<(), balde::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    count: u64,
    period: u64,
    burst: u64,
    /// Units that come back each microsecond.
    pub(crate) refill: i64,
    /// Units in one token.
    pub(crate) scale: i64,
}

impl Limit {
    /// `count` tokens per `period`, with a burst of `count`.
    ///
    /// # Errors
    /// `invalid_limit` when a number is 0, the period is not a whole number of microseconds, or the limit
    /// cannot be held to within 1 in 10,000 in whole numbers up to 2^52 (the message names the largest burst that can).
    pub fn new(count: u64, period: Duration) -> Result<Self> {
        let nanos = period.as_nanos();
        let micros = u64::try_from(nanos / 1000).unwrap_or(u64::MAX);
        if !nanos.is_multiple_of(1000) {
            return Err(invalid(format!("a period of {period:?} is not a whole number of microseconds")));
        }
        Limit::from_micros(count, micros, count)
    }

    /// The same limit with another burst: the number of tokens that a full bucket holds.
    ///
    /// # Errors
    /// As [`Limit::new`].
    pub fn with_burst(self, burst: u64) -> Result<Self> {
        Limit::from_micros(self.count, self.period, burst)
    }

    /// Tokens per period.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The period. A limit is known by it: no two limits of one bucket have the same.
    pub fn period(&self) -> Duration {
        Duration::from_micros(self.period)
    }

    /// The capacity: how many tokens a full bucket holds.
    pub fn burst(&self) -> u64 {
        self.burst
    }

    pub(crate) fn period_micros(&self) -> u64 {
        self.period
    }

    /// The units of a full bucket.
    pub(crate) fn capacity(&self) -> i64 {
        self.burst as i64 * self.scale
    }

    /// The part of one process out of `fleet`: that part of the rate, and of the burst, but a token at least.
    /// A rate that is too slow to be held is the slowest that can be, and never a faster one than that part.
    pub(crate) fn share(&self, fleet: u64) -> Limit {
        let burst = (self.burst / fleet).max(1);
        let slowest = || Limit { count: 1, period: MOST_UNITS as u64, burst: 1, refill: 1, scale: MOST_UNITS };
        Limit::from_micros(self.count, self.period.saturating_mul(fleet), burst).unwrap_or_else(|_| slowest())
    }

    fn from_micros(count: u64, period: u64, burst: u64) -> Result<Self> {
        if count == 0 || period == 0 || burst == 0 {
            return Err(invalid("count, period and burst must each be 1 or more"));
        }
        let most = MOST_UNITS as u64;
        if count > most || period > most || burst > most {
            return Err(invalid(format!("count, period in microseconds and burst may each be at most {most}")));
        }
        match units(count, period, burst) {
            Some((refill, scale)) => Ok(Limit { count, period, burst, refill, scale }),
            None => Err(invalid(match largest_burst(count, period) {
                Some(fits) => format!(
                    "a burst of {burst} is too large for this rate to be exact; the largest that fits is {fits}"
                ),
                None => "the rate is too slow or too odd for any burst to be exact".to_string(),
            })),
        }
    }
}

/// `(refill, scale)` of a limit: exact where that fits, else rounded down by less than 1 in 10,000.
fn units(count: u64, period: u64, burst: u64) -> Option<(i64, i64)> {
    let most = MOST_UNITS as u128;
    let shared = gcd(count, period);
    let (refill, scale) = (count / shared, period / shared);
    if u128::from(burst) * u128::from(scale) <= most {
        return Some((refill as i64, scale as i64));
    }
    let scale = most / u128::from(burst);
    let refill = u128::from(count) * scale / u128::from(period);
    let near = refill * u128::from(period) * 10_000 >= u128::from(count) * scale * 9_999;
    (near && refill > 0).then_some((refill as i64, scale as i64))
}

/// The largest burst that this rate can be held with, sought only to say so in an error.
fn largest_burst(count: u64, period: u64) -> Option<u64> {
    let shared = gcd(count, period);
    let exact = MOST_UNITS as u64 / (period / shared);
    // A refill of `r` units a microsecond is near enough for the smallest scale that yields it, if for any.
    let rounded = (1..=10_000u128).find_map(|refill| {
        let scale = (refill * u128::from(period)).div_ceil(u128::from(count));
        let burst = u64::try_from(MOST_UNITS as u128 / scale.max(1)).ok()?;
        (burst > 0 && units(count, period, burst).is_some()).then_some(burst)
    });
    rounded.into_iter().chain([exact]).max().filter(|burst| *burst > 0)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidLimit, message)
}

/// Names of the units, the longest first where one is printed, with their microseconds.
const UNITS: [(&str, &str, u64); 6] = [
    ("d", "day", 86_400_000_000),
    ("h", "hour", 3_600_000_000),
    ("m", "minute", 60_000_000),
    ("s", "second", 1_000_000),
    ("ms", "millisecond", 1_000),
    ("us", "microsecond", 1),
];

impl FromStr for Limit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            invalid(format!("{text:?}: {why}; write it like \"10/s\", \"100/15m burst 200\" or \"5000 per hour\""))
        };
        let (rate, burst) = match text.split_once("burst") {
            Some((rate, burst)) if rate.ends_with(char::is_whitespace) && burst.starts_with(char::is_whitespace) => {
                (rate, Some(burst))
            }
            Some(_) => return Err(wrong("`burst` stands between spaces, before a number")),
            None => (text, None),
        };
        let (count, period) = rate
            .split_once('/')
            .or_else(|| rate.split_once(" per "))
            .ok_or_else(|| wrong("there is no `/` or ` per ` between a number and a time"))?;
        let count = whole(count.trim()).ok_or_else(|| wrong("the number before the time is not a whole number"))?;
        let period = micros(period.trim()).ok_or_else(|| wrong("the time is not [number]us, ms, s, m, h or d"))?;
        let burst = match burst {
            Some(burst) => whole(burst.trim()).ok_or_else(|| wrong("the burst is not a whole number"))?,
            None => count,
        };
        Limit::from_micros(count, period, burst).map_err(|error| invalid(format!("{text:?}: {}", error.message())))
    }
}

/// Digits and nothing else, so that "+1", "1_000" and "1e3" are refused in every language alike.
fn whole(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().unwrap_or(u64::MAX))
}

fn micros(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (times, unit) = text.split_at(digits);
    let times = if times.is_empty() { 1 } else { whole(times)? };
    let unit = unit.trim_start();
    let (_, _, micros) = UNITS
        .into_iter()
        .find(|(short, long, _)| unit == *short || unit == *long || unit.strip_suffix('s') == Some(*long))?;
    Some(times.saturating_mul(micros))
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, micros) = UNITS
            .into_iter()
            .find_map(|(short, _, micros)| self.period.is_multiple_of(micros).then_some((short, micros)))
            .unwrap_or(("us", 1));
        write!(f, "{}/", self.count)?;
        if self.period != micros {
            write!(f, "{}", self.period / micros)?;
        }
        f.write_str(unit)?;
        if self.burst != self.count {
            write!(f, " burst {}", self.burst)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limit({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str) -> Limit {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn text_reads_and_prints_back() {
        for (text, printed) in [
            ("10/s", "10/s"),
            ("10 / s", "10/s"),
            ("10/s burst 20", "10/s burst 20"),
            ("10/s burst 10", "10/s"),
            ("100/15m", "100/15m"),
            ("5000 per hour", "5000/h"),
            ("1 per 2 days burst 7", "1/2d burst 7"),
            ("60/60s", "60/m"),
            ("7/1500ms", "7/1500ms"),
            ("3/7us", "3/7us"),
            (" 4/24h ", "4/d"),
            ("2/milliseconds", "2/ms"),
        ] {
            assert_eq!(limit(text).to_string(), printed, "{text}");
            assert_eq!(limit(printed), limit(text));
        }
    }

    #[test]
    fn what_says_nothing_is_refused() {
        for text in [
            "",
            "10",
            "/s",
            "10/",
            "10/x",
            "0/s",
            "10/0s",
            "10/s burst 0",
            "-1/s",
            "+1/s",
            "1.5/s",
            "1e3/s",
            "10/s burst",
            "10/s burst x",
            "10/sburst 20",
            "10/s burst20",
            "10/S",
            "1_000/s",
            "10 per",
            "10per s",
            "10/s 20",
            "99999999999999999999/s",
            "10/ss",
            "1/ds",
        ] {
            let error = text.parse::<Limit>().expect_err(text);
            assert_eq!(error.code(), "invalid_limit", "{text}");
        }
    }

    #[test]
    fn units_are_exact_where_they_fit() {
        let daily = limit("1000/d");
        assert_eq!((daily.refill, daily.scale), (1, 86_400_000));
        let fast = limit("5000000000/s");
        assert_eq!((fast.refill, fast.scale), (5000, 1));
        assert_eq!(limit("1/d burst 52000").scale, 86_400_000_000);
    }

    #[test]
    fn a_limit_that_does_not_fit_is_rounded_down_or_refused_with_the_burst_that_does() {
        let wide = limit("999999999999999/d");
        assert_eq!((wide.refill, wide.scale), (46_296, 4));
        let error = "1/s burst 999999999999999".parse::<Limit>().unwrap_err();
        let fits: u64 = error.message().rsplit(' ').next().unwrap().parse().unwrap();
        assert!(limit(&format!("1/s burst {fits}")).burst() == fits, "{error}");
        assert!("1/115740740740d burst 1000000".parse::<Limit>().is_err());
    }

    #[test]
    fn durations_below_a_microsecond_are_refused() {
        assert!(Limit::new(1, Duration::from_nanos(1500)).is_err());
        assert!(Limit::new(1, Duration::ZERO).is_err());
        assert_eq!(Limit::new(1, Duration::from_secs(1)).unwrap().with_burst(5).unwrap(), limit("1/s burst 5"));
    }
}
