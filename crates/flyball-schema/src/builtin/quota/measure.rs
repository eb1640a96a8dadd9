//! What one object uses of each resource that quotas name.
// pkg/quota/v1/evaluator/core, apiserver/pkg/quota/v1/generic/evaluator.go

use super::{Amounts, Resource, items};
use crate::builtin::resources::aggregate::{self, amounts_in};
use crate::builtin::resources::{is_extended, is_native};
use crate::builtin::volume::claim_class;
use crate::quantity::Quantity;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const OF_PODS: [&str; 10] = [
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
];
/// What each container has to declare if a quota restricts it.
const DECLARED: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];
const OF_SERVICES: [&str; 3] = ["services", "services.nodeports", "services.loadbalancers"];
const OF_CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
const BY_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Kinds of the core group that are also counted under their plain name.
const COUNTED: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];
const HUGE: &str = "hugepages-";
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// The name under which quotas count the objects of any resource.
// ObjectCountQuotaResourceNameFor
fn count_name(resource: Resource<'_>) -> String {
    match resource.group {
        "" => format!("count/{}", resource.plural),
        group => format!("count/{}.{group}", resource.plural),
    }
}

/// The restricted resources that objects of a kind use, in order.
// Evaluator.MatchingResources
pub fn matching<'a>(resource: Resource<'_>, restricted: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    let count = count_name(resource);
    let is_used = |name: &&str| {
        *name == count
            || match (resource.group, resource.plural) {
                ("", "pods") => is_of_pods(name),
                ("", "services") => OF_SERVICES.contains(name),
                ("", "persistentvolumeclaims") => {
                    let plain = name.split_once(BY_CLASS).map_or(*name, |(_, plain)| plain);
                    OF_CLAIMS.contains(&plain)
                }
                ("", plural) => COUNTED.contains(&plural) && *name == plural,
                _ => false,
            }
    };
    restricted.into_iter().map(String::as_str).filter(is_used).collect()
}

fn is_of_pods(name: &str) -> bool {
    let request = name.strip_prefix("requests.");
    let is_requested = request
        .is_some_and(|request| request.starts_with(HUGE) || !is_native(name) || request.starts_with(DEVICE_CLASS));
    OF_PODS.contains(&name) || name.starts_with(HUGE) || is_requested
}

/// What an object uses.
// Evaluator.Usage
pub(super) fn usage(resource: Resource<'_>, object: &Value, now: Timestamp) -> Amounts {
    let mut used = Amounts::from([(count_name(resource), number(1))]);
    match (resource.group, resource.plural) {
        ("", "pods") if is_charged(object, now) => used.extend(of_pod(object)),
        ("", "services") => used.extend(of_service(&object["spec"])),
        ("", "persistentvolumeclaims") => used.extend(of_claim(object)),
        ("", plural) if COUNTED.contains(&plural) => {
            used.insert(plural.to_owned(), number(1));
        }
        _ => {}
    }
    used
}

fn number(number: usize) -> Quantity {
    number.to_string().parse().expect("a number is a quantity")
}

/// Whether a pod uses anything: it has not ended, and is not stuck in its deletion.
// QuotaV1Pod
fn is_charged(pod: &Value, now: Timestamp) -> bool {
    if matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
        return false;
    }
    let metadata = &pod["metadata"];
    let deletion: Option<Timestamp> = metadata["deletionTimestamp"].as_str().and_then(|at| at.parse().ok());
    match (deletion, metadata["deletionGracePeriodSeconds"].as_i64()) {
        (Some(at), Some(seconds)) => {
            let end = at.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
            now <= end
        }
        _ => true,
    }
}

