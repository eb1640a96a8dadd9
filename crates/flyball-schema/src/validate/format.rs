//! The formats of strings that custom resources may ask for.
// kube-openapi/pkg/validation/strfmt, and its third_party/govalidator

pub(crate) mod address;
mod checksum;
mod time;

pub(crate) use address::is_request_uri;

use crate::names;
use crate::pattern::Pattern;
use std::sync::LazyLock;

/// Whether a text has a format; a format that nobody knows is had by every text.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match &*format.replace('-', "") {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "uri" => address::is_request_uri(text),
        "email" => address::is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => text.contains('.') && address::is_ip(text),
        "ipv6" => text.contains(':') && text.parse::<std::net::Ipv6Addr>().is_ok(),
        "cidr" => address::is_cidr(text),
        "mac" => address::is_mac(text),
        "uuid" => is_uuid(text, None, false),
        "uuid3" => is_uuid(text, Some('3'), false),
        "uuid4" => is_uuid(text, Some('4'), true),
        "uuid5" => is_uuid(text, Some('5'), true),
        "isbn" => checksum::is_isbn10(text) || checksum::is_isbn13(text),
        "isbn10" => checksum::is_isbn10(text),
        "isbn13" => checksum::is_isbn13(text),
        "creditcard" => checksum::is_credit_card(text),
        "ssn" => text.len() == 11 && SSN.is_match(text),
        "hexcolor" => HEX_COLOR.is_match(text),
        "rgbcolor" => RGB_COLOR.is_match(text),
        "byte" => BASE64.is_match(text),
        "date" => time::is_date(text),
        "datetime" => time::is_date_time(text),
        "duration" => time::is_duration(text),
        "k8sshortname" => names::dns1123_label(text).is_empty(),
        "k8slongname" => names::dns1123_subdomain(text).is_empty(),
        _ => true,
    }
}

/// Whether a format is checked on values of a type (none, or `string`, `integer`, `number`).
pub(crate) fn is_supported(format: &str, of: &str) -> bool {
    const STRINGS: [&str; 26] = [
        "bsonobjectid",
        "uri",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "cidr",
        "mac",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
        "isbn",
        "isbn10",
        "isbn13",
        "creditcard",
        "ssn",
        "hexcolor",
        "rgbcolor",
        "byte",
        "password",
        "date",
        "duration",
        "datetime",
        "k8sshortname",
        "k8slongname",
    ];
    match of {
        "" | "string" => STRINGS.contains(&&*format.replace('-', "")),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).expect("the expression is a constant")
}

static LETTER: LazyLock<Pattern> = LazyLock::new(|| pattern(r"^[a-zA-Z\p{L}]$"));
static SYMBOL: LazyLock<Pattern> = LazyLock::new(|| pattern(r"^\p{S}$"));
static SSN: LazyLock<Pattern> = LazyLock::new(|| pattern(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"));
static HEX_COLOR: LazyLock<Pattern> = LazyLock::new(|| pattern("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: LazyLock<Pattern> = LazyLock::new(|| {
    let byte = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*";
    pattern(&format!(r"^rgb\({byte},{byte},{byte}\)$"))
});
static BASE64: LazyLock<Pattern> =
    LazyLock::new(|| pattern("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"));

/// One label, or several with a top-level domain of letters; symbols and letters of all languages are fine.
fn is_hostname(text: &str) -> bool {
    let labels: Vec<_> = text.split('.').collect();
    if text.len() > 255 || labels.iter().any(|label| label.len() > 63) {
        return false;
    }
    match labels.as_slice() {
        // A lone label may have one dash, and that in second place only.
        [only] => {
            let rest = only.strip_prefix(is_word).map(|rest| rest.strip_prefix('-').unwrap_or(rest));
            rest.is_some_and(|rest| rest.chars().all(is_word))
        }
        [front @ .., last] => {
            let letters = last.chars().count() >= 2 && last.chars().all(is_letter);
            letters && front.iter().all(|label| is_inner_label(label))
        }
        [] => false,
    }
}

fn is_inner_label(label: &str) -> bool {
    label.starts_with(is_word) && label.ends_with(is_word) && label.chars().all(|one| one == '-' || is_word(one))
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || is_letter(character) || SYMBOL.is_match(character.encode_utf8(&mut [0; 4]))
}

fn is_letter(character: char) -> bool {
    character.is_ascii_alphabetic() || LETTER.is_match(character.encode_utf8(&mut [0; 4]))
}

/// Thirty-two hexadecimal digits in groups of 8, 4, 4, 4 and 12, with dashes between them or without.
fn is_uuid(text: &str, version: Option<char>, variant: bool) -> bool {
    let mut rest = text;
    for (group, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((digits, after)) = rest.split_at_checked(length) else {
            return false;
        };
        let first = digits.chars().next().map(|first| first.to_ascii_lowercase());
        let marked = match group {
            2 => version.is_none() || first == version,
            3 => !variant || first.is_some_and(|first| "89ab".contains(first)),
            _ => true,
        };
        if !marked || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}
