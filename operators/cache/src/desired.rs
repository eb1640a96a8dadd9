//! The children of caches and users, as pure functions of their specs.

mod credentials;
mod deployment;
mod disruption_budget;
mod monitor;
mod service;
mod warm_up;

pub use credentials::credentials;
pub use deployment::deployment;
pub use disruption_budget::disruption_budget;
pub use monitor::{monitor, monitor_resource};
pub use service::{PORT, service};
pub use warm_up::warm_up;

use crate::api::Cache;
use flyball::Children;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{ResourceExt, api::ObjectMeta};
use std::collections::BTreeMap;

/// The children of a Cache beside its Deployment.
pub fn children(cache: &Cache) -> Children {
    let mut children = Children::new();
    if let Some(service) = service(cache) {
        children = children.apply(service);
    }
    if let Some(budget) = disruption_budget(cache) {
        children = children.apply(budget);
    }
    if let Some(warm_up) = warm_up(cache) {
        children = children.apply(warm_up);
    }
    if let Some(monitor) = monitor(cache) {
        children = children.apply_dynamic(&monitor_resource(), monitor);
    }
    children
}

/// The name of a Cache and of its children.
pub fn name(cache: &Cache) -> String {
    cache.name_any()
}

/// Where clients inside the cluster reach a Cache.
pub fn address(cache: &Cache) -> String {
    format!("{}.{}.svc:{PORT}", name(cache), cache.namespace().unwrap_or_default())
}

/// The labels of a Cache's pods.
fn labels(cache: &Cache) -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name".into(), "cache".into()),
        ("app.kubernetes.io/instance".into(), name(cache)),
    ]
    .into()
}

/// Metadata with the labels alone: name, namespace and owner are the framework's to set.
fn labelled(cache: &Cache) -> ObjectMeta {
    ObjectMeta { labels: Some(labels(cache)), ..Default::default() }
}

fn selector(cache: &Cache) -> LabelSelector {
    LabelSelector { match_labels: Some(labels(cache)), ..Default::default() }
}
