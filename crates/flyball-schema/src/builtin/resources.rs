//! Validation of the requests and limits of containers, pods and claims.
// pkg/apis/core/validation/validation.go, validateResourceRequirements

pub(super) mod aggregate;

use super::rules::quantity;
use super::spot::{Found, Spot};
use crate::names;
use crate::quantity::Quantity;
use crate::violation::{Reason, Violation};
use serde_json::Value;

const FOR_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
// pkg/apis/core/helper/helpers.go, standardResources
const STANDARD: [&str; 22] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
    "limits.storage",
    "nodes",
];
const HUGE: &str = "hugepages-";

/// A container's requests and limits.
pub(super) fn validate_container(spot: &Spot<'_>, found: &mut Found) {
    let (limits, requests) = (spot.field("limits"), spot.field("requests"));
    for (name, limit) in limits.entries() {
        container_amount(name, &limit, found);
        whole_pages(name, &limit, found);
    }
    for (name, request) in requests.entries() {
        container_amount(name, &request, found);
        within_limit(name, &request, &limits, &requests, found);
        whole_pages(name, &request, found);
    }
    huge_pages_need_others(spot, found);
}

/// Requests and limits at the level of the pod.
// validatePodResources
pub(super) fn validate_pod(spec: &Spot<'_>, found: &mut Found) {
    let resources = spec.field("resources");
    if !resources.is_set() {
        return;
    }
    if spec.field("os").field("name").text() == "windows" {
        return resources.forbidden(found, "may not be set for a windows pod");
    }
    let (limits, requests, claims) =
        (resources.field("limits"), resources.field("requests"), resources.field("claims"));
    if claims.is_set() {
        claims.forbidden(found, "claims may not be set for Resources at pod-level");
    }
    for (name, limit) in limits.entries() {
        pod_amount(name, &limit, found);
        whole_pages(name, &limit, found);
    }
    for (name, request) in requests.entries() {
        pod_amount(name, &request, found);
        within_limit(name, &request, &limits, &requests, found);
        whole_pages(name, &request, found);
    }
    huge_pages_need_others(&resources, found);
    if spec.field("resourceClaims").len() == 0 {
        for claim in claims.items() {
            let name = claim.field("name").text();
            let why = "must be one of the names in pod.spec.resourceClaims which is empty";
            found.push(Violation::with_value(claim.path(), Reason::NotFound, &name.into(), why));
        }
    }
    aggregate::consistent(spec.value, &resources, found);
}

fn pod_amount(name: &str, spot: &Spot<'_>, found: &mut Found) {
    let before = found.len();
    known_name(name, spot, found);
    if found.len() == before && !["cpu", "memory"].contains(&name) && !name.starts_with(HUGE) {
        found.push(Violation::not_supported(spot.path(), name, &["cpu", HUGE, "memory"]));
    }
    amount(name, spot, found);
}

fn container_amount(name: &str, spot: &Spot<'_>, found: &mut Found) {
    known_name(name, spot, found);
    let is_plain = !name.contains('/');
    if is_plain && !FOR_CONTAINERS.contains(&name) && !name.starts_with(HUGE) {
        spot.invalid_as(found, name, "must be a standard resource for containers");
    } else if !is_plain && !is_native(name) && !is_extended(name) {
        spot.invalid_as(found, name, "doesn't follow extended resource name standard");
    }
    amount(name, spot, found);
}

pub(super) fn known_name(name: &str, spot: &Spot<'_>, found: &mut Found) {
    let wrong = names::qualified_name(name);
    wrong.iter().for_each(|why| spot.invalid_as(found, name, why));
    let standard = STANDARD.contains(&name) || name.starts_with(HUGE) || name.starts_with("requests.hugepages-");
    if wrong.is_empty() && !name.contains('/') && !standard {
        spot.invalid_as(found, name, "must be a standard resource type or fully qualified");
    }
}

/// A resource quantity: not negative, and an integer for resources that are counted.
// ValidateResourceQuantityValue
pub(super) fn amount(name: &str, spot: &Spot<'_>, found: &mut Found) {
    let Some(quantity) = quantity(spot.value) else { return };
    if quantity.is_negative() {
        spot.invalid_as(found, quantity.to_string(), "must be greater than or equal to 0");
    }
    if is_extended(name) && !quantity.is_whole() {
        spot.invalid_as(found, quantity.to_string(), "must be an integer");
    }
}

fn within_limit(name: &str, request: &Spot<'_>, limits: &Spot<'_>, requests: &Spot<'_>, found: &mut Found) {
    let overcommitted = is_native(name) && !name.starts_with(HUGE);
    let shown = |value: &Value| quantity(value).as_ref().map(Quantity::to_string).unwrap_or_default();
    let limit = limits.key(name);
    match (quantity(request.value), quantity(limit.value)) {
        (Some(_), None) if !overcommitted => {
            limits.required(found, "Limit must be set for non overcommitable resources");
        }
        (Some(request), Some(limit)) if request != limit && !overcommitted => {
            let why = format!("must be equal to {name} limit of {limit}");
            requests.invalid_as(found, request.to_string(), &why);
        }
        (Some(one), Some(most)) if one > most => {
            let why = format!("must be less than or equal to {name} limit of {}", shown(limit.value));
            requests.invalid_as(found, one.to_string(), &why);
        }
        _ => {}
    }
}

/// Huge pages must be a multiple of the page size.
// validateResourceQuantityHugePageValue
fn whole_pages(name: &str, spot: &Spot<'_>, found: &mut Found) {
    let (Some(size), Some(amount)) = (name.strip_prefix(HUGE), quantity(spot.value)) else {
        return;
    };
    if !size.parse().is_ok_and(|size: Quantity| amount.is_multiple_of(&size)) {
        let why = format!("{amount} is not positive integer multiple of {name}");
        spot.invalid_as(found, amount.to_string(), &why);
    }
}

fn huge_pages_need_others(spot: &Spot<'_>, found: &mut Found) {
    let (limits, requests) = (spot.field("limits"), spot.field("requests"));
    let named = |check: fn(&str) -> bool| limits.entries().chain(requests.entries()).any(|(name, _)| check(name));
    if named(|name| name.starts_with(HUGE)) && !named(|name| name == "cpu" || name == "memory") {
        spot.forbidden(found, "HugePages require cpu or memory");
    }
}

pub(super) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

pub(super) fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && names::qualified_name(&format!("requests.{name}")).is_empty()
}
