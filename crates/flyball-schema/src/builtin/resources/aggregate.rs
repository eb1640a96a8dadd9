//! The aggregate resources of all containers, compared with the resources at the level of the pod.
// component-helpers/resource/helpers.go, AggregateContainerRequests; pkg/apis/core/v1/defaults.go, defaultPodRequests

use super::{HUGE, quantity};
use crate::builtin::spot::{Found, Spot};
use crate::builtin::{at, fill, within};
use crate::quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeMap;

/// Amounts by the name of their resource.
pub(in crate::builtin) type Amounts = BTreeMap<String, Quantity>;

/// Validates a pod's resources against those of its containers.
// validatePodResourceConsistency
pub(super) fn consistent(spec: &Value, resources: &Spot<'_>, found: &mut Found) {
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    let at_least = |field: &Spot<'_>, name: &str, needed: &Quantity, what: &str, found: &mut Found| {
        let own = field.key(name);
        if let Some(amount) = quantity(own.value).filter(|amount| needed > amount) {
            let why = format!("must be greater than or equal to aggregate container {what} of {needed}");
            own.invalid_as(found, amount.to_string(), &why);
        }
    };
    for (name, needed) in &of(spec, "requests") {
        at_least(&requests, name, needed, "requests", found);
    }
    for (name, needed) in of(spec, "limits").iter().filter(|(name, _)| name.starts_with(HUGE)) {
        at_least(&limits, name, needed, "limits", found);
    }
    for (index, container) in list(spec, "containers").iter().enumerate() {
        for (name, limit) in amounts(container, "limits") {
            if let Some(most) = quantity(limits.key(&name).value).filter(|most| limit > *most) {
                let place = format!("containers[{index}][{name}]");
                let why = format!("must be less than or equal to pod limits of {most}");
                resources.field(&place).field("limits").invalid_as(found, limit.to_string(), &why);
            }
        }
    }
}

/// Sets the absent resources at the level of the pod from those of its containers.
pub(in crate::builtin) fn default(spec: &mut Value) {
    let says = |spec: &Value, field: &str| spec["resources"][field].as_object().is_some_and(|all| !all.is_empty());
    let is_huge = |name: &str| name.starts_with(HUGE);
    let limits = of(spec, "limits").into_iter().filter(|(name, _)| is_huge(name));
    if says(spec, "limits") || says(spec, "requests") {
        for (name, limit) in limits {
            if spec["resources"]["requests"].get(&name).is_none() {
                put(spec, "limits", &name, limit.to_string().into());
            }
        }
    }
    if !says(spec, "limits") {
        return;
    }
    for (name, request) in of(spec, "requests") {
        if ["cpu", "memory"].contains(&&*name) {
            put(spec, "requests", &name, request.to_string().into());
        }
    }
    let limits = spec["resources"]["limits"].as_object().cloned().unwrap_or_default();
    for (name, limit) in limits {
        if ["cpu", "memory"].contains(&&*name) || is_huge(&name) {
            put(spec, "requests", &name, limit);
        }
    }
}

fn put(spec: &mut Value, field: &str, name: &str, value: Value) {
    if let Some(resources) = within(spec, "resources") {
        fill(at(resources, field), name, value);
    }
}

/// The sum over the containers, or the largest init container if that is more.
pub(in crate::builtin) fn of(spec: &Value, field: &str) -> Amounts {
    let mut needed = Amounts::new();
    for container in list(spec, "containers") {
        add(&mut needed, &amounts(container, field));
    }
    let (mut sidecars, mut before) = (Amounts::new(), Amounts::new());
    for container in list(spec, "initContainers") {
        let mut own = amounts(container, field);
        if container["restartPolicy"] == "Always" {
            add(&mut needed, &own);
            add(&mut sidecars, &own);
            own.clone_from(&sidecars);
        } else {
            add(&mut own, &sidecars);
        }
        raise(&mut before, own);
    }
    raise(&mut needed, before);
    needed
}

fn add(all: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = all.get(name).map_or_else(|| amount.clone(), |known| known.plus(amount));
        all.insert(name.clone(), sum);
    }
}

fn raise(all: &mut Amounts, least: Amounts) {
    for (name, amount) in least {
        if all.get(&name).is_none_or(|known| amount > *known) {
            all.insert(name, amount);
        }
    }
}

fn list<'a>(spec: &'a Value, field: &str) -> &'a [Value] {
    spec[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn amounts(container: &Value, field: &str) -> Amounts {
    amounts_in(&container["resources"][field])
}

/// The amounts of a list of resources.
pub(in crate::builtin) fn amounts_in(list: &Value) -> Amounts {
    let all = list.as_object().into_iter().flatten();
    all.filter_map(|(name, amount)| Some((name.clone(), quantity(amount)?))).collect()
}
