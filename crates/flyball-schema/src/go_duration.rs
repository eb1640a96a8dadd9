//! Durations as Go writes them, such as `1h2m3.5s`.

/// Whether Go's `time.ParseDuration` takes it.
pub fn is_duration(text: &str) -> bool {
    parse(text).is_some()
}

/// The nanoseconds of a duration, as Go's `time.ParseDuration` reads it; none if it is none, or too long.
pub fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let is_number = |character: char| character.is_ascii_digit() || character == '.';
        let (amount, after) = rest.split_at(rest.find(|character| !is_number(character)).unwrap_or(rest.len()));
        let (unit, after) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        total = total.checked_add(nanoseconds(amount, unit)?)?;
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// A decimal amount of a unit.
fn nanoseconds(amount: &str, unit: &str) -> Option<i128> {
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // More digits than these are less than a nanosecond of an hour.
    let fraction = &fraction[..fraction.len().min(13)];
    let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    whole.checked_mul(unit)?.checked_add(part * unit / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for text in ["30s", "1h2m3s", "1.5h", "0", "-3ms", "250µs"] {
            assert!(is_duration(text), "{text}");
        }
        for text in ["", "soon", "30", "s", "1.2.3s", "3x", "-", "1sm", "3000000h"] {
            assert!(!is_duration(text), "{text}");
        }
    }

    #[test]
    fn durations_are_summed_up() {
        for (text, nanoseconds) in [
            ("1ns", 1),
            ("-1.5ms", -1_500_000),
            ("1h2m3.25s", 3_723_250_000_000),
            (".5s", 500_000_000),
            ("2562047h", 9_223_369_200_000_000_000),
        ] {
            assert_eq!(parse(text), Some(nanoseconds), "{text}");
        }
    }
}
