//! Validation of containers, init containers and ephemeral containers.
// pkg/apis/core/validation/validation.go, validateContainerCommon and its callers

use super::{Shape, environment, mount, probe, security};
use crate::builtin::resources;
use crate::builtin::rules::{empty, label, one_of, port, port_name, surely_one_of};
use crate::builtin::spot::{Found, Spot};
use std::collections::HashSet;

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// `containers`.
pub(super) fn validate_all(containers: &Spot<'_>, shape: &Shape<'_>, found: &mut Found) {
    if containers.len() == 0 {
        containers.required(found, "");
        return;
    }
    let mut names = HashSet::new();
    for container in containers.items() {
        validate(&container, shape, found);
        unique_name(&container, &mut names, found);
        probe::lifecycle(&container.field("lifecycle"), shape, found);
        PROBES.iter().for_each(|name| probe::validate(name, &container.field(name), shape, found));
        restart_policy(&container, found);
    }
    let mut ports = HashSet::new();
    containers.items().for_each(|container| unique_host_ports(&container, &mut ports, found));
}

/// `initContainers`.
pub(super) fn validate_init(spec: &Spot<'_>, shape: &Shape<'_>, found: &mut Found) {
    let (regular, containers) = (spec.field("containers"), spec.field("initContainers"));
    let mut names: HashSet<String> = regular.items().map(|one| one.field("name").text().to_owned()).collect();
    for container in containers.items() {
        validate(&container, shape, found);
        restart_policy(&container, found);
        let name = container.field("name");
        if !name.text().is_empty() && !names.insert(name.text().to_owned()) {
            name.duplicate(found, name.text());
        }
        unique_host_ports(&container, &mut HashSet::new(), found);
        if container.field("restartPolicy").text() == "Always" {
            probe::lifecycle(&container.field("lifecycle"), shape, found);
            PROBES.iter().for_each(|name| probe::validate(name, &container.field(name), shape, found));
        } else {
            runs_to_its_end(&container, found);
        }
    }
}

fn runs_to_its_end(container: &Spot<'_>, found: &mut Found) {
    for name in ["lifecycle"].iter().chain(&PROBES) {
        if container.field(name).is_set() {
            let why = "may not be set for init containers without restartPolicy=Always";
            container.field(name).forbidden(found, why);
        }
    }
    for policy in container.field("resizePolicy").items() {
        if policy.field("restartPolicy").text() == "RestartContainer" {
            let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            policy.field("restartPolicy").invalid(found, why);
        }
    }
}

/// `ephemeralContainers`.
pub(super) fn validate_ephemeral(spec: &Spot<'_>, shape: &Shape<'_>, found: &mut Found) {
    let mut names: HashSet<String> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| shape.names(list))
        .map(str::to_owned)
        .collect();
    for container in spec.field("ephemeralContainers").items() {
        validate(&container, shape, found);
        trimmed_image(&container, found);
        let name = container.field("name");
        if !names.insert(name.text().to_owned()) {
            name.duplicate(found, name.text());
        }
    }
}

/// The rules of every type of container.
fn validate(container: &Spot<'_>, shape: &Shape<'_>, found: &mut Found) {
    if !empty(&container.field("name"), found) {
        label(&container.field("name"), found);
    }
    empty(&container.field("image"), found);
    surely_one_of(&container.field("terminationMessagePolicy"), &["File", "FallbackToLogsOnError"], found);
    ports(&container.field("ports"), found);
    environment::variables(&container.field("env"), found);
    environment::sources(&container.field("envFrom"), found);
    mount::validate(container, shape, found);
    mount::validate_devices(container, shape, found);
    surely_one_of(&container.field("imagePullPolicy"), &PULL_POLICIES, found);
    resources::validate_container(&container.field("resources"), found);
    resize_policy(&container.field("resizePolicy"), shape, found);
    security::validate_container(&container.field("securityContext"), shape.spec, found);
}

fn unique_name(container: &Spot<'_>, names: &mut HashSet<String>, found: &mut Found) {
    let name = container.field("name");
    if !names.insert(name.text().to_owned()) {
        name.duplicate(found, name.text());
    }
}

/// The image of a pod must not have leading or trailing spaces; that of a template may.
pub(super) fn trimmed_image(container: &Spot<'_>, found: &mut Found) {
    let image = container.field("image");
    if image.text().trim() != image.text() {
        image.invalid(found, "must not have leading or trailing whitespace");
    }
}

fn ports(ports: &Spot<'_>, found: &mut Found) {
    let mut names = HashSet::new();
    for item in ports.items() {
        let name = item.field("name");
        if !name.text().is_empty() {
            let before = found.len();
            port_name(&name, found);
            if found.len() == before && !names.insert(name.text().to_owned()) {
                name.duplicate(found, name.text());
            }
        }
        match item.field("containerPort").int() {
            0 => item.field("containerPort").required(found, ""),
            _ => port(&item.field("containerPort"), found),
        }
        if item.field("hostPort").int() != 0 {
            port(&item.field("hostPort"), found);
        }
        surely_one_of(&item.field("protocol"), &PROTOCOLS, found);
    }
}

fn unique_host_ports(container: &Spot<'_>, taken: &mut HashSet<String>, found: &mut Found) {
    for item in container.field("ports").items() {
        let port = item.field("hostPort");
        let name = format!("{}/{}/{}", item.field("protocol").text(), item.field("hostIP").text(), port.int());
        if port.int() != 0 && !taken.insert(name.clone()) {
            port.duplicate(found, name);
        }
    }
}

/// Upstream reports violations of an item at the list.
fn resize_policy(policies: &Spot<'_>, shape: &Shape<'_>, found: &mut Found) {
    let mut names = HashSet::new();
    for policy in policies.items() {
        let (name, restart) = (policy.field("resourceName"), policy.field("restartPolicy"));
        if !names.insert(name.text().to_owned()) {
            policy.duplicate(found, name.text());
        }
        surely_one_of(&policies.showing(name.value), &["cpu", "memory"], found);
        surely_one_of(&policies.showing(restart.value), &["NotRequired", "RestartContainer"], found);
        if shape.restart_policy() == "Never" && restart.text() != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            policies.invalid_as(found, restart.text(), why);
        }
    }
}

fn restart_policy(container: &Spot<'_>, found: &mut Found) {
    let (policy, rules) = (container.field("restartPolicy"), container.field("restartPolicyRules"));
    if policy.is_set() {
        one_of(&policy, &RESTART_POLICIES, found);
    } else if rules.len() > 0 {
        policy.required(found, "must specify restartPolicy when restart rules are used");
    }
    if rules.len() > 20 {
        rules.too_many(found, 20);
    }
    for rule in rules.items() {
        one_of(&rule.field("action"), &["Restart", "RestartAllContainers"], found);
        match rule.field("exitCodes").is_set() {
            true => one_of(&rule.field("exitCodes").field("operator"), &["In", "NotIn"], found),
            false => rule.field("exitCodes").required(found, "must be specified"),
        }
    }
}
