//! What pods ask for and nodes offer, exactly: billionths of each resource.

use flyball_schema::quantity::Quantity as Amount;
use k8s_openapi::{
    api::core::v1::{Container, PodSpec, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity,
};
use std::collections::BTreeMap;

/// Billionths of each resource.
pub(crate) type Amounts = BTreeMap<String, i128>;

/// One of a resource.
pub(crate) const ONE: i128 = 1_000_000_000;

/// A quantity in billionths; the API server has checked that it is one.
pub(crate) fn nanos(quantity: &Quantity) -> i128 {
    quantity.0.parse::<Amount>().ok().and_then(|amount| amount.nanos()).unwrap_or_default()
}

/// The amounts of a list of resources.
pub(crate) fn amounts(list: Option<&BTreeMap<String, Quantity>>) -> Amounts {
    list.into_iter()
        .flatten()
        .map(|(name, quantity)| (name.clone(), nanos(quantity)))
        .collect()
}

/// Adds amounts to others.
pub(crate) fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *sum.entry(name.clone()).or_default() += amount;
    }
}

/// Takes amounts away from others.
pub(crate) fn subtract(sum: &mut Amounts, less: &Amounts) {
    for (name, amount) in less {
        *sum.entry(name.clone()).or_default() -= amount;
    }
}

/// The amounts that a pod requests.
///
/// They are what all containers need together, or the one init container that needs more, and what the pod itself states.
// component-helpers/resource/helpers.go, PodRequests
pub(crate) fn requests(spec: &PodSpec) -> Amounts {
    let part = |resources: &ResourceRequirements| amounts(resources.requests.as_ref());
    let of = |container: &Container| container.resources.as_ref().map(part).unwrap_or_default();
    let mut sum = Amounts::new();
    spec.containers.iter().for_each(|container| add(&mut sum, &of(container)));
    let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
    for container in spec.init_containers.iter().flatten() {
        let own = of(container);
        let mut peak = own.clone();
        add(&mut peak, &sidecars);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut sum, &own);
            add(&mut sidecars, &own);
            peak = sidecars.clone();
        }
        for (name, amount) in peak {
            let known = most.entry(name).or_default();
            *known = amount.max(*known);
        }
    }
    for (name, amount) in most {
        let known = sum.entry(name).or_default();
        *known = amount.max(*known);
    }
    sum.extend(spec.resources.as_ref().map(part).unwrap_or_default());
    add(&mut sum, &amounts(spec.overhead.as_ref()));
    sum.retain(|_, amount| *amount > 0);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn cpu(spec: Value) -> i128 {
        requests(&serde_json::from_value(spec).unwrap()).remove("cpu").unwrap_or_default()
    }

    fn container(cpu: &str) -> Value {
        json!({ "name": "c", "resources": { "requests": { "cpu": cpu } } })
    }

    #[test]
    fn amounts_are_exact_in_every_notation() {
        let sum = cpu(json!({ "containers": [container("3900m"), container("0.0999999"), container("100n")] }));
        assert_eq!(sum, 4 * ONE);
        assert_eq!(nanos(&Quantity("1Ki".into())), 1024 * ONE);
        assert_eq!(nanos(&Quantity("8e9".into())), 8_000_000_000 * ONE);
    }

    #[test]
    fn init_containers_count_if_they_need_more_and_sidecars_always() {
        let mut init = container("2");
        assert_eq!(cpu(json!({ "containers": [container("500m")], "initContainers": [init] })), 2 * ONE);
        init = container("2");
        init["restartPolicy"] = "Always".into();
        let spec =
            json!({ "containers": [container("500m")], "initContainers": [init], "overhead": { "cpu": "500m" } });
        assert_eq!(cpu(spec), 3 * ONE);
    }
}
