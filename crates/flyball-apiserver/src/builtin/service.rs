//! Services.

use super::{at, fill, items};
use flyball_schema::violation::Violation;
use serde_json::{Value, json};

/// Fills in what a service leaves out.
// pkg/apis/core/v1/defaults.go, SetDefaults_Service
pub fn default(service: &mut Value) {
    let spec = at(service, "spec");
    fill(spec, "sessionAffinity", "None");
    fill(spec, "type", "ClusterIP");
    if spec["sessionAffinity"] == "ClientIP" {
        fill(at(at(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10800);
    }
    for port in items(spec, "ports") {
        fill(port, "protocol", "TCP");
        let number = port["port"].clone();
        match &port["targetPort"] {
            Value::Null => port["targetPort"] = number,
            Value::Number(target) if target.as_i64() == Some(0) => port["targetPort"] = number,
            Value::String(target) if target.is_empty() => port["targetPort"] = number,
            _ => {}
        }
    }
    let is_external = matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"));
    if is_external {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if spec["type"] != "ExternalName" {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if spec["type"] == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// Keeps a service's addresses, or gives it some.
// pkg/registry/core/service/storage/alloc.go
pub fn prepare(service: &mut Value, live: Option<&Value>) {
    let spec = at(service, "spec");
    if spec["type"] == "ExternalName" {
        return;
    }
    if let Some(live) = live {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = live["spec"].get(field) {
                fill(spec, field, value.clone());
            }
        }
        return;
    }
    fill(spec, "ipFamilies", json!(["IPv4"]));
    fill(spec, "ipFamilyPolicy", "SingleStack");
    if spec["clusterIP"].as_str().is_some_and(|address| !address.is_empty()) {
        let address = spec["clusterIP"].clone();
        fill(spec, "clusterIPs", json!([address]));
    }
}

/// Finds what is wrong with a service.
pub fn validate(service: &Value, live: Option<&Value>) -> Vec<Violation> {
    let spec = &service["spec"];
    let mut violations = Vec::new();
    let headless = spec["clusterIP"] == "None";
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    if ports.is_empty() && !headless && spec["type"] != "ExternalName" {
        violations.push(Violation::required("spec.ports", ""));
    }
    if let Some(live) = live {
        let before = &live["spec"]["clusterIP"];
        if !before.is_null() && *before != spec["clusterIP"] && spec["type"] != "ExternalName" {
            let given = spec["clusterIPs"].clone();
            let why = "may not change once set";
            violations.push(Violation::invalid("spec.clusterIPs[0]", given[0].clone(), why));
        }
    }
    violations
}
