//! Validation of services.
// pkg/apis/core/validation/validation.go, ValidateServiceCreate and ValidateServiceUpdate

use super::address;
use crate::builtin::rules::{
    empty, label, labels, maybe_one_of, network, one_of, port, port_or_name, qualified, subdomain, surely_one_of,
};
use crate::builtin::spot::{Found, Spot};
use crate::violation::{Reason, Violation};
use serde_json::{Value, json};
use std::collections::HashSet;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const ONLY_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];

/// Validates a service.
pub fn validate(service: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(service);
    let spec = root.field("spec");
    match live {
        Some(live) => fixed(&spec, &live["spec"], &mut found),
        None if !can_be_given(&spec, &mut found) => return found,
        None => {}
    }
    if spec.field("ports").len() == 0 && !is_headless(&spec) && kind(&spec) != "ExternalName" {
        spec.field("ports").required(&mut found, "");
    }
    of_its_type(&spec, &mut found);
    ports(&spec.field("ports"), &mut found);
    labels(&spec.field("selector"), &mut found);
    affinity(&spec, &mut found);
    address::validate(&spec, &mut found);
    spec.field("externalIPs").items().for_each(|one| address::external(&one, &mut found));
    surely_one_of(&spec.field("type"), &TYPES, &mut found);
    node_ports(&spec, &mut found);
    unique_ports(&spec.field("ports"), &mut found);
    balancer(&spec, &mut found);
    traffic(&spec, &mut found);
    found
}

/// Upstream allocates addresses and ports before it validates the rest.
// pkg/registry/core/service/storage/alloc.go
fn can_be_given(spec: &Spot<'_>, found: &mut Found) -> bool {
    if kind(spec) == "ExternalName" {
        return true;
    }
    for family in spec.field("ipFamilies").items().filter(|family| family.text() == "IPv6") {
        family.invalid(found, "not configured on this cluster");
    }
    let mut taken = HashSet::new();
    let ports = spec.field("ports");
    for item in ports
        .items()
        .filter(|item| item.field("nodePort").int() != 0 && kind(spec) != "ClusterIP")
    {
        let node_port = item.field("nodePort");
        if !taken.insert((item.field("protocol").text().to_owned(), node_port.int())) {
            node_port.invalid(found, "provided port is already allocated");
        }
    }
    found.is_empty()
}

pub(super) fn kind<'a>(spec: &Spot<'a>) -> &'a str {
    spec.value["type"].as_str().unwrap_or_default()
}

pub(super) fn is_headless(spec: &Spot<'_>) -> bool {
    spec.value["clusterIP"] == "None" || spec.value["clusterIPs"][0] == "None"
}

fn of_its_type(spec: &Spot<'_>, found: &mut Found) {
    match kind(spec) {
        "ExternalName" => external_name(spec, found),
        kind @ ("NodePort" | "LoadBalancer") if is_headless(spec) => {
            let why = format!("may not be set to 'None' for {kind} services");
            spec.field("clusterIPs").items().take(1).for_each(|first| first.invalid(found, &why));
        }
        _ => {}
    }
}

fn external_name(spec: &Spot<'_>, found: &mut Found) {
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if spec.field(field).len() > 0 {
            spec.field(field).forbidden(found, "may not be set for ExternalName services");
        }
    }
    let given = spec.field("externalName");
    let name = Value::from(given.text().strip_suffix('.').unwrap_or(given.text()));
    if !empty(&given, found) {
        subdomain(&given.showing(&name), found);
    }
}

fn ports(ports: &Spot<'_>, found: &mut Found) {
    let mut names = HashSet::new();
    for item in ports.items() {
        let name = item.field("name");
        if !name.text().is_empty() {
            label(&name, found);
            if !names.insert(name.text().to_owned()) {
                name.duplicate(found, name.text());
            }
        } else if ports.len() > 1 {
            name.required(found, "");
        }
        port(&item.field("port"), found);
        surely_one_of(&item.field("protocol"), &["SCTP", "TCP", "UDP"], found);
        port_or_name(&item.field("targetPort"), found);
        if item.field("appProtocol").is_set() {
            qualified(&item.field("appProtocol"), found);
        }
    }
}

