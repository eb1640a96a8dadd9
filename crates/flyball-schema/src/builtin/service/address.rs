//! Validation of a service's addresses.
// pkg/apis/core/validation/validation.go, ValidateServiceClusterIPsRelatedFields and ValidateEndpointIP

use super::validate::{is_headless, kind};
use crate::builtin::rules::{address, maybe_one_of, one_of};
use crate::builtin::spot::{Found, Spot};
use serde_json::Value;
use std::collections::HashSet;
use std::net::IpAddr;

const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];

/// `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy`.
pub(super) fn validate(spec: &Spot<'_>, found: &mut Found) {
    if kind(spec) == "ExternalName" {
        return;
    }
    in_step(spec, found);
    let mut seen = HashSet::new();
    for family in spec.field("ipFamilies").items() {
        one_of(&family, &["IPv4", "IPv6"], found);
        if !seen.insert(family.text().to_owned()) {
            family.duplicate(found, family.text());
        }
    }
    maybe_one_of(&spec.field("ipFamilyPolicy"), &POLICIES, found);
    let before = found.len();
    for one in spec.field("clusterIPs").items().filter(|one| one.text() != "None") {
        address(&one, found);
    }
    if found.len() == before && !is_headless(spec) {
        of_their_families(spec, found);
    }
}

fn in_step(spec: &Spot<'_>, found: &mut Found) {
    let (first, all) = (spec.field("clusterIP"), spec.field("clusterIPs"));
    match (first.text().is_empty(), all.len()) {
        (false, 0) => all.required(found, ""),
        (false, _) if all.value[0] != *first.value => all.invalid(found, "first value must match `clusterIP`"),
        (true, count) if count > 0 => all.invalid(found, "must be empty when `clusterIP` is not specified"),
        _ => {}
    }
}

fn of_their_families(spec: &Spot<'_>, found: &mut Found) {
    let families = spec.field("ipFamilies");
    for (index, (one, family)) in spec.field("clusterIPs").items().zip(families.items()).enumerate() {
        let is_v6 = one.text().contains(':');
        let wants_v6 = family.text() == "IPv6";
        if is_v6 != wants_v6 && matches!(family.text(), "IPv4" | "IPv6") {
            let why = format!("expected an {} value as indicated by `ipFamilies[{index}]`", family.text());
            one.invalid(found, &why);
        }
    }
}

/// An external IP address of a Service.
pub(super) fn external(spot: &Spot<'_>, found: &mut Found) {
    let before = found.len();
    address(spot, found);
    if found.len() > before {
        return;
    }
    let why = match spot.text().parse::<IpAddr>() {
        Ok(ip) if ip.is_unspecified() => format!("may not be unspecified ({ip})"),
        Ok(ip) if ip.is_loopback() => "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned(),
        Ok(IpAddr::V4(ip)) if ip.is_link_local() => link_local(),
        Ok(IpAddr::V6(ip)) if ip.is_unicast_link_local() => link_local(),
        Ok(IpAddr::V4(ip)) if ip.octets()[..3] == [224, 0, 0] => {
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()
        }
        _ => return,
    };
    spot.invalid(found, &why);
}

fn link_local() -> String {
    "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()
}

/// The first cluster IP is immutable, unless the type changes from or to ExternalName.
pub(super) fn fixed(spec: &Spot<'_>, old: &Value, found: &mut Found) {
    let was_name = old["type"] == "ExternalName";
    let (new, before) = (spec.field("clusterIPs"), &old["clusterIPs"][0]);
    if kind(spec) == "ExternalName" || was_name || !before.is_string() {
        return;
    }
    if new.value[0] != *before {
        let shown = new.value.clone();
        match new.items().next() {
            Some(first) => first.invalid_as(found, shown, "may not change once set"),
            None => new.required(found, ""),
        }
    }
}
