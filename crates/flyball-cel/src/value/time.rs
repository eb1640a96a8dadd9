//! Durations and timestamps, in Go's notation and within the language's range.

use crate::eval::EvalError;
use jiff::tz::TimeZone;
use std::cmp::Ordering;
use std::fmt;

/// The first second of the year 1, and the last of the year 9999.
const MIN_SECONDS: i64 = -62_135_596_800;
const MAX_SECONDS: i64 = 253_402_300_799;
const SECOND: i64 = 1_000_000_000;
/// How many bytes the name of a file may have, which Go takes each part of a zone's name for.
const MAX_FILE_NAME: usize = 255;

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

impl Duration {
    /// A span of so many nanoseconds.
    pub fn from_nanoseconds(nanoseconds: i64) -> Duration {
        Duration(nanoseconds)
    }

    /// The span of a protocol buffer message: sums that are too large are the longest span.
    pub(crate) fn from_parts(seconds: i64, nanoseconds: i64) -> Duration {
        let whole = i128::from(seconds) * i128::from(SECOND) + i128::from(nanoseconds);
        Duration(whole.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// How many nanoseconds it lasts.
    pub fn nanoseconds(self) -> i64 {
        self.0
    }

    /// How many seconds, with a fraction.
    pub fn seconds(self) -> f64 {
        (self.0 / SECOND) as f64 + (self.0 % SECOND) as f64 / 1e9
    }

    /// Reads Go's notation, `-1h2m3.5s`.
    pub fn parse(text: &str) -> Option<Duration> {
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Some(Duration(0));
        }
        let mut total: u64 = 0;
        while !rest.is_empty() || total == 0 {
            let (nanoseconds, after) = parse_part(rest)?;
            total = total.checked_add(nanoseconds).filter(|total| *total <= 1 << 63)?;
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        match (negative, i64::try_from(total)) {
            (false, Ok(total)) => Some(Duration(total)),
            (true, Ok(total)) => Some(Duration(-total)),
            (true, Err(_)) => Some(Duration(i64::MIN)),
            (false, Err(_)) => None,
        }
    }
}

/// One number with its unit, in nanoseconds, and what follows.
fn parse_part(text: &str) -> Option<(u64, &str)> {
    let whole_end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (whole, mut rest) = text.split_at(whole_end);
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        let end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
        (fraction, rest) = after.split_at(end);
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit_end = rest.find(|letter: char| letter == '.' || letter.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let unit: u64 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanoseconds = whole.checked_mul(unit)?;
    let digits = &fraction[..fraction.len().min(18)];
    let part = match digits.is_empty() {
        true => 0,
        false => (digits.parse::<u64>().ok()? as f64 * (unit as f64 / 10f64.powi(digits.len() as i32))) as u64,
    };
    Some((nanoseconds.checked_add(part).filter(|total| *total <= 1 << 63)?, rest))
}

impl Duration {
    /// The span as Go shows it: `1h30m0s`, `1.5ms`.
    pub(super) fn go_text(self) -> String {
        let sign = if self.0 < 0 { "-" } else { "" };
        let span = self.0.unsigned_abs();
        let (unit, name) = match span {
            0 => return "0s".into(),
            1..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let fraction = format!("{:0width$}", span % unit, width = unit.ilog10() as usize);
        let fraction = match fraction.trim_end_matches('0') {
            "" => String::new(),
            digits => format!(".{digits}"),
        };
        let whole = span / unit;
        match name {
            "s" if whole >= 3_600 => {
                format!("{sign}{}h{}m{}{fraction}s", whole / 3_600, whole / 60 % 60, whole % 60)
            }
            "s" if whole >= 60 => format!("{sign}{}m{}{fraction}s", whole / 60, whole % 60),
            name => format!("{sign}{whole}{fraction}{name}"),
        }
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.seconds())
    }
}

/// A point in time, with the offset from UTC in which it is written.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    seconds: i64,
    nanoseconds: u32,
    offset: i32,
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Timestamp) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Timestamp) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Timestamp) -> Ordering {
        (self.seconds, self.nanoseconds).cmp(&(other.seconds, other.nanoseconds))
    }
}

impl Timestamp {
    /// So many seconds and nanoseconds after 1970 began, in UTC, if the years 1 to 9999 have that.
    pub fn new(seconds: i64, nanoseconds: u32) -> Option<Timestamp> {
        let fits = (MIN_SECONDS..=MAX_SECONDS).contains(&seconds) && i64::from(nanoseconds) < SECOND;
        fits.then_some(Timestamp { seconds, nanoseconds, offset: 0 })
    }

    /// The point of a protocol buffer message, which may be out of the language's range.
    pub(crate) fn from_parts(seconds: i64, nanoseconds: i64) -> Timestamp {
        Timestamp {
            seconds: seconds.wrapping_add(nanoseconds.div_euclid(SECOND)),
            nanoseconds: nanoseconds.rem_euclid(SECOND) as u32,
            offset: 0,
        }
    }

