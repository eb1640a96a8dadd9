//! Defaults of containers and volumes.

use crate::builtin::volume::default_claim;
use crate::builtin::{at, fill, fill_zero, items, within};
use serde_json::{Value, json};

/// Sets the defaults of a container.
// pkg/apis/core/v1/defaults.go, SetDefaults_Container and SetDefaults_Probe
pub(super) fn default(container: &mut Value) {
    let policy = match container.get("image").and_then(Value::as_str) {
        Some(image) if is_latest(image) => "Always",
        _ => "IfNotPresent",
    };
    fill_zero(container, "imagePullPolicy", policy);
    fill_zero(container, "terminationMessagePath", "/dev/termination-log");
    fill_zero(container, "terminationMessagePolicy", "File");
    items(container, "ports").for_each(|port| fill_zero(port, "protocol", "TCP"));
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        within(container, probe).into_iter().for_each(default_probe);
    }
    for hook in ["postStart", "preStop"] {
        let lifecycle = within(container, "lifecycle");
        lifecycle
            .and_then(|lifecycle| within(lifecycle, hook))
            .into_iter()
            .for_each(default_action);
    }
    for variable in items(container, "env") {
        if let Some(source) = within(variable, "valueFrom") {
            default_reference(source);
        }
    }
}

/// With `hostNetwork`, each container port is also the host port.
pub(super) fn host_ports(container: &mut Value) {
    for port in items(container, "ports") {
        let number = port.get("containerPort").cloned().unwrap_or_default();
        if number.is_number() {
            fill_zero(port, "hostPort", number);
        }
    }
}

/// Sets the API version of a `fieldRef` and the divisor of a `resourceFieldRef`.
fn default_reference(source: &mut Value) {
    if let Some(field) = within(source, "fieldRef") {
        fill_zero(field, "apiVersion", "v1");
    }
    if let Some(resource) = within(source, "resourceFieldRef") {
        fill(resource, "divisor", "0");
    }
}

fn default_probe(probe: &mut Value) {
    fill_zero(probe, "timeoutSeconds", 1);
    fill_zero(probe, "periodSeconds", 10);
    fill_zero(probe, "successThreshold", 1);
    fill_zero(probe, "failureThreshold", 3);
    default_action(probe);
    if let Some(grpc) = within(probe, "grpc") {
        fill(grpc, "service", "");
    }
}

fn default_action(action: &mut Value) {
    if let Some(http) = within(action, "httpGet") {
        fill_zero(http, "path", "/");
        fill_zero(http, "scheme", "HTTP");
    }
}

/// Whether an image has no tag, or `latest`, and no digest.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let name = image.rsplit('/').next().unwrap_or(image);
    match name.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => true,
    }
}

/// Sets absent requests of a container to its limits.
pub(super) fn request_limits(container: &mut Value) {
    let Some(resources) = within(container, "resources") else {
        return;
    };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else {
        return;
    };
    let requests = at(resources, "requests");
    for (name, limit) in limits {
        fill(requests, &name, limit);
    }
}

/// Sets the defaults of a volume.
// pkg/apis/core/v1/defaults.go, SetDefaults_Volume and following
pub(super) fn default_volume(volume: &mut Value) {
    if volume.as_object().is_some_and(|members| members.keys().all(|key| key == "name")) {
        fill(volume, "emptyDir", json!({}));
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = within(volume, source) {
            fill(source, "defaultMode", 420);
            items(source, "items").for_each(default_reference);
        }
    }
    if let Some(path) = within(volume, "hostPath") {
        fill(path, "type", "");
    }
    if let Some(template) = within(volume, "ephemeral").and_then(|source| within(source, "volumeClaimTemplate")) {
        default_claim(template);
    }
    if let Some(image) = within(volume, "image") {
        let reference = image.get("reference").and_then(Value::as_str).unwrap_or_default();
        let policy = if is_latest(reference) { "Always" } else { "IfNotPresent" };
        fill_zero(image, "pullPolicy", policy);
    }
    within(volume, "projected").into_iter().for_each(default_projection);
}

fn default_projection(projected: &mut Value) {
    for source in items(projected, "sources") {
        if let Some(token) = within(source, "serviceAccountToken") {
            fill(token, "expirationSeconds", 3600);
        }
        if let Some(downward) = within(source, "downwardAPI") {
            items(downward, "items").for_each(default_reference);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_pulled_always_only_if_its_tag_may_move() {
        for (image, latest) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1.27", false),
            ("registry:5000/nginx", true),
            ("registry:5000/nginx:1", false),
            ("nginx@sha256:0000", false),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }
}
