//! Times as logs write them, in microseconds since 1970 (UTC), and back.

const SECOND: u64 = 1_000_000;
const DAY: i64 = 86_400;

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Any of the notations below.
pub(crate) fn read(text: &[u8]) -> Option<u64> {
    rfc3339(text).or_else(|| access_log(text)).or_else(|| epoch(std::str::from_utf8(text).ok()?.parse().ok()?))
}

/// `17/May/2015:10:05:03 +0200`, as access logs have it.
pub(crate) fn access_log(text: &[u8]) -> Option<u64> {
    if text.len() < 22 || text[2] != b'/' || text[6] != b'/' || text[11] != b':' || text[20] != b' ' {
        return None;
    }
    let month = MONTHS.iter().position(|name| name[..] == text[3..6])? as i64 + 1;
    let seconds = date(number(&text[7..11])?, month, number(&text[..2])?)? * DAY + clock(&text[12..20])?;
    u64::try_from(seconds - offset(&text[21..])?).ok()?.checked_mul(SECOND)
}

/// `2015-05-17T10:05:03.25+02:00`; also with a blank for the T, with a decimal comma, and without a zone, which means UTC.
pub(crate) fn rfc3339(text: &[u8]) -> Option<u64> {
    if text.len() < 19 || text[4] != b'-' || text[7] != b'-' || !matches!(text[10], b'T' | b't' | b' ') {
        return None;
    }
    let seconds = date(number(&text[..4])?, number(&text[5..7])?, number(&text[8..10])?)? * DAY + clock(&text[11..19])?;
    let rest = &text[19..];
    let (micros, zone) = match rest.first() {
        Some(b'.' | b',') => {
            let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (fraction, zone) = rest[1..].split_at(digits);
            (micros(fraction)?, zone)
        }
        _ => (0, rest),
    };
    let zone = if zone.is_empty() { 0 } else { offset(zone)? };
    u64::try_from(seconds - zone).ok()?.checked_mul(SECOND)?.checked_add(micros)
}

/// A number since 1970, whose size says whether it counts seconds, milli-, micro- or nanoseconds: each is taken for what
/// puts it between 1973 and 5138, where they do not overlap.
pub(crate) fn epoch(number: f64) -> Option<u64> {
    let micros = match number {
        0.0..1e11 => number * 1e6,
        1e11..1e14 => number * 1e3,
        1e14..1e17 => number,
        1e17..1e20 => number / 1e3,
        _ => return None,
    };
    Some(micros.round() as u64)
}

/// `2015-05-17 10:05:03`, in UTC.
pub(crate) fn write(at: u64) -> String {
    let seconds = (at / SECOND) as i64;
    let (year, month, day) = civil(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// RFC 3339 in UTC, with the microseconds where there are any.
pub(crate) fn write_rfc3339(at: u64) -> String {
    let fraction = match at % SECOND {
        0 => String::new(),
        micros => format!(".{micros:06}"),
    };
    format!("{}{fraction}Z", write(at).replace(' ', "T"))
}

/// `10:05:03`
fn clock(text: &[u8]) -> Option<i64> {
    if text[2] != b':' || text[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (number(&text[..2])?, number(&text[3..5])?, number(&text[6..8])?);
    (hour < 24 && minute < 60 && second < 60).then_some((hour * 60 + minute) * 60 + second)
}

/// `Z`, `+0200`, `+02:00` or `+02`, in seconds east of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    let (hours, minutes) = match text {
        b"Z" | b"z" => return Some(0),
        [_, hours @ ..] if hours.len() == 2 => (number(hours)?, 0),
        [_, digits @ ..] if digits.len() == 4 => (number(&digits[..2])?, number(&digits[2..])?),
        [_, digits @ ..] if digits.len() == 5 && digits[2] == b':' => (number(&digits[..2])?, number(&digits[3..])?),
        _ => return None,
    };
    let east = (hours * 60 + minutes) * 60;
    match text[0] {
        b'+' if minutes < 60 => Some(east),
        b'-' if minutes < 60 => Some(-east),
        _ => None,
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

/// The digits behind the point as microseconds; finer ones are cut off.
fn micros(fraction: &[u8]) -> Option<u64> {
    let six = &fraction[..fraction.len().min(6)];
    let scale = 10_u64.pow(6 - six.len() as u32);
    (!six.is_empty()).then_some(number(six)? as u64 * scale)
}

/// The days from 1970 to a date that exists.
fn date(year: i64, month: i64, day: i64) -> Option<i64> {
    let days = days(year, month, day);
    (civil(days) == (year, month, day)).then_some(days)
}

/// Days since 1970 of a date of the Gregorian calendar. Years begin in March here, so that leap days come last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a day since 1970: the inverse of [`days`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_moment_in_every_notation() {
        let moment = 1_431_857_103 * SECOND;
        for text in [
            "17/May/2015:10:05:03 +0000",
            "17/May/2015:12:05:03 +0200",
            "17/May/2015:04:35:03 -0530",
            "2015-05-17T10:05:03Z",
            "2015-05-17t12:05:03+02:00",
            "2015-05-17 10:05:03",
            "2015-05-17 11:05:03.000+01",
            "1431857103",
            "1431857103.0",
            "1431857103000",
            "1431857103000000",
            "1431857103000000000",
        ] {
            assert_eq!(read(text.as_bytes()), Some(moment), "{text}");
        }
        assert_eq!(write(moment), "2015-05-17 10:05:03");
    }

    #[test]
    fn fractions_are_kept_to_the_microsecond() {
        let fraction = |text: &str| read(text.as_bytes()).map(|at| at % SECOND);
        assert_eq!(fraction("2015-05-17T10:05:03.25Z"), Some(250_000));
        assert_eq!(fraction("2015-05-17T10:05:03,1234569Z"), Some(123_456));
        assert_eq!(fraction("1431857103.123456"), Some(123_456));
        assert_eq!(write_rfc3339(1_500_000), "1970-01-01T00:00:01.500000Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "-",
            "yesterday",
            "31/Apr/2015:10:05:03 +0000",
            "29/Feb/2015:10:05:03 +0000",
            "17/Mai/2015:10:05:03 +0000",
            "17/May/2015:24:05:03 +0000",
            "17/May/2015:10:05:03",
            "17/May/2015:10:05:03 0000",
            "2015-05-17T10:05:03+2",
            "2015-05-17T10:05:03.Z",
            "1969-12-31T23:59:59Z",
            "-5",
            "NaN",
            "1e30",
        ] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn every_day_has_one_date() {
        let mut before = civil(-1);
        for day in 0..60_000 {
            let (year, month, date) = civil(day);
            assert!((year, month, date) > before);
            assert_eq!(days(year, month, date), day);
            before = (year, month, date);
        }
        assert_eq!(days(2000, 2, 29), 11_016);
    }
}
