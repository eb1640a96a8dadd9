//! Services. The API server allocates their addresses and ports.

mod address;
mod validate;

use super::{at, fill, fill_zero, items, within};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

pub use validate::validate;

/// Sets the defaults of a service.
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

/// Keeps a Service's addresses and ports where an update leaves them out, and drops what no longer fits its type.
// pkg/registry/core/service/storage/storage.go, patchAllocatedValues, and strategy.go, dropTypeDependentFields
pub fn prepare(service: &mut Value, live: Option<&Value>) {
    if let Some(live) = live {
        let spec = at(service, "spec");
        keep_allocated_values(spec, &live["spec"]);
        drop_type_dependent_fields(spec, &live["spec"]);
        if spec["type"] != "LoadBalancer"
            && let Some(balancer) = within(service, "status").and_then(|status| within(status, "loadBalancer"))
        {
            *balancer = json!({});
        }
    }
    let spec = at(service, "spec");
    if spec["clusterIP"].as_str().is_some_and(|address| !address.is_empty()) {
        let address = spec["clusterIP"].clone();
        fill(spec, "clusterIPs", json!([address]));
    }
    if needs_cluster_ip(spec) {
        fill(spec, "ipFamilies", json!(["IPv4"]));
        fill(spec, "ipFamilyPolicy", "SingleStack");
    }
    forget_null(spec);
}

fn needs_cluster_ip(spec: &Value) -> bool {
    spec["type"] != "ExternalName"
}

fn has_node_ports(spec: &Value) -> bool {
    matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"))
}

fn allocates_node_ports(spec: &Value) -> bool {
    spec["type"] == "NodePort" || (spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false)
}

fn needs_health_check_port(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

fn is_externally_accessible(spec: &Value) -> bool {
    let has_external = spec["externalIPs"].as_array().is_some_and(|addresses| !addresses.is_empty());
    has_node_ports(spec) || (spec["type"] == "ClusterIP" && has_external)
}

fn keep_allocated_values(spec: &mut Value, old: &Value) {
    if needs_cluster_ip(spec) && needs_cluster_ip(old) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = old.get(field) {
                fill_zero(spec, field, value.clone());
            }
        }
    }
    if allocates_node_ports(spec) && allocates_node_ports(old) {
        keep_node_ports(spec, old);
    }
    if needs_health_check_port(spec) && needs_health_check_port(old) {
        let port = old.get("healthCheckNodePort").cloned().unwrap_or_default();
        fill_zero(spec, "healthCheckNodePort", port);
    }
}

/// Keeps the node port of a port with the same name where an update leaves it out.
fn keep_node_ports(spec: &mut Value, old: &Value) {
    let used = node_ports(spec);
    let name = |port: &Value| port["name"].as_str().unwrap_or_default().to_owned();
    let old_ports = old["ports"].as_array().into_iter().flatten();
    let by_name: HashMap<String, u64> = old_ports.map(|port| (name(port), node_port(port))).collect();
    for port in items(spec, "ports").filter(|port| node_port(port) == 0) {
        if let Some(number) = by_name.get(&name(port)).filter(|number| **number != 0 && !used.contains(number)) {
            port["nodePort"] = (*number).into();
        }
    }
}

fn node_port(port: &Value) -> u64 {
    port["nodePort"].as_u64().unwrap_or(0)
}

fn node_ports(spec: &Value) -> HashSet<u64> {
    let ports = spec["ports"].as_array().into_iter().flatten();
    ports.map(node_port).filter(|number| *number != 0).collect()
}

/// Drops what only the old type had, unless the update changes it too.
fn drop_type_dependent_fields(spec: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && !needs_cluster_ip(spec) {
        if spec["clusterIP"] == old["clusterIP"] && spec["clusterIPs"] == old["clusterIPs"] {
            forget(spec, "clusterIP");
            forget(spec, "clusterIPs");
        }
        forget_same(spec, old, "ipFamilies");
        forget_same(spec, old, "ipFamilyPolicy");
        forget_same(spec, old, "internalTrafficPolicy");
    }
    if has_node_ports(old) && !has_node_ports(spec) && node_ports(spec).is_subset(&node_ports(old)) {
        items(spec, "ports").for_each(|port| forget(port, "nodePort"));
    }
    if needs_health_check_port(old) && !needs_health_check_port(spec) {
        forget_same(spec, old, "healthCheckNodePort");
    }
    if old["type"] == "LoadBalancer" && spec["type"] != "LoadBalancer" {
        forget_same(spec, old, "allocateLoadBalancerNodePorts");
        forget_same(spec, old, "loadBalancerClass");
    }
    if is_externally_accessible(old) && !is_externally_accessible(spec) {
        forget_same(spec, old, "externalTrafficPolicy");
    }
}

fn forget_same(spec: &mut Value, old: &Value, field: &str) {
    if spec[field] == old[field] {
        forget(spec, field);
    }
}
