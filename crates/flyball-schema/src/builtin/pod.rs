//! Pods and pod templates.

mod affinity;
mod container;
mod default;
mod dns;
mod environment;
mod legacy;
mod mount;
mod probe;
mod quality;
mod scheduling;
mod security;
mod update;
mod volume;
mod windows;

use super::rules::{deadline, label, labels, maybe_one_of, optional, subdomain, surely_one_of};
use super::spot::{Found, Spot};
use super::{at, fill, fill_zero, items, meta, resources};
use crate::violation::Violation;
use serde_json::{Value, json};
use std::collections::HashSet;

/// Sets the defaults of a pod.
// pkg/apis/core/v1/defaults.go, SetDefaults_Pod and SetDefaults_PodSpec
pub fn default(pod: &mut Value) {
    let spec = at(pod, "spec");
    for list in ["containers", "initContainers"] {
        items(spec, list).for_each(default::request_limits);
    }
    resources::aggregate::default(spec);
    fill(spec, "enableServiceLinks", true);
    default_spec(spec);
    if spec.get("hostNetwork").is_some_and(|flag| *flag == true) {
        for list in ["containers", "initContainers"] {
            items(spec, list).for_each(default::host_ports);
        }
    }
}

/// Sets the defaults of a PodTemplate.
pub fn default_template(object: &mut Value) {
    default_spec(at(at(object, "template"), "spec"));
}

/// Sets the defaults of a pod's spec, in a pod or a template.
pub fn default_spec(spec: &mut Value) {
    fill_zero(spec, "dnsPolicy", "ClusterFirst");
    fill_zero(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill_zero(spec, "schedulerName", "default-scheduler");
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        items(spec, list).for_each(default::default);
    }
    items(spec, "volumes").for_each(default::default_volume);
    for secret in items(spec, "imagePullSecrets").filter_map(Value::as_object_mut) {
        secret.retain(|_, name| *name != "");
    }
    share_account(spec);
}

/// `serviceAccount` is the deprecated alias of `serviceAccountName`; both get the same value.
fn share_account(spec: &mut Value) {
    let name = ["serviceAccountName", "serviceAccount"]
        .iter()
        .find_map(|field| spec.get(*field)?.as_str());
    if let Some(name) = name.map(str::to_owned) {
        spec["serviceAccount"] = name.clone().into();
        spec["serviceAccountName"] = name.into();
    }
}

/// Sets the initial status of a new pod.
pub fn prepare(pod: &mut Value, live: Option<&Value>) {
    if live.is_some() {
        return;
    }
    let spec = at(pod, "spec");
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        spec["terminationGracePeriodSeconds"] = 1.into();
    }
    let quality = quality::of(&pod["spec"]);
    let spec = at(pod, "spec");
    share_account(spec);
    let is_gated = spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    pod["status"] = json!({"phase": "Pending", "qosClass": quality});
    if is_gated {
        pod["status"]["conditions"] = json!([gated(meta::text(pod, "creationTimestamp"))]);
    }
}

/// Whether nothing is requested for a pod.
pub(super) fn is_best_effort(pod: &Value) -> bool {
    quality::of(&pod["spec"]) == "BestEffort"
}

/// The `PodScheduled` condition of a pod with scheduling gates.
// pkg/registry/core/pod/strategy.go, applySchedulingGatedCondition
fn gated(since: &str) -> Value {
    json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastProbeTime": null,
        "lastTransitionTime": since,
    })
}

/// Adds the tolerations that every pod has, unless it has its own.
// plugin/pkg/admission/defaulttolerationseconds/admission.go
pub fn tolerate(pod: &mut Value) {
    let spec = at(pod, "spec");
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

/// Validates a pod.
// pkg/apis/core/validation/validation.go, ValidatePodCreate and ValidatePodUpdate
pub fn validate(pod: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(pod);
    let spec = root.field("spec");
    validate_spec(&spec, Whose::Pod, &mut found);
    for list in ["containers", "initContainers"] {
        spec.field(list).items().for_each(|one| container::trimmed_image(&one, &mut found));
    }
    match live {
        Some(live) => update::validate(&spec, &Spot::root(live).field("spec"), &mut found),
        None => new_pod(&spec, &mut found),
    }
    found
}

fn new_pod(spec: &Spot<'_>, found: &mut Found) {
    if spec.field("ephemeralContainers").len() > 0 {
        spec.field("ephemeralContainers").forbidden(found, "cannot be set on create");
    }
    if !spec.field("nodeName").text().is_empty() && spec.field("schedulingGates").len() > 0 {
        spec.field("nodeName")
            .forbidden(found, "cannot be set until all schedulingGates have been cleared");
    }
}

/// The object that a pod spec belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Pod,
    Template,
}

