//! Validation of the metrics of an autoscaler.
// pkg/apis/autoscaling/validation/validation.go, validateMetricSpec

use super::validate::described;
use crate::builtin::rules::{label, named, one_of, quantity};
use crate::builtin::spot::{Found, Spot};
use crate::names;

const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// Validates one source of metrics.
type Check = fn(&Spot<'_>, &mut Found);

/// Every source, in upstream's order.
const SOURCES: [(&str, &str, Check); 5] = [
    ("Object", "object", object),
    ("External", "external", external),
    ("Pods", "pods", pods),
    ("Resource", "resource", resource),
    ("ContainerResource", "containerResource", container_resource),
];

/// `metrics`.
pub(super) fn validate_all(spec: &Spot<'_>, found: &mut Found) {
    let metrics = spec.field("metrics");
    metrics.items().for_each(|metric| validate(&metric, found));
    let scales_from_nothing = |metric: &Spot<'_>| matches!(metric.field("type").text(), "Object" | "External");
    let least = spec.field("minReplicas");
    if least.is_set() && least.int() == 0 && !metrics.items().any(|metric| scales_from_nothing(&metric)) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        metrics.forbidden(found, why);
    }
}

fn validate(metric: &Spot<'_>, found: &mut Found) {
    let kind = metric.field("type");
    if kind.text().is_empty() {
        kind.required(found, "must specify a metric source type");
    }
    one_of(&kind, &TYPES, found);
    let set: Vec<_> = SOURCES.iter().filter(|(_, field, _)| metric.field(field).is_set()).collect();
    if let Some((_, field, check)) = set.first() {
        check(&metric.field(field), found);
    }
    let expected = SOURCES.iter().find(|(name, ..)| *name == kind.text()).map(|(_, field, _)| *field);
    match expected {
        Some(field) if !metric.field(field).is_set() => {
            metric
                .field(field)
                .required(found, "must populate information for the given metric source");
        }
        Some(_) => {}
        None => one_of(&kind, &TYPES, found),
    }
    if set.len() != 1 {
        for (_, field, _) in set.iter().filter(|(_, field, _)| Some(*field) != expected) {
            metric.field(field).forbidden(found, "must populate the given metric source only");
        }
    }
}

fn object(source: &Spot<'_>, found: &mut Found) {
    described(&source.field("describedObject"), found);
    identifier(&source.field("metric"), found);
    target(&source.field("target"), found);
    let target = source.field("target");
    if !target.field("value").is_set() && !target.field("averageValue").is_set() {
        target
            .field("averageValue")
            .required(found, "must set either a target value or averageValue");
    }
}

fn external(source: &Spot<'_>, found: &mut Found) {
    identifier(&source.field("metric"), found);
    target(&source.field("target"), found);
    let target = source.field("target");
    match (target.field("value").is_set(), target.field("averageValue").is_set()) {
        (false, false) => {
            let why = "must set either a target value for metric or a per-pod target";
            target.field("averageValue").required(found, why);
        }
        (true, true) => {
            let why = "may not set both a target value for metric and a per-pod target";
            target.field("value").forbidden(found, why);
        }
        _ => {}
    }
}

fn pods(source: &Spot<'_>, found: &mut Found) {
    identifier(&source.field("metric"), found);
    target(&source.field("target"), found);
    let target = source.field("target");
    if !target.field("averageValue").is_set() {
        target
            .field("averageValue")
            .required(found, "must specify a positive target averageValue");
    }
}

fn resource(source: &Spot<'_>, found: &mut Found) {
    resource_name(source, found);
    resource_target(source, found);
}

fn container_resource(source: &Spot<'_>, found: &mut Found) {
    resource_name(source, found);
    match source.field("container").text() {
        "" => source.field("container").required(found, "must specify a container"),
        _ => label(&source.field("container"), found),
    }
    resource_target(source, found);
}

fn resource_name(source: &Spot<'_>, found: &mut Found) {
    if source.field("name").text().is_empty() {
        source.field("name").required(found, "must specify a resource name");
    }
}

fn resource_target(source: &Spot<'_>, found: &mut Found) {
    target(&source.field("target"), found);
    let target = source.field("target");
    match (target.field("averageUtilization").is_set(), target.field("averageValue").is_set()) {
        (false, false) => {
            let why = "must set either a target raw value or a target utilization";
            target.field("averageUtilization").required(found, why);
        }
        (true, true) => {
            let why = "may not set both a target raw value and a target utilization";
            target.field("averageValue").forbidden(found, why);
        }
        _ => {}
    }
}

fn identifier(metric: &Spot<'_>, found: &mut Found) {
    match metric.field("name").text() {
        "" => metric.field("name").required(found, "must specify a metric name"),
        _ => named(&metric.field("name"), names::path_segment, found),
    }
}

fn target(target: &Spot<'_>, found: &mut Found) {
    let kind = target.field("type");
    if kind.text().is_empty() {
        kind.required(found, "must specify a metric target type");
    }
    if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        kind.invalid_as(found, kind.text(), "must be either Utilization, Value, or AverageValue");
    }
    for field in ["value", "averageValue"].map(|field| target.field(field)) {
        if quantity(field.value).is_some_and(|amount| amount.is_negative() || amount.is_zero()) {
            field.invalid(found, "must be positive");
        }
    }
    let utilization = target.field("averageUtilization");
    if utilization.is_set() && utilization.int() < 1 {
        utilization.invalid(found, "must be greater than 0");
    }
}
