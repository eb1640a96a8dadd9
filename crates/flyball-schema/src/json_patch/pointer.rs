//! The object or list that a JSON pointer's last segment is in, and what may be done to it there.
// gopkg.in/evanphx/json-patch.v4, patch.go: findObject, partialDoc, partialArray

use serde_json::{Map, Value};

pub(super) enum Container<'a> {
    Object(&'a mut Map<String, Value>),
    Array(&'a mut Vec<Value>),
}

impl<'a> Container<'a> {
    /// Where a pointer leads, and the key in it. What stands before the first slash is not looked at.
    pub(super) fn find(root: &'a mut Value, pointer: &str) -> Option<(Container<'a>, String)> {
        let mut segments = pointer.split('/').skip(1).map(decode);
        let mut key = segments.next()?;
        let mut container = Container::of(root)?;
        for next in segments {
            container = Container::of(container.child(&key)?)?;
            key = next;
        }
        Some((container, key))
    }

    fn of(value: &'a mut Value) -> Option<Container<'a>> {
        match value {
            Value::Object(fields) => Some(Container::Object(fields)),
            Value::Array(items) => Some(Container::Array(items)),
            _ => None,
        }
    }

    fn child(self, key: &str) -> Option<&'a mut Value> {
        match self {
            Container::Object(fields) => fields.get_mut(key),
            Container::Array(items) => {
                let index = existing(items, key).ok()?;
                items.get_mut(index)
            }
        }
    }

    /// The value at a key; an object has nothing at a key that is not there, a list complains.
    pub(super) fn get(&self, key: &str) -> Result<Option<&Value>, String> {
        match self {
            Container::Object(fields) => Ok(fields.get(key)),
            Container::Array(items) => existing(items, key).map(|index| items.get(index)),
        }
    }

    /// How many items of a list are behind a key, and have to move when one comes or goes there.
    pub(super) fn behind(&self, key: &str) -> usize {
        match self {
            Container::Array(items) => existing(items, key).map_or(0, |index| items.len() - index),
            Container::Object(_) => 0,
        }
    }

    pub(super) fn add(self, key: &str, value: Value) -> Result<(), String> {
        match self {
            Container::Object(fields) => {
                fields.insert(key.to_owned(), value);
            }
            Container::Array(items) if key == "-" => items.push(value),
            Container::Array(items) => {
                let index =
                    number(key).map_err(|error| format!("value was not a proper array index: '{key}': {error}"))?;
                let index = from_end(index, items.len() + 1)?;
                items.insert(index, value);
            }
        }
        Ok(())
    }

    pub(super) fn set(self, key: &str, value: Value) -> Result<(), String> {
        match self {
            Container::Object(fields) => {
                fields.insert(key.to_owned(), value);
            }
            Container::Array(items) => {
                let index = existing(items, key)?;
                items[index] = value;
            }
        }
        Ok(())
    }

    pub(super) fn remove(self, key: &str) -> Result<Value, String> {
        match self {
            Container::Object(fields) => fields
                .remove(key)
                .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
            Container::Array(items) => {
                let index = existing(items, key)?;
                Ok(items.remove(index))
            }
        }
    }
}

fn existing(items: &[Value], key: &str) -> Result<usize, String> {
    from_end(number(key)?, items.len())
}

/// An index within so many places; a negative one counts from the end.
fn from_end(index: i64, places: usize) -> Result<usize, String> {
    let wrong = || format!("Unable to access invalid index: {index}: invalid index referenced");
    let places = i64::try_from(places).map_err(|_| wrong())?;
    let place = if index < 0 { index + places } else { index };
    if (0..places).contains(&place) {
        usize::try_from(place).map_err(|_| wrong())
    } else {
        Err(wrong())
    }
}

/// Go's `strconv.Atoi`.
fn number(key: &str) -> Result<i64, String> {
    key.parse().map_err(|error: std::num::ParseIntError| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let overflow = matches!(error.kind(), PosOverflow | NegOverflow);
        let reason = if overflow {
            "value out of range"
        } else {
            "invalid syntax"
        };
        format!("strconv.Atoi: parsing {}: {reason}", crate::go_text::quote(key))
    })
}

fn decode(segment: &str) -> String {
    let mut parts = segment.split('~');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.as_bytes().first() {
            Some(b'1') => text.push('/'),
            Some(b'0') => text.push('~'),
            _ => {
                text.push('~');
                text.push_str(part);
                continue;
            }
        }
        text.push_str(&part[1..]);
    }
    text
}