/// The facts of a pod's spec that the validation of its parts needs.
struct Shape<'a> {
    spec: &'a Value,
    /// The names of the valid volumes.
    volumes: HashSet<&'a str>,
}

impl<'a> Shape<'a> {
    fn has_volume(&self, name: &str) -> bool {
        self.volumes.contains(name)
    }

    fn volume(&self, name: &str) -> Option<&'a Value> {
        let volumes = self.spec["volumes"].as_array().into_iter().flatten();
        volumes.into_iter().find(|volume| volume["name"] == name && self.has_volume(name))
    }

    fn names(&self, list: &str) -> Vec<&'a str> {
        let containers = self.spec[list].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).collect()
    }

    fn restart_policy(&self) -> &'a str {
        self.spec["restartPolicy"].as_str().unwrap_or_default()
    }
}

/// Validates a pod's spec, in a pod or a template.
// ValidatePodSpec: one rule a line, in its order
pub(super) fn validate_spec(spec: &Spot<'_>, whose: Whose, found: &mut Found) {
    let volumes = volume::validate(&spec.field("volumes"), found);
    let shape = Shape { spec: spec.value, volumes: volumes.into_iter().collect() };
    container::validate_all(&spec.field("containers"), &shape, found);
    container::validate_init(spec, &shape, found);
    container::validate_ephemeral(spec, &shape, found);
    resources::validate_pod(spec, found);
    host_ports(spec, whose, found);
    surely_one_of(&spec.field("restartPolicy"), &["Always", "OnFailure", "Never"], found);
    surely_one_of(
        &spec.field("dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        found,
    );
    labels(&spec.field("nodeSelector"), found);
    security::validate_pod(spec, found);
    affinity::validate(&spec.field("affinity"), found);
    dns::config(spec, found);
    scheduling::readiness_gates(&spec.field("readinessGates"), found);
    scheduling::gates(&spec.field("schedulingGates"), found);
    scheduling::spread(&spec.field("topologySpreadConstraints"), found);
    windows::host_processes(spec, found);
    optional(&spec.field("serviceAccountName"), subdomain, found);
    optional(&spec.field("nodeName"), subdomain, found);
    deadline(&spec.field("activeDeadlineSeconds"), found);
    optional(&spec.field("hostname"), label, found);
    optional(&spec.field("subdomain"), label, found);
    scheduling::tolerations(&spec.field("tolerations"), found);
    dns::aliases(&spec.field("hostAliases"), found);
    optional(&spec.field("priorityClassName"), subdomain, found);
    optional(&spec.field("runtimeClassName"), subdomain, found);
    maybe_one_of(&spec.field("preemptionPolicy"), &["PreemptLowerPriority", "Never"], found);
    overhead(spec, found);
    system(spec, found);
}

/// With `hostNetwork`, each container port is also the host port.
// validatePodHostNetworkDeps
fn host_ports(spec: &Spot<'_>, whose: Whose, found: &mut Found) {
    if !spec.field("hostNetwork").is_true() {
        return;
    }
    for container in spec.field("containers").items() {
        for port in container.field("ports").items() {
            let host = port.field("hostPort");
            let given = whose == Whose::Pod || host.int() != 0;
            if given && host.int() != port.field("containerPort").int() {
                let why = "must match `containerPort` when `hostNetwork` is true";
                host.invalid_as(found, host.int(), why);
            }
        }
    }
}

/// `overhead`; upstream reports its violations as those of limits.
fn overhead(spec: &Spot<'_>, found: &mut Found) {
    let overhead = spec.field("overhead");
    if overhead.is_set() {
        let limits = json!({"limits": overhead.value});
        resources::validate_container(&spec.with("overhead", &limits), found);
    }
}

/// `os`, and the fields that are not supported on that operating system.
fn system(spec: &Spot<'_>, found: &mut Found) {
    let system = spec.field("os");
    if !system.is_set() {
        return;
    }
    match system.field("name").text() {
        "" => system.field("name").required(found, ""),
        "linux" => windows::on_linux(spec, found),
        "windows" => windows::on_windows(spec, found),
        other => found.push(Violation::not_supported(system.path(), other, &["linux", "windows"])),
    }
}
