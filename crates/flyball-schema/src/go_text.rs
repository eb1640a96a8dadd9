//! How Go prints values: `%q`, `%v` and `encoding/json`. Messages repeat these to the letter.

use serde_json::{Map, Number, Value};
use std::fmt::Write;

/// Quotes a string as `strconv.Quote` does.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        push_quoted(&mut out, character);
    }
    out.push('"');
    out
}

fn push_quoted(out: &mut String, character: char) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        _ if is_print(character) => out.push(character),
        '\0'..='\x7f' => push_format(out, format_args!("\\x{:02x}", u32::from(character))),
        '\u{80}'..='\u{ffff}' => push_format(out, format_args!("\\u{:04x}", u32::from(character))),
        _ => push_format(out, format_args!("\\U{:08x}", u32::from(character))),
    }
}

fn push_format(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("writing to a string does not fail");
}

/// Whether Go's `unicode.IsPrint` holds: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub fn is_print(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    // Rust escapes exactly what is not printable, save for a mark at the start of a string.
    let text: String = ['a', character].into_iter().collect();
    text.escape_debug().eq(text.chars())
}

/// Prints a value as messages show it: strings quoted, numbers and booleans plain, everything else as JSON.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) => number_text(number),
        Value::Bool(flag) => flag.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => json(value),
    }
}

/// What `fmt.Sprint` makes of decoded JSON: `map[a:1 b:[x y]]`.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// Prints a number as `%v` does.
pub fn number_text(number: &Number) -> String {
    if number.is_f64() {
        float(number.as_f64().unwrap_or_default())
    } else {
        number.to_string()
    }
}

/// Prints a float as `%v` does: with an exponent below 0.0001 and from a million on.
pub fn float(number: f64) -> String {
    let (digits, exponent) = shortest(number);
    if !(-4..6).contains(&exponent) {
        return with_exponent(&digits, exponent);
    }
    number.to_string()
}

/// Prints a float as `encoding/json` does.
fn json_float(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let (digits, exponent) = shortest(number);
        return with_exponent(&digits, exponent).replace("e-0", "e-");
    }
    number.to_string()
}

/// The shortest digits that give the number back, and its decimal exponent.
fn shortest(number: f64) -> (String, i32) {
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.to_owned(), exponent.parse().unwrap_or_default())
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Encodes a value as `encoding/json` does: keys sorted, `<`, `>` and `&` escaped.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    push_json(&mut out, value);
    out
}

fn push_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) if number.is_f64() => out.push_str(&json_float(number.as_f64().unwrap_or_default())),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => push_json_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                push_json(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => push_json_object(out, fields),
    }
}

fn push_json_object(out: &mut String, fields: &Map<String, Value>) {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    out.push('{');
    for (index, (name, value)) in sorted.into_iter().enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        push_json_string(out, name);
        out.push(':');
        push_json(out, value);
    }
    out.push('}');
}

fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\x1f' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                push_format(out, format_args!("\\u{:04x}", u32::from(character)));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}
