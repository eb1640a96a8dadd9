//! Pods made of a template.

use crate::owner;
use k8s_openapi::{
    api::core::v1::{Pod, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, ResourceExt};

/// A pod of a template that `owner` controls. The API server gives it a name, unless the caller does.
// pkg/controller/controller_utils.go, GetPodFromTemplate
pub(crate) fn pod<K: Resource<DynamicType = ()>>(template: &PodTemplateSpec, owner: &K) -> Pod {
    let meta = template.metadata.clone().unwrap_or_default();
    let metadata = ObjectMeta {
        generate_name: Some(generate_name(&owner.name_any())),
        namespace: owner.namespace(),
        labels: meta.labels,
        annotations: meta.annotations,
        finalizers: meta.finalizers,
        owner_references: Some(vec![owner::reference(owner)]),
        ..ObjectMeta::default()
    };
    Pod { metadata, spec: template.spec.clone(), status: None }
}

/// The beginning of a pod's name, which leaves room for a random end.
fn generate_name(owner: &str) -> String {
    format!("{owner}-")
}
