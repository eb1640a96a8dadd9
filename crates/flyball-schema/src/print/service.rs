//! Services.

use super::column::{AGE, Column, NAME, age, column, labels, list, name, number, or_none, text, wide};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    column("Type", "string", "How the service is exposed."),
    column("Cluster-IP", "string", "The address inside the cluster."),
    column("External-IP", "string", "Addresses from outside the cluster."),
    column("Port(s)", "string", "The ports, and those of the nodes behind a colon."),
    AGE,
    wide("Selector", "string", "The labels of the pods that answer."),
];

pub(super) fn cells(service: &Value, now: Timestamp) -> Vec<Value> {
    let cluster_ip = list(service, "/spec/clusterIPs").first().and_then(Value::as_str);
    vec![
        json!(name(service)),
        json!(text(service, "/spec/type")),
        json!(cluster_ip.unwrap_or("<none>")),
        json!(external_ip(service)),
        json!(or_none(&ports(service))),
        age(service, now),
        json!(labels(service.pointer("/spec/selector"))),
    ]
}

fn external_ip(service: &Value) -> String {
    let external = list(service, "/spec/externalIPs").iter().filter_map(Value::as_str);
    match text(service, "/spec/type") {
        "ClusterIP" | "NodePort" => or_none(&external.collect::<Vec<_>>().join(",")).to_owned(),
        "LoadBalancer" => {
            let addresses: Vec<&str> = balancers(service).into_iter().chain(external).collect();
            if addresses.is_empty() {
                "<pending>".into()
            } else {
                addresses.join(",")
            }
        }
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        _ => "<unknown>".into(),
    }
}

fn balancers(service: &Value) -> BTreeSet<&str> {
    let address = |ingress| match text(ingress, "/ip") {
        "" => text(ingress, "/hostname"),
        ip => ip,
    };
    list(service, "/status/loadBalancer/ingress")
        .iter()
        .map(address)
        .filter(|address| !address.is_empty())
        .collect()
}

fn ports(service: &Value) -> String {
    let port = |port: &Value| {
        let protocol = text(port, "/protocol");
        match (number(port, "/port"), number(port, "/nodePort")) {
            (port, 0) => format!("{port}/{protocol}"),
            (port, node_port) => format!("{port}:{node_port}/{protocol}"),
        }
    };
    list(service, "/spec/ports").iter().map(port).collect::<Vec<_>>().join(",")
}
