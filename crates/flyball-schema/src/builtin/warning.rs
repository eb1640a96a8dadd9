//! Warnings for built-in objects that are valid but suspicious.
// pkg/api/pod/warnings.go, pkg/api/service/warnings.go and pkg/registry/core/secret/strategy.go

use super::rules::quantity;
use super::spot::Spot;
use crate::crd;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Annotations that nothing acts on any more, and the fields that replaced them.
const RETIRED: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];
const SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";

/// Warnings of a pod.
pub fn pod(pod: &Value) -> Vec<String> {
    pod_like(&Spot::root(pod))
}

/// Warnings of a kind with a pod template in its spec.
pub fn template(object: &Value) -> Vec<String> {
    pod_like(&Spot::root(object).field("spec").field("template"))
}

/// Warnings of a CronJob.
pub fn cron_job(object: &Value) -> Vec<String> {
    let root = Spot::root(object);
    let spec = root.field("spec");
    pod_like(&spec.field("jobTemplate").field("spec").field("template"))
}

fn pod_like(pod: &Spot<'_>) -> Vec<String> {
    let spec = pod.field("spec");
    let mut odd = Vec::new();
    for constraint in spec.field("topologySpreadConstraints").items() {
        let selector = constraint.field("labelSelector");
        if !selector.is_set() {
            odd.push(format!("{}: a null labelSelector results in matching no pod", selector.path()));
        }
    }
    let metadata = pod.field("metadata");
    let annotations = metadata.field("annotations");
    let retired = |key: &str, why: &str| {
        let annotation = annotations.key(key);
        annotation.is_set().then(|| format!("{}: {why}", annotation.path()))
    };
    odd.extend(RETIRED.iter().filter_map(|(key, why)| retired(key, why)));
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
    let has_profile = |owner: &Spot<'_>| owner.field("securityContext").field("seccompProfile").is_set();
    if !has_profile(&spec) {
        odd.extend(retired("seccomp.security.alpha.kubernetes.io/pod", SECCOMP));
    }
    for list in ["initContainers", "containers"] {
        for container in spec.field(list).items() {
            if !has_profile(&container) {
                let name = container.field("name").text();
                odd.extend(retired(&format!("container.seccomp.security.alpha.kubernetes.io/{name}"), SECCOMP));
            }
            odd.extend(fractions(&container));
        }
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
    let resources = container.field("resources");
    for name in ["memory", "ephemeral-storage"] {
        for kind in ["limits", "requests"] {
            let amounts = resources.field(kind);
            let amount = amounts.key(name);
            odd.extend(fraction(&amount));
        }
    }
    odd
}

fn fraction(amount: &Spot<'_>) -> Option<String> {
    let quantity = quantity(amount.value).filter(|quantity| !quantity.is_whole())?.to_string();
    Some(format!(
        "{}: fractional byte value {quantity:?} is invalid, must be an integer",
        amount.path()
    ))
}

/// Warnings of a claim.
// pkg/api/persistentvolumeclaim/util.go, GetWarningsForPersistentVolumeClaim
pub fn claim(claim: &Value) -> Vec<String> {
    let root = Spot::root(claim);
    let (metadata, spec) = (root.field("metadata"), root.field("spec"));
    let annotations = metadata.field("annotations");
    let class = annotations.key("volume.beta.kubernetes.io/storage-class");
    let why = "deprecated since v1.8; use \"storageClassName\" attribute instead";
    let mut odd: Vec<String> = class.is_set().then(|| format!("{}: {why}", class.path())).into_iter().collect();
    let resources = spec.field("resources");
    for list in ["requests", "limits"] {
        let amounts = resources.field(list);
        odd.extend(fraction(&amounts.key("storage")));
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
