//! Validation of NetworkPolicies.
// pkg/apis/networking/validation/validation.go, ValidateNetworkPolicySpec

use crate::builtin::rules::{network, one_of, port_or_name, selector};
use crate::builtin::spot::{Found, Spot};
use crate::violation::Violation;
use serde_json::Value;
use std::net::IpAddr;

/// Validates a NetworkPolicy.
pub fn validate_policy(object: &Value, _live: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    let root = Spot::root(object);
    let spec = root.field("spec");
    selector(&spec.field("podSelector"), &mut found);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.field(direction).items() {
            rule.field("ports").items().for_each(|port| validate_port(&port, &mut found));
            rule.field(peers).items().for_each(|peer| validate_peer(&peer, &mut found));
        }
    }
    validate_types(&spec.field("policyTypes"), &mut found);
    found
}

fn validate_port(item: &Spot<'_>, found: &mut Found) {
    one_of(&item.field("protocol"), &["TCP", "UDP", "SCTP"], found);
    let (port, end) = (item.field("port"), item.field("endPort"));
    if port.is_set() {
        port_or_name(&port, found);
    }
    if !end.is_set() {
        return;
    }
    match port.value {
        Value::Null => end.invalid(found, "may not be specified when `port` is not specified"),
        Value::String(_) => end.invalid(found, "may not be specified when `port` is non-numeric"),
        _ if end.int() < port.int() => {
            // Upstream reports the value of the other field.
            end.invalid_as(found, port.int(), "must be greater than or equal to `port`");
        }
        _ => crate::builtin::rules::port(&end, found),
    }
}

fn validate_peer(peer: &Spot<'_>, found: &mut Found) {
    let (pods, namespaces, block) = (peer.field("podSelector"), peer.field("namespaceSelector"), peer.field("ipBlock"));
    selector(&pods, found);
    selector(&namespaces, found);
    if block.is_set() {
        validate_block(&block, found);
    }
    match (pods.is_set() || namespaces.is_set(), block.is_set()) {
        (false, false) => peer.required(found, "must specify a peer"),
        (true, true) => peer.forbidden(found, "may not specify both ipBlock and another peer"),
        _ => {}
    }
}

fn validate_block(block: &Spot<'_>, found: &mut Found) {
    let cidr = block.field("cidr");
    if cidr.text().is_empty() {
        return cidr.required(found, "");
    }
    if !network(&cidr, found) {
        return;
    }
    for except in block.field("except").items() {
        if network(&except, found) && !is_strictly_within(except.text(), cidr.text()) {
            except.invalid(found, "must be a strict subset of `cidr`");
        }
    }
}

fn is_strictly_within(inner: &str, outer: &str) -> bool {
    let (Some((inner, inner_length)), Some((outer, outer_length))) = (parsed(inner), parsed(outer)) else {
        return true;
    };
    let bits = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => (u128::from(u32::from(ip)) << 96, false),
        IpAddr::V6(ip) => (u128::from(ip), true),
    };
    let ((inner, inner_v6), (outer, outer_v6)) = (bits(inner), bits(outer));
    let same = outer_length == 0 || (inner >> (128 - outer_length)) == (outer >> (128 - outer_length));
    inner_v6 == outer_v6 && inner_length > outer_length && same
}

fn parsed(cidr: &str) -> Option<(IpAddr, u32)> {
    let (ip, length) = cidr.split_once('/')?;
    Some((ip.parse().ok()?, length.parse().ok().filter(|length| *length <= 128)?))
}

fn validate_types(types: &Spot<'_>, found: &mut Found) {
    if types.len() > 2 {
        return types.invalid(found, "may not specify more than two policyTypes");
    }
    types.items().for_each(|one| one_of(&one, &["Ingress", "Egress"], found));
}
