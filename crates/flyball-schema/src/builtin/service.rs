//! Services. Their addresses and ports are given out by `allocate`.

mod address;
mod validate;

use super::{at, fill, fill_zero, items, within};
use serde_json::{Value, json};

pub use validate::validate;

/// Fills in what a service leaves out.
// pkg/apis/core/v1/defaults.go, SetDefaults_Service
pub fn default(service: &mut Value) {
    let spec = at(service, "spec");
    fill_zero(spec, "sessionAffinity", "None");
    fill_zero(spec, "type", "ClusterIP");
    match spec["sessionAffinity"].as_str() {
        Some("ClientIP") => fill(at(at(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10800),
        Some("None") => forget(spec, "sessionAffinityConfig"),
        _ => {}
    }
    for port in items(spec, "ports") {
        fill_zero(port, "protocol", "TCP");
        let number = port.get("port").cloned().unwrap_or_default();
        fill_zero(port, "targetPort", number);
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

/// Keeps a service's addresses and ports where an update leaves them out, and drops what no longer fits its type.
// pkg/registry/core/service/strategy.go, patchAllocatedValues and dropTypeDependentFields
pub fn prepare(service: &mut Value, live: Option<&Value>) {
    let spec = at(service, "spec");
    if let Some(live) = live {
        if spec["type"] != "ExternalName" && live["spec"]["type"] != "ExternalName" {
            for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if let Some(value) = live["spec"].get(field) {
                    fill_zero(spec, field, value.clone());
                }
            }
            keep_node_ports(spec, &live["spec"]);
        }
        drop_what_does_not_fit(spec, &live["spec"]);
    }
    if spec["clusterIP"].as_str().is_some_and(|address| !address.is_empty()) {
        let address = spec["clusterIP"].clone();
        fill(spec, "clusterIPs", json!([address]));
    }
    if spec["type"] != "ExternalName" {
        fill(spec, "ipFamilies", json!(["IPv4"]));
        fill(spec, "ipFamilyPolicy", "SingleStack");
    }
    spec.as_object_mut()
        .into_iter()
        .for_each(|members| members.retain(|_, value| !value.is_null()));
}

/// What only some types have goes with the type, unless the update says it anew.
fn drop_what_does_not_fit(spec: &mut Value, old: &Value) {
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    let is_open = matches!(kind.as_str(), "NodePort" | "LoadBalancer");
    let has_external = spec["externalIPs"].as_array().is_some_and(|addresses| !addresses.is_empty());
    let mut gone = Vec::new();
    if kind == "ExternalName" {
        gone.extend([
            "clusterIP",
            "clusterIPs",
            "ipFamilies",
            "ipFamilyPolicy",
            "internalTrafficPolicy",
        ]);
    }
    let is_reached = is_open || (kind == "ClusterIP" && has_external);
    if !is_reached {
        gone.push("externalTrafficPolicy");
    }
    if kind != "LoadBalancer" {
        gone.extend([
            "allocateLoadBalancerNodePorts",
            "loadBalancerClass",
            "healthCheckNodePort",
        ]);
    }
    for field in gone.into_iter().filter(|_| old["type"] != kind.as_str()) {
        if spec[field] == old[field] {
            forget(spec, field);
        }
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
