//! The scraping of a Cache, where the Prometheus Operator is installed. Its kind has no Rust type here.

use super::{labels, name};
use crate::api::Cache;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::json;

/// The kind ServiceMonitor.
pub fn monitor_resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("monitoring.coreos.com", "v1", "ServiceMonitor"))
}

/// A ServiceMonitor, if the Cache is monitored.
pub fn monitor(cache: &Cache) -> Option<DynamicObject> {
    let spec = json!({ "selector": { "matchLabels": labels(cache) }, "endpoints": [{ "port": "cache" }] });
    let monitor = DynamicObject::new(&name(cache), &monitor_resource()).data(json!({ "spec": spec }));
    cache.spec.monitored.then_some(monitor)
}
