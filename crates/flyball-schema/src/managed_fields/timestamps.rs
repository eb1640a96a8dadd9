//! A write that changes nothing but timestamps of entries changes nothing.

use super::entry;
use super::order;
use serde_json::Value;

/// Gives `new` the entries of `live` if they differ in time only and the rest is equal; says whether both are then equal.
// apiserver, endpoints/handlers/fieldmanager/equality.go, IgnoreManagedFieldsTimestampsTransformer
pub(super) fn keep(live: &Value, new: &mut Value) -> bool {
    let (old, now) = (entry::listed(live).unwrap_or_default(), entry::listed(new).unwrap_or_default());
    let same_entries = old.len() == now.len() && old.iter().zip(now).all(|(old, new)| same_but_time(old, new));
    if !same_entries || !same_but_entries(live, new) {
        return false;
    }
    entry::store(new, old.to_vec());
    true
}

fn same_but_time(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return false;
    };
    let other = |fields: &serde_json::Map<String, Value>| fields.len() - usize::from(fields.contains_key("time"));
    other(old) == other(new)
        && old
            .iter()
            .filter(|(name, _)| *name != "time")
            .all(|(name, value)| new.get(name) == Some(value))
}

/// Whether two objects are equal but for their entries.
pub(super) fn same_but_entries(live: &Value, new: &Value) -> bool {
    let (Value::Object(live), Value::Object(new)) = (live, new) else {
        return false;
    };
    live.len() == new.len()
        && live.iter().all(|(name, value)| match (new.get(name), value) {
            (None, _) => false,
            (Some(Value::Object(other)), Value::Object(fields)) if name == "metadata" => same_metadata(fields, other),
            (Some(other), _) => order::equal(value, other),
        })
}

fn same_metadata(live: &serde_json::Map<String, Value>, new: &serde_json::Map<String, Value>) -> bool {
    let other =
        |fields: &serde_json::Map<String, Value>| fields.len() - usize::from(fields.contains_key("managedFields"));
    other(live) == other(new)
        && live
            .iter()
            .filter(|(name, _)| *name != "managedFields")
            .all(|(name, value)| new.get(name).is_some_and(|other| order::equal(value, other)))
}
