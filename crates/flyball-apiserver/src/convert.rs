//! Kinds that are served in several versions over one storage.

use crate::registry::Kind;
use flyball_schema::{default, prune};
use serde_json::Value;

/// Brings a stored object into the version of a kind.
pub(crate) fn from_stored(kind: &Kind, object: &mut Value) {
    object["apiVersion"] = kind.resource.api_version().into();
    if let (Some(_), Some(node)) = (&kind.custom, kind.node()) {
        prune::prune(node, object);
        prune::prune_nulls(node, object);
        default::default(node, object);
    }
}

/// Brings an object of a kind into the version in which it is stored.
pub(crate) fn to_stored(kind: &Kind, object: &mut Value) {
    if let Some(custom) = &kind.custom {
        object["apiVersion"] = format!("{}/{}", kind.resource.group, custom.storage_version).into();
    }
}
