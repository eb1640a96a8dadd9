//! Kinds that are served in several versions over one storage.

use crate::registry::{CrdVersion, Kind};
use flyball_schema::builtin::{autoscaler, event};
use flyball_schema::{default, prune};
use serde_json::Value;

/// Brings a stored object into the version of a kind.
pub(crate) fn from_stored(kind: &Kind, object: &mut Value) {
    if let Some(custom) = &kind.custom {
        shape(custom, object);
    }
    match (&*kind.resource.group, &*kind.resource.version, &*kind.resource.plural) {
        ("events.k8s.io", _, "events") => event::to_new(object),
        ("autoscaling", "v1", "horizontalpodautoscalers") => autoscaler::to_v1(object),
        _ => {}
    }
    object["apiVersion"] = kind.resource.api_version().into();
}

/// Brings an object of a kind into the version in which it is stored.
pub(crate) fn to_stored(kind: &Kind, object: &mut Value) {
    match (&*kind.resource.group, &*kind.resource.version, &*kind.resource.plural) {
        ("events.k8s.io", _, "events") => event::to_core(object),
        ("autoscaling", "v1", "horizontalpodautoscalers") => autoscaler::to_v2(object),
        _ => {}
    }
    if let Some(custom) = &kind.custom {
        object["apiVersion"] = format!("{}/{}", kind.resource.group, custom.storage_version).into();
        if *kind.resource.version != custom.storage_version {
            shape(custom, object);
        }
    }
}

/// Gives a custom resource the shape that its own version has now.
fn shape(custom: &CrdVersion, object: &mut Value) {
    let version = object["apiVersion"].as_str().and_then(|text| text.rsplit('/').next()).unwrap_or_default();
    let Some(structural) = custom.versions.get(version) else {
        return;
    };
    prune::prune(structural.node(), object);
    prune::prune_nulls(structural.node(), object);
    default::default(structural.node(), object);
}
