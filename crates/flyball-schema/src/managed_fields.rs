//! Server-side apply and `metadata.managedFields`: who owns which field, and what an apply makes of an object.
//! Mirrors structured-merge-diff v6 and apimachinery's `util/managedfields`; defaulting and validation are left to the caller.

use crate::schema::Node;
use serde_json::Value;

mod apply;
mod cap;
mod check;
mod compare;
mod configuration;
mod conflict;
mod entry;
mod extract;
mod field_set;
mod fields_of;
mod fields_v1;
mod last_applied;
mod merge;
mod order;
mod ownership;
mod path;
mod prune;
mod reconcile;
mod remove;
mod scale;
mod shape;
mod timestamps;
mod update;
mod zero;

pub use configuration::merge_configuration;
pub use conflict::{Conflict, Conflicts};
pub use scale::{ReplicasPaths, scale_entries, scaled_entries};

/// FieldsV1 as Kubernetes writes it: with the paths in their own order, which is not that of their texts.
pub fn text(fields: &Value) -> String {
    let Some(set) = fields_v1::decode(fields) else {
        return fields.to_string();
    };
    let mut out = String::new();
    fields_v1::text(&set, false, &mut out);
    out
}

/// Whether the order of FieldsV1's texts is that of its paths: items of lists have another, `9` being before `10`.
pub fn is_in_order(fields: &Value) -> bool {
    let Value::Object(fields) = fields else { return true };
    let items = fields.keys().filter(|key| key.starts_with("k:") || key.starts_with("v:"));
    items.count() < 2 && fields.values().all(is_in_order)
}

/// Who writes what, where: all that [`apply`] and [`update`] have to know besides the object.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The type of the object in the version of the request.
    pub node: Node<'a>,
    /// The object as it is stored, in the version of the request; none if the request creates it.
    pub live: Option<&'a Value>,
    /// The field manager; empty is `unknown`.
    pub manager: &'a str,
    /// The version of the request, such as `apps/v1`.
    pub api_version: &'a str,
    /// The kind, such as `Deployment`.
    pub kind: &'a str,
    /// The subresource that is written to, such as `status`.
    pub subresource: Option<&'a str>,
    /// Dotted paths of what a write to this (sub)resource never changes, such as `status`.
    pub reset: &'a [&'a str],
    /// The other versions of the kind. Entries in a version that is not listed are dropped.
    pub versions: &'a [(&'a str, Version<'a>)],
    /// The time of the request in RFC 3339, to the second, such as `2026-01-02T15:04:05Z`.
    pub now: &'a str,
}

/// What is known of another version of a kind.
#[derive(Clone, Copy, Debug)]
pub enum Version<'a> {
    /// It has the same fields under this type.
    Same(Node<'a>),
    /// It exists, but its fields cannot be compared: its entries are kept as they are.
    Foreign,
}

/// Why an apply is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own what it would change: 409.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The request itself is wrong: 400.
    #[error("{0}")]
    BadRequest(String),
    /// The applied or the stored object does not fit its type: 500, as kube-apiserver answers it.
    #[error("{0}")]
    Untyped(String),
}

/// Merges an applied configuration into the live object and says who owns what; `None` if nothing changes.
///
/// ```
/// use flyball_schema::kinds;
/// use flyball_schema::managed_fields::{ApplyError, Request, apply};
/// use serde_json::json;
///
/// let config_map = kinds::builtin().schema("io.k8s.api.core.v1.ConfigMap").unwrap();
/// let request = |live, manager| Request {
///     node: config_map,
///     live,
///     manager,
///     api_version: "v1",
///     kind: "ConfigMap",
///     subresource: None,
///     reset: &[],
///     versions: &[],
///     now: "2026-01-02T15:04:05Z",
/// };
/// let config = |value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ada"}, "data": {"a": value}});
///
/// let live = apply(&request(None, "one"), &config("1"), false)?.unwrap();
/// assert_eq!(live["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:data": {"f:a": {}}}));
/// assert_eq!(apply(&request(Some(&live), "one"), &config("1"), false)?, None);
///
/// let conflict = apply(&request(Some(&live), "two"), &config("2"), false).unwrap_err();
/// assert_eq!(conflict.to_string(), r#"Apply failed with 1 conflict: conflict with "one": .data.a"#);
/// # Ok::<(), ApplyError>(())
/// ```
///
/// The result has neither been defaulted nor validated. Where a manager stopped applying the last item of a list or map
/// it may hold `null`, which a built-in kind's decoding drops.
pub fn apply(request: &Request<'_>, config: &Value, force: bool) -> Result<Option<Value>, ApplyError> {
    apply::apply(request, config, force)
}

/// Records in `new` who owns what after a create, an update or a patch that is not an apply.
///
/// `new` has been decoded and defaulted, not yet admitted. `managedFields` that it brings along replace those of the live
/// object, unless they are damaged or it is written through a subresource; an empty list ends tracking until the next apply.
pub fn update(request: &Request<'_>, new: &mut Value) {
    let entries = update::entries_after(request, new);
    entry::store(new, entries);
}

/// Gives `new` the timestamps of `live` where nothing but timestamps differs; says whether the two are then equal.
///
/// To be called last before a write, with `resourceVersion` as it was: equal objects need no write.
pub fn keep_timestamps(live: &Value, new: &mut Value) -> bool {
    timestamps::keep(live, new)
}

/// What a manager applied to an object, with `apiVersion` and `kind`; `None` if it owns nothing by apply.
pub fn extract(node: Node<'_>, object: &Value, manager: &str, subresource: Option<&str>) -> Option<Value> {
    extract::extract(shape::Type::root(node), object, manager, subresource.unwrap_or_default())
}

/// Whether `metadata.managedFields` of an object can be read.
///
/// # Errors
/// What is damaged, in kube-apiserver's words.
pub fn validate(object: &Value) -> Result<(), String> {
    entry::decode(object).map(drop)
}
