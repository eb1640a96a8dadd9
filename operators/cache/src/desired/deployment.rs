//! The pods of a Cache.

use super::{PORT, labelled, labels, selector};
use crate::api::Cache;
use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentSpec},
    core::v1::{Container, ContainerPort, PodSpec, PodTemplateSpec},
};
use kube::api::ObjectMeta;
use std::collections::BTreeMap;

/// One pod per replica. The options are arguments of the container, so that a change of them replaces the pods.
pub fn deployment(cache: &Cache, options: &BTreeMap<String, String>, zone: &str) -> Deployment {
    let spec = &cache.spec;
    let options = options.iter().map(|(option, value)| format!("--{option}={value}"));
    let container = Container {
        name: "memcached".into(),
        image: Some(format!("memcached:{}", spec.version)),
        args: Some([format!("--memory-limit={}", spec.memory_mb)].into_iter().chain(options).collect()),
        ports: Some(vec![ContainerPort {
            name: Some("cache".into()),
            container_port: PORT,
            ..Default::default()
        }]),
        ..Default::default()
    };
    let pod = PodSpec {
        containers: vec![container],
        node_selector: (!zone.is_empty()).then(|| [("topology.kubernetes.io/zone".into(), zone.into())].into()),
        ..Default::default()
    };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels(cache)), ..Default::default() }),
        spec: Some(pod),
    };
    let spec = DeploymentSpec {
        replicas: Some(spec.replicas),
        selector: selector(cache),
        template,
        ..Default::default()
    };
    Deployment {
        metadata: labelled(cache),
        spec: Some(spec),
        ..Default::default()
    }
}
