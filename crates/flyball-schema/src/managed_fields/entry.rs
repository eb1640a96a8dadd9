//! The entries of `metadata.managedFields`: who owns which fields since when.

use super::field_set::FieldSet;
use super::fields_v1;
use crate::go_text;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashSet;

/// How fields came to be owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Operation {
    /// By an apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// One entry.
#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    pub(super) manager: &'a str,
    pub(super) operation: Operation,
    pub(super) api_version: &'a str,
    pub(super) subresource: &'a str,
    pub(super) time: Option<Cow<'a, str>>,
    pub(super) fields: FieldSet<'a>,
    /// The entry as it is stored, for as long as nothing of it changes.
    pub(super) stored: Option<&'a Value>,
}

impl<'a> Entry<'a> {
    /// Takes fields away; says whether it had any of them.
    pub(super) fn lose(&mut self, fields: &FieldSet<'_>) -> bool {
        let lost = self.fields.subtract(fields);
        if lost {
            self.stored = None;
        }
        lost
    }

    /// Whether both are the same entry: appliers have one for all versions, others one for each.
    // apimachinery, util/managedfields/internal/managedfields.go, BuildManagerIdentifier
    pub(super) fn is(&self, other: &Entry<'_>) -> bool {
        self.key() == other.key()
    }

    /// What both have in common if they are the same entry.
    fn key(&self) -> (&'a str, Operation, &'a str, &'a str) {
        let version = if self.operation == Operation::Apply {
            ""
        } else {
            self.api_version
        };
        (self.manager, self.operation, self.subresource, version)
    }

    /// The identity as upstream spells it; it gives conflicts and old entries their order.
    pub(super) fn identity(&self) -> String {
        let mut identity = String::from("{");
        let (manager, operation, subresource, version) = self.key();
        let members = [
            ("manager", manager),
            ("operation", operation.as_str()),
            ("apiVersion", version),
            ("subresource", subresource),
        ];
        for (name, value) in members.into_iter().filter(|(_, value)| !value.is_empty()) {
            let comma = if identity.len() > 1 { "," } else { "" };
            identity.push_str(&format!("{comma}\"{name}\":{}", go_text::json(&value.into())));
        }
        identity.push('}');
        identity
    }

    /// The owner as conflicts name it.
    // apimachinery, util/managedfields/internal/conflict.go, printManager
    pub(super) fn shown(&self) -> String {
        let mut shown = go_text::quote(self.manager);
        if !self.subresource.is_empty() {
            shown.push_str(&format!(" with subresource {}", go_text::quote(self.subresource)));
        }
        if self.operation == Operation::Update {
            shown.push_str(&format!(" using {}", self.api_version));
        }
        shown
    }

    /// When it last changed, for its place among others.
    pub(super) fn seconds(&self) -> i64 {
        self.time.as_deref().and_then(seconds).unwrap_or_default()
    }
}

/// Reads `metadata.managedFields` of an object; the error says what is damaged.
// apimachinery, util/managedfields/internal/managedfields.go, DecodeManagedFields
pub(super) fn decode(object: &Value) -> Result<Vec<Entry<'_>>, String> {
    let listed = listed(object).unwrap_or_default().iter().enumerate();
    let mut entries = listed.map(|(index, value)| decode_entry(index, value)).collect::<Result<Vec<_>, _>>()?;
    let mut known = HashSet::with_capacity(entries.len());
    let last: Vec<bool> = entries.iter().rev().map(|entry| known.insert(entry.key())).collect();
    let mut last = last.into_iter().rev();
    entries.retain(|_| last.next().unwrap_or(true));
    Ok(entries)
}

/// Reads `metadata.managedFields` of a stored object, which has them as they are written here.
pub(super) fn decode_stored(object: &Value) -> Result<Vec<Entry<'_>>, String> {
    let mut entries = decode(object)?;
    let stored = listed(object).unwrap_or_default();
    if entries.len() == stored.len() {
        entries.iter_mut().zip(stored).for_each(|(entry, stored)| entry.stored = Some(stored));
    }
    Ok(entries)
}

/// Whether these are all of the object's entries, and none of them has changed.
pub(super) fn are_stored(entries: &[Entry<'_>], object: &Value) -> bool {
    entries.len() == listed(object).unwrap_or_default().len() && entries.iter().all(|entry| entry.stored.is_some())
}

/// The list as the object carries it.
pub(super) fn listed(object: &Value) -> Option<&[Value]> {
    object.get("metadata")?.get("managedFields")?.as_array().map(Vec::as_slice)
}

fn decode_entry(index: usize, value: &Value) -> Result<Entry<'_>, String> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".into()),
    };
    if text("apiVersion").is_empty() {
        return Err("apiVersion must not be empty".into());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => return Err(format!("invalid fieldsType {} in managed fields entry {index}", go_text::quote(other))),
    }
    let fields = value.get("fieldsV1").map_or(Some(FieldSet::default()), fields_v1::decode);
    Ok(Entry {
        manager: text("manager"),
        operation,
        api_version: text("apiVersion"),
        subresource: text("subresource"),
        time: value.get("time").and_then(Value::as_str).map(canonical),
        fields: fields.ok_or_else(|| format!("error decoding set in managed fields entry {index}"))?,
        stored: None,
    })
}

/// Whether a request asks for tracking to be forgotten: an empty list, or one entry that says nothing.
// apimachinery, util/managedfields/internal/fieldmanager.go, isResetManagedFields
pub(super) fn is_reset(object: &Value) -> bool {
    match listed(object) {
        Some([]) => true,
        Some([Value::Object(entry)]) => {
            entry.values().all(|value| matches!(value, Value::Null) || value.as_str() == Some(""))
        }
        _ => false,
    }
}

/// Writes the entries in their order.
pub(super) fn encode(mut entries: Vec<Entry<'_>>) -> Vec<Value> {
    entries.sort_by(|a, b| {
        let key = |entry: &Entry<'_>| (entry.operation, entry.seconds());
        key(a)
            .cmp(&key(b))
            .then_with(|| (a.manager, a.api_version, a.subresource).cmp(&(b.manager, b.api_version, b.subresource)))
    });
    entries
        .iter()
        .map(|entry| entry.stored.cloned().unwrap_or_else(|| encode_entry(entry)))
        .collect()
}

fn encode_entry(entry: &Entry<'_>) -> Value {
    let mut value = Map::new();
    let mut set = |name: &str, text: &str| {
        if !text.is_empty() {
            value.insert(name.into(), text.into());
        }
    };
    set("manager", entry.manager);
    set("operation", entry.operation.as_str());
    set("apiVersion", entry.api_version);
    set("time", entry.time.as_deref().unwrap_or_default());
    set("fieldsType", "FieldsV1");
    set("subresource", entry.subresource);
    value.insert("fieldsV1".into(), fields_v1::encode(&entry.fields));
    Value::Object(value)
}

/// Puts entries into an object in place of those it has.
pub(super) fn store(object: &mut Value, entries: Vec<Value>) {
    let Some(object) = object.as_object_mut() else { return };
    if entries.is_empty() {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("managedFields");
        }
        return;
    }
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        metadata.insert("managedFields".into(), Value::Array(entries));
    }
}

fn canonical(time: &str) -> Cow<'_, str> {
    match time.parse::<jiff::Timestamp>() {
        Ok(timestamp) if time.len() != "2006-01-02T15:04:05Z".len() => {
            Cow::Owned(timestamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        }
        _ => Cow::Borrowed(time),
    }
}

fn seconds(time: &str) -> Option<i64> {
    time.parse::<jiff::Timestamp>().ok().map(|timestamp| timestamp.as_second())
}
