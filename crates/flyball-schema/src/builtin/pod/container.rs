//! Containers and volumes.

use crate::builtin::{at, fill, items};
use crate::names;
use crate::violation::Violation;
use serde_json::{Value, json};
use std::collections::HashSet;

/// Fills in what a container leaves out.
// pkg/apis/core/v1/defaults.go, SetDefaults_Container and SetDefaults_Probe
pub(super) fn default(container: &mut Value, host_network: bool) {
    let policy = match container["image"].as_str() {
        Some(image) if is_latest(image) => "Always",
        _ => "IfNotPresent",
    };
    fill(container, "imagePullPolicy", policy);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    for port in items(container, "ports") {
        fill(port, "protocol", "TCP");
        let number = port["containerPort"].clone();
        if host_network && number.is_number() {
            fill(port, "hostPort", number);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[probe].is_object() {
            default_probe(&mut container[probe]);
        }
    }
    for hook in ["postStart", "preStop"] {
        let action = &mut container["lifecycle"][hook];
        if action.is_object() {
            default_action(action);
        }
    }
    clean(container, "lifecycle");
    for variable in items(container, "env") {
        if variable["valueFrom"]["fieldRef"].is_object() {
            fill(&mut variable["valueFrom"]["fieldRef"], "apiVersion", "v1");
        }
        clean(variable, "valueFrom");
    }
}

/// Takes back a field that was only looked at.
fn clean(object: &mut Value, field: &str) {
    let is_empty = |value: &Value| value.as_object().is_none_or(|members| members.values().all(Value::is_null));
    if let Some(members) = object.as_object_mut()
        && members.get(field).is_some_and(is_empty)
    {
        members.remove(field);
    }
}

fn default_probe(probe: &mut Value) {
    fill(probe, "timeoutSeconds", 1);
    fill(probe, "periodSeconds", 10);
    fill(probe, "successThreshold", 1);
    fill(probe, "failureThreshold", 3);
    default_action(probe);
    if probe.get("grpc").is_some_and(Value::is_object) {
        fill(&mut probe["grpc"], "service", "");
    }
}

fn default_action(action: &mut Value) {
    if action.get("httpGet").is_some_and(Value::is_object) {
        fill(&mut action["httpGet"], "path", "/");
        fill(&mut action["httpGet"], "scheme", "HTTP");
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

/// A container that has a limit requests as much, unless it says otherwise.
pub(super) fn request_limits(container: &mut Value) {
    let Some(limits) = container["resources"]["limits"].as_object().cloned() else {
        return;
    };
    let requests = at(at(container, "resources"), "requests");
    for (name, limit) in limits {
        fill(requests, &name, limit);
    }
}

/// Fills in what a volume leaves out.
// pkg/apis/core/v1/defaults.go, SetDefaults_Volume and following
pub(super) fn default_volume(volume: &mut Value) {
    let Some(members) = volume.as_object() else { return };
    if members.keys().all(|key| key == "name") {
        volume["emptyDir"] = json!({});
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if volume.get(source).is_some_and(Value::is_object) {
            fill(&mut volume[source], "defaultMode", 420);
        }
    }
    if volume.get("hostPath").is_some_and(Value::is_object) {
        fill(&mut volume["hostPath"], "type", "");
    }
    if volume.get("projected").is_some_and(Value::is_object) {
        for source in items(&mut volume["projected"], "sources") {
            if source.get("serviceAccountToken").is_some_and(Value::is_object) {
                fill(&mut source["serviceAccountToken"], "expirationSeconds", 3600);
            }
        }
    }
}

/// Finds what is wrong with the containers of a pod's spec.
// pkg/apis/core/validation/validation.go, validateContainers
pub(super) fn validate(spec: &Value, path: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut names = HashSet::new();
    let containers = spec["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if containers.is_empty() {
        violations.push(Violation::required(format!("{path}.containers"), ""));
    }
    for (list, required) in [("containers", true), ("initContainers", true)] {
        let containers = spec[list].as_array().map(Vec::as_slice).unwrap_or_default();
        for (index, container) in containers.iter().enumerate() {
            let path = format!("{path}.{list}[{index}]");
            violations.extend(validate_container(container, &path, required));
            let name = container["name"].as_str().unwrap_or_default();
            if !name.is_empty() && !names.insert(name) {
                violations.push(Violation::duplicate(format!("{path}.name"), name));
            }
        }
    }
    violations
}

fn validate_container(container: &Value, path: &str, image_required: bool) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut ports = Vec::new();
    match container["name"].as_str().unwrap_or_default() {
        "" => violations.push(Violation::required(format!("{path}.name"), "")),
        name => {
            let wrong = names::dns1123_label(name);
            violations.extend(wrong.iter().map(|why| Violation::invalid(format!("{path}.name"), name, why)));
        }
    }
    for (index, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
        let number = port["containerPort"].as_i64().unwrap_or(0);
        if !(1..=65535).contains(&number) {
            let path = format!("{path}.ports[{index}].containerPort");
            ports.push(Violation::invalid(path, number, "must be between 1 and 65535, inclusive"));
        }
    }
    if image_required && container["image"].as_str().unwrap_or_default().is_empty() {
        violations.push(Violation::required(format!("{path}.image"), ""));
    }
    violations.extend(ports);
    violations
}

/// Finds what an update of a pod may not change.
// pkg/apis/core/validation/validation.go, ValidatePodUpdate
pub(super) fn validate_update(pod: &Value, live: &Value) -> Vec<Violation> {
    let mut allowed = pod["spec"].clone();
    let before = &live["spec"];
    for list in ["containers", "initContainers"] {
        let images = before[list].as_array().map(Vec::as_slice).unwrap_or_default();
        for (container, old) in items(&mut allowed, list).zip(images) {
            container["image"] = old["image"].clone();
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates", "nodeName"] {
        match before.get(field) {
            Some(value) => allowed[field] = value.clone(),
            None => {
                allowed.as_object_mut().map(|members| members.remove(field));
            }
        }
    }
    if allowed == *before {
        return Vec::new();
    }
    let why = "pod updates may not change fields other than `spec.containers[*].image`,\
        `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
        `spec.tolerations` (only additions to existing tolerations),\
        `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    vec![Violation::forbidden("spec", why)]
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
