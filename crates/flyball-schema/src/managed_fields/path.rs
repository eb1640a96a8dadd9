//! One step of a path into an object, as FieldsV1 writes it (`f:spec`, `k:{"name":"a"}`, `v:80`) and as messages do (`.spec`).

use super::order;
use crate::go_text;
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// One step of a path; it borrows from the object, the type or the FieldsV1 that it was found in.
#[derive(Clone, Debug)]
pub(super) enum PathElement<'a> {
    /// A field of an object or a key of a map.
    Field(&'a str),
    /// An item of a list, told apart by its key fields, sorted by name.
    Key(Arc<[KeyField<'a>]>),
    /// An item of a set.
    Value(Cow<'a, Value>),
    /// An item of a list by its place; only in errors and in FieldsV1 of others.
    Index(i64),
}

/// The name and the value of a key field.
pub(super) type KeyField<'a> = (Cow<'a, str>, Cow<'a, Value>);

/// A key of FieldsV1 that is no path element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParseError {
    /// A later version may know it: it is skipped.
    Unknown,
    /// It is damaged.
    Malformed,
}

impl<'a> PathElement<'a> {
    /// Reads a key of FieldsV1.
    pub(super) fn parse(key: &'a str) -> Result<PathElement<'a>, ParseError> {
        let (kind, rest) = key.split_at_checked(2).ok_or(ParseError::Malformed)?;
        match kind {
            "f:" => Ok(PathElement::Field(rest)),
            "k:" => parse_key(rest),
            "v:" => {
                let value = serde_json::from_str(rest).map_err(|_| ParseError::Malformed)?;
                Ok(PathElement::Value(Cow::Owned(value)))
            }
            "i:" => rest.parse().map(PathElement::Index).map_err(|_| ParseError::Malformed),
            _ if kind.ends_with(':') => Err(ParseError::Unknown),
            _ => Err(ParseError::Malformed),
        }
    }

    /// Writes a key of FieldsV1.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            PathElement::Field(name) => {
                out.push_str("f:");
                out.push_str(name);
            }
            PathElement::Key(fields) => {
                out.push_str("k:{");
                for (index, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if index > 0 { ",\"" } else { "\"" });
                    out.push_str(name);
                    out.push_str("\":");
                    out.push_str(&go_text::json(value));
                }
                out.push('}');
            }
            PathElement::Value(value) => {
                out.push_str("v:");
                out.push_str(&go_text::json(value));
            }
            PathElement::Index(index) => {
                out.push_str("i:");
                out.push_str(&index.to_string());
            }
        }
    }

    /// The element of a key that has these fields.
    pub(super) fn key(mut fields: Vec<KeyField<'a>>) -> PathElement<'a> {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        PathElement::Key(fields.into())
    }

    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

fn parse_key<'a>(json: &str) -> Result<PathElement<'a>, ParseError> {
    let fields: serde_json::Map<String, Value> = serde_json::from_str(json).map_err(|_| ParseError::Malformed)?;
    Ok(PathElement::key(
        fields.into_iter().map(|(name, value)| (Cow::Owned(name), Cow::Owned(value))).collect(),
    ))
}

// structured-merge-diff, fieldpath/element.go, PathElement.Compare
impl Ord for PathElement<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (PathElement::Field(a), PathElement::Field(b)) => a.cmp(b),
            (PathElement::Key(a), PathElement::Key(b)) => compare_keys(a, b),
            (PathElement::Value(a), PathElement::Value(b)) => order::compare(a, b),
            (PathElement::Index(a), PathElement::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

fn compare_keys(a: &[KeyField<'_>], b: &[KeyField<'_>]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        let order = a.0.cmp(&b.0).then_with(|| order::compare(&a.1, &b.1));
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

impl PartialOrd for PathElement<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement<'_> {}

impl fmt::Display for PathElement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", go_text::shown(value))?;
                }
                f.write_str("]")
            }
            PathElement::Value(value) => write!(f, "[={}]", go_text::shown(value)),
            PathElement::Index(index) => write!(f, "[{index}]"),
        }
    }
}
