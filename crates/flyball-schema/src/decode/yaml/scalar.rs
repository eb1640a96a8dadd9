//! What a scalar means: YAML 1.1's booleans, nulls and numbers; everything else is a string.
// go.yaml.in/yaml/v2, resolve.go

use super::shown_key;
use crate::decode::tree::Tree;
use crate::go_text;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const CORE: &str = "tag:yaml.org,2002:";

/// The value of a scalar; only plain ones are anything but strings.
pub(super) fn resolve(text: &str, plain: bool, tag: Option<&str>) -> Result<Tree, String> {
    let tag = tag.map(|tag| tag.strip_prefix(CORE).or(tag.strip_prefix("!!")).unwrap_or(tag));
    match tag {
        Some("str") => Ok(Tree::String(text.to_owned())),
        Some("binary") => binary(text).map(Tree::String),
        Some(kind @ ("bool" | "int" | "float" | "null")) => {
            let tree = by_shape(text)?;
            let fits = match &tree {
                Tree::Bool(_) => kind == "bool",
                Tree::Number(_) => kind == "int" || kind == "float",
                Tree::Null => kind == "null",
                _ => false,
            };
            if fits {
                Ok(tree)
            } else {
                Err(format!("yaml: cannot decode !!str `{text}` as a !!{kind}"))
            }
        }
        None if plain => by_shape(text),
        _ => Ok(Tree::String(text.to_owned())),
    }
}

/// Decodes base64, and replaces bytes that are not UTF-8 as Go's JSON does, one by one.
fn binary(text: &str) -> Result<String, String> {
    let encoded: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
    let bytes = STANDARD
        .decode(encoded)
        .map_err(|_| "yaml: !!binary value contains invalid base64 data".to_owned())?;
    let mut decoded = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Ok(decoded)
}

fn by_shape(text: &str) -> Result<Tree, String> {
    Ok(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Tree::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Tree::Bool(false),
        "" | "~" | "null" | "Null" | "NULL" => Tree::Null,
        ".nan" | ".NaN" | ".NAN" => return Err("json: unsupported value: NaN".to_owned()),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Err("json: unsupported value: +Inf".to_owned());
        }
        "-.inf" | "-.Inf" | "-.INF" => return Err("json: unsupported value: -Inf".to_owned()),
        _ => number(text).map_or_else(|| Tree::String(text.to_owned()), Tree::Number),
    })
}

/// A number in JSON's spelling, if the text is one in YAML's.
fn number(text: &str) -> Option<String> {
    if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return None;
    }
    let plain = text.replace('_', "");
    if let Some(integer) = integer(&plain) {
        return Some(integer.to_string());
    }
    if !is_float(&plain) {
        return None;
    }
    let float: f64 = plain.parse().ok().filter(|float: &f64| float.is_finite())?;
    Some(go_text::json(&float.into()))
}

/// Go's `ParseInt` with base 0: decimal, `0x`, `0o`, `0b`, and a leading zero for octal.
fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'o', ..] => (&lower[2..], 8),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (lower.as_str(), 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let size = i128::from(u64::from_str_radix(digits, radix).ok()?);
    Some(sign * size).filter(|value| *value >= i128::from(i64::MIN))
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`
fn is_float(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent_fits = exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)));
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    exponent_fits && mantissa_fits
}

/// A mapping's key as JSON's string, and as complaints print it.
// sigs.k8s.io/yaml, convertToJSONableObject
pub(super) fn key(key: Tree) -> Result<(String, String), String> {
    let shown = shown_key(&key);
    match key {
        Tree::String(text) | Tree::Number(text) => Ok((text, shown)),
        Tree::Bool(flag) => Ok((flag.to_string(), shown)),
        Tree::Null => Err("unsupported map key of type: %!s(<nil>), key: <nil>".to_owned()),
        Tree::Array(_) | Tree::Object(_) => Err("yaml: invalid map key".to_owned()),
    }
}
