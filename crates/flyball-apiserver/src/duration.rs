//! `timeout` in the query: a duration as Go writes it.

use crate::call::Call;
use crate::request::Verb;
use crate::status::{Result, Status};

/// Refuses a timeout that is no duration. What lasts longer than a minute is cut to that, and nothing here does.
// apiserver/pkg/endpoints/filters/request_deadline.go
pub(crate) fn check_timeout(call: &Call) -> Result<()> {
    let Some(text) = call.query.get("timeout").filter(|_| call.target.verb != Verb::Watch) else {
        return Ok(());
    };
    match is_duration(text) {
        true => Ok(()),
        false => {
            let why = format!("invalid timeout specified in the request URL - time: invalid duration {text:?}");
            Err(Status::bad_request(why))
        }
    }
}

/// Whether Go's `time.ParseDuration` takes it.
fn is_duration(text: &str) -> bool {
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
        let (digits, unit) = rest.split_at(number);
        if !digits.contains(|character: char| character.is_ascii_digit()) || digits.matches('.').count() > 1 {
            return false;
        }
        let units = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
        let Some(found) = units.iter().filter(|name| unit.starts_with(**name)).max_by_key(|name| name.len()) else {
            return false;
        };
        rest = &unit[found.len()..];
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
        for text in ["", "soon", "30", "s", "1.2.3s", "3x", "-"] {
            assert!(!is_duration(text), "{text}");
        }
    }
}