    /// Seconds since 1970 began.
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds since that second began.
    pub fn nanoseconds(self) -> u32 {
        self.nanoseconds
    }

    pub(crate) fn is_zero(self) -> bool {
        self.seconds == MIN_SECONDS && self.nanoseconds == 0
    }

    /// Reads RFC 3339.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let bytes = text.as_bytes();
        let digits = |from: usize, to: usize| {
            let part = text.get(from..to)?;
            part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<i64>().ok())?
        };
        for (at, mark) in [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')] {
            if bytes.get(at) != Some(&mark) {
                return None;
            }
        }
        let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
        let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
        let (nanoseconds, zone) = fraction(text.get(19..)?)?;
        let offset = zone_offset(zone)?;
        let date = jiff::civil::Date::new(year as i16, month as i8, day as i8).ok()?;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let epoch = jiff::civil::date(1970, 1, 1);
        let days = i64::from(epoch.until(date).ok()?.get_days());
        let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - i64::from(offset);
        Some(Timestamp { seconds, nanoseconds, offset })
    }

    /// The same, with the lower-case letters, the blank and the short forms that Kubernetes' date-time format allows.
    pub(crate) fn parse_lenient(text: &str) -> Option<Timestamp> {
        let upper = text.to_ascii_uppercase();
        Timestamp::parse(&upper).filter(|point| point.is_in_range())
    }

    /// The same point, shown without offset.
    pub fn in_utc(self) -> Timestamp {
        Timestamp { offset: 0, ..self }
    }

    /// Whether the language can hold it.
    pub(crate) fn is_in_range(self) -> bool {
        (MIN_SECONDS..=MAX_SECONDS).contains(&self.seconds)
    }

    pub(crate) fn add(self, span: Duration) -> Result<Timestamp, EvalError> {
        let nanoseconds = i64::from(self.nanoseconds) + span.0 % SECOND;
        let seconds = self.seconds.saturating_add(span.0 / SECOND + nanoseconds.div_euclid(SECOND));
        if !(MIN_SECONDS..=MAX_SECONDS).contains(&seconds) {
            return Err(EvalError::new("timestamp overflow"));
        }
        Ok(Timestamp {
            seconds,
            nanoseconds: nanoseconds.rem_euclid(SECOND) as u32,
            offset: self.offset,
        })
    }

    pub(crate) fn since(self, other: Timestamp) -> Result<Duration, EvalError> {
        let seconds = self.seconds.checked_sub(other.seconds);
        let nanoseconds = i64::from(self.nanoseconds) - i64::from(other.nanoseconds);
        let whole = seconds
            .and_then(|seconds| seconds.checked_mul(SECOND))
            .and_then(|whole| whole.checked_add(nanoseconds));
        whole.map(Duration).ok_or_else(|| EvalError::new("integer overflow"))
    }

    /// The point as Go shows it: `2023-01-01 00:00:00 +0000 UTC`.
    pub(super) fn go_text(self) -> String {
        let local = Timestamp {
            seconds: self.seconds.saturating_add(self.offset.into()),
            offset: 0,
            ..self
        };
        let text = local.to_string();
        let text = text.trim_end_matches('Z').replace('T', " ");
        match self.offset {
            0 => format!("{text} +0000 UTC"),
            offset => {
                let sign = if offset < 0 { '-' } else { '+' };
                let zone = format!("{sign}{:02}{:02}", offset.abs() / 3_600, offset.abs() / 60 % 60);
                format!("{text} {zone} {zone}")
            }
        }
    }

    /// The date and time on a clock in this zone: an IANA name, or an offset such as `-08:00`.
    pub(crate) fn civil(self, zone: &str) -> Result<Civil, EvalError> {
        let offset = match zone.split_once(':') {
            None => self.named_offset(zone)?,
            Some((hours, minutes)) => {
                let number = |text: &str| {
                    let invalid = || EvalError::new(format!("strconv.Atoi: parsing {text:?}: invalid syntax"));
                    text.parse::<i64>().map_err(|_| invalid())
                };
                let (hours, minutes) = (number(hours)?, number(minutes)?);
                let minutes = if zone.starts_with('-') { -minutes } else { minutes };
                hours.saturating_mul(60).saturating_add(minutes).saturating_mul(60)
            }
        };
        Ok(Civil::new(self.seconds.saturating_add(offset), self.nanoseconds))
    }

    fn named_offset(self, zone: &str) -> Result<i64, EvalError> {
        if zone.is_empty() || zone == "UTC" {
            return Ok(0);
        }
        if zone.contains("..") || zone.starts_with(['/', '\\']) {
            return Err(EvalError::new("time: invalid location name"));
        }
        if zone.split('/').any(|part| part.len() > MAX_FILE_NAME) {
            return Err(EvalError::new("file name too long"));
        }
        let unknown = || EvalError::new(format!("unknown time zone {zone}"));
        let zone = TimeZone::get(zone).map_err(|_| unknown())?;
        // Rules of zones do not change in the last days of the year 9999, which jiff cannot look up.
        let seconds = self.seconds.clamp(jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
        let point = jiff::Timestamp::new(seconds, 0).map_err(|_| EvalError::new("timestamp overflow"))?;
        Ok(i64::from(zone.to_offset(point).seconds()))
    }
}

