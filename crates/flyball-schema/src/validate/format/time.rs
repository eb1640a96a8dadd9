//! Dates, times and durations.
// kube-openapi/pkg/validation/strfmt/{date,time,duration}.go

use crate::go_duration;
use jiff::civil::Date;

/// `2006-01-02`
pub(super) fn is_date(text: &str) -> bool {
    let digits =
        |range: std::ops::Range<usize>| text.get(range).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let shape = text.len() == 10 && text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
    let date = || {
        let (year, month, day) = (digits(0..4)?, digits(5..7)?, digits(8..10)?);
        Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()
    };
    shape && date().is_some()
}

/// A date, a `T` and a time with an offset.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && is_time(time)
}

/// `^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$`, within a day
fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else {
        return false;
    };
    let in_clock = clock.bytes().enumerate().all(|(index, byte)| match index {
        2 | 5 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    if !in_clock || &clock[..2] > "23" || &clock[3..5] > "59" || &clock[6..] > "59" {
        return false;
    }
    // Any one character may stand before the digits of the fraction.
    let mut characters = rest.chars();
    characters.next();
    let fraction = characters.as_str();
    let after = fraction.trim_start_matches(|character: char| character.is_ascii_digit());
    is_offset(rest) || (after.len() < fraction.len() && is_offset(after))
        // A sign is such a character too, and the offset's own digits may look like a fraction.
        || (1..fraction.len()).any(|end| {
            fraction.is_char_boundary(end)
                && fraction[..end].bytes().all(|byte| byte.is_ascii_digit())
                && is_offset(&fraction[end..])
        })
}

fn is_offset(text: &str) -> bool {
    match text.as_bytes() {
        b"z" => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].into_iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// What Go's `time.ParseDuration` takes, or any text with a number and a unit in it, as Scala has them.
pub(super) fn is_duration(text: &str) -> bool {
    go_duration::is_duration(text) || has_amount(text)
}

/// Whether digits are followed by the name of a unit anywhere.
fn has_amount(text: &str) -> bool {
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    let is_letter = |character: char| character.is_ascii_alphabetic() || character == 'µ';
    let after_digits = text.split(|character: char| character.is_ascii_digit()).skip(1);
    after_digits.filter(|rest| !rest.is_empty()).any(|rest| {
        let word: String = rest.trim_start().chars().take_while(|character| is_letter(*character)).collect();
        let word = word.to_lowercase();
        UNITS
            .iter()
            .any(|names| names.contains(&&*word) || names.last().is_some_and(|last| word.starts_with(last)))
    })
}
