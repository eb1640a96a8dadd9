//! Warnings for built-in objects that are valid but suspicious.
// pkg/api/pod/warnings.go, pkg/api/service/warnings.go and pkg/registry/core/secret/strategy.go

use super::rules::quantity;
use super::spot::Spot;
use crate::crd;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Warnings of a pod.
pub fn pod(pod: &Value) -> Vec<String> {
    pod_spec(&Spot::root(pod).field("spec"))
}

/// Warnings of a kind with a pod template in its spec.
pub fn template(object: &Value) -> Vec<String> {
    pod_spec(&Spot::root(object).field("spec").field("template").field("spec"))
}

/// Warnings of a CronJob.
pub fn cron_job(object: &Value) -> Vec<String> {
    let root = Spot::root(object);
    let spec = root.field("spec");
    pod_spec(&spec.field("jobTemplate").field("spec").field("template").field("spec"))
}

fn pod_spec(spec: &Spot<'_>) -> Vec<String> {
    let mut odd = Vec::new();
    for constraint in spec.field("topologySpreadConstraints").items() {
        let selector = constraint.field("labelSelector");
        if !selector.is_set() {
            odd.push(format!("{}: a null labelSelector results in matching no pod", selector.path()));
        }
    }
    for secret in spec.field("imagePullSecrets").items() {
        let name = secret.field("name");
        if name.text().is_empty() {
            odd.push(format!("{}: invalid empty name \"\"", name.path()));
        }
    }
    for volume in spec.field("volumes").items() {
        odd.extend(empty_projection(&volume));
        let repository = volume.field("gitRepo");
        if repository.is_set() {
            odd.push(format!("{}: deprecated in v1.11, and disabled by default in v1.33+", repository.path()));
        }
    }
    for list in ["initContainers", "containers"] {
        spec.field(list).items().for_each(|container| odd.extend(fractions(&container)));
    }
    odd
}

fn empty_projection(volume: &Spot<'_>) -> Option<String> {
    let projected = volume.field("projected");
    let is_empty = |source: Spot<'_>| source.len() == 0;
    let sources = projected.field("sources");
    let odd = projected.is_set() && sources.items().any(is_empty);
    odd.then(|| format!("volume {:?} (Projected) has no sources provided", volume.field("name").text()))
}

/// Warns of fractional bytes.
fn fractions(container: &Spot<'_>) -> Vec<String> {
    let mut odd = Vec::new();
    for kind in ["requests", "limits"] {
        let resources = container.field("resources");
        let amounts = resources.field(kind);
        for name in ["memory", "ephemeral-storage"] {
            let amount = amounts.key(name);
            if let Some(quantity) = quantity(amount.value).filter(|quantity| !quantity.is_whole()) {
                let shown = quantity.to_string();
                odd.push(format!(
                    "{}: fractional byte value {shown:?} is invalid, must be an integer",
                    amount.path()
                ));
            }
        }
    }
    odd
}

/// Warnings of a Service.
pub fn service(service: &Value) -> Vec<String> {
    let root = Spot::root(service);
    let spec = root.field("spec");
    let mut odd = Vec::new();
    if spec.field("externalIPs").len() > 0 {
        odd.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned());
    }
    if spec.field("trafficDistribution").text() == "PreferClose" {
        odd.push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned());
    }
    odd
}

/// Warnings of a Secret: an invalid certificate.
pub fn secret(secret: &Value) -> Vec<String> {
    let text = |key: &str| {
        let encoded = secret["data"][key].as_str().unwrap_or_default();
        String::from_utf8_lossy(&STANDARD.decode(encoded).unwrap_or_default()).into_owned()
    };
    let odd = secret["type"] == "kubernetes.io/tls" && !text("tls.crt").contains("-----BEGIN ");
    odd.then(|| "tls: failed to find any PEM data in certificate input".to_owned())
        .into_iter()
        .collect()
}

/// Warnings of a CustomResourceDefinition: formats that are not validated.
pub fn definition(definition: &Value) -> Vec<String> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let unknown = versions.flat_map(|version| crd::unrecognized_formats(&version["schema"]["openAPIV3Schema"]));
    unknown.map(|format| format!("unrecognized format {format:?}")).collect()
}