fn affinity(spec: &Spot<'_>, found: &mut Found) {
    let (affinity, config) = (spec.field("sessionAffinity"), spec.field("sessionAffinityConfig"));
    surely_one_of(&affinity, &["ClientIP", "None"], found);
    match affinity.text() {
        "ClientIP" => {
            let client = config.field("clientIP");
            let timeout = client.field("timeoutSeconds");
            if !(1..=86400).contains(&timeout.int()) {
                timeout.invalid(found, "must be greater than 0 and less than 86400");
            }
        }
        "None" if config.is_set() => config.forbidden(found, "must not be set when session affinity is None"),
        _ => {}
    }
}

fn node_ports(spec: &Spot<'_>, found: &mut Found) {
    let mut taken = HashSet::new();
    let ports = spec.field("ports");
    for item in ports
        .items()
        .filter(|item| item.field("nodePort").int() != 0 && kind(spec) == "ClusterIP")
    {
        item.field("nodePort").forbidden(found, "may not be used when `type` is 'ClusterIP'");
    }
    for item in ports.items().filter(|item| item.field("nodePort").int() != 0) {
        let node_port = item.field("nodePort");
        if !taken.insert((item.field("protocol").text().to_owned(), node_port.int())) {
            node_port.duplicate(found, node_port.int());
        }
    }
}

/// Ports must be unique; Go reports the fields that are equal.
fn unique_ports(ports: &Spot<'_>, found: &mut Found) {
    let mut taken = HashSet::new();
    for item in ports.items() {
        let (protocol, number) = (item.field("protocol").text().to_owned(), item.field("port").int());
        if !taken.insert((protocol.clone(), number)) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}",
                json!(protocol)
            );
            found.push(Violation::with_text(item.path(), Reason::Duplicate, &shown, ""));
        }
    }
}

fn balancer(spec: &Spot<'_>, found: &mut Found) {
    let is_balancer = kind(spec) == "LoadBalancer";
    let ranges = spec.with("LoadBalancerSourceRanges", &spec.value["loadBalancerSourceRanges"]);
    if ranges.len() > 0 && !is_balancer {
        ranges.forbidden(found, ONLY_BALANCERS);
    }
    for range in ranges.items() {
        let trimmed = Value::from(range.text().trim());
        network(&range.showing(&trimmed), found);
    }
    if spec.field("allocateLoadBalancerNodePorts").is_set() && !is_balancer {
        spec.field("allocateLoadBalancerNodePorts").forbidden(found, ONLY_BALANCERS);
    }
    let class = spec.field("loadBalancerClass");
    if class.is_set() {
        match is_balancer {
            true => qualified(&class, found),
            false => class.forbidden(found, ONLY_BALANCERS),
        }
    }
}

fn traffic(spec: &Spot<'_>, found: &mut Found) {
    let (external, health) = (spec.field("externalTrafficPolicy"), spec.field("healthCheckNodePort"));
    let is_open = matches!(kind(spec), "LoadBalancer" | "NodePort")
        || (kind(spec) == "ClusterIP" && spec.field("externalIPs").len() > 0);
    if is_open {
        surely_one_of(&external, &["Cluster", "Local"], found);
    } else if !external.text().is_empty() {
        external.invalid(found, "may only be set for externally-accessible services");
    }
    let is_checked = kind(spec) == "LoadBalancer" && external.text() == "Local";
    if !is_checked && health.int() != 0 {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        health.invalid(found, why);
    }
    maybe_one_of(&spec.field("internalTrafficPolicy"), &["Cluster", "Local"], found);
    if spec.field("trafficDistribution").is_set() {
        one_of(&spec.field("trafficDistribution"), &DISTRIBUTIONS, found);
    }
}

/// The fields that an update must not change.
fn fixed(spec: &Spot<'_>, old: &Value, found: &mut Found) {
    address::fixed(spec, old, found);
    let class = spec.field("loadBalancerClass");
    let were_both = kind(spec) == "LoadBalancer" && old["type"] == "LoadBalancer";
    if were_both && *class.value != old["loadBalancerClass"] {
        class.invalid(found, "may not change once set");
    }
}
