//! Pods, and the templates that others make pods from.

mod container;
mod quality;

use super::{at, fill, items};
use crate::violation::Violation;
use serde_json::{Value, json};

/// Fields of a pod that selectors may name.
// pkg/apis/core/v1/conversion.go, AddFieldLabelConversionsForPod
pub const FIELDS: &[(&str, &str)] = &[
    ("spec.nodeName", "spec.nodeName"),
    ("spec.host", "spec.nodeName"),
    ("spec.restartPolicy", "spec.restartPolicy"),
    ("spec.schedulerName", "spec.schedulerName"),
    ("spec.serviceAccountName", "spec.serviceAccountName"),
    ("spec.hostNetwork", "spec.hostNetwork"),
    ("status.phase", "status.phase"),
    ("status.podIP", "status.podIP"),
    ("status.nominatedNodeName", "status.nominatedNodeName"),
];

/// Fills in what a pod leaves out.
// pkg/apis/core/v1/defaults.go, SetDefaults_Pod and SetDefaults_PodSpec
pub fn default(pod: &mut Value) {
    let spec = at(pod, "spec");
    for list in ["containers", "initContainers"] {
        items(spec, list).for_each(container::request_limits);
    }
    fill(spec, "enableServiceLinks", true);
    default_spec(spec);
}

/// Fills in what a PodTemplate leaves out.
pub fn default_template(object: &mut Value) {
    default_spec(at(at(object, "template"), "spec"));
}

/// Fills in what a pod's spec leaves out, in a pod or a template.
pub fn default_spec(spec: &mut Value) {
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill(spec, "schedulerName", "default-scheduler");
    let host_network = spec["hostNetwork"] == true;
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        items(spec, list).for_each(|container| container::default(container, host_network));
    }
    items(spec, "volumes").for_each(container::default_volume);
    share_account(spec);
}

/// `serviceAccount` is an old name of `serviceAccountName`: both say the same.
fn share_account(spec: &mut Value) {
    let name = ["serviceAccountName", "serviceAccount"].iter().find_map(|field| spec[*field].as_str());
    if let Some(name) = name.map(str::to_owned) {
        spec["serviceAccount"] = name.clone().into();
        spec["serviceAccountName"] = name.into();
    }
}

/// Writes what admission writes into a new pod, and its first status.
// plugin/pkg/admission: serviceaccount, priority, defaulttolerationseconds
pub fn prepare(pod: &mut Value, live: Option<&Value>) {
    if live.is_some() {
        return;
    }
    let quality = quality::of(&pod["spec"]);
    let spec = at(pod, "spec");
    fill(spec, "serviceAccountName", "default");
    share_account(spec);
    fill(spec, "priority", 0);
    fill(spec, "preemptionPolicy", "PreemptLowerPriority");
    tolerate(spec);
    pod["status"] = json!({"phase": "Pending", "qosClass": quality});
}

fn tolerate(spec: &mut Value) {
    fill(spec, "tolerations", json!([]));
    let Some(tolerations) = spec["tolerations"].as_array_mut() else {
        return;
    };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covers = |toleration: &Value| {
            let its_key = toleration["key"].as_str().unwrap_or_default();
            let effect = toleration["effect"].as_str().unwrap_or_default();
            (its_key == key || its_key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        };
        if !tolerations.iter().any(covers) {
            let effect = json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
            tolerations.push(effect);
        }
    }
}

/// Finds what is wrong with a pod.
pub fn validate(pod: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut violations = validate_spec(&pod["spec"], "spec");
    if let Some(live) = live {
        violations.extend(container::validate_update(pod, live));
    }
    violations
}

/// Finds what is wrong with a pod's spec, in a pod or a template.
pub fn validate_spec(spec: &Value, path: &str) -> Vec<Violation> {
    let mut violations = container::validate(spec, path);
    let policies = ["Always", "OnFailure", "Never"];
    let policy = spec["restartPolicy"].as_str().unwrap_or_default();
    if !policy.is_empty() && !policies.contains(&policy) {
        violations.push(Violation::not_supported(format!("{path}.restartPolicy"), policy, &policies));
    }
    violations
}
