//! A pod's quality of service class, computed from requests and limits.

use crate::quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeMap;

const COUNTED: [&str; 2] = ["cpu", "memory"];

/// `Guaranteed`, `Burstable` or `BestEffort`.
// pkg/apis/core/v1/helper/qos/qos.go, ComputePodQOS
pub(super) fn of(spec: &Value) -> &'static str {
    let mut requested = false;
    let mut guaranteed = true;
    // Resources at the level of the pod take precedence over those of its containers.
    if ["requests", "limits"].iter().any(|field| !counted(&spec["resources"][field]).is_empty()) {
        let (requests, limits) = (counted(&spec["resources"]["requests"]), counted(&spec["resources"]["limits"]));
        return match limits.len() == COUNTED.len() && requests == limits {
            true => "Guaranteed",
            false => "Burstable",
        };
    }
    let lists =
        ["containers", "initContainers"].map(|list| spec[list].as_array().map(Vec::as_slice).unwrap_or_default());
    for container in lists.into_iter().flatten() {
        let requests = counted(&container["resources"]["requests"]);
        let limits = counted(&container["resources"]["limits"]);
        requested |= !requests.is_empty() || !limits.is_empty();
        guaranteed &= limits.len() == COUNTED.len() && requests == limits;
    }
    match (requested, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn counted(amounts: &Value) -> BTreeMap<&'static str, String> {
    let amount = |name: &'static str| {
        let text = amounts[name].as_str()?;
        let canonical = text.parse::<Quantity>().map_or(text.to_owned(), |quantity| quantity.to_string());
        (canonical != "0").then_some((name, canonical))
    };
    COUNTED.into_iter().filter_map(amount).collect()
}
