//! LimitRanges: their own defaults, the resources that they give to pods, and the pods and claims that break them.
// plugin/pkg/admission/limitranger/admission.go

use super::resources::aggregate::{self, Amounts, amounts_in};
use super::{at, fill, items};
use crate::quantity::Quantity;
use serde_json::{Map, Value};

/// The annotation that lists what a LimitRange has set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Sets the container limits that follow from each other.
// pkg/apis/core/v1/defaults.go, SetDefaults_LimitRangeItem
pub fn default(object: &mut Value) {
    for item in items(at(object, "spec"), "limits").filter(|item| item["type"] == "Container") {
        for (from, to) in [
            ("max", "default"),
            ("default", "defaultRequest"),
            ("min", "defaultRequest"),
        ] {
            let known = item[from].as_object().cloned().unwrap_or_default();
            if known.is_empty() {
                continue;
            }
            let limits = at(item, to);
            known.into_iter().for_each(|(name, amount)| fill(limits, &name, amount));
        }
    }
}

/// Gives the containers of a new pod the requests and limits that they lack.
pub fn fill_pod(range: &Value, pod: &mut Value) {
    let (mut requests, mut limits) = (Map::new(), Map::new());
    for item in limits_of(range, "Container") {
        requests.extend(item["defaultRequest"].as_object().cloned().unwrap_or_default());
        limits.extend(item["default"].as_object().cloned().unwrap_or_default());
    }
    let mut remarks = Vec::new();
    for (list, word) in [("containers", "container"), ("initContainers", "init container")] {
        for container in items(at(pod, "spec"), list) {
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            let resources = at(container, "resources");
            let limits = fill_missing(resources, "limits", &limits);
            let requests = fill_missing(resources, "requests", &requests);
            remarks.extend(requests.map(|names| format!("{names} request for {word} {name}")));
            remarks.extend(limits.map(|names| format!("{names} limit for {word} {name}")));
        }
    }
    if !remarks.is_empty() {
        let remark = format!("LimitRanger plugin set: {}", remarks.join("; "));
        at(at(pod, "metadata"), "annotations")[ANNOTATION] = remark.into();
    }
}

/// Adds the amounts that a list lacks; returns their names.
fn fill_missing(resources: &mut Value, list: &str, defaults: &Map<String, Value>) -> Option<String> {
    let mut added = Vec::new();
    for (name, amount) in defaults {
        if resources[list].get(name).is_none() {
            at(resources, list)[name] = amount.clone();
            added.push(name.as_str());
        }
    }
    added.sort_unstable();
    (!added.is_empty()).then(|| added.join(", "))
}

/// What of a LimitRange a pod breaks, or a claim if it is one.
pub fn broken(range: &Value, object: &Value, is_claim: bool) -> Vec<String> {
    let mut errors = Vec::new();
    if is_claim {
        let requests = amounts_in(&object["spec"]["resources"]["requests"]);
        for item in limits_of(range, "PersistentVolumeClaim") {
            errors.extend(check_each(item, "min", |name, least| {
                below(CLAIM, name, least, &requests, &Amounts::new())
            }));
            errors.extend(check_each(item, "max", |name, most| above_by_request(name, most, &requests)));
        }
        return errors;
    }
    let lists = ["containers", "initContainers"];
    let containers = lists.iter().flat_map(|list| object["spec"][list].as_array().into_iter().flatten());
    let containers: Vec<&Value> = containers.collect();
    for item in range["spec"]["limits"].as_array().into_iter().flatten() {
        match item["type"].as_str().unwrap_or_default() {
            "Container" => {
                for container in &containers {
                    let of = |list: &str| amounts_in(&container["resources"][list]);
                    errors.extend(check_all(item, "Container", &of("requests"), &of("limits")));
                }
            }
            "Pod" => {
                let (requests, limits) = (pod_total(object, "requests"), pod_total(object, "limits"));
                errors.extend(check_all(item, "Pod", &requests, &limits));
            }
            _ => {}
        }
    }
    errors
}

const CLAIM: &str = "PersistentVolumeClaim";

fn limits_of<'a>(range: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let items = range["spec"]["limits"].as_array().into_iter().flatten();
    items.filter(move |item| item["type"] == kind)
}

fn check_all(item: &Value, kind: &str, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let mut errors = check_each(item, "min", |name, least| below(kind, name, least, requests, limits));
    errors.extend(check_each(item, "max", |name, most| above(kind, name, most, requests, limits)));
    let ratio = |name: &str, most: &Quantity| above_ratio(kind, name, most, requests, limits);
    errors.extend(check_each(item, "maxLimitRequestRatio", ratio));
    errors
}

fn check_each(item: &Value, field: &str, check: impl Fn(&str, &Quantity) -> Option<String>) -> Vec<String> {
    let bounds = amounts_in(&item[field]);
    bounds.iter().filter_map(|(name, bound)| check(name, bound)).collect()
}

