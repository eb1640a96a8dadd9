//! Validation of Ingresses.
// pkg/apis/networking/validation/validation.go, ValidateIngressCreate and ValidateIngressUpdate

use crate::builtin::rules::{address, empty, label, named, optional, port, port_name, subdomain};
use crate::builtin::spot::{Found, Spot};
use crate::names;
use crate::validate::format::address::is_ip;
use crate::violation::Violation;
use serde_json::Value;

const CLASS: &str = "kubernetes.io/ingress.class";
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
/// Sequences that a path must not contain, and suffixes that it must not have.
const IN_PATHS: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const AT_THEIR_END: [&str; 2] = ["/..", "/."];

/// Validates an Ingress.
pub fn validate_ingress(object: &Value, live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    let spec = root.field("spec");
    let backend = spec.field("defaultBackend");
    if spec.field("rules").len() == 0 && !backend.is_set() {
        spec.invalid_as(&mut found, Value::Null, "either `defaultBackend` or `rules` must be specified");
    }
    if backend.is_set() {
        validate_backend(&backend, &mut found);
    }
    spec.field("rules").items().for_each(|rule| validate_rule(&rule, &mut found));
    spec.field("tls").items().for_each(|tls| validate_tls(&tls, &mut found));
    optional(&spec.field("ingressClassName"), subdomain, &mut found);
    if live.is_none() {
        one_class(&root, &mut found);
    }
    found
}

fn one_class(root: &Spot<'_>, found: &mut Found) {
    let metadata = root.field("metadata");
    let annotations = metadata.field("annotations");
    let (annotated, class) = (annotations.field(CLASS), &root.value["spec"]["ingressClassName"]);
    if annotated.is_set() && class.is_string() && annotated.value != class {
        let shown = annotations.value[CLASS].clone();
        annotations
            .field(CLASS)
            .invalid_as(found, shown, "must match `ingressClassName` when both are specified");
    }
}

fn validate_rule(rule: &Spot<'_>, found: &mut Found) {
    let host = rule.field("host");
    if !host.text().is_empty() {
        match host.text() {
            text if is_ip(text) => host.invalid(found, "must be a DNS name, not an IP address"),
            text if text.contains('*') => named(&host, names::wildcard_subdomain, found),
            _ => subdomain(&host, found),
        }
    }
    let http = rule.field("http");
    let paths = http.field("paths");
    if http.is_set() && paths.len() == 0 {
        paths.required(found, "");
    }
    paths.items().for_each(|path| validate_path(&path, found));
}

fn validate_path(path: &Spot<'_>, found: &mut Found) {
    let (kind, text) = (path.field("pathType"), path.field("path"));
    match kind.text() {
        "" => return kind.required(found, "pathType must be specified"),
        "Exact" | "Prefix" => well_formed(&text, found),
        "ImplementationSpecific" if text.text().is_empty() || text.text().starts_with('/') => {}
        "ImplementationSpecific" => text.invalid(found, "must be an absolute path"),
        _ => kind.unsupported(found, &PATH_TYPES),
    }
    validate_backend(&path.field("backend"), found);
}

fn well_formed(path: &Spot<'_>, found: &mut Found) {
    let text = path.text();
    if !text.starts_with('/') {
        path.invalid_as(found, text, "must be an absolute path");
    }
    for part in IN_PATHS.iter().filter(|part| text.contains(**part)) {
        path.invalid(found, &format!("must not contain '{part}'"));
    }
    for end in AT_THEIR_END.iter().filter(|end| text.ends_with(**end)) {
        path.invalid(found, &format!("cannot end with '{end}'"));
    }
}

fn validate_backend(backend: &Spot<'_>, found: &mut Found) {
    let (service, resource) = (backend.field("service"), backend.field("resource"));
    match (service.is_set(), resource.is_set()) {
        (true, true) => backend.invalid_as(found, "", "cannot set both resource and service backends"),
        (false, false) => backend.invalid_as(found, "", "resource or service backend is required"),
        (false, true) => validate_resource(&resource, found),
        (true, false) => validate_service(backend, &service, found),
    }
}

fn validate_resource(resource: &Spot<'_>, found: &mut Found) {
    if !empty(&resource.field("kind"), found) {
        named(&resource.field("kind"), names::path_segment, found);
    }
    if !empty(&resource.field("name"), found) {
        named(&resource.field("name"), names::path_segment, found);
    }
}

fn validate_service(backend: &Spot<'_>, service: &Spot<'_>, found: &mut Found) {
    if !empty(&service.field("name"), found) {
        label(&service.field("name"), found);
    }
    let its_port = service.field("port");
    let (name, number) = (its_port.field("name"), its_port.field("number"));
    match (name.text().is_empty(), number.int() == 0) {
        (false, false) => backend.invalid_as(found, "", "cannot set both port name & port number"),
        (false, true) => port_name(&name, found),
        (true, false) => port(&number, found),
        (true, true) => backend.required(found, "port name or number is required"),
    }
}

fn validate_tls(tls: &Spot<'_>, found: &mut Found) {
    for host in tls.field("hosts").items() {
        match host.text().contains('*') {
            true => named(&host, names::wildcard_subdomain, found),
            false => subdomain(&host, found),
        }
    }
    optional(&tls.field("secretName"), subdomain, found);
}

/// Validates the status of an Ingress.
pub fn validate_ingress_status(object: &Value, _live: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    for point in root.field("status").field("loadBalancer").field("ingress").items() {
        let (ip, host) = (point.field("ip"), point.field("hostname"));
        optional(&ip, address, &mut found);
        if is_ip(host.text()) {
            host.invalid(&mut found, "must be a DNS name, not an IP address");
        } else {
            optional(&host, subdomain, &mut found);
        }
    }
    found
}
