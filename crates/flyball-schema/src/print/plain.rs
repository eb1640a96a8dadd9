//! Kinds with little to show.

use super::column::{AGED, NAMED, Shown, column, text};
use serde_json::{Value, json};

pub(super) const NAMESPACE: &[Shown] = &[
    NAMED,
    (
        column("Status", "string", "Whether the namespace is in use or on its way out."),
        |object, _| json!(text(object, "/status/phase")),
    ),
    AGED,
];

pub(super) const CONFIG_MAP: &[Shown] = &[
    NAMED,
    (column("Data", "string", "How many keys there are."), |object, _| {
        json!(keys(object, "data") + keys(object, "binaryData"))
    }),
    AGED,
];

pub(super) const SECRET: &[Shown] = &[
    NAMED,
    (column("Type", "string", "What the secret is for."), |object, _| {
        json!(text(object, "/type"))
    }),
    (column("Data", "string", "How many keys there are."), |object, _| {
        json!(keys(object, "data"))
    }),
    AGED,
];

fn keys(object: &Value, field: &str) -> usize {
    object[field].as_object().map_or(0, |fields| fields.len())
}

pub(super) const LEASE: &[Shown] = &[
    NAMED,
    (column("Holder", "string", "Who holds the lease."), |object, _| {
        json!(text(object, "/spec/holderIdentity"))
    }),
    AGED,
];

/// Kinds of which only the age is shown besides.
pub(super) const AGED_ONLY: &[Shown] = &[NAMED, AGED];

/// Kinds that nobody described.
pub(super) const ANY: &[Shown] = &[
    NAMED,
    (column("Created At", "date", "When the object was created."), |object, _| {
        let created = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
        json!(created.unwrap_or("0001-01-01T00:00:00Z"))
    }),
];
