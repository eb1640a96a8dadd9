//! What an Application asks for, as pure functions from its spec to its children.

mod config_map;
mod deployment;
mod service;

pub use config_map::config_map;
pub use deployment::{CONFIG_HASH, deployment};
pub use service::service;

use crate::api::Application;
use kube::ResourceExt;
use std::collections::BTreeMap;

/// The label that ties pods to their Application.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";

/// The labels that select an Application's pods, and that all its children carry.
pub fn labels(application: &Application) -> BTreeMap<String, String> {
    BTreeMap::from([(NAME_LABEL.into(), application.name_any())])
}

/// The same, as the text of a selector.
pub fn selector(application: &Application) -> String {
    format!("{NAME_LABEL}={}", application.name_any())
}

/// The port that the container listens on: `PORT` of its configuration, else 80.
pub fn port(application: &Application) -> i32 {
    application.spec.config.get("PORT").and_then(|port| port.parse().ok()).unwrap_or(80)
}
