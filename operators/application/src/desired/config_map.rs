//! The ConfigMap that holds an Application's configuration.

use super::labels;
use crate::api::Application;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;

/// The configuration, word for word.
pub fn config_map(application: &Application) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { labels: Some(labels(application)), ..Default::default() },
        data: Some(application.spec.config.clone()),
        ..Default::default()
    }
}
