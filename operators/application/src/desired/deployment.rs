//! The Deployment that runs an Application's pods.

use super::{labels, port};
use crate::api::{Application, Strategy};
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment},
        core::v1::{ConfigMapEnvSource, Container, ContainerPort, EnvFromSource, PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use kube::{ResourceExt, api::ObjectMeta};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The annotation on pods that changes with the configuration, so that a changed configuration rolls them.
pub const CONFIG_HASH: &str = "cloudnative.elide.dev/config-hash";

/// So many pods of the image, with the configuration as environment.
pub fn deployment(application: &Application) -> Deployment {
    Deployment {
        metadata: ObjectMeta { labels: Some(labels(application)), ..Default::default() },
        spec: Some(DeploymentSpec {
            replicas: Some(application.spec.replicas),
            selector: LabelSelector {
                match_labels: Some(labels(application)),
                ..Default::default()
            },
            strategy: Some(strategy(application.spec.strategy)),
            template: template(application),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn template(application: &Application) -> PodTemplateSpec {
    let annotations = BTreeMap::from([(CONFIG_HASH.into(), config_hash(application))]);
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels(application)),
            annotations: Some(annotations),
            ..Default::default()
        }),
        spec: Some(PodSpec {
            containers: vec![container(application)],
            ..Default::default()
        }),
    }
}

fn container(application: &Application) -> Container {
    let config = ConfigMapEnvSource { name: application.name_any(), ..Default::default() };
    Container {
        name: "app".into(),
        image: Some(application.spec.image.clone()),
        ports: Some(vec![ContainerPort {
            name: Some("http".into()),
            container_port: port(application),
            protocol: Some("TCP".into()),
            ..Default::default()
        }]),
        env_from: Some(vec![EnvFromSource { config_map_ref: Some(config), ..Default::default() }]),
        ..Default::default()
    }
}

/// `rollingUpdate` is spelled out, although these are Kubernetes' defaults: what we own goes away again when the strategy
/// changes to `Recreate`, which forbids it.
fn strategy(strategy: Strategy) -> DeploymentStrategy {
    let quarter = || Some(IntOrString::String("25%".into()));
    let rolling = || RollingUpdateDeployment { max_surge: quarter(), max_unavailable: quarter() };
    DeploymentStrategy {
        type_: Some(format!("{strategy:?}")),
        rolling_update: (strategy == Strategy::RollingUpdate).then(rolling),
    }
}

/// The same on every machine and in every version of this program: a different hash would roll every pod.
fn config_hash(application: &Application) -> String {
    let mut hasher = Sha256::new();
    for (key, value) in &application.spec.config {
        for text in [key, value] {
            hasher.update(text.len().to_be_bytes());
            hasher.update(text);
        }
    }
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