fn below(kind: &str, name: &str, least: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let rule = format!("minimum {name} usage per {kind} is {least}");
    match (requests.get(name), limits.get(name)) {
        (None, _) => Some(format!("{rule}.  No request is specified")),
        (Some(request), _) if request < least => Some(format!("{rule}, but request is {request}")),
        (_, Some(limit)) if limit < least => Some(format!("{rule}, but limit is {limit}")),
        _ => None,
    }
}

fn above(kind: &str, name: &str, most: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let rule = format!("maximum {name} usage per {kind} is {most}");
    match (limits.get(name), requests.get(name)) {
        (None, _) => Some(format!("{rule}.  No limit is specified")),
        (Some(limit), _) if limit > most => Some(format!("{rule}, but limit is {limit}")),
        (_, Some(request)) if request > most => Some(format!("{rule}, but request is {request}")),
        _ => None,
    }
}

fn above_by_request(name: &str, most: &Quantity, requests: &Amounts) -> Option<String> {
    let rule = format!("maximum {name} usage per {CLAIM} is {most}");
    match requests.get(name) {
        None => Some(format!("{rule}.  No request is specified")),
        Some(request) if request > most => Some(format!("{rule}, but request is {request}")),
        Some(_) => None,
    }
}

fn above_ratio(kind: &str, name: &str, most: &Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let rule = format!("{name} max limit to request ratio per {kind} is {most}");
    let Some(request) = requests.get(name).filter(|request| !request.is_zero()) else {
        return Some(format!("{rule}, but no request is specified or request is 0"));
    };
    let Some(limit) = limits.get(name).filter(|limit| !limit.is_zero()) else {
        return Some(format!("{rule}, but no limit is specified or limit is 0"));
    };
    let ratio = limit.approximate() / request.approximate();
    (ratio > most.approximate()).then(|| format!("{rule}, but provided ratio is {ratio:.6}"))
}

/// What a pod needs of each resource: what it says itself, else its containers together.
fn pod_total(pod: &Value, list: &str) -> Amounts {
    let mut total = aggregate::of(&pod["spec"], list);
    let own = amounts_in(&pod["spec"]["resources"][list]).into_iter();
    total.extend(own.filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")));
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn range(limit: Value) -> Value {
        json!({"spec": {"limits": [limit]}})
    }

    fn pod(resources: Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": resources}]}})
    }

    #[test]
    fn a_container_gets_what_it_lacks() {
        let range = range(
            json!({"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "1"}}),
        );
        let mut given = pod(json!({"limits": {"memory": "2Gi"}}));

        fill_pod(&range, &mut given);

        let resources = json!({"limits": {"cpu": "2", "memory": "2Gi"}, "requests": {"cpu": "1"}});
        assert_eq!(given["spec"]["containers"][0]["resources"], resources);
        let remark = "LimitRanger plugin set: cpu request for container c; cpu limit for container c";
        assert_eq!(given["metadata"]["annotations"][ANNOTATION], remark);
    }

    #[test]
    fn bounds_and_ratios_of_containers_and_pods_are_checked() {
        for (limit, resources, expected) in [
            (
                json!({"type": "Container", "min": {"cpu": "100m"}}),
                json!({"requests": {"cpu": "50m"}}),
                "minimum cpu usage per Container is 100m, but request is 50m",
            ),
            (
                json!({"type": "Container", "max": {"cpu": "1"}}),
                json!({}),
                "maximum cpu usage per Container is 1.  No limit is specified",
            ),
            (
                json!({"type": "Pod", "max": {"memory": "1Gi"}}),
                json!({"limits": {"memory": "2Gi"}}),
                "maximum memory usage per Pod is 1Gi, but limit is 2Gi",
            ),
            (
                json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}),
                json!({"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}),
                "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
            ),
        ] {
            assert_eq!(broken(&range(limit), &pod(resources), false), [expected]);
        }
        let fits = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}});
        let bounds = json!({"type": "Container", "min": {"cpu": "0.5"}, "max": {"cpu": "1000m"}, "maxLimitRequestRatio": {"cpu": "2"}});
        assert_eq!(broken(&range(bounds), &pod(fits), false), Vec::<String>::new());
    }

    #[test]
    fn a_claim_is_measured_by_its_request() {
        let claim = json!({"spec": {"resources": {"requests": {"storage": "5Gi"}}}});
        let limit = json!({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}});
        let why = "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 5Gi";
        assert_eq!(broken(&range(limit), &claim, true), [why]);
    }

    #[test]
    fn a_pod_needs_as_much_as_its_largest_init_container_beside_its_sidecars() {
        let cpu = |amount: &str| json!({"requests": {"cpu": amount}});
        let pod = json!({"spec": {
            "containers": [{"resources": cpu("1")}, {"resources": cpu("1")}],
            "initContainers": [{"restartPolicy": "Always", "resources": cpu("500m")}, {"resources": cpu("3")}],
        }});
        let total = pod_total(&pod, "requests");
        assert_eq!(total["cpu"].to_string(), "3500m");
    }
}
