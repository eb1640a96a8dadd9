//! `metav1.Time` and `MicroTime`: parsed with Go's complaints, printed in UTC.
// Go's time.Parse with the layouts of apimachinery/pkg/apis/meta/v1/{time,micro_time}.go

use crate::go_text;
use jiff::SignedDuration;
use jiff::civil::Date;

/// How precise a time is, and so how it is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    Seconds,
    Microseconds,
}

impl Precision {
    fn layout(self) -> &'static str {
        match self {
            Precision::Seconds => "2006-01-02T15:04:05Z07:00",
            Precision::Microseconds => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

/// Why an element of the layout was not found; an empty message says only where.
struct Mismatch<'a> {
    element: &'static str,
    at: &'a str,
    message: String,
}

fn mismatch<'a>(element: &'static str, at: &'a str) -> Mismatch<'a> {
    Mismatch { element, at, message: String::new() }
}

fn out_of_range<'a>(what: &str) -> Mismatch<'a> {
    Mismatch {
        element: "",
        at: "",
        message: format!(": {what} out of range"),
    }
}

/// The time as Kubernetes prints it, or Go's complaint.
pub(super) fn canonical(text: &str, precision: Precision) -> Result<String, String> {
    let mut parser = Parser { rest: text };
    parser.time(precision).map_err(|wrong| {
        let text = go_text::quote(text);
        if !wrong.message.is_empty() {
            return format!("parsing time {text}{}", wrong.message);
        }
        let (layout, at) = (go_text::quote(precision.layout()), go_text::quote(wrong.at));
        format!("parsing time {text} as {layout}: cannot parse {at} as {}", go_text::quote(wrong.element))
    })
}

impl<'a> Parser<'a> {
    fn time(&mut self, precision: Precision) -> Result<String, Mismatch<'a>> {
        let year = self.year()?;
        self.skip("-")?;
        let month = self.pair("01", true, 1..13, "month")?;
        self.skip("-")?;
        let day = self.pair("02", true, 0..100, "day")?;
        self.skip("T")?;
        let hour = self.pair("15", false, 0..24, "hour")?;
        self.skip(":")?;
        let minute = self.pair("04", true, 0..60, "minute")?;
        self.skip(":")?;
        let second = self.pair("05", true, 0..60, "second")?;
        let micros = self.fraction(precision)?;
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            let message = format!(": extra text: {}", go_text::quote(self.rest));
            return Err(Mismatch { element: "", at: "", message });
        }
        let date = Date::new(year, month, day).map_err(|_| out_of_range("day"))?;
        let civil = date.at(hour, minute, second, micros * 1000);
        let offset = SignedDuration::from_secs(offset);
        let utc = civil.checked_sub(offset).map_err(|_| out_of_range("year"))?;
        Ok(match precision {
            Precision::Seconds => utc.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            Precision::Microseconds => utc.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
        })
    }

    fn year(&mut self) -> Result<i16, Mismatch<'a>> {
        let digits = self.rest.get(..4).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let year = digits.and_then(|digits| digits.parse().ok()).ok_or(mismatch("2006", self.rest))?;
        self.rest = &self.rest[4..];
        Ok(year)
    }

    fn skip(&mut self, separator: &'static str) -> Result<(), Mismatch<'a>> {
        self.rest = self.rest.strip_prefix(separator).ok_or(mismatch(separator, self.rest))?;
        Ok(())
    }

    fn pair(
        &mut self,
        element: &'static str,
        fixed: bool,
        range: std::ops::Range<i8>,
        what: &str,
    ) -> Result<i8, Mismatch<'a>> {
        let digit = |index: usize| self.rest.as_bytes().get(index).filter(|byte| byte.is_ascii_digit());
        let length = match (digit(0), digit(1)) {
            (Some(_), Some(_)) => 2,
            (Some(_), None) if !fixed => 1,
            _ => return Err(mismatch(element, self.rest)),
        };
        let (number, rest) = self.rest.split_at(length);
        self.rest = rest;
        let number = number.parse().unwrap_or_default();
        if range.contains(&number) {
            Ok(number)
        } else {
            Err(out_of_range(what))
        }
    }

    /// Microseconds: six digits where the layout has them, any number of them dropped where it has none.
    fn fraction(&mut self, precision: Precision) -> Result<i32, Mismatch<'a>> {
        let wrong = mismatch(".000000", self.rest);
        let digits = self.rest.strip_prefix(['.', ',']);
        let count = digits.map_or(0, |digits| digits.bytes().take_while(u8::is_ascii_digit).count());
        match precision {
            Precision::Seconds if count == 0 => Ok(0),
            Precision::Seconds => {
                self.rest = &self.rest[count + 1..];
                Ok(0)
            }
            Precision::Microseconds if count < 6 => Err(wrong),
            Precision::Microseconds => {
                let micros = self.rest[1..7].parse().unwrap_or_default();
                self.rest = &self.rest[7..];
                Ok(micros)
            }
        }
    }

    /// How many seconds east of UTC.
    fn offset(&mut self) -> Result<i64, Mismatch<'a>> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let wrong = || mismatch("Z07:00", self.rest);
        let sign = match self.rest.as_bytes() {
            [b'+', _, _, b':', _, _, ..] => 1,
            [b'-', _, _, b':', _, _, ..] => -1,
            _ => return Err(wrong()),
        };
        let number = |from: usize| {
            let digits = self
                .rest
                .get(from..from + 2)
                .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            digits.and_then(|digits| digits.parse::<i64>().ok()).ok_or_else(wrong)
        };
        let (hours, minutes) = (number(1)?, number(4)?);
        self.rest = &self.rest[6..];
        match (hours, minutes) {
            (25.., _) => Err(out_of_range("time zone offset hour")),
            (_, 61..) => Err(out_of_range("time zone offset minute")),
            _ => Ok(sign * (hours * 3600 + minutes * 60)),
        }
    }
}
