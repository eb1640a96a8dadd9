//! Which old value belongs to a new one, and whether the new one is still what it was.
// apiserver/pkg/cel/common/{equality,maplist}.go

use crate::crd::props::{Additional, Props};
use serde_json::Value;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

/// As much of a schema as tells old and new values apart.
#[derive(Debug, Default)]
pub(super) struct Spine {
    fields: BTreeMap<Box<str>, Spine>,
    values: Option<Box<Spine>>,
    items: Option<Box<Spine>>,
    /// The keys of a list of the type `map`.
    keys: Vec<Box<str>>,
}

impl Spine {
    pub(super) fn of(props: Props<'_>) -> Spine {
        let values = match props.additional() {
            Some(Additional::Schema(values)) => Some(Box::new(Spine::of(values))),
            _ => None,
        };
        let fields = props.properties().into_iter();
        Spine {
            fields: fields.map(|(name, field)| (name.into(), Spine::of(field))).collect(),
            values,
            items: props.items().map(|items| Box::new(Spine::of(items))),
            keys: list_map_keys(props),
        }
    }

    fn field(&self, name: &str) -> Option<&Spine> {
        self.fields.get(name).or(self.values.as_deref())
    }
}

/// The keys of a list of the type `map`; none of any other value.
pub(super) fn list_map_keys(props: Props<'_>) -> Vec<Box<str>> {
    match (props.kind(), props.text("x-kubernetes-list-type")) {
        ("array", "map") => props.texts("x-kubernetes-list-map-keys").into_iter().map(Box::from).collect(),
        _ => Vec::new(),
    }
}

/// The items of a list of the type `map`, by their keys.
#[derive(Debug, Default)]
pub(super) struct KeyedItems<'a> {
    keys: &'a [Box<str>],
    items: HashMap<String, &'a Value>,
}

impl<'a> KeyedItems<'a> {
    pub(super) fn of(items: &'a [Value], keys: &'a [Box<str>]) -> KeyedItems<'a> {
        let mut keyed = KeyedItems { keys, items: HashMap::new() };
        for item in items.iter().filter(|_| !keys.is_empty()) {
            if let Some(key) = keyed.key(item) {
                keyed.items.entry(key).or_insert(item);
            }
        }
        keyed
    }

    pub(super) fn get(&self, new: &Value) -> Option<&'a Value> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&self.key(new)?).copied()
    }

    /// None where a key is missing or no scalar.
    fn key(&self, item: &Value) -> Option<String> {
        let mut key = String::new();
        for name in self.keys {
            let value = item.get(&**name)?;
            if matches!(value, Value::Null | Value::Array(_) | Value::Object(_)) {
                return None;
            }
            key.push_str(&value.to_string());
            key.push('\0');
        }
        Some(key)
    }
}

/// A value and the one that it replaces.
#[derive(Debug)]
pub(super) struct Correlation<'a> {
    spine: &'a Spine,
    new: &'a Value,
    old: &'a Value,
    is_equal: OnceCell<bool>,
    items: OnceCell<KeyedItems<'a>>,
}

impl<'a> Correlation<'a> {
    pub(super) fn new(spine: &'a Spine, new: &'a Value, old: &'a Value) -> Correlation<'a> {
        Correlation {
            spine,
            new,
            old,
            is_equal: OnceCell::new(),
            items: OnceCell::new(),
        }
    }

    fn key(&self, name: &str) -> Option<Correlation<'a>> {
        let (new, old) = (self.new.as_object()?.get(name)?, self.old.as_object()?.get(name)?);
        Some(Correlation::new(self.spine.field(name)?, new, old))
    }

    fn index(&self, index: usize) -> Option<Correlation<'a>> {
        let (new, old) = (self.new.as_array()?.get(index)?, self.old.as_array()?);
        let items = self.items.get_or_init(|| KeyedItems::of(old, &self.spine.keys));
        Some(Correlation::new(self.spine.items.as_deref()?, new, items.get(new)?))
    }

    /// Whether the value is still what it was: keyed items in any order, other lists as a whole. What is not declared cannot
    /// be correlated, and so is not.
    fn is_unchanged(&self) -> bool {
        *self.is_equal.get_or_init(|| match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) if new.len() == old.len() => match self.spine.keys.is_empty() {
                true => new == old,
                false => (0..new.len()).all(|index| self.index(index).is_some_and(|item| item.is_unchanged())),
            },
            (Value::Object(new), Value::Object(old)) if new.len() == old.len() => {
                new.keys().all(|name| self.key(name).is_some_and(|field| field.is_unchanged()))
            }
            (Value::Array(_) | Value::Object(_), _) => false,
            (new, old) => new == old,
        })
    }
}

/// What decides whether a refusal is only a warning: the value's own correlation, or that of the nearest value around it
/// that has one.
// validation.go, ratchetingOptions
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ratchet<'c, 'a> {
    current: Option<&'c Correlation<'a>>,
    parent: Option<&'c Correlation<'a>>,
}

impl<'c, 'a> Ratchet<'c, 'a> {
    pub(super) fn root(correlation: Option<&'c Correlation<'a>>) -> Ratchet<'c, 'a> {
        Ratchet { current: correlation, parent: None }
    }

    /// Whether the value, or the nearest one around it that can be told, has not changed.
    pub(super) fn is_unchanged(self) -> bool {
        self.current.or(self.parent).is_some_and(Correlation::is_unchanged)
    }

    pub(super) fn key(self, name: &str) -> Option<Correlation<'a>> {
        self.current?.key(name)
    }

    pub(super) fn index(self, index: usize) -> Option<Correlation<'a>> {
        self.current?.index(index)
    }

    /// The ratchet of a field whose correlation is given.
    pub(super) fn at_key<'d>(self, name: &str, field: Option<&'d Correlation<'a>>) -> Ratchet<'d, 'a>
    where
        'c: 'd,
    {
        // Old and new are converted to one version, so that a change of these fields cannot be seen.
        if self.current.is_some() && self.parent.is_none() && matches!(name, "apiVersion" | "kind") {
            return Ratchet::default();
        }
        self.at_index(field)
    }

    /// The ratchet of an item whose correlation is given.
    pub(super) fn at_index<'d>(self, item: Option<&'d Correlation<'a>>) -> Ratchet<'d, 'a>
    where
        'c: 'd,
    {
        match self.current {
            Some(current) => Ratchet { current: item, parent: Some(current) },
            None => self,
        }
    }
}
