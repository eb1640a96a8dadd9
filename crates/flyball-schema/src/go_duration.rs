//! Durations as Go writes them, such as `1h2m3.5s`.

/// Whether Go's `time.ParseDuration` takes it.
pub fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        let (amount, after) = rest.split_at(number);
        let digits = amount.bytes().filter(u8::is_ascii_digit).count();
        if digits == 0 || amount.len() - digits > 1 {
            return false;
        }
        let unit = after
            .find(|character: char| character.is_ascii_digit() || character == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        if !["ns", "us", "µs", "μs", "ms", "s", "m", "h"].contains(&unit) {
            return false;
        }
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for text in ["30s", "1h2m3s", "1.5h", "0", "-3ms", "250µs"] {
            assert!(is_duration(text), "{text}");
        }
        for text in ["", "soon", "30", "s", "1.2.3s", "3x", "-", "1sm"] {
            assert!(!is_duration(text), "{text}");
        }
    }
}