// PodUsageFunc
fn of_pod(pod: &Value) -> Amounts {
    let spec = &pod["spec"];
    let mut totals = ["requests", "limits"].map(|list| {
        let mut total = aggregate::of(spec, list);
        let own = amounts_in(&spec["resources"][list]).into_iter();
        total.extend(own.filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory") || name.starts_with(HUGE)));
        total
    });
    for (name, amount) in amounts_in(&spec["overhead"]) {
        let [requests, limits] = &mut totals;
        let sum = requests.get(&name).map_or_else(|| amount.clone(), |known| known.plus(&amount));
        if let Some(limit) = limits.get_mut(&name) {
            *limit = limit.plus(&amount);
        }
        requests.insert(name, sum);
    }
    let [requests, limits] = totals;
    compute(&requests, &limits)
}

/// The resources of a pod or a container under the names that quotas give them.
// podComputeUsageHelper
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut used = Amounts::from([("pods".to_owned(), number(1))]);
    for (name, amount) in requests {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") || name.starts_with(HUGE) {
            used.insert(name.clone(), amount.clone());
            used.insert(format!("requests.{name}"), amount.clone());
        } else if is_extended(name) || name.starts_with(DEVICE_CLASS) {
            used.insert(format!("requests.{name}"), amount.clone());
        }
    }
    for (name, amount) in limits {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            used.insert(format!("limits.{name}"), amount.clone());
        }
    }
    used
}

/// What the containers of a pod do not declare although a quota restricts it.
// podEvaluator.Constraints
pub(super) fn missing(resource: Resource<'_>, restricted: &[&str], pod: &Value) -> Option<String> {
    let spec = &pod["spec"];
    let says = |list: &str| spec["resources"][list].as_object().is_some_and(|all| !all.is_empty());
    if (resource.group, resource.plural) != ("", "pods") || says("requests") || says("limits") {
        return None;
    }
    let required: Vec<&&str> = restricted.iter().filter(|name| DECLARED.contains(name)).collect();
    let mut lacking: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in ["containers", "initContainers"].into_iter().flat_map(|list| items(&spec[list])) {
        let amounts = |list: &str| amounts_in(&container["resources"][list]);
        let declared = compute(&amounts("requests"), &amounts("limits"));
        for name in required.iter().filter(|name| !declared.contains_key(***name)) {
            let container = container["name"].as_str().unwrap_or_default();
            lacking.entry(name).or_default().insert(container);
        }
    }
    let one = |(name, containers): (&str, BTreeSet<&str>)| {
        format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
    };
    let lacking: Vec<String> = lacking.into_iter().map(one).collect();
    (!lacking.is_empty()).then(|| format!("must specify {}", lacking.join("; ")))
}

// serviceEvaluator.Usage
fn of_service(spec: &Value) -> Amounts {
    let ports = items(&spec["ports"]).count();
    let fixed = items(&spec["ports"]).filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0).count();
    let (node_ports, balancers) = match spec["type"].as_str() {
        Some("NodePort") => (ports, 0),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => (fixed, 1),
        Some("LoadBalancer") => (ports, 1),
        _ => (0, 0),
    };
    OF_SERVICES
        .map(str::to_owned)
        .into_iter()
        .zip([1, node_ports, balancers].map(number))
        .collect()
}

// pvcEvaluator.Usage
fn of_claim(claim: &Value) -> Amounts {
    let class = claim_class(claim).filter(|class| !class.is_empty());
    let mut used = Amounts::new();
    let mut add = |name: &str, amount: Quantity| {
        if let Some(class) = class {
            used.insert(format!("{class}{BY_CLASS}{name}"), amount.clone());
        }
        used.insert(name.to_owned(), amount);
    };
    add(OF_CLAIMS[0], number(1));
    let amount = |list: &Value| amounts_in(list).remove("storage");
    if let Some(requested) = amount(&claim["spec"]["resources"]["requests"]) {
        let allocated = amount(&claim["status"]["allocatedResources"]).filter(|allocated| *allocated > requested);
        add(OF_CLAIMS[1], allocated.unwrap_or(requested).whole());
    }
    used
}
