//! Services. Their addresses and ports are given out by `allocate`.

use super::{at, fill, items, within};
use crate::names;
use crate::violation::Violation;
use serde_json::{Value, json};

/// Fills in what a service leaves out.
// pkg/apis/core/v1/defaults.go, SetDefaults_Service
pub fn default(service: &mut Value) {
    let spec = at(service, "spec");
    fill(spec, "sessionAffinity", "None");
    fill(spec, "type", "ClusterIP");
    match spec["sessionAffinity"].as_str() {
        Some("ClientIP") => fill(at(at(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10800),
        _ => forget(spec, "sessionAffinityConfig"),
    }
    for port in items(spec, "ports") {
        fill(port, "protocol", "TCP");
        let number = port["port"].clone();
        if port["targetPort"].is_null() || port["targetPort"] == 0 || port["targetPort"] == "" {
            port["targetPort"] = number;
        }
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    let has_external = spec["externalIPs"].as_array().is_some_and(|addresses| !addresses.is_empty());
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || (kind == "ClusterIP" && has_external) {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
        let balancer = within(service, "status").and_then(|status| within(status, "loadBalancer"));
        for ingress in balancer.into_iter().flat_map(|balancer| items(balancer, "ingress")) {
            if ingress["ip"].is_string() {
                fill(ingress, "ipMode", "VIP");
            }
            forget_null(ingress);
        }
    }
}

fn forget(object: &mut Value, field: &str) {
    object.as_object_mut().map(|members| members.remove(field));
}

fn forget_null(object: &mut Value) {
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
}

/// Keeps a service's addresses and ports where an update leaves them out.
// pkg/registry/core/service/strategy.go, patchAllocatedValues
pub fn prepare(service: &mut Value, live: Option<&Value>) {
    let spec = at(service, "spec");
    if spec["type"] == "ExternalName" {
        ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]
            .iter()
            .for_each(|field| forget(spec, field));
        return;
    }
    if let Some(live) = live.filter(|live| live["spec"]["type"] != "ExternalName") {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = live["spec"].get(field) {
                fill(spec, field, value.clone());
            }
        }
        keep_node_ports(spec, &live["spec"]);
    }
    fill(spec, "ipFamilies", json!(["IPv4"]));
    fill(spec, "ipFamilyPolicy", "SingleStack");
    if spec["clusterIP"].as_str().is_some_and(|address| !address.is_empty()) {
        let address = spec["clusterIP"].clone();
        fill(spec, "clusterIPs", json!([address]));
    }
}

fn keep_node_ports(spec: &mut Value, live: &Value) {
    let needs = matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"));
    let before = live["ports"].as_array().cloned().unwrap_or_default();
    for port in items(spec, "ports") {
        let same = |old: &&Value| old["port"] == port["port"] && old["protocol"] == port["protocol"];
        match before.iter().find(same).map(|old| old["nodePort"].clone()) {
            Some(number) if needs && number.is_number() => fill(port, "nodePort", number),
            _ if !needs => forget(port, "nodePort"),
            _ => {}
        }
    }
}

/// Finds what is wrong with a service.
// pkg/apis/core/validation/validation.go, ValidateService and ValidateServiceUpdate
pub fn validate(service: &Value, live: Option<&Value>) -> Vec<Violation> {
    let spec = &service["spec"];
    let mut violations = Vec::new();
    let kind = spec["type"].as_str().unwrap_or_default();
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    if ports.is_empty() && spec["clusterIP"] != "None" && kind != "ExternalName" {
        violations.push(Violation::required("spec.ports", ""));
    }
    for (index, port) in ports.iter().enumerate() {
        violations.extend(validate_port(port, &format!("spec.ports[{index}]"), ports.len()));
    }
    if !matches!(kind, "ClusterIP" | "ExternalName" | "LoadBalancer" | "NodePort") {
        let supported = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
        violations.push(Violation::not_supported("spec.type", kind, &supported));
    }
    if kind == "ExternalName" && spec["externalName"].as_str().unwrap_or_default().is_empty() {
        let why = "may not be empty for `spec.type: ExternalName`";
        violations.push(Violation::required("spec.externalName", why));
    }
    let address = |spec: &Value| spec["clusterIP"].as_str().unwrap_or_default().to_owned();
    if let Some(live) = live.filter(|_| kind != "ExternalName")
        && !address(&live["spec"]).is_empty()
        && address(&live["spec"]) != address(spec)
    {
        let given = spec["clusterIPs"].clone();
        violations.push(Violation::invalid("spec.clusterIPs[0]", given, "may not change once set"));
    }
    violations
}

fn validate_port(port: &Value, path: &str, count: usize) -> Vec<Violation> {
    let mut violations = Vec::new();
    match port["name"].as_str().unwrap_or_default() {
        "" if count > 1 => violations.push(Violation::required(format!("{path}.name"), "")),
        "" => {}
        name => {
            let wrong = names::dns1123_label(name);
            violations.extend(wrong.iter().map(|why| Violation::invalid(format!("{path}.name"), name, why)));
        }
    }
    let number = port["port"].as_i64().unwrap_or(0);
    if !(1..=65535).contains(&number) {
        let why = "must be between 1 and 65535, inclusive";
        violations.push(Violation::invalid(format!("{path}.port"), number, why));
    }
    violations
}
