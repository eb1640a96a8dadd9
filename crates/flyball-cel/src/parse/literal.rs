//! Reads the values of number, string and bytes tokens.

/// The text or bytes of a string token, quotes and escapes taken off.
pub(super) fn unquote(token: &str, bytes: bool) -> Result<Vec<u8>, &'static str> {
    let token = token.replace("\r\n", "\n").replace('\r', "\n");
    let raw = token.starts_with(['r', 'R']);
    let quoted = if raw { &token[1..] } else { &token };
    let triple = quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\""));
    let marks = if triple { 3 } else { 1 };
    let Some(inner) = quoted.get(marks..quoted.len().saturating_sub(marks)) else {
        return Err("unable to unescape string");
    };
    if raw || !inner.contains('\\') {
        return Ok(inner.as_bytes().to_vec());
    }
    let mut value = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(letter) = rest.chars().next() {
        if letter == '\\' {
            rest = unescape(&rest[1..], bytes, &mut value)?;
        } else {
            rest = &rest[letter.len_utf8()..];
            push(&mut value, letter);
        }
    }
    Ok(value)
}

fn push(value: &mut Vec<u8>, letter: char) {
    value.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Reads one escape sequence behind its backslash; answers what follows it.
fn unescape<'a>(rest: &'a str, bytes: bool, value: &mut Vec<u8>) -> Result<&'a str, &'static str> {
    let Some(letter) = rest.chars().next() else {
        return Err("unable to unescape string, found '\\' as last character");
    };
    let after = &rest[letter.len_utf8()..];
    let plain = match letter {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        '\\' | '\'' | '"' | '`' | '?' => letter as u8,
        'x' | 'X' => return code_point(after, 2, 16, bytes, value),
        'u' if !bytes => return code_point(after, 4, 16, bytes, value),
        'U' if !bytes => return code_point(after, 8, 16, bytes, value),
        '0'..='3' => return code_point(rest, 3, 8, bytes, value),
        _ => return Err("unable to unescape string"),
    };
    value.push(plain);
    Ok(after)
}

fn code_point<'a>(
    rest: &'a str,
    digits: usize,
    radix: u32,
    bytes: bool,
    value: &mut Vec<u8>,
) -> Result<&'a str, &'static str> {
    let wrong = match radix {
        8 => "unable to unescape octal sequence in string",
        _ => "unable to unescape string",
    };
    let text = rest.get(..digits).ok_or(wrong)?;
    let number = u32::from_str_radix(text, radix).map_err(|_| wrong)?;
    if bytes {
        value.push(number as u8);
    } else {
        push(value, char::from_u32(number).ok_or("invalid unicode code point")?);
    }
    Ok(&rest[digits..])
}

/// An integer in decimal or, behind `0x`, hexadecimal digits.
pub(super) fn int(token: &str, negative: bool) -> Option<i64> {
    let (digits, radix) = radix(token);
    let magnitude = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// The same, followed by `u`.
pub(super) fn uint(token: &str) -> Option<u64> {
    let (digits, radix) = radix(&token[..token.len().saturating_sub(1)]);
    u64::from_str_radix(digits, radix).ok()
}

fn radix(token: &str) -> (&str, u32) {
    match token.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (token, 10),
    }
}

/// A floating point number; what is too large for one is none.
pub(super) fn double(token: &str, negative: bool) -> Option<f64> {
    let number: f64 = token.parse().ok()?;
    let number = if negative { -number } else { number };
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_unquoted() {
        let text = |token: &str| unquote(token, false).map(|value| String::from_utf8(value).expect("text"));
        let cases = [
            (r"'a\tb'", Ok("a\tb")),
            (r"r'a\tb'", Ok(r"a\tb")),
            (r"'''it's'''", Ok("it's")),
            (r"'\u00e9\U0001F431\x41\101'", Ok("é🐱AA")),
            (r"'\udead'", Err("invalid unicode code point")),
            ("''", Ok("")),
            ("'a\r\nb'", Ok("a\nb")),
        ];
        for (token, expected) in cases {
            assert_eq!(text(token).as_deref(), expected.as_deref(), "{token}");
        }
        assert_eq!(unquote(r"'\xff\377é'", true), Ok(vec![255, 255, 0xc3, 0xa9]));
    }

    #[test]
    fn numbers_keep_to_their_range() {
        assert_eq!(int("9223372036854775808", true), Some(i64::MIN));
        assert_eq!(int("9223372036854775808", false), None);
        assert_eq!(int("0xff", true), Some(-255));
        assert_eq!(uint("18446744073709551615u"), Some(u64::MAX));
        assert_eq!(double("1.99e90000009", false), None);
    }
}