/// The date so many days after 1970 began, in the Gregorian calendar; an offset may move it beyond the year 9999.
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A date and time on a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Civil {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    /// From zero.
    pub day_of_year: i64,
    /// From zero, Sunday.
    pub weekday: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub millisecond: i64,
}

impl Civil {
    fn new(seconds: i64, nanoseconds: u32) -> Civil {
        let days = seconds.div_euclid(86_400);
        let second = seconds.rem_euclid(86_400);
        let (year, month, day) = date(days);
        let passed = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        Civil {
            year,
            month,
            day,
            day_of_year: passed[(month - 1) as usize] + day - 1 + i64::from(leap && month > 2),
            weekday: (days + 4).rem_euclid(7),
            hour: second / 3_600,
            minute: second / 60 % 60,
            second: second % 60,
            millisecond: i64::from(nanoseconds) / 1_000_000,
        }
    }
}

/// A fraction of a second in nanoseconds, and what follows it.
fn fraction(text: &str) -> Option<(u32, &str)> {
    let Some(rest) = text.strip_prefix(['.', ',']) else {
        return Some((0, text));
    };
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let digits = rest.get(..end.min(9)).filter(|digits| !digits.is_empty())?;
    let nanoseconds = digits.parse::<u32>().ok()? * 10u32.pow(9 - digits.len() as u32);
    Some((nanoseconds, &rest[end..]))
}

fn zone_offset(zone: &str) -> Option<i32> {
    if zone == "Z" {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let number = |text: &str, most: i32| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<i32>().ok())?.filter(|number| *number <= most)
    };
    Some(sign * (number(hours, 24)? * 3_600 + number(minutes, 60)? * 60))
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = self.seconds.saturating_add(self.offset.into());
        let (year, month, day) = date(local.div_euclid(86_400));
        let second = local.rem_euclid(86_400);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanoseconds > 0 {
            let digits = format!("{:09}", self.nanoseconds);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        match self.offset {
            0 => f.write_str("Z"),
            offset => {
                let sign = if offset < 0 { '-' } else { '+' };
                let minutes = offset.abs() / 60;
                write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let cases = [
            ("1h2m3.5s", Some(3_723_500_000_000)),
            ("-1.5h", Some(-5_400_000_000_000)),
            ("0", Some(0)),
            ("+5µs", Some(5_000)),
            (".5s", Some(500_000_000)),
            ("1", None),
            ("", None),
            ("s", None),
            ("1d", None),
            ("9223372036854775807ns", Some(i64::MAX)),
            ("9223372036854775808ns", None),
            ("-9223372036854775808ns", Some(i64::MIN)),
        ];
        for (text, expected) in cases {
            assert_eq!(Duration::parse(text).map(Duration::nanoseconds), expected, "{text:?}");
        }
    }

    #[test]
    fn timestamps_keep_their_offset_when_shown() {
        for text in [
            "2009-02-13T23:31:30Z",
            "2009-02-13T23:31:30.123456789+05:30",
            "0001-01-01T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(text).expect("valid").to_string(), text);
        }
        for text in [
            "2009-02-30T00:00:00Z",
            "2009-02-13 23:31:30Z",
            "2009-02-13T23:31:30",
            "2009-02-13T24:00:00Z",
        ] {
            assert!(Timestamp::parse(text).is_none(), "{text}");
        }
        let late = Timestamp::parse("9999-12-31T23:00:00+05:00").expect("valid");
        let later = late.add(Duration::from_nanoseconds(2 * 3_600 * SECOND)).expect("still in 9999 in UTC");
        assert_eq!(later.to_string(), "10000-01-01T01:00:00+05:00");
        let one = Timestamp::parse("2009-02-13T23:31:30+01:00");
        assert_eq!(one, Timestamp::parse("2009-02-13T22:31:30Z"));
    }

    #[test]
    fn zones_are_names_or_offsets() {
        let point = Timestamp::parse("2009-02-13T23:31:30Z").expect("valid");
        assert_eq!(point.civil("Asia/Kolkata").expect("known").hour, 5);
        assert_eq!(point.civil("-02:30").expect("an offset").minute, 1);
        let last = Timestamp::parse("9999-12-31T23:59:59.999999999Z")
            .expect("valid")
            .civil("+02:30")
            .expect("an offset");
        assert_eq!((last.year, last.month, last.day_of_year, last.hour), (10_000, 1, 0, 2));
        assert_eq!(
            point.civil("Nowhere/Else").expect_err("unknown").message(),
            "unknown time zone Nowhere/Else"
        );
        let long = point.civil(&"x".repeat(MAX_FILE_NAME + 1)).expect_err("too long");
        assert_eq!(long.message(), "file name too long");
    }
}
