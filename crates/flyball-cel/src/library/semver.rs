//! Semantic versions, as Kubernetes' library reads and compares them.

use super::strings::go_quote;
use crate::decl::{Entry, entry};
use crate::eval::EvalError;
use crate::typing::Type;
use crate::value::{Opaque, Value};
use std::cmp::Ordering;

type Outcome<'a> = Result<Value<'a>, EvalError>;

/// A version; what follows a plus sign is checked and then left aside.
#[derive(Clone, Debug)]
pub(crate) struct Semver {
    text: String,
    numbers: [u64; 3],
    prerelease: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

impl Opaque for Semver {
    fn type_of(&self) -> Type {
        Type::object("kubernetes.Semver")
    }

    fn equals(&self, other: &dyn Opaque) -> Result<bool, EvalError> {
        let other = other.downcast_ref::<Semver>().ok_or_else(EvalError::no_such_overload)?;
        Ok(self.compare(other) == Ordering::Equal)
    }

    fn show(&self) -> String {
        self.text.clone()
    }
}

pub(super) const FUNCTIONS: [Entry; 8] = [
    entry("semver", "string_to_semver", "(string) -> kubernetes.Semver", |args| {
        convert(args, Semver::parse)
    }),
    entry("isSemver", "is_semver_string", "(string) -> bool", |args| is_valid(args, Semver::parse)),
    entry(
        "isGreaterThan",
        "semver_is_greater_than",
        "kubernetes.Semver.(kubernetes.Semver) -> bool",
        |args| two(args, |order| Value::Bool(order.is_gt())),
    ),
    entry(
        "isLessThan",
        "semver_is_less_than",
        "kubernetes.Semver.(kubernetes.Semver) -> bool",
        |args| two(args, |order| Value::Bool(order.is_lt())),
    ),
    entry("compareTo", "semver_compare_to", "kubernetes.Semver.(kubernetes.Semver) -> int", |args| {
        two(args, |order| Value::Int(order as i64))
    }),
    entry("major", "semver_major", "kubernetes.Semver.() -> int", |args| number(args, 0)),
    entry("minor", "semver_minor", "kubernetes.Semver.() -> int", |args| number(args, 1)),
    entry("patch", "semver_patch", "kubernetes.Semver.() -> int", |args| number(args, 2)),
];

pub(super) const NORMALIZING: [Entry; 2] = [
    entry("semver", "string_bool_to_semver", "(string, bool) -> kubernetes.Semver", |args| {
        convert(args, reader(args))
    }),
    entry("isSemver", "is_semver_string_bool", "(string, bool) -> bool", |args| {
        is_valid(args, reader(args))
    }),
];

type Reader = fn(&str) -> Result<Semver, String>;

fn reader(args: &[Value<'_>]) -> Reader {
    match args.get(1) {
        Some(Value::Bool(true)) => Semver::parse_normalized,
        _ => Semver::parse,
    }
}

fn convert<'a>(args: &[Value<'a>], read: Reader) -> Outcome<'a> {
    match &args[0] {
        Value::String(text) => read(text).map(Value::opaque).map_err(EvalError::new),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn is_valid<'a>(args: &[Value<'a>], read: Reader) -> Outcome<'a> {
    match &args[0] {
        Value::String(text) => Ok(Value::Bool(read(text).is_ok())),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn two<'a>(args: &[Value<'a>], with: fn(Ordering) -> Value<'a>) -> Outcome<'a> {
    match (args[0].downcast::<Semver>(), args[1].downcast::<Semver>()) {
        (Some(one), Some(other)) => Ok(with(one.compare(other))),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn number<'a>(args: &[Value<'a>], place: usize) -> Outcome<'a> {
    match args[0].downcast::<Semver>() {
        Some(version) => Ok(Value::Int(version.numbers[place] as i64)),
        None => Err(EvalError::no_such_overload()),
    }
}

impl Semver {
    /// Versions without a prerelease come after those with one.
    fn compare(&self, other: &Semver) -> Ordering {
        let prerelease = match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => self.prerelease.cmp(&other.prerelease),
        };
        self.numbers.cmp(&other.numbers).then(prerelease)
    }

    fn parse(text: &str) -> Result<Semver, String> {
        if text.is_empty() {
            return Err("Version string empty".into());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts[..] else {
            return Err("No Major.Minor.Patch elements found".into());
        };
        let (major, minor) = (part_number("major", "Major", major)?, part_number("minor", "Minor", minor)?);
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, prerelease) = rest.split_once('-').map_or((rest, None), |(patch, pre)| (patch, Some(pre)));
        let patch = part_number("patch", "Patch", patch)?;
        let prerelease = prerelease.into_iter().flat_map(|text| text.split('.')).map(part);
        let prerelease = prerelease.collect::<Result<Vec<Part>, String>>()?;
        for part in build.into_iter().flat_map(|text| text.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".into());
            }
            if !part.bytes().all(is_identifier) {
                return Err(format!("Invalid character(s) found in build meta data {}", go_quote(part)));
            }
        }
        Ok(Semver {
            text: text.into(),
            numbers: [major, minor, patch],
            prerelease,
        })
    }

    /// The same after taking off a leading `v` and zeros, and filling up missing numbers.
    fn parse_normalized(text: &str) -> Result<Semver, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(normalized).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".into());
            }
            parts.resize(3, "0".into());
        }
        Semver::parse(&parts.join("."))
    }
}

fn normalized(part: &str) -> String {
    if part.len() <= 1 {
        return part.into();
    }
    let trimmed = part.trim_start_matches('0');
    match trimmed.starts_with(|letter: char| letter.is_ascii_digit()) {
        true => trimmed.into(),
        false => format!("0{trimmed}"),
    }
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn part_number(name: &str, title: &str, text: &str) -> Result<u64, String> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {name} number {}", go_quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{title} number must not contain leading zeroes {}", go_quote(text)));
    }
    parse_uint(text)
}

fn parse_uint(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        let why = if text.is_empty() {
            "invalid syntax"
        } else {
            "value out of range"
        };
        format!("strconv.ParseUint: parsing {}: {why}", go_quote(text))
    })
}

fn part(text: &str) -> Result<Part, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".into());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {}", go_quote(text)));
        }
        return parse_uint(text).map(Part::Number);
    }
    match text.bytes().all(is_identifier) {
        true => Ok(Part::Text(text.into())),
        false => Err(format!("Invalid character(s) found in prerelease {}", go_quote(text))),
    }
}
