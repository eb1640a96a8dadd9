//! A value with its path, for validation rules.

use crate::place::Place;
use crate::violation::Violation;
use serde_json::Value;

/// The violations found so far, in upstream's order.
pub(super) type Found = Vec<Violation>;

static NOTHING: Value = Value::Null;

/// A value and its path, which is formatted only for a violation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot<'a> {
    pub(super) value: &'a Value,
    place: Place<'a>,
}

impl<'a> Spot<'a> {
    pub(super) fn root(value: &'a Value) -> Spot<'a> {
        Spot { value, place: Place::root() }
    }

    /// A declared field; null if it is absent.
    pub(super) fn field<'s>(&'s self, name: &'s str) -> Spot<'s> {
        Spot {
            value: self.value.get(name).unwrap_or(&NOTHING),
            place: self.place.field(name),
        }
    }

    /// Another value, as if it were in a field.
    pub(super) fn with<'s>(&'s self, name: &'s str, value: &'s Value) -> Spot<'s> {
        Spot { value, place: self.place.field(name) }
    }

    /// Another value, reported at this path.
    pub(super) fn showing(&self, value: &'a Value) -> Spot<'a> {
        Spot { value, place: self.place }
    }

    /// The value of a key that users choose.
    pub(super) fn key<'s>(&'s self, name: &'s str) -> Spot<'s> {
        Spot {
            value: self.value.get(name).unwrap_or(&NOTHING),
            place: self.place.key(name),
        }
    }

    pub(super) fn items<'s>(&'s self) -> impl Iterator<Item = Spot<'s>> {
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items.map(|(index, value)| Spot { value, place: self.place.index(index) })
    }

    /// The keys of a map and their values, by key: Go's own order is random.
    pub(super) fn entries<'s>(&'s self) -> impl Iterator<Item = (&'s str, Spot<'s>)> {
        let mut members: Vec<_> = self.value.as_object().into_iter().flatten().collect();
        members.sort_unstable_by_key(|(name, _)| *name);
        members
            .into_iter()
            .map(|(name, value)| (name.as_str(), Spot { value, place: self.place.key(name) }))
    }

    /// The text; empty if the value is not a string, as in Go.
    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// The number; 0 if the value is not a number, as in Go.
    pub(super) fn int(&self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    pub(super) fn is_true(&self) -> bool {
        *self.value == Value::Bool(true)
    }

    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// The number of items or keys.
    pub(super) fn len(&self) -> usize {
        match self.value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            Value::String(text) => text.len(),
            _ => 0,
        }
    }

    pub(super) fn path(&self) -> String {
        self.place.subscripted()
    }

    pub(super) fn required(&self, found: &mut Found, why: &str) {
        found.push(Violation::required(self.path(), why));
    }

    pub(super) fn forbidden(&self, found: &mut Found, why: &str) {
        found.push(Violation::forbidden(self.path(), why));
    }

    pub(super) fn internal(&self, found: &mut Found, why: &str) {
        found.push(Violation::internal(self.path(), why));
    }

    pub(super) fn invalid(&self, found: &mut Found, why: &str) {
        self.invalid_as(found, self.value.clone(), why);
    }

    /// Reports the value as invalid, but shows another value.
    pub(super) fn invalid_as(&self, found: &mut Found, shown: impl Into<Value>, why: &str) {
        found.push(Violation::invalid(self.path(), shown, why));
    }

    pub(super) fn duplicate(&self, found: &mut Found, shown: impl Into<Value>) {
        found.push(Violation::duplicate(self.path(), shown));
    }

    pub(super) fn not_found(&self, found: &mut Found, shown: impl Into<Value>) {
        found.push(Violation::not_found(self.path(), shown));
    }

    pub(super) fn unsupported(&self, found: &mut Found, supported: &[&str]) {
        found.push(Violation::not_supported(self.path(), self.text(), supported));
    }

    pub(super) fn too_long(&self, found: &mut Found, most: u64) {
        found.push(Violation::too_long(self.path(), most));
    }

    pub(super) fn too_many(&self, found: &mut Found, most: u64) {
        found.push(Violation::too_many(self.path(), self.len() as u64, most));
    }
}
