//! Validation of probes and hooks.
// pkg/apis/core/validation/validation.go, validateProbe, validateLifecycle and validateHandler

use super::Shape;
use crate::builtin::rules::{empty, named, none_negative, one_of, port_or_name};
use crate::builtin::spot::{Found, Spot};
use crate::names;
use serde_json::Value;

const NUMBERS: [&str; 5] = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
];

/// One of a container's three probes.
pub(super) fn validate(name: &str, probe: &Spot<'_>, shape: &Shape<'_>, found: &mut Found) {
    if !probe.is_set() {
        return;
    }
    handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], shape, found);
    none_negative(probe, &NUMBERS, found);
    let grace = probe.field("terminationGracePeriodSeconds");
    if grace.is_set() && grace.int() <= 0 {
        grace.invalid(found, "must be greater than 0");
    }
    if name != "readinessProbe" && probe.field("successThreshold").int() != 1 {
        probe.field("successThreshold").invalid(found, "must be 1");
    }
    if name == "readinessProbe" && grace.is_set() {
        grace.invalid(found, "must not be set for readinessProbes");
    }
}

/// `lifecycle`: the hooks `postStart` and `preStop`.
pub(super) fn lifecycle(lifecycle: &Spot<'_>, shape: &Shape<'_>, found: &mut Found) {
    for hook in ["postStart", "preStop"] {
        if lifecycle.field(hook).is_set() {
            handler(&lifecycle.field(hook), &["exec", "httpGet", "tcpSocket", "sleep"], shape, found);
        }
    }
    let signal = lifecycle.field("stopSignal");
    if signal.is_set() && shape.spec["os"]["name"].is_null() {
        signal.forbidden(found, "may not be set for containers with empty `spec.os.name`");
    }
}

fn handler(spot: &Spot<'_>, kinds: &[&str], shape: &Shape<'_>, found: &mut Found) {
    let mut set = kinds.iter().filter(|kind| spot.field(kind).is_set());
    let Some(first) = set.next() else {
        spot.required(found, "must specify a handler type");
        return;
    };
    let action = spot.field(first);
    match *first {
        "exec" if action.field("command").len() == 0 => action.field("command").required(found, ""),
        "exec" => {}
        "httpGet" => http(&action, found),
        "sleep" => sleep(&action, shape, found),
        _ => port_or_name(&action.field("port"), found),
    }
    set.for_each(|kind| spot.field(kind).forbidden(found, "may not specify more than 1 handler type"));
}

fn http(action: &Spot<'_>, found: &mut Found) {
    empty(&action.field("path"), found);
    port_or_name(&action.field("port"), found);
    one_of(&action.field("scheme"), &["HTTP", "HTTPS"], found);
    let headers = action.field("httpHeaders");
    for header in headers.value.as_array().into_iter().flatten() {
        let name = header.get("name").unwrap_or(&Value::Null);
        named(&action.with("httpHeaders", name), names::http_header, found);
    }
}

fn sleep(action: &Spot<'_>, shape: &Shape<'_>, found: &mut Found) {
    let seconds = action.field("seconds").int();
    let Some(grace) = shape.spec["terminationGracePeriodSeconds"].as_i64() else {
        return;
    };
    if !(0..=grace).contains(&seconds) {
        let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        action.invalid_as(found, seconds, &why);
    }
}
