//! Kinds with little to show.

use super::{AGE, Column, NAME, age, column, name, text};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) const NAMESPACE: &[Column] = &[
    NAME,
    column("Status", "string", "Whether the namespace is in use or on its way out."),
    AGE,
];

pub(super) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(object)),
        json!(text(object, "/status/phase")),
        age(object, now),
    ]
}

pub(super) const CONFIG_MAP: &[Column] = &[NAME, column("Data", "string", "How many keys there are."), AGE];

pub(super) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    let keys = ["data", "binaryData"].map(|field| object[field].as_object().map_or(0, |fields| fields.len()));
    vec![json!(name(object)), json!(keys.iter().sum::<usize>()), age(object, now)]
}

pub(super) const SECRET: &[Column] = &[
    NAME,
    column("Type", "string", "What the secret is for."),
    column("Data", "string", "How many keys there are."),
    AGE,
];

pub(super) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    let keys = object["data"].as_object().map_or(0, |fields| fields.len());
    vec![
        json!(name(object)),
        json!(text(object, "/type")),
        json!(keys),
        age(object, now),
    ]
}

pub(super) const SERVICE_ACCOUNT: &[Column] = &[NAME, AGE];

pub(super) fn service_account(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), age(object, now)]
}

pub(super) const LEASE: &[Column] = &[NAME, column("Holder", "string", "Who holds the lease."), AGE];

pub(super) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(object)),
        json!(text(object, "/spec/holderIdentity")),
        age(object, now),
    ]
}

pub(super) const ANY: &[Column] = &[NAME, column("Created At", "date", "When the object was created.")];

pub(super) fn any(object: &Value, _: Timestamp) -> Vec<Value> {
    let created = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
    vec![json!(name(object)), json!(created.unwrap_or("0001-01-01T00:00:00Z"))]
}
